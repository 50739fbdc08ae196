"""Hypothesis strategies for scenarios: every axis at any length, the ends of its range more often than the middle."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st

from harness.checks.shapes import ENCODE, GIVEN, STEP, Call, Scenario
from harness.contract.layouts import SELF, ModelDims, present_names

MAX_BATCH = 8
# Largest encoder output and largest logits, in elements, that an example may ask for: both sides hold them in float32
# and compare them in float64. One row at the full length of a 65,000-word vocabulary with 512 positions still fits.
MAX_HIDDEN = 2**21
MAX_LOGITS = 2**25
# Lengths up to here are what most examples are about: cheap, and small sizes are where most axes break.
SHORT = 12


@dataclass(frozen=True)
class Sizes:
    """What limits a scenario: the model's sizes, its pad and start ids, and whether a past takes single tokens only."""

    dims: ModelDims
    pad: int
    start: int
    single_token_steps: bool

    def tokens(self, rng: np.random.Generator, shape: tuple[int, int], vocabulary: int) -> np.ndarray:
        """Random int64 ids, never pad."""
        ids = rng.integers(0, vocabulary, shape, dtype=np.int64)
        return np.where(ids == self.pad, (self.pad + 1) % vocabulary, ids)


def lengths(low: int, high: int) -> st.SearchStrategy[int]:
    """A length from ``low`` to ``high``: short, at either end, or anywhere."""
    ends = sorted({low, low + 1, high - 1, high} & set(range(low, high + 1)))
    return st.one_of(st.integers(low, min(high, low + SHORT)), st.sampled_from(ends), st.integers(low, high))


def seeds() -> st.SearchStrategy[np.random.Generator]:
    """A generator for an example's numbers: its shape is what matters and shrinks, not its values."""
    return st.integers(0, 2**16).map(np.random.default_rng)


@st.composite
def sources(
    draw, sizes: Sizes, length: tuple[int, int], rows: tuple[int, int] = (1, MAX_BATCH)
) -> dict[str, np.ndarray]:
    """``input_ids`` and ``attention_mask`` of a right-padded batch; a row may be full, padded, or nothing but padding.

    Args:
        sizes: the model's limits.
        length: smallest and largest source length.
        rows: smallest and largest batch.
    """
    dims, rng = sizes.dims, draw(seeds())
    source = draw(lengths(*length))
    fewest, most = rows
    batch = draw(st.integers(fewest, max(fewest, min(most, MAX_HIDDEN // (source * dims.d_model)))))
    shares = draw(st.lists(st.integers(0, 1500), min_size=batch, max_size=batch))
    real = np.array([source - _padding(share, source) for share in shares])
    mask = (np.arange(source) < real[:, None]).astype(np.int64)
    ids = np.where(mask == 1, sizes.tokens(rng, (batch, source), dims.source_vocab_size), sizes.pad)
    return {"input_ids": ids, "attention_mask": mask}


def _padding(share: int, source: int) -> int:
    """Padding tokens of a row: none at 0, up to all at 1000, and beyond that none or all.

    One number each, and a small one for little padding: so little padding is what Hypothesis takes for simple.
    """
    if share > 1000:
        return source * (share % 2)
    return max(1, share * source // 1000) if share else 0


def encodings(sizes: Sizes, length: tuple[int, int]) -> st.SearchStrategy[Scenario]:
    """The encoder on any batch of sources whose length is within these bounds."""
    return sources(sizes, length).map(lambda arrays: (Call(ENCODE, arrays),))


@st.composite
def continuations(draw, sizes: Sizes, past_length: tuple[int, int]) -> Scenario:
    """Tokens appended to a past whose length is within these bounds, to the model's maximum at most.

    The past is given rather than decoded, so that a long one costs nothing.
    """
    past = draw(lengths(*past_length))
    room = sizes.dims.max_target_positions - past
    target = 1 if past and sizes.single_token_steps else draw(lengths(1, room))
    rows = min(MAX_BATCH, MAX_LOGITS // (target * sizes.dims.vocab_size))
    source = draw(sources(sizes, (1, sizes.dims.max_source_positions), (1, max(1, rows))))
    return continuation(sizes, source, past, target, draw(seeds()))


def continuation(
    sizes: Sizes, source: dict[str, np.ndarray], past: int, target: int, rng: np.random.Generator
) -> Scenario:
    """``target`` tokens after a random past of length ``past``; at length 0 the start token is the first of them."""
    dims, batch = sizes.dims, len(source["input_ids"])
    shape = (batch, dims.decoder_heads, past, dims.head_dim)
    cache = {name: rng.standard_normal(shape, np.float32) for name in present_names(dims.decoder_layers, SELF)}
    return Call(GIVEN, {**source, **cache}), append(sizes, batch, past, target, rng)


def append(sizes: Sizes, batch: int, past: int, target: int, rng: np.random.Generator) -> Call:
    """A step of ``target`` random tokens."""
    ids = sizes.tokens(rng, (batch, target), sizes.dims.vocab_size)
    if past == 0:
        ids[:, 0] = sizes.start
    return Call(STEP, {"input_ids": ids})


def large_batch(sizes: Sizes) -> Scenario:
    """As many rows, source positions and new tokens as an example may have, rows of unlike length."""
    dims, rng = sizes.dims, np.random.default_rng(0)
    source, target = dims.max_source_positions, min(64, dims.max_target_positions)
    batch = min(MAX_BATCH, MAX_HIDDEN // (source * dims.d_model), MAX_LOGITS // (target * dims.vocab_size))
    real = np.linspace(source, 1, max(1, batch)).astype(np.int64)
    mask = (np.arange(source) < real[:, None]).astype(np.int64)
    ids = np.where(mask == 1, sizes.tokens(rng, mask.shape, dims.source_vocab_size), sizes.pad)
    encode = Call(ENCODE, {"input_ids": ids, "attention_mask": mask})
    return encode, append(sizes, len(mask), 0, target, rng)
