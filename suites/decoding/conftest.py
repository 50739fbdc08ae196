"""Sources, PyTorch's outputs (once per settings), and what a flip is judged by."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pytest

from fixtures.models import Reference
from harness.checks.decode import (
    PYTORCH_AND_SET,
    BeamEvidence,
    Flip,
    Forced,
    Row,
    agreement_finding,
    beam_flip,
    greedy_flip,
    ids_finding,
    refused_finding,
    scores_finding,
    stops_finding,
    unlike_for,
)
from harness.contract.errors import InputError
from harness.contract.finding import Finding
from harness.contract.generation import Decoded, GenerationSettings
from harness.contract.limits import FAIL_ABOVE, SCORE_ABOVE
from harness.contract.sentences import Sentence
from harness.contract.seq2seq import Seq2Seq
from harness.plugin import blocked, not_applicable
from harness.reference.checkpoint import Checkpoint
from harness.runtime.artifact_model import ArtifactModel
from harness.runtime.artifact_set import ArtifactSet
from harness.runtime.search import generate
from harness.runtime.tokenizer import MarianTokenizer, load_tokenizer

BATCH_SIZE = 8
# Defects that are examined step by step; the first ones tell the cause, the others are counted. Ties do not count: each
# has to be shown to be one.
EXAMINED = 4


@dataclass(frozen=True)
class Source:
    """A source as both sides are given it: the same ids."""

    id: str
    text: str
    input_ids: tuple[int, ...]


@dataclass(frozen=True)
class Desk:
    """Decodes on both sides and judges the outcome."""

    reference: Reference
    tokenizer: MarianTokenizer
    known: dict

    def piece(self, token: int) -> str:
        """The piece of an id, for people."""
        return str(self.reference.tokenizer.convert_ids_to_tokens(int(token)))

    def batch(self, sources: Sequence[Source]) -> tuple[np.ndarray, np.ndarray]:
        """Padded ids and mask, int64 ``[batch, source]``."""
        return self.tokenizer.batch([source.input_ids for source in sources])

    def by_pytorch(self, sources: Sequence[Source], settings: GenerationSettings) -> list[Decoded]:
        """``generate()`` in batches, once per sources and settings."""
        key = (tuple(source.input_ids for source in sources), settings)
        if key not in self.known:
            self.known[key] = [
                decoded
                for chunk in _chunks(sources)
                for decoded in self.reference.model.generate(*self.batch(chunk), settings)
            ]
        return self.known[key]

    def by(self, candidate: Seq2Seq, sources: Sequence[Source], settings: GenerationSettings) -> list[Decoded]:
        """The harness's search on the candidate, in the same batches."""
        return [decoded for chunk in _chunks(sources) for decoded in generate(candidate, *self.batch(chunk), settings)]

    def compare(
        self, candidate: ArtifactModel, sources: Sequence[Source], settings: GenerationSettings, check: str
    ) -> list[Finding]:
        """Ids, scores and stop reasons of the candidate against ``generate()``."""
        self.require_like_settings(candidate, settings)
        try:
            found = self.by(candidate, sources, settings)
        except InputError as error:
            return [refused_finding(check, error)]
        expected = self.by_pytorch(sources, settings)
        rows = [Row(s.id, ours, theirs) for s, ours, theirs in zip(sources, expected, found)]
        quantized = candidate.artifacts.quantized
        return [
            self.ids(check, rows, sources, candidate, settings, exact=not quantized),
            *([] if quantized else [scores_finding(f"scores: {check}", rows, settings)]),
            stops_finding(f"stop reasons: {check}", rows, settings),
        ]

    def require_like_settings(self, candidate: ArtifactModel, settings: GenerationSettings) -> None:
        """Unlike settings are not compared; ``test_settings.py`` is what fails on them (fault D06)."""
        if unlike := unlike_for(settings, self.reference.settings, candidate.artifacts.generation):
            blocked(f"unlike settings are not compared: {unlike[0]}")

    def ids(
        self,
        check: str,
        rows: Sequence[Row],
        sources: Sequence[Source],
        candidate: Seq2Seq,
        settings: GenerationSettings,
        names: tuple[str, str] = PYTORCH_AND_SET,
        *,
        exact: bool = True,
    ) -> Finding:
        """Judge the ids; the first flips are examined by forcing both sides through the same tokens.

        Where ``exact`` is false, as of a quantized set, agreement is reported: the design asks equal ids of float32
        sets only, and suites/quality holds what changed against the float32 margin.
        """
        if not exact:
            return agreement_finding(check, rows, expected=len(sources), piece=self.piece, names=names)
        flips: list[Flip] = []
        for row, source in zip(rows, sources):
            if not row.same_ids and sum(not flip.tie for flip in flips) < EXAMINED:
                flips.append(self._flip(row, source, candidate, settings))
        limit = FAIL_ABOVE if settings.num_beams == 1 else SCORE_ABOVE
        return ids_finding(check, rows, flips, expected=len(sources), limit=limit, names=names)

    def _flip(self, row: Row, source: Source, candidate: Seq2Seq, settings: GenerationSettings) -> Flip:
        if settings.num_beams == 1:
            forced = self._forced(source, row.reference.token_ids[: row.parted_at], candidate)
            return greedy_flip(row, forced, settings, self.piece)
        ids, mask = self.batch([source])
        ours, theirs = [], []
        replay = generate(self.reference.model, ids, mask, settings, ours)[0]
        generate(candidate, ids, mask, settings, theirs)
        evidence = BeamEvidence(
            self._forced(source, row.reference.token_ids[:-1], candidate),
            self._forced(source, row.candidate.token_ids[:-1], candidate),
            replay,
            ours,
            theirs,
        )
        return beam_flip(row, evidence, settings, self.piece)

    def _forced(self, source: Source, token_ids: Sequence[int], candidate: Seq2Seq) -> Forced:
        return Forced(*(self._logits(model, source, token_ids) for model in (self.reference.model, candidate)))

    def _logits(self, model: Seq2Seq, source: Source, token_ids: Sequence[int]) -> np.ndarray:
        state = model.start(model.encode(*self.batch([source])))
        steps = []
        for token in token_ids:
            logits, state = model.step(state, np.array([[token]], np.int64))
            steps.append(logits[0, -1])
        return np.stack(steps)


