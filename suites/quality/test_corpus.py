"""Is it as good on average? BLEU and chrF against reference translations."""

from __future__ import annotations

from harness.checks.quality.corpus import corpus_finding, corpus_ratios
from harness.plugin import not_covered


def test_corpus_scores_are_those_of_the_column_before(subject, sides, quality_sentences, settings, policy, judge):
    """fp32 against PyTorch, quantized against fp32; undecided where there are too few sentences to tell."""
    chosen = [i for i, sentence in enumerate(quality_sentences) if sentence.references]
    if not chosen:
        not_covered(f"corpus quality: {settings.quality_sentences[0].name} has no reference translations")
    left, right = ([side.translated[i].text for i in chosen] for side in sides[-2:])
    references = [quality_sentences[i].references for i in chosen]
    names = (sides[-2].name, sides[-1].name)
    judge(
        *(
            corpus_finding(ratio, policy, names=names, expected=len(chosen))
            for ratio in corpus_ratios(left, right, references)
        )
    )
