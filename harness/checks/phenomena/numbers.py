"""Numbers: every value of the source in the translation, and no other.

Values are compared, not strings: 3.5 million is 350万, half an hour is 30分钟, and six feet are 1.83米.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence

from harness.checks.phenomena.chinese_numbers import chinese_numbers
from harness.checks.phenomena.constructions import broken_constructions
from harness.checks.phenomena.english_numbers import english_numbers
from harness.checks.phenomena.mentions import CLOCK, CODE, DAY, MONTH, PLAIN, VAGUE, Mention
from harness.checks.phenomena.spellings import broken_roman, plainly_said
from harness.checks.phenomena.units import TABLES, Unit, chinese_units
from harness.checks.phenomena.verdict import Slot, Verdict

_UNIT_ANYWHERE = re.compile(TABLES.chinese_pattern)
_FALLING = re.compile("[降减跌亏损低少负零欠缩]")
# English words that let a number appear in Chinese: 双重 is double, 四边形 a quadrangle, 两者 both.
_FREE = [
    (re.compile(pattern, re.IGNORECASE), values)
    for pattern, values in (
        (
            r"\b(?:both|either|neither|pairs?|couples?|twins?|twice|doubl\w*|dual|bi\w+|binary|second\w*|two\w*|"
            r"halves|half"
            r"|each other|one another|between|mutual\w*|jointly|other|opposite|alternat\w*|and|or|"
            r"duplicate\w*|again)\b",
            (2.0,),
        ),
        (r"\b(?:thirds?|tri\w+|ternary|three\w*|thrice|and|sandwich\w*|cubic)\b", (3.0,)),
        (
            r"\b(?:quarter\w*|quadr\w+|squares?|four\w*|around|everywhere|surround\w*|seasons?|fourth\w*|"
            r"directions?)\b",
            (4.0, 15.0, 3.0),
        ),
        (r"\b(?:penta\w+|hardware|metals?)\b", (5.0,)),
        (r"\b(?:hexa\w*)\b", (6.0, 16.0)),
        (r"\b(?:octa\w*)\b", (8.0,)),
        (r"\b(?:decima\w*|decades?|tens?|cross\w*|very|extremely|highly|teens?|teenage\w*)\b", (10.0,)),
        (r"\b(?:century|centuries|percent\w*|hundreds?|fully|completely|totally|absolutely|entire\w*)\b", (100.0,)),
        (r"\b(?:week\w*|biweekly)\b", (7.0, 1.0, 2.0)),
        (r"\b(?:fortnight\w*)\b", (2.0, 14.0)),
        (r"\b(?:midnight|noon|midday)\b", (12.0, 0.0, 24.0)),
        (r"\b(?:daily|day|24/7)\b", (24.0, 1.0)),
        (r"\b(?:mill?ions?|millionaires?)\b", (1e6,)),
        (r"\b(?:several|few|some|many|various|countless|myriad)\b", (2.0, 3.0, 10.0)),
        (r"\b(?:five-star|stars?)\b", (5.0,)),
        (r"\b(?:triple\w*|treble\w*|threefold)\b", (3.0, 2.0)),
        (r"\b(?:quadruple\w*|fourfold)\b", (4.0, 3.0)),
    )
]
# Codes whose Chinese name has no digits.
_TRANSLATED_CODES = re.compile(r"(?i)(?:covid-?19|co2|h2o|o2|n2|b2b|b2c|p2p|y2k|3d|2d|4wd|24/7|f1|a4)")
_ORDINAL_LOST = re.compile(r"[个台只辆名块件位本](?!月)")
_RELATIVE = 1e-9


def check_numbers(source: str, translation: str) -> Verdict:
    """Judge the numbers of a translation; markup has been blanked in both texts."""
    source, translation = plainly_said(source, translation)
    if broken := [*broken_constructions("numbers", source, translation), *broken_roman(source, translation)]:
        return Verdict.of(broken, applies=True)
    left, right = english_numbers(source), chinese_numbers(translation)
    if not left and not any(mention.strict for mention in right):
        return Verdict.of((), applies=False)
    left, right = _aligned(left, right)
    judge = _Judge(source, translation, left, right)
    return Verdict.of(judge.slots(), applies=True)


def _aligned(left: list[Mention], right: list[Mention]) -> tuple[list[Mention], list[Mention]]:
    """Take sums apart whose total is not on the other side: 2 hours 15 minutes may be compared part by part."""
    return _taken_apart(left, right), _taken_apart(right, left)


def _taken_apart(mentions: list[Mention], others: list[Mention]) -> list[Mention]:
    found: list[Mention] = []
    for mention in mentions:
        if mention.parts and not any(same_value(mention, other) for other in others):
            found += mention.parts
        else:
            found.append(mention)
    return found


def _equal(a: float, b: float) -> bool:
    return math.isclose(a, b, rel_tol=_RELATIVE, abs_tol=1e-9)


def _converted(value: float, unit: Unit, other: float, other_unit: Unit) -> bool:
    """Whether two quantities are one, the second rounded to the figures that it shows where a conversion rounds."""
    if unit.dimension != other_unit.dimension:
        return False
    want, have = unit.base(value), other_unit.base(other)
    if math.isclose(want, have, rel_tol=1e-9, abs_tol=1e-12):
        return True
    if unit.system == other_unit.system:
        return False
    last = _last_place(other) * other_unit.factor
    if unit.dimension == "temperature":
        return abs(want - have) <= (1.0 if abs(want) < 100 else 3.0)  # an oven's 350 °F is 175 °C in every cookbook
    return abs(want - have) < last and abs(want - have) <= 0.1 * abs(want)


def _last_place(value: float) -> float:
    """Size of the last digit that a figure shows: 0.01 for 1.83, 100 for 1600."""
    digits = f"{abs(value):.6f}".rstrip("0")
    if not digits.endswith("."):
        return 10.0 ** -len(digits.split(".")[1])
    whole = digits[:-1]
    return 10.0 ** (len(whole) - len(whole.rstrip("0"))) if whole.strip("0") else 1.0


def same_value(left: Mention, right: Mention) -> bool:
    """Whether two quantities with units have a common value."""
    if len(left.units) > 1 and len(right.units) > 1 and (shared := set(left.units) & set(right.units)):
        # 度 beside degrees: Celsius, Fahrenheit or an angle, but the same on both sides
        return _common(left, right) and bool(shared)
    return any(
        _converted(value, unit, other, other_unit)
        for value, unit in left.quantities
        for other, other_unit in right.quantities
    )


def _digits(mention: Mention) -> str:
    return re.sub(r"[^0-9A-Za-z]", "", mention.text).casefold()


def _common(left: Mention, right: Mention) -> bool:
    return any(_equal(a, b) for a in left.values for b in right.values)


class _Judge:
    """One pair under judgement."""

    def __init__(self, source: str, translation: str, left: list[Mention], right: list[Mention]) -> None:
        self.source, self.translation = source, translation
        self.left, self.right = left, right
        self._dimensions: set[str] | None = None

    @property
    def dimensions(self) -> set[str]:
        """Dimensions of every unit in the translation, with or without a number."""
        if self._dimensions is None:
            units = (unit for match in _UNIT_ANYWHERE.finditer(self.translation) for unit in chinese_units(match[0]))
            self._dimensions = {unit.dimension for unit in units}
        return self._dimensions

    def matches(self, left: Mention, right: Mention) -> bool:
        """Whether the translation's number says what the source's says."""
        if left.kind == CODE or right.kind == CODE:
            return _digits(left).removeprefix("v") == _digits(right).removeprefix("v") or (
                len(left.values) == 1 and len(right.values) == 1 and _common(left, right)
            )
        if left.kind == VAGUE or right.kind == VAGUE:
            return _common(left, right)
        if left.kind == CLOCK and right.kind == CLOCK:
            return bool(left.moments & right.moments)
        if left.kind == MONTH or right.kind == MONTH:
            return left.kind == right.kind and _common(left, right)
        if CLOCK in (left.kind, right.kind):
            return self._clock_and_number(left, right)
        return self._quantity(left, right)

    @staticmethod
    def _clock_and_number(left: Mention, right: Mention) -> bool:
        clock, other = (left, right) if left.kind == CLOCK else (right, left)
        if clock is left and not clock.strict:
            return _common(left, right)
        on_the_hour = any(moment % 60 == 0 for moment in clock.moments)
        return on_the_hour and bool(clock.values) and any(_equal(clock.values[0], value) for value in other.values)

    def _quantity(self, left: Mention, right: Mention) -> bool:
        if left.quantities and right.quantities:
            if same_value(left, right):
                return True
            if left.units and right.units and not (left.loose and right.loose):
                return False
        if left.units and not left.loose and not right.quantities and left.kind == PLAIN:
            return self._unit_elsewhere(left) and _common(left, right)
        return _common(left, right)

    def _unit_elsewhere(self, left: Mention) -> bool:
        """Whether the translation has the unit somewhere: in a list, in brackets, before the number."""
        return bool({unit.dimension for unit in left.units} & self.dimensions)

    def found(self, left: Mention) -> bool:
        """Whether the translation has a number of the source."""
        if any(self.matches(left, right) for right in self.right):
            return True
        if left.kind == CODE:
            return self._code_found(left)
        if left.kind == CLOCK:  # 1:50 may be a scale, 1比50
            return len(left.values) > 1 and ":" in left.text and all(self._has(value, PLAIN) for value in left.values)
        if "/" in left.text and re.fullmatch(r"\d+/\d+", left.text):
            return all(self._has(float(part)) for part in left.text.split("/")) or self.dated(left.text)
        if left.values and left.values[0] < 0 and _FALLING.search(self.translation):
            return self._has(-left.values[0])
        if left.values == (0.0,):
            return bool(re.search("[零〇无没不]", self.translation))
        return False

    def dated(self, text: str) -> bool:
        """Whether 3/14 is a date in the translation."""
        parts = {float(part) for part in text.split("/")}
        have = {value for right in self.right if right.kind in (MONTH, DAY) for value in right.values}
        return parts <= have

    def _has(self, value: float, kind: str | None = None) -> bool:
        rights = (right for right in self.right if kind is None or right.kind == kind)
        return any(_equal(value, other) for right in rights for other in right.values)

    def _code_found(self, left: Mention) -> bool:
        if _TRANSLATED_CODES.fullmatch(left.text):
            return True
        if _digits(left) in re.sub(r"[^0-9A-Za-z]", "", self.translation).casefold():
            return True
        letters = re.sub(r"[^A-Za-z]", "", left.text)
        return 0 < len(letters) <= 2 and all(self._has(value) for value in left.values)  # Q3 is 第三季度

    def slots(self) -> Iterator[Slot]:
        """What is lost, changed or added."""
        lost = [left for left in self.left if left.strict and not self.found(left)]
        added = [right for right in self.right if right.strict and not self._explained(right)]
        for left in lost:
            right = _nearest(left, added)
            if right is not None:
                added.remove(right)
            yield _slot(left, right)
        for right in added:
            yield Slot("", right.text, f"{right.text} is not in the source")
        if not lost and not added:
            yield from self._swapped()
            yield from self._ordinals()

    def _explained(self, right: Mention) -> bool:
        if any(self.matches(left, right) for left in self.left):
            return True
        if right.parts and all(self._explained(part) for part in right.parts):
            return True
        if right.kind == CODE:
            digits = _digits(right)
            return digits in re.sub(r"[^0-9A-Za-z]", "", self.source).casefold() or (
                bool(right.values)
                and all(any(_common(left, _bare(value)) for left in self.left) for value in right.values)
            )
        if right.kind == VAGUE:
            return (
                any(left.values and _equal(left.values[0], right.values[0]) for left in self.left)
                or not self._vague_wrong()
            )
        if any(unit.factor == 1200 for unit in right.units):  # the 1990s are in the 20世纪
            years = [value for left in self.left for value in left.values]
            if any(1000 < value < 2100 and value // 100 + 1 in right.values for value in years):
                return True
        if any(_common(left, right) and self._lenient(left) for left in self.left):
            return True
        if right.kind == CLOCK and ":" in right.text:
            return all(any(_common(left, _bare(value)) for left in self.left) for value in right.values)
        if re.fullmatch(r"\d+/\d+", right.text):
            return all(any(_common(left, _bare(float(p))) for left in self.left) for p in right.text.split("/"))
        falls = bool(right.values) and right.values[0] > 0 and bool(_FALLING.search(self.translation))
        if falls and any(_common(left, _bare(-right.values[0])) for left in self.left):
            return True
        return self._free(right)

    @staticmethod
    def _lenient(left: Mention) -> bool:
        return left.kind == CODE or left.loose or (not left.strict and not left.units)

    def _vague_wrong(self) -> bool:
        """Whether the source has a vague magnitude, so that another one in the translation contradicts it."""
        return any(left.kind == VAGUE for left in self.left)

    def _free(self, right: Mention) -> bool:
        """Whether a number of the translation comes from an English word that is none."""
        if right.text[0].isascii() and right.values and right.values[0] != 1.0:
            return right.text in self.source
        values = set(right.values)
        if 1.0 in values and not right.text[:1].isascii():
            return True
        if values <= {1.0}:
            return not right.units or bool(
                re.search(r"\b(?:an?|one|single|each|per|every)\b", self.source, re.IGNORECASE)
            )
        return any(values & set(free) and pattern.search(self.source) for pattern, free in _FREE)

    def _swapped(self) -> Iterator[Slot]:
        """Find "from A to B" that came out as 从B到A."""
        source = re.search(r"\bfrom\b(.{1,40}?)\bto\b(.{1,30})", self.source)
        target = re.search("(?:从|由)(.{1,25}?)(?:到|至|降|升|增|减|提|改|变|涨|跌)(.{1,20})", self.translation)
        if not (source and target):
            return
        sides = []
        for match, mentions in ((source, self.left), (target, self.right)):
            first = [m for m in mentions if match.start(1) <= m.start < match.end(1)]
            second = [m for m in mentions if match.start(2) <= m.start < match.end(2)]
            if not first or not second:
                return
            sides.append((first[-1], second[0]))
        (a, b), (x, y) = sides
        if not self.matches(a, x) and self.matches(a, y) and self.matches(b, x):
            yield Slot(source[0].strip(), target[0], "the two ends have changed places")

    def _ordinals(self) -> Iterator[Slot]:
        """Find "the third pump" that came out as 三个泵, and "three pumps" as 第三个泵."""
        for left in self.left:
            hits = [right for right in self.right if self.matches(left, right)]
            if len(hits) != 1 or len(left.values) != 1 or left.kind or hits[0].kind or left.values[0] < 2:
                continue
            right = hits[0]
            same = sum(_common(left, other) for other in self.left)
            if same > 1:
                continue
            if left.ordinal == right.ordinal or not _ORDINAL_LOST.match(self.translation, right.end):
                continue
            if left.ordinal and not right.units:
                yield Slot(left.text, right.text, "an ordinal became a count")
            elif right.ordinal and not left.units and _plural(self.source, left):
                yield Slot(left.text, right.text, "a count became an ordinal")


def _plural(source: str, mention: Mention) -> bool:
    after = re.compile(r"\s(?:[a-z]+\s)?[a-z]{2,}s\b").match(source, mention.end)
    return bool(after) and not re.search(
        r"(?:number|no\.?|page|step|chapter|level|version|room|unit|item|line)\s$",
        source[: mention.start],
        re.IGNORECASE,
    )


def _bare(value: float) -> Mention:
    return Mention(0, 0, "", (value,))


def _nearest(left: Mention, candidates: Sequence[Mention]) -> Mention | None:
    """The unexplained number that most likely stands for a lost one: of its kind, else the first."""
    return next((right for right in candidates if right.kind == left.kind), candidates[0] if candidates else None)


def _slot(left: Mention, right: Mention | None) -> Slot:
    if right is None:
        return Slot(left.text, None, f"{left.text} is missing, or its unit is")
    if left.values and right.values and _common(left, right):
        return Slot(left.text, right.text, "same figure, another unit or time of day")
    return Slot(left.text, right.text, f"{left.text} became {right.text}")
