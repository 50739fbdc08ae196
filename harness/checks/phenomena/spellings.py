"""Ways to say a number that are not a number's own grammar: one in five, nine out of ten, 三成, tens of thousands."""

from __future__ import annotations

import re
from collections.abc import Iterator

from harness.checks.phenomena.verdict import Slot

_SMALL = "one two three four five six seven eight nine ten".split()  # noqa: SIM905, a list of words
_WORD = {word: number for number, word in enumerate(_SMALL, start=1)}
_ANY = "|".join(_SMALL)
_OUT_OF = re.compile(rf"\b({_ANY}|\d+) (?:out of|in) (?:every )?({_ANY}|\d+)\b(?! (?:the|a|an)\b)", re.IGNORECASE)
_AND_A_HALF = re.compile(rf"\b({_ANY}|\d+) and a half (million|billion|thousand)\b", re.IGNORECASE)
_TENTHS = re.compile("([一二两三四五六七八九])成(?![为了功立分就长交果本熟都]|员(?!工))([一二三四五六七八九半])?")
_HAN_DIGIT = {sign: number for number, sign in enumerate("一二三四五六七八九", start=1)} | {"两": 2, "半": 5}
_DECADE = re.compile(r"\b(?:a|one) decade\b", re.IGNORECASE)
_DECADES_OF_AGE = re.compile(r"\b(?:his|her|their|my|your|our) (?:early |mid-?|late )?(\w+ties)\b", re.IGNORECASE)
_AGE = re.compile("[二三四五六七八九]十(?:多|来|几|出头)?岁|[二三四五六七八九]十(?:出头|好几)")
_AROUND_THE_CLOCK = re.compile(r"\b24/7\b")
_EVERY_HOUR = re.compile(
    "(?:每周|一周)?(?:7|七)(?:天|×|x|乘)[、，,]?(?:每天|全天)?[x×]?(?:24|二十四)(?:小时)?|(?:24|二十四)小时|7[×x*]24"
)


def plainly_said(source: str, translation: str) -> tuple[str, str]:
    """Both texts with such phrases written as figures, where the other side may have a figure."""
    source = _AND_A_HALF.sub(lambda match: f"{_value(match[1]) + 0.5:g} {match[2]}", source)
    source = _OUT_OF.sub(_share, source)
    source = _DECADE.sub("10 years", source)
    translation = _TENTHS.sub(_percent, translation)
    if (age := _DECADES_OF_AGE.search(source)) and _same_decade(age[1], translation):
        source, translation = _DECADES_OF_AGE.sub(" ", source), _AGE.sub("", translation)
    if _AROUND_THE_CLOCK.search(source):
        source, translation = _AROUND_THE_CLOCK.sub(" ", source), _EVERY_HOUR.sub("", translation)
    return source, translation


def _same_decade(english: str, translation: str) -> bool:
    """Whether the only decade of age in the translation is this one."""
    tens = "twenties thirties forties fifties sixties seventies eighties nineties".split()  # noqa: SIM905
    found = _AGE.search(translation)
    return bool(found) and english.lower() in tens and "二三四五六七八九"[tens.index(english.lower())] == found[0][0]


_ROMAN = ("I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX", "X")
_WAR = re.compile(r"\bWorld War (II|I)\b")
_WAR_IN_CHINESE = re.compile("第?([一二])(?:次世界大)?战")
_MONARCH = re.compile(r"\b[A-Z][a-z]+ (VIII|VII|VI|IV|IX|III|II|V|X)\b")
_REIGN = re.compile("([一二三四五六七八九十])世(?!纪|界)")


def broken_roman(source: str, translation: str) -> Iterator[Slot]:
    """World War II that became the first, Henry VIII that became the seventh."""
    for english, chinese in ((_WAR, _WAR_IN_CHINESE), (_MONARCH, _REIGN)):
        match, other = english.search(source), chinese.search(translation)
        if match and other and other[1] != "一二三四五六七八九十"[_ROMAN.index(match[1])]:
            yield Slot(match[0], other[0], f"{match[0]} became {other[0]}")


def _value(word: str) -> float:
    return float(_WORD.get(word.lower(), 0) or word)


def _share(match: re.Match[str]) -> str:
    part, whole = _value(match[1]), _value(match[2])
    return f"{100 * part / whole:g}%" if 0 < part < whole and whole in (2, 3, 4, 5, 8, 10, 20, 100, 1000) else match[0]


def _percent(match: re.Match[str]) -> str:
    return f"{10 * _HAN_DIGIT[match[1]] + (_HAN_DIGIT[match[2]] if match[2] else 0)}%"
