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
# Follows NOT_APPLICABLE: there was nothing to hold the model against, and the verdict says so.
NOT_COVERED = "not covered: "


@dataclass
class Entry:
    """One test: its id, what became of it, and its findings in JSON form."""

    nodeid: str
    outcome: str
    seconds: float
    subject: str = ""
    message: str = ""
    findings: list[dict[str, Any]] = field(default_factory=list)
    precision: str = ""

    @property
    def undecided(self) -> str:
        """Why the test could not decide, by its first finding that says so."""
        findings = [f for f in self.findings if f["verdict"] == Verdict.INCONCLUSIVE.value]
        return next((f"inconclusive: {f['cause']}" for f in findings if f["cause"]), "inconclusive")

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
        offers: what a RELEASE makes possible, e.g. a new golden lock.
    """

    context: dict[str, Any]
    entries: dict[str, Entry] = field(default_factory=dict)
    gaps: list[str] = field(default_factory=list)
    offers: list[str] = field(default_factory=list)

    def add_gap(self, reason: str) -> None:
        """Note once that something required was not looked at."""
        if reason not in self.gaps:
            self.gaps.append(reason)

    def add_offer(self, line: str) -> None:
        """Note once what a RELEASE makes possible."""
        if line not in self.offers:
            self.offers.append(line)

    @property
    def uncovered(self) -> list[str]:
        """What the run had nothing to hold the model against, each once."""
        prefix = NOT_APPLICABLE + NOT_COVERED
        messages = (entry.message for _, entry in sorted(self.entries.items()))
        return list(dict.fromkeys(m.removeprefix(prefix) for m in messages if m.startswith(prefix)))

    @property
    def precisions(self) -> list[str]:
        """Precisions under test, in the order of the run."""
        return list(dict.fromkeys(entry.precision for entry in self.entries.values() if entry.precision))

    def of_precision(self, precision: str) -> list[Entry]:
        """The tests that a precision's verdict depends on: its own, and those that are about no set."""
        return [entry for entry in self.entries.values() if entry.precision in ("", precision)]

    def verdict(self, precision: str | None = None) -> tuple[RunVerdict, list[str]]:
        """The verdict of the run, or of one precision, and its reasons.

        A failed check holds the release back whatever else was left out.
        """
        entries = list(self.entries.values()) if precision is None else self.of_precision(precision)
        failed = [entry for entry in entries if entry.verdict is Verdict.FAIL]
        if failed:
            return RunVerdict.HOLD, [f"{len(failed)} of {len(entries)} checks failed", *self.gaps]
        undecided = [entry for entry in entries if entry.verdict is Verdict.INCONCLUSIVE]
        reasons = self.gaps + [f"{entry.test}: {entry.message or entry.undecided}" for entry in undecided]
        if not entries:
            reasons.append("no check ran")
        if reasons:
            return RunVerdict.INCOMPLETE, reasons
        return RunVerdict.RELEASE, [f"{len(entries)} checks passed or do not apply"]

    def failures(self, precision: str) -> list[str]:
        """What holds a precision back, one line per failed finding: the check and its first place."""
        lines = []
        for entry in self.of_precision(precision):
            if entry.verdict is Verdict.FAIL:
                found = [f for f in entry.findings if f["verdict"] == Verdict.FAIL.value]
                texts = [f"{f['check']}: {f['where'] or f['cause']}" for f in found] or [
                    f"{entry.test}: {entry.message}"
                ]
                lines += [f"{entry.question}, {entry.subject or 'all layouts'}, {text}" for text in texts]
        return lines

    def to_json(self) -> dict[str, Any]:
        """Return the ledger as JSON types."""
        verdict, reasons = self.verdict()
        return {
            "schema": SCHEMA,
            "verdict": verdict.value,
            "exit_code": int(verdict.exit_code),
            "reasons": reasons,
            "precisions": {name: self._precision_to_json(name) for name in self.precisions},
            "not_covered": self.uncovered,
            "offers": self.offers if verdict is RunVerdict.RELEASE else [],
            "context": self.context,
            "checks": [
                {
                    "id": entry.nodeid,
                    "question": entry.question,
                    "subject": entry.subject,
                    "precision": entry.precision,
                    "verdict": entry.verdict.value,
                    "seconds": round(entry.seconds, 3),
                    "message": entry.message,
                    "findings": entry.findings,
                }
                for _, entry in sorted(self.entries.items())
            ],
        }

    def _precision_to_json(self, precision: str) -> dict[str, Any]:
        verdict, reasons = self.verdict(precision)
        return {
            "verdict": verdict.value,
            "reasons": reasons,
            "failures": self.failures(precision),
            "not_covered": self.uncovered,
        }

    def write(self, path: Path) -> None:
        """Write ``results.json`` atomically."""
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_name(f".{path.name}.{os.getpid()}")
        partial.write_text(json.dumps(self.to_json(), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        os.replace(partial, path)
