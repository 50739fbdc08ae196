"""The training text: help texts split into training, development and held-out parts, and text for the tokenizer."""

from __future__ import annotations

import hashlib
import itertools
import json
import unicodedata
from pathlib import Path

from training import debian
from training.grammar.generate import held_out_sentences, training_sentences

HELD_OUT, DEVELOPMENT = 1000, 500
TOKENIZER_SENTENCES = 150_000
Pair = tuple[str, str]


def build(work: Path) -> None:
    """Write help.{train,dev,heldout}.jsonl, grammar.dev.jsonl and tokenizer.txt below `work`.

    The split is by a hash of the English text, so that it does not change when packages gain or lose texts.
    """
    pairs = debian.pairs(work)
    pairs.sort(key=lambda pair: hashlib.sha256(pair[0].encode()).hexdigest())
    held_out = [pair for pair in pairs if len(pair[0].split()) > 2][: HELD_OUT + DEVELOPMENT]
    kept_out = {_plain(english) for english, _ in held_out}
    train = [pair for pair in pairs if _plain(pair[0]) not in kept_out]
    write_pairs(work / "help.heldout.jsonl", held_out[:HELD_OUT])
    write_pairs(work / "help.dev.jsonl", held_out[HELD_OUT:])
    write_pairs(work / "help.train.jsonl", train)
    development = held_out_sentences(seed=5, count=DEVELOPMENT)
    write_pairs(work / "grammar.dev.jsonl", [(sentence.english, sentence.chinese) for sentence in development])
    with (work / "tokenizer.txt").open("w", encoding="utf-8") as file:
        for english, chinese in train:
            file.write(f"{unicodedata.normalize('NFKC', english)}\n{chinese}\n")
        for sentence in itertools.islice(training_sentences(seed=1), TOKENIZER_SENTENCES):
            file.write(f"{sentence.english}\n{sentence.chinese}\n")
    words = sum(len(english.split()) for english, _ in train)
    print(f"{len(train)} help pairs for training ({words} English words), {len(held_out)} kept out")


def _plain(text: str) -> str:
    return "".join(letter for letter in text.lower() if letter.isalnum())


def write_pairs(path: Path, pairs: list[Pair]) -> None:
    lines = (json.dumps({"source": en, "reference": zh}, ensure_ascii=False) for en, zh in pairs)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def read_pairs(path: Path) -> list[Pair]:
    """Pairs of a file that `build` or `sentences` wrote."""
    rows = map(json.loads, path.read_text(encoding="utf-8").splitlines())
    return [(row["source"], row["reference"]) for row in rows]
