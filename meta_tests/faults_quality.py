"""Faults that only sentences show: planted in a set's files, in a model's weights, and in golden folders."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from onnx import numpy_helper

from harness.golden.folder import LOCK, POLICY, TRANSLATIONS
from harness.runtime.tokenizer import load_tokenizer
from meta_tests.faults import edited, embedding_of, reseal, set_data

_SWAP = str.maketrans("38", "83")


def plant_digits_swapped(folder: Path) -> None:
    """The encoder reads 8 for 3 and 3 for 8: a few sentences change a number, everything else stays as it is."""
    vocabulary = load_tokenizer(folder).vocabulary
    pairs = [(index, vocabulary.get(piece.translate(_SWAP), index)) for piece, index in vocabulary.items()]
    with edited(folder / "encoder.onnx") as model:
        _, tensor = embedding_of(model.graph)
        rows = numpy_helper.to_array(tensor).copy()
        rows[[index for index, _ in pairs]] = rows[[other for _, other in pairs]]
        set_data(tensor, rows)
    reseal(folder)


def _read_as(folder: Path, pairs: dict[str, str]) -> None:
    """Let the encoder read pieces as others; a piece that the vocabulary has not whole is an error."""
    vocabulary = load_tokenizer(folder).vocabulary
    with edited(folder / "encoder.onnx") as model:
        _, tensor = embedding_of(model.graph)
        rows = numpy_helper.to_array(tensor).copy()
        rows[[vocabulary[piece] for piece in pairs]] = rows[[vocabulary[other] for other in pairs.values()]]
        set_data(tensor, rows)
    reseal(folder)


def plant_negation_unread(folder: Path) -> None:
    """The encoder reads "now" where the text says "not"."""
    _read_as(folder, {"▁not": "▁now"})


def plant_names_exchanged(folder: Path) -> None:
    """The encoder takes Peter for Robert and Robert for Peter."""
    _read_as(folder, {"▁Peter": "▁Robert", "▁Robert": "▁Peter"})


# Fault -> what plants it, sentences that show it, the phenomenon that has to be named.
QUALITY_FAULTS = {
    "digits exchanged": (plant_digits_swapped, ("Wait 38 minutes.", "Wait 13 minutes.", "Wait 80 hours."), "numbers"),
    "a negation unread": (
        plant_negation_unread,
        ("The pump is not safe.", "The machine is not ready.", "The door is not open.", "Peter will not come."),
        "negation",
    ),
    "names exchanged": (
        plant_names_exchanged,
        ("Peter is in Berlin.", "Robert bought a pump.", "Robert will call the office tomorrow."),
        "names",
    ),
}


def plant_retrained(folder: Path) -> None:
    """A model whose weights are no longer those of the lock, and that translates as before: one moves by little."""
    from safetensors.numpy import load_file, save_file

    path = folder / "model.safetensors"
    weights = load_file(path)
    name = max(weights, key=lambda name: weights[name].size)
    weights[name] = weights[name].copy()
    weights[name].flat[-1] += np.float32(1e-6)
    save_file(weights, path, metadata={"format": "pt"})


# --- golden folders -----------------------------------------------------------------------------------------------


def _lines(folder: Path) -> list[str]:
    return (folder / TRANSLATIONS).read_text(encoding="utf-8").splitlines()


def _store(folder: Path, lines: list[str]) -> None:
    (folder / TRANSLATIONS).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def edit_entry(folder: Path, number: int, **changes: object) -> None:
    """Change fields of the entry on a line, counted from 0, as a text editor would."""
    lines = _lines(folder)
    lines[number] = json.dumps({**json.loads(lines[number]), **changes}, ensure_ascii=False)
    _store(folder, lines)


def plant_translation_edited(folder: Path) -> None:
    """Somebody corrects an approved translation in the file."""
    edit_entry(folder, 0, accepted=["手改的译文。"])


def plant_entry_twice(folder: Path) -> None:
    """A merge leaves an entry twice."""
    lines = _lines(folder)
    _store(folder, [*lines, lines[1]])


def plant_entry_lost(folder: Path) -> None:
    """A merge loses an entry."""
    _store(folder, _lines(folder)[:-1])


def plant_lock_edited(folder: Path) -> None:
    """Somebody gives the lock other weights, to make a candidate look approved."""
    lock = json.loads((folder / LOCK).read_text(encoding="utf-8"))
    (folder / LOCK).write_text(json.dumps({**lock, "weights_sha256": "0" * 64}), encoding="utf-8")


def write_policy(folder: Path, *exceptions: str, thresholds: str = "{}") -> None:
    """Write ``policy.yaml`` with these exceptions, each a YAML flow mapping."""
    lines = ["schema: 1", f"thresholds: {thresholds}", "exceptions:", *(f"  - {{{text}}}" for text in exceptions)]
    (folder / POLICY).write_text("\n".join(lines) + "\n", encoding="utf-8")


def plant_exceptions(folder: Path) -> None:
    """One exception that has expired, and one for a sentence that nobody has."""
    write_policy(
        folder,
        f"id: {json.loads(_lines(folder)[0])['id']}, reason: until the next training, expires: 2020-01-31",
        "id: no-such-sentence, reason: it was renamed, expires: 2999-01-01",
    )


@dataclass(frozen=True)
class GoldenFault:
    """A fault of a golden folder.

    Attributes:
        plant: folder -> None.
        check: the finding that has to fail.
        words: every entry is part of that finding's text.
    """

    plant: Callable[[Path], None]
    check: str
    words: tuple[str, ...]


# They do not hide each other: all are planted in one folder and found in one run.
GOLDEN_FAULTS = {
    "a translation edited by hand": GoldenFault(
        plant_translation_edited,
        "the golden is as it was approved",
        ("pump-0 is not as it was approved: its content hash is not the one in lock.json",),
    ),
    "an entry twice": GoldenFault(
        plant_entry_twice, "every golden sentence has one entry", ("id 'pump-1' has 2 entries",)
    ),
    "an expired exception": GoldenFault(
        plant_exceptions, "no exception has expired", ("pump-0 until 2020-01-31: until the next training",)
    ),
    "an exception without a sentence": GoldenFault(
        lambda folder: None,  # planted with the expired one
        "every golden entry and every exception belongs to a sentence",
        ("the exception for no-such-sentence names no sentence",),
    ),
    "an edited lock": GoldenFault(
        plant_lock_edited, "the golden is as it was approved", ("lock.json is not as it was written",)
    ),
}
