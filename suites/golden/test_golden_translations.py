"""Does the candidate say what people approved, or something as good?"""

from __future__ import annotations

from harness.checks.decode import refused_finding
from harness.checks.golden import golden_finding, judge_translation, provenance_finding
from harness.contract.errors import InputError
from harness.contract.golden import Golden
from harness.contract.recipes import FLOAT32
from harness.contract.sentences import Sentence
from harness.golden.proposal import PROPOSAL, Proposal, ProposedEntry, write_proposal
from harness.plugin import OFFER, blocked, not_applicable


def test_translations_agree_with_the_golden(
    subject, golden, golden_sentences, provenance, translations, checker, policy, today, judge
):
    """Exact or accepted, else by phenomena and chrF; int8 by phenomena, because its texts depend on the CPU."""
    try:
        found = translations.by_set(subject, golden_sentences)
    except InputError as error:
        judge(refused_finding("translations agree with the golden", error))
        return
    exact = subject.precision == FLOAT32
    judgements = [
        judge_translation(entry, one.text, policy, checker, exact=exact, today=today)
        for entry, one in zip(golden.entries, found)
    ]
    candidate = golden.lock.weights_sha256 != provenance.weights_sha256
    judge(
        golden_finding(judgements, expected=len(golden.entries), candidate=candidate),
        provenance_finding(golden.lock, provenance),
    )


def test_a_proposal_is_written_for_review(request, settings, golden_folder, provenance, read_by_people, translations):
    """When it is asked for, and for a candidate: then into the report, as what a RELEASE offers."""
    golden = golden_folder.golden() if golden_folder.exists else None
    candidate = golden is not None and golden.lock.weights_sha256 != provenance.weights_sha256
    if not settings.golden_propose and not candidate:
        not_applicable("no --golden-propose was given, and these are the weights of the golden's lock")
    subject = next((one for one in settings.subjects if one.precision == FLOAT32), None)
    if subject is None:
        not_applicable("goldens are proposed from a float32 set, and none is under test")
    sentences = _sentences(golden, read_by_people, settings)
    try:
        found = translations.by_set(subject, sentences)
    except InputError as error:
        blocked(str(error))
    proposal = Proposal(
        provenance,
        tuple(
            ProposedEntry(sentence.id, sentence.source, one.text, sentence.tags)
            for sentence, one in zip(sentences, found)
        ),
    )
    if settings.golden_propose:
        write_proposal(proposal, golden_folder.path / PROPOSAL)
    if candidate:
        path = settings.report / provenance.stack / "golden-proposal.json"
        write_proposal(proposal, path)
        offer = f"python -m harness review {settings.model} --golden {golden_folder.path} --proposal {path}"
        request.node.user_properties.append((OFFER, f"these weights are not the lock's; to give it theirs: {offer}"))


def _sentences(golden: Golden | None, read_by_people: list[Sentence], settings) -> list[Sentence]:
    """The golden's sentences as they read today, and all others of the file where that was named or is the first."""
    if golden is None:
        return read_by_people
    own = {entry.id: Sentence(entry.id, entry.source, entry.tags) for entry in golden.entries}
    file = {sentence.id: sentence for sentence in read_by_people}
    if golden.lock.sentences == settings.quality_sentences[0].name:
        # A golden sentence that is gone from its file is not proposed: the review then says so.
        own = {id: file[id] for id in own if id in file}
    named = settings.quality_sentences[0] == settings.sentences
    return list({**own, **(file if named else {})}.values())
