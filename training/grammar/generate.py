"""Training text and held-out text from the grammar: templates, composed sentences, phrases, single words and pairs."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from random import Random

from training.grammar.clauses import Composer, held_out
from training.grammar.lexicon import ADJECTIVES, NOUNS, lexicon
from training.grammar.templates import Sentence, Template, fill, phrases, split


def _alone(rng: Random) -> Sentence:
    """One word, name or figure standing alone, as labels and table cells do."""
    kind = rng.choice(sorted(lexicon()) + ["any"] * 4)
    if kind == "any":
        return fill(Template("alone", (), f"{{a:{rng.choice(_ALONE)}}}", "{a}"), rng)
    word = rng.choice(lexicon()[kind])
    chinese = word.chinese["attr"] if kind in ADJECTIVES else word.chinese[""]
    english = word.english[""]
    if kind in NOUNS and rng.random() < 0.3:
        english = word.english["pl"]
    if rng.random() < 0.5:
        english = english[0].upper() + english[1:]
    return Sentence(english, chinese, (), (), "alone")


_ALONE = (
    "int decimal thousands percent money date day time qty duration big version phone person code file url email"
).split()


def _joined(first: Sentence, second: Sentence) -> Sentence:
    tags = tuple(dict.fromkeys((*first.tags, *second.tags, "two-sentences")))
    return Sentence(
        f"{first.english} {second.english}", first.chinese + second.chinese, tags, first.slots + second.slots,
        f"{first.template}+{second.template}",
    )  # fmt: skip


def training_sentences(seed: int) -> Iterator[Sentence]:
    """Endless training sentences: no held-out pattern, frame or pairing of names among them."""
    rng = Random(seed)
    composer = Composer(rng)
    patterns, _ = split()
    # A long pattern takes more to learn, and there are few of them.
    weights = list(itertools.accumulate(3 if pattern.id.startswith("long-") else 1 for pattern in patterns))
    fixed = [Sentence(english, chinese, (), (), "phrase") for english, chinese in phrases()]

    def one() -> Sentence:
        draw = rng.random()
        if draw < 0.60:
            return fill(rng.choices(patterns, cum_weights=weights)[0], rng)
        if draw < 0.90:
            while held_out(sentence := composer.compose()):
                pass
            return sentence
        return rng.choice(fixed) if draw < 0.95 else _alone(rng)

    while True:
        sentence = one()
        if sentence.english.endswith((".", "?")) and rng.random() < 0.14:
            other = one()
            if other.english.endswith((".", "?")):
                sentence = _joined(sentence, other)
        yield sentence


def held_out_sentences(seed: int, count: int) -> list[Sentence]:
    """`count` different sentences of held-out patterns (half) and held-out frames (half), with held-out names."""
    rng = Random(seed)
    composer = Composer(rng, held_out_names=True)
    _, patterns = split()
    found: dict[str, Sentence] = {}
    fixed = {english for english, _ in phrases()}

    def one() -> Sentence:
        if rng.random() < 0.5:
            return fill(rng.choice(patterns), rng, held_out_names=True)
        while not held_out(sentence := composer.compose()):
            pass
        return sentence

    while len(found) < count:
        sentence = one()
        if rng.random() < 0.1 and sentence.english.endswith((".", "?")):
            sentence = _joined(sentence, one())
        if sentence.english not in fixed:
            found.setdefault(sentence.english, sentence)
    return list(found.values())
