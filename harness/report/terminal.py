"""The closing lines of a run."""

from __future__ import annotations

from collections.abc import Iterable
from io import StringIO

from rich.console import Console
from rich.table import Table

from harness.contract.finding import RunVerdict, Verdict
from harness.report.ledger import Entry, Ledger

_WORST_FIRST = (Verdict.FAIL, Verdict.INCONCLUSIVE, Verdict.WARN, Verdict.KNOWN, Verdict.PASS, Verdict.NOT_APPLICABLE)
_SHOWN_CAUSES = 8


def closing_table(ledger: Ledger, width: int) -> str:
    """Question by layout: verdict, and the figure that came nearest to its limit."""
    entries = list(ledger.entries.values())
    questions = sorted({entry.question for entry in entries})
    layouts = sorted({entry.layout for entry in entries})
    table = Table(
        "question", *layouts, title="verdict, how many checks, figure nearest to its limit", title_justify="left"
    )
    for question in questions:
        cells = [
            _cell([entry for entry in entries if (entry.question, entry.layout) == (question, layout)])
            for layout in layouts
        ]
        table.add_row(question, *cells)
    buffer = StringIO()
    Console(file=buffer, width=max(width, 60), color_system=None).print(table)
    return buffer.getvalue().rstrip()


def _cell(entries: list[Entry]) -> str:
    if not entries:
        return ""
    verdicts = [entry.verdict for entry in entries]
    worst = next(verdict for verdict in _WORST_FIRST if verdict in verdicts)
    count = f" {verdicts.count(worst)}/{len(entries)}" if worst is not Verdict.PASS else f" {len(entries)}"
    figure = _worst_figure(entries)
    return f"{worst.value}{count}" + (f" ({figure})" if figure else "")


def _worst_figure(entries: Iterable[Entry]) -> str:
    """The figure nearest to its limit, or furthest beyond it."""
    worst, text = -1.0, ""
    for entry in entries:
        for finding in entry.findings:
            measured, limit = finding["measured"], finding["limit"]
            if measured is None or not limit:
                continue
            share = float(measured) / float(limit)
            if share > worst:
                worst, text = share, f"{float(measured):.1e}"
    return text


def precision_lines(ledger: Ledger) -> list[str]:
    """One line per precision: its verdict, why, and what it does not cover."""
    lines = []
    uncovered = f"; not covered: {', '.join(ledger.uncovered)}" if ledger.uncovered else ""
    for precision in ledger.precisions:
        verdict, reasons = ledger.verdict(precision)
        why = f"{reasons[0]}; first: {ledger.failures(precision)[0]}" if verdict is RunVerdict.HOLD else reasons[0]
        lines.append(f"{precision}: {verdict.value}: {why}{uncovered}")
    return lines


def first_causes(ledger: Ledger) -> list[str]:
    """Failed findings with a cause, one line per distinct cause, in the order the data flows."""
    lines: dict[str, str] = {}
    order = {"export": 0, "parity": 1, "shapes": 2, "decoding": 3}
    for entry in sorted(ledger.entries.values(), key=lambda e: (order.get(e.question, 9), e.nodeid)):
        for finding in entry.findings:
            if finding["verdict"] == Verdict.FAIL.value:
                key = finding["cause"] or finding["check"]
                lines.setdefault(key, f"{entry.question}, {entry.subject or 'all layouts'}: {_one_line(finding)}")
    shown = list(lines.values())
    more = len(shown) - _SHOWN_CAUSES
    return shown[:_SHOWN_CAUSES] + ([f"and {more} more causes, see results.json"] if more > 0 else [])


def _one_line(finding: dict) -> str:
    parts = (finding["check"], finding["where"], finding["cause"], finding["action"])
    return "; ".join(part for part in parts if part)
