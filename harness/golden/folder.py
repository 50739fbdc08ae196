"""``golden/<model>/``: ``translations.jsonl``, ``lock.json``, ``policy.yaml``: read strictly, written atomically."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import yaml

from harness.contract.errors import InputError
from harness.contract.golden import Golden, GoldenEntry, Lock
from harness.contract.manifest import read_object
from harness.contract.policy import Policy, PolicyException

TRANSLATIONS, LOCK, POLICY = "translations.jsonl", "lock.json", "policy.yaml"
SCHEMA = 1
# Held by whoever replaces files of the folder.
GUARD = ".review.lock"
_RESTORE = "Restore the file from version control, or see docs/golden.md for its fields."


@dataclass(frozen=True)
class GoldenFolder:
    """Where a model's golden is, or would be: ``path`` need not exist."""

    path: Path

    @classmethod
    def of(cls, root: Path, model_id: str) -> GoldenFolder:
        """The model's own folder below ``root``, or ``root`` itself where that holds translations or a policy."""
        if any((root / name).is_file() for name in (TRANSLATIONS, LOCK, POLICY)):
            return cls(root)
        return cls(root / model_id.replace("/", "--"))

    @property
    def exists(self) -> bool:
        """Whether somebody approved translations here; one of the two files alone is a golden that lost the other."""
        return any((self.path / name).is_file() for name in (TRANSLATIONS, LOCK))

    def golden(self) -> Golden:
        """Read translations and lock; duplicates and hand edits are kept for the checks to tell.

        Raises:
            InputError: a file is missing, malformed, or has an unknown key.
        """
        return Golden(read_entries(self.path / TRANSLATIONS), read_lock(self.path / LOCK))

    def policy(self) -> Policy:
        """Read the policy; the project's defaults where there is none.

        Raises:
            InputError: not YAML, an unknown key, a value of the wrong kind.
        """
        path = self.path / POLICY
        return read_policy(path) if path.is_file() else Policy()


# --- reading ------------------------------------------------------------------------------------------------------


def read_entries(path: Path) -> tuple[GoldenEntry, ...]:
    """Read JSON lines of golden entries.

    Raises:
        InputError: the place is ``file:line``.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(what=f"cannot be read ({error})", where=path, action=_RESTORE) from None
    entries = []
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            entries.append(_entry(json.loads(line)))
        except (ValueError, TypeError) as error:
            raise InputError(what=str(error), where=f"{path}:{number}", action=_RESTORE) from None
    if not entries:
        raise InputError(what="no entry inside", where=path, action=_RESTORE)
    return tuple(entries)


def _entry(data: Any) -> GoldenEntry:
    if not isinstance(data, dict):
        raise ValueError("not a JSON object")
    _refuse_unknown(data, {field.name for field in dataclasses.fields(GoldenEntry)})
    for key in ("id", "source", "judgement", "observed"):
        if not isinstance(data.get(key, ""), str):
            raise ValueError(f"`{key}` is not a text")
    for key in ("accepted", "tags"):
        value = data.get(key, [])
        if not isinstance(value, list) or not all(isinstance(text, str) for text in value):
            raise ValueError(f"`{key}` is not a list of texts")
    if not isinstance(data.get("known_fault", False), bool):
        raise ValueError("`known_fault` is neither true nor false")
    lists = {key: tuple(data[key]) for key in ("accepted", "tags") if key in data}
    if missing := [key for key in ("id", "source") if not data.get(key)]:
        raise ValueError(f"no `{missing[0]}`")
    entry = GoldenEntry(**{**data, **lists})
    if not (entry.observed if entry.known_fault else entry.accepted):
        raise ValueError("a known fault without `observed`" if entry.known_fault else "no `accepted` translation")
    return entry


def read_lock(path: Path) -> Lock:
    """Read a lock.

    Raises:
        InputError: missing, another schema, or a field missing, unknown or malformed.
    """
    data = read_object(path, action=_RESTORE)
    try:
        if data.pop("schema", None) != SCHEMA:
            raise ValueError(f"not a lock of schema {SCHEMA}")
        names = {field.name for field in dataclasses.fields(Lock)}
        _refuse_unknown(data, names)
        if missing := sorted(names - set(data)):
            raise ValueError(f"no `{missing[0]}`")
        if not isinstance(data["entries"], dict):
            raise ValueError("`entries` is not an object")
        return Lock(**{**data, "instruction_sets": tuple(data["instruction_sets"])})
    except (ValueError, TypeError) as error:
        raise InputError(what=str(error), where=path, action=_RESTORE) from None


def read_policy(path: Path) -> Policy:
    """Read ``policy.yaml``: ``thresholds`` and ``exceptions``.

    Raises:
        InputError: not YAML, an unknown key, or a value of the wrong kind.
    """
    try:
        data = yaml.safe_load(path.read_text(encoding="utf-8")) or {}
        if not isinstance(data, dict):
            raise ValueError("not a mapping of `thresholds` and `exceptions`")
        _refuse_unknown(data, {"schema", "thresholds", "exceptions"})
        if data.get("schema") != SCHEMA:
            raise ValueError(f"not a policy of `schema: {SCHEMA}`")
        thresholds = _mapping(data.get("thresholds") or {}, "thresholds")
        _refuse_unknown(thresholds, {field.name for field in dataclasses.fields(Policy)} - {"exceptions"})
        return Policy(
            **{key: _number(key, value) for key, value in thresholds.items()},
            exceptions=tuple(_exception(entry) for entry in data.get("exceptions") or []),
        )
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f"{path}:{mark.line + 1}" if mark else path
        raise InputError(what="not YAML", where=where, action=_RESTORE) from None
    except (OSError, ValueError, TypeError) as error:
        raise InputError(what=str(error), where=path, action=_RESTORE) from None


def _mapping(value: Any, name: str) -> dict:
    if not isinstance(value, dict):
        raise ValueError(f"`{name}` is not a mapping")
    return value


def _number(key: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or value < 0:
        raise ValueError(f"`{key}` is {value!r}, a number of 0 or more is needed")
    return value


def _exception(data: Any) -> PolicyException:
    entry = _mapping(data, "exceptions: - ...")
    _refuse_unknown(entry, {field.name for field in dataclasses.fields(PolicyException)})
    if missing := [key for key in ("id", "reason", "expires") if not entry.get(key)]:
        raise ValueError(f"exception {entry.get('id', '')!r} has no `{missing[0]}`")
    if type(entry["expires"]) is not date:
        raise ValueError(f"exception {entry['id']!r} expires {entry['expires']!r}, a day as 2027-01-31 is needed")
    return PolicyException(**{key: value if key == "expires" else str(value) for key, value in entry.items()})


def _refuse_unknown(data: dict, known: set[str]) -> None:
    if unknown := sorted(map(str, set(data) - known)):
        raise ValueError(f"unknown key `{unknown[0]}`; known: {', '.join(sorted(known))}")


# --- writing ------------------------------------------------------------------------------------------------------


def entries_text(entries: Iterable[GoldenEntry]) -> str:
    """Entries as JSON lines; empty fields are left out."""
    return "".join(json.dumps(entry.to_json(), ensure_ascii=False) + "\n" for entry in entries)


def lock_text(lock: Lock) -> str:
    """A lock as JSON."""
    return json.dumps({"schema": SCHEMA, **dataclasses.asdict(lock)}, ensure_ascii=False, indent=1) + "\n"


def remove_leftovers(folder: Path) -> None:
    """Remove what a kill left; the caller holds the guard, so nobody is writing."""
    for path in folder.glob(".*.partial"):
        path.unlink(missing_ok=True)
