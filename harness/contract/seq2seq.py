"""The one interface through which PyTorch and ONNX Runtime are observed.

``harness.runtime.artifact_model`` implements it on ONNX Runtime, ``harness.reference`` on PyTorch; search, parity,
shapes and diagnosis are written against it, so both sides always get the same treatment.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

Arrays = Mapping[str, np.ndarray]


@dataclass(frozen=True)
class EncoderOutput:
    """What the encoder leaves for the decoder.

    Attributes:
        mask: int64 ``[batch, source]``, 1 for real tokens.
        hidden: float32 ``[batch, source, d_model]``.
        cross: ``present.{i}.encoder.key|value`` -> float32 ``[batch, heads, source, head_dim]``; empty where the
            layout computes cross K/V in the decoder.
    """

    mask: np.ndarray
    hidden: np.ndarray
    cross: Arrays = field(default_factory=dict)


@dataclass(frozen=True)
class DecoderState:
    """Everything a decoder carries from one step to the next.

    Attributes:
        encoder: the encoder's output, rows in decoder order.
        past: ``present.{i}.decoder.key|value`` -> float32 ``[batch, heads, past, head_dim]``; ``past`` may be 0.
        length: target tokens already in the cache.
    """

    encoder: EncoderOutput
    past: Arrays
    length: int

    def select(self, rows: np.ndarray) -> DecoderState:
        """Reorder, repeat or drop rows: ``rows`` holds int64 indices into the batch."""
        pick = lambda arrays: {name: array[rows] for name, array in arrays.items()}
        encoder = EncoderOutput(self.encoder.mask[rows], self.encoder.hidden[rows], pick(self.encoder.cross))
        return dataclasses.replace(self, encoder=encoder, past=pick(self.past))

    def reorder(self, rows: np.ndarray) -> DecoderState:
        """As ``select``, for rows that stay within their sentence, as beams do: its encoder output is not copied."""
        if np.array_equal(rows, np.arange(len(self.encoder.mask))):
            return self
        return dataclasses.replace(self, past={name: array[rows] for name, array in self.past.items()})


class Seq2Seq(Protocol):
    """An encoder-decoder that can be fed step by step."""

    def encode(self, input_ids: np.ndarray, attention_mask: np.ndarray) -> EncoderOutput:
        """Run the encoder on int64 ``[batch, source]`` ids and mask."""

    def start(self, encoder: EncoderOutput) -> DecoderState:
        """Return a state with an empty self-attention cache."""

    def step(self, state: DecoderState, decoder_input_ids: np.ndarray) -> tuple[np.ndarray, DecoderState]:
        """Append int64 ``[batch, target]`` ids; return float32 logits ``[batch, target, vocab]`` and the new state."""
