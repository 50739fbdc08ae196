"""Golden translations: what people approved, and of which model."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class GoldenEntry:
    """One sentence that somebody read and judged.

    Attributes:
        accepted: translations that are right, the model's own first; may be empty for a known fault.
        judgement: what the reader wrote about it.
        known_fault: the model gets this sentence wrong; ``observed`` is what it says. A candidate is not required to
            repeat it, and is praised for another.
        observed: the wrong translation of a known fault.
    """

    id: str
    source: str
    accepted: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    judgement: str = ""
    known_fault: bool = False
    observed: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return the entry as JSON types; empty fields are left out."""
        data = {key: list(value) if isinstance(value, tuple) else value for key, value in vars(self).items()}
        return {key: value for key, value in data.items() if value}


@dataclass(frozen=True)
class Lock:
    """Provenance of the approved translations.

    Attributes:
        model, weights_sha256, tokenizer_sha256: the model that they are of.
        generation: settings that it decoded under.
        sentences: name of the sentence file that the sources are from; empty for none.
        stack, instruction_sets: where it ran.
        approved, reason: when, and why these are right.
        entries: id -> hash of the entry's content.
        seal: hash over the rest of the lock.
    """

    model: str
    weights_sha256: str
    tokenizer_sha256: str
    generation: dict[str, Any]
    sentences: str
    stack: str
    instruction_sets: tuple[str, ...]
    approved: str
    reason: str
    entries: dict[str, str] = dataclasses.field(default_factory=dict)
    seal: str = ""


@dataclass(frozen=True)
class Golden:
    """A model's golden: entries in the file's order, and the lock."""

    entries: tuple[GoldenEntry, ...]
    lock: Lock


def sealed(lock: Lock) -> Lock:
    """The lock with the hash of its content."""
    return dataclasses.replace(lock, seal=seal_of(lock))


def entry_sha256(entry: GoldenEntry) -> str:
    """Hex SHA-256 of an entry's content, whatever the order of its keys in the file."""
    return _sha256(entry.to_json())


def seal_of(lock: Lock) -> str:
    """Hex SHA-256 of everything else in the lock."""
    return _sha256({**dataclasses.asdict(lock), "seal": ""})


def _sha256(data: Any) -> str:
    return hashlib.sha256(json.dumps(data, ensure_ascii=False, sort_keys=True).encode()).hexdigest()
