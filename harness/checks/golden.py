"""What approved translations say of a candidate, and whether the files that hold them are as they were approved."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from enum import Enum

from harness.checks.decode import STACK
from harness.checks.quality.columns import FAULT, Checker, Slots, new_slots, seen
from harness.checks.quality.flips import sentence_chrf
from harness.contract.finding import Finding, Verdict
from harness.contract.golden import Golden, GoldenEntry, Lock, entry_sha256, seal_of
from harness.contract.policy import Policy, PolicyException

LOST = "was approved, and is gone from translations.jsonl"
_SHOWN = 12
REVIEW = "Run `pytest suites/golden --golden-propose`, then `python -m harness review MODEL`."


# --- the files ----------------------------------------------------------------------------------------------------


def file_findings(
    golden: Golden, policy: Policy, *, sentences: Mapping[str, str] | None, others: Collection[str], today: date
) -> list[Finding]:
    """Whether the golden's files are what was approved.

    Args:
        golden: entries and lock as read.
        policy: its exceptions are looked at.
        sentences: id -> source of the sentence file that the lock names; None where that file is not at hand.
        others: ids of further sentences that an exception may name.
        today: the day that exceptions are held against.
    """
    return [
        _duplicates(golden),
        _hand_edits(golden),
        _orphans(golden, policy, sentences, others),
        _exceptions(policy, today),
    ]


def _listed(check: str, problems: Sequence[str], count: int, cause: str, action: str) -> Finding:
    return Finding(
        check=check,
        verdict=Verdict.FAIL if problems else Verdict.PASS,
        compared=count or None,
        expected=count or None,
        where=problems[0] if problems else "",
        cause=cause if problems else "",
        action=action if problems else "",
        details=tuple(problems[1:_SHOWN]),
    )


def _duplicates(golden: Golden) -> Finding:
    ids = Counter(entry.id for entry in golden.entries)
    sources = Counter(entry.source for entry in golden.entries)
    problems = [f"id {id!r} has {count} entries" for id, count in ids.items() if count > 1]
    for source, count in sources.items():
        same = sorted({entry.id for entry in golden.entries if entry.source == source})
        if count > 1 and len(same) > 1:
            problems.append(f"entries {', '.join(same)} have the same source {source!r}")
    return _listed(
        "every golden sentence has one entry",
        problems,
        len(golden.entries),
        "duplicate entries in translations.jsonl: nobody can tell which of them is approved",
        "Remove all but one with `python -m harness review MODEL`.",
    )


def edit_of(entry: GoldenEntry, lock: Lock) -> str:
    """What is wrong with an entry that is not the one the lock holds; empty for one that is."""
    if entry.id not in lock.entries:
        return "is in translations.jsonl, but nobody approved it: it is not in lock.json"
    if lock.entries[entry.id] != entry_sha256(entry):
        return "is not as it was approved: its content hash is not the one in lock.json"
    return ""


def lost_entries(golden: Golden) -> list[str]:
    """Ids that the lock holds and translations.jsonl does not."""
    present = {entry.id for entry in golden.entries}
    return [id for id in golden.lock.entries if id not in present]


def _hand_edits(golden: Golden) -> Finding:
    edits = {entry.id: edit for entry in golden.entries if (edit := edit_of(entry, golden.lock))}
    edits.update(dict.fromkeys(lost_entries(golden), LOST))
    problems = [f"{id} {what}" for id, what in edits.items()]
    if golden.lock.seal != seal_of(golden.lock):
        problems.insert(0, "lock.json is not as it was written: its content does not have the hash in `seal`")
    return _listed(
        "the golden is as it was approved",
        problems,
        len(golden.entries),
        "edited by hand, or a review was interrupted",
        "Restore the files from version control, or approve the edit with `python -m harness review MODEL`.",
    )


def _orphans(golden: Golden, policy: Policy, sentences: Mapping[str, str] | None, others: Collection[str]) -> Finding:
    problems = []
    for entry in golden.entries if sentences is not None else ():
        if entry.id not in sentences:
            problems.append(f"entry {entry.id} has no sentence in {golden.lock.sentences} any more")
        elif sentences[entry.id] != entry.source:
            problems.append(f"entry {entry.id} is of {entry.source!r}; the sentence now reads {sentences[entry.id]!r}")
    known = {*(entry.id for entry in golden.entries), *others}
    problems += [f"the exception for {e.id} names no sentence" for e in policy.exceptions if e.id not in known]
    return _listed(
        "every golden entry and every exception belongs to a sentence",
        problems,
        len(golden.entries),
        "orphans: what they were approved for is not there any more",
        "Remove them: entries with `python -m harness review MODEL`, exceptions in policy.yaml.",
    )


def _exceptions(policy: Policy, today: date) -> Finding:
    expired = [e for e in policy.exceptions if today > e.expires]
    return _listed(
        "no exception has expired",
        [f"{exception.text()} (today is {today})" for exception in expired],
        len(policy.exceptions),
        f"{len(expired)} of {len(policy.exceptions)} exceptions in policy.yaml have expired",
        "Correct the model, or give the exception a later day and say why.",
    )


# --- the candidate ------------------------------------------------------------------------------------------------


class Agreement(str, Enum):
    """How a candidate's translation relates to the golden entry, best first."""

    EXACT = "the approved translation"
    ACCEPTED = "another accepted translation"
    BY_PHENOMENA = "another text without a new fault"
    IMPROVED = "a known fault that is gone"
    KNOWN_FAULT = "a known fault"
    OTHER_WORDS = "a known fault that reads otherwise now"
    EXCEPTED = "excepted"
    FAR = "too far from every accepted translation"
    FAULTY = "a new fault"


