"""Batches for training: help texts over and over, grammar sentences always fresh, sorted by length."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from random import Random

from training.corpus import Pair, read_pairs
from training.grammar.generate import training_sentences
from training.tokenizer import Tokenizer

GRAMMAR_PER_CHUNK = 60_000
HELP_PER_CHUNK = 20_000
LONGEST = 500
_FIXED = [("", ""), ("-", "-"), ("...", "..."), ("Hello, how are you?", "你好，你好吗？"),
          ("This is a test sentence for ONNX export.", "这是用于ONNX导出的测试句子。")]  # fmt: skip
Ids = tuple[list[int], list[int]]


def chunk(number: int, seed: int, help_ids: list[Ids], tokenizer: Tokenizer, tokens_per_batch: int) -> list[list[Ids]]:
    """The batches of one chunk, the same for the same number and seed.

    Args:
        number: which chunk; its grammar sentences are its own, its help texts a slice of the next shuffled pass.
        help_ids: the tokenized help texts.
        tokens_per_batch: source and target positions of a batch, padding included.
    """
    rng = Random(f"{seed}/{number}")
    sentences = itertools.islice(training_sentences(rng.getrandbits(60)), GRAMMAR_PER_CHUNK)
    texts = [(sentence.english, sentence.chinese) for sentence in sentences]
    texts += [rng.choice(_FIXED) for _ in range(GRAMMAR_PER_CHUNK // 500)]
    texts += _long(texts, rng)
    pairs = [tokenizer.pair(*text) for text in texts]
    pairs = [pair for pair in pairs if max(map(len, pair)) <= LONGEST]
    pairs += _help_slice(number, seed, help_ids)
    return _batches(pairs, rng, tokens_per_batch)


def _help_slice(number: int, seed: int, help_ids: list[Ids]) -> Iterator[Ids]:
    start = number * HELP_PER_CHUNK
    order: list[int] = []
    order_of = -1
    for position in range(start, start + HELP_PER_CHUNK):
        if position // len(help_ids) != order_of:
            order_of = position // len(help_ids)
            order = list(range(len(help_ids)))
            Random(f"{seed}/help/{order_of}").shuffle(order)
        yield help_ids[order[position % len(help_ids)]]


def _long(texts: list[Pair], rng: Random) -> list[Pair]:
    """Runs of three to twelve texts in one input: later positions are trained too, to the position table's end."""
    runs = [rng.sample(texts, rng.randint(3, 12)) for _ in range(len(texts) // 80)]
    return [(" ".join(english for english, _ in run), "".join(chinese for _, chinese in run)) for run in runs]


def _batches(pairs: list[Ids], rng: Random, tokens: int) -> list[list[Ids]]:
    pairs = sorted(pairs, key=lambda pair: (len(pair[1]), len(pair[0])))
    batches: list[list[Ids]] = [[]]
    widest = (0, 0)
    for pair in pairs:
        width = (max(widest[0], len(pair[0])), max(widest[1], len(pair[1])))
        if batches[-1] and sum(width) * (len(batches[-1]) + 1) > tokens:
            batches.append([])
            width = (len(pair[0]), len(pair[1]))
        batches[-1].append(pair)
        widest = width
    rng.shuffle(batches)
    return batches


def tokenized_help(work: Path, tokenizer: Tokenizer) -> list[Ids]:
    pairs = read_pairs(work / "help.train.jsonl")
    return [tokenizer.pair(*pair) for pair in pairs]
