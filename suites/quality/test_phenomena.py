"""Did the conversion break a sentence? Numbers, names, negations and the rest, sentence by sentence."""

from __future__ import annotations

from harness.checks.quality.columns import compare_columns, phenomenon_findings
from harness.checks.quality.flips import flips_finding, length_finding
from harness.contract.recipes import FLOAT32
from harness.plugin import not_applicable


def test_no_sentence_is_newly_broken(subject, sides, quality_sentences, checker, policy, today, judge):
    """What PyTorch gets wrong too is the model's own fault, and is listed as such (faults X01 to X06)."""
    cells = compare_columns(quality_sentences, [side.column for side in sides], checker)
    names = [side.name for side in sides]
    judge(*phenomenon_findings(cells, policy, columns=names, sentences=len(quality_sentences), today=today))


def test_tokens_and_lengths_stay_those_of_fp32(subject, sides, quality_sentences, paired, policy, judge):
    """Flips with their margins, the ten worst sentences side by side, and the length ratio (faults Q05 to Q07)."""
    if subject.precision == FLOAT32:
        not_applicable("token ids of a float32 set are held equal to PyTorch's in suites/decoding")
    left, right = sides[-2:]
    pairs = paired(subject, left, right, quality_sentences)
    names = (left.name, right.name)
    judge(
        flips_finding(pairs, names=names, expected=len(quality_sentences)),
        length_finding(pairs, policy, names=names, expected=len(quality_sentences)),
    )
