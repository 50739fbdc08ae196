"""Batches and forced targets for the parity checks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest

from fixtures.models import Reference
from harness.checks.numeric import noise_floor
from harness.contract.layouts import LOGITS
from harness.contract.sentences import Sentence
from harness.diagnosis.counterfactuals import Diagnosis, diagnose
from harness.reference.checkpoint import Checkpoint
from harness.reference.torch_model import TorchModel
from harness.runtime.artifact_model import ArtifactModel
from harness.runtime.tokenizer import load_tokenizer

# Sentences of a batch, and forced target tokens: enough to see every layer's cache grow, few enough for six subjects.
BATCH = 4
TARGET_TOKENS = {"short": 12, "medium": 32, "long": 64}


@dataclass(frozen=True)
class TeacherBatch:
    """A padded batch with the target tokens that both sides are forced to take.

    Attributes:
        ids: sentence ids, in row order.
        input_ids, attention_mask: int64 ``[batch, source]``, rows of different length.
        target_ids: int64 ``[batch, target]``, start token first.
    """

    ids: tuple[str, ...]
    input_ids: np.ndarray
    attention_mask: np.ndarray
    target_ids: np.ndarray

    def row(self, index: int) -> TeacherBatch:
        """One sentence without its neighbours and without padding."""
        length = int(self.attention_mask[index].sum())
        one = slice(index, index + 1)
        return TeacherBatch(
            self.ids[one], self.input_ids[one, :length], self.attention_mask[one, :length], self.target_ids[one]
        )

    def padded(self, amount: int, pad: int) -> TeacherBatch:
        """The same batch with ``amount`` more padding on the right."""
        widen = lambda array, value: np.pad(array, ((0, 0), (0, amount)), constant_values=value)
        return TeacherBatch(self.ids, widen(self.input_ids, pad), widen(self.attention_mask, 0), self.target_ids)


@pytest.fixture(scope="session")
def batch_of(
    checkpoint: Checkpoint, reference: Reference, core_sentences: list[Sentence]
) -> Callable[[str], TeacherBatch]:
    """Length tag -> batch. Targets are what PyTorch says, then seeded ids, so that a model that repeats one token
    is still driven through many."""
    tokenizer = load_tokenizer(checkpoint.folder)
    dims = checkpoint.dims
    made: dict[str, TeacherBatch] = {}

    def make(length: str) -> TeacherBatch:
        chosen = [sentence for sentence in core_sentences if length in sentence.tags][:BATCH]
        rows = [tokenizer.encode(sentence.source, max_length=dims.max_source_positions) for sentence in chosen]
        ids, mask = tokenizer.batch(rows)
        steps = min(TARGET_TOKENS[length], dims.max_target_positions)
        settings = reference.settings.replace(num_beams=1, max_length=max(2, steps))
        decoded = reference.model.generate(ids, mask, settings)
        targets = np.random.default_rng(0).integers(0, dims.vocab_size, (len(rows), steps), dtype=np.int64)
        for row, result in zip(targets, decoded):
            row[: len(result.token_ids)] = result.token_ids
        return TeacherBatch(tuple(sentence.id for sentence in chosen), ids, mask, targets)

    def find(length: str) -> TeacherBatch:
        if length not in made:
            made[length] = make(length)
        return made[length]

    return find


@pytest.fixture(scope="session")
def noise_of(reference: Reference, reference64: TorchModel, batch_of) -> Callable[[str], float]:
    """Length tag -> rounding noise: how far float32 PyTorch is from float64 PyTorch on the batch."""
    measured: dict[str, float] = {}

    def outputs(model: TorchModel, batch: TeacherBatch) -> dict[str, np.ndarray]:
        encoder = model.encode(batch.input_ids, batch.attention_mask)
        logits, state = model.step(model.start(encoder), batch.target_ids)
        real = batch.attention_mask.astype(bool)[..., None]
        return {"last_hidden_state": np.where(real, encoder.hidden, 0.0), LOGITS: logits, **state.past}

    def find(length: str) -> float:
        if length not in measured:
            batch = batch_of(length)
            measured[length] = noise_floor(outputs(reference.model, batch), outputs(reference64, batch))
        return measured[length]

    return find


@pytest.fixture(scope="session")
def diagnosis_of(reference: Reference, batch_of) -> Callable[[ArtifactModel], Diagnosis]:
    """Candidate -> why it differs from PyTorch, found once per set."""
    found: dict[str, Diagnosis] = {}

    def find(candidate: ArtifactModel) -> Diagnosis:
        key = str(candidate.artifacts.folder) + candidate.artifacts.layout
        if key not in found:
            batch = batch_of("medium")
            manifest = candidate.artifacts.manifest
            traced = manifest.dummy_sizes["past"] if manifest else 0
            found[key] = diagnose(
                reference.model, candidate, batch.input_ids, batch.attention_mask, batch.target_ids, traced
            )
        return found[key]

    return find
