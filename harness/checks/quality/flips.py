"""What moved between two precisions, sentence by sentence: first token that differs and its margin, length, chrF."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sacrebleu.metrics import CHRF

from harness.contract.finding import Finding, Verdict
from harness.contract.policy import Policy

WORST = 10
_CHRF = CHRF()


@dataclass(frozen=True)
class Flip:
    """The first token that differs, and what the left column's model says at that step.

    Attributes:
        step: index of the token; 1 is the first after the start token.
        expected, found: the pieces; ``end`` where one side stopped.
        margin: log-probability of ``expected`` minus that of ``found``, by the left column's model after the common
            prefix. Small, or negative under beam search: a near-tie. Large: the judged model is wrong.
        difference: by how much the judged model moved that margin.
    """

    step: int
    expected: str
    found: str
    margin: float
    difference: float

    def text(self) -> str:
        """The flip in a few words."""
        return (
            f"token {self.step}: {self.expected!r} became {self.found!r}, "
            f"margin {self.margin:.3g}, moved by {self.difference:.3g}"
        )


@dataclass(frozen=True)
class Pair:
    """One sentence in two columns: texts, emitted tokens, and the flip if ids differ."""

    id: str
    source: str
    left: str
    right: str
    left_tokens: int
    right_tokens: int
    flip: Flip | None

    @property
    def chrf(self) -> float:
        """chrF, 0 to 100, of the right text against the left one."""
        return sentence_chrf(self.right, (self.left,))


def sentence_chrf(text: str, references: Sequence[str]) -> float:
    """sacrebleu's sentence chrF2, 0 to 100, against the nearest reference; 100 for equal texts, empty ones included."""
    if text in references:
        return 100.0
    return _CHRF.sentence_score(text, list(references)).score


def flips_finding(pairs: Sequence[Pair], *, names: tuple[str, str], expected: int) -> Finding:
    """Report agreement of token ids and the worst sentences side by side; what may break is the phenomena's affair."""
    flipped = [pair for pair in pairs if pair.flip]
    margins = sorted((pair.flip.margin for pair in flipped), reverse=True)
    lines = []
    if flipped:
        median = margins[len(margins) // 2]
        lines.append(f"{names[0]}'s margins at the flips: median {median:.3g}, largest {margins[0]:.3g}")
    return Finding(
        check=f"{names[1]} emits the tokens of {names[0]}",
        verdict=Verdict.PASS,
        measured=100 * (len(pairs) - len(flipped)) / max(1, len(pairs)),
        unit="% of the sentences have equal ids",
        compared=len(pairs),
        expected=expected,
        where=f"{flipped[0].id}, {flipped[0].flip.text()}" if flipped else "",
        details=(*lines, *_worst(flipped, names)),
    )


def _worst(flipped: Sequence[Pair], names: tuple[str, str]) -> list[str]:
    scored = sorted((pair.chrf, pair.id, pair) for pair in flipped)[:WORST]
    return [
        f"chrF {chrf:.1f}, {id}, {pair.flip.text()}; {pair.source!r}; {names[0]}: {pair.left}; {names[1]}: {pair.right}"
        for chrf, id, pair in scored
    ]


def length_finding(pairs: Sequence[Pair], policy: Policy, *, names: tuple[str, str], expected: int) -> Finding:
    """All emitted tokens of one column against the other's (faults Q05, Q06)."""
    left, right = sum(pair.left_tokens for pair in pairs), sum(pair.right_tokens for pair in pairs)
    apart = right / max(1, left) - 1
    failing = abs(apart) > policy.length_ratio_within
    worst = sorted(pairs, key=lambda pair: abs(pair.right_tokens - pair.left_tokens), reverse=True)
    changed = [pair for pair in worst[:WORST] if pair.right_tokens != pair.left_tokens]
    return Finding(
        check=f"{names[1]} translates at the length of {names[0]}",
        verdict=Verdict.FAIL if failing else Verdict.PASS,
        measured=abs(apart),
        limit=policy.length_ratio_within,
        unit=f"distance of the length ratio from 1; it is {1 + apart:.4f}",
        passing_limit=abs(apart),
        compared=len(pairs),
        expected=expected,
        where=f"{changed[0].id}: {changed[0].left_tokens} tokens became {changed[0].right_tokens}" if changed else "",
        cause=("translations got shorter: deletions" if apart < 0 else "translations got longer: repetition")
        if failing
        else "",
        action="Quantize only the encoder, then only the decoder, to see which of them does it." if failing else "",
        details=tuple(f"{p.id}: {p.left_tokens} tokens became {p.right_tokens}" for p in changed[1:]),
    )
