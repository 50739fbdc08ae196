"""A Hugging Face model folder, checked before torch sees it."""

from __future__ import annotations

import hashlib
import json
import re
import struct
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from harness.contract.errors import InputError
from harness.contract.layouts import ModelDims
from harness.contract.manifest import read_json, sha256_of
from harness.contract.model_config import dims_of
from harness.runtime.tokenizer import files as tokenizer_files
from harness.runtime.tokenizer import load_tokenizer

SAFETENSORS = "model.safetensors"
PICKLED = "pytorch_model.bin"
HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")
HUB_FILES = ["*.json", "*.spm", "*.model", SAFETENSORS, PICKLED, "model-*.safetensors", "pytorch_model-*.bin"]
DOWNLOAD_AGAIN = "Download or copy the file again."


@dataclass(frozen=True)
class Checkpoint:
    """A model folder whose files are present and whole; nothing is loaded yet.

    Attributes:
        folder: the local folder.
        model_id: hub id, or the folder's name.
        config: contents of ``config.json``.
        weight_files: the files that hold the weights, safetensors where there is a choice.
    """

    folder: Path
    model_id: str
    config: dict[str, Any]
    weight_files: tuple[Path, ...]

    @classmethod
    def open(cls, model: str) -> Checkpoint:
        """Open a folder, or fetch a hub id into the hub library's cache.

        Raises:
            InputError: folder missing or empty, no readable config, tokenizer or weights, weights truncated.
        """
        folder = Path(model)
        model_id = folder.resolve().name
        if not folder.is_dir():
            folder, model_id = _fetch(model), model
        if not any(folder.iterdir()):
            raise InputError(
                what="the folder is empty", where=folder, action="Give a folder with a Hugging Face model."
            )
        config = read_json(
            folder / "config.json", action="Give a folder in Hugging Face form (config.json, weights, tokenizer)."
        )
        if not isinstance(config, dict) or not isinstance(config.get("model_type"), str):
            raise InputError(
                what="no model_type",
                where=folder / "config.json",
                action="Give the config.json that transformers wrote.",
            )
        load_tokenizer(folder)
        return cls(folder, model_id, config, _weight_files(folder))

    @cached_property
    def dims(self) -> ModelDims:
        """Sizes of the model."""
        return dims_of(self.config, where=self.folder / "config.json")

    @property
    def family(self) -> str:
        """``model_type`` of the config."""
        return self.config["model_type"]

    @property
    def pickled(self) -> bool:
        """Whether the weights are a pickle, to be loaded through the restricted unpickler only."""
        return self.weight_files[0].suffix == ".bin"

    @cached_property
    def weights_sha256(self) -> str:
        """Hash over the weight files in name order."""
        digest = hashlib.sha256()
        for path in self.weight_files:
            digest.update(bytes.fromhex(sha256_of(path)))
        return digest.hexdigest()

    @cached_property
    def tokenizer_sha256(self) -> str:
        """Hash over the tokenizer's files in name order."""
        digest = hashlib.sha256()
        for name in sorted(tokenizer_files(self.folder)):
            digest.update(f"{name}:{sha256_of(self.folder / name)};".encode())
        return digest.hexdigest()

    @cached_property
    def identity_sha256(self) -> str:
        """Hash over everything in the folder that shapes a result: weights, configs and tokenizer files."""
        digest = hashlib.sha256(self.weights_sha256.encode())
        for path in sorted(self.folder.iterdir()):
            if path.is_file() and path.suffix in (".json", ".spm", ".model"):
                digest.update(f"{path.name}:{sha256_of(path)};".encode())
        return digest.hexdigest()


def _fetch(model: str) -> Path:
    """Download a hub id, or say that there is neither folder nor model."""
    if not HUB_ID.fullmatch(model) or Path(model).parent.is_dir():
        raise InputError(
            what="no such model folder", where=model, action="Give a folder in Hugging Face form or a hub id."
        )
    import huggingface_hub  # optional at import time: the runtime-only stacks do without

    try:
        return Path(huggingface_hub.snapshot_download(model, allow_patterns=HUB_FILES))
    except Exception as error:  # the hub library raises its HTTP client's own types, which differ by version
        raise InputError(
            what=f"neither a folder nor a model that could be fetched from the hub ({type(error).__name__})",
            where=model,
            action="Check the spelling and the network, or download the model and give its folder.",
        ) from None


def _weight_files(folder: Path) -> tuple[Path, ...]:
    for name in (SAFETENSORS, PICKLED):
        index = folder / f"{name}.index.json"
        if (folder / name).is_file():
            files = (folder / name,)
        elif index.is_file():
            shards = read_json(index, action=DOWNLOAD_AGAIN).get("weight_map", {})
            files = tuple(folder / shard for shard in sorted(set(shards.values())))
        else:
            continue
        for path in files:
            _check_weight_file(path)
        return files
    raise InputError(
        what=f"no weights ({SAFETENSORS} or {PICKLED})", where=folder, action="Add the model's weights to the folder."
    )


def _check_weight_file(path: Path) -> None:
    if not path.is_file():
        raise InputError(what="listed in the weights' index but not there", where=path, action=DOWNLOAD_AGAIN)
    if path.suffix == ".safetensors":
        expected, found = _safetensors_bytes(path), path.stat().st_size
        if expected != found:
            raise InputError(
                what=f"truncated or damaged: its header promises {expected} bytes, the file has {found}",
                where=path,
                action=DOWNLOAD_AGAIN,
            )


def _safetensors_bytes(path: Path) -> int:
    """Size in bytes that a safetensors file's header promises.

    Format: 8 bytes little-endian header length, the JSON header, then the data
    (https://huggingface.co/docs/safetensors).
    """
    try:
        with path.open("rb") as stream:
            (length,) = struct.unpack("<Q", stream.read(8))
            if length > path.stat().st_size:
                raise ValueError("header longer than the file")
            header = json.loads(stream.read(length))
        ends = [entry["data_offsets"][1] for name, entry in header.items() if name != "__metadata__"]
        return 8 + length + max(ends)
    except (struct.error, ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(what=f"not a whole safetensors file ({error})", where=path, action=DOWNLOAD_AGAIN) from None
