"""Models of a real model's size with seeded random weights: what ``--scale NAME`` takes in place of a model.

Recipes are data, ``fixtures/scale/NAME.json``. Their words mean nothing; time, memory and file size do.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import shutil
import struct
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from filelock import FileLock

from harness.contract.errors import InputError
from harness.contract.manifest import read_object

_FIXTURES = Path(__file__).parents[2] / "fixtures"
RECIPES = _FIXTURES / "scale"
TOKENIZER_FILES = ("source.spm", "target.spm")
# Changes with the way weights are drawn, so that a cache holds no model of an older way.
_FORMAT = 1


def scale_names() -> tuple[str, ...]:
    """Names of the stored recipes."""
    return tuple(sorted(path.stem for path in RECIPES.glob("*.json")))


def read_scale(name: str) -> dict[str, Any]:
    """Read a recipe; what it ``extends`` is filled in.

    Raises:
        InputError: there is no such recipe.
    """
    if name not in scale_names():
        raise InputError(what=f"unknown scale {name!r}", where="--scale", action=f"Known: {', '.join(scale_names())}.")
    recipe = read_object(RECIPES / f"{name}.json", action="Restore the file.")
    base = recipe.pop("extends", None)
    if base is None:
        return recipe
    merged = read_scale(base)
    for key, value in recipe.items():
        merged[key] = {**merged[key], **value} if isinstance(value, dict) else value
    return merged


def scale_model(name: str, cache: Path) -> Path:
    """Return the model folder of a recipe in Hugging Face form, made once per cache and recipe.

    Args:
        name: one of ``scale_names()``.
        cache: folder that keeps it; a lock makes a second process wait for the first.

    Raises:
        InputError: unknown recipe, or the cache cannot be written.
    """
    recipe = read_scale(name)
    key = hashlib.sha256(json.dumps([_FORMAT, recipe], sort_keys=True).encode()).hexdigest()[:16]
    folder = cache / "scale" / key / name  # the folder's name is the model's id
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(f"{folder}.lock"):
            if not folder.is_dir():
                _make(recipe, folder)
    except OSError as error:
        raise InputError(
            what=f"the artifact cache cannot be written ({error.strerror or error})",
            where=cache,
            action="Name a folder you may write to, with room for the model.",
        ) from None
    return folder


def _make(recipe: dict[str, Any], folder: Path) -> None:
    """Write all files beside ``folder`` and rename: an interruption leaves no half model."""
    for leftover in folder.parent.glob(f".{folder.name}.partial-*"):
        shutil.rmtree(leftover)
    made = Path(tempfile.mkdtemp(prefix=f".{folder.name}.partial-", dir=folder.parent))
    try:
        _write_configs(recipe, made)
        _write_tokenizer(recipe, made)
        _write_weights(recipe, made / "model.safetensors")
        made.chmod(0o755)
        os.replace(made, folder)
    except BaseException:
        shutil.rmtree(made, ignore_errors=True)
        raise


def _write_json(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")


def _write_configs(recipe: dict[str, Any], folder: Path) -> None:
    size = recipe["config"]["vocab_size"]
    ids = {"bos_token_id": 0, "eos_token_id": 0, "pad_token_id": size - 1, "decoder_start_token_id": size - 1}
    fixed = {
        "architectures": ["MarianMTModel"],
        "model_type": "marian",
        "decoder_vocab_size": size,
        "is_encoder_decoder": True,
        "scale_embedding": True,
        "share_encoder_decoder_embeddings": True,
        "static_position_embeddings": True,
        "tie_word_embeddings": True,
        "use_cache": True,
        "torch_dtype": "float32",
        "forced_eos_token_id": recipe["generation"]["forced_eos_token_id"],
    }
    _write_json(folder / "config.json", {**fixed, **ids, **recipe["config"]})
    _write_json(folder / "generation_config.json", {"bad_words_ids": [[size - 1]], **ids, **recipe["generation"]})


def _write_tokenizer(recipe: dict[str, Any], folder: Path) -> None:
    """The embedded model's tokenizer, its vocabulary filled up before the pad, which comes last."""
    source, size = _FIXTURES / "models" / recipe["tokenizer"], recipe["config"]["vocab_size"]
    for name in TOKENIZER_FILES:
        shutil.copyfile(source / name, folder / name)
    vocabulary = read_object(source / "vocab.json", action="Restore the file.")
    del vocabulary["<pad>"]
    vocabulary.update({f"<filler{number}>": number for number in range(len(vocabulary), size - 1)})
    _write_json(folder / "vocab.json", {**vocabulary, "<pad>": size - 1})
    config = read_object(source / "tokenizer_config.json", action="Restore the file.")
    added = config["added_tokens_decoder"]
    pad = next(number for number, token in added.items() if token["content"] == "<pad>")
    added[str(size - 1)] = added.pop(pad)
    _write_json(folder / "tokenizer_config.json", config)


