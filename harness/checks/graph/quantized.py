"""Reading quantized graphs: which nodes work on integers, and what their weights are worth in float32.

Knows the project's own form and those of ``onnxruntime.quantization``: MatMulInteger with its scales behind it,
QLinearMatMul, QGemm, DequantizeLinear on a weight (QDQ), MatMulNBits, fused operators, and lookups in integer tables.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper

from harness.checks.graph.embedding import UNCHANGED, origin, row_scale_of
from harness.checks.graph.walk import Scope, constant_of, main_scope

FLOAT, WEIGHTS, INTEGER = "float", "weights", "integer"
PRODUCT, LOOKUP = "product", "lookup"
# Positions of weight, its scale and its zero point among the inputs.
_OPERANDS = {
    "QLinearMatMul": (3, 4, 5),
    "QGemm": (3, 4, 5),
    "DynamicQuantizeMatMul": (1, 2, 3),
    "MatMulIntegerToFloat": (1, 3, 5),
}
_PLAIN = ("MatMul", "Gemm", "FusedMatMul", "FusedGemm")
_UNCHANGED_WEIGHT = ("Transpose", "Identity", "DequantizeLinear")


@dataclass(frozen=True)
class StoredWeight:
    """A quantized weight, in float32 again.

    Attributes:
        file, name: file, and initializer without what quantizers append to the name.
        values: float32 ``[rows, columns]``: ``[inputs, outputs]`` for a product, ``[vocabulary, width]`` for a lookup.
        step: distance of neighbouring values, of a shape that broadcasts to ``values``.
        largest: largest magnitude of its integers, zero point removed.
        rowwise: whether every row has a scale of its own.
        bytes: of the integers, scales and zero points as stored.
    """

    file: str
    name: str
    values: np.ndarray
    step: np.ndarray
    largest: int
    rowwise: bool
    bytes: int


@dataclass(frozen=True)
class Use:
    """A node that reads a stored matrix.

    Attributes:
        node: its name.
        purpose: ``product`` or ``lookup``.
        kind: ``float``; ``weights``: integers are turned into float first; ``integer``: it computes with integers.
        stored: name of the initializer.
        given, output: float values before and after, where a node in float would go; empty where unknown.
        weight: the weight; None in float, or where its scale was not found.
    """

    node: str
    purpose: str
    kind: str
    stored: str
    given: str = ""
    output: str = ""
    weight: StoredWeight | None = None


def plain_name(name: str) -> str:
    """A weight's name without what quantizers append."""
    for ending in ("_quantized", "_Q4", "_Q8", "_Q4G32", "_transposed", "_merged_0"):
        name = name.removesuffix(ending)
    return name


def uses(file: str, model: ModelProto, folder: Path, ids: str) -> list[Use]:
    """Every product with a stored matrix and every lookup of the ids, in float or quantized, in branches too.

    Args:
        file: name of the file.
        model: its contents; weights may be in external files of ``folder``.
        ids: the graph's own name of its ids input.
    """
    return [use for scope in main_scope(model).scopes() for use in _Reader(file, scope, folder, ids).uses()]


