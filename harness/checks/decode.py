"""Token ids, scores and stop reasons: is what a set decodes what PyTorch decodes, and is a flip a tie or a defect?

Nothing here runs a model. A flip is judged by what both sides say when they are forced through the same tokens, see
``Forced``; the rule is that of the design's "Ties".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from harness.checks.numeric import difference
from harness.contract.errors import InputError
from harness.contract.finding import Finding, Verdict
from harness.contract.generation import STOP_EOS, Decoded, GenerationSettings
from harness.contract.limits import FAIL_ABOVE, SCORE_ABOVE, TIE_MARGIN

PYTORCH_AND_SET = ("PyTorch", "the set")
# Settings that greedy search does not read.
_BEAMS_ONLY = ("num_beams", "length_penalty", "early_stopping", "renormalize_logits")
# Settings that describe the reference's library, not the model.
STACK = ("search_rules", "pad_removed_before_softmax")
# Fewer different tokens than this over all outputs, and equal ids prove little.
FEW_TOKENS = 10
_SHOWN = 8

Piece = Callable[[int], str]


# --- settings -----------------------------------------------------------------------------------------------------


def unlike_settings(
    expected: GenerationSettings,
    found: GenerationSettings,
    *,
    names: tuple[str, str] = ("model", "set"),
    ignored: Sequence[str] = (),
) -> list[str]:
    """Every setting that differs, with both values; the start id first. What describes the stack is left out."""
    mine, theirs = expected.to_json(), found.to_json()
    return [
        f"{key}: {names[0]} {mine[key]!r}, {names[1]} {theirs[key]!r}"
        for key in mine
        if key not in (*STACK, *ignored) and mine[key] != theirs[key]
    ]


def unlike_for(settings: GenerationSettings, model: GenerationSettings, found: GenerationSettings) -> list[str]:
    """The unlike settings that decoding under ``settings`` would depend on: greedy search ignores those of beams."""
    return unlike_settings(model, found, ignored=_BEAMS_ONLY if settings.num_beams == 1 else ())


def settings_finding(model: GenerationSettings, found: GenerationSettings, *, file: str) -> Finding:
    """Compare a set's generation settings with the model's (faults D01, D06).

    Args:
        model: the model's own.
        found: the set's.
        file: where the set keeps them.
    """
    unlike = unlike_settings(model, found)
    cause = f"{len(unlike)} of the settings that decide what is emitted are not the model's"
    if model.decoder_start_token_id != found.decoder_start_token_id:
        cause = (
            f"the set starts decoding from id {found.decoder_start_token_id}, "
            f"the model was trained to start from {model.decoder_start_token_id}"
        )
    settings = len(model.to_json()) - len(STACK)
    return Finding(
        check="the set's generation settings equal the model's",
        verdict=Verdict.FAIL if unlike else Verdict.PASS,
        compared=settings,
        expected=settings,
        where=unlike[0] if unlike else "",
        cause=cause if unlike else "",
        action=f"Correct them in {file} or export the set again; outputs are not compared under unlike settings."
        if unlike
        else "",
        details=tuple(unlike[1:]),
    )


# --- flips ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Row:
    """One source, decoded by the side that is right by definition and by the side under test."""

    id: str
    reference: Decoded
    candidate: Decoded

    @property
    def same_ids(self) -> bool:
        """Whether both sides emitted the same tokens."""
        return self.reference.token_ids == self.candidate.token_ids

    @property
    def parted_at(self) -> int:
        """Index of the first token that differs; the start token has index 0, the first generated one 1."""
        pairs = zip(self.reference.token_ids, self.candidate.token_ids)
        shorter = min(len(self.reference.token_ids), len(self.candidate.token_ids))
        return next((i for i, (ours, theirs) in enumerate(pairs) if ours != theirs), shorter)


class Forced(NamedTuple):
    """Logits of both sides when forced through the same tokens, each float32 ``[steps, vocab]``.

    Entry ``t`` is what a side says after the first ``t + 1`` tokens, start token included.
    """

    reference: np.ndarray
    candidate: np.ndarray

    def differences(self) -> list[float]:
        """Largest difference of every step, scaled as in ``harness.checks.numeric``."""
        return [difference("", "", ours, theirs).scaled for ours, theirs in zip(self.reference, self.candidate)]


class Step(Protocol):
    """The best continuations of one row at one step, best first; see ``harness.runtime.search.Candidates``."""

    length: int
    beams: np.ndarray
    token_ids: np.ndarray
    scores: np.ndarray


@dataclass(frozen=True)
class Flip:
    """A row on which both sides emitted different tokens.

    Attributes:
        sentence: id of the source.
        step: first step that differs; step 1 chooses the first token after the start token.
        tokens: both tokens at that step, as text with id and piece.
        stops: both stop reasons.
        margin: how much the reference prefers its own choice: difference of the two tokens' logits, or of two
            hypotheses' normalised scores.
        logits_apart: largest scaled difference of the logits along the compared prefix.
        limit_needed: the smallest limit (``FAIL_ABOVE``, for beams ``SCORE_ABOVE``) under which it would be a tie.
        tie: whether it is one.
        cause, action: of a defect.
    """

    sentence: str
    step: int
    tokens: tuple[str, str]
    stops: tuple[str, str]
    margin: float
    logits_apart: float
    limit_needed: float
    tie: bool
    cause: str = ""
    action: str = ""

    def text(self, names: tuple[str, str] = PYTORCH_AND_SET) -> str:
        """The flip as a person reads it, one line."""
        return (
            f"{self.sentence}, step {self.step}: {names[0]} {self.tokens[0]}, {names[1]} {self.tokens[1]}; "
            f"margin {self.margin:.3g}, logits {self.logits_apart:.2g} apart; "
            f"stopped by {self.stops[0]} and {self.stops[1]}: {'tie' if self.tie else 'defect'}"
        )


def greedy_flip(row: Row, forced: Forced, settings: GenerationSettings, piece: Piece) -> Flip:
    """Judge a flip of greedy search.

    Args:
        row: the row.
        forced: both sides, forced through the tokens before the flip: ``row.parted_at`` steps.
        settings: under which both decoded; a token that they rule out has no chance whatever its logit is.
        piece: id -> piece.
    """
    step, apart = row.parted_at, forced.differences()
    allowed = log_probabilities(forced.reference[-1:], settings, first_length=step)[0]
    ours, theirs = (_token_at(decoded, step) for decoded in (row.reference, row.candidate))
    ruled_out = [token for token in (ours, theirs) if token is None or allowed[token] == -np.inf]
    margin = np.inf if ruled_out else abs(float(forced.reference[-1, ours]) - float(forced.reference[-1, theirs]))
    needed = max(apart[-1], margin / TIE_MARGIN)
    tie = apart[-1] <= FAIL_ABOVE and margin <= TIE_MARGIN * FAIL_ABOVE
    cause, action = ("", "") if tie else _greedy_cause(apart, ruled_out, piece)
    return Flip(row.id, step, _tokens(row, piece), _stops(row), margin, apart[-1], needed, tie, cause, action)


def _greedy_cause(apart: list[float], ruled_out: list[int | None], piece: Piece) -> tuple[str, str]:
    if max(apart) > FAIL_ABOVE:
        return _logits_cause(apart)
    if ruled_out and ruled_out[0] is not None:
        return (
            f"token {_named(ruled_out[0], piece)} is banned or forced away under these settings, yet was emitted",
            "Check the banned and forced ids on the side that emitted it.",
        )
    return (
        "forced through the same tokens alone, both sides agree: what chooses the token differs, not the model",
        "Look for rows of a batch that influence each other, and for the rules applied to the logits.",
    )


def _logits_cause(apart: list[float]) -> tuple[str, str]:
    first = next(step for step, value in enumerate(apart, 1) if value > FAIL_ABOVE)
    if first == 1:
        return "the logits differ from the first step on", "Run suites/parity: it names the first tensor that differs."
    return (
        f"the logits are right up to step {first - 1} and differ from step {first} on: cache or positions",
        "Run suites/parity: it names the first tensor that differs.",
    )


@dataclass(frozen=True)
class BeamEvidence:
    """What is known about a flip of beam search.

    Attributes:
        reference_ids, candidate_ids: both sides, forced through the reference's and through the candidate's tokens.
        replay: what the harness's own search makes of the reference's logits, alone.
        reference_steps, candidate_steps: best continuations of that search on either side.
    """

    reference_ids: Forced
    candidate_ids: Forced
    replay: Decoded
    reference_steps: Sequence[Step]
    candidate_steps: Sequence[Step]


def beam_flip(row: Row, evidence: BeamEvidence, settings: GenerationSettings, piece: Piece) -> Flip:
    """Judge a flip of beam search.

    It is a tie when both sides score both hypotheses alike, and the reference's scores of the two differ by no more
    than ``TIE_MARGIN * SCORE_ABOVE``, or those of the hypotheses that one search kept and the other dropped where they
    first part: from there on, near-equal beams lead to unlike ends.
    """
    apart = max(evidence.reference_ids.differences() + evidence.candidate_ids.differences())
    kept, kept_gap = _scores(evidence.reference_ids, row.reference.token_ids, settings)
    dropped, dropped_gap = _scores(evidence.candidate_ids, row.candidate.token_ids, settings)
    margin, gap = abs(kept - dropped), max(kept_gap, dropped_gap)
    parting = first_parting(evidence.reference_steps, evidence.candidate_steps, settings)
    if parting and parting.margin < margin:
        margin, gap = parting.margin, max(gap, parting.scores_apart)
    tie = apart <= FAIL_ABOVE and gap <= SCORE_ABOVE and margin <= TIE_MARGIN * SCORE_ABOVE
    needed = max(apart, gap, margin / TIE_MARGIN)
    cause, action = ("", "") if tie else _beam_cause(row, evidence, apart)
    return Flip(row.id, row.parted_at, _tokens(row, piece), _stops(row), margin, apart, needed, tie, cause, action)


def _scores(forced: Forced, token_ids: Sequence[int], settings: GenerationSettings) -> tuple[float, float]:
    """The reference's score of a hypothesis, and how far the candidate's is from it."""
    ours, theirs = (score_of(logits, token_ids, settings) for logits in forced)
    return ours, 0.0 if ours == theirs else abs(ours - theirs)


def _beam_cause(row: Row, evidence: BeamEvidence, apart: float) -> tuple[str, str]:
    if apart > FAIL_ABOVE:
        longest = max(evidence.reference_ids, evidence.candidate_ids, key=lambda forced: max(forced.differences()))
        return _logits_cause(longest.differences())
    if evidence.replay.token_ids == row.candidate.token_ids:
        return (
            "this search finds the same on PyTorch's own logits: the search differs from generate(), not the model",
            "Report it against harness/runtime/search.py, with this sentence and the versions of the run.",
        )
    return (
        "forced through either hypothesis alone, both sides agree: what keeps the beams apart differs, not the model",
        "Look for cache tensors that are not reordered with the beams, and for rows that influence each other.",
    )


def _tokens(row: Row, piece: Piece) -> tuple[str, str]:
    ours, theirs = (_token_at(decoded, row.parted_at) for decoded in (row.reference, row.candidate))
    return _named(ours, piece), _named(theirs, piece)


def _token_at(decoded: Decoded, index: int) -> int | None:
    return decoded.token_ids[index] if index < len(decoded.token_ids) else None


def _named(token: int | None, piece: Piece) -> str:
    return "nothing" if token is None else f"{token} {piece(token)!r}"


def _stops(row: Row) -> tuple[str, str]:
    return row.reference.stop_reason, row.candidate.stop_reason


# --- scores by the book ---------------------------------------------------------------------------------------------


def log_probabilities(logits: np.ndarray, settings: GenerationSettings, *, first_length: int = 1) -> np.ndarray:
    """Apply the rules of decoding in float64.

    Args:
        logits: ``[steps, vocab]``, consecutive steps of one row.
        settings: the rules.
        first_length: tokens the decoder held before the first of these steps, start token included.

    Returns:
        float64 ``[steps, vocab]`` log-probabilities; minus infinity for what the settings rule out.
    """
    greedy = settings.num_beams == 1
    table = np.asarray(logits, np.float64).copy()
    if settings.pad_removed_before_softmax and not greedy:
        table[:, settings.pad_token_id] = -np.inf
    if not settings.renormalize_logits and not greedy:
        table = _log_softmax(table)
    table[:, [token for token in settings.banned_token_ids if token != settings.eos_token_id]] = -np.inf
    forced = ((1, settings.forced_bos_token_id), (settings.max_length - 1, settings.forced_eos_token_id))
    for length, token in forced:
        if token is not None and 0 <= length - first_length < len(table):
            table[length - first_length] = -np.inf
            table[length - first_length, token] = 0.0
    return _log_softmax(table) if settings.renormalize_logits or greedy else table


def _log_softmax(table: np.ndarray) -> np.ndarray:
    table = table - table.max(axis=-1, keepdims=True)
    return table - np.log(np.exp(table).sum(axis=-1, keepdims=True))


def score_of(logits: np.ndarray, token_ids: Sequence[int], settings: GenerationSettings) -> float:
    """Score of a finished hypothesis, in the sense of ``Decoded.score``.

    Args:
        logits: ``[len(token_ids) - 1, vocab]``, what a model says along the hypothesis.
        token_ids: start token first.
        settings: the rules.
    """
    generated = list(token_ids[1:])
    total = float(log_probabilities(logits, settings)[np.arange(len(generated)), generated].sum())
    if settings.num_beams == 1:
        return total
    cut = generated[-1] != settings.eos_token_id
    length = len(generated) + (cut and settings.search_rules == "sequence_length")
    return total / length**settings.length_penalty


class Parting(NamedTuple):
    """Where two beam searches first keep different hypotheses.

    Attributes:
        length: tokens held before that step.
        margin: by how much the reference's search prefers what it keeps to what the candidate's keeps, per
            ``length ** length_penalty``; infinite when it was not even among its candidates.
        scores_apart: how far apart both sides score these hypotheses.
    """

    length: int
    margin: float
    scores_apart: float


def first_parting(reference: Sequence[Step], candidate: Sequence[Step], settings: GenerationSettings) -> Parting | None:
    """Find the first step at which two searches of one row keep different hypotheses; None if they never do."""
    start = [(settings.decoder_start_token_id,)]
    ours, theirs = start, start
    for our_step, their_step in zip(reference, candidate):
        our_scores, their_scores = _hypotheses(our_step, ours), _hypotheses(their_step, theirs)
        for chosen in (_leading, _continued):
            kept = set(chosen(our_scores, settings)) - set(chosen(their_scores, settings))
            instead = set(chosen(their_scores, settings)) - set(chosen(our_scores, settings))
            if kept or instead:
                return _parting(our_step.length, our_scores, their_scores, kept, instead, settings)
        ours, theirs = _continued(our_scores, settings), _continued(their_scores, settings)
    return None


Scores = Mapping[tuple[int, ...], float]


def _hypotheses(step: Step, prefixes: Sequence[tuple[int, ...]]) -> Scores:
    """Hypothesis -> sum of log-probabilities, best first."""
    rows = zip(step.beams.tolist(), step.token_ids.tolist(), step.scores.tolist())
    return {(*prefixes[beam], token): score for beam, token, score in rows}


def _leading(scores: Scores, settings: GenerationSettings) -> list[tuple[int, ...]]:
    return list(scores)[: settings.num_beams]


def _continued(scores: Scores, settings: GenerationSettings) -> list[tuple[int, ...]]:
    return [ids for ids in scores if ids[-1] != settings.eos_token_id][: settings.num_beams]


def _parting(
    length: int,
    ours: Scores,
    theirs: Scores,
    kept: set[tuple[int, ...]],
    instead: set[tuple[int, ...]],
    settings: GenerationSettings,
) -> Parting:
    shared = [ids for ids in kept | instead if ids in ours and ids in theirs]
    if len(shared) < len(kept | instead):
        return Parting(length, np.inf, np.inf)
    scale = length**settings.length_penalty
    margin = max(ours[ids] for ids in kept) - min(ours[ids] for ids in instead)
    return Parting(length, margin / scale, max(abs(ours[ids] - theirs[ids]) for ids in shared) / scale)


# --- findings over all rows -----------------------------------------------------------------------------------------


def ids_finding(
    check: str,
    rows: Sequence[Row],
    flips: Sequence[Flip],
    *,
    expected: int,
    limit: float = FAIL_ABOVE,
    names: tuple[str, str] = PYTORCH_AND_SET,
) -> Finding:
    """Judge the token ids of all rows: equal, ties listed, or a defect.

    Args:
        check: the finding's name.
        rows: every row that was decoded.
        flips: of the rows that differ, those that were examined, in row order.
        expected: how many rows there had to be.
        limit: what ``Flip.limit_needed`` is held against.
        names: how to call the two sides.
    """
    differing = sum(not row.same_ids for row in rows)
    defects = [flip for flip in flips if not flip.tie]
    unexamined = differing - len(flips)
    first = defects[0] if defects else None
    needed = max((flip.limit_needed for flip in flips), default=None)
    others = [flip.text(names) for flip in flips if flip is not first]
    details = others[:_SHOWN] + ([f"{len(others) - _SHOWN} more flips"] if len(others) > _SHOWN else [])
    if unexamined:
        details.append(f"{unexamined} more of {len(rows)} sentences differ and were not examined")
    return Finding(
        check=check,
        verdict=Verdict.FAIL if first or unexamined else Verdict.WARN if differing else Verdict.PASS,
        measured=needed,
        limit=None if needed is None else limit,
        unit="" if needed is None else "smallest limit under which every flip is a tie",
        passing_limit=needed,
        compared=len(rows),
        expected=expected,
        where=first.text(names) if first else "",
        cause=first.cause if first else "",
        action=first.action if first else "",
        details=tuple(details),
    )


def agreement_finding(
    check: str, rows: Sequence[Row], *, expected: int, piece: Piece, names: tuple[str, str] = PYTORCH_AND_SET
) -> Finding:
    """Report how many rows have equal ids, where equality is not asked for: quantized sets."""
    differing = [row for row in rows if not row.same_ids]
    return Finding(
        check=check,
        verdict=Verdict.PASS,
        measured=100.0 * (len(rows) - len(differing)) / max(1, len(rows)),
        unit="% of the sentences have equal ids",
        compared=len(rows),
        expected=expected,
        details=tuple(
            f"{row.id}, step {row.parted_at}: {names[0]} {ours}, {names[1]} {theirs}"
            for row in differing[:_SHOWN]
            for ours, theirs in [_tokens(row, piece)]
        ),
    )


def scores_finding(
    check: str, rows: Sequence[Row], settings: GenerationSettings, *, names: tuple[str, str] = PYTORCH_AND_SET
) -> Finding:
    """Compare the scores of the rows whose ids are equal, scaled where their magnitude exceeds 10 (fault D02).

    Not applicable when no row has equal ids.
    """
    same = [row for row in rows if row.same_ids]
    if not same:
        return Finding(check=check, verdict=Verdict.NOT_APPLICABLE, cause="no sentence has equal token ids")
    gaps = [_score_gap(row) for row in same]
    worst = max(gaps)
    failing = [(row, gap) for row, gap in zip(same, gaps) if not gap <= SCORE_ABOVE]
    lines = [
        f"{row.id}: {names[0]} {row.reference.score:.6f}, {names[1]} {row.candidate.score:.6f}" for row, _ in failing
    ]
    cause = "the same tokens got other probabilities: the logits differ"
    if settings.banned_token_ids and not settings.renormalize_logits and settings.num_beams > 1:
        cause += ", or pad is removed before the log-softmax on one side only (renormalize_logits is off)"
    return Finding(
        check=check,
        verdict=Verdict.FAIL if failing else Verdict.PASS,
        measured=worst,
        limit=SCORE_ABOVE,
        unit="largest difference of scores, scaled",
        passing_limit=worst,
        compared=len(same),
        expected=len(same),
        where=lines[0] if lines else "",
        cause=cause if lines else "",
        action="Run suites/parity: it names the first tensor that differs." if lines else "",
        details=tuple(lines[1:_SHOWN]),
    )


def _score_gap(row: Row) -> float:
    ours, theirs = np.array([row.reference.score]), np.array([row.candidate.score])
    return difference("", "", ours, theirs).scaled


def stops_finding(
    check: str, rows: Sequence[Row], settings: GenerationSettings, *, names: tuple[str, str] = PYTORCH_AND_SET
) -> Finding:
    """Compare why each row ended; rows whose ids differ are judged by the ids.

    ``generate()`` does not tell whether an end token at ``max_length`` was forced or chosen, so both count as one.
    """
    same = [row for row in rows if row.same_ids]
    if not same:
        return Finding(check=check, verdict=Verdict.NOT_APPLICABLE, cause="no sentence has equal token ids")
    wrong = [row for row in same if _stop(row.reference, settings) != _stop(row.candidate, settings)]
    lines = [
        f"{row.id}: {names[0]} {row.reference.stop_reason}, {names[1]} {row.candidate.stop_reason}" for row in wrong
    ]
    return Finding(
        check=check,
        verdict=Verdict.FAIL if wrong else Verdict.PASS,
        compared=len(same),
        expected=len(same),
        where=lines[0] if lines else "",
        cause="the same tokens, ended for another reason" if lines else "",
        action="Compare eos_token_id, forced_eos_token_id and max_length of both sides." if lines else "",
        details=tuple(lines[1:_SHOWN]),
    )


def _stop(decoded: Decoded, settings: GenerationSettings) -> str:
    at_limit = len(decoded.token_ids) >= settings.max_length
    return f"{decoded.token_ids[-1]} at max_length" if at_limit else decoded.stop_reason


def cut_finding(rows: Sequence[Row], settings: GenerationSettings) -> Finding:
    """Report the outputs that end because they were cut, not because the model ended them (fault D05).

    Where PyTorch is cut as well the fault is the model's, and the verdict is a warning.
    """
    cut = [row for row in rows if row.candidate.stop_reason != STOP_EOS]
    new = [row for row in cut if row.reference.stop_reason == STOP_EOS]
    lines = [
        f"{row.id}: {len(row.candidate.generated)} tokens, ended by {row.candidate.stop_reason}"
        + (f"; PyTorch ends after {len(row.reference.generated)}" if row in new else "; PyTorch too")
        for row in new + [row for row in cut if row not in new]
    ]
    cause = f"{len(cut)} of {len(rows)} outputs are cut at max_length {settings.max_length}"
    return Finding(
        check="outputs end by themselves",
        verdict=Verdict.FAIL if new else Verdict.WARN if cut else Verdict.PASS,
        compared=len(rows),
        expected=len(rows),
        where=lines[0] if lines else "",
        cause=f"{cause}, {len(new)} of them only in the set" if new else f"{cause}, in PyTorch too" if cut else "",
        action=_cut_action(bool(new)) if cut else "",
        details=tuple(lines[1:_SHOWN]),
    )


def _cut_action(new: bool) -> str:
    if new:
        return "Run suites/parity: the set does not reach the end token where PyTorch does."
    return "Raise max_length in generation_config.json, or split such sources: the model itself does not end them."


def variety_finding(outputs: Sequence[Decoded]) -> Finding:
    """Warn when the outputs hold so few different tokens that equal ids prove little."""
    distinct = len({token for decoded in outputs for token in decoded.generated})
    few = distinct < FEW_TOKENS
    return Finding(
        check="outputs are varied enough for equal ids to mean something",
        verdict=Verdict.WARN if few else Verdict.PASS,
        compared=len(outputs),
        expected=len(outputs),
        cause="the model repeats the same few tokens, as random weights do: equal ids prove little" if few else "",
        action="Rely on suites/parity for this model, or test trained weights." if few else "",
        details=(f"{distinct} different tokens over all outputs",),
    )


def spread_finding(rows: Sequence[Sequence[Decoded]]) -> Finding:
    """Warn when the rows of every batch end at the same step: then nothing went on beside a finished row (D07)."""
    lengths = [sorted(len(decoded.token_ids) for decoded in batch) for batch in rows]
    spread = any(batch[0] != batch[-1] for batch in lengths)
    return Finding(
        check="rows of a batch end at different steps",
        verdict=Verdict.PASS if spread else Verdict.WARN,
        compared=len(lengths),
        expected=len(lengths),
        cause="" if spread else "all rows of every batch end together: finished rows are not put to the test",
        action="" if spread else "Give sentences of different length with --sentences.",
        details=tuple(f"batch {i}: {batch[0]} to {batch[-1]} tokens" for i, batch in enumerate(lengths[:_SHOWN], 1)),
    )


def refused_finding(check: str, error: object) -> Finding:
    """The set could not be decoded at all."""
    return Finding(
        check=check,
        verdict=Verdict.FAIL,
        cause=str(error),
        action="Run suites/export and suites/parity: decoding needs a set that runs and gives finite logits.",
    )


# --- the tokens themselves ------------------------------------------------------------------------------------------


def never_generated_finding(
    outputs: Mapping[str, Decoded],
    settings: GenerationSettings,
    *,
    expected: int,
    also_by_reference: Sequence[str] = (),
) -> Finding:
    """Check that pad is never generated (fault D02).

    Args:
        outputs: sentence id -> what the set made of it, under the set's own settings.
        settings: the set's own.
        expected: how many outputs there had to be.
        also_by_reference: ids of the sentences on which PyTorch generates pad, too; then it is the model's.
    """
    pad = settings.pad_token_id
    places = {id: decoded.generated.index(pad) + 1 for id, decoded in outputs.items() if pad in decoded.generated}
    new = [id for id in places if id not in also_by_reference]
    first = (new or list(places) or [""])[0]
    banned = pad in settings.banned_token_ids
    cause = "pad is not among the set's banned_token_ids" if not banned else "the ban is not applied"
    return Finding(
        check="pad is never generated",
        verdict=Verdict.FAIL if new else Verdict.WARN if places else Verdict.PASS,
        compared=len(outputs),
        expected=expected,
        where=f"{first}, step {places[first]}: id {pad}" if places else "",
        cause=f"{cause}; it was generated in {len(places)} of {len(outputs)} outputs" if places else "",
        action="Ban it: bad_words_ids of the model, banned_token_ids of the set." if places else "",
        details=() if places or banned else (f"pad ({pad}) is not banned; it did not win on these sentences",),
    )


def first_token_finding(
    outputs: Mapping[str, Decoded], settings: GenerationSettings, piece: Piece, unk_id: int
) -> Finding:
    """Check that every output begins with the forced id, and that it is not ``<unk>`` (fault D03)."""
    forced = settings.forced_bos_token_id
    wrong = {id: decoded.generated[0] for id, decoded in outputs.items() if decoded.generated[0] != forced}
    first = next(iter(wrong), "")
    unknown = forced == unk_id
    where = f"{first}: expected {_named(forced, piece)}, got {_named(wrong[first], piece)}" if wrong else ""
    cause = f"{len(wrong)} of {len(outputs)} outputs do not begin with the forced id" if wrong else ""
    return Finding(
        check="the first token is the forced one",
        verdict=Verdict.FAIL if wrong or unknown else Verdict.PASS,
        compared=len(outputs),
        expected=len(outputs),
        where=where or (f"forced_bos_token_id {_named(forced, piece)}" if unknown else ""),
        cause=cause or ("the forced id is the unknown token: the language id was not found" if unknown else ""),
        action="Set forced_bos_token_id to the id of the target language." if wrong or unknown else "",
    )


# --- text and source ids --------------------------------------------------------------------------------------------


class Tokenized(NamedTuple):
    """One source as the library's tokenizer and as the runtime's see it."""

    id: str
    library: tuple[int, ...]
    runtime: tuple[int, ...]


COPY_TOKENIZER = "Copy the model's tokenizer files into the set again, all of them."


def unreadable_finding(error: InputError | None) -> Finding:
    """Whether the set's tokenizer could be read at all; ``error`` is what kept it from being."""
    return Finding(
        check="the set's tokenizer can be read",
        verdict=Verdict.FAIL if error else Verdict.PASS,
        where=error.where if error else "",
        cause=error.what if error else "",
        action=error.action if error else "",
    )


