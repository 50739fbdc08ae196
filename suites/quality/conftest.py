"""The columns of a subject, and what both models say where their tokens part."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pytest

from fixtures.translations import BATCH_SIZE, PYTORCH, Translated, Translations, float32_twin
from harness.checks.decode import Row, refused_finding
from harness.checks.quality.columns import Column
from harness.checks.quality.flips import Flip, Pair
from harness.contract.errors import InputError
from harness.contract.recipes import FLOAT32
from harness.contract.sentences import Sentence
from harness.contract.seq2seq import Seq2Seq
from harness.settings import Subject


@dataclass(frozen=True)
class Side:
    """One column with the tokens behind it."""

    name: str
    translated: list[Translated]

    @property
    def column(self) -> Column:
        """The texts."""
        return Column(self.name, tuple(one.text for one in self.translated))


@pytest.fixture
def sides(subject: Subject, translations: Translations, quality_sentences: list[Sentence], judge) -> list[Side]:
    """PyTorch, ONNX fp32 and, for a quantized subject, ONNX quantized: the last one is under judgement."""
    subjects = [subject] if subject.precision == FLOAT32 else [float32_twin(subject), subject]
    found = [Side(PYTORCH, translations.by_pytorch(quality_sentences))]
    for one in subjects:
        try:
            found.append(Side(f"ONNX {one.precision}", translations.by_set(one, quality_sentences)))
        except InputError as error:
            judge(refused_finding(f"ONNX {one.precision} translates the sentences", error))
    return found


@pytest.fixture(scope="session")
def paired(translations: Translations, candidate_of) -> Callable[..., list[Pair]]:
    """(subject, its fp32 side, its own side, sentences) -> one ``Pair`` per sentence, with the flips' margins."""

    def make(subject: Subject, left: Side, right: Side, sentences: Sequence[Sentence]) -> list[Pair]:
        models = [candidate_of(float32_twin(subject)), candidate_of(subject)]
        tokenizer = translations.tokenizer_of(models[1])
        encoded = translations.source_ids(tokenizer, sentences)
        rows = [Row(s.id, ours.decoded, theirs.decoded) for s, ours, theirs in zip(sentences, *_decoded(left, right))]
        parted = [i for i, row in enumerate(rows) if not row.same_ids]
        parted.sort(key=lambda i: rows[i].parted_at)  # rows of a batch then end at nearly the same step
        pieces = {index: piece for piece, index in tokenizer.vocabulary.items()}
        flips: dict[int, Flip] = {}
        for start in range(0, len(parted), BATCH_SIZE):
            chunk = parted[start : start + BATCH_SIZE]
            ids, mask = tokenizer.batch([encoded[i] for i in chunk])
            prefixes = [rows[i].reference.token_ids[: rows[i].parted_at] for i in chunk]
            logits = [_logits_after(model, ids, mask, prefixes) for model in models]
            end = models[0].artifacts.generation.eos_token_id
            flips.update((i, _flip(rows[i], *pair, pieces, end)) for i, *pair in zip(chunk, *logits))
        return [
            Pair(
                sentence.id,
                sentence.source,
                ours.text,
                theirs.text,
                len(ours.decoded.generated),
                len(theirs.decoded.generated),
                flips.get(i),
            )
            for i, (sentence, ours, theirs) in enumerate(zip(sentences, left.translated, right.translated))
        ]

    return make


def _decoded(left: Side, right: Side) -> tuple[list[Translated], list[Translated]]:
    return left.translated, right.translated


def _logits_after(
    model: Seq2Seq, ids: np.ndarray, mask: np.ndarray, prefixes: Sequence[Sequence[int]]
) -> list[np.ndarray]:
    """float32 ``[vocab]`` per row: what the model says after the row's own prefix, token by token."""
    longest = max(map(len, prefixes))
    # A row whose prefix has ended is fed its last token again; nothing is read from it any more.
    tokens = np.array([[*prefix, *[prefix[-1]] * (longest - len(prefix))] for prefix in prefixes], np.int64)
    state = model.start(model.encode(ids, mask))
    found: list[np.ndarray | None] = [None] * len(prefixes)
    for step in range(longest):
        logits, state = model.step(state, tokens[:, step : step + 1])
        for row, prefix in enumerate(prefixes):
            if len(prefix) == step + 1:
                found[row] = logits[row, -1]
    return found


def _flip(row: Row, left: np.ndarray, right: np.ndarray, pieces: dict[int, str], end: int) -> Flip:
    step = row.parted_at
    # A side that was cut at the limit has no token there: it would have gone on, the other one ended.
    expected, found = (
        ids[step] if step < len(ids) else end for ids in (row.reference.token_ids, row.candidate.token_ids)
    )
    # The log-softmax's normaliser is the same for both tokens.
    margins = [float(logits[expected]) - float(logits[found]) for logits in (left, right)]
    names = ("end" if token == end else pieces.get(token, str(token)) for token in (expected, found))
    return Flip(step, *names, margins[0], margins[0] - margins[1])
