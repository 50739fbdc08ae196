"""Greedy and beam search on models small enough to work out by hand or to enumerate."""

from __future__ import annotations

import itertools
import math
import zlib

import numpy as np
import pytest

from harness.contract.errors import InputError
from harness.contract.generation import (
    SEARCH_RULES,
    STOP_EOS,
    STOP_FORCED_EOS,
    STOP_MAX_LENGTH,
    GenerationSettings,
)
from harness.contract.seq2seq import DecoderState, EncoderOutput
from harness.runtime.search import Candidates, generate

VOCABULARY = 16  # the smallest that eight beams may use
EOS, A, B, C, PAD = 0, 1, 2, 3, 15
UNLIKELY = 1e-9

KEY, VALUE, CROSS = "present.0.decoder.key", "present.0.decoder.value", "present.0.encoder.key"


class FakeModel:
    """A decoder whose next-token probabilities are a function of the source id and the whole prefix.

    The cache holds the prefix as keys and a checksum of it as values, the cross cache holds the source id: a reorder
    that misses a tensor, a row or the length is caught where it happens.
    """

    def __init__(self, probabilities) -> None:
        self.probabilities = probabilities
        self.batches: list[int] = []

    def encode(self, input_ids, attention_mask) -> EncoderOutput:
        hidden = input_ids[..., None].astype(np.float32)
        return EncoderOutput(attention_mask, hidden, {CROSS: hidden[:, :1]})

    def start(self, encoder: EncoderOutput) -> DecoderState:
        empty = np.zeros((len(encoder.mask), 1, 0, 1), np.float32)
        return DecoderState(encoder, {KEY: empty, VALUE: empty}, 0)

    def step(self, state: DecoderState, decoder_input_ids) -> tuple[np.ndarray, DecoderState]:
        assert decoder_input_ids.dtype == np.int64 and decoder_input_ids.shape == (len(state.encoder.mask), 1)
        self.batches.append(len(decoder_input_ids))
        sources = state.encoder.hidden[:, 0, 0].astype(int)
        assert (sources == state.encoder.cross[CROSS][:, 0, 0]).all()
        keys = np.concatenate([state.past[KEY], decoder_input_ids[:, None, :, None].astype(np.float32)], axis=2)
        prefixes = [tuple(row) for row in keys[:, 0, :, 0].astype(int).tolist()]
        assert len(prefixes[0]) == state.length + 1
        checks = [checksum(source, prefix[:-1]) for source, prefix in zip(sources, prefixes, strict=True)]
        if state.length:
            assert checks == state.past[VALUE][:, 0, -1, 0].tolist(), "the cache was reordered in part"
        new = np.array([checksum(s, p) for s, p in zip(sources, prefixes, strict=True)], np.float32)
        values = np.concatenate([state.past[VALUE], new[:, None, None, None]], axis=2)
        with np.errstate(divide="ignore"):
            rows = [np.log(self.probabilities(s, p)) for s, p in zip(sources.tolist(), prefixes, strict=True)]
        logits = np.array(rows, np.float32)[:, None]
        logits.setflags(write=False)  # the search may not write into the model's output
        return logits, DecoderState(state.encoder, {KEY: keys, VALUE: values}, state.length + 1)


def checksum(source: int, prefix: tuple[int, ...]) -> float:
    return float(zlib.crc32(repr((int(source), prefix)).encode()) % 2**20)


def chain(table: dict[int, dict[int, float]]) -> FakeModel:
    """A Markov chain: the last token decides. Tokens that the table leaves out are next to impossible."""

    def probabilities(source, prefix):
        line = np.full(VOCABULARY, UNLIKELY)
        for token, probability in table.get(prefix[-1], {}).items():
            line[token] = probability
        return line

    return FakeModel(probabilities)


def scripted(rows: dict[int, list[int]]) -> FakeModel:
    """Every source id has its own sentence, each token at probability 0.9."""

    def probabilities(source, prefix):
        line = np.full(VOCABULARY, 0.1 / (VOCABULARY - 1))
        line[rows[source][min(len(prefix), len(rows[source])) - 1]] = 0.9
        return line

    return FakeModel(probabilities)


