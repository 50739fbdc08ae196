"""A checker of one phenomenon, simple enough to see what is right: the digits of a text."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Place:
    """A slot."""

    source: str

    def __str__(self) -> str:
        return self.source


@dataclass(frozen=True)
class Said:
    """A checker's verdict."""

    verdict: str
    slots: tuple[Place, ...] = ()


def digits(source: str, translation: str) -> dict[str, Said]:
    """Every digit of the source must be in the translation."""
    wanted = [c for c in source if c.isdigit()]
    missing = tuple(Place(c) for c in wanted if c not in translation)
    return {"digits": Said("na") if not wanted else Said("fault", missing) if missing else Said("ok")}
