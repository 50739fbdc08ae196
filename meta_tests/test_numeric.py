"""Unit tests of ``harness/checks/numeric.py``: differences, their scale, and what a comparison concludes."""

from __future__ import annotations

import numpy as np
import pytest

from harness.checks.numeric import Comparison, difference, noise_floor
from harness.contract.finding import Verdict, with_count


def array(*values: float) -> np.ndarray:
    return np.asarray(values, np.float32)


def test_the_largest_difference_is_named_with_its_index():
    left = np.zeros((2, 3), np.float32)
    right = left.copy()
    right[1, 2], right[0, 1] = -0.5, 0.25
    found = difference("step 1", "logits", left, right)
    assert (found.absolute, found.scaled, found.index) == (0.5, 0.5, (1, 2))
    assert found.text() == "step 1, logits[1, 2]: 0.5 apart, magnitude 0"


# reference's magnitude -> what a difference of 1 counts as
SCALES = {"small": (1.0, 1.0), "at the edge": (10.0, 1.0), "a hundred": (100.0, 0.1), "negative": (-1000.0, 0.01)}


@pytest.mark.parametrize("case", SCALES)
def test_a_difference_is_scaled_by_the_references_magnitude_above_ten(case):
    magnitude, scaled = SCALES[case]
    found = difference("", "x", array(magnitude, 0), array(magnitude, 1))
    assert found.scaled == pytest.approx(scaled)


def test_the_candidates_own_magnitude_excuses_nothing():
    assert difference("", "x", array(0, 1), array(1000, 1)).scaled == 1000


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_value_that_is_not_finite_is_infinitely_wrong(value):
    found = difference("", "x", array(1, 2, 3), array(1, value, 3))
    assert found.scaled == np.inf
    assert found.index == (1,)
    assert str(value) in found.problem


def test_not_finite_on_both_sides_is_no_agreement():
    assert difference("", "x", array(np.inf), array(np.inf)).scaled == np.inf


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_reference_that_is_not_finite_is_no_agreement_either(value):
    found = difference("", "x", array(1, value), array(1, 2))
    assert not found.scaled <= 1e-4


def test_another_shape_is_infinitely_wrong_even_where_it_would_broadcast():
    found = difference("", "x", np.zeros((2, 3)), np.zeros((1, 3)))
    assert found.scaled == np.inf
    assert found.problem == "shape [1, 3], expected [2, 3]"


def test_empty_tensors_agree():
    assert difference("", "x", np.zeros((2, 4, 0, 8)), np.zeros((2, 4, 0, 8))).absolute == 0


def test_positions_not_kept_are_not_looked_at():
    left, right = np.zeros((2, 2, 3), np.float32), np.zeros((2, 2, 3), np.float32)
    right[0, 1], right[1, 0, 2] = np.nan, 0.5
    found = difference("", "x", left, right, keep=np.array([[True, False], [True, True]]))
    assert (found.absolute, found.index) == (0.5, (1, 0, 2))


def test_differences_are_taken_in_double_precision():
    left = np.array([16777216.0], np.float32)
    right = np.array([16777217.0], np.float64)
    assert difference("", "x", left, right).absolute == 1.0


# differences in order -> verdict, place named first
VERDICTS = {
    "equal": ([0.0, 0.0], Verdict.PASS, ""),
    "rounding": ([5e-6, 0.0], Verdict.PASS, ""),
    "more than rounding": ([5e-5, 0.0], Verdict.WARN, ""),
    "beyond the limit": ([0.0, 2e-4], Verdict.FAIL, "step 1"),
    "the first place counts, not the worst": ([2e-4, 3.0], Verdict.FAIL, "step 0"),
    "not a number": ([0.0, float("nan")], Verdict.FAIL, "step 1"),
}


@pytest.mark.parametrize("case", VERDICTS)
def test_a_comparison_is_judged_by_its_worst_and_names_its_first(case):
    gaps, verdict, place = VERDICTS[case]
    comparison = Comparison("tensors")
    for step, gap in enumerate(gaps):
        comparison.add_all(f"step {step}", {"x": array(1, 0)}, {"x": array(1, gap)})
    found = comparison.finding(cause="a cause", action="An action.")
    assert found.verdict is verdict
    assert place in found.where
    assert bool(found.where) == found.failed == bool(found.cause) == bool(found.action)
    assert (found.compared, found.expected) == (2, 2)


def test_noise_of_the_reference_raises_the_warning_threshold_only():
    def verdict(gap: float, noise: float) -> Verdict:
        comparison = Comparison("tensors", noise=noise)
        comparison.add_all("", {"x": array(1, 0)}, {"x": array(1, gap)})
        return comparison.finding().verdict

    assert verdict(5e-5, noise=0.0) is Verdict.WARN
    assert verdict(5e-5, noise=5e-5) is Verdict.PASS
    assert verdict(2e-4, noise=1.0) is Verdict.FAIL


def test_the_smallest_limit_that_would_pass_is_the_worst_difference():
    comparison = Comparison("tensors")
    comparison.add_all("", {"x": array(0), "y": array(0)}, {"x": array(0.25), "y": array(0.5)})
    found = comparison.finding()
    assert (found.measured, found.passing_limit) == (0.5, 0.5)


def test_a_tensor_that_is_missing_fails_the_count():
    comparison = Comparison("tensors")
    comparison.add_all("step 0", {"x": array(0), "y": array(0)}, {"x": array(0)})
    found = with_count(comparison.finding())
    assert found.failed
    assert (found.compared, found.expected) == (1, 2)


def test_noise_is_the_largest_distance_from_double_precision():
    single = {"x": array(0.5), "y": array(1.0)}
    double = {"x": np.array([0.5]), "y": np.array([1.0 + 1e-6])}
    assert noise_floor(single, double) == pytest.approx(1e-6)
