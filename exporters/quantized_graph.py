"""Rewriting a float32 graph into a quantized one.

Only products with a stored weight and the lookup of token ids are touched: products of two activations stay in float.
A weight that several nodes read, as the tied embedding, is stored once, and only if all its readers are quantized.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

import numpy as np
import onnx
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, helper, numpy_helper

from exporters.weights import pack_blocks, round_weight
from harness.contract.layouts import INPUT_IDS
from harness.contract.recipes import DYNAMIC, GATHER, MATMUL, NBITS, STATIC, Recipe, Side

Ranges = Mapping[str, tuple[float, float]]
# Per-channel scales of DequantizeLinear came with opset 13.
OLDEST_OPSET = 13
# What older tracers put between the ids and their lookup.
_UNCHANGED = ("Identity", "Cast", "Reshape", "Squeeze", "Unsqueeze")
_INTEGER = (TensorProto.INT8, TensorProto.UINT8)


@dataclass(frozen=True)
class Reader:
    """A node that reads a stored matrix.

    Attributes:
        node: a MatMul, or the Gather of the token ids.
        weight: name of the initializer.
        transpose: the Transpose between the two, or None.
    """

    node: NodeProto
    weight: str
    transpose: NodeProto | None = None


@dataclass
class Plan:
    """What is to be quantized in a graph.

    Attributes:
        readers: weight -> its readers.
        left: node name -> why it stays in float, of those that could be quantized.
    """

    readers: dict[str, list[Reader]] = field(default_factory=dict)
    left: dict[str, str] = field(default_factory=dict)

    @property
    def nodes(self) -> list[Reader]:
        """Every node to quantize."""
        return [reader for readers in self.readers.values() for reader in readers]

    @property
    def activations(self) -> list[str]:
        """Inputs of the products: what a static recipe has to know the range of."""
        return list(dict.fromkeys(reader.node.input[0] for reader in self.nodes if reader.node.op_type == MATMUL))


def plan(model: ModelProto, side: Side) -> Plan:
    """Choose the nodes of a float32 graph that a recipe quantizes."""
    found, graph = Plan(), model.graph
    candidates = list(_candidates(graph))
    chosen = [reader for reader in candidates if not _excluded(reader, side, found.left)]
    uses: dict[str, int] = {}
    for node in graph.node:
        for name in node.input:
            uses[name] = uses.get(name, 0) + 1
    for reader in chosen:
        mine = [other for other in chosen if other.weight == reader.weight]
        if len(mine) < uses[reader.weight]:
            found.left[reader.node.name] = f"{reader.weight} is also read by a node that stays in float"
        else:
            found.readers[reader.weight] = mine
    return found


def _candidates(graph: GraphProto) -> Iterator[Reader]:
    """Products with a stored matrix, and the lookup of the graph's ids."""
    matrices = {t.name for t in graph.initializer if len(t.dims) == 2 and t.data_type == TensorProto.FLOAT}
    producers = {name: node for node in graph.node for name in node.output}
    for node in graph.node:
        if node.op_type == MATMUL:
            source = producers.get(node.input[1])
            turned = source is not None and source.op_type == "Transpose" and source.input[0] in matrices
            if node.input[1] in matrices or turned:
                yield Reader(node, source.input[0] if turned else node.input[1], source if turned else None)
        elif node.op_type == GATHER and node.input[0] in matrices:
            ids = node.input[1]
            while ids in producers and producers[ids].op_type in _UNCHANGED:
                ids = producers[ids].input[0]
            if ids == INPUT_IDS:
                yield Reader(node, node.input[0])


def _excluded(reader: Reader, side: Side, left: dict[str, str]) -> bool:
    if reader.node.op_type not in side.operators:
        left[reader.node.name] = f"the recipe leaves {reader.node.op_type} in float"
    elif pattern := next(
        (p for p in side.exclude if fnmatchcase(reader.node.name, p) or fnmatchcase(reader.weight, p)), None
    ):
        left[reader.node.name] = f"the recipe excludes {pattern}"
    else:
        return False
    return True


