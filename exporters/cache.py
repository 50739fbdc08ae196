"""Artifact sets made once and kept, for two processes at once and through a kill."""

from __future__ import annotations

import hashlib
import json
import shutil
from dataclasses import asdict
from pathlib import Path

from filelock import FileLock

import harness
from exporters.export import ExportOptions, export
from exporters.quantize import Quantization, quantize
from harness import compat
from harness.contract.errors import InputError
from harness.contract.manifest import Manifest
from harness.reference.checkpoint import Checkpoint

# Everything whose change may change a graph or its manifest.
_CODE = ("exporters", "harness/contract", "harness/reference", "harness/compat.py", "harness/runtime")


def cached_set(checkpoint: Checkpoint, options: ExportOptions, cache: Path, how: Quantization | None = None) -> Path:
    """Return the folder of a set, making it unless the cache has it whole; a quantized one from its float32 set.

    The key covers the model's files, the exporting code, the options, the library versions, the recipe and the bytes of
    the calibration file. A lock per key makes
    the second process wait for the first; a set that was damaged since is made again.

    Raises:
        InputError: the cache folder cannot be written, or the export fails.
    """
    precision = f"{how.recipe.name}-" if how else ""
    folder = cache / f"{options.layout}-{options.exporter}-{precision}{_key(checkpoint, options, how)}"
    try:
        cache.mkdir(parents=True, exist_ok=True)
        with FileLock(f"{folder}.lock"):
            if not _is_whole(folder):
                _remove_leftovers(folder)
                if how:
                    quantize(cached_set(checkpoint, options, cache), folder, how)
                else:
                    export(checkpoint, folder, options)
    except OSError as error:
        raise InputError(
            what=f"the artifact cache cannot be written ({error.strerror or error})",
            where=cache,
            action="Name a folder you may write to with --artifact-cache.",
        ) from None
    return folder


def _key(checkpoint: Checkpoint, options: ExportOptions, how: Quantization | None) -> str:
    parts = {
        "model": checkpoint.identity_sha256,
        "id": checkpoint.model_id,
        "code": _code_sha256(),
        "options": {**asdict(options), "opset": options.resolved_opset()},
        "versions": compat.versions(),
        **({"quantization": how.key()} if how else {}),
    }
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16]


def _code_sha256() -> str:
    root = Path(harness.__file__).parent.parent
    digest = hashlib.sha256()
    for place in _CODE:
        path = root / place
        for file in sorted(path.rglob("*.py")) if path.is_dir() else [path]:
            digest.update(file.read_bytes())
    return digest.hexdigest()


def _is_whole(folder: Path) -> bool:
    try:
        return not Manifest.read(folder).changed_files(folder)
    except InputError:
        return False


def _remove_leftovers(folder: Path) -> None:
    """Remove what a kill or a damaged disk left; we hold the lock, so nobody is writing it."""
    for path in (folder, *folder.parent.glob(f".{folder.name}.partial-*")):
        shutil.rmtree(path, ignore_errors=True)
