"""What a review has to decide, and the golden that the decisions make."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from harness.checks.golden import LOST as LOST_TEXT
from harness.checks.golden import edit_of, lost_entries
from harness.contract.errors import InputError
from harness.contract.golden import Golden, GoldenEntry, Lock, entry_sha256, seal_of, sealed
from harness.golden.proposal import Proposal, ProposedEntry

ACCEPT, REPLACE, KNOWN_FAULT, REMOVE, SKIP = "accept", "replace", "known-fault", "remove", "skip"
NEW, CHANGED, REWORDED, EDITED = "new", "changed", "reworded", "edited"
LOST, GONE, DUPLICATE, WEIGHTS, LOCK_EDITED = "lost", "gone", "duplicate", "other weights", "lock edited"
# What may be decided about an item, by its kind.
CHOICES = {
    NEW: (ACCEPT, KNOWN_FAULT, SKIP),
    CHANGED: (ACCEPT, REPLACE, KNOWN_FAULT, SKIP),
    REWORDED: (ACCEPT, KNOWN_FAULT, SKIP),
    EDITED: (ACCEPT, REMOVE, SKIP),
    LOST: (REMOVE, SKIP),
    GONE: (REMOVE, SKIP),
    DUPLICATE: (REMOVE, SKIP),
    WEIGHTS: (ACCEPT, SKIP),
    LOCK_EDITED: (ACCEPT, SKIP),
}
# The id under which the lock itself is decided.
LOCK_ID = "lock"
_FIELDS = ("id", "decision", "reason")
_DECIDE = 'One JSON object a line: {"id": ..., "decision": ..., "reason": ...}, see docs/golden.md.'


@dataclass(frozen=True)
class Item:
    """One thing to decide.

    Attributes:
        kind: a key of ``CHOICES``.
        old: the entry as it stands, None for a new sentence and for the lock.
        translation: what the model says now; empty where the proposal does not have the sentence.
        note: what is to know beside both texts.
    """

    id: str
    kind: str
    source: str
    old: GoldenEntry | None
    translation: str
    note: str = ""
    tags: tuple[str, ...] = ()


@dataclass(frozen=True)
class Decision:
    """What somebody decided about an item, and why."""

    id: str
    decision: str
    reason: str


def items(golden: Golden | None, proposal: Proposal) -> list[Item]:
    """Everything in which proposal and golden differ."""
    if golden is None:
        return _new(proposal, set(), set())
    proposed = {entry.id: entry for entry in proposal.entries}
    found, ids, sources = _about_the_lock(golden, proposal), set(), set()
    for entry in golden.entries:
        if entry.id in ids or entry.source in sources:
            note = "a second entry of this id or source; `remove` leaves the first"
            found.append(Item(entry.id, DUPLICATE, entry.source, entry, "", note))
        elif item := _item(entry, golden.lock, proposed.get(entry.id)):
            found.append(item)
        ids.add(entry.id)
        sources.add(entry.source)
    found += [Item(id, LOST, "", None, "", LOST_TEXT) for id in lost_entries(golden)]
    return found + _new(proposal, ids, sources)


def _new(proposal: Proposal, ids: set[str], sources: set[str]) -> list[Item]:
    """Sentences without an entry; of those with the same source the first, because a second entry would be a fault."""
    found, sources = [], set(sources)
    for entry in proposal.entries:
        if entry.id not in ids and entry.source not in sources:
            found.append(Item(entry.id, NEW, entry.source, None, entry.translation, tags=entry.tags))
        sources.add(entry.source)
    return found


def _item(entry: GoldenEntry, lock: Lock, now: ProposedEntry | None) -> Item | None:
    translation = now.translation if now else ""
    if edit := edit_of(entry, lock):
        return Item(entry.id, EDITED, entry.source, entry, translation, edit)
    if now is None:
        return Item(entry.id, GONE, entry.source, entry, "", "its sentence is gone")
    if now.source != entry.source:
        return Item(entry.id, REWORDED, now.source, entry, translation, f"it read: {entry.source}", now.tags)
    known = (*entry.accepted, entry.observed) if entry.known_fault else entry.accepted
    return None if translation in known else Item(entry.id, CHANGED, entry.source, entry, translation)


def _about_the_lock(golden: Golden, proposal: Proposal) -> list[Item]:
    old, new = golden.lock, proposal.lock
    found = []
    if old.seal != seal_of(old):
        found.append(Item(LOCK_ID, LOCK_EDITED, "", None, "", "lock.json is not as it was written"))
    if old.weights_sha256 != new.weights_sha256:
        note = (
            f"weights {old.weights_sha256[:12]} approved {old.approved}; the candidate's are {new.weights_sha256[:12]}"
        )
        found.append(Item(LOCK_ID, WEIGHTS, "", None, "", note))
    return found


def check_decision(item: Item, decision: Decision) -> None:
    """Refuse a decision that its item does not allow, or that gives no reason.

    Raises:
        ValueError: in words for the person who decides.
    """
    if decision.decision not in CHOICES[item.kind]:
        raise ValueError(f"{item.id} is {item.kind}: {decision.decision!r} is none of {', '.join(CHOICES[item.kind])}")
    if decision.decision != SKIP and not decision.reason.strip():
        raise ValueError(f"{item.id}: a reason is needed")


def read_decisions(path: Path, wanted: Sequence[Item]) -> dict[tuple[str, str], Decision]:
    """Read a decisions file: (id, kind) -> decision. Items that it does not name are skipped.

    Raises:
        InputError: not JSON lines, an unknown key or id, a decision the item does not allow, or no reason.
    """
    try:
        lines = path.read_text(encoding="utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(what=f"cannot be read ({error})", where=path, action=_DECIDE) from None
    by_id: dict[str, list[Item]] = {}
    for item in wanted:
        by_id.setdefault(item.id, []).append(item)
    decisions = {}
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            decision = _decision(json.loads(line))
            if decision.id not in by_id:
                raise ValueError(f"nothing is to be decided about {decision.id!r}")
            fitting = [item for item in by_id[decision.id] if decision.decision in CHOICES[item.kind]]
            item = (fitting or by_id[decision.id])[0]
            check_decision(item, decision)
            if (item.id, item.kind) in decisions:
                raise ValueError(f"{item.id} is decided twice")
        except (ValueError, TypeError) as error:
            raise InputError(what=str(error), where=f"{path}:{number}", action=_DECIDE) from None
        decisions[item.id, item.kind] = decision
    return decisions


def _decision(data: object) -> Decision:
    if not isinstance(data, dict) or not all(isinstance(value, str) for value in data.values()):
        raise ValueError("not a JSON object of texts")
    if unknown := sorted(set(data) - set(_FIELDS)):
        raise ValueError(f"unknown key `{unknown[0]}`; known: {', '.join(_FIELDS)}")
    if not data.get("id") or not data.get("decision"):
        raise ValueError("no `id` or no `decision`")
    return Decision(data["id"], data["decision"], data.get("reason", ""))


def decided(
    golden: Golden | None, proposal: Proposal, pairs: Iterable[tuple[Item, Decision]], today: date
) -> Golden | None:
    """The golden after a review; None where nothing would be left in it.

    The lock takes the candidate's provenance when its weights were accepted, or where there was no lock. Edits by hand
    that nobody accepted keep the hash of what was approved, so they go on failing.
    """
    made = [(item, decision) for item, decision in pairs if decision.decision != SKIP]
    accepted_kinds = {item.kind for item, _ in made}
    entries = list(golden.entries) if golden else []
    hashes = dict(golden.lock.entries) if golden else {}
    for item, decision in made:
        if item.id != LOCK_ID:
            entries = _changed(entries, hashes, item, decision)
    if not entries:
        return None
    base = proposal.lock if golden is None or WEIGHTS in accepted_kinds else golden.lock
    reason = _lock_reason([decision for _, decision in made])
    lock = dataclasses.replace(base, approved=str(today), reason=reason, entries=hashes, seal="")
    if golden and golden.lock.seal != seal_of(golden.lock) and LOCK_EDITED not in accepted_kinds:
        return Golden(tuple(entries), lock)  # without a seal it goes on failing
    return Golden(tuple(entries), sealed(lock))


def _lock_reason(decisions: Sequence[Decision]) -> str:
    """Why the lock changed: the lock's own decision or the only reason there is, else how many entries were judged."""
    reasons = list(dict.fromkeys(d.reason for d in decisions if d.id == LOCK_ID)) or list(
        dict.fromkeys(d.reason for d in decisions)
    )
    return reasons[0] if len(reasons) == 1 else f"{len(decisions)} decisions, each with its judgement in the entry"


def _changed(entries: list[GoldenEntry], hashes: dict[str, str], item: Item, decision: Decision) -> list[GoldenEntry]:
    """Return the entries after one decision, and bring ``hashes`` up to it."""
    if decision.decision == REMOVE:
        entries = [entry for entry in entries if entry is not item.old]
        if all(entry.id != item.id for entry in entries):
            hashes.pop(item.id, None)
        return entries
    new = _entry(item, decision)
    hashes[item.id] = entry_sha256(new)
    return [*entries, new] if item.old is None else [new if entry is item.old else entry for entry in entries]


def _entry(item: Item, decision: Decision) -> GoldenEntry:
    old = item.old if item.old and item.kind != REWORDED else GoldenEntry(item.id, item.source, tags=item.tags)
    if item.kind == EDITED:
        return dataclasses.replace(old, judgement=decision.reason)
    if decision.decision == KNOWN_FAULT:
        return dataclasses.replace(old, known_fault=True, observed=item.translation, judgement=decision.reason)
    others = () if decision.decision == REPLACE else old.accepted
    accepted = (item.translation, *others)
    return dataclasses.replace(old, accepted=accepted, known_fault=False, observed="", judgement=decision.reason)
