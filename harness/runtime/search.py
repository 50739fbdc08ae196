"""Greedy and beam search over a ``Seq2Seq``, with the decode contract of transformers' ``generate(do_sample=False)``.

Token ids and scores equal those of ``generate()``; where its versions disagree, ``GenerationSettings.search_rules`` and
``pad_removed_before_softmax`` say which one is meant. One step goes: last position's logits -> log-softmax -> banned
ids -> forced first id -> forced last id -> renormalisation -> choice. Beam search adds log-probabilities in float32, as
``generate()`` does, so that near-equal hypotheses are ordered alike.

Rows never influence each other, so a row that is finished leaves the batch instead of being fed padding.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from harness.contract.errors import InputError
from harness.contract.generation import Decoded, GenerationSettings, stop_reason
from harness.contract.seq2seq import DecoderState, Seq2Seq

# Vocabulary entries per block when the best candidates are looked for; 256 to 1024 are equally fast.
_BLOCK = 512


class Candidates(NamedTuple):
    """The best continuations of one row at one step, best first.

    Attributes:
        row: the row of ``input_ids``.
        length: tokens the decoder held before this step, start token included.
        beams: int64 ``[count]``, the beam each candidate continues; 0 in greedy search.
        token_ids: int64 ``[count]``.
        scores: float32 ``[count]``, sum of log-probabilities of the whole candidate; in greedy search of its last
            token only.
    """

    row: int
    length: int
    beams: np.ndarray
    token_ids: np.ndarray
    scores: np.ndarray


class _Rules(NamedTuple):
    start_counted_when_cut: bool
    never_waits: bool
    running_beams_only: bool


_RULES = {
    "sequence_length": _Rules(start_counted_when_cut=True, never_waits=False, running_beams_only=False),
    "generated_length": _Rules(start_counted_when_cut=False, never_waits=True, running_beams_only=False),
    "running_beams": _Rules(start_counted_when_cut=False, never_waits=True, running_beams_only=True),
}


def generate(
    model: Seq2Seq,
    input_ids: np.ndarray,
    attention_mask: np.ndarray,
    settings: GenerationSettings,
    trace: list[Candidates] | None = None,
) -> list[Decoded]:
    """Decode a batch: greedy search for one beam, beam search for more.

    Args:
        model: encodes and steps; only its logits at the last position are looked at.
        input_ids: int64 ``[batch, source]``, padded on the right.
        attention_mask: int64 ``[batch, source]``, 1 for real tokens.
        settings: every setting of the search. ``max_length`` has to fit the model's positions.
        trace: receives the ``2 * num_beams`` best candidates of every row and step. Two runs part at their first
            unlike entry, and its scores give the margin.

    Returns:
        One result per row. Its score is, for beam search, ``sequences_scores`` of ``generate()``; for greedy search,
        the float64 sum of the chosen tokens' float32 log-softmax over the processed scores, 0 for a forced token.
        (``compute_transition_scores(normalize_logits=True)`` means the same, but adds up the vocabulary one by one in
        float32: 5e-5 off per token at 8,000 pieces, where this is 5e-7 off.)

    Raises:
        InputError: shapes disagree, a token id lies outside the vocabulary, the vocabulary is too small for the beams,
            or logits are not finite.
    """
    if np.ndim(input_ids) != 2 or np.shape(input_ids) != np.shape(attention_mask):
        raise InputError(
            what=f"input_ids {np.shape(input_ids)} and attention_mask {np.shape(attention_mask)} disagree",
            where="generate",
            action="Pass both as [batch, source].",
        )
    state = model.start(model.encode(input_ids, attention_mask))
    search = _greedy_search if settings.num_beams == 1 else _beam_search
    return search(model, state, len(input_ids), settings, trace)


def _greedy_search(
    model: Seq2Seq, state: DecoderState, batch: int, settings: GenerationSettings, trace: list[Candidates] | None
) -> list[Decoded]:
    # generate() neither removes pad nor normalises here; normalising moves no argmax and gives the score.
    settings = settings.replace(pad_removed_before_softmax=False, renormalize_logits=True)
    results: dict[int, Decoded] = {}
    rows = np.arange(batch)
    tokens = np.full((batch, settings.max_length), settings.decoder_start_token_id, np.int64)
    totals = np.zeros(batch)
    for length in range(1, settings.max_length):
        logits, state = model.step(state, tokens[rows, length - 1 : length])
        scores = _next_token_scores(logits, length, settings)
        chosen = scores.argmax(axis=-1)
        tokens[rows, length] = chosen
        totals[rows] += scores[np.arange(len(rows)), chosen]
        if trace is not None:
            trace += [_best_candidates(int(row), length, scores[[i]], 2) for i, row in enumerate(rows)]
        ends = (chosen == settings.eos_token_id) | (length + 1 == settings.max_length)
        for i in np.flatnonzero(ends):
            row = int(rows[i])
            results[row] = _decoded(tuple(tokens[row, : length + 1].tolist()), float(totals[row]), settings)
        if ends.all():
            break
        if ends.any():
            rows, state = rows[~ends], state.select(np.flatnonzero(~ends))
    return [results[row] for row in range(batch)]


def _beam_search(
    model: Seq2Seq, state: DecoderState, batch: int, settings: GenerationSettings, trace: list[Candidates] | None
) -> list[Decoded]:
    sentences = unfinished = [_Sentence(row, settings) for row in range(batch)]
    while unfinished:
        # One beam per sentence in the first step, num_beams afterwards: generate() starts with num_beams copies, but
        # all except the first at a score of -1e9.
        beams, length = len(unfinished[0].prefixes), len(unfinished[0].prefixes[0])
        last = np.array([prefix[-1:] for sentence in unfinished for prefix in sentence.prefixes], np.int64)
        logits, state = model.step(state, last)
        scores = _next_token_scores(logits, length, settings)
        scores += np.concatenate([sentence.scores for sentence in unfinished])[:, None]
        sources = []
        for i, sentence in enumerate(unfinished):
            own = slice(i * beams, (i + 1) * beams)
            candidates = _best_candidates(sentence.row, length, scores[own], 2 * settings.num_beams)
            if trace is not None:
                trace.append(candidates)
            continued = sentence.advance(candidates)
            if not sentence.done:
                sources.append(own.start + continued)
        before, unfinished = len(unfinished), [sentence for sentence in unfinished if not sentence.done]
        if unfinished:
            move = state.reorder if len(unfinished) == before and beams == settings.num_beams else state.select
            state = move(np.concatenate(sources))
    return [sentence.finished[0] for sentence in sentences]


class _Sentence:
    """Beam search of one row: its open beams, best first, and the best ``num_beams`` finished hypotheses."""

    def __init__(self, row: int, settings: GenerationSettings) -> None:
        self.row, self.settings, self.rules = row, settings, _RULES[settings.search_rules]
        self.prefixes: list[tuple[int, ...]] = [(settings.decoder_start_token_id,)]
        self.scores = np.zeros(1, np.float32)
        self.finished: list[Decoded] = []
        self.done = False

    def advance(self, candidates: Candidates) -> np.ndarray:
        """Finish or continue the candidates of one step; return the beam that each new beam continues."""
        length, at_limit = candidates.length, candidates.length + 1 == self.settings.max_length
        ended, kept = self._split(candidates, at_limit)
        self._finish(candidates, ended, length)
        best = kept[0] if self.rules.running_beams_only and kept else 0
        self.done = self._is_settled(candidates.scores[best], length)
        if at_limit and not self.done:
            self._finish(candidates, kept, length + self.rules.start_counted_when_cut)
        self.done |= at_limit
        self.prefixes = [self._extended(candidates, rank) for rank in kept]
        self.scores = candidates.scores[kept]
        return candidates.beams[kept]

    def _split(self, candidates: Candidates, at_limit: bool) -> tuple[list[int], list[int]]:
        """Return the ranks of the candidates that are finished and of those that go on."""
        ends = candidates.token_ids == self.settings.eos_token_id
        if at_limit and self.rules.running_beams_only:
            ends[:] = True
        # The surplus of candidates only refills beams, and so do impossible ones: an end among them is no hypothesis.
        ended = np.flatnonzero((ends & (candidates.scores > -np.inf))[: self.settings.num_beams])
        kept = np.flatnonzero(~ends)[: self.settings.num_beams]
        return ended.tolist(), kept.tolist()

    def _finish(self, candidates: Candidates, ranks: list[int], length: int) -> None:
        for rank in ranks:
            score = self._normalised(candidates.scores[rank], length)
            self.finished.append(_decoded(self._extended(candidates, rank), score, self.settings))
        self.finished.sort(key=lambda hypothesis: hypothesis.score, reverse=True)
        del self.finished[self.settings.num_beams :]

    def _is_settled(self, best: np.float32, length: int) -> bool:
        """Return whether no open beam is expected to displace a finished hypothesis."""
        early = self.settings.early_stopping
        if len(self.finished) < self.settings.num_beams:
            return False
        if early and not (early == "never" and self.rules.never_waits):
            return True
        if early == "never" and self.settings.length_penalty > 0:
            # Log-probabilities are negative: dividing by the longest possible length gives the upper bound.
            length = self.settings.max_length - 1
        return self.finished[-1].score >= self._normalised(best, length)

    def _normalised(self, total: np.float32, length: int) -> float:
        return float(total) / length**self.settings.length_penalty

    def _extended(self, candidates: Candidates, rank: int) -> tuple[int, ...]:
        return (*self.prefixes[candidates.beams[rank]], int(candidates.token_ids[rank]))


def _decoded(token_ids: tuple[int, ...], score: float, settings: GenerationSettings) -> Decoded:
    return Decoded(token_ids, score, stop_reason(token_ids, settings))


def _next_token_scores(logits: np.ndarray, length: int, settings: GenerationSettings) -> np.ndarray:
    """Process the logits after ``length`` tokens.

    Returns:
        float32 ``[rows, vocab]`` scores.
    """
    if length == 1:
        _check_vocabulary(logits.shape[-1], settings)
    scores = logits[:, -1].astype(np.float32)  # a copy: the model's own array stays as it is
    if settings.pad_removed_before_softmax:
        scores[:, settings.pad_token_id] = -np.inf
    if not settings.renormalize_logits:
        _log_softmax_in_place(scores)
    scores[:, _banned(settings)] = -np.inf
    if length == 1 and settings.forced_bos_token_id is not None:
        _force(scores, settings.forced_bos_token_id)
    if length + 1 == settings.max_length and settings.forced_eos_token_id is not None:
        _force(scores, settings.forced_eos_token_id)
    if settings.renormalize_logits:
        _log_softmax_in_place(scores)
    return scores


def _banned(settings: GenerationSettings) -> list[int]:
    # generate() drops the end token from bad_words_ids: with it banned, nothing would end.
    return [token for token in settings.banned_token_ids if token != settings.eos_token_id]


def _force(scores: np.ndarray, token: int) -> None:
    scores[:] = -np.inf
    scores[:, token] = 0


def _log_softmax_in_place(scores: np.ndarray) -> None:
    peak = scores.max(axis=-1, keepdims=True)
    if not np.isfinite(peak).all():
        # generate() goes on with NaN, and the argmax of a NaN row is id 0: for Marian an empty translation.
        row = int(np.argmin(np.isfinite(peak)))
        raise InputError(
            what=f"the largest logit of decoder row {row} is {peak[row, 0]}",
            where="decoder",
            action="Look for NaN or overflow in its tensors, or a source row without tokens.",
        )
    # Row by row: a buffer of one row stays in the cache, one of all rows is faulted in anew at every step.
    exponentials = np.empty_like(scores[0])
    for row, highest in zip(scores, peak):
        # Two subtractions: peak + log(sum) in one float32 number would lose digits that near-ties need.
        row -= highest
        row -= np.log(np.exp(row, out=exponentials).sum())


def _best_candidates(row: int, length: int, scores: np.ndarray, count: int) -> Candidates:
    """Return the ``count`` best of float32 ``[beams, vocab]`` scores, equal ones in index order."""
    flat, vocabulary = scores.reshape(-1), scores.shape[-1]
    # The count-th best block maximum bounds the count-th best score from below, so few entries remain to be sorted.
    # A partition of the whole vocabulary takes longer than an int8 decoder step.
    peaks = np.maximum.reduceat(flat, np.arange(0, len(flat), _BLOCK))
    floor = np.partition(peaks, -count)[-count] if len(peaks) >= count else -np.inf
    above = np.flatnonzero(flat >= floor)
    best = above[np.argsort(-flat[above], kind="stable")[:count]]
    return Candidates(row, length, best // vocabulary, best % vocabulary, flat[best])


def _check_vocabulary(vocabulary: int, settings: GenerationSettings) -> None:
    if vocabulary < 2 * settings.num_beams:
        raise InputError(
            what=f"a vocabulary of {vocabulary} is too small for {settings.num_beams} beams",
            where="generation settings",
            action="Set num_beams to at most half the vocabulary.",
        )
    ids = {*settings.banned_token_ids, settings.forced_bos_token_id, settings.forced_eos_token_id}
    if settings.pad_removed_before_softmax:
        ids.add(settings.pad_token_id)
    if wrong := sorted(token for token in ids - {None} if not 0 <= token < vocabulary):
        raise InputError(
            what=f"token ids {wrong} lie outside the vocabulary of {vocabulary}",
            where="generation settings",
            action="Take banned, forced and pad ids from the model's own generation_config.json.",
        )
