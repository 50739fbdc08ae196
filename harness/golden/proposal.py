"""A proposal: what a model says today, written beside the golden for people to read. It never touches the golden."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock

from harness.contract.errors import InputError
from harness.contract.files import write_atomically
from harness.contract.golden import Lock
from harness.contract.manifest import read_object
from harness.golden.folder import GUARD, remove_leftovers

PROPOSAL = "proposal.json"
SCHEMA = 1
PROPOSE = "Write one with `pytest suites/golden --golden-propose`."


@dataclass(frozen=True)
class ProposedEntry:
    """A sentence and the model's translation."""

    id: str
    source: str
    translation: str
    tags: tuple[str, ...] = ()


@dataclass(frozen=True)
class Proposal:
    """What a model says, and the lock it would get; that lock has no entries, reason and seal yet."""

    lock: Lock
    entries: tuple[ProposedEntry, ...]

    def text(self) -> str:
        """The proposal as JSON."""
        data = {
            "schema": SCHEMA,
            "lock": dataclasses.asdict(self.lock),
            "entries": [dataclasses.asdict(entry) for entry in self.entries],
        }
        return json.dumps(data, ensure_ascii=False, indent=1) + "\n"


def write_proposal(proposal: Proposal, path: Path) -> None:
    """Write a proposal; of two runs at once the later one stays, whole.

    Raises:
        InputError: the folder cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(path.parent / GUARD):
            remove_leftovers(path.parent)
            write_atomically(path, proposal.text())
    except OSError as error:
        raise InputError(
            what=f"cannot be written ({error.strerror or error})", where=path, action="Name a folder you may write to."
        ) from None


def read_proposal(path: Path) -> Proposal:
    """Read a proposal.

    Raises:
        InputError: missing, another schema, or a field missing, unknown or malformed.
    """
    data = read_object(path, action=PROPOSE)
    try:
        if data["schema"] != SCHEMA:
            raise ValueError(f"not a proposal of schema {SCHEMA}")
        lock = Lock(**{**data["lock"], "instruction_sets": tuple(data["lock"]["instruction_sets"])})
        return Proposal(lock, _entries(data["entries"]))
    except (KeyError, ValueError, TypeError) as error:
        what = f"field {error} is missing" if isinstance(error, KeyError) else str(error)
        raise InputError(what=what, where=path, action=PROPOSE) from None


def _entries(data: Sequence[dict]) -> tuple[ProposedEntry, ...]:
    entries = tuple(ProposedEntry(**{**entry, "tags": tuple(entry["tags"])}) for entry in data)
    if not entries:
        raise ValueError("no sentence inside")
    return entries