def _chunks(sources: Sequence[Source]) -> list[Sequence[Source]]:
    return [sources[start : start + BATCH_SIZE] for start in range(0, len(sources), BATCH_SIZE)]


@pytest.fixture(scope="session")
def desk(checkpoint: Checkpoint, reference: Reference) -> Desk:
    """Both sides and the verdict on them."""
    return Desk(reference, load_tokenizer(checkpoint.folder), {})


@pytest.fixture(scope="session")
def as_sources(checkpoint: Checkpoint, desk: Desk) -> Callable[[Sequence[tuple[str, str]]], list[Source]]:
    """(id, text) pairs -> sources, cut to the model's positions as a caller with ``--truncate`` would."""
    limit = checkpoint.dims.max_source_positions

    def make(pairs: Sequence[tuple[str, str]]) -> list[Source]:
        return [Source(id, text, tuple(desk.tokenizer.encode(text, max_length=limit))) for id, text in pairs]

    return make


@pytest.fixture(scope="session")
def sources(sentences: list[Sentence], as_sources) -> list[Source]:
    """The run's sentences."""
    return as_sources([(sentence.id, sentence.source) for sentence in sentences])


@pytest.fixture(scope="session")
def set_tokenizer(artifacts: ArtifactSet) -> MarianTokenizer:
    """The tokenizer that travels in the set."""
    if artifacts.manifest is None and not (artifacts.folder / "source.spm").is_file():
        not_applicable("the set carries no tokenizer: whoever runs it brings one, which is not checked")
    try:
        return load_tokenizer(artifacts.folder)
    except InputError as error:
        return blocked(str(error))
