"""Rounding a weight to a few bits.

Written here and not taken from ``onnxruntime.quantization``, whose arguments, defaults and results differ between the
stacks (``docs/stacks.md``); ``meta_tests/test_quantize.py`` holds the rounding against it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

# Bits -> largest magnitude. Seven bits keep 64, as onnxruntime's own `reduce_range`: 255 x 64 x 2 fits into 16 bits.
LARGEST = {8: 127, 7: 64, 4: 7}


@dataclass(frozen=True)
class Rounded:
    """A weight as integers: ``(values - zero_point) * scale``.

    Attributes:
        values: int8, the weight's shape.
        scale: float32, one per index of the channel axis, or a scalar.
        zero_point: int8, the scale's shape.
    """

    values: np.ndarray
    scale: np.ndarray
    zero_point: np.ndarray


def round_weight(weight: np.ndarray, *, channel_axis: int | None, bits: int, symmetric: bool) -> Rounded:
    """Round a float32 matrix to int8, zeros to exact zeros.

    Args:
        weight: float32 ``[rows, columns]``.
        channel_axis: axis whose every index has a scale of its own; None for one scale in all.
        bits: 8 or 7.
        symmetric: zero is stored as 0; else the whole range from smallest to largest is used.
    """
    over = None if channel_axis is None else 1 - channel_axis
    low = np.minimum(weight.min(axis=over), 0).astype(np.float64)
    high = np.maximum(weight.max(axis=over), 0).astype(np.float64)
    if symmetric:
        scale = np.maximum(high, -low) / LARGEST[bits]
        zero_point = np.zeros_like(scale)
        bottom, top = -LARGEST[bits], LARGEST[bits]
    else:
        bottom, top = (-128, 127) if bits == 8 else (-64, 64)
        scale = (high - low) / (top - bottom)
        scale = np.where(scale == 0, 1.0, scale)
        zero_point = np.round(bottom - low / scale)
    scale = np.where(scale == 0, 1.0, scale).astype(np.float32)
    spread = (lambda array: array) if over is None else (lambda array: np.expand_dims(array, over))
    values = np.clip(np.round(weight / spread(scale)) + spread(zero_point), bottom, top)
    return Rounded(values.astype(np.int8), scale, zero_point.astype(np.int8))


def pack_blocks(weight: np.ndarray, block: int) -> tuple[np.ndarray, np.ndarray]:
    """Round a float32 ``[inputs, outputs]`` matrix to 4 bits in the form of ``com.microsoft.MatMulNBits``.

    Returns:
        uint8 ``[outputs, blocks, block / 2]`` with zero at 8, the even input in the low half; float32
        ``[outputs * blocks]`` scales.
    """
    inputs, outputs = weight.shape
    blocks = -(-inputs // block)
    padded = np.zeros((blocks * block, outputs), np.float32)
    padded[:inputs] = weight
    grouped = padded.T.reshape(outputs, blocks, block)
    scale = np.abs(grouped).max(axis=2) / LARGEST[4]
    scale = np.where(scale == 0, 1.0, scale).astype(np.float32)
    values = (np.clip(np.round(grouped / scale[..., None]), -8, 7) + 8).astype(np.uint8)
    return values[..., 0::2] | (values[..., 1::2] << 4), scale.reshape(-1)
