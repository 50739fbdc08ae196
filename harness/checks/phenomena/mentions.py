"""A number as it stands in a text, with every value that it can have."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

from harness.checks.phenomena.units import Unit, Units

_SUMMED = {"time", "span", "length", "mass", "usd", "eur", "gbp", "cny"}
PLAIN, MONTH, DAY, CLOCK, CODE, VAGUE = "", "month", "day", "clock", "code", "vague"


@dataclass(frozen=True)
class Mention:
    """One number in a text.

    Attributes:
        start, end: where it stands.
        text: how it is written.
        values: the bare numbers that it can mean, without its unit.
        kind: plain, a month, a day of a month, a clock time, a code compared digit by digit, or a vague magnitude.
        units: readings of the unit behind it; empty without one.
        readings: further quantities that it can mean, e.g. with the unit of its neighbour.
        loose: whether the unit may be missing from the other side.
        strict: whether the other side has to have it.
        moments: clock times in minutes since midnight.
        parts: what a quantity of several numbers consists of, e.g. hours and minutes.
        ordinal: ``third``, 第三.
    """

    start: int
    end: int
    text: str
    values: tuple[float, ...] = ()
    kind: str = PLAIN
    units: Units = ()
    readings: tuple[tuple[float, Unit], ...] = ()
    loose: bool = False
    strict: bool = True
    moments: frozenset[int] = field(default_factory=frozenset)
    parts: tuple[Mention, ...] = ()
    ordinal: bool = False

    @property
    def quantities(self) -> tuple[tuple[float, Unit], ...]:
        """Every value with every unit."""
        return tuple((value, unit) for value in self.values for unit in self.units) + self.readings


def joined(text: str, found: list[Mention], connects: Callable[[str], bool], adds: Callable[[str], bool]):
    """Let neighbours share what one of them carries, and sum quantities of several numbers.

    Args:
        text: where the mentions stand.
        found: the mentions, in order.
        connects: whether the text between two numbers makes them a range or a list, so that a unit counts for both.
        adds: whether the text between two numbers can make them one quantity, as in "2 hours 15 minutes".
    """
    for i in range(len(found) - 2, -1, -1):
        left, right = found[i], found[i + 1]
        if left.kind or right.kind or left.units or not right.quantities:
            continue
        if connects(text[left.end : right.start]):
            units = [unit for _, unit in right.quantities]
            readings = tuple((value, unit) for value in left.values for unit in dict.fromkeys(units))
            found[i] = replace(left, readings=left.readings + readings, loose=True)
    return list(_summed(text, found, adds))


def _summed(text: str, found: list[Mention], adds: Callable[[str], bool]) -> Iterable[Mention]:
    i = 0
    while i < len(found):
        last = i
        while last + 1 < len(found) and adds(text[found[last].end : found[last + 1].start]):
            if not _smaller(found[last], found[last + 1]):
                break
            last += 1
        yield found[i] if last == i else _sum(text, found[i : last + 1])
        i = last + 1


def _smaller(left: Mention, right: Mention) -> bool:
    """Whether the second quantity can be the rest of the first: same dimension, smaller unit."""
    return any(
        a.dimension == b.dimension and a.dimension in _SUMMED and a.factor > b.factor and value * b.factor < a.factor
        for a in left.units
        for b in right.units
        for value in right.values
    )


def _sum(text: str, parts: list[Mention]) -> Mention:
    first, last = parts[0], parts[-1]
    dimensions = set.intersection(*({unit.dimension for unit in part.units} for part in parts))
    readings = []
    for dimension in dimensions:
        total = 0.0
        for part in parts:
            unit = next(unit for unit in part.units if unit.dimension == dimension)
            total += part.values[0] * unit.factor
        unit = next(unit for unit in first.units if unit.dimension == dimension)
        readings.append((total / unit.factor, unit))
    return Mention(first.start, last.end, text[first.start : last.end], readings=tuple(readings), parts=tuple(parts))


def mention_of(match: re.Match[str], **attributes) -> Mention:
    """The number that a match found, where it stands and as it is written."""
    return Mention(match.start(), match.end(), match[0], **attributes)


def iso_date(match: re.Match[str], text: str) -> list[Mention]:
    """Read 2027-03-14; dates in figures read alike in both languages."""
    year, month, day = (int(part) for part in re.split(r"[-/.]", match[0]))
    return date_parts(match, year, (month,), (day,))


def slashed_date(match: re.Match[str], text: str) -> list[Mention]:
    """Read 3/14/2027, whose first two parts come in either order."""
    first, second, year = (int(part) for part in re.split(r"[/.]", match[0]))
    both = {first, second}
    return date_parts(match, year, tuple(v for v in both if v <= 12), tuple(both))


def date_parts(
    match: re.Match[str], year: float | None, months: tuple[float, ...], days: tuple[float, ...]
) -> list[Mention]:
    """The parts of a date, each a number of its own; a year of two figures is one of either century."""
    found = [mention_of(match, values=months, kind=MONTH)]
    if days:
        found.append(mention_of(match, values=days, kind=DAY))
    if year is not None:
        found.append(mention_of(match, values=(year,) if year > 99 else (year, 2000 + year, 1900 + year)))
    return found