def source_ids_finding(
    sources: Sequence[Tokenized],
    library_piece: Piece,
    runtime_piece: Piece,
    *,
    check: str = "source ids equal those of the library's tokenizer",
    names: tuple[str, str] = ("library", "runtime"),
) -> Finding:
    """Compare source ids piece by piece (fault T05)."""
    lines = [
        f"{source.id}, piece {at + 1}: {names[0]} {_at(source.library, at, library_piece)}, "
        f"{names[1]} {_at(source.runtime, at, runtime_piece)}"
        for source in sources
        if (at := _first_unlike(source.library, source.runtime)) is not None
    ]
    return Finding(
        check=check,
        verdict=Verdict.FAIL if lines else Verdict.PASS,
        compared=len(sources),
        expected=len(sources),
        where=lines[0] if lines else "",
        cause=f"{len(lines)} of {len(sources)} sources are cut or numbered otherwise" if lines else "",
        action=COPY_TOKENIZER if lines else "",
        details=tuple(lines[1:_SHOWN]),
    )


def _first_unlike(left: Sequence[int], right: Sequence[int]) -> int | None:
    if tuple(left) == tuple(right):
        return None
    return next((i for i, (a, b) in enumerate(zip(left, right)) if a != b), min(len(left), len(right)))


def _at(ids: Sequence[int], index: int, piece: Piece) -> str:
    return _named(ids[index] if index < len(ids) else None, piece)


