"""Pairs from JSON lines, verdicts to JSON lines, one at a time."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from harness.checks.phenomena.glossary import Glossary
from harness.checks.phenomena.pairs import check_pair
from harness.checks.phenomena.verdict import FAULT
from harness.contract.errors import InputError

_ACTION = "Give UTF-8 JSON lines, each an object with the texts `source` and `translation`."
STANDARD_INPUT = "-"


def judged_lines(file: str, glossary: Glossary) -> Iterator[tuple[str, bool]]:
    """Judge every line of a file; ``-`` is standard input. Blank lines are skipped.

    Args:
        file: JSON lines with ``source`` and ``translation``; ``id`` is echoed, other keys are left out.
        glossary: names and their forms.

    Yields:
        The verdicts as a line of JSON without its end, and whether any is a fault.

    Raises:
        InputError: the file cannot be read, or a line is bad; the place is ``file:line``.
    """
    for number, raw in enumerate(_lines(file), 1):
        where = f"{'standard input' if file == STANDARD_INPUT else file}:{number}"
        entry = _entry(raw, where, first=number == 1)
        if entry is None:
            continue
        verdicts = check_pair(entry["source"], entry["translation"], glossary)
        line: dict[str, Any] = {"id": entry["id"]} if "id" in entry else {}
        line.update({name: verdict.to_json() for name, verdict in verdicts.items()})
        yield json.dumps(line, ensure_ascii=False), any(verdict.verdict == FAULT for verdict in verdicts.values())


def _lines(file: str) -> Iterable[bytes]:
    if file == STANDARD_INPUT:
        yield from sys.stdin.buffer
        return
    try:
        with Path(file).open("rb") as lines:
            yield from lines
    except OSError as error:
        raise InputError(what=f"cannot be read ({error.strerror})", where=file, action=_ACTION) from None


def _entry(raw: bytes, where: str, *, first: bool) -> dict[str, Any] | None:
    """Parse one line; None for a blank one."""
    try:
        text = raw.decode("utf-8-sig" if first else "utf-8")
    except UnicodeDecodeError:
        raise InputError(what="not UTF-8", where=where, action=_ACTION) from None
    if not text.strip():
        return None
    try:
        entry = json.loads(text)
    except (json.JSONDecodeError, RecursionError) as error:
        reason = getattr(error, "msg", "nested too deeply")
        raise InputError(what=f"not JSON ({reason})", where=where, action=_ACTION) from None
    if not isinstance(entry, dict):
        raise InputError(what="not an object", where=where, action=_ACTION)
    for key in ("source", "translation"):
        if not isinstance(entry.get(key), str):
            raise InputError(what=f"no text `{key}`", where=where, action=_ACTION)
    return entry
