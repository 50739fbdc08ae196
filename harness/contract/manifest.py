"""``manifest.json``: everything the runtime needs to know about an artifact set."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.contract.errors import InputError
from harness.contract.generation import GenerationSettings
from harness.contract.layouts import LAYOUTS, GraphSpec, ModelDims

MANIFEST = "manifest.json"
SCHEMA = 1
EXPORT_AGAIN = "Export the set again with `python -m exporters`."


def sha256_of(path: Path) -> str:
    """Hex SHA-256 of a file's bytes, read in pieces."""
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        while block := stream.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


@dataclass(frozen=True)
class FileRecord:
    """Identity of one file of a set."""

    sha256: str
    bytes: int

    @classmethod
    def of(cls, path: Path) -> FileRecord:
        """Measure a file."""
        return cls(sha256_of(path), path.stat().st_size)


@dataclass(frozen=True)
class Manifest:
    """What a set promises. See ``harness.contract.layouts`` for the tensor contract that follows from it.

    Attributes:
        model_id: folder name or hub id the model came from.
        family: ``model_type`` of the model's config, e.g. ``marian``.
        weights_sha256: hash over the model's weight files.
        layout, exporter, opset, ir_version, target_ort: how the set was made and for which oldest runtime.
        dummy_sizes: sizes of the tracing inputs by axis name; baked axes hold one of these.
        generation: settings that decoding needs.
        tokenizer_files: names of the tokenizer files in the set.
        precision: ``fp32`` or the name of a quantization recipe, whose contents are ``quantization``.
        files: every other file of the set with its hash and size.
        versions: library versions of the export.
        simplifier: tool that simplified the graphs after the export; empty where none did.
        known_warnings, unknown_warnings: what the exporter warned of, see ``exporters.known_warnings``.
    """

    model_id: str
    family: str
    weights_sha256: str
    layout: str
    exporter: str
    opset: int
    ir_version: int
    target_ort: str
    dims: ModelDims
    dummy_sizes: dict[str, int]
    generation: GenerationSettings
    tokenizer_files: tuple[str, ...]
    files: dict[str, FileRecord]
    versions: dict[str, str]
    precision: str = "fp32"
    quantization: dict[str, Any] = field(default_factory=dict)
    known_warnings: dict[str, int] = field(default_factory=dict)
    unknown_warnings: tuple[str, ...] = ()
    simplifier: str = ""

    @property
    def graphs(self) -> dict[str, GraphSpec]:
        """Role -> graph contract."""
        return LAYOUTS[self.layout].graphs(self.dims)

    def to_json(self) -> dict[str, Any]:
        """Return the manifest as JSON types, the tensor contract spelled out for readers of the file."""
        return {
            "schema": SCHEMA,
            "model": {"id": self.model_id, "family": self.family, "weights_sha256": self.weights_sha256},
            "layout": self.layout,
            "export": {
                "exporter": self.exporter,
                "opset": self.opset,
                "ir_version": self.ir_version,
                "target_ort": self.target_ort,
                "dummy_sizes": self.dummy_sizes,
                "versions": self.versions,
                "known_warnings": self.known_warnings,
                "unknown_warnings": list(self.unknown_warnings),
                "simplifier": self.simplifier,
            },
            "precision": self.precision,
            "quantization": self.quantization,
            "dims": self.dims.to_json(),
            "generation": self.generation.to_json(),
            "tokenizer_files": list(self.tokenizer_files),
            "tensors": {role: _graph_to_json(graph) for role, graph in self.graphs.items()},
            "files": {name: {"sha256": f.sha256, "bytes": f.bytes} for name, f in sorted(self.files.items())},
        }

    def write(self, folder: Path) -> None:
        """Write ``manifest.json`` into a folder that is still being made."""
        text = json.dumps(self.to_json(), indent=2, ensure_ascii=False) + "\n"
        (folder / MANIFEST).write_text(text, encoding="utf-8")

    @classmethod
    def read(cls, folder: Path) -> Manifest:
        """Read a set's manifest and check it against itself and against the folder.

        Contents of files are not hashed here: see ``changed_files``.

        Raises:
            InputError: not JSON, another schema, a field missing, a tensor count that does not follow from the
                layout and sizes, or a listed file that is not there.
        """
        path = folder / MANIFEST
        data = read_json(path, action=EXPORT_AGAIN)
        if not isinstance(data, dict) or data.get("schema") != SCHEMA:
            found = data.get("schema") if isinstance(data, dict) else type(data).__name__
            raise InputError(what=f"manifest schema {found!r}, expected {SCHEMA}", where=path, action=EXPORT_AGAIN)
        try:
            manifest = cls._from_json(data, path)
            manifest._check_against(folder, dict(data["tensors"]))
        except (KeyError, TypeError, AttributeError, ValueError, ArithmeticError) as error:
            what = f"field {error} is missing" if isinstance(error, KeyError) else f"malformed field ({error})"
            raise InputError(what=what, where=path, action=EXPORT_AGAIN) from None
        return manifest

    @classmethod
    def _from_json(cls, data: dict[str, Any], path: Path) -> Manifest:
        export, model = data["export"], data["model"]
        if data["layout"] not in LAYOUTS:
            raise InputError(
                what=f"unknown layout {data['layout']!r}", where=path, action=f"Known layouts: {', '.join(LAYOUTS)}."
            )
        return cls(
            model_id=model["id"],
            family=model["family"],
            weights_sha256=model["weights_sha256"],
            layout=data["layout"],
            exporter=export["exporter"],
            opset=int(export["opset"]),
            ir_version=int(export["ir_version"]),
            target_ort=export["target_ort"],
            dims=ModelDims(**data["dims"]),
            dummy_sizes=dict(export["dummy_sizes"]),
            generation=GenerationSettings.from_json(data["generation"], where=path),
            tokenizer_files=tuple(data["tokenizer_files"]),
            files={name: FileRecord(f["sha256"], int(f["bytes"])) for name, f in data["files"].items()},
            versions=dict(export["versions"]),
            known_warnings=dict(export["known_warnings"]),
            unknown_warnings=tuple(export["unknown_warnings"]),
            simplifier=export.get("simplifier", ""),
            precision=data["precision"],
            quantization=dict(data["quantization"]),
        )

    def _check_against(self, folder: Path, tensors: dict[str, Any]) -> None:
        promised = {role: _graph_to_json(graph) for role, graph in self.graphs.items()}
        if tensors != promised:
            wrong = sorted(role for role in {*tensors, *promised} if tensors.get(role) != promised.get(role))
            raise InputError(
                what=f"the tensors listed for {', '.join(wrong)} do not follow from its layout and sizes",
                where=folder / MANIFEST,
                action=EXPORT_AGAIN,
            )
        for name in self.files:
            if Path(name).name != name:
                raise InputError(
                    what=f"file name {name!r} leaves the folder", where=folder / MANIFEST, action=EXPORT_AGAIN
                )
            if not (folder / name).is_file():
                raise InputError(
                    what=f"{name} is listed but not there",
                    where=folder,
                    action="Restore the file or export the set again with `python -m exporters`.",
                )

    def changed_files(self, folder: Path) -> list[str]:
        """Say of every file whose bytes are not those of the export what was expected and found."""
        changed = []
        for name, record in sorted(self.files.items()):
            found = FileRecord.of(folder / name)
            if found != record:
                changed.append(
                    f"{name}: {record.bytes} bytes, sha256 {record.sha256[:12]} promised; "
                    f"{found.bytes} bytes, {found.sha256[:12]} found"
                )
        return changed


def _graph_to_json(graph: GraphSpec) -> dict[str, Any]:
    return {
        "inputs": [tensor.to_json() for tensor in graph.inputs],
        "outputs": [tensor.to_json() for tensor in graph.outputs],
    }


def read_json(path: Path, *, action: str) -> Any:
    """Read a JSON file that the user gave.

    Raises:
        InputError: the file is missing, not UTF-8 or not JSON.
    """
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputError(what="no such file", where=path, action=action) from None
    except UnicodeDecodeError:
        raise InputError(what="not UTF-8 text", where=path, action=action) from None
    except json.JSONDecodeError as error:
        raise InputError(what=f"not JSON (line {error.lineno}: {error.msg})", where=path, action=action) from None
    except OSError as error:
        raise InputError(what=f"cannot be read ({error.strerror})", where=path, action=action) from None


def read_object(path: Path, *, action: str) -> dict[str, Any]:
    """Read a JSON file that holds an object.

    Raises:
        InputError: as ``read_json``, or the file holds something else.
    """
    data = read_json(path, action=action)
    if not isinstance(data, dict):
        raise InputError(what=f"a JSON object is needed, this is a {type(data).__name__}", where=path, action=action)
    return data