def padding_finding(library: tuple[np.ndarray, np.ndarray], runtime: tuple[np.ndarray, np.ndarray]) -> Finding:
    """Compare a padded batch (ids and mask, each int64 ``[batch, source]``) of both tokenizers (fault T04)."""
    problem = ""
    for name, ours, theirs in zip(("input_ids", "attention_mask"), library, runtime):
        if ours.shape != theirs.shape:
            problem = problem or f"{name}: library {list(ours.shape)}, runtime {list(theirs.shape)}"
        elif (ours != theirs).any():
            row, column = (int(i) for i in np.argwhere(ours != theirs)[0])
            found = f"{name}, row {row}, column {column}: library {ours[row, column]}, runtime {theirs[row, column]}"
            problem = problem or found
    return Finding(
        check="a padded batch equals the library's",
        verdict=Verdict.FAIL if problem else Verdict.PASS,
        compared=2,
        expected=2,
        where=problem,
        cause="another padding side or pad id" if problem else "",
        action=COPY_TOKENIZER if problem else "",
    )


def texts_finding(
    texts: Sequence[tuple[str, str, str]],
    *,
    check: str = "texts equal those the library decodes",
    names: tuple[str, str] = ("library", "runtime"),
) -> Finding:
    """Compare decoded texts, given as sentence id, library's text, runtime's text (faults T01, T03)."""
    lines = [f"{id}: {names[0]} {ours!r}, {names[1]} {theirs!r}" for id, ours, theirs in texts if ours != theirs]
    return Finding(
        check=check,
        verdict=Verdict.FAIL if lines else Verdict.PASS,
        compared=len(texts),
        expected=len(texts),
        where=lines[0] if lines else "",
        cause=f"{len(lines)} of {len(texts)} outputs of equal ids read otherwise" if lines else "",
        action=COPY_TOKENIZER if lines else "",
        details=tuple(lines[1:_SHOWN]),
    )


