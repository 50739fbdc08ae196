"""Whose fault is it? Content faults in columns: PyTorch, ONNX fp32, ONNX quantized.

A column is held against the columns on its left. What they got wrong too is the model's fault and is listed as such; a
gate fails on what is new in the last column.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from enum import Enum
from typing import Protocol

from harness.contract.finding import Finding, Verdict
from harness.contract.policy import Policy, PolicyException
from harness.contract.sentences import Sentence

OK, FAULT, NOT_APPLICABLE = "ok", "fault", "na"
# Beside the checkers' phenomena: a sentence and its minimal twin must not come out alike.
MINIMAL_PAIRS = "minimal pairs"
_SHOWN = 10


class PairSlot(Protocol):
    """One place where both texts part: what the source says there, empty for what a translation invents."""

    source: str


class PairVerdict(Protocol):
    """What a phenomenon's checker says of a source and a translation: ``ok``, ``fault`` or ``na``, and the slots."""

    verdict: str
    slots: Sequence[PairSlot]


# Place -> the slot as people read it.
Slots = Mapping[str, str]
# (source, translation) -> phenomenon -> verdict
Checker = Callable[[str, str], Mapping[str, PairVerdict]]


@dataclass(frozen=True)
class Column:
    """Translations of all sentences by one runtime and precision, in the sentences' order."""

    name: str
    translations: tuple[str, ...]


class State(str, Enum):
    """What became of one phenomenon in one sentence, seen from the last column."""

    SOUND = "sound"
    NEWLY_BROKEN = "newly broken"
    NEWLY_FIXED = "newly fixed"
    BROKEN_EVERYWHERE = "broken everywhere"
    NOT_APPLICABLE = "not applicable"


@dataclass(frozen=True)
class Cell:
    """One phenomenon in one sentence.

    Attributes:
        state: ``BROKEN_EVERYWHERE`` where a column on the left has the fault too.
        slots: of a fault in the last column, those that are new; otherwise those of the first column that has one;
            as people read them.
        texts: column name -> translation.
    """

    sentence: Sentence
    phenomenon: str
    state: State
    slots: tuple[str, ...]
    texts: Mapping[str, str]

    def text(self) -> str:
        """The cell in one line: sentence, slots, and the columns side by side."""
        critical = ", critical" if self.sentence.critical else ""
        slots = f" [{', '.join(self.slots)}]" if self.slots else ""
        names: dict[str, list[str]] = {}
        for name, text in self.texts.items():
            names.setdefault(text, []).append(name)
        sides = "; ".join(f"{' and '.join(sharing)}: {text}" for text, sharing in names.items())
        return f"{self.sentence.id}{critical}{slots} {self.sentence.source!r}; {sides}"


def compare_columns(sentences: Sequence[Sentence], columns: Sequence[Column], checker: Checker) -> list[Cell]:
    """Judge every sentence in every column.

    Args:
        sentences: the sources.
        columns: two or more; the last is under judgement, the others are what it came from.
        checker: the phenomena's checker.

    Raises:
        ValueError: a column does not hold one translation per sentence.
    """
    for column in columns:
        if len(column.translations) != len(sentences):
            raise ValueError(f"{column.name} has {len(column.translations)} translations of {len(sentences)} sentences")
    cells = []
    for i, sentence in enumerate(sentences):
        texts = {column.name: column.translations[i] for column in columns}
        verdicts = [checker(sentence.source, text) for text in texts.values()]
        cells += [
            _cell(sentence, phenomenon, [seen(verdict[phenomenon]) for verdict in verdicts], texts)
            for phenomenon in verdicts[-1]
        ]
    return cells + _minimal_pairs(sentences, columns)


def seen(verdict: PairVerdict) -> tuple[str, Slots]:
    """A verdict, and its slots by place in the source.

    A place that is wrong in another way in another column is the same place. So is all that has no place, loops and
    inventions: where a column has one already, another one is no news.
    """
    return verdict.verdict, {slot.source: str(slot) for slot in verdict.slots}


def _minimal_pairs(sentences: Sequence[Sentence], columns: Sequence[Column]) -> list[Cell]:
    """A sentence that differs from its twin in one word that matters, and comes out like it, has lost that word."""
    place = {sentence.id: i for i, sentence in enumerate(sentences)}
    cells = []
    for i, sentence in enumerate(sentences):
        if sentence.pair not in place:
            continue
        twin = place[sentence.pair]
        slot = {sentence.pair: f"as {sentence.pair}"}
        verdicts = [
            (FAULT, slot) if column.translations[i] == column.translations[twin] else (OK, {}) for column in columns
        ]
        texts = {column.name: column.translations[i] for column in columns}
        cells.append(_cell(sentence, MINIMAL_PAIRS, verdicts, texts))
    return cells


