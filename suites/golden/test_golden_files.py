"""Are the golden's files what people approved? Everything here is a failure of the golden, not of the model."""

from __future__ import annotations

from harness.checks.golden import file_findings


def test_the_golden_is_what_was_approved(golden, policy, quality_sentences, read_by_people, settings, today, judge):
    """No hand edits, duplicates, orphans or expired exceptions."""
    named = golden.lock.sentences == settings.quality_sentences[0].name
    sources = {sentence.id: sentence.source for sentence in read_by_people} if named else None
    others = {sentence.id for sentence in quality_sentences}
    judge(*file_findings(golden, policy, sentences=sources, others=others, today=today))
