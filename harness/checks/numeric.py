"""Tensor against tensor: how far apart, where first, and which limit would have passed."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from harness.contract.finding import Finding, Verdict
from harness.contract.limits import FAIL_ABOVE, SCALE_FROM, WARN_ABOVE


@dataclass(frozen=True)
class Difference:
    """One tensor compared with its reference.

    Attributes:
        place: step, sentence or whatever orders the comparison, e.g. ``step 3``.
        name: the tensor's contract name.
        absolute: largest absolute difference; infinite for a wrong shape or a value that is not finite.
        scaled: ``absolute`` divided by ``magnitude / SCALE_FROM`` where the magnitude exceeds ``SCALE_FROM``.
        magnitude: largest absolute value of the reference.
        index: where in the tensor the difference is largest.
        problem: what is wrong beside the figure, e.g. another shape.
    """

    place: str
    name: str
    absolute: float
    scaled: float
    magnitude: float
    index: tuple[int, ...]
    problem: str = ""

    def text(self) -> str:
        """The difference as a person reads it."""
        if self.problem:
            return f"{self.place}, {self.name}: {self.problem}"
        return f"{self.place}, {self.name}{list(self.index)}: {self.absolute:.3g} apart, magnitude {self.magnitude:.3g}"


def difference(
    place: str, name: str, reference: np.ndarray, candidate: np.ndarray, keep: np.ndarray | None = None
) -> Difference:
    """Compare two tensors.

    Args:
        place, name: see ``Difference``.
        reference, candidate: arrays of one shape.
        keep: boolean array over the leading axes; only positions that are True are compared.
    """
    if reference.shape != candidate.shape:
        problem = f"shape {list(candidate.shape)}, expected {list(reference.shape)}"
        return Difference(place, name, np.inf, np.inf, 0.0, (), problem)
    left, right = np.asarray(reference, np.float64), np.asarray(candidate, np.float64)
    if keep is not None:
        mask = keep.reshape(keep.shape + (1,) * (left.ndim - keep.ndim))
        left, right = np.where(mask, left, 0.0), np.where(mask, right, 0.0)
    if left.size == 0:
        return Difference(place, name, 0.0, 0.0, 0.0, ())
    with np.errstate(invalid="ignore"):  # infinity on both sides
        gap = np.abs(left - right)
    if not np.isfinite(right).all():
        gap = np.where(np.isfinite(gap), gap, np.inf)
        index = _index_of_max(gap)
        return Difference(place, name, np.inf, np.inf, _magnitude(left), index, f"{right[index]} at {list(index)}")
    index, magnitude = _index_of_max(gap), _magnitude(left)
    absolute = float(gap[index])
    return Difference(place, name, absolute, absolute / max(1.0, magnitude / SCALE_FROM), magnitude, index)


def _index_of_max(array: np.ndarray) -> tuple[int, ...]:
    return tuple(int(i) for i in np.unravel_index(int(np.argmax(array)), array.shape))


def _magnitude(array: np.ndarray) -> float:
    return float(np.max(np.abs(array)))


@dataclass
class Comparison:
    """Differences gathered over steps and sentences, in the order in which the data flows.

    Args:
        check: the check's name in the finding.
        expected: how many tensors the manifest promises for everything that is compared.
        noise: rounding noise of the reference, see ``noise_floor``; raises the warning threshold only.
        exact: whether figures are held against the limit. For a quantized set they are reported, and only a wrong
            shape, a missing tensor or a value that is not finite fails.
    """

    check: str
    expected: int = 0
    noise: float = 0.0
    exact: bool = True
    differences: list[Difference] = field(default_factory=list)

    def add(
        self, place: str, name: str, reference: np.ndarray, candidate: np.ndarray, keep: np.ndarray | None = None
    ) -> Difference:
        """Compare one tensor and keep the result."""
        found = difference(place, name, reference, candidate, keep)
        self.differences.append(found)
        return found

    def add_all(self, place: str, reference: Mapping[str, np.ndarray], candidate: Mapping[str, np.ndarray]) -> None:
        """Compare every tensor of ``reference`` that ``candidate`` has, and expect them all."""
        self.expected += len(reference)
        for name, array in reference.items():
            if name in candidate:
                self.add(place, name, array, candidate[name])

    @property
    def failing(self) -> list[Difference]:
        """The differences beyond the limit, first place first."""
        limit = FAIL_ABOVE if self.exact else sys.float_info.max
        return [found for found in self.differences if not found.scaled <= limit]

    def finding(self, *, cause: str = "", action: str = "") -> Finding:
        """Judge the whole by its worst difference and name the first that fails."""
        worst = max((found.scaled for found in self.differences), default=0.0)
        failing = self.failing
        verdict = Verdict.PASS
        if failing:
            verdict = Verdict.FAIL
        elif self.exact and worst > WARN_ABOVE + self.noise:
            verdict = Verdict.WARN
        return Finding(
            check=self.check,
            verdict=verdict,
            measured=worst,
            limit=FAIL_ABOVE if self.exact else None,
            unit="largest absolute difference, scaled" + ("" if self.exact else "; reported, not judged"),
            passing_limit=worst if self.exact else None,
            compared=len(self.differences),
            expected=self.expected,
            where=f"first: {failing[0].text()}" if failing else "",
            cause=cause if failing else "",
            action=action if failing else "",
            details=tuple(found.text() for found in sorted(failing, key=lambda f: -f.scaled)[:5]),
        )


def noise_floor(single: Mapping[str, np.ndarray], double: Mapping[str, np.ndarray]) -> float:
    """Largest scaled difference of a float32 reference from the same reference in float64."""
    return max(difference("", name, double[name], array).scaled for name, array in single.items())