def _shapes(config: dict[str, Any]) -> dict[str, tuple[int, ...]]:
    """Shapes of the tensors that transformers stores of a Marian with one tied embedding."""
    width, size = config["d_model"], config["vocab_size"]
    shapes: dict[str, tuple[int, ...]] = {"final_logits_bias": (1, size), "model.shared.weight": (size, width)}
    for side, attentions in (("decoder", ("self_attn", "encoder_attn")), ("encoder", ("self_attn",))):
        inner = config[f"{side}_ffn_dim"]
        for layer in range(config[f"{side}_layers"]):
            place = f"model.{side}.layers.{layer}"
            linear = {f"{a}.{p}_proj": (width, width) for a in attentions for p in ("k", "v", "q", "out")}
            linear.update({"fc1": (inner, width), "fc2": (width, inner)})
            for name, shape in linear.items():
                shapes[f"{place}.{name}.weight"], shapes[f"{place}.{name}.bias"] = shape, shape[:1]
            for name in (*(f"{a}_layer_norm" for a in attentions), "final_layer_norm"):
                shapes[f"{place}.{name}.weight"] = shapes[f"{place}.{name}.bias"] = (width,)
    return shapes


def _write_weights(recipe: dict[str, Any], path: Path) -> None:
    """Write float32 safetensors one tensor at a time; those the recipe leaves zero are holes in the file.

    Format: https://huggingface.co/docs/safetensors
    """
    shapes = _shapes(recipe["config"])
    header, end = {"__metadata__": {"format": "pt"}}, 0
    for name, shape in shapes.items():
        start, end = end, end + 4 * math.prod(shape)
        header[name] = {"dtype": "F32", "shape": list(shape), "data_offsets": [start, end]}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with path.open("wb") as stream:
        stream.write(struct.pack("<Q", len(text)) + text)
        for name, shape in shapes.items():
            if name in recipe["zero"]:
                stream.seek(4 * math.prod(shape), os.SEEK_CUR)
            else:
                stream.write(_draw(recipe, name, shape).tobytes())
        stream.truncate(8 + len(text) + end)


def _draw(recipe: dict[str, Any], name: str, shape: tuple[int, ...]) -> np.ndarray:
    """One tensor, float32 ``shape``, from its own stream: the recipe's seed and the tensor's name.

    Values are uniform with the recipe's standard deviation, from raw PCG64 bits, the one stream that numpy promises to
    keep. Layer norms have weights around 1, but the decoder's last around 0: its random signs part the output from the
    residual of the input token, which a tied model of random weights would otherwise emit for ever.
    """
    seed = int.from_bytes(hashlib.sha256(f"{recipe['seed']}:{name}".encode()).digest()[:8], "little")
    count = math.prod(shape)
    bits = np.random.PCG64(seed).random_raw((count + 1) // 2).astype("<u8").view("<u4")[:count]
    unit = (bits >> 8).astype(np.float32) * np.float32(2.0**-23) - np.float32(1.0)
    kind = _kind(name, recipe["config"]["decoder_layers"] - 1)
    values = unit * np.float32(math.sqrt(3) * recipe["scales"][kind])
    if kind == "layer_norm_weight":
        values += np.float32(1.0)
    if name == "final_logits_bias" and recipe["end_bias"] is not None:
        values[0] = recipe["end_bias"]  # the end token has id 0
    values = values.reshape(shape)
    if name == "model.shared.weight":
        values[-1] = 0  # the pad, which also starts the decoder, as Marian has it
    return values


def _kind(name: str, last_layer: int) -> str:
    """Which of the recipe's scales a tensor is drawn with."""
    if name in ("final_logits_bias", "model.shared.weight"):
        return name
    if name.endswith("bias"):
        return "bias"
    if name == f"model.decoder.layers.{last_layer}.final_layer_norm.weight":
        return "last_layer_norm_weight"
    if "layer_norm" in name:
        return "layer_norm_weight"
    return "attention_output" if "out_proj" in name else "weight"