@dataclass(frozen=True)
class Judgement:
    """A candidate's translation of one golden sentence.

    Attributes:
        slots: phenomenon and slots of new faults.
        chrf: against the nearest accepted translation, 0 to 100; None where it was not asked for.
        exception: what excuses it.
    """

    entry: GoldenEntry
    text: str
    agreement: Agreement
    slots: tuple[str, ...] = ()
    chrf: float | None = None
    exception: PolicyException | None = None

    def line(self) -> str:
        """The judgement in one line, both texts in it."""
        slots = f" [{'; '.join(self.slots)}]" if self.slots else ""
        chrf = "" if self.chrf is None else f", chrF {self.chrf:.1f}"
        approved = self.entry.observed or (self.entry.accepted[0] if self.entry.accepted else "")
        because = f"; {self.exception.text()}" if self.exception else ""
        return (
            f"{self.entry.id}: {self.agreement.value}{chrf}{slots} {self.entry.source!r}; "
            f"golden: {approved}; candidate: {self.text}{because}"
        )


def judge_translation(
    entry: GoldenEntry, text: str, policy: Policy, checker: Checker, *, exact: bool, today: date
) -> Judgement:
    """Hold a candidate's translation against a golden entry: exact or accepted, else by phenomena and chrF.

    Args:
        exact: also ask for nearness in chrF; False for int8, whose texts depend on the CPU's instruction set.
    """
    if text in entry.accepted:
        if entry.known_fault:
            return Judgement(entry, text, Agreement.IMPROVED)
        return Judgement(entry, text, Agreement.EXACT if text == entry.accepted[0] else Agreement.ACCEPTED)
    if entry.known_fault:
        return Judgement(entry, text, *_known_fault(entry, text, checker))
    faults = _new_faults(entry, text, checker)
    chrf = sentence_chrf(text, entry.accepted) if exact else None
    far = chrf is not None and chrf < policy.golden_chrf
    if not faults and not far:
        return Judgement(entry, text, Agreement.BY_PHENOMENA, chrf=chrf)
    slots = tuple(f"{phenomenon}: {', '.join(slots)}" for phenomenon, slots in faults.items())
    if exception := policy.exception_for(entry.id, list(faults) or ["chrf"], today):
        return Judgement(entry, text, Agreement.EXCEPTED, slots, chrf, exception)
    return Judgement(entry, text, Agreement.FAULTY if faults else Agreement.FAR, slots, chrf)


