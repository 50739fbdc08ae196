"""Numbers: every value of the source in the translation, and no other.

Values are compared, not strings: 3.5 million is 350万, half an hour is 30分钟, and six feet are 1.83米.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from harness.checks.phenomena.changed_places import (
    comparison_turned,
    counts_exchanged,
    ends_exchanged,
    ratios_turned,
    spoken_ratios,
)
from harness.checks.phenomena.chinese_numbers import chinese_numbers, idioms
from harness.checks.phenomena.english_numbers import english_numbers
from harness.checks.phenomena.mentions import CLOCK, CODE, DAY, MONTH, PLAIN, VAGUE, Mention
from harness.checks.phenomena.units import TABLES, Unit, chinese_units
from harness.checks.phenomena.verdict import Slot, Verdict

_UNIT_ANYWHERE = re.compile(TABLES.chinese_pattern)
# What says "minus" of a change, a debt or a height: 下降3% is -3%, but 降至3% is not.
_FALLING = re.compile("[降减跌少缩](?![至到为])|[亏损负欠]|赤字|逆差|透支|以下|低于海|海平面下")
_PAIRS = re.compile(
    r"\b(?:both|two|every\sother|twice|couple|pairs?|doubl\w*|half|halve[sd]?|trebl\w*|tripl\w*|quadrupl\w*)\b",
    re.IGNORECASE,
)
_CHINESE_PAIRS = re.compile("[双两俩二倍对番几半隔副]")
_SECOND = re.compile("第二|[二两次另又再下后乙亚Ⅱ]|II|(?<!\\d)2(?!\\d)")
_REDUCED = re.compile(r"\b(?:off|discount\w*|reduc\w+|cheaper|sav\w+|less|markdown|cut\w*)\b", re.IGNORECASE)
_ROMAN_SIGNS = str.maketrans(
    dict(zip("ⅠⅡⅢⅣⅤⅥⅦⅧⅨⅩ", (" I ", " II ", " III ", " IV ", " V ", " VI ", " VII ", " VIII ", " IX ", " X ")))
)
_ONE = re.compile(r"\b(?:an?|one|single|each|per|every|the\s(?:dollar|euro|pound|yen))\b", re.IGNORECASE)
_HOUR = 3600.0  # "a minute" and "a second" are idioms as often as not
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
        (r"\b(?:thirds?|tri\w+|ternary|three\w*|thrice|sandwich\w*|cubic)\b", (3.0,)),
        (
            r"\b(?:quarter\w*|quadr\w+|squares?|four\w*|around|everywhere|surround\w*|seasons?|fourth\w*|"
            r"directions?)\b",
            (4.0, 15.0, 3.0),
        ),
        (r"\bAA\b", (5.0,)),  # sizes of batteries: 5号, 7号
        (r"\bAAA\b", (7.0,)),
        (r"\b(?:penta\w+|hardware|metals?)\b", (5.0,)),
        (r"\b(?:hexa\w*)\b", (6.0, 16.0)),
        (r"\b(?:octa\w*)\b", (8.0,)),
        (r"\b(?:decima\w*|decades?|tens?|cross\w*|very|extremely|highly|teens?|teenage\w*)\b", (10.0,)),
        (r"\b(?:century|centuries|percent\w*|hundreds?|fully|completely|totally|absolutely|entire\w*)\b", (100.0,)),
        (r"\b(?:week\w*|biweekly)\b", (7.0, 1.0, 2.0)),
        (r"\b(?:fortnight\w*)\b", (2.0, 14.0)),
        (r"\b(?:midnight|noon|midday)\b", (12.0, 0.0, 24.0)),
        (r"\b(?:daily|day|24/7|clock)\b", (24.0, 1.0)),
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
# A runner's 9秒98 is 9.98 seconds.
_SPORTS_TIME = re.compile(r"(\d+)秒(\d{1,2})(?!\d)")
_RELATIVE = 1e-9


def check_numbers(source: str, translation: str) -> Verdict:
    """Judge the numbers of a translation; markup has been blanked in both texts."""
    if "廿" in translation or "卅" in translation:
        translation = translation.replace("廿", "二十").replace("卅", "三十")
    translation = _SPORTS_TIME.sub(r"\1.\2秒", translation)
    left, right = english_numbers(source), chinese_numbers(translation)
    if not left and not any(mention.strict for mention in right) and not _PAIRS.search(source):
        return Verdict.of((), applies=False)
    if _REDUCED.search(source):  # 八折 is 20 % off, and 80 % of the price
        right = [replace(m, readings=m.readings[:1]) if _is_discount(m) else m for m in right]
    left, right = _aligned(left, right)
    judge = _Judge(source, translation, left, right)
    return Verdict.of(judge.slots(), applies=judge.applies())


def _is_discount(mention: Mention) -> bool:
    return mention.text.endswith("折")


def _aligned(left: Sequence[Mention], right: Sequence[Mention]) -> tuple[list[Mention], list[Mention]]:
    """Take sums apart whose total is not on the other side: 2 hours 15 minutes may be compared part by part."""
    return _taken_apart(left, right), _taken_apart(right, left)


def _taken_apart(mentions: Sequence[Mention], others: Sequence[Mention]) -> list[Mention]:
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
    if unit.dimension == "data" and have:
        return any(math.isclose(want / have, 1.024**power, rel_tol=1e-9) for power in range(-3, 4))
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


def _spelled(code: Mention) -> bool:
    """Whether a code's digits count and not its value: 0042, version 3.10."""
    return code.kind == CODE and ((len(code.text) > 2 and code.text[0] == "0") or "." in code.text)


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
                len(left.values) == 1
                and len(right.values) == 1
                and _common(left, right)
                and not (_spelled(left) or left.kind == right.kind)
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
        if left.values == (2.0,) and left.ordinal:
            return bool(_SECOND.search(self.translation))
        if left.text.isupper() and not left.text.strip("IVX"):
            return bool(re.search(rf"(?<![A-Za-z]){left.text}(?![A-Za-z])", self.translation.translate(_ROMAN_SIGNS)))
        degrees = any(unit.dimension == "temperature" for unit in left.units)
        if left.values and left.values[0] < 0 and not degrees and _FALLING.search(self.translation):
            return self._has(-left.values[0])
        if left.values == (12.0,) and any(right.kind == VAGUE and right.values == (10.0,) for right in self.right):
            return True  # more than a dozen, 十几
        if left.values == (100.0,) and left.units and re.search("百分之?百|[全纯]|完全", self.translation):
            return True
        if len(left.values) == 1 and 2 <= left.values[0] <= 10 and not left.units:
            sign = "  二三四五六七八九十"[int(left.values[0])]
            if any(sign in idiom or (sign == "二" and "两" in idiom) for idiom in idioms(self.translation)):
                return True  # four seasons, 四季
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

    def applies(self) -> bool:
        """Whether there is a number to judge: an English one of weight, or one that the translation has as well."""
        if any(left.strict or left.kind for left in self.left) or any(right.strict for right in self.right):
            return True
        if any(self.matches(left, right) for left in self.left for right in self.right):
            return True
        return bool(_PAIRS.search(self.source) and _CHINESE_PAIRS.search(self.translation))

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
            yield from self._spans()
            yield from self._vague_changed()
            yield from self._noon_changed()
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
        couples = (left for left in self.left if left.kind == VAGUE and "couple" in left.text.lower())
        if right.values and any(_equal(2 * left.values[0], right.values[0]) for left in couples):
            return True
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
        degrees = any(unit.dimension == "temperature" for unit in right.units)
        falls = bool(right.values) and right.values[0] > 0 and not degrees and bool(_FALLING.search(self.translation))
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
        if right.ordinal and right.values and right.values[0] > 2:
            return False
        if "24/7" in self.source and set(right.values) & {24.0, 7.0}:
            return True
        if right.text[0].isascii() and right.values and right.values[0] != 1.0:
            return right.text in self.source
        values = set(right.values)
        if 1.0 in values and not right.text[:1].isascii():
            return True
        if values <= {1.0}:
            return not right.units or bool(_ONE.search(self.source))
        return any(values & set(free) and pattern.search(self.source) for pattern, free in _FREE)

    def _swapped(self) -> Iterator[Slot]:
        """Find values that have changed places."""
        texts, sides = (self.source, self.translation), (self.left, self.right)
        yield from ends_exchanged(texts, sides, self.matches)
        yield from ratios_turned(*texts)
        yield from spoken_ratios(*texts)
        yield from comparison_turned(texts, sides, self.matches)
        if len(self.left) > 1:
            yield from counts_exchanged(texts, sides, self.matches)

    def _spans(self) -> Iterator[Slot]:
        """Find "an hour" that came out as 一天: neither has to stand, but one may not become the other."""
        for left in self.left:
            if left.strict or left.values != (1.0,):
                continue
            if not any(unit.dimension == "span" or unit.factor >= _HOUR for unit in left.units):
                continue
            for right in self.right:
                if right.values != (1.0,) or not right.units or right.kind:
                    continue
                spans = {unit.dimension for unit in (*left.units, *right.units)} <= {"time", "span"}
                if spans and not any(self.matches(other, right) for other in self.left):
                    yield Slot(left.text, right.text, f"{left.text} became {right.text}")

    def _noon_changed(self) -> Iterator[Slot]:
        """Find "midnight" that came out as 中午."""
        for left in self.left:
            if left.kind == CLOCK and not left.strict and not self.found(left):
                for right in self.right:
                    if right.kind == CLOCK and not right.strict and not self._said(right):
                        yield Slot(left.text, right.text, f"{left.text} became {right.text}")

    def _said(self, right: Mention) -> bool:
        return any(self.matches(left, right) for left in self.left)

    def _vague_changed(self) -> Iterator[Slot]:
        """Find "hundreds" that came out as 数千; 许多 and the like say neither."""
        lost = [left for left in self.left if left.kind == VAGUE and not self.found(left)]
        added = [
            right
            for right in self.right
            if right.kind == VAGUE and not right.strict and not any(self.matches(left, right) for left in self.left)
        ]
        if lost and added:
            yield Slot(lost[0].text, added[0].text, f"{lost[0].text} became {added[0].text}")

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
