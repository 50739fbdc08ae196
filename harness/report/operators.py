"""Where a set's time goes: operators ranked from onnxruntime's own profile of each graph."""

from __future__ import annotations

import json
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from io import StringIO
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from harness.contract.errors import InputError
from harness.runtime.session import SessionProfile
from harness.runtime.translate import Translator

# Short, middling and long; any model of any language pair spends its time in the same operators on them.
SENTENCES = (
    "Thank you.",
    "Do not open the valve before the pump has stopped.",
    "The train to Berlin leaves at 7:45 on Monday, but the bus is late again.",
    "She said that the meeting on Tuesday was moved to the third floor because the large hall is being painted.",
)
# How often they are translated: one hitch of the machine in a single round would rank an operator first.
ROUNDS = 5
# onnxruntime's profiler keeps this many events and drops the rest (``max_num_events_`` in its profiler.h).
MAX_EVENTS = 1_000_000
# How onnxruntime names what it times: one event per node and run, one per run of the graph.
_KERNEL = "_kernel_time"
_RUN = "model_run"


@dataclass(frozen=True)
class Cost:
    """What one operator type, or one node, took over all runs of its graph.

    Attributes:
        name: the operator type, or the node's name.
        operator: the operator type.
        calls: how often it ran.
        ms: its own time in milliseconds, without that of the nodes in its branches.
        share: part of the time of all nodes of the graph, 0 to 1.
    """

    name: str
    operator: str
    calls: int
    ms: float
    share: float


@dataclass(frozen=True)
class GraphCosts:
    """One graph's time.

    Attributes:
        role: the graph, as in the manifest.
        runs: how often the graph ran.
        run_ms: milliseconds inside its runs, all told.
        node_ms: milliseconds of them inside nodes; the rest is the executor's and the profiler's own.
        operators, nodes: dearest first.
    """

    role: str
    runs: int
    run_ms: float
    node_ms: float
    operators: tuple[Cost, ...]
    nodes: tuple[Cost, ...]

    def to_json(self, top: int) -> dict[str, Any]:
        """Return the figures as JSON types, with every operator type and the dearest ``top`` nodes."""
        return {
            "role": self.role,
            "runs": self.runs,
            "run_ms": self.run_ms,
            "node_ms": self.node_ms,
            "operators": [asdict(cost) for cost in self.operators],
            "nodes": [asdict(cost) for cost in self.nodes[:top]],
        }


def profile(folder: Path | str, sentences: Sequence[str] | None = None, beams: int | None = None) -> list[GraphCosts]:
    """Translate with onnxruntime's profiler on and read what it wrote; the traces are removed.

    A file that changed since its export is taken as it is: what an edit of a graph costs is a question for a profile.

    Args:
        sentences: translated once; None takes ``SENTENCES``, ``ROUNDS`` times.
        beams: in place of the set's own number.

    Raises:
        InputError: the set cannot be used, or more was asked for than a trace holds.
    """
    with tempfile.TemporaryDirectory(prefix="profile-") as traces:
        translator = Translator(folder, SessionProfile(traces=Path(traces)), verify=False)
        settings = translator.settings if beams is None else translator.settings.replace(num_beams=beams)
        for _ in range(1 if sentences else ROUNDS):
            translator.translate(sentences or SENTENCES, settings)
        return [read_trace(session.end_trace(), role) for role, session in translator.model.sessions.items()]


def read_trace(path: Path, role: str) -> GraphCosts:
    """Sum up one trace (JSON, times in microseconds) by operator type and by node.

    Raises:
        InputError: the trace is full, so that what came later is missing from it.
    """
    events = json.loads(path.read_text(encoding="utf-8"))
    if len(events) >= MAX_EVENTS:
        raise InputError(
            what=f"onnxruntime's profile of the {role} is full after {MAX_EVENTS:,} events",
            where="profile",
            action="Give fewer or shorter sentences with --sentences, or fewer beams.",
        )
    runs = [event["dur"] for event in events if event["name"] == _RUN]
    nodes = _own_times(event for event in events if event["name"].endswith(_KERNEL))
    by_operator = [(event["args"]["op_name"], event["args"]["op_name"], own) for event, own in nodes]
    by_node = [(event["name"].removesuffix(_KERNEL), event["args"]["op_name"], own) for event, own in nodes]
    total = sum(own for _, own in nodes)
    return GraphCosts(
        role, len(runs), sum(runs) / 1e3, total / 1e3, _ranked(by_operator, total), _ranked(by_node, total)
    )


def _own_times(events: Iterable[dict]) -> list[tuple[dict, float]]:
    """Every event with its duration less that of the events inside it: an ``If`` encloses its branch's nodes."""
    ordered = sorted(events, key=lambda event: (event["ts"], -event["dur"]))
    own = [float(event["dur"]) for event in ordered]
    open_events: list[int] = []
    for i, event in enumerate(ordered):
        while open_events and event["ts"] + event["dur"] > _end(ordered[open_events[-1]]):
            open_events.pop()
        if open_events:
            own[open_events[-1]] -= event["dur"]
        if event["args"]["op_name"] in ("If", "Loop", "Scan"):
            open_events.append(i)
    return list(zip(ordered, own))


def _end(event: dict) -> int:
    return event["ts"] + event["dur"]


def _ranked(times: Iterable[tuple[str, str, float]], total: float) -> tuple[Cost, ...]:
    found: dict[tuple[str, str], list[float]] = defaultdict(list)
    for name, operator, own in times:
        found[name, operator].append(own)
    costs = [
        Cost(name, operator, len(owns), round(sum(owns) / 1e3, 3), round(sum(owns) / total, 4) if total else 0.0)
        for (name, operator), owns in found.items()
    ]
    return tuple(sorted(costs, key=lambda cost: -cost.ms))


def table(costs: GraphCosts, top: int) -> str:
    """The dearest operator types and nodes of one graph, ready to print."""
    buffer = StringIO()
    console = Console(file=buffer, width=110, color_system=None, highlight=False, markup=False)
    console.print(
        f"{costs.role}: {costs.runs} runs, {costs.run_ms:.1f} ms, {costs.node_ms:.1f} ms of them inside operators"
    )
    for title, ranked in (("operator", costs.operators), ("node", costs.nodes)):
        console.print(_table(title, ranked[:top]))
    return buffer.getvalue()


def _table(title: str, ranked: Sequence[Cost]) -> Table:
    shown = Table(title, *(("operator",) if title == "node" else ()))
    for heading in ("calls", "ms", "share"):
        shown.add_column(heading, justify="right")
    for cost in ranked:
        kind = (cost.operator,) if title == "node" else ()
        shown.add_row(cost.name, *kind, str(cost.calls), f"{cost.ms:.1f}", f"{cost.share:.1%}")
    return shown
