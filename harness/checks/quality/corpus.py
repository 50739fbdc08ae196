"""Corpus scores against references, and whether a column is at least 99 % of another.

BLEU (Papineni et al. 2002) and chrF (Popović 2015) by sacrebleu (Post 2018); the bound on their ratio by paired
bootstrap resampling (Koehn 2004): both columns are scored on the same sentences, drawn anew each time.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from sacrebleu.metrics import BLEU, CHRF
from sacrebleu.metrics.base import Metric

from harness.contract.finding import Finding, Verdict
from harness.contract.limits import CORPUS_CONFIDENCE, CORPUS_FEWEST, CORPUS_RESAMPLES, CORPUS_SCORE_FLOOR
from harness.contract.policy import Policy

_SEED = 20240229


@dataclass(frozen=True)
class Ratio:
    """A corpus score of two columns and the ratio of the right one to the left one.

    Attributes:
        metric, signature: sacrebleu's name and signature.
        left, right: corpus scores, 0 to 100.
        lower, upper: one-sided bounds of the ratio, each at ``CORPUS_CONFIDENCE``.
        sentences: how many went in.
    """

    metric: str
    signature: str
    left: float
    right: float
    lower: float
    upper: float
    sentences: int

    @property
    def point(self) -> float:
        """The ratio itself."""
        return self.right / self.left

    def sentences_needed(self, limit: float) -> int | None:
        """How many sentences would decide whether the ratio is above or below the limit; None where it is the limit.

        The bound's distance from the ratio shrinks with the square root of the number of sentences.
        """
        distance = abs(self.point - limit)
        width = self.point - self.lower if self.point > limit else self.upper - self.point
        if distance < 1e-6:
            return None
        return max(CORPUS_FEWEST, math.ceil(self.sentences * (width / distance) ** 2))


def corpus_ratios(
    left: Sequence[str], right: Sequence[str], references: Sequence[Sequence[str]], *, tokenizer: str = "zh"
) -> list[Ratio]:
    """BLEU and chrF of two columns, with bounds on the ratio.

    Args:
        left, right: translations, one per sentence.
        references: one or more per sentence.
        tokenizer: sacrebleu's tokenizer for BLEU; ``zh`` splits Chinese into characters.
    """
    most = max(map(len, references))
    streams = [[own[i] if i < len(own) else None for own in references] for i in range(most)]
    draws = _draws(len(references))
    return [_ratio(metric, list(left), list(right), streams, draws) for metric in (BLEU(tokenize=tokenizer), CHRF())]


def _draws(sentences: int) -> np.ndarray:
    """int64 ``[resamples, sentences]``: how often each sentence is drawn; the same for both columns and any run."""
    random = np.random.default_rng(_SEED)
    return random.multinomial(sentences, np.full(sentences, 1 / sentences), size=CORPUS_RESAMPLES)


def _ratio(metric: Metric, left: list[str], right: list[str], streams: list[list], draws: np.ndarray) -> Ratio:
    scores = [metric.corpus_score(side, streams).score for side in (left, right)]
    # sacrebleu's own bootstrap goes the same way, but gives no access to the single resamples.
    tables = [np.array(metric._extract_corpus_statistics(side, streams)) for side in (left, right)]
    resampled = [
        np.array([metric._compute_score_from_stats(sums).score for sums in (draws @ table).tolist()])
        for table in tables
    ]
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.where(resampled[0] == resampled[1], 1.0, resampled[1] / resampled[0])
    lower, upper = np.quantile(ratios, [1 - CORPUS_CONFIDENCE, CORPUS_CONFIDENCE])
    return Ratio(
        type(metric).__name__.replace("CHRF", "chrF"),
        metric.get_signature().format(),
        scores[0],
        scores[1],
        float(lower),
        float(upper),
        len(left),
    )


def corpus_finding(ratio: Ratio, policy: Policy, *, names: tuple[str, str], expected: int) -> Finding:
    """Answer "not worse than 99 %" by the lower bound; undecided where the limit lies between the bounds."""
    limit = policy.corpus_ratio
    check = f"corpus {ratio.metric} of {names[1]} is at least {limit:.1%} of that of {names[0]}"
    scores = f"{names[0]} {ratio.left:.2f}, {names[1]} {ratio.right:.2f}, {ratio.metric} signature {ratio.signature}"
    if ratio.left < CORPUS_SCORE_FLOOR and ratio.lower < limit:
        cause = f"{names[0]} itself scores {ratio.left:.2f}: the references say nothing about this model"
        return Finding(check, Verdict.NOT_APPLICABLE, cause=cause, details=(scores,))
    verdict = _verdict(ratio, limit)
    cause, action = _explanation(ratio, limit, verdict)
    return Finding(
        check=check,
        verdict=verdict,
        measured=100 * (1 - ratio.lower),
        limit=100 * (1 - limit),
        unit=f"% worse at most, by the {CORPUS_CONFIDENCE:.0%} lower bound; the ratio itself is {ratio.point:.4f}",
        passing_limit=100 * (1 - ratio.lower),
        compared=ratio.sentences,
        expected=expected,
        cause=cause,
        action=action,
        details=(scores,),
    )


def _verdict(ratio: Ratio, limit: float) -> Verdict:
    if ratio.upper < limit:
        return Verdict.FAIL
    enough = ratio.sentences >= CORPUS_FEWEST or ratio.lower == ratio.upper == 1
    return Verdict.PASS if ratio.lower >= limit and enough else Verdict.INCONCLUSIVE


def _explanation(ratio: Ratio, limit: float, verdict: Verdict) -> tuple[str, str]:
    if verdict is Verdict.PASS:
        return "", ""
    if verdict is Verdict.FAIL:
        return (
            f"even the upper bound, {ratio.upper:.4f}, is below {limit:g}: translations got worse throughout",
            "See which phenomena broke, and which tensors lost most.",
        )
    needed = ratio.sentences_needed(limit)
    cause = f"{ratio.sentences} sentences leave the ratio between {ratio.lower:.4f} and {ratio.upper:.4f}"
    if needed is None:
        return f"{cause}, and it is the limit itself", "No number of sentences decides this: improve the recipe."
    side = "show that it is above" if ratio.point > limit else "show that it is below"
    return f"{cause}: about {needed} sentences would be needed to {side} {limit:g}", (
        f"Judge about {needed} sentences with references: --sentences FILE."
    )
