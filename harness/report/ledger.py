"""The ledger of a run: every test, every finding, and the verdict that follows."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.contract.finding import RunVerdict, Verdict

SCHEMA = 1
PASSED, FAILED, SKIPPED = "passed", "failed", "skipped"
NOT_APPLICABLE = "not applicable: "
BLOCKED = "blocked: "


@dataclass
class Entry:
    """One test: its id, what became of it, and its findings in JSON form."""

    nodeid: str
    outcome: str
    seconds: float
    subject: str = ""
    message: str = ""
    findings: list[dict[str, Any]] = field(default_factory=list)

    @property
    def question(self) -> str:
        """Folder of the suite: the question the test belongs to."""
        return self.nodeid.split("/")[1]

    @property
    def test(self) -> str:
        """The test's name without its path."""
        return self.nodeid.split("::", 1)[-1]

    @property
    def layout(self) -> str:
        """Column of the closing table."""
        return self.subject.split("-by-")[0] if self.subject else "all"

    @property
    def verdict(self) -> Verdict:
        """The worst of the test's outcome and its findings."""
        if self.outcome == FAILED:
            return Verdict.FAIL
        if self.outcome == SKIPPED:
            applicable = not self.message.startswith(NOT_APPLICABLE)
            return Verdict.INCONCLUSIVE if applicable else Verdict.NOT_APPLICABLE
        found = {finding["verdict"] for finding in self.findings}
        for verdict in (Verdict.INCONCLUSIVE, Verdict.WARN, Verdict.KNOWN):
            if verdict.value in found:
                return verdict
        return Verdict.PASS


@dataclass
class Ledger:
    """Everything a run observed.

    Attributes:
        context: what is under test and where, for the head of the report.
        gaps: reasons why the run cannot say RELEASE.
    """

    context: dict[str, Any]
    entries: dict[str, Entry] = field(default_factory=dict)
    gaps: list[str] = field(default_factory=list)

    def add_gap(self, reason: str) -> None:
        """Note once that something required was not looked at."""
        if reason not in self.gaps:
            self.gaps.append(reason)

    def verdict(self) -> tuple[RunVerdict, list[str]]:
        """The run's verdict and its reasons.

        A failed check holds the release back whatever else was left out.
        """
        failed = [entry for entry in self.entries.values() if entry.verdict is Verdict.FAIL]
        if failed:
            return RunVerdict.HOLD, [f"{len(failed)} of {len(self.entries)} checks failed", *self.gaps]
        undecided = [entry for entry in self.entries.values() if entry.verdict is Verdict.INCONCLUSIVE]
        reasons = self.gaps + [f"{entry.test}: {entry.message or 'inconclusive'}" for entry in undecided]
        if not self.entries:
            reasons.append("no check ran")
        if reasons:
            return RunVerdict.INCOMPLETE, reasons
        return RunVerdict.RELEASE, [f"{len(self.entries)} checks passed or do not apply"]

    def to_json(self) -> dict[str, Any]:
        """Return the ledger as JSON types."""
        verdict, reasons = self.verdict()
        return {
            "schema": SCHEMA,
            "verdict": verdict.value,
            "exit_code": int(verdict.exit_code),
            "reasons": reasons,
            "context": self.context,
            "checks": [
                {
                    "id": entry.nodeid,
                    "question": entry.question,
                    "subject": entry.subject,
                    "verdict": entry.verdict.value,
                    "seconds": round(entry.seconds, 3),
                    "message": entry.message,
                    "findings": entry.findings,
                }
                for _, entry in sorted(self.entries.items())
            ],
        }

    def write(self, path: Path) -> None:
        """Write ``results.json`` atomically."""
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_name(f".{path.name}.{os.getpid()}")
        partial.write_text(json.dumps(self.to_json(), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        os.replace(partial, path)