def random_model(tokens: tuple[int, ...] = tuple(range(VOCABULARY)), sharpness: float = 1.5) -> FakeModel:
    """Unrelated probabilities after every prefix; only ``tokens`` are possible."""

    def probabilities(source, prefix):
        noise = np.random.default_rng(zlib.crc32(repr((source, prefix)).encode())).standard_normal(VOCABULARY)
        line = np.zeros(VOCABULARY)
        line[list(tokens)] = np.exp(sharpness * noise[list(tokens)])
        return line / line.sum()

    return FakeModel(probabilities)


def settings(**changes) -> GenerationSettings:
    ids = {"decoder_start_token_id": PAD, "eos_token_id": EOS, "pad_token_id": PAD}
    return GenerationSettings(**{**ids, "max_length": 6, **changes})


def decode(model: FakeModel, sources: list[int] | None = None, trace: list[Candidates] | None = None, **changes):
    ids = np.array(sources or [5], np.int64)[:, None]
    return generate(model, ids, np.ones_like(ids), settings(**changes), trace)


def decode_one(model: FakeModel, **changes):
    return decode(model, **changes)[0]


# --- greedy and the rules on logits -----------------------------------------------------------------------------------

SHORT = {PAD: {A: 0.6, EOS: 0.4}, A: {EOS: 0.7, B: 0.3}, B: {B: 0.9, EOS: 0.1}, C: {C: 0.8, EOS: 0.2}}


def test_greedy_follows_the_best_token_and_sums_its_log_probabilities():
    got = decode_one(chain(SHORT))
    assert (got.token_ids, got.stop_reason) == ((PAD, A, EOS), STOP_EOS)
    assert got.score == pytest.approx(math.log(0.6 * 0.7), abs=1e-6)


@pytest.mark.parametrize("beams", [1, 2, 3])
@pytest.mark.parametrize(
    ("changes", "token_ids", "probability", "stop_reason"),
    [
        pytest.param({"forced_bos_token_id": C}, (PAD, C, C, C), 0.8**2, STOP_MAX_LENGTH, id="forced-first-id-is-free"),
        pytest.param({"forced_eos_token_id": EOS}, (PAD, A, EOS), 0.42, STOP_EOS, id="end-before-the-limit"),
        pytest.param(
            {"forced_bos_token_id": C, "forced_eos_token_id": EOS},
            (PAD, C, C, EOS),
            0.8,
            STOP_FORCED_EOS,
            id="forced-end",
        ),
        pytest.param(
            {"max_length": 3, "forced_eos_token_id": EOS},
            (PAD, A, EOS),
            0.6,
            STOP_FORCED_EOS,
            id="forced-end-at-the-limit-even-where-wanted",
        ),
        pytest.param({"max_length": 2, "forced_eos_token_id": EOS}, (PAD, EOS), 1, STOP_FORCED_EOS, id="2-forced-end"),
        pytest.param({"max_length": 2}, (PAD, A), 0.6, STOP_MAX_LENGTH, id="2-cut"),
        pytest.param(
            {"max_length": 2, "forced_bos_token_id": C, "forced_eos_token_id": EOS},
            (PAD, EOS),
            1,
            STOP_FORCED_EOS,
            id="2-forced-end-beats-forced-first-id",
        ),
        pytest.param(
            {"max_length": 3, "forced_eos_token_id": B}, (PAD, A, B), 0.6, STOP_MAX_LENGTH, id="forced-no-end"
        ),
    ],
)
def test_forced_tokens_and_the_limit(beams, changes, token_ids, probability, stop_reason):
    # Length penalty 0 makes the beam score the sum of log-probabilities, as in greedy search.
    got = decode_one(chain(SHORT), **{"max_length": 4, "num_beams": beams, "length_penalty": 0.0, **changes})
    assert (got.token_ids, got.stop_reason) == (token_ids, stop_reason)
    assert got.score == pytest.approx(math.log(probability), abs=1e-6)


