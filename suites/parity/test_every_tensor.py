"""Is every tensor of every step the one PyTorch computes?"""

from __future__ import annotations

import numpy as np
import pytest

from harness.checks.numeric import Comparison
from harness.contract.layouts import ENCODER_OUTPUT, LOGITS

LENGTHS = ("short", "medium", "long")


@pytest.mark.parametrize("length", LENGTHS)
def test_every_tensor_of_every_step_equals_pytorch(
    subject, length, reference, candidate, exact, batch_of, noise_of, diagnosis_of, judge
):
    """Both sides are forced through the same tokens, one by one, each on its own cache."""
    batch, noise = batch_of(length), noise_of(length)
    hidden = Comparison(f"encoder output equals PyTorch, {length} sentences", noise=noise, exact=exact)
    cross = Comparison(f"cross-attention K/V equal PyTorch, {length} sentences", noise=noise, exact=exact)
    logits = Comparison(f"logits of every step equal PyTorch, {length} sentences", noise=noise, exact=exact)
    cache = Comparison(f"self-attention K/V of every step equal PyTorch, {length} sentences", noise=noise, exact=exact)
    real = batch.attention_mask.astype(bool)

    ours, theirs = (model.encode(batch.input_ids, batch.attention_mask) for model in (reference.model, candidate))
    hidden.expected = 1
    hidden.add("encoder", ENCODER_OUTPUT, ours.hidden, theirs.hidden, keep=real)
    expected, found = reference.model.start(ours), candidate.start(theirs)
    for step in range(batch.target_ids.shape[1]):
        token = batch.target_ids[:, step : step + 1]
        expected_logits, expected = reference.model.step(expected, token)
        found_logits, found = candidate.step(found, token)
        logits.expected += 1
        logits.add(f"step {step}", LOGITS, expected_logits, found_logits)
        cache.add_all(f"step {step}", expected.past, found.past)
    if candidate.emits_cross:
        cross.expected = len(expected.encoder.cross)
        keep = np.broadcast_to(real[:, None, :], (real.shape[0], candidate.artifacts.dims.decoder_heads, real.shape[1]))
        for name, array in expected.encoder.cross.items():
            if name in found.encoder.cross:
                cross.add("after the encoder", name, array, found.encoder.cross[name], keep=keep)

    comparisons = [hidden, *([cross] if candidate.emits_cross else []), logits, cache]
    why = diagnosis_of(candidate) if any(comparison.failing for comparison in comparisons) else None
    judge(*(c.finding(cause=why.cause, action=why.action) if why else c.finding() for c in comparisons))


def test_cached_decoding_equals_uncached(subject, candidate, exact, batch_of, noise_of, diagnosis_of, judge):
    """Token by token on the cache, and the whole prefix at once, must give the same logits and the same cache."""
    batch = batch_of("medium")
    comparison = Comparison("cached decoding equals uncached", noise=noise_of("medium"), exact=exact)
    encoder = candidate.encode(batch.input_ids, batch.attention_mask)
    whole, whole_state = candidate.step(candidate.start(encoder), batch.target_ids)
    state = candidate.start(encoder)
    for step in range(batch.target_ids.shape[1]):
        logits, state = candidate.step(state, batch.target_ids[:, step : step + 1])
        comparison.add_all(f"step {step}", {LOGITS: whole[:, step : step + 1]}, {LOGITS: logits})
    comparison.add_all("after the last step", whole_state.past, state.past)
    why = diagnosis_of(candidate) if comparison.failing else None
    judge(comparison.finding(cause=why.cause, action=why.action) if why else comparison.finding())


def test_layouts_and_exporters_equal_each_other(
    subject, settings, candidate, exact, candidate_of, batch_of, noise_of, judge
):
    """Every set gives the logits of the run's first set."""
    from harness.plugin import not_applicable

    first = settings.subjects[0]
    if subject == first:
        not_applicable("this is the set that the others are compared with")
    batch = batch_of("medium")
    comparison = Comparison(f"logits equal those of {first.id}", noise=noise_of("medium"), exact=exact)
    sides = []
    for model in (candidate_of(first), candidate):
        state = model.start(model.encode(batch.input_ids, batch.attention_mask))
        steps = {}
        for step in range(batch.target_ids.shape[1]):
            logits, state = model.step(state, batch.target_ids[:, step : step + 1])
            steps[f"step {step}"] = {LOGITS: logits}
        sides.append(steps)
    for place in sides[0]:
        comparison.add_all(place, sides[0][place], sides[1][place])
    judge(comparison.finding(cause="one of the two sets is wrong; the comparison with PyTorch says which"))
