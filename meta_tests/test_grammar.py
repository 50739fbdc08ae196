"""The sentence grammar of the embedded model: its numbers are right, and what is held out stays out of training."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from random import Random

import pytest

from training.grammar import quantities
from training.grammar.clauses import held_out
from training.grammar.generate import held_out_sentences, training_sentences
from training.grammar.people import held_out_name, person
from training.grammar.templates import Template, _check, fill, split, templates
from training.held_out import row

HELD_OUT_FILE = Path(__file__).resolve().parents[1] / "fixtures" / "sentences" / "grammar-2000.jsonl"


@pytest.fixture(scope="module")
def committed() -> list[dict]:
    return [json.loads(line) for line in HELD_OUT_FILE.read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize(
    ("number", "english", "chinese"),
    [
        (2, "two", "二"),
        (12, "twelve", "十二"),
        (20, "twenty", "二十"),
        (105, "one hundred and five", "一百零五"),
        (142, "one hundred and forty-two", "一百四十二"),
        (1003, "one thousand and three", "一千零三"),
    ],
)
def test_numbers_are_spelt_in_both_languages(number, english, chinese):
    assert (quantities.english_words(number), quantities.chinese_words(number)) == (english, chinese)


@pytest.mark.parametrize(
    ("value", "chinese"),
    [(12_000, "1.2万"), (3_500_000, "350万"), (35_100_000, "3510万"), (2_000_000_000, "20亿"), (110_000_000, "1.1亿")],
)
def test_large_numbers_are_counted_in_wan_and_yi(value, chinese):
    assert quantities.in_wan(value) == chinese


def test_two_is_liang_before_a_classifier():
    assert quantities.chinese_count(2) == "两"


def test_millions_and_billions_keep_their_value():
    scale = {"thousand": 1e3, "million": 1e6, "billion": 1e9, "万": 1e4, "亿": 1e8}
    for seed in range(500):
        english, chinese = quantities.big(Random(seed))
        figure, name = english.split()
        unit = scale.get(chinese[-1], 1)
        assert float(figure) * scale[name] == pytest.approx(float(chinese.rstrip("万亿")) * unit)


def test_every_pattern_fills_and_its_slots_stand_in_the_reference():
    rng = Random(1)
    for template in templates():
        sentence = fill(template, rng)
        assert "{" not in sentence.chinese.replace("${", "{").split("{")[0]
        for slot in sentence.slots:
            if slot.group != "word":
                assert slot.chinese in sentence.chinese, (template.id, slot)


def test_slots_of_the_held_out_sentences_stand_on_both_sides(committed):
    for entry in committed:
        for slot in entry["slots"]:
            if slot["group"] != "word":
                assert slot["chinese"] in entry["reference"], entry
                assert slot["english"].lower() in entry["source"].lower(), entry


def test_a_pattern_whose_sides_disagree_is_refused():
    with pytest.raises(ValueError, match=r"x-1: slots differ between the sides: .*int"):
        _check(Template("x-1", (), "Turn {int} times.", "转动。"))


def test_held_out_patterns_frames_and_names_never_occur_in_training(committed):
    training, kept_out = split()
    assert not {template.id for template in training} & {template.id for template in kept_out}
    drawn = list(itertools.islice(training_sentences(seed=123), 20_000))
    ids = {part for sentence in drawn for part in sentence.template.split("+")}
    assert not ids & {template.id for template in kept_out}
    assert not any(
        held_out(sentence)
        for sentence in drawn
        if sentence.template.startswith("clause:") and "+" not in sentence.template
    )
    assert not {sentence.english for sentence in drawn} & {entry["source"] for entry in committed}


def test_a_held_out_pairing_of_names_is_never_drawn_for_training():
    rng = Random(2)
    paired = {person(rng).key for _ in range(20_000)}
    assert not paired & {held_out_name(rng).key for _ in range(2_000)}


def test_the_committed_sentences_are_those_the_command_writes(committed):
    again = [row(number, sentence) for number, sentence in enumerate(held_out_sentences(77, 2000), start=1)]
    assert committed == again


def test_the_same_seed_gives_the_same_sentences():
    first, second = (list(itertools.islice(training_sentences(seed=5), 500)) for _ in range(2))
    assert first == second