def _known_fault(entry: GoldenEntry, text: str, checker: Checker) -> tuple[Agreement, tuple[str, ...]]:
    if text == entry.observed:
        return Agreement.KNOWN_FAULT, ()
    before, now = _faults(entry.source, entry.observed, checker), _faults(entry.source, text, checker)
    if before and not now:
        return Agreement.IMPROVED, ()
    # A fault that no checker sees, the wrong word for instance: only a reader can tell whether it is gone.
    return Agreement.OTHER_WORDS, tuple(f"{name}: {', '.join(slots.values())}" for name, slots in now.items())


def _faults(source: str, text: str, checker: Checker) -> dict[str, Slots]:
    verdicts = {phenomenon: seen(verdict) for phenomenon, verdict in checker(source, text).items()}
    return {phenomenon: slots for phenomenon, (verdict, slots) in verdicts.items() if verdict == FAULT}


def _new_faults(entry: GoldenEntry, text: str, checker: Checker) -> dict[str, tuple[str, ...]]:
    """Faults that the checkers do not see in the approved translation too: what was read and approved is right."""
    approved = _faults(entry.source, entry.accepted[0], checker)
    new = {}
    for phenomenon, slots in _faults(entry.source, text, checker).items():
        before = [approved[phenomenon]] if phenomenon in approved else []
        if (found := new_slots(before, slots)) or not before:
            new[phenomenon] = found
    return new


def provenance_finding(lock: Lock, now: Lock) -> Finding:
    """Warn where the translations were approved under other circumstances than weights."""
    unlike = [
        f"{key}: approved under {lock.generation.get(key)!r}, now {now.generation.get(key)!r}"
        for key in sorted({*lock.generation, *now.generation})
        if lock.generation.get(key) != now.generation.get(key) and key not in STACK
    ]
    if lock.tokenizer_sha256 != now.tokenizer_sha256:
        unlike.append(f"tokenizer files {lock.tokenizer_sha256[:12]} then, {now.tokenizer_sha256[:12]} now")
    return Finding(
        check="the golden was approved under these generation settings and this tokenizer",
        verdict=Verdict.WARN if unlike else Verdict.PASS,
        where=unlike[0] if unlike else "",
        cause="a change of settings changes translations" if unlike else "",
        action="Approve the new settings by reviewing a proposal." if unlike else "",
        details=tuple(unlike[1:]),
    )


def golden_finding(judgements: Sequence[Judgement], *, expected: int, candidate: bool) -> Finding:
    """One finding over all golden sentences.

    Args:
        judgements: one per entry.
        expected: how many entries there are.
        candidate: the weights are others than the lock's.
    """
    bad = [j for j in judgements if j.agreement in (Agreement.FAULTY, Agreement.FAR)]
    bad.sort(key=lambda judgement: judgement.agreement is Agreement.FAR)
    excepted = any(judgement.agreement is Agreement.EXCEPTED for judgement in judgements)
    counts = Counter(judgement.agreement for judgement in judgements)
    told = (Agreement.IMPROVED, Agreement.EXCEPTED, Agreement.OTHER_WORDS, Agreement.BY_PHENOMENA)
    others = sorted((j for j in judgements if j.agreement in told), key=lambda j: told.index(j.agreement))
    kind = "a candidate, other weights than the lock's" if candidate else "the lock's own weights"
    return Finding(
        check="translations agree with the golden",
        verdict=Verdict.FAIL if bad else Verdict.KNOWN if excepted else Verdict.PASS,
        compared=len(judgements),
        expected=expected,
        where=bad[0].line() if bad else "",
        cause=f"{len(bad)} of {len(judgements)} golden sentences are wrong or unrecognisable ({kind})" if bad else "",
        action=f"Read them. What is right after all, accept: {REVIEW}" if bad else "",
        details=(
            f"{kind}: " + ", ".join(f"{counts[a]} {a.value}" for a in Agreement if counts[a]),
            *(judgement.line() for judgement in [*bad[1:], *others][:_SHOWN]),
        ),
    )
