"""Does the set reach the model's own maximum, and refuse what lies beyond it in words?"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from harness.checks.shapes import ENCODE, Call
from harness.contract.errors import InputError
from harness.contract.finding import Finding, Verdict
from harness.plugin import not_applicable
from suites.shapes.strategies import continuation


def _full_rows(sizes, batch: int, source: int) -> dict[str, np.ndarray]:
    ids = sizes.tokens(np.random.default_rng(0), (batch, source), sizes.dims.source_vocab_size)
    return {"input_ids": ids, "attention_mask": np.ones_like(ids)}


def test_a_source_of_exactly_the_maximum_is_encoded(subject, explorer_of, sizes, judge):
    """Every position of the table is used, the last included."""
    most = sizes.dims.max_source_positions
    explorer = explorer_of(f"the encoder at its maximum of {most} tokens")
    judge(explorer.conclude(lambda: explorer.play((Call(ENCODE, _full_rows(sizes, 2, most)),))))


# Past that is given, tokens appended to it: together exactly the model's maximum.
FULL_TARGETS = {
    "the last token": lambda most: (most - 1, 1),
    "all tokens at once": lambda most: (0, most),
    "all but one at once": lambda most: (1, most - 1),
}


@pytest.mark.parametrize("split", FULL_TARGETS)
def test_a_target_of_exactly_the_maximum_is_decoded(subject, split, explorer_of, sizes, judge):
    """Every position of the table is used, the last included."""
    most = sizes.dims.max_target_positions
    past, target = FULL_TARGETS[split](most)
    if past and target > 1 and sizes.single_token_steps:
        not_applicable("a set made elsewhere promises one token per step once it has a past")
    explorer = explorer_of(f"the decoder at its maximum of {most} tokens, {split}")
    scenario = continuation(sizes, _full_rows(sizes, 1, 3), past, target, np.random.default_rng(0))
    judge(explorer.conclude(lambda: explorer.play(scenario)))


def _refusal(check: str, call: Callable[[], object], limit: int) -> Finding:
    """Require one line that gives the limit, in place of numbers that mean nothing or of a runtime's stack trace."""
    try:
        call()
    except InputError as error:
        told = str(error)
    except Exception as error:  # whatever else is raised is what the user would have to read
        told = f"{type(error).__name__}: {error}"
        return _refused_badly(check, f"it was refused with {told.splitlines()[0][:200]}")
    else:
        return _refused_badly(check, "it was accepted")
    if str(limit) not in told:
        return _refused_badly(check, f"the message does not give the limit {limit}: {told}")
    return Finding(check=check, verdict=Verdict.PASS, compared=1, expected=1, details=(told,))


def _refused_badly(check: str, cause: str) -> Finding:
    return Finding(
        check=check,
        verdict=Verdict.FAIL,
        compared=1,
        expected=1,
        cause=cause,
        action="Refuse it before the graph, with the limit, and advise to split or to truncate.",
    )


def test_a_source_beyond_the_maximum_is_refused_in_words(subject, candidate, sizes, judge):
    """One token more than the position table has."""
    limit = sizes.dims.max_source_positions
    arrays = _full_rows(sizes, 1, limit + 1)
    judge(_refusal(f"a source of {limit + 1} tokens is refused", lambda: candidate.encode(**arrays), limit))


def test_a_target_beyond_the_maximum_is_refused_in_words(subject, reference, candidate, sizes, judge):
    """One token more than the position table has, all at once: the decoder's positions are what runs out."""
    limit = sizes.dims.max_target_positions
    ids = sizes.tokens(np.random.default_rng(0), (1, limit + 1), sizes.dims.vocab_size)
    state = candidate.start(reference.model.encode(**_full_rows(sizes, 1, 3)))
    judge(_refusal(f"a target of {limit + 1} tokens is refused", lambda: candidate.step(state, ids), limit))