@pytest.mark.parametrize(
    ("beams", "changes", "probability"),
    [
        pytest.param(1, {}, 0.3 / 0.4, id="greedy-is-always-normalised"),
        pytest.param(2, {}, 0.3, id="ban-after-softmax"),
        pytest.param(2, {"renormalize_logits": True}, 0.3 / 0.4, id="renormalised"),
        pytest.param(2, {"pad_removed_before_softmax": True}, 0.3 / 0.4, id="pad-removed-before-softmax"),
        pytest.param(
            2,
            {"pad_removed_before_softmax": True, "renormalize_logits": True},
            0.3 / 0.4,
            id="removed-and-renormalised",
        ),
    ],
)
def test_ban_and_its_place_relative_to_softmax(beams, changes, probability):
    table = {PAD: {PAD: 0.6, A: 0.3, EOS: 0.1}, A: {EOS: 1.0}, EOS: {EOS: 1.0}}
    changes = {"banned_token_ids": (PAD,), "num_beams": beams, "length_penalty": 0.0, **changes}
    got = decode_one(chain(table), **changes)
    assert got.token_ids == (PAD, A, EOS)
    assert got.score == pytest.approx(math.log(probability), abs=1e-5)


def test_pad_removal_concerns_beam_search_only():
    table = {PAD: {PAD: 0.6, A: 0.4}, A: {EOS: 1.0}}
    assert decode_one(chain(table), pad_removed_before_softmax=True).token_ids == (PAD,) * 6
    assert decode_one(chain(table), pad_removed_before_softmax=True, num_beams=2).token_ids == (PAD, A, EOS)


@pytest.mark.parametrize("beams", [1, 4])
def test_a_banned_end_token_is_not_banned(beams):
    assert decode_one(chain(SHORT), banned_token_ids=(EOS, B), num_beams=beams, length_penalty=0.0).token_ids == (
        PAD,
        A,
        EOS,
    )


def test_start_token_equal_to_the_end_token_ends_nothing():
    table = {EOS: {A: 1.0}, A: {B: 1.0}, B: {EOS: 1.0}}
    for beams in (1, 2):
        got = decode_one(chain(table), decoder_start_token_id=EOS, num_beams=beams)
        assert got.token_ids == (EOS, A, B, EOS)


@pytest.mark.parametrize("rules", SEARCH_RULES)
def test_ends_that_a_forced_first_id_made_impossible_are_no_hypotheses(rules):
    got = decode_one(
        chain(SHORT), forced_bos_token_id=C, num_beams=2, length_penalty=2.0, early_stopping=True, search_rules=rules
    )
    assert got.token_ids == (PAD, C, C, EOS), "C EOS and C C EOS are the two hypotheses that stop the search"


# --- beam search against enumeration ----------------------------------------------------------------------------------


def enumerate_best(model: FakeModel, source: int, tokens: tuple[int, ...], max_length: int, penalty: float):
    """Score every sequence over ``tokens`` that ends or reaches ``max_length``."""
    best = (-math.inf, ())
    for length in range(1, max_length):
        for generated in itertools.product(tokens, repeat=length):
            if EOS in generated[:-1] or (generated[-1] != EOS and length < max_length - 1):
                continue
            sequence = (PAD, *generated)
            steps = range(1, len(sequence))
            total = sum(math.log(model.probabilities(source, sequence[:i])[sequence[i]]) for i in steps)
            best = max(best, (total / length**penalty, sequence))
    return best


@pytest.mark.parametrize("rules", SEARCH_RULES[1:])
@pytest.mark.parametrize("penalty", [0.0, 0.6, 1.0, 2.0, -1.0])
def test_beams_that_cover_everything_find_the_optimum(penalty, rules):
    tokens, sources, model = (EOS, A, B), list(range(1, 13)), random_model((EOS, A, B))
    got = decode(
        model, sources, max_length=4, num_beams=8, length_penalty=penalty, early_stopping="never", search_rules=rules
    )
    for source, decoded in zip(sources, got, strict=True):
        score, sequence = enumerate_best(model, source, tokens, 4, penalty)
        assert decoded.token_ids == sequence
        assert decoded.score == pytest.approx(score, abs=1e-5)


