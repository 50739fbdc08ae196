"""The words that `negation.tsv` lists, compiled, and the clauses that they stand in.

Roles of the table: `negation` negates an English clause; `idiom` has its form but not its meaning; `lexical` may come
out as a negation in Chinese; `negative` is negative enough to say that the source has the phenomenon; `allows` lets
certain Chinese negations pass; `opposite` is an English word whose negation Chinese may say without a sign; `sign`
negates in Chinese; `mask` has such a sign and does not negate; `otherwise` is negative in Chinese without a sign, unless
the English word beside it accounts for it.
"""

from __future__ import annotations

import csv
import re
from functools import lru_cache
from pathlib import Path

_TABLE = Path(__file__).with_name("negation.tsv")
Pair = tuple[re.Pattern[str], re.Pattern[str]]


@lru_cache(maxsize=1)
def _rows() -> dict[str, list[tuple[str, str]]]:
    rows: dict[str, list[tuple[str, str]]] = {}
    with _TABLE.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE):
            rows.setdefault(row["role"], []).append((row["english"], row["chinese"]))
    return rows


def _word(pattern: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![\w-])(?:{pattern})(?!\w|-\w)", re.IGNORECASE)


@lru_cache(maxsize=16)
def english(role: str) -> re.Pattern[str]:
    """All English words of a role."""
    return _word("|".join(words for words, _ in _rows()[role] if words))


@lru_cache(maxsize=16)
def chinese(role: str) -> re.Pattern[str]:
    """All Chinese words of a role."""
    return re.compile("|".join(signs for _, signs in _rows()[role] if signs))


@lru_cache(maxsize=16)
def pairs(role: str) -> tuple[Pair, ...]:
    """The English and the Chinese of every row of a role; what is empty matches nothing."""
    return tuple((_word(words or r"\b\B"), re.compile(signs or r"\b\B")) for words, signs in _rows()[role])


def plain_english(text: str) -> str:
    """An English text of the same length without the idioms that only look negative."""
    return english("idiom").sub(lambda match: " " * len(match[0]), text)


def plain_chinese(text: str) -> str:
    """A Chinese text of the same length without the words that only look negative."""
    return chinese("mask").sub(lambda match: "〇" * len(match[0]), text)