def rewrite(model: ModelProto, chosen: Plan, recipe: Recipe, role: str, ranges: Ranges) -> None:
    """Quantize the chosen nodes, in place.

    Args:
        model: a float32 graph.
        chosen: see ``plan``.
        recipe, role: which part of the recipe holds.
        ranges: activation -> smallest and largest value; ``static`` only.
    """
    _Rewriter(model, recipe, recipe.side(role), recipe.weight_bits(role), ranges).run(chosen)


class _Rewriter:
    """State of one rewriting: the nodes made so far, in order, and the activations quantized already."""

    def __init__(self, model: ModelProto, recipe: Recipe, side: Side, bits: int, ranges: Ranges) -> None:
        self.model, self.graph, self.recipe, self.side, self.ranges = model, model.graph, recipe, side, ranges
        self.bits = 8 if bits == 4 else bits
        self.nodes: list[NodeProto] = []
        self.activations: dict[str, list[str]] = {}
        self.stored: dict[str, tuple[str, str, str]] = {}
        self.weights = {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
        self.tables: set[str] = set()

    def run(self, chosen: Plan) -> None:
        self.tables = {w for w, readers in chosen.readers.items() if any(r.node.op_type == GATHER for r in readers)}
        by_output = {reader.node.output[0]: reader for reader in chosen.nodes}
        for node in self.graph.node:
            reader = by_output.get(node.output[0]) if node.output else None
            if reader is None:
                self.nodes.append(node)
            else:
                {GATHER: self._lookup, MATMUL: self._product}[node.op_type](reader)
        self._replace_nodes({reader.transpose.output[0] for reader in chosen.nodes if reader.transpose})
        kept = [tensor for tensor in self.graph.initializer if tensor.name not in chosen.readers]
        del self.graph.initializer[:]
        self.graph.initializer.extend(kept)

    def _replace_nodes(self, unused: set[str]) -> None:
        copies = []
        for node in self.nodes:
            if not (node.op_type == "Transpose" and node.output[0] in unused):
                copy = NodeProto()
                copy.CopyFrom(node)
                copies.append(copy)
        del self.graph.node[:]
        self.graph.node.extend(copies)

    def _node(self, operator: str, inputs: list[str], outputs: list[str], **attributes) -> str:
        self.nodes.append(helper.make_node(operator, inputs, outputs, name=f"{outputs[0]}/{operator}", **attributes))
        return outputs[0]

    def _constant(self, name: str, array: np.ndarray) -> str:
        self.graph.initializer.append(numpy_helper.from_array(array, name))
        return name

    def _store(self, weight: str, *, turned: bool) -> tuple[str, str, str]:
        """Names of integers, scale and zero point of a weight; a table keeps its rows, others are [inputs, outputs]."""
        if weight not in self.stored:
            table = weight in self.tables
            array = self.weights[weight].T if turned and not table else self.weights[weight]
            axis = None if not self.side.per_channel else 0 if table else 1
            # A lookup adds rows of zeros exactly; tables are symmetric whatever the recipe says of products.
            symmetric = table or self.side.symmetric
            rounded = round_weight(array, channel_axis=axis, bits=self.bits, symmetric=symmetric)
            parts = (rounded.values, rounded.scale, rounded.zero_point)
            kinds = ("quantized", "scale", "zero_point")
            self.stored[weight] = tuple(
                self._constant(f"{weight}_{kind}", np.ascontiguousarray(part)) for kind, part in zip(kinds, parts)
            )
        return self.stored[weight]

    def _lookup(self, reader: Reader) -> None:
        values, scale, _ = self._store(reader.weight, turned=False)
        ids, output = reader.node.input[1], reader.node.output[0]
        row = self._node(GATHER, [values, ids], [f"{output}_row"])
        row = self._node("Cast", [row], [f"{output}_row_cast"], to=TensorProto.FLOAT)
        if self.side.per_channel:
            scale = self._node(GATHER, [scale, ids], [f"{output}_row_scale"])
            last = self._constant(f"{output}_row_axis", np.array([-1], np.int64))
            scale = self._node("Unsqueeze", [scale, last], [f"{output}_row_scale_column"])
        self._node("Mul", [row, scale], [output])

    def _product(self, reader: Reader) -> None:
        given, output = reader.node.input[0], reader.node.output[0]
        if self.recipe.bits == 4 and reader.weight not in self.tables:
            self._blocks(reader, given, output)
            return
        values, scale, zero_point = self._store(reader.weight, turned=reader.transpose is not None)
        if reader.weight in self.tables:
            values = self._node("Transpose", [values], [f"{output}_product_weight"], perm=[1, 0])
        if self.recipe.method == DYNAMIC:
            self._integer(given, values, scale, zero_point, output)
            return
        axis = {"axis": 1} if self.side.per_channel else {}
        weight = self._node("DequantizeLinear", [values, scale, zero_point], [f"{output}_product_dequantized"], **axis)
        if self.recipe.method == STATIC:
            given = self._static_activation(given)
        self._node(MATMUL, [given, weight], [output])

    def _integer(self, given: str, values: str, scale: str, zero_point: str, output: str) -> None:
        """The pattern that onnxruntime fuses into DynamicQuantizeMatMul."""
        if given not in self.activations:
            names = [f"{given}_{kind}" for kind in ("quantized", "scale", "zero_point")]
            self._node("DynamicQuantizeLinear", [given], names)
            self.activations[given] = names
        quantized, activation_scale, activation_zero = self.activations[given]
        product = self._node("MatMulInteger", [quantized, values, activation_zero, zero_point], [f"{output}_product"])
        product = self._node("Cast", [product], [f"{output}_product_cast"], to=TensorProto.FLOAT)
        both = self._node("Mul", [activation_scale, scale], [f"{output}_product_scale"])
        self._node("Mul", [product, both], [output])

    def _static_activation(self, given: str) -> str:
        if given not in self.activations:
            low, high = self.ranges[given]
            low, high = min(low, 0.0), max(high, 0.0)
            scale = (high - low) / 255 or 1.0
            names = [
                self._constant(f"{given}_scale", np.array(scale, np.float32)),
                self._constant(f"{given}_zero_point", np.array(np.clip(np.round(-low / scale), 0, 255), np.uint8)),
            ]
            quantized = self._node("QuantizeLinear", [given, *names], [f"{given}_quantized"])
            self.activations[given] = [self._node("DequantizeLinear", [quantized, *names], [f"{given}_dequantized"])]
        return self.activations[given][0]

    def _blocks(self, reader: Reader, given: str, output: str) -> None:
        weight = self.weights[reader.weight].T if reader.transpose is not None else self.weights[reader.weight]
        if reader.weight not in self.stored:
            packed, scale = pack_blocks(weight, self.recipe.block_size)
            names = [self._constant(f"{reader.weight}_{kind}", array) for kind, array in
                     (("quantized", packed), ("scale", scale))]  # fmt: skip
            self.stored[reader.weight] = (*names, "")
        self._node(
            NBITS, [given, *self.stored[reader.weight][:2]], [output], domain="com.microsoft",
            K=weight.shape[0], N=weight.shape[1], bits=4, block_size=self.recipe.block_size,
        )  # fmt: skip
        if all(entry.domain != "com.microsoft" for entry in self.model.opset_import):
            self.model.opset_import.append(helper.make_opsetid("com.microsoft", 1))


def quantized_nodes(model: ModelProto) -> int:
    """Count products and lookups whose weight is stored as integers, by what the graph holds now."""
    integers = {tensor.name for tensor in model.graph.initializer if tensor.data_type in _INTEGER}
    producers = {name: node for node in model.graph.node for name in node.output}

    def is_integer(name: str) -> bool:
        while name not in integers:
            node = producers.get(name)
            if node is None or node.op_type not in ("Transpose", "DequantizeLinear"):
                return False
            name = node.input[0]
        return True

    count = 0
    for node in model.graph.node:
        if node.op_type in (MATMUL, "MatMulInteger", NBITS):
            count += is_integer(node.input[1])
        elif node.op_type == GATHER:
            count += node.input[0] in integers
    return count


def opset_of(model: ModelProto) -> int:
    """Version of the standard operator set."""
    return next(entry.version for entry in model.opset_import if entry.domain in ("", "ai.onnx"))


def with_outputs(model: ModelProto, names: list[str]) -> ModelProto:
    """A copy of a graph that also emits inner float values."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    present = {value.name for value in (*copy.graph.input, *copy.graph.output)}
    copy.graph.output.extend(
        helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in names if name not in present
    )
    return copy
