"""Constructions with a rule of their own: unless, no longer, not until; the table is `constructions.tsv`.

`english` finds the construction, `sound` what every sound translation has, `unsound` (where given) what an unsound one
says instead. A translation with neither is left to the other checks.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from harness.checks.phenomena.verdict import Slot

_TABLE = Path(__file__).with_name("constructions.tsv")


@lru_cache(maxsize=1)
def _rules() -> dict[str, list[tuple[re.Pattern[str], re.Pattern[str], re.Pattern[str], str]]]:
    rules: dict[str, list] = {}
    with _TABLE.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE):
            patterns = (re.compile(row["english"], re.IGNORECASE), re.compile(row["sound"]), re.compile(row["unsound"]))
            rules.setdefault(row["phenomenon"], []).append((*patterns, row["problem"]))
    return rules


def broken_constructions(phenomenon: str, source: str, translation: str) -> Iterator[Slot]:
    """A slot for every construction of this phenomenon that the translation gets wrong."""
    for english, sound, unsound, problem in _rules()[phenomenon]:
        match = english.search(source)
        if match and not sound.search(translation) and (hit := unsound.search(translation)):
            yield Slot(match[0].strip(), hit[0] or None, problem)
