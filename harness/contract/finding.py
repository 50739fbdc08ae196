"""What a check says before anything asserts, and what a run concludes from it."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from enum import Enum
from typing import Any

from harness.contract.errors import ExitCode


class Verdict(str, Enum):
    """Verdict of one finding."""

    PASS = "pass"
    WARN = "warn"
    FAIL = "fail"
    INCONCLUSIVE = "inconclusive"
    NOT_APPLICABLE = "not applicable"
    KNOWN = "known"


class RunVerdict(str, Enum):
    """Verdict of a run."""

    RELEASE = "RELEASE"
    HOLD = "HOLD"
    INCOMPLETE = "INCOMPLETE"

    @property
    def exit_code(self) -> ExitCode:
        """Exit code that says the same."""
        return {"RELEASE": ExitCode.GOOD, "HOLD": ExitCode.HOLD, "INCOMPLETE": ExitCode.INCOMPLETE}[self.value]


@dataclass(frozen=True)
class Finding:
    """Result of one check on one subject.

    Attributes:
        check: what was checked, as a short sentence.
        verdict: see ``Verdict``.
        measured, limit, unit: the figure, what it was held against, and its unit; None where nothing is measured.
        passing_limit: smallest limit that would have passed; None where the check has no figure.
        compared, expected: how many items were compared and how many had to be.
        where: first place that differs: file, node, tensor, step, layer, sentence.
        cause: the likely cause.
        action: one concrete thing to do next.
        details: further lines for the report, most important first.
    """

    check: str
    verdict: Verdict
    measured: float | None = None
    limit: float | None = None
    unit: str = ""
    passing_limit: float | None = None
    compared: int | None = None
    expected: int | None = None
    where: str = ""
    cause: str = ""
    action: str = ""
    details: tuple[str, ...] = ()

    @property
    def failed(self) -> bool:
        """Whether the finding holds a release back."""
        return self.verdict is Verdict.FAIL

    def text(self) -> str:
        """The finding as a person reads it, several lines."""
        lines = [f"{self.check}: {self.verdict.value}"]
        if self.measured is not None:
            lines.append(f"  measured {_figure(self.measured)} {self.unit}, limit {_figure(self.limit)}".rstrip())
        if self.passing_limit is not None and self.failed:
            lines.append(f"  smallest limit that would pass: {_figure(self.passing_limit)}")
        if self.expected is not None:
            lines.append(f"  compared {self.compared} of {self.expected}")
        for name in ("where", "cause", "action"):
            if value := getattr(self, name):
                lines.append(f"  {name}: {value}")
        return "\n".join([*lines, *(f"    {line}" for line in self.details)])

    def to_json(self) -> dict[str, Any]:
        """Return the finding as JSON types; figures that JSON cannot hold become strings."""
        data = dataclasses.asdict(self)
        data["verdict"] = self.verdict.value
        data["details"] = list(self.details)
        for name in ("measured", "limit", "passing_limit"):
            if data[name] is not None and not math.isfinite(data[name]):
                data[name] = str(data[name])
        return data


def _figure(value: float | None) -> str:
    return "none" if value is None else f"{value:.6g}"


def with_count(finding: Finding) -> Finding:
    """Fail a finding that compared another number of items than it had to.

    Raises:
        ValueError: nothing at all was compared; that is an error of the check, not a result.
    """
    if finding.compared == 0:
        raise ValueError(f"{finding.check}: nothing was compared, {finding.expected} items were expected")
    if finding.compared is None or finding.compared == finding.expected:
        return finding
    return dataclasses.replace(
        finding,
        verdict=Verdict.FAIL,
        cause=finding.cause or f"{finding.compared} items compared, {finding.expected} promised",
        action=finding.action or "Find out which tensors are missing: see suites/export, inputs and outputs.",
    )