def final_eos_finding(
    sources: Sequence[Tokenized], eos_id: int, consequences: Mapping[str, str], details: Sequence[str] = ()
) -> Finding:
    """Check that every source ends with the end token (fault D04).

    Args:
        sources: all sources.
        eos_id: id of the end token.
        consequences: sentence id -> stop reason of what the set decodes from the ids as they are.
        details: what happens to this model without the end token.
    """
    lines = [
        f"{source.id}: last id {source.runtime[-1] if source.runtime else None}, expected {eos_id}; "
        f"its output stops by {consequences.get(source.id, 'nothing, not decoded')}"
        for source in sources
        if source.runtime[-1:] != (eos_id,)
    ]
    return Finding(
        check="every source ends with the end token",
        verdict=Verdict.FAIL if lines else Verdict.PASS,
        compared=len(sources),
        expected=len(sources),
        where=lines[0] if lines else "",
        cause=f"{len(lines)} of {len(sources)} sources do not end with it" if lines else "",
        action="Append eos_token_id to every source: the model never saw one without." if lines else "",
        details=(*lines[1:_SHOWN], *details),
    )


def unknown_finding(check: str, unknown: Mapping[str, Sequence[str]], *, sources: int, by_design: bool) -> Finding:
    """Report the pieces that the model only sees, or emits, as ``<unk>`` (fault T02).

    Args:
        check: the finding's name.
        unknown: sentence id -> its unknown pieces, as text.
        sources: how many texts were looked at.
        by_design: whether the texts were chosen to contain some; then it is not worth a warning.
    """
    found = {id: pieces for id, pieces in unknown.items() if pieces}
    count = sum(map(len, found.values()))
    return Finding(
        check=check,
        verdict=Verdict.WARN if found and not by_design else Verdict.PASS,
        measured=count,
        unit="unknown pieces",
        compared=sources,
        expected=sources,
        cause=f"{len(found)} of {sources} texts have them; skip_special_tokens hides them" if found else "",
        action="Replace these words, or expect them to be lost." if found and not by_design else "",
        details=tuple(f"{id}: {' '.join(pieces[:_SHOWN])}" for id, pieces in list(found.items())[:_SHOWN]),
    )
