"""Does a sentence come out the same whatever stands beside or behind it in the batch?"""

from __future__ import annotations

import numpy as np
import pytest

from harness.checks.numeric import Comparison
from harness.contract.finding import Finding, Verdict
from harness.contract.layouts import ENCODER_OUTPUT, LOGITS

# Forced target tokens of these checks.
STEPS = 8

# Padding appended on the right, in tokens; the last fills the position table.
PADDING = ("1", "2", "7", "31", "to the model's maximum")


def _observe(model, batch) -> dict[str, dict[str, np.ndarray]]:
    """Place -> tensors: the encoder output, then the logits and self K/V of the forced steps."""
    encoder = model.encode(batch.input_ids, batch.attention_mask)
    places = {"encoder": {ENCODER_OUTPUT: encoder.hidden}}
    state = model.start(encoder)
    for step in range(STEPS):
        logits, state = model.step(state, batch.target_ids[:, step : step + 1])
        places[f"step {step}"] = {LOGITS: logits, **state.past}
    return places


def _compare_row(comparison: Comparison, name: str, alone, row: int, together, real: int) -> None:
    """Compare one sentence observed alone with the same sentence as a row of a batch, real positions only."""
    for place, tensors in alone.items():
        cut = {key: array[row : row + 1] for key, array in together[place].items()}
        if place == "encoder":
            cut = {key: array[:, :real] for key, array in cut.items()}
        comparison.add_all(f"{name}, {place}", tensors, cut)


@pytest.mark.parametrize("padding", PADDING)
def test_right_padding_changes_nothing(
    subject, padding, candidate, exact, checkpoint, reference, batch_of, noise_of, diagnosis_of, judge
):
    """One sentence, with and without padding behind it."""
    alone = batch_of("medium").row(0)
    room = checkpoint.dims.max_source_positions - alone.input_ids.shape[1]
    amount = room if padding.startswith("to") else int(padding)
    comparison = Comparison(f"{amount} padding tokens change nothing", noise=noise_of("medium"), exact=exact)
    padded = alone.padded(amount, reference.settings.pad_token_id)
    _compare_row(
        comparison, alone.ids[0], _observe(candidate, alone), 0, _observe(candidate, padded), alone.input_ids.shape[1]
    )
    why = diagnosis_of(candidate) if comparison.failing else None
    judge(comparison.finding(cause=why.cause, action=why.action) if why else comparison.finding())


def test_batch_neighbours_change_nothing(subject, candidate, exact, batch_of, noise_of, diagnosis_of, judge):
    """Every sentence of a batch of unlike lengths, alone and among the others."""
    comparison = Comparison("neighbours in the batch change nothing", noise=noise_of("medium"), exact=exact)
    batch = batch_of("medium")
    together = _observe(candidate, batch)
    for row, name in enumerate(batch.ids):
        alone = batch.row(row)
        _compare_row(comparison, name, _observe(candidate, alone), row, together, alone.input_ids.shape[1])
    why = diagnosis_of(candidate) if comparison.failing else None
    judge(comparison.finding(cause=why.cause, action=why.action) if why else comparison.finding())


def test_a_fully_padded_row_is_finite_and_disturbs_nobody(
    subject, candidate, exact, reference, batch_of, noise_of, diagnosis_of, judge
):
    """A row without a single real token, as a batching server may send, among sound rows."""
    batch = batch_of("short")
    mask = batch.attention_mask.copy()
    mask[-1] = 0
    blank = type(batch)(batch.ids, batch.input_ids, mask, batch.target_ids)
    ours, theirs = _observe(reference.model, blank), _observe(candidate, blank)
    comparison = Comparison("a batch with a fully padded row equals PyTorch", noise=noise_of("short"), exact=exact)
    real = mask.astype(bool)
    for place, tensors in ours.items():
        comparison.expected += len(tensors)
        for name, array in tensors.items():
            if name in theirs[place]:
                keep = real if place == "encoder" else None
                comparison.add(place, name, array, theirs[place][name], keep=keep)
    finite = [f"{place}, {name}" for place, ts in theirs.items() for name, a in ts.items() if not np.isfinite(a).all()]
    why = diagnosis_of(candidate) if comparison.failing else None
    judge(
        Finding(
            check="a fully padded row is finite",
            verdict=Verdict.FAIL if finite else Verdict.PASS,
            compared=sum(len(tensors) for tensors in theirs.values()),
            expected=sum(len(tensors) for tensors in ours.values()),
            where=f"first: {finite[0]}" if finite else "",
            cause="a softmax over nothing: every score of the row is minus infinity" if finite else "",
            action="Mask with a large finite number, or reject such rows before the graph." if finite else "",
        ),
        comparison.finding(cause=why.cause, action=why.action) if why else comparison.finding(),
    )
