"""Names of persons: given names, full names and Chinese names.

A transliteration cannot be guessed from an unseen name, so what is held out of training is the pairing: one in ten
combinations of given and family name never occurs there, although each of its halves does.
"""

from __future__ import annotations

import zlib
from random import Random

from training.grammar.lexicon import Word, lexicon


def _is_held_out(given: Word, family: Word) -> bool:
    return zlib.crc32(f"{given.key} {family.key}".encode()) % 10 == 0


def _full(given: Word, family: Word) -> Word:
    return Word({"": f"{given.key} {family.key}"}, {"": f"{given.chinese['']}·{family.chinese['']}"})


def person(rng: Random) -> Word:
    """A given name, a full name or a Chinese name, as training sees them."""
    words = lexicon()
    draw = rng.random()
    if draw < 0.55:
        return rng.choice(words["given"])
    if draw < 0.72:
        return rng.choice(words["chinese"])
    while True:
        given, family = rng.choice(words["given"]), rng.choice(words["family"])
        if not _is_held_out(given, family):
            return _full(given, family)


def held_out_name(rng: Random) -> Word:
    """A full name whose combination training never sees."""
    words = lexicon()
    while True:
        given, family = rng.choice(words["given"]), rng.choice(words["family"])
        if _is_held_out(given, family):
            return _full(given, family)
