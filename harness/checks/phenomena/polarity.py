"""Words that come in opposites: correct and incorrect, lock and unlock, many and few.

A concept's polarity is the sign of the word that stands for it times the signs of what negates it directly. Where a
concept of `polarity.tsv` occurs exactly once on each side, both polarities must agree: "incorrect" is 不正确 or 错误,
and "not impossible" is 可能; 正确 and 不可能 would say the opposite. Other wordings say nothing and are left alone.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from harness.checks.phenomena.verdict import Slot

_TABLE = Path(__file__).parent / "polarity.tsv"
_NOT_ENGLISH = re.compile(
    r"\b(?:not|never|no|nobody|nothing|none|cannot|hardly|without|neither|nor|don['’]t|doesn['’]t|didn['’]t|isn['’]t|aren['’]t|wasn['’]t|"
    r"weren['’]t|won['’]t|can['’]t|couldn['’]t|shouldn['’]t|mustn['’]t|wouldn['’]t|hasn['’]t|haven['’]t|hadn['’]t)\b",
    re.IGNORECASE,
)
# What may stand between a negation and the word that it negates: "is not yet completely safe".
_BETWEEN = re.compile(
    r"\s*(?:(?:be|been|being|is|was|are|were|has|have|had|do|does|did|will|can|yet|completely|very|entirely|fully|always|"
    r"really|considered|that|so|quite|at|all|a|an|any|the|necessarily|to|too|it|this|ever|always|also|still)\s+)*",
    re.IGNORECASE,
)
_NOT_CHINESE = re.compile("(?:不|没有|没|未|非|无|勿|别|莫)")
_CHAIN = re.compile(f"(?:{_NOT_CHINESE.pattern}(?:是|太|很|大|再|会|要|够|怎么|必|可|那么|完全|总|都|能|被)?)+$")


@dataclass(frozen=True)
class Concept:
    """The two words of a pair of opposites, on both sides."""

    name: str
    english: tuple[tuple[re.Pattern[str], int], ...]
    chinese: tuple[tuple[re.Pattern[str], int], ...]
    unless: re.Pattern[str] | None


@lru_cache(maxsize=1)
def _concepts() -> tuple[Concept, ...]:
    with _TABLE.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t", restval=""))
    return tuple(
        Concept(
            row["concept"],
            tuple(
                (re.compile(rf"(?<![-\w])(?:{row[key]})(?![-\w])", re.IGNORECASE), sign)
                for key, sign in (("en_negative", -1), ("en_positive", 1))
                if row[key]
            ),
            tuple((re.compile(row[key]), sign) for key, sign in (("zh_negative", -1), ("zh_positive", 1)) if row[key]),
            re.compile(row["unless"], re.IGNORECASE) if row["unless"] else None,
        )
        for row in rows
    )


@lru_cache(maxsize=1)
def _any_concept() -> re.Pattern[str]:
    """Whether a text has any of them at all: most have none, and thirty searches cost more than one."""
    words = (pattern.pattern for concept in _concepts() for pattern, _ in concept.english)
    return re.compile("|".join(words), re.IGNORECASE)


def reversed_concept_slots(source: str, translation: str) -> Iterator[Slot]:
    """A slot for every concept that the translation says the other way round."""
    if not _any_concept().search(source):
        return
    for concept in _concepts():
        if concept.unless and concept.unless.search(source):
            continue
        word, wanted = _polarity(concept.english, source, _english_negations)
        if word is None:
            continue
        sign, found = _polarity(concept.chinese, translation, _chinese_negations)
        if sign is not None and found != wanted:
            yield Slot(word, sign, "says the opposite")


def has_negative_concept(source: str) -> bool:
    """Whether a text has a word that is negative by itself: incorrect, few, forget."""
    if not _any_concept().search(source):
        return False
    return any(pattern.search(source) for concept in _concepts() for pattern, sign in concept.english if sign < 0)


def _polarity(patterns, text: str, negations) -> tuple[str | None, int]:
    """The one occurrence of a concept and its polarity.

    None where it occurs more than once, not at all, or under a negation that may belong to another word.
    """
    found: list[tuple[int, int, str, int]] = []
    for pattern, sign in patterns:
        for match in pattern.finditer(text):
            if not any(start <= match.start() < end for start, end, _, _ in found):
                found.append((match.start(), match.end(), match[0], sign))
    if len(found) != 1:
        return None, 0
    start, _, word, sign = found[0]
    count = negations(text[:start])
    if count is None:
        return None, 0
    return word, -sign if count % 2 else sign


def _english_negations(before: str) -> int | None:
    clause = re.split(r"[,;:.!?]", before)[-1]
    found = list(_NOT_ENGLISH.finditer(clause))
    if not found:
        return 0
    return len(found) if _BETWEEN.fullmatch(clause, found[-1].end()) else None


def _chinese_negations(before: str) -> int:
    chain = _CHAIN.search(before)
    return len(_NOT_CHINESE.findall(chain[0])) if chain else 0
