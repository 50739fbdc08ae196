"""Ranges of activations, from replaying real decodes.

The float32 set itself translates the calibration sentences under its own settings, in padded batches whose rows end at
different steps; every call of every graph, with the cache, masks and beams it was really given, is looked at while it
runs. Nothing is kept but a range or a histogram per tensor.

Feeding a one-graph decoder from anything else is a trap: one that appends to its cross cache what the cache lacks gets
an empty slice from a full cache, onnxruntime 1.17 raises there and 1.32 gives garbage (``docs/stacks.md``). Here an
activation without a single value is refused.
"""

from __future__ import annotations

import dataclasses
import hashlib
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from onnx import ModelProto

from exporters.export import save
from exporters.quantized_graph import Ranges, with_outputs
from harness.contract.errors import InputError
from harness.contract.limits import CALIBRATION_LONG_WORDS
from harness.contract.manifest import sha256_of
from harness.contract.recipes import ENTROPY, MINMAX, Recipe
from harness.contract.sentences import normalised, read_sentences
from harness.runtime.artifact_model import ArtifactModel
from harness.runtime.artifact_set import ArtifactSet
from harness.runtime.search import generate
from harness.runtime.session import GraphSession, SessionProfile
from harness.runtime.tokenizer import load_tokenizer

# Unlike lengths in one batch: rows are padded and end at different steps.
BATCH = 4
# How often a replay says how far it is.
REPORTS = 10
# Bins of a histogram of magnitudes. When a value exceeds it, its range doubles and bins merge in pairs.
BINS = 2048
# Levels of a magnitude in 8 bits: what the entropy method rounds a histogram to.
LEVELS = 128


def fingerprint(path: Path) -> dict[str, Any]:
    """What a manifest keeps of a calibration file: enough to check its size, lengths and overlap without it.

    Raises:
        InputError: the file is no sentence file.
    """
    sources = [sentence.source for sentence in read_sentences(path)]
    texts = [hashlib.sha256(normalised(source).encode()).hexdigest()[:16] for source in sources]
    words = [len(source.split()) for source in sources]
    return {
        "file": path.name,
        "sha256": sha256_of(path),
        "sentences": len(sources),
        f"over_{CALIBRATION_LONG_WORDS}_words": sum(count > CALIBRATION_LONG_WORDS for count in words),
        "texts": texts,
    }