@pytest.mark.parametrize("rules", SEARCH_RULES)
@pytest.mark.parametrize("beams", [1, 2, 3, 8])
def test_rows_together_equal_rows_alone_and_leave_when_finished(beams, rules):
    sources, model = list(range(1, 9)), random_model(sharpness=2.5)
    changes = {"max_length": 16, "num_beams": beams, "search_rules": rules, "length_penalty": 0.0}
    together = decode(model, sources, **changes)
    batches = model.batches.copy()
    assert together == [decode(model, [source], **changes)[0] for source in sources]
    assert len({len(decoded.token_ids) for decoded in together}) > 2, "the rows have to finish at different times"
    assert batches[0] == len(sources), "the first step needs one beam per row"
    assert batches[1:] == sorted(batches[1:], reverse=True) and batches[-1] < batches[1]


def test_reorder_reaches_cache_and_encoder_rows():
    # The leader changes at every step, so both beams continue what was the second one; FakeModel checks the cache.
    table = {
        PAD: {A: 0.55, B: 0.45},
        A: {C: 0.3, A: 0.25, B: 0.25},
        B: {A: 0.5, B: 0.45},
        C: {EOS: 1.0},
    }
    trace: list[Candidates] = []
    decode(chain(table), [5, 6], trace, num_beams=2, max_length=5)
    second = [step for step in trace if step.length == 2]
    assert [step.row for step in second] == [0, 1]
    assert all(step.beams[:2].tolist() == [1, 1] and step.token_ids[:2].tolist() == [A, B] for step in second)


# --- length penalty, early stopping and the versions of transformers --------------------------------------------------

SHORT_OR_LONG = {PAD: {EOS: 0.4, A: 0.6}, A: {EOS: 0.6, B: 0.4}, B: {EOS: 1.0}}


@pytest.mark.parametrize(
    ("penalty", "token_ids", "score"),
    [
        pytest.param(0.0, (PAD, EOS), math.log(0.4), id="0-sum"),
        pytest.param(1.0, (PAD, A, B, EOS), math.log(0.24) / 3, id="1-mean"),
        pytest.param(2.0, (PAD, A, B, EOS), math.log(0.24) / 9, id="2-long"),
        pytest.param(-1.0, (PAD, EOS), math.log(0.4), id="negative-short"),
    ],
)
def test_length_penalty_decides_the_winner(penalty, token_ids, score):
    got = decode_one(chain(SHORT_OR_LONG), num_beams=2, length_penalty=penalty, early_stopping="never")
    assert got.token_ids == token_ids
    assert got.score == pytest.approx(score, abs=1e-6)


# Two hypotheses end in the second step; the continuation of A wins only once its length divides its score.
LATE_WINNER = {PAD: {EOS: 0.4, A: 0.6}, A: {EOS: 0.7, B: 0.3}, B: {B: 1.0}}
EARLY, LATE = (PAD, A, EOS), (PAD, A, B, B, B, B, B, B, B)


@pytest.mark.parametrize(
    ("rules", "early_stopping", "token_ids"),
    [
        pytest.param("sequence_length", True, EARLY, id="sequence_length-true"),
        pytest.param("sequence_length", "never", EARLY, id="sequence_length-never-acts-like-true"),
        pytest.param("generated_length", True, EARLY, id="generated_length-true"),
        pytest.param("generated_length", "never", LATE, id="generated_length-never"),
        pytest.param("running_beams", True, EARLY, id="running_beams-true"),
        pytest.param("running_beams", "never", LATE, id="running_beams-never"),
    ],
)
def test_early_stopping(rules, early_stopping, token_ids):
    model = chain(LATE_WINNER)
    got = decode_one(model, max_length=9, num_beams=2, early_stopping=early_stopping, search_rules=rules)
    assert got.token_ids == token_ids
    assert len(model.batches) == (2 if token_ids == EARLY else 8)


