"""``Seq2Seq`` on an artifact set: the reference loop for whoever embeds a set."""

from __future__ import annotations

import dataclasses

import numpy as np

from harness.contract.errors import InputError
from harness.contract.layouts import (
    ATTENTION_MASK,
    CROSS,
    DECODER,
    DECODER_INIT,
    DECODER_STEP,
    ENCODER,
    ENCODER_HIDDEN,
    ENCODER_MASK,
    ENCODER_OUTPUT,
    INPUT_IDS,
    LOGITS,
    SELF,
    past_of_present,
    present_names,
)
from harness.contract.seq2seq import DecoderState, EncoderOutput
from harness.runtime.artifact_set import ArtifactSet
from harness.runtime.naming import BRANCH_FLAG, DECODER_MERGED
from harness.runtime.session import GraphSession, SessionProfile


class ArtifactModel:
    """An artifact set, fed step by step.

    Args:
        artifacts: the opened set.
        profile: how sessions are opened.

    Raises:
        InputError: the runtime refuses a file, or the graphs do not make up a layout.
    """

    def __init__(self, artifacts: ArtifactSet, profile: SessionProfile = SessionProfile()) -> None:
        self.artifacts = artifacts
        layers = artifacts.dims.decoder_layers
        self.sessions = {role: GraphSession(path, role, layers, profile) for role, path in artifacts.files.items()}
        self._self_names = present_names(layers, SELF)
        self._cross_names = present_names(layers, CROSS)
        self._first = next(role for role in (DECODER_INIT, DECODER_MERGED, DECODER) if role in self.sessions)
        self._next = next(role for role in (DECODER_STEP, DECODER_MERGED, DECODER) if role in self.sessions)
        self._require_outputs()

    def _require_outputs(self) -> None:
        for role in {self._first, self._next}:
            if LOGITS not in self.sessions[role].outputs:
                raise InputError(
                    what=f"no output named logits; it emits {', '.join(list(self.sessions[role].outputs)[:3])}",
                    where=self.sessions[role].path,
                    action="Export the output projection with the decoder, and single steps, not generate().",
                )
        if ENCODER_OUTPUT not in self.sessions[ENCODER].outputs:
            raise InputError(
                what="no output named last_hidden_state",
                where=self.sessions[ENCODER].path,
                action="Name the encoder's output last_hidden_state.",
            )

    @property
    def emits_cross(self) -> bool:
        """Whether cross K/V can be observed: ``single`` computes them inside the decoder."""
        return any(name in self.sessions[role].outputs for role in (ENCODER, self._first) for name in self._cross_names)

    @property
    def single_token_steps(self) -> bool:
        """Whether the decoder promises one token at a time once it has a past.

        Optimum traces its decoder with past at a target length of 1 and promises no more.
        """
        return self.artifacts.manifest is None and self._next in (DECODER_STEP, DECODER_MERGED)

    def encode(self, input_ids: np.ndarray, attention_mask: np.ndarray) -> EncoderOutput:
        """See ``Seq2Seq.encode``.

        Raises:
            InputError: the source is longer than the model's position table.
        """
        limit = self.artifacts.dims.max_source_positions
        if input_ids.shape[1] > limit:
            raise InputError(
                what=f"{input_ids.shape[1]} source tokens, the model takes {limit}",
                where="source",
                action="Split the text into sentences, or truncate it.",
            )
        outputs = self.sessions[ENCODER].run({INPUT_IDS: input_ids, ATTENTION_MASK: attention_mask})
        cross = {name: outputs[name] for name in self._cross_names if name in outputs}
        return EncoderOutput(attention_mask, outputs[ENCODER_OUTPUT], cross)

    def start(self, encoder: EncoderOutput) -> DecoderState:
        """See ``Seq2Seq.start``."""
        return DecoderState(encoder, dict.fromkeys(self._self_names, self._empty(encoder.mask.shape[0])), 0)

    def _empty(self, batch: int) -> np.ndarray:
        dims = self.artifacts.dims
        return np.zeros((batch, dims.decoder_heads, 0, dims.head_dim), np.float32)

    def step(self, state: DecoderState, decoder_input_ids: np.ndarray) -> tuple[np.ndarray, DecoderState]:
        """See ``Seq2Seq.step``; cross K/V that the graph emits are kept, others are carried on.

        Raises:
            InputError: the target would be longer than the model's position table.
        """
        limit = self.artifacts.dims.max_target_positions
        if (length := state.length + decoder_input_ids.shape[1]) > limit:
            raise InputError(
                what=f"{length} target tokens, the model takes {limit}",
                where="target",
                action="Lower max_length, or split the text into sentences.",
            )
        outputs = self.decoder_session(state.length).run(self.decoder_feeds(state, decoder_input_ids))
        encoder = state.encoder
        if state.length == 0 and any(name in outputs for name in self._cross_names):
            cross = {name: outputs[name] for name in self._cross_names if name in outputs}
            encoder = dataclasses.replace(encoder, cross=cross)
        past = {name: outputs[name] for name in self._self_names if name in outputs}
        return outputs[LOGITS], DecoderState(encoder, past, length)

    def decoder_session(self, length: int) -> GraphSession:
        """The session that continues a cache of this length."""
        return self.sessions[self._next if length else self._first]

    def decoder_feeds(self, state: DecoderState, decoder_input_ids: np.ndarray) -> dict[str, np.ndarray]:
        """Everything a decoder graph may ask for at this step, by the contract's names."""
        encoder = state.encoder
        feeds = {
            INPUT_IDS: decoder_input_ids,
            ENCODER_HIDDEN: encoder.hidden,
            ENCODER_MASK: encoder.mask,
            BRANCH_FLAG: np.array([state.length > 0]),
        }
        feeds.update((past_of_present(name), array) for name, array in state.past.items())
        # A merged decoder takes cross K/V on its first step too, and ignores them there.
        cross = encoder.cross or dict.fromkeys(self._cross_names, self._empty(encoder.mask.shape[0]))
        feeds.update((past_of_present(name), array) for name, array in cross.items())
        return feeds
