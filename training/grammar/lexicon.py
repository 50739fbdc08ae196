"""Words with their Chinese and their forms, read from `lexicon/*.tsv`."""

from __future__ import annotations

import csv
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

_FOLDER = Path(__file__).parent / "lexicon"
NOUNS = "part tool material product document vehicle room building device food object".split()
VERBS = "act paper trade handle activity".split()
ADJECTIVES = "state quality feeling".split()


@dataclass(frozen=True)
class Word:
    """One entry. `english` and `chinese` map a form ("", "pl", "past", "cl", …) to the text of that form."""

    english: dict[str, str] = field(default_factory=dict)
    chinese: dict[str, str] = field(default_factory=dict)

    @property
    def key(self) -> str:
        return self.english[""]


def with_article(noun: str) -> str:
    """`noun` with a or an, by its sound as far as spelling tells it."""
    vowel = noun[0].lower() in "aeiou" and not noun.lower().startswith(("uni", "use", "uti", "eu", "one"))
    silent = noun.lower().startswith(("hour", "honest", "x-ray", "lcd", "led"))
    return f"{'an' if vowel or silent else 'a'} {noun}"


def plural(noun: str) -> str:
    if noun.endswith(("s", "x", "z", "ch", "sh")):
        return noun + "es"
    if noun.endswith("y") and noun[-2] not in "aeiou":
        return noun[:-1] + "ies"
    return noun + "s"


def _verb_forms(base: str) -> dict[str, str]:
    """Regular forms; only the first word of a verb phrase is inflected ("turn on" is turned on)."""
    head, _, rest = base.partition(" ")
    rest = f" {rest}" if rest else ""
    if head.endswith("e"):
        past, ing = head + "d", head[:-1] + "ing"
    elif head.endswith("y") and head[-2] not in "aeiou":
        past, ing = head[:-1] + "ied", head + "ing"
    else:
        past, ing = head + "ed", head + "ing"
    return {"past": past + rest, "pp": past + rest, "ing": ing + rest, "s": plural(head) + rest}


def _noun(row: dict[str, str]) -> Word:
    english = {"": row["en"], "pl": row.get("pl") or plural(row["en"]), "a": with_article(row["en"])}
    return Word(english, {"": row["zh"], "cl": row.get("cl") or ""})


def _verb(row: dict[str, str]) -> Word:
    given = {form: row[form] for form in ("past", "pp", "ing", "s") if row.get(form)}
    return Word({"": row["en"], **_verb_forms(row["en"]), **given}, {"": row["zh"]})


def _adjective(row: dict[str, str]) -> Word:
    chinese = {"": row["zh_pred"], "neg": row["zh_neg"], "attr": row["zh_attr"]}
    return Word({"": row["en"], "a": with_article(row["en"])}, chinese)


def _plain(row: dict[str, str]) -> Word:
    return Word({"": row["en"], "a": with_article(row["en"])}, {"": row["zh"]})


def rows(path: Path) -> list[dict[str, str]]:
    """The rows of a tab-separated file whose first line names the columns.

    Raises:
        ValueError: a row has too many fields or lacks English or Chinese.
    """
    with path.open(encoding="utf-8", newline="") as file:
        table = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE, restval=""))
    for number, row in enumerate(table, start=2):
        if None in row or not row["en"].strip() or not (row.get("zh") or row.get("zh_pred", "")).strip():
            raise ValueError(f"{path.name}:{number}: needs English and Chinese and no more fields than the header")
    return table


@lru_cache(maxsize=1)
def lexicon() -> dict[str, list[Word]]:
    """Every kind of word, in the order of its file."""
    words = {}
    for path in sorted(_FOLDER.glob("*.tsv")):
        kind = path.stem
        make = _noun if kind in NOUNS else _verb if kind in VERBS else _adjective if kind in ADJECTIVES else _plain
        words[kind] = [make(row) for row in rows(path)]
    return words