def _cell(sentence: Sentence, phenomenon: str, verdicts: Sequence[tuple[str, Slots]], texts: Mapping[str, str]) -> Cell:
    before = [slots for verdict, slots in verdicts[:-1] if verdict == FAULT]
    if verdicts[-1][0] == NOT_APPLICABLE:
        return Cell(sentence, phenomenon, State.NOT_APPLICABLE, (), texts)
    if verdicts[-1][0] == OK:
        if before:
            return Cell(sentence, phenomenon, State.NEWLY_FIXED, tuple(before[0].values()), texts)
        return Cell(sentence, phenomenon, State.SOUND, (), texts)
    new = new_slots(before, verdicts[-1][1])
    if before and not new:
        return Cell(sentence, phenomenon, State.BROKEN_EVERYWHERE, tuple(before[0].values()), texts)
    return Cell(sentence, phenomenon, State.NEWLY_BROKEN, new, texts)


def new_slots(before: Sequence[Slots], now: Slots) -> tuple[str, ...]:
    """The slots of a fault at places that were right before."""
    return tuple(text for place, text in now.items() if all(place not in slots for slots in before))


def phenomenon_findings(
    cells: Sequence[Cell], policy: Policy, *, columns: Sequence[str], sentences: int, today: date
) -> list[Finding]:
    """One finding per phenomenon: what the last column newly broke.

    Args:
        cells: of ``compare_columns``.
        policy: how much may break, and which sentences are excepted.
        columns: names of the columns, the judged one last.
        sentences: how many sentences there were.
        today: the day that exceptions are held against.
    """
    phenomena = list(dict.fromkeys(cell.phenomenon for cell in cells))
    return [
        _finding([cell for cell in cells if cell.phenomenon == phenomenon], policy, columns, sentences, today)
        for phenomenon in phenomena
    ]


def _finding(cells: list[Cell], policy: Policy, columns: Sequence[str], sentences: int, today: date) -> Finding:
    phenomenon = cells[0].phenomenon
    check = f"{columns[-1]} breaks no {phenomenon} that {' and '.join(columns[:-1])} got right"
    applicable = [cell for cell in cells if cell.state is not State.NOT_APPLICABLE]
    if not applicable:
        return Finding(check, Verdict.NOT_APPLICABLE, cause=f"none of the {sentences} sentences has {phenomenon}")
    broken = [cell for cell in cells if cell.state is State.NEWLY_BROKEN]
    excepted = {
        id(cell): exception
        for cell in broken
        if (exception := policy.exception_for(cell.sentence.id, [phenomenon], today))
    }
    counted = sorted((c for c in broken if id(c) not in excepted), key=lambda c: not c.sentence.critical)
    critical = sum(cell.sentence.critical for cell in counted)
    share = len(counted) / len(applicable)
    failing = share > policy.newly_broken or critical > policy.newly_broken_critical
    return Finding(
        check=check,
        verdict=Verdict.FAIL if failing else Verdict.KNOWN if excepted else Verdict.PASS,
        measured=100 * share,
        limit=100 * policy.newly_broken,
        unit=f"% of {len(applicable)} sentences with {phenomenon} newly broken",
        passing_limit=100 * share,
        compared=len(cells) if phenomenon != MINIMAL_PAIRS else None,
        expected=sentences if phenomenon != MINIMAL_PAIRS else None,
        where=counted[0].text() if counted else "",
        cause=_cause(counted, critical, columns) if failing else "",
        action="Read these sentences; find the tensor that lost them, or leave its node in float." if failing else "",
        details=(*_counts(cells), *_lines(counted[1:]), *_exceptions(excepted.values()), *_models_own(cells)),
    )


def _cause(counted: list[Cell], critical: int, columns: Sequence[str]) -> str:
    cells = "1 sentence" if len(counted) == 1 else f"{len(counted)} sentences"
    tagged = f", {critical} of them critical," if critical else ""
    return f"{cells}{tagged} broke between {columns[-2]} and {columns[-1]}"


def _counts(cells: list[Cell]) -> list[str]:
    states = [cell.state for cell in cells]
    return [", ".join(f"{states.count(state)} {state.value}" for state in State)]


def _lines(counted: list[Cell]) -> list[str]:
    lines = [cell.text() for cell in counted[:_SHOWN]]
    return lines + ([f"and {len(counted) - _SHOWN} more sentences"] if len(counted) > _SHOWN else [])


def _exceptions(exceptions: Sequence[PolicyException]) -> list[str]:
    return [f"excepted: {exception.text()}" for exception in exceptions]


def _models_own(cells: list[Cell]) -> list[str]:
    own = [cell for cell in cells if cell.state is State.BROKEN_EVERYWHERE]
    lines = [f"the model's own fault: {cell.text()}" for cell in own[:_SHOWN]]
    return lines + ([f"and {len(own) - _SHOWN} more faults of the model itself"] if len(own) > _SHOWN else [])