@pytest.mark.parametrize(
    ("rules", "length"), [("sequence_length", 3), ("generated_length", 2), ("running_beams", 2)], ids=SEARCH_RULES
)
def test_length_of_a_cut_hypothesis(rules, length):
    table = {PAD: {A: 0.9, B: 0.1}, A: {A: 0.8, B: 0.2}, B: {B: 1.0}}
    got = decode_one(chain(table), max_length=3, num_beams=2, search_rules=rules)
    assert (got.token_ids, got.stop_reason) == ((PAD, A, A), STOP_MAX_LENGTH)
    assert got.score == pytest.approx(math.log(0.72) / length, abs=1e-6)


@pytest.mark.parametrize(
    ("rules", "token_ids"),
    [("generated_length", (PAD, A, *[B] * 10)), ("running_beams", (PAD, A, EOS))],
    ids=SEARCH_RULES[1:],
)
def test_stop_test_compares_with_candidates_or_with_running_beams(rules, token_ids):
    # After two steps both hypotheses have ended: EOS log(0.55) = -0.60, A EOS log(0.405)/4 = -0.23. The best candidate
    # is A EOS itself, so the search goes on; the best running beam, A B log(0.045)/4 = -0.78, says stop.
    table = {PAD: {EOS: 0.55, A: 0.45}, A: {EOS: 0.9, B: 0.1}, B: {B: 1.0}}
    got = decode_one(chain(table), max_length=12, num_beams=2, length_penalty=2.0, search_rules=rules)
    assert got.token_ids == token_ids


# With two beams: EOS log(0.4) = -0.92 and A EOS have ended after two steps, A B log(0.6 * 0.025) = -4.2 goes on and
# could still reach -4.2 / (max_length - 1).
NARROW = {PAD: {A: 0.6, EOS: 0.4}, A: {EOS: 0.975, B: 0.025}, B: {B: 1.0}}
# A B, log(0.72) = -0.33, is worth less with every step: times 2 above A EOS, log(0.08) * 2 = -5.1, times 39 below.
SHRINKING = {PAD: {A: 0.8, EOS: 0.15, B: 0.05}, A: {B: 0.9, EOS: 0.1}, B: {EOS: 1.0}}
# Ends: -1.20, then -1.27 / 2, then -0.97 / 3, which displaces the first; the open beam has -3.17 / 3.
DISPLACED = {PAD: {A: 0.7, EOS: 0.3}, A: {B: 0.6, EOS: 0.4}, B: {EOS: 0.9, B: 0.1}}


@pytest.mark.parametrize(
    ("table", "changes", "token_ids", "steps"),
    [
        pytest.param(NARROW, {"early_stopping": "never", "max_length": 5}, (PAD, A, EOS), 2, id="never-out-of-reach"),
        pytest.param(NARROW, {"early_stopping": "never", "max_length": 6}, (PAD, A, EOS), 5, id="never-within-reach"),
        pytest.param(
            SHRINKING,
            {"early_stopping": "never", "max_length": 40, "length_penalty": -1.0},
            (PAD, A, B, EOS),
            3,
            id="never-without-reward-for-length",
        ),
        pytest.param(DISPLACED, {}, (PAD, A, B, EOS), 3, id="only-the-best-num_beams-count"),
    ],
)
def test_when_the_search_stops(table, changes, token_ids, steps):
    model = chain(table)
    got = decode_one(model, **{"num_beams": 2, "search_rules": "running_beams", **changes})
    assert (got.token_ids, len(model.batches)) == (token_ids, steps)


@pytest.mark.parametrize("rules", SEARCH_RULES)
def test_an_end_beyond_the_first_num_beams_candidates_does_not_count(rules):
    # EOS, log(0.1) = -2.3, would win against log(0.5 * 0.7**4) * 5 = -10.6, but is the third of two.
    table = {PAD: {A: 0.5, B: 0.4, EOS: 0.1}, A: {A: 0.7, B: 0.3}, B: {A: 0.3, B: 0.7}}
    got = decode_one(chain(table), num_beams=2, length_penalty=-1.0, search_rules=rules)
    assert got.token_ids == (PAD, A, A, A, A, A)


