"""Tensor and file names that other exporters use, mapped to this project's.

Known habits: Optimum's names, which are the contract's own, and two of hand-written exports:
``past_key_{i}``/``present_key_{i}`` with ``past_value_{i}``, and ``past_{i}``/``present_{i}`` in order key, value.
"""

from __future__ import annotations

import re

from harness.contract.layouts import (
    ATTENTION_MASK,
    CROSS,
    DECODER,
    DECODER_INIT,
    DECODER_STEP,
    ENCODER,
    ENCODER_HIDDEN,
    ENCODER_MASK,
    ENCODER_OUTPUT,
    INPUT_IDS,
    LOGITS,
    SELF,
)

BRANCH_FLAG = "use_cache_branch"
DECODER_MERGED = "decoder_merged"

# Role -> file names it goes by, this project's first.
FILE_NAMES = {
    ENCODER: ("encoder.onnx", "encoder_model.onnx"),
    DECODER: ("decoder.onnx",),
    DECODER_INIT: ("decoder_init.onnx", "decoder_model.onnx"),
    DECODER_STEP: ("decoder_step.onnx", "decoder_with_past_model.onnx"),
    DECODER_MERGED: ("decoder_model_merged.onnx",),
}

_IDS = {"input_ids", "decoder_input_ids"}
_MASKS = {"attention_mask", "encoder_attention_mask"}
_HIDDEN = {"encoder_hidden_states", "last_hidden_state", "encoder_outputs", "encoder_output", "hidden_states"}
_LOGITS = {"logits", "lm_logits"}

_CANONICAL = re.compile(r"(past_key_values|present)\.(\d+)\.(decoder|encoder)\.(key|value)")
_SPLIT = re.compile(r"(past|present)_(key|value)s?_(\d+)")
_FLAT = re.compile(r"(past|present)(?:_key_values)?_(\d+)")


def canonical_name(name: str, *, role: str, output: bool, layers: int, caches: int) -> str | None:
    """The contract's name for a graph's tensor, or None when it is no name this project knows.

    Args:
        name: the graph's name.
        role: role of the graph.
        output: whether the tensor is an output.
        layers: decoder layers of the model.
        caches: how many cache tensors the graph has on this side: it tells whether cross K/V are among them.
    """
    if output and name in _LOGITS and role != ENCODER:
        return LOGITS
    if name in _HIDDEN:
        return ENCODER_OUTPUT if output else ENCODER_HIDDEN
    if not output and name in _IDS:
        return INPUT_IDS
    if not output and name in _MASKS:
        return ATTENTION_MASK if role == ENCODER else ENCODER_MASK
    if name == BRANCH_FLAG:
        return name
    return _cache_name(name, layers, caches)


def is_cache(name: str) -> bool:
    """Whether a graph's tensor name is a cache under any of the habits."""
    return bool(_CANONICAL.fullmatch(name) or _SPLIT.fullmatch(name) or _FLAT.fullmatch(name))


def _cache_name(name: str, layers: int, caches: int) -> str | None:
    if _CANONICAL.fullmatch(name):
        return name
    if match := _SPLIT.fullmatch(name):
        direction, part, index = match[1], match[2], int(match[3])
        return _numbered(direction, index, part, crossed=caches > 2 * layers)
    if match := _FLAT.fullmatch(name):
        direction, index = match[1], int(match[2])
        return _numbered(direction, index // 2, ("key", "value")[index % 2], crossed=caches > 2 * layers)
    return None


def _numbered(direction: str, pair: int, part: str, *, crossed: bool) -> str:
    """Name the n-th key-value pair; with cross K/V among them they alternate: self 0, cross 0, self 1, ..."""
    layer, attention = (pair // 2, (SELF, CROSS)[pair % 2]) if crossed else (pair, SELF)
    prefix = {"past": "past_key_values", "present": "present"}[direction]
    return f"{prefix}.{layer}.{attention}.{part}"