class _Reader:
    """Reads the nodes of one scope."""

    def __init__(self, file: str, scope: Scope, folder: Path, ids: str) -> None:
        self.file, self.scope, self.folder, self.ids = file, scope, folder, ids
        self.consumers: dict[str, list[NodeProto]] = {}
        for node in scope.nodes:
            for name in node.input:
                self.consumers.setdefault(name, []).append(node)

    def uses(self) -> Iterator[Use]:
        for node in self.scope.nodes:
            if node.op_type in _PLAIN:
                use = self._plain(node)
            elif node.op_type == "MatMulInteger":
                use = self._integer(node)
            elif node.op_type in _OPERANDS:
                use = self._fused(node)
            elif node.op_type == "MatMulNBits":
                use = self._blocks(node)
            elif node.op_type == "Gather":
                use = self._lookup(node)
            elif node.op_type == "GatherBlockQuantized":
                use = Use(node.name, LOOKUP, WEIGHTS, node.input[0])
            else:
                continue
            if use is not None:
                yield use

    def _array(self, name: str) -> np.ndarray | None:
        tensor = self.scope.constant(name) if name else None
        return None if tensor is None else numpy_helper.to_array(tensor, str(self.folder))

    def _trace(self, name: str) -> tuple[str, TensorProto | None, list[NodeProto]]:
        """The stored matrix behind a value: its name, the tensor, and the nodes between, first to last."""
        path: list[NodeProto] = []
        while (tensor := self.scope.constant(name)) is None:
            node = self.scope.producer(name)
            if node is None or node.op_type not in _UNCHANGED_WEIGHT or constant_of(node) is not None:
                return name, None, []
            path.insert(0, node)
            name = node.input[0]
        return name, tensor if len(tensor.dims) == 2 else None, path

    def _plain(self, node: NodeProto) -> Use | None:
        stored, tensor, path = self._trace(node.input[1])
        if tensor is None:
            return None
        dequantized = any(step.op_type == "DequantizeLinear" for step in path)
        if not dequantized:
            return Use(node.name, PRODUCT, FLOAT, stored, node.input[0], node.output[0])
        before = self.scope.producer(node.input[0])
        both = before is not None and before.op_type == "DequantizeLinear"
        quantize = self.scope.producer(before.input[0]) if both else None
        given = quantize.input[0] if quantize is not None else node.input[0]
        turned = _attribute(node, "transB", 0) == 1
        weight = _readable(lambda: self._weight(stored, tensor, path, turned=turned))
        return Use(node.name, PRODUCT, INTEGER if both else WEIGHTS, stored, given, node.output[0], weight)

    def _integer(self, node: NodeProto) -> Use | None:
        stored, tensor, path = self._trace(node.input[1])
        if tensor is None:
            return None
        scale, output = self._scale_behind(node)
        zero = self._array(node.input[3]) if len(node.input) > 3 else None
        quantize = self.scope.producer(node.input[0])
        given = quantize.input[0] if quantize is not None else ""
        build = lambda: self._weight(stored, tensor, path, scale=scale, zero=zero)
        weight = None if scale is None else _readable(build)
        return Use(node.name, PRODUCT, INTEGER, stored, given, output, weight)

    def _scale_behind(self, node: NodeProto) -> tuple[np.ndarray | None, str]:
        """The weight's scale among the factors that an integer product is multiplied by, and the float output."""
        value = node.output[0]
        while step := next((n for n in self.consumers.get(value, ()) if n.op_type in (*UNCHANGED, "Mul")), None):
            if step.op_type == "Mul":
                other = step.input[1] if step.input[0] == value else step.input[0]
                both = self.scope.producer(other)
                factors = both.input if both is not None and both.op_type == "Mul" else [other]
                constants = [array for name in factors if (array := self._array(name)) is not None]
                return (constants[-1] if constants else None), step.output[0]
            value = step.output[0]
        return None, ""

    def _fused(self, node: NodeProto) -> Use | None:
        at = _OPERANDS[node.op_type]
        stored, tensor, path = self._trace(node.input[at[0]])
        if tensor is None:
            return None
        scale = self._array(node.input[at[1]])
        zero = self._array(node.input[at[2]]) if len(node.input) > at[2] else None
        turned = _attribute(node, "transB", 0) == 1
        build = lambda: self._weight(stored, tensor, path, scale=scale, zero=zero, turned=turned)
        weight = None if scale is None else _readable(build)
        return Use(node.name, PRODUCT, INTEGER, stored, weight=weight)

    def _weight(
        self,
        stored: str,
        tensor: TensorProto,
        path: list[NodeProto],
        *,
        scale: np.ndarray | None = None,
        zero: np.ndarray | None = None,
        turned: bool = False,
    ) -> StoredWeight | None:
        """Follow integers through what stands between them and their product; a scale of its own comes last."""
        array = numpy_helper.to_array(tensor, str(self.folder))
        if array.dtype.kind not in "iu":
            return None
        size, values, step, shift = array.nbytes, array.astype(np.float32), np.ones((1, 1), np.float32), None
        for node in path:
            if node.op_type == "Transpose":
                values, step = values.T, step.T
                shift = None if shift is None else shift.T
            elif node.op_type == "DequantizeLinear":
                factor = self._array(node.input[1])
                point = self._array(node.input[2]) if len(node.input) > 2 else None
                axis, block = _attribute(node, "axis", 1), _attribute(node, "block_size", 0)
                if factor is None:
                    return None
                size += _bytes(factor, point)
                step = _spread(factor, axis % 2, values.shape, block)
                shift = None if point is None else _spread(point, axis % 2, values.shape, block)
        if turned:
            values, step = values.T, step.T
            shift = None if shift is None else shift.T
        if scale is not None:
            size += _bytes(scale, zero)
            step = _spread(scale, 1, values.shape, 0)
            shift = None if zero is None else _spread(zero, 1, values.shape, 0)
        centred = values if shift is None else values - shift.astype(np.float32)
        return _stored(self.file, stored, centred, step, size, rowwise=False)

    def _blocks(self, node: NodeProto) -> Use | None:
        packed, scale = self._array(node.input[1]), self._array(node.input[2])
        if packed is None or scale is None:
            return None
        stored = node.input[1]
        points = self._array(node.input[3]) if len(node.input) > 3 else None
        weight = None
        if _attribute(node, "bits", 4) in (4, 8) and (points is None or points.dtype == np.uint8):
            weight = _readable(lambda: self._unpacked(node, stored, packed, scale, points))
        return Use(node.name, PRODUCT, WEIGHTS, stored, node.input[0], node.output[0], weight)

    def _unpacked(self, node, stored: str, packed, scale, points) -> StoredWeight:
        inputs, outputs = _attribute(node, "K", 0), _attribute(node, "N", 0)
        bits, block = _attribute(node, "bits", 4), _attribute(node, "block_size", 32)
        blocks = -(-inputs // block)
        values = _nibbles(packed, bits).reshape(outputs, blocks, block).astype(np.float32)
        middle = np.full((outputs, blocks), 1 << (bits - 1), np.float32)
        if points is not None:
            middle = _nibbles(points.reshape(outputs, -1), bits)[:, :blocks].astype(np.float32)
        centred = (values - middle[..., None]).reshape(outputs, -1)[:, :inputs].T
        step = np.repeat(scale.reshape(outputs, blocks), block, axis=1)[:, :inputs].T
        return _stored(
            self.file, stored, centred, step.astype(np.float32), _bytes(packed, scale, points), rowwise=False
        )

    def _lookup(self, node: NodeProto) -> Use | None:
        stored, tensor, path = self._trace(node.input[0])
        if tensor is None or origin(self.scope, node.input[1]) != self.ids:
            return None
        kind = FLOAT if tensor.data_type in (TensorProto.FLOAT, TensorProto.FLOAT16) else WEIGHTS
        if kind == FLOAT:
            return Use(node.name, LOOKUP, FLOAT, stored, node.input[1], node.output[0])
        if path:
            return Use(
                node.name,
                LOOKUP,
                kind,
                stored,
                node.input[1],
                node.output[0],
                _readable(lambda: self._weight(stored, tensor, path)),
            )
        scale, zero, output = self._row_scale(node)
        if scale is None:
            return Use(node.name, LOOKUP, kind, stored, node.input[1])
        weight = _readable(lambda: self._table(stored, tensor, scale, zero))
        return Use(node.name, LOOKUP, kind, stored, node.input[1], output, weight)

    def _table(self, stored: str, tensor: TensorProto, scale: np.ndarray, zero: np.ndarray | None) -> StoredWeight:
        array = numpy_helper.to_array(tensor, str(self.folder))
        centred = array.astype(np.float32) - (0.0 if zero is None else _spread(zero, 0, array.shape, 0))
        step = _spread(scale, 0, array.shape, 0)
        return _stored(self.file, stored, centred, step, _bytes(array, scale, zero), rowwise=scale.size > 1)

    def _row_scale(self, gather: NodeProto) -> tuple[np.ndarray | None, np.ndarray | None, str]:
        """Scale and zero point of an integer table that is dequantized after the lookup, and the float output."""
        value = gather.output[0]
        while step := next(
            (n for n in self.consumers.get(value, ()) if n.op_type in (*UNCHANGED, "Mul", "DequantizeLinear")), None
        ):
            if step.op_type == "DequantizeLinear":
                zero = self._array(step.input[2]) if len(step.input) > 2 else None
                return self._array(step.input[1]), zero, step.output[0]
            if step.op_type == "Mul":
                other = step.input[1] if step.input[0] == value else step.input[0]
                return self._array(row_scale_of(self.scope, other) or other), None, step.output[0]
            value = step.output[0]
        return None, None, ""


def _stored(file: str, name: str, centred: np.ndarray, step: np.ndarray, size: int, *, rowwise: bool) -> StoredWeight:
    largest = int(np.abs(centred).max()) if centred.size else 0
    return StoredWeight(file, plain_name(name), centred * step, step, largest, rowwise, size)


def _bytes(*arrays: np.ndarray | None) -> int:
    return sum(array.nbytes for array in arrays if array is not None)


def _readable(build: Callable[[], StoredWeight | None]) -> StoredWeight | None:
    """The weight; None where scales or zero points contradict its shape: the runtime refuses such a file, or lies."""
    try:
        return build()
    except ValueError:
        return None


def _spread(scale: np.ndarray, axis: int, shape: tuple[int, ...], block: int) -> np.ndarray:
    """Scales or zero points in a shape that broadcasts to a matrix: one, one per index of an axis, or one per block.

    Raises:
        ValueError: they are neither.
    """
    if scale.size == 1:
        return scale.reshape(1, 1)
    if block:
        return np.repeat(scale, block, axis=axis)[: shape[0], : shape[1]]
    if scale.size != shape[axis]:
        raise ValueError(f"{scale.size} scales or zero points for an axis of {shape[axis]}")
    return scale.reshape((-1, 1) if axis == 0 else (1, -1))


def _nibbles(packed: np.ndarray, bits: int) -> np.ndarray:
    """uint8 ``[rows, ...]`` -> ``[rows, numbers]``: one in each byte, or two, the even one in the low half."""
    rows = packed.reshape(packed.shape[0], -1)
    if bits == 8:
        return rows
    numbers = np.empty((rows.shape[0], rows.shape[1] * 2), np.uint8)
    numbers[:, 0::2], numbers[:, 1::2] = rows & 15, rows >> 4
    return numbers


def _attribute(node: NodeProto, name: str, default: int) -> int:
    return next((helper.get_attribute_value(a) for a in node.attribute if a.name == name), default)
