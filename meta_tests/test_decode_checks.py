"""Flips, ties and the other findings on decoded tokens, on logits small enough to work out by hand."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest

from harness.checks.decode import (
    BeamEvidence,
    Forced,
    Row,
    Tokenized,
    beam_flip,
    cut_finding,
    final_eos_finding,
    first_parting,
    first_token_finding,
    greedy_flip,
    ids_finding,
    log_probabilities,
    never_generated_finding,
    padding_finding,
    score_of,
    scores_finding,
    settings_finding,
    source_ids_finding,
    spread_finding,
    stops_finding,
    texts_finding,
    unknown_finding,
    unlike_for,
    variety_finding,
)
from harness.contract.finding import Verdict
from harness.contract.generation import (
    STOP_EOS,
    STOP_FORCED_EOS,
    STOP_MAX_LENGTH,
    Decoded,
    GenerationSettings,
)
from harness.contract.limits import FAIL_ABOVE, SCORE_ABOVE, TIE_MARGIN

VOCABULARY = 16
EOS, UNK, A, B, C, PAD = 0, 1, 2, 3, 4, 15
TIE = TIE_MARGIN * FAIL_ABOVE


def settings(**changes) -> GenerationSettings:
    ids = {"decoder_start_token_id": PAD, "eos_token_id": EOS, "pad_token_id": PAD}
    return GenerationSettings(**{**ids, "max_length": 8, "banned_token_ids": (PAD,), **changes})


def decoded(*generated: int, score: float = -1.0, stop: str = STOP_EOS) -> Decoded:
    return Decoded((PAD, *generated), score, stop)


def row(reference: Decoded, candidate: Decoded) -> Row:
    return Row("valve-37", reference, candidate)


def piece(token: int) -> str:
    return f"▁{token}"


def logits(*steps: dict[int, float]) -> np.ndarray:
    """float32 ``[steps, vocab]``; tokens that a step leaves out have a logit of 0."""
    table = np.zeros((len(steps), VOCABULARY), np.float32)
    for line, named in zip(table, steps):
        for token, value in named.items():
            line[token] = value
    return table


# --- greedy flips -----------------------------------------------------------------------------------------------------

ENDS = {EOS: 5.0}
A_ROW = row(decoded(C, A, EOS), decoded(C, B, EOS, stop=STOP_FORCED_EOS))
FIRST = {C: 5.0}


@pytest.mark.parametrize(
    ("margin", "apart", "tie"),
    [
        pytest.param(0.0, 0.0, True, id="equal-logits"),
        pytest.param(0.9 * TIE, 0.9 * FAIL_ABOVE, True, id="both-below-their-limits"),
        pytest.param(1.1 * TIE, 0.0, False, id="margin-above-its-limit"),
        pytest.param(0.0, 1.2 * FAIL_ABOVE, False, id="logits-apart-though-the-margin-is-small"),
        pytest.param(0.5, 0.5, False, id="margin-no-larger-than-the-difference-proves-nothing"),
    ],
)
def test_a_greedy_flip_is_a_tie_only_below_both_fixed_limits(margin, apart, tie):
    reference = logits(FIRST, {A: 1.0 + margin, B: 1.0})
    candidate = logits(FIRST, {A: 1.0 + margin - apart, B: 1.0})
    flip = greedy_flip(A_ROW, Forced(reference, candidate), settings(), piece)
    assert flip.tie is tie
    assert (flip.limit_needed <= FAIL_ABOVE) is tie, "the limit it names has to be the one that would pass"
    assert flip.margin == pytest.approx(margin, abs=1e-6)
    assert flip.logits_apart == pytest.approx(apart, abs=1e-6)


def test_a_flip_names_sentence_step_tokens_figures_and_stop_reasons():
    forced = Forced(logits(FIRST, {A: 1.3, B: 1.0}), logits(FIRST, {A: 1.3, B: 1.0}))
    text = greedy_flip(A_ROW, forced, settings(), piece).text()
    assert text == (
        "valve-37, step 2: PyTorch 2 '▁2', the set 3 '▁3'; margin 0.3, logits 0 apart; "
        "stopped by eos and forced_eos: defect"
    )


@pytest.mark.parametrize(
    ("reference", "candidate", "cause"),
    [
        pytest.param(
            logits(FIRST, {A: 2.0, B: 1.0}), logits({C: 4.0}, {A: 2.0, B: 1.0}), "from the first step on", id="first"
        ),
        pytest.param(
            logits(FIRST, {A: 2.0, B: 1.0}), logits(FIRST, {A: 1.0, B: 2.0}), "right up to step 1", id="later-cache"
        ),
        pytest.param(
            logits(FIRST, {A: 2.0, B: 1.0}), logits(FIRST, {A: 2.0, B: 1.0}), "both sides agree", id="logits-agree"
        ),
    ],
)
def test_the_cause_of_a_greedy_defect(reference, candidate, cause):
    flip = greedy_flip(A_ROW, Forced(reference, candidate), settings(), piece)
    assert not flip.tie and cause in flip.cause and flip.action


@pytest.mark.parametrize(
    ("token", "changes"),
    [
        pytest.param(PAD, {}, id="banned"),
        pytest.param(B, {"max_length": 3, "forced_eos_token_id": A}, id="another-is-forced"),
    ],
)
def test_a_token_that_the_settings_rule_out_is_no_tie_whatever_its_logit(token, changes):
    flipped = row(decoded(C, A), decoded(C, token))
    same = logits(FIRST, {A: 1.0, token: 1.0})
    flip = greedy_flip(flipped, Forced(same, same), settings(**changes), piece)
    assert not flip.tie and flip.margin == np.inf
    assert "banned or forced away" in flip.cause


def test_logits_of_large_magnitude_are_scaled():
    reference = logits(FIRST, {A: 100.0, B: 100.0})
    candidate = logits(FIRST, {A: 100.0 + 5 * FAIL_ABOVE, B: 100.0})
    assert greedy_flip(A_ROW, Forced(reference, candidate), settings(), piece).tie


def test_an_output_that_ends_where_the_other_goes_on_is_a_defect():
    same = logits(FIRST, {A: 1.0})
    flip = greedy_flip(row(decoded(C, A), decoded(C)), Forced(same, same), settings(), piece)
    assert not flip.tie and flip.tokens == ("2 '▁2'", "nothing")


# --- beam flips -------------------------------------------------------------------------------------------------------


class Step(NamedTuple):
    length: int
    beams: np.ndarray
    token_ids: np.ndarray
    scores: np.ndarray


def step(length: int, *candidates: tuple[int, int, float]) -> Step:
    """Candidates are (beam, token id, sum of log-probabilities), best first."""
    beams, tokens, scores = zip(*candidates)
    return Step(length, np.array(beams), np.array(tokens), np.array(scores, np.float32))


BEAMS = settings(num_beams=2, renormalize_logits=True)
BEAM_ROW = row(decoded(A, EOS), decoded(B, EOS))
AGREEING = [step(1, (0, A, -1.0), (0, B, -1.1), (0, C, -2.0), (0, EOS, -3.0))]


def evidence(
    reference_gap: float, candidate_gap: float | None = None, *, replay=None, ours=AGREEING, theirs=AGREEING
) -> BeamEvidence:
    """``A EOS`` against ``B EOS``; each side prefers A over B by its gap, in logits of the first step."""
    gaps = reference_gap, reference_gap if candidate_gap is None else candidate_gap
    sides = [logits({A: 3.0 + gap, B: 3.0}, ENDS) for gap in gaps]
    return BeamEvidence(Forced(*sides), Forced(*sides), replay or BEAM_ROW.reference, ours, theirs)


@pytest.mark.parametrize(
    ("reference_gap", "candidate_gap", "tie"),
    [
        pytest.param(0.0, 0.0, True, id="equal-scores"),
        # The score is a mean over two tokens, so a margin of logits counts half.
        pytest.param(1.8 * TIE, 1.8 * TIE, True, id="margin-below-the-limit"),
        pytest.param(2.2 * TIE, 2.2 * TIE, False, id="margin-above-the-limit"),
        pytest.param(0.0, 0.01, False, id="sides-score-it-differently"),
    ],
)
def test_a_beam_flip_is_a_tie_only_when_both_sides_score_both_hypotheses_alike(reference_gap, candidate_gap, tie):
    flip = beam_flip(BEAM_ROW, evidence(reference_gap, candidate_gap), BEAMS, piece)
    assert flip.tie is tie
    assert (flip.limit_needed <= SCORE_ABOVE) is tie


@pytest.mark.parametrize(
    ("lead", "tie"), [pytest.param(1e-4, True, id="kept-by-a-hair"), pytest.param(0.05, False, id="kept-for-a-reason")]
)
def test_hypotheses_that_parted_at_a_near_tie_may_end_far_apart(lead, tie):
    # PyTorch keeps B and drops C, the set the other way round; what became of them differs by 0.5.
    ours = [step(1, (0, A, -1.0), (0, B, -2.0), (0, C, -2.0 - lead), (0, EOS, -9.0))]
    theirs = [step(1, (0, A, -1.0), (0, C, -2.0), (0, B, -2.00005), (0, EOS, -9.0))]
    flip = beam_flip(BEAM_ROW, evidence(1.0, ours=ours, theirs=theirs), BEAMS, piece)
    assert flip.tie is tie


@pytest.mark.parametrize(
    ("replay", "gaps", "cause"),
    [
        pytest.param(BEAM_ROW.candidate, (1.0, 1.0), "the search differs from generate()", id="search"),
        pytest.param(BEAM_ROW.reference, (1.0, 1.0), "both sides agree", id="reorder-or-batch"),
        pytest.param(BEAM_ROW.reference, (1.0, 0.0), "logits differ from the first step", id="model"),
    ],
)
def test_the_cause_of_a_beam_defect(replay, gaps, cause):
    flip = beam_flip(BEAM_ROW, evidence(*gaps, replay=replay), BEAMS, piece)
    assert not flip.tie and cause in flip.cause and flip.action


def test_searches_that_keep_the_same_hypotheses_never_part():
    # The same two in another order: nothing is dropped.
    swapped = [step(1, (0, B, -1.0), (0, A, -1.1), (0, C, -2.0), (0, EOS, -3.0))]
    assert first_parting(AGREEING, swapped, BEAMS) is None


def test_a_hypothesis_that_was_not_even_a_candidate_has_an_infinite_margin():
    theirs = [step(1, (0, A, -1.0), (0, 9, -1.1), (0, C, -2.0), (0, EOS, -3.0))]
    assert first_parting(AGREEING, theirs, BEAMS).margin == np.inf


def test_a_parting_is_found_behind_an_end_among_the_leading_hypotheses():
    # The two leading hypotheses are the same; what refills the beam of the one that ended is not.
    ours = [step(1, (0, A, -1.0), (0, EOS, -1.1), (0, B, -2.0), (0, C, -2.1))]
    theirs = [step(1, (0, A, -1.0), (0, EOS, -1.1), (0, C, -2.0), (0, B, -2.1))]
    assert first_parting(ours, theirs, BEAMS).margin == pytest.approx(0.1, abs=1e-6)


def test_a_parting_is_found_through_reordered_beams():
    first = [step(1, (0, A, -1.0), (0, B, -1.1), (0, C, -2.0), (0, EOS, -3.0))]
    second = step(2, (1, A, -1.5), (0, C, -1.6), (0, B, -1.7), (1, EOS, -4.0))
    other = step(2, (1, A, -1.5), (0, B, -1.6), (0, C, -1.65), (1, EOS, -4.0))
    parting = first_parting([*first, second], [*first, other], BEAMS)
    assert parting.length == 2
    assert parting.margin == pytest.approx(0.1 / 2, abs=1e-6), "per length ** length_penalty"
    assert parting.scores_apart == pytest.approx(0.1 / 2, abs=1e-6)


# --- scores by the book -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "token", "expected"),
    [
        pytest.param({"num_beams": 1}, A, np.log(0.25 / 0.75), id="greedy-is-always-normalised"),
        pytest.param({}, A, np.log(0.25), id="ban-after-softmax"),
        pytest.param({"renormalize_logits": True}, A, np.log(0.25 / 0.75), id="renormalised"),
        pytest.param({"pad_removed_before_softmax": True}, A, np.log(0.25 / 0.75), id="pad-removed-before-softmax"),
        pytest.param({}, PAD, -np.inf, id="banned"),
        pytest.param({"forced_bos_token_id": B}, A, -np.inf, id="another-first-token-is-forced"),
        pytest.param({"forced_bos_token_id": B}, B, 0.0, id="forced-first-token-is-free"),
        pytest.param({"max_length": 2, "forced_eos_token_id": EOS}, EOS, 0.0, id="forced-end-is-free"),
    ],
)
def test_rules_on_one_step(changes, token, expected):
    with np.errstate(divide="ignore"):
        line = np.log(np.array([0.125, 0.0, 0.25, 0.375, *[0.0] * 11, 0.25]))[None]
    assert log_probabilities(line, settings(num_beams=2).replace(**changes))[0, token] == pytest.approx(expected)


@pytest.mark.parametrize(
    ("rules", "generated", "length"),
    [
        pytest.param("running_beams", (A, EOS), 2, id="ended"),
        pytest.param("running_beams", (A, A), 2, id="cut"),
        pytest.param("sequence_length", (A, EOS), 2, id="ended-by-old-rules"),
        pytest.param("sequence_length", (A, A), 3, id="cut-by-old-rules-counts-the-start"),
    ],
)
def test_a_beam_score_is_divided_by_the_length_its_rules_count(rules, generated, length):
    uniform = logits({}, {})
    chosen = settings(num_beams=2, renormalize_logits=True, banned_token_ids=(), search_rules=rules)
    expected = -2 * np.log(VOCABULARY) / length
    assert score_of(uniform, (PAD, *generated), chosen) == pytest.approx(expected)


# --- findings over all rows -------------------------------------------------------------------------------------------

EQUAL = row(decoded(A, EOS), decoded(A, EOS))


def judged_flip(margin: float):
    same = logits(FIRST, {A: 1.0 + margin, B: 1.0})
    return greedy_flip(A_ROW, Forced(same, same), settings(), piece)


@pytest.mark.parametrize(
    ("rows", "margins", "verdict"),
    [
        pytest.param([EQUAL, EQUAL], [], Verdict.PASS, id="all-equal"),
        pytest.param([EQUAL, A_ROW], [0.0], Verdict.WARN, id="ties-are-listed"),
        pytest.param([EQUAL, A_ROW], [0.3], Verdict.FAIL, id="a-defect-fails"),
        pytest.param([A_ROW, A_ROW], [0.0, 0.3], Verdict.FAIL, id="a-defect-after-a-tie-fails"),
        pytest.param([A_ROW, A_ROW], [0.0], Verdict.FAIL, id="what-was-not-examined-is-not-excused"),
    ],
)
def test_verdict_on_token_ids(rows, margins, verdict):
    flips = [judged_flip(margin) for margin in margins]
    assert ids_finding("token ids", rows, flips, expected=len(rows)).verdict is verdict


def test_ids_name_the_first_defect_the_ties_and_the_limit_that_would_pass():
    found = ids_finding("token ids", [A_ROW] * 3, [judged_flip(0.0), judged_flip(0.3)], expected=3)
    assert "margin 0.3" in found.where and found.where.endswith("defect")
    assert found.passing_limit == pytest.approx(0.3 / TIE_MARGIN, abs=1e-6) and found.limit == FAIL_ABOVE
    assert found.details[0].endswith("tie")
    assert "1 more of 3 sentences differ" in found.details[-1]


@pytest.mark.parametrize(
    ("reference", "candidate", "verdict"),
    [
        pytest.param(-1.0, -1.0 - 0.9 * SCORE_ABOVE, Verdict.PASS, id="within"),
        pytest.param(-1.0, -1.0 - 1.1 * SCORE_ABOVE, Verdict.FAIL, id="beyond"),
        pytest.param(-100.0, -100.0 - 5 * SCORE_ABOVE, Verdict.PASS, id="scaled-where-large"),
        pytest.param(-1.0, float("nan"), Verdict.FAIL, id="not-a-number"),
    ],
)
def test_verdict_on_scores(reference, candidate, verdict):
    rows = [row(decoded(A, EOS, score=reference), decoded(A, EOS, score=candidate))]
    assert scores_finding("scores", rows, settings(num_beams=2)).verdict is verdict


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        pytest.param({"renormalize_logits": False}, True, id="order-matters"),
        pytest.param({"renormalize_logits": True}, False, id="either-order-gives-the-same"),
    ],
)
def test_unlike_scores_name_the_order_of_ban_and_softmax_where_it_matters(changes, named):
    rows = [row(decoded(A, EOS, score=-1.0), decoded(A, EOS, score=-1.5))]
    found = scores_finding("scores", rows, settings(num_beams=2, **changes))
    assert ("pad is removed before the log-softmax" in found.cause) is named
    assert found.where == "valve-37: PyTorch -1.000000, the set -1.500000"


def test_scores_and_stops_say_so_when_no_ids_are_equal():
    for finding in (scores_finding, stops_finding):
        assert finding("check", [A_ROW], settings()).verdict is Verdict.NOT_APPLICABLE


LIMITED = settings(max_length=3)


@pytest.mark.parametrize(
    ("reference", "candidate", "verdict"),
    [
        pytest.param(decoded(EOS), decoded(EOS), Verdict.PASS, id="both-ended"),
        pytest.param(decoded(EOS), decoded(EOS, stop=STOP_MAX_LENGTH), Verdict.FAIL, id="another-reason"),
        pytest.param(
            decoded(A, EOS, stop=STOP_FORCED_EOS), decoded(A, EOS), Verdict.PASS, id="generate-cannot-tell-at-the-limit"
        ),
    ],
)
def test_verdict_on_stop_reasons(reference, candidate, verdict):
    assert stops_finding("stops", [row(reference, candidate)], LIMITED).verdict is verdict


@pytest.mark.parametrize(
    ("reference", "candidate", "verdict", "words"),
    [
        pytest.param(decoded(A, EOS), decoded(A, EOS), Verdict.PASS, "", id="ends-by-itself"),
        pytest.param(
            decoded(A, A, stop=STOP_MAX_LENGTH),
            decoded(A, A, stop=STOP_MAX_LENGTH),
            Verdict.WARN,
            "max_length 8, in PyTorch too",
            id="the-models-own-fault",
        ),
        pytest.param(
            decoded(A, EOS),
            decoded(A, A, EOS, stop=STOP_FORCED_EOS),
            Verdict.FAIL,
            "max_length 8, 1 of them only in the set",
            id="only-in-the-set",
        ),
    ],
)
def test_verdict_on_outputs_that_are_cut(reference, candidate, verdict, words):
    found = cut_finding([row(reference, candidate)], settings())
    assert found.verdict is verdict and words in found.cause


def test_new_cuts_are_named_before_the_models_own():
    both = row(decoded(A, stop=STOP_MAX_LENGTH), decoded(A, stop=STOP_MAX_LENGTH))
    new = Row("pump-hot", decoded(A, EOS), decoded(A, A, stop=STOP_MAX_LENGTH))
    where = cut_finding([both, new], settings()).where
    assert where == "pump-hot: 2 tokens, ended by max_length; PyTorch ends after 2"


@pytest.mark.parametrize(
    ("tokens", "verdict"),
    [pytest.param(9, Verdict.WARN, id="9-tokens"), pytest.param(10, Verdict.PASS, id="10-tokens")],
)
def test_few_different_tokens_are_worth_a_warning(tokens, verdict):
    found = variety_finding([decoded(*range(tokens)), decoded(*range(tokens))])
    assert found.verdict is verdict and f"{tokens} different tokens" in found.details[0]


@pytest.mark.parametrize(
    ("batch", "verdict"),
    [
        pytest.param([decoded(A, EOS), decoded(EOS)], Verdict.PASS, id="uneven"),
        pytest.param([decoded(A, EOS), decoded(B, EOS)], Verdict.WARN, id="all-end-together"),
    ],
)
def test_rows_that_end_together_prove_nothing(batch, verdict):
    assert spread_finding([batch]).verdict is verdict


# --- settings ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "where"),
    [
        pytest.param({"length_penalty": 0.6}, "length_penalty: model 1.0, set 0.6", id="length-penalty"),
        pytest.param({"banned_token_ids": ()}, "banned_token_ids: model [15], set []", id="pad-ban"),
        pytest.param(
            {"max_length": 20, "decoder_start_token_id": 0}, "decoder_start_token_id: model 15, set 0", id="start-first"
        ),
    ],
)
def test_unlike_settings_fail_with_both_values(changes, where):
    found = settings_finding(settings(), settings(**changes), file="manifest.json")
    assert found.failed and found.where == where and "manifest.json" in found.action


def test_a_wrong_start_id_is_the_cause_with_both_ids():
    found = settings_finding(settings(), settings(decoder_start_token_id=0), file="manifest.json")
    assert "starts decoding from id 0" in found.cause and "start from 15" in found.cause


def test_what_describes_the_library_is_no_setting_of_the_set():
    stack = settings(search_rules="sequence_length", pad_removed_before_softmax=True)
    assert settings_finding(settings(), stack, file="manifest.json").verdict is Verdict.PASS


def test_greedy_search_needs_no_settings_of_beams():
    unlike = settings(num_beams=1, length_penalty=0.6, early_stopping=True)
    assert unlike_for(settings(num_beams=1), settings(num_beams=4), unlike) == []
    assert len(unlike_for(settings(num_beams=2), settings(num_beams=4), unlike)) == 3


# --- single tokens and text -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("generated", "by_reference", "verdict"),
    [
        pytest.param((A, EOS), [], Verdict.PASS, id="none"),
        pytest.param((A, PAD, EOS), [], Verdict.FAIL, id="only-in-the-set"),
        pytest.param((A, PAD, EOS), ["one"], Verdict.WARN, id="in-pytorch-too"),
    ],
)
def test_verdict_on_generated_pad(generated, by_reference, verdict):
    found = never_generated_finding(
        {"one": decoded(*generated)}, settings(), expected=1, also_by_reference=by_reference
    )
    assert found.verdict is verdict
    assert (found.where == "one, step 2: id 15") is (PAD in generated)


@pytest.mark.parametrize(
    ("forced", "first", "verdict", "where"),
    [
        pytest.param(A, A, Verdict.PASS, "", id="as-forced"),
        pytest.param(A, B, Verdict.FAIL, "one: expected 2 '▁2', got 3 '▁3'", id="another"),
        pytest.param(UNK, UNK, Verdict.FAIL, "forced_bos_token_id 1 '▁1'", id="the-unknown-token-is-forced"),
    ],
)
def test_verdict_on_the_first_token(forced, first, verdict, where):
    outputs = {"one": decoded(first, EOS)}
    found = first_token_finding(outputs, settings(forced_bos_token_id=forced), piece, UNK)
    assert (found.verdict, found.where) == (verdict, where)


@pytest.mark.parametrize(
    ("runtime", "where"),
    [
        pytest.param((A, B, EOS), "", id="equal"),
        pytest.param((A, C, EOS), "one, piece 2: library 3 '▁3', runtime 4 '▁4'", id="another-piece"),
        pytest.param((A, B), "one, piece 3: library 0 '▁0', runtime nothing", id="shorter"),
    ],
)
def test_the_first_piece_that_differs_is_named(runtime, where):
    found = source_ids_finding([Tokenized("one", (A, B, EOS), runtime)], piece, piece)
    assert (found.where, found.failed) == (where, bool(where))


def test_a_source_without_the_end_token_is_named_with_what_becomes_of_it():
    sources = [Tokenized("one", (A, EOS), (A, EOS)), Tokenized("two", (A, EOS), (A,)), Tokenized("three", (), ())]
    found = final_eos_finding(sources, EOS, {"two": STOP_MAX_LENGTH})
    assert found.failed and found.where == "two: last id 2, expected 0; its output stops by max_length"
    assert "three: last id None" in found.details[0]


RIGHT = np.array([[A, EOS, PAD]]), np.array([[1, 1, 0]])


@pytest.mark.parametrize(
    ("runtime", "where"),
    [
        pytest.param(RIGHT, "", id="equal"),
        pytest.param((np.array([[PAD, A, EOS]]), np.array([[0, 1, 1]])), "input_ids, row 0, column 0", id="left"),
        pytest.param((RIGHT[0], np.array([[1, 1, 1]])), "attention_mask, row 0, column 2", id="mask"),
        pytest.param((RIGHT[0][:, :2], RIGHT[1][:, :2]), "input_ids: library [1, 3], runtime [1, 2]", id="width"),
    ],
)
def test_where_padding_differs(runtime, where):
    found = padding_finding(RIGHT, runtime)
    assert found.failed is bool(where) and found.where.startswith(where)


def test_texts_that_read_otherwise_are_shown_side_by_side():
    found = texts_finding([("one", "a", "a"), ("two", "，", ",")])
    assert found.failed and found.where == "two: library '，', runtime ','"


@pytest.mark.parametrize(
    ("unknown", "by_design", "verdict"),
    [
        pytest.param({"one": []}, False, Verdict.PASS, id="none"),
        pytest.param({"one": ["▁😀"]}, False, Verdict.WARN, id="in-real-sentences"),
        pytest.param({"one": ["▁😀"]}, True, Verdict.PASS, id="in-sources-chosen-for-it"),
    ],
)
def test_unknown_pieces_are_counted_and_shown(unknown, by_design, verdict):
    found = unknown_finding("unknown pieces", unknown, sources=1, by_design=by_design)
    assert found.verdict is verdict and found.measured == len(unknown["one"])
    assert list(found.details) == [f"one: {piece}" for piece in unknown["one"]]
