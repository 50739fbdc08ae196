"""What a checker says of one phenomenon in one pair of texts."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

OK, FAULT, NOT_APPLICABLE = "ok", "fault", "na"


@dataclass(frozen=True)
class Slot:
    """One place where source and translation part.

    Attributes:
        source: what the source says there; empty where the translation has something of its own.
        translation: what the translation makes of it; None where it has nothing.
        problem: what is wrong, in words.
    """

    source: str
    translation: str | None
    problem: str

    def __str__(self) -> str:
        sides = " -> ".join(part for part in (self.source, self.translation or "nothing") if part)
        return f"{sides}: {self.problem}"

    def to_json(self) -> dict[str, Any]:
        """Return the slot as JSON types."""
        return {"source": self.source, "translation": self.translation, "problem": self.problem}


@dataclass(frozen=True)
class Verdict:
    """Verdict on one phenomenon.

    Attributes:
        verdict: ``ok``, ``fault``, or ``na`` where neither text has the phenomenon.
        slots: what is wrong; empty unless ``fault``.
    """

    verdict: str
    slots: tuple[Slot, ...] = ()

    @classmethod
    def of(cls, slots: Iterable[Slot], *, applies: bool) -> Verdict:
        """``fault`` with any slot, else ``ok`` or ``na`` by whether the phenomenon is there at all."""
        if slots := tuple(slots):
            return cls(FAULT, slots)
        return cls(OK if applies else NOT_APPLICABLE)

    def to_json(self) -> dict[str, Any]:
        """Return the verdict as JSON types."""
        return {"verdict": self.verdict, "slots": [slot.to_json() for slot in self.slots]}
