"""Numbers that are all there and stand in each other's place: from 5 to 8, 3:1, 14 chairs and 6 tables."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path

from harness.checks.phenomena.chinese_numbers import numeral_values
from harness.checks.phenomena.mentions import Mention
from harness.checks.phenomena.verdict import Slot

Matches = Callable[[Mention, Mention], bool]
_FROM_TO = re.compile(r"\bfrom\b(.{1,40}?)\bto\b(.{1,30})")
_CHINESE_FROM_TO = re.compile("(?:从|由)(.{1,25}?)(?:到|至|降|升|增|减|提|改|变|涨|跌)(.{1,20})")
_RATIO = re.compile(r"(?<![\w:.,/-])(\d{1,3})(?:\s?[:–-]\s?|\sto\s)(\d{1,3})(?![\w:.,/-]\d|\d|-|:)")
_SMALL = r"(\d{1,3}|[一二三四五六七八九十]{1,3})"
_CHINESE_RATIO = re.compile(rf"(?<![\d:.]){_SMALL}\s?(?:[:比–-]|对)\s?{_SMALL}")
_FIGURES = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_SPOKEN_RATIO = re.compile(rf"\b({'|'.join(_FIGURES)})\s(?:to|-to-)\s({'|'.join(_FIGURES)})\b", re.IGNORECASE)
_COMPARISONS = (
    (re.compile(r"\b(?:up\sfrom|higher\sthan|greater\sthan|more\sthan|above|over|larger\sthan)\b"),
     re.compile("高于|大于|多于|超过|超出")),
    (re.compile(r"\b(?:down\sfrom|lower\sthan|less\sthan|fewer\sthan|below|under|smaller\sthan)\b"),
     re.compile("低于|小于|少于|不足|不到")),
)  # fmt: skip
# The word before a number that it counts: chapter 12, page 5.
_NUMBERED = re.compile(r"\b([A-Za-z]+)\s(?:[Nn]o\.\s?|number\s)?$")
# The word behind a number that says what is counted: "14 chairs", "$20 for adults", "three red apples".
_COUNTED = re.compile(r"\s(?:(?:for|of|per|large|small|new|old|big|fresh|clean|hot|cold)\s)*([a-z]+)")


def ends_exchanged(texts: tuple[str, str], sides: tuple[list[Mention], list[Mention]], same: Matches) -> Iterator[Slot]:
    """Find "from A to B" that came out as 从B到A."""
    source, target = _FROM_TO.search(texts[0]), _CHINESE_FROM_TO.search(texts[1])
    if not (source and target):
        return
    ends = []
    for match, mentions in zip((source, target), sides):
        first = [m for m in mentions if match.start(1) <= m.start < match.end(1)]
        second = [m for m in mentions if match.start(2) <= m.start < match.end(2)]
        if not first or not second:
            return
        ends.append((first[-1], second[0]))
    (a, b), (x, y) = ends
    if not same(a, x) and same(a, y) and same(b, x):
        yield Slot(source[0].strip(), target[0], "the two ends have changed places")


def ratios_turned(source: str, translation: str) -> Iterator[Slot]:
    """Find 3:1 that came out as 1:3 or 一比三."""
    for match in _RATIO.finditer(source):
        a, b = float(match[1]), float(match[2])
        have = [(_value(m[1]), _value(m[2]), m[0]) for m in _CHINESE_RATIO.finditer(translation)]
        if a != b and (a, b) not in [pair[:2] for pair in have]:
            for x, y, written in have:
                if (x, y) == (b, a):
                    yield Slot(match[0], written, "the two numbers have changed places")


def spoken_ratios(source: str, translation: str) -> Iterator[Slot]:
    """Find "two to one" that came out as 三比一; a number in words may be left out, so nothing else sees it."""
    for match in _SPOKEN_RATIO.finditer(source):
        have = [(_value(m[1]), _value(m[2]), m[0]) for m in _CHINESE_RATIO.finditer(translation) if "比" in m[0]]
        want = tuple(float(_FIGURES.index(word.lower())) for word in match.groups())
        if have and want not in [pair[:2] for pair in have]:
            yield Slot(match[0], have[0][2], f"{match[0]} became {have[0][2]}")


def comparison_turned(
    texts: tuple[str, str], sides: tuple[list[Mention], list[Mention]], same: Matches
) -> Iterator[Slot]:
    """Find "4.1 percent, up from 3.9" that came out as 3.9%，高于4.1%."""
    left, right = sides
    if len(left) != 2 or len(right) != 2:
        return
    (a, b), (x, y) = left, right
    english, chinese = texts[0][a.end : b.start], texts[1][x.end : y.start]
    for more, higher in _COMPARISONS:
        if not (more.search(english) and higher.search(chinese)) or re.search("[从由]", texts[1][: x.start]):
            continue
        if not same(a, x) and same(a, y) and same(b, x):
            yield Slot(f"{a.text}{english}{b.text}", f"{x.text}{chinese}{y.text}", "the two have changed places")


def _value(text: str) -> float:
    return float(text) if text.isdigit() else numeral_values(text)[0]


@lru_cache(maxsize=1)
def _things() -> dict[str, re.Pattern[str]]:
    """What finds a counted thing in Chinese, by its English word in singular and plural."""
    found = {}
    for line in Path(__file__).with_name("counted.tsv").read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            english, chinese = line.split("\t")
            plural = english[:-1] + "ies" if re.search("[^aeiou]y$", english) else english + "s"
            plural = english + "es" if re.search("(?:s|x|ch|sh|o)$", english) else plural
            found[english] = found[plural] = re.compile(chinese)
    return found


def counts_exchanged(
    texts: tuple[str, str], sides: tuple[list[Mention], list[Mention]], same: Matches
) -> Iterator[Slot]:
    """Find "14 chairs and 6 tables" that came out as 6把椅子和14张桌子.

    Only where both things and both numbers occur once in the translation and alternate, so that it is certain which
    number belongs to which thing: their orders must then agree.
    """
    counted = list(_counted(*texts, *sides, same))
    for i, (one, number, thing) in enumerate(counted):
        for other, other_number, other_thing in counted[i + 1 :]:
            if one.values == other.values or thing == other_thing or number == other_number:
                continue
            if (number < other_number) == (thing < other_thing) or not _alternate(
                (number, other_number), (thing, other_thing)
            ):
                continue
            written = f"{one.text.strip()} … {other.text.strip()}"
            yield Slot(written, None, "the two numbers have changed places")


def _counted(
    source: str, translation: str, left: list[Mention], right: list[Mention], same: Matches
) -> Iterator[tuple[Mention, int, int]]:
    """Numbers with the place of their value and of what they count in the translation, where both are unique."""
    for mention in left:
        if not mention.values or mention.values[0] < 2 or mention.kind:
            continue
        number = [other for other in right if same(mention, other)]
        if len(number) != 1 or len({m.values for m in left if same(m, number[0])}) != 1:
            continue
        if (thing := _thing(source, mention)) is None:
            continue
        places = [match.start() for match in thing.finditer(translation)]
        if len(places) == 1:
            yield mention, number[0].start, places[0]


def _thing(source: str, mention: Mention) -> re.Pattern[str] | None:
    """What finds the thing that a number counts: its unit, the word behind it, or the one before it."""
    words = (
        re.search(r"([a-z]+)$", mention.text) if mention.units else None,
        _COUNTED.match(source, mention.end),
        _NUMBERED.search(source, 0, mention.start),
    )
    return next((_things()[word[1].lower()] for word in words if word and word[1].lower() in _things()), None)


def _alternate(numbers: tuple[int, int], things: tuple[int, int]) -> bool:
    """Whether number and thing take turns: number, thing, number, thing or the other way round."""
    order = [kind for _, kind in sorted([*((n, 0) for n in numbers), *((t, 1) for t in things)])]
    return order in ([0, 1, 0, 1], [1, 0, 1, 0])
