"""Sentence files: plain text, one sentence a line, or JSON lines with ``source`` and what else is known of it."""

from __future__ import annotations

import json
import unicodedata
from dataclasses import dataclass
from pathlib import Path

from harness.contract.errors import InputError

ONE_A_LINE = "Give UTF-8 text, one sentence a line, or .jsonl with a `source` in every line."


@dataclass(frozen=True)
class Sentence:
    """One source sentence.

    Attributes:
        id: unique within its file.
        tags: phenomena, length and the like.
        references: reference translations; in the file a list ``references`` or one text ``reference``.
        critical: a fault in it is never tolerated.
        pair: id of the sentence that differs from this one in a single word that matters, a number or a negation.
    """

    id: str
    source: str
    tags: tuple[str, ...] = ()
    references: tuple[str, ...] = ()
    critical: bool = False
    pair: str | None = None


def read_sentences(path: Path) -> list[Sentence]:
    """Read a sentence file. Blank lines are skipped.

    Raises:
        InputError: the file is missing, empty or not UTF-8, or a line is bad; the place is ``file:line``.
    """
    try:
        lines = path.read_bytes().split(b"\n")
    except OSError as error:
        raise InputError(what=f"cannot be read ({error.strerror})", where=path, action=ONE_A_LINE) from None
    sentences: list[Sentence] = []
    seen: dict[str, int] = {}
    for number, raw in enumerate(lines, 1):
        try:
            line = raw.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r")
        except UnicodeDecodeError:
            raise InputError(what="not UTF-8", where=f"{path}:{number}", action=ONE_A_LINE) from None
        if not line.strip():
            continue
        sentence = _parse(line, path, number)
        if sentence.id in seen:
            raise InputError(
                what=f"id {sentence.id!r} was used on line {seen[sentence.id]} already",
                where=f"{path}:{number}",
                action="Give every sentence an id of its own.",
            )
        seen[sentence.id] = number
        sentences.append(sentence)
    if not sentences:
        raise InputError(what="no sentence inside", where=path, action=ONE_A_LINE)
    return sentences


def _parse(line: str, path: Path, number: int) -> Sentence:
    if path.suffix != ".jsonl":
        if "\0" in line:
            raise InputError(what="a NUL character", where=f"{path}:{number}", action=ONE_A_LINE)
        return Sentence(f"line-{number}", line)
    try:
        entry = json.loads(line)
    except json.JSONDecodeError as error:
        raise InputError(what=f"not JSON ({error.msg})", where=f"{path}:{number}", action=ONE_A_LINE) from None
    if not isinstance(entry, dict) or not isinstance(entry.get("source"), str):
        raise InputError(what="no `source` text", where=f"{path}:{number}", action=ONE_A_LINE)
    return Sentence(
        str(entry.get("id", f"line-{number}")),
        entry["source"],
        _texts(entry, "tags", path, number),
        _texts({"references": [entry["reference"]]} if "reference" in entry else entry, "references", path, number),
        entry.get("critical") is True,
        str(entry["pair"]) if entry.get("pair") else None,
    )


def _texts(entry: dict, key: str, path: Path, number: int) -> tuple[str, ...]:
    texts = entry.get(key, [])
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise InputError(what=f"`{key}` is not a list of texts", where=f"{path}:{number}", action=ONE_A_LINE)
    return tuple(texts)


def normalised(text: str) -> str:
    """A text without case, width, punctuation and spacing: two that agree here are the same sentence."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    return " ".join("".join(letter if letter.isalnum() else " " for letter in folded).split())
