"""What PyTorch made of some sentences, stored to be compared with later or elsewhere."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness import compat
from harness.contract.errors import InputError
from harness.contract.files import write_atomically
from harness.contract.generation import Decoded, GenerationSettings
from harness.contract.manifest import read_json
from harness.contract.sentences import read_sentences
from harness.reference.checkpoint import Checkpoint
from harness.reference.loading import generation_settings, load_model
from harness.reference.torch_model import TorchModel
from harness.runtime.tokenizer import load_tokenizer

SCHEMA = 1
BATCH_SIZE = 8
WRITE_AGAIN = "Write it with `python -m harness baseline`."


@dataclass(frozen=True)
class BaselineRow:
    """One sentence: source, the ids the model was given, and what came out."""

    id: str
    source: str
    source_ids: tuple[int, ...]
    text: str
    decoded: Decoded


@dataclass(frozen=True)
class Baseline:
    """A stored baseline.

    Attributes:
        weights_sha256: the model's weights, as in ``Checkpoint``.
        settings: settings it was decoded under.
        versions: library versions of that run.
        rows: one per sentence, in the order of the file.
    """

    model_id: str
    weights_sha256: str
    settings: GenerationSettings
    versions: dict[str, str]
    rows: tuple[BaselineRow, ...]

    def require_fits(self, checkpoint: Checkpoint, *, where: object) -> None:
        """Raise ``InputError`` for ids that the model it claims to be of cannot have; other models are not judged."""
        dims = checkpoint.dims
        if self.weights_sha256 != checkpoint.weights_sha256:
            return
        for row in self.rows:
            source, target = row.source_ids, row.decoded.token_ids
            if len(source) > dims.max_source_positions or len(target) > dims.max_target_positions:
                what = f"sentence {row.id} is longer than the model's positions"
            elif not _within(source, dims.source_vocab_size) or not _within(target, dims.vocab_size):
                what = f"sentence {row.id} has a token id outside the model's vocabulary"
            else:
                continue
            raise InputError(what=what, where=where, action=WRITE_AGAIN)

    def to_json(self) -> dict[str, Any]:
        """Return the baseline as JSON types."""
        return {
            "schema": SCHEMA,
            "model": {"id": self.model_id, "weights_sha256": self.weights_sha256},
            "settings": self.settings.to_json(),
            "versions": self.versions,
            "rows": [
                {
                    "id": row.id,
                    "source": row.source,
                    "source_ids": list(row.source_ids),
                    "text": row.text,
                    "ids": list(row.decoded.token_ids),
                    "score": row.decoded.score,
                    "stop_reason": row.decoded.stop_reason,
                }
                for row in self.rows
            ],
        }


def _within(ids: tuple[int, ...], vocabulary: int) -> bool:
    return min(ids) >= 0 and max(ids) < vocabulary


def write_baseline(model: str, sentences: Path, out: Path, *, beams: int | None = None) -> None:
    """Decode a sentence file on PyTorch and store the result.

    Args:
        model: model folder or hub id.
        sentences: sentence file, see ``harness.contract.sentences``.
        out: JSON file to write; written atomically, never over an existing one.
        beams: number of beams in place of the model's own.

    Raises:
        InputError: unusable model or sentences, a sentence too long for the model, or ``out`` exists.
    """
    if out.exists():
        raise InputError(what="already exists", where=out, action="Name another file or remove this one first.")
    sources = read_sentences(sentences)
    checkpoint = Checkpoint.open(model)
    settings = generation_settings(checkpoint)
    if beams is not None:
        settings = settings.replace(num_beams=beams)
    tokenizer, torch_model = load_tokenizer(checkpoint.folder), TorchModel(load_model(checkpoint))
    limit = checkpoint.dims.max_source_positions
    encoded = [tokenizer.encode(sentence.source) for sentence in sources]
    for sentence, ids in zip(sources, encoded):
        if len(ids) > limit:
            raise InputError(
                what=f"sentence {sentence.id} has {len(ids)} tokens, the model takes {limit}",
                where=sentences,
                action="Split it.",
            )
    rows: list[BaselineRow] = []
    for start in range(0, len(sources), BATCH_SIZE):
        chunk = range(start, min(start + BATCH_SIZE, len(sources)))
        results = torch_model.generate(*tokenizer.batch([encoded[i] for i in chunk]), settings)
        rows += [
            BaselineRow(sources[i].id, sources[i].source, tuple(encoded[i]), tokenizer.decode(result.generated), result)
            for i, result in zip(chunk, results)
        ]
    baseline = Baseline(checkpoint.model_id, checkpoint.weights_sha256, settings, compat.versions(), tuple(rows))
    _write(baseline, out)


def _write(baseline: Baseline, out: Path) -> None:
    text = json.dumps(baseline.to_json(), ensure_ascii=False, indent=1) + "\n"
    write_atomically(out, text, action="Name a file you may write.")


def read_baseline(path: Path) -> Baseline:
    """Read a stored baseline.

    Raises:
        InputError: missing, not JSON, another schema, or a field missing or malformed.
    """
    data = read_json(path, action=WRITE_AGAIN)
    if not isinstance(data, dict) or data.get("schema") != SCHEMA:
        raise InputError(what=f"not a baseline of schema {SCHEMA}", where=path, action=WRITE_AGAIN)
    try:
        rows = tuple(_row(entry) for entry in data["rows"])
        settings = GenerationSettings.from_json(data["settings"], where=path)
        baseline = Baseline(
            data["model"]["id"], data["model"]["weights_sha256"], settings, dict(data["versions"]), rows
        )
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        what = f"field {error} is missing" if isinstance(error, KeyError) else f"malformed field ({error})"
        raise InputError(what=what, where=path, action=WRITE_AGAIN) from None
    if not rows:
        raise InputError(what="no sentence inside", where=path, action=WRITE_AGAIN)
    return baseline


def _row(entry: dict[str, Any]) -> BaselineRow:
    ids, source_ids = (tuple(int(token) for token in entry[key]) for key in ("ids", "source_ids"))
    if len(ids) < 2 or not source_ids:
        raise ValueError(f"sentence {entry['id']} holds no tokens")
    return BaselineRow(
        str(entry["id"]),
        str(entry["source"]),
        source_ids,
        str(entry["text"]),
        Decoded(ids, float(entry["score"]), str(entry["stop_reason"])),
    )
