"""Sentence patterns with slots, read from `templates/*.tsv`, and how they are filled."""

from __future__ import annotations

import hashlib
import itertools
import re
from collections import Counter
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from random import Random

from training.grammar.copied import COPIED
from training.grammar.lexicon import Word, lexicon, rows
from training.grammar.people import held_out_name, person
from training.grammar.quantities import QUANTITIES

_FOLDER = Path(__file__).parent / "templates"
_SLOT = re.compile(r"\{([a-z_0-9]+)(?::([a-z]+))?(?:\.([a-z]+))?\}")
_NAMES = {"person", "city", "country", "company", "given", "family", "chinese", "language", "month", "weekday"}


@dataclass(frozen=True)
class Template:
    """One pattern. `tags` say what it exercises; `neg` and `aff` mark the halves of a negation twin."""

    id: str
    tags: tuple[str, ...]
    english: str
    chinese: str


@dataclass(frozen=True)
class Slot:
    """What filled a slot: its kind, group ("number", "name", "copied" or "word") and both texts."""

    kind: str
    group: str
    english: str
    chinese: str


@dataclass(frozen=True)
class Sentence:
    english: str
    chinese: str
    tags: tuple[str, ...]
    slots: tuple[Slot, ...]
    template: str


@lru_cache(maxsize=1)
def split() -> tuple[list[Template], list[Template]]:
    """Patterns for training and held-out patterns.

    One in ten is a candidate, by a hash of its English side; it is held out if training's patterns still hold each of
    its words at least three times: what is asked of the model is a new sentence, not a word it hardly saw.
    """
    drawn = [is_drawn(template.english, one_in=10) for template in templates()]
    training = [template for template, candidate in zip(templates(), drawn) if not candidate]
    known = Counter(word for template in training for word in _words(template))
    known.update({word: _KNOWN for english, _ in phrases() for word in _WORD.findall(english.lower())})
    held_out = []
    for template in itertools.compress(templates(), drawn):
        kept = all(known[word] >= _KNOWN for word in _words(template))
        (held_out if kept else training).append(template)
    return training, held_out


def is_drawn(text: str, one_in: int) -> bool:
    """Whether a text is one of those drawn to be held out: by its hash, so that the draw needs no list."""
    return int(hashlib.sha256(text.encode()).hexdigest(), 16) % one_in == 0


_WORD = re.compile(r"[a-z]+(?:'[a-z]+)?")
_KNOWN = 3


def _words(template: Template) -> set[str]:
    return set(_WORD.findall(_SLOT.sub(" ", template.english).lower()))


@lru_cache(maxsize=1)
def templates() -> tuple[Template, ...]:
    """Every pattern of every file, checked: slots of both sides agree and their kinds exist.

    Raises:
        ValueError: a pattern whose sides disagree, or with an unknown kind of slot.
    """
    found = []
    for path in sorted(_FOLDER.glob("*.tsv")):
        if path.stem == "phrases":
            continue
        for number, row in enumerate(rows(path), start=2):
            tags = tuple(tag for tag in row["tags"].split(",") if tag)
            template = Template(f"{path.stem}-{number}", tags, row["en"].strip(), row["zh"].strip())
            _check(template)
            found.append(template)
    return tuple(found)


def phrases() -> list[tuple[str, str]]:
    """Fixed phrases without slots."""
    return [(row["en"], row["zh"]) for row in rows(_FOLDER / "phrases.tsv")]


def _check(template: Template) -> None:
    kinds = {label: kind or label for label, kind, _ in _SLOT.findall(template.english)}
    chinese = {label for label, _, _ in _SLOT.findall(template.chinese)}
    if set(kinds) != chinese:
        raise ValueError(f"{template.id}: slots differ between the sides: {sorted(set(kinds) ^ chinese)}")
    unknown = {kind for kind in kinds.values() if not _known(kind)}
    if unknown:
        raise ValueError(f"{template.id}: no such kind of slot: {', '.join(sorted(unknown))}")
    forms = [("english", label, form) for label, _, form in _SLOT.findall(template.english) if form]
    forms += [("chinese", label, form) for label, _, form in _SLOT.findall(template.chinese) if form]
    for side, label, form in forms:
        if any(form not in getattr(word, side) for word in lexicon().get(kinds[label], [Word()])):
            raise ValueError(f"{template.id}: {kinds[label]} has no form {form!r} in {side.capitalize()}")


def _known(kind: str) -> bool:
    return kind in QUANTITIES or kind in COPIED or kind == "person" or kind in lexicon()


def _fill(kind: str, rng: Random, held_out: bool) -> Word:
    if kind in QUANTITIES or kind in COPIED:
        english, chinese = (QUANTITIES.get(kind) or COPIED[kind])(rng)
        return Word({"": english}, {"": chinese})
    if kind == "person":
        return held_out_name(rng) if held_out else person(rng)
    return rng.choice(lexicon()[kind])


def _group(kind: str) -> str:
    if kind in QUANTITIES:
        return "number"
    if kind in COPIED:
        return "copied"
    return "name" if kind in _NAMES else "word"


def fill(template: Template, rng: Random, held_out_names: bool = False) -> Sentence:
    """A sentence of this pattern. With `held_out_names`, persons are full names that training never pairs."""
    words: dict[str, Word] = {}
    slots = []
    for label, kind, _ in _SLOT.findall(template.english):
        if label in words:
            continue
        kind = kind or label
        taken = {word.key for word in words.values()}
        words[label] = _distinct(kind, rng, held_out_names, taken)
        slots.append(Slot(kind, _group(kind), words[label].english[""], words[label].chinese[""]))
    english = _SLOT.sub(lambda m: words[m[1]].english[m[3] or ""], template.english)
    chinese = _SLOT.sub(lambda m: words[m[1]].chinese.get(m[3] or "", words[m[1]].chinese[""]), template.chinese)
    return Sentence(tidy_english(english), chinese, template.tags, tuple(slots), template.id)


def _distinct(kind: str, rng: Random, held_out: bool, taken: set[str]) -> Word:
    for _ in range(20):
        word = _fill(kind, rng, held_out)
        if word.key not in taken:
            break
    return word


_VERBATIM_START = re.compile(r"^(\{|%|\$|<|https?:|[a-z0-9_-]+\.[a-z]{2,4}\b|[\w.]+@)")


def tidy_english(text: str) -> str:
    """First letter upper case (unless it is copied text), and one full stop where an abbreviation ends a sentence."""
    text = re.sub(r"([ap]\.m\.)\.(?= |$)", r"\1", text)
    return text if _VERBATIM_START.match(text) else text[0].upper() + text[1:]