@pytest.mark.parametrize(
    ("rules", "early_stopping", "token_ids", "stop_reason"),
    [
        pytest.param("generated_length", True, (PAD, A, EOS), STOP_EOS, id="enough-ended"),
        pytest.param("generated_length", False, (PAD, A, A), STOP_MAX_LENGTH, id="open-beams-join"),
        pytest.param("running_beams", True, (PAD, A, A), STOP_MAX_LENGTH, id="best-candidates-compete"),
    ],
)
def test_ends_and_open_beams_meet_at_the_limit(rules, early_stopping, token_ids, stop_reason):
    table = {PAD: {A: 0.7, EOS: 0.2, B: 0.1}, A: {A: 0.6, EOS: 0.4}, B: {B: 1.0}}
    got = decode_one(chain(table), max_length=3, num_beams=2, early_stopping=early_stopping, search_rules=rules)
    assert (got.token_ids, got.stop_reason) == (token_ids, stop_reason)


# --- rows, trace, errors ----------------------------------------------------------------------------------------------


def test_greedy_rows_that_finish_are_dropped():
    model = scripted({1: [A, EOS], 2: [B, B, B, EOS], 3: [EOS], 4: [C]})
    got = decode(model, [1, 2, 3, 4], max_length=6)
    assert [decoded.generated for decoded in got] == [(A, EOS), (B, B, B, EOS), (EOS,), (C,) * 5]
    assert [decoded.stop_reason for decoded in got] == [STOP_EOS] * 3 + [STOP_MAX_LENGTH]
    assert model.batches == [4, 3, 2, 2, 1]


def test_trace_gives_the_margin_at_every_step():
    trace: list[Candidates] = []
    decode(chain(SHORT), trace=trace)
    assert [(step.row, step.length, step.token_ids.tolist()) for step in trace] == [(0, 1, [A, EOS]), (0, 2, [EOS, B])]
    assert trace[1].scores[0] - trace[1].scores[1] == pytest.approx(math.log(0.7 / 0.3), abs=1e-6)


def test_best_candidates_of_a_vocabulary_of_many_blocks():
    line = np.random.default_rng(0).random(5000) + 1e-3
    line[[7, 4990]] = line.max() + 1, line.max() + 2
    model = FakeModel(lambda source, prefix: line / line.sum())
    trace: list[Candidates] = []
    decode(model, trace=trace, num_beams=3, max_length=3)
    np.testing.assert_array_equal(trace[0].token_ids, np.argsort(-line)[:6])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        pytest.param({"banned_token_ids": (VOCABULARY,)}, "outside the vocabulary", id="banned-id"),
        pytest.param({"forced_bos_token_id": 99}, "outside the vocabulary", id="forced-id"),
        pytest.param({"early_stopping": "always"}, "early_stopping is 'always'", id="early-stopping"),
        pytest.param({"search_rules": "5.24"}, "search_rules is '5.24'", id="search-rules"),
        pytest.param({"num_beams": 9}, "num_beams is 9", id="beams"),
        pytest.param({"max_length": 1}, "max_length is 1", id="max-length"),
    ],
)
def test_settings_that_cannot_be_used(changes, message):
    with pytest.raises(InputError, match=message):
        decode(chain(SHORT), **changes)


@pytest.mark.parametrize("beams", [1, 2])
def test_logits_that_are_not_numbers_are_refused(beams):
    model = FakeModel(lambda source, prefix: np.full(VOCABULARY, np.nan if source == 6 else 0.1))
    with pytest.raises(InputError, match="decoder row 1 is nan"):
        decode(model, [5, 6], num_beams=beams)


def test_small_vocabulary_and_unlike_shapes_are_refused():
    with pytest.raises(InputError, match="too small for 3 beams"):
        decode(FakeModel(lambda source, prefix: np.full(5, 0.2)), num_beams=3)
    with pytest.raises(InputError, match="disagree"):
        generate(chain(SHORT), np.ones((2, 3), np.int64), np.ones((2, 2), np.int64), settings())