class Range:
    """Smallest and largest value of an activation, and a histogram of magnitudes where the method needs one."""

    def __init__(self, histogram: bool) -> None:
        self.low, self.high, self.seen = np.inf, -np.inf, 0
        self.counts = np.zeros(BINS, np.int64) if histogram else None
        self.top = 0.0

    def add(self, array: np.ndarray) -> None:
        """Look at one call's values; an empty array counts as none."""
        if array.size == 0:
            return
        self.seen += array.size
        self.low, self.high = min(self.low, float(array.min())), max(self.high, float(array.max()))
        if self.counts is not None and np.isfinite(self.low) and np.isfinite(self.high):
            self._count(np.abs(array))

    def _count(self, magnitudes: np.ndarray) -> None:
        largest = float(magnitudes.max())
        self.top = self.top or largest or 1.0
        while largest > self.top:
            self.counts = np.concatenate([self.counts.reshape(-1, 2).sum(axis=1), np.zeros(BINS // 2, np.int64)])
            self.top *= 2
        self.counts += np.histogram(magnitudes, bins=BINS, range=(0.0, self.top))[0]

    def result(self, recipe: Recipe) -> tuple[float, float]:
        """The range to quantize, by the recipe's method."""
        if recipe.calibration == MINMAX:
            return self.low, self.high
        bins = _entropy_bins(self.counts) if recipe.calibration == ENTROPY else self._percentile_bins(recipe.percentile)
        limit = self.top * bins / BINS
        return max(self.low, -limit), min(self.high, limit)

    def _percentile_bins(self, percentile: float) -> int:
        share = np.cumsum(self.counts) / self.counts.sum()
        return int(np.searchsorted(share, percentile / 100)) + 1


def _entropy_bins(counts: np.ndarray) -> int:
    """Bins to keep so that the rounded histogram loses the least information.

    Kullback-Leibler divergence of the clipped histogram from the same in ``LEVELS`` levels (S. Migacz, "8-bit Inference
    with TensorRT", GTC 2017).
    """
    best, kept = np.inf, len(counts)
    for bins in range(LEVELS, len(counts) + 1, LEVELS // 4):
        clipped = counts[:bins].astype(np.float64)
        rounded = clipped.copy()
        clipped[-1] += counts[bins:].sum()
        edges = np.linspace(0, bins, LEVELS + 1).round().astype(int)[:-1]
        width = np.diff([*edges, bins])
        filled = np.add.reduceat((rounded > 0).astype(np.float64), edges)
        level = np.divide(np.add.reduceat(rounded, edges), filled, out=np.zeros(LEVELS), where=filled > 0)
        rounded = np.repeat(level, width) * (rounded > 0)
        if not (total := rounded.sum()):
            continue
        p, q = clipped / clipped.sum(), np.maximum(rounded / total, 1e-12)
        there = p > 0
        divergence = float((p[there] * np.log(p[there] / q[there])).sum())
        if divergence < best:
            best, kept = divergence, bins
    return kept


class _Observed:
    """A session that shows its inner values to ranges on every run."""

    def __init__(self, session: GraphSession, ranges: Mapping[str, Range]) -> None:
        self._session, self._ranges, self.runs = session, ranges, 0
        self.inputs, self.outputs, self.path = session.inputs, session.outputs, session.path

    def run(self, feeds: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        self.runs += 1
        values = self._session.run(feeds)
        # By the graph's own names: a product may read a graph's input, as the decoder's cross-attention does.
        own = {name: feeds[contract] for contract, name in self.inputs.items()}
        own.update((name, values[contract]) for contract, name in self.outputs.items())
        for name, seen in self._ranges.items():
            seen.add(own[name])
        return values


def calibrate(
    artifacts: ArtifactSet,
    models: Mapping[str, ModelProto],
    activations: Mapping[str, Sequence[str]],
    recipe: Recipe,
    path: Path,
    progress: Callable[[str], None],
) -> tuple[dict[str, Ranges], dict[str, int]]:
    """Replay the sentences of a file and return the ranges of activations.

    Args:
        artifacts: the float32 set.
        models: role -> its graph.
        activations: role -> names of inner values.
        recipe: which range is wanted.
        path: sentence file.
        progress: called with a short text now and then.

    Returns:
        Role -> activation -> smallest and largest value; role -> calls that were looked at.

    Raises:
        InputError: an activation had no value, or one that is not finite.
    """
    histogram = recipe.calibration != MINMAX
    ranges = {role: {name: Range(histogram) for name in names} for role, names in activations.items()}
    sources = [sentence.source for sentence in read_sentences(path)]
    runs = watch(artifacts, models, ranges, sources, progress)
    return {role: _results(found, role, recipe, path) for role, found in ranges.items()}, runs


def watch(
    artifacts: ArtifactSet,
    models: Mapping[str, ModelProto],
    ranges: Mapping[str, Mapping[str, Range]],
    sources: Sequence[str],
    progress: Callable[[str], None] = lambda text: None,
    *,
    tokenizer: Path | None = None,
) -> dict[str, int]:
    """Translate sentences with a set and show inner values of every call to ranges.

    Args:
        artifacts: a set; it is run, from copies of its graphs that emit the values.
        models: role -> its graph.
        ranges: role -> name of an inner float value -> what looks at it.
        sources: sentences.
        progress: called with a short text now and then.
        tokenizer: folder of the tokenizer, where the set carries none.

    Returns:
        Role -> calls that were looked at.
    """
    tokens = load_tokenizer(tokenizer or artifacts.folder)
    limit = artifacts.dims.max_source_positions
    rows = [tokens.encode(source, max_length=limit) for source in sources]
    with tempfile.TemporaryDirectory(prefix="calibration-") as scratch:
        files = {role: Path(scratch) / f"{role}.onnx" for role in models}
        for role, model in models.items():
            save(with_outputs(model, list(ranges[role])), files[role])
        model = ArtifactModel(dataclasses.replace(artifacts, files=files), SessionProfile(spinning=False))
        model.sessions = {role: _Observed(session, ranges[role]) for role, session in model.sessions.items()}
        for start in range(0, len(rows), BATCH):
            generate(model, *tokens.batch(rows[start : start + BATCH]), artifacts.generation)
            runs = {role: session.runs for role, session in model.sessions.items()}
            done = min(start + BATCH, len(rows))
            if done * REPORTS // len(rows) > start * REPORTS // len(rows):
                calls = ", ".join(f"{count} of {role}" for role, count in runs.items())
                progress(f"calibrating, {done} of {len(rows)} sentences; calls: {calls}")
    return runs


def _results(ranges: Mapping[str, Range], role: str, recipe: Recipe, path: Path) -> Ranges:
    for name, seen in ranges.items():
        problem = "" if seen.seen else "had no value in any call: an empty slice"
        if seen.seen and not (np.isfinite(seen.low) and np.isfinite(seen.high)):
            problem = f"reaches from {seen.low} to {seen.high}"
        if problem:
            raise InputError(
                what=f"activation {name} {problem}",
                where=f"calibration of {role} with {path.name}",
                action="Exclude the node that reads it, or calibrate with other sentences.",
            )
    return {name: seen.result(recipe) for name, seen in ranges.items()}
