"""Are the axes dynamic inside the graph too? (faults S01, S06, G03)"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from onnx import AttributeProto, ModelProto, NodeProto, TensorProto, helper, numpy_helper

from harness.checks.graph.attention import FUSED
from harness.checks.graph.walk import PRODUCTS, Scope, constant_of, is_external, main_scope, name_of, size_of
from harness.contract.finding import Finding, Verdict
from harness.contract.layouts import ModelDims

# Operator -> the inputs that hold sizes or positions along an axis.
SIZE_INPUTS = {
    "Reshape": (1,),
    "Expand": (1,),
    "ConstantOfShape": (0,),
    "Tile": (1,),
    "Range": (0, 1),
    "Slice": (1, 2),
    "Split": (1,),
    "Pad": (1,),
}
# Through these, a size comes from the inputs at the given positions; None: from all of them.
ARITHMETIC: dict[str, slice] = {
    **dict.fromkeys(("Concat", "Add", "Sub", "Mul", "Div", "Max", "Min"), slice(None)),
    **dict.fromkeys(
        ("Cast", "Identity", "Unsqueeze", "Squeeze", "Reshape", "Gather", "Slice", "ReduceProd"), slice(0, 1)
    ),
    "Where": slice(1, 3),
}
# A chain of only these, from a Shape, is a shape: slicing it by a constant chooses axes, not positions.
SHAPE_CHAIN = frozenset({"Cast", "Identity", "Unsqueeze", "Squeeze", "Concat", "Gather", "Slice"})
# Matrices that these take are weights, which simplifiers may join to sizes of their own.
WEIGHT_USERS = PRODUCTS | FUSED | {"Transpose", "DequantizeLinear"}
# torch writes "to the end" of a slice as one of these.
OPEN_END = (1 << 31) - 1
EXPORT_AGAIN = "Export with every batch and length axis dynamic, from tracing sizes of 2 or more that all differ."


@dataclass(frozen=True)
class BakedSize:
    """A constant in the place of a size.

    Attributes:
        node: where it is used.
        constant: name of the value that holds it.
        size: the constant.
        stored: other constants are whole tensors whose shape has the size.
    """

    node: str
    constant: str
    size: int
    stored: bool = False

    def text(self, traced: Mapping[int, str]) -> str:
        """How reports tell it; ``traced`` maps a tracing size to its axis."""
        held = "has an axis of" if self.stored else "holds"
        meaning = f", the tracing size of {traced[self.size]}" if self.size in traced else ", no size of the model"
        return f"{self.node}: {self.constant} {held} {self.size}{meaning}"


def model_sizes(dims: ModelDims) -> set[int]:
    """Sizes that a graph of this model may hold as constants: everything but layer counts."""
    return {
        dims.d_model, dims.encoder_heads, dims.decoder_heads, dims.head_dim, dims.d_model // dims.encoder_heads,
        dims.encoder_ffn, dims.decoder_ffn, dims.vocab_size, dims.source_vocab_size, dims.max_source_positions,
        dims.max_target_positions,
    }  # fmt: skip


def axes_are_dynamic(file: str, model: ModelProto, dims: ModelDims, dummy_sizes: Mapping[str, int]) -> Finding:
    """Look for constants in the place of sizes that are no size of the model.

    Args:
        file: name of the file.
        model: its contents; external data may be missing.
        dims: sizes of the model.
        dummy_sizes: axis -> tracing size, for the wording; empty where they are not known.
    """
    allowed = model_sizes(dims)
    traced = {size * dims.decoder_heads: f"{axis} times heads" for axis, size in dummy_sizes.items()}
    traced.update((size, axis) for axis, size in dummy_sizes.items())
    baked = [found for scope in main_scope(model).scopes() for found in _baked_sizes(scope, allowed)]
    check = f"{file}: axes are dynamic inside the graph"
    if not baked:
        return Finding(check=check, verdict=Verdict.PASS)
    # A constant that equals a tracing size is the surest sign, so it is told first.
    baked.sort(key=lambda found: found.size not in traced)
    axis = traced.get(baked[0].size)
    return Finding(
        check=check,
        verdict=Verdict.FAIL,
        measured=float(len(baked)),
        limit=0.0,
        unit="baked sizes",
        where=f"{file}, {baked[0].text(traced)}",
        cause=f"{axis or 'an axis'} is baked at {baked[0].size}: other sizes fail or give wrong results",
        action=EXPORT_AGAIN,
        details=tuple(found.text(traced) for found in baked[:12]),
    )


def _baked_sizes(scope: Scope, allowed: set[int]) -> Iterator[BakedSize]:
    for node in scope.nodes:
        yield from _baked_operands(scope, node, allowed)
        for position, name in enumerate(node.input):
            tensor = scope.constant(name) if name else None
            if tensor is not None and _is_table(scope, node, position, tensor):
                yield from (
                    BakedSize(name_of(node), name, size, stored=True)
                    for size in tensor.dims
                    if size > 1 and size not in allowed
                )


def _baked_operands(scope: Scope, node: NodeProto, allowed: set[int]) -> Iterator[BakedSize]:
    if node.op_type == "Slice" and _is_shape(scope, node.input[0]):
        return
    seen: set[tuple[str, int]] = set()
    for position in SIZE_INPUTS.get(node.op_type, ()):
        if position >= len(node.input) or not node.input[position]:
            continue
        for constant, size in _size_constants(scope, node.input[position]):
            if 1 < size < OPEN_END and size not in allowed and (constant, size) not in seen:
                seen.add((constant, size))
                yield BakedSize(name_of(node), constant, size)


def _size_constants(scope: Scope, name: str) -> Iterator[tuple[str, int]]:
    """Integer constants that a size is computed from, with the names of the values that hold them."""
    waiting, seen = [(scope, name)], set()
    while waiting:
        asked, value = waiting.pop()
        owner, source = asked.resolve(value)
        if (id(owner), value) in seen:
            continue
        seen.add((id(owner), value))
        tensor = owner.constant(value)
        if tensor is not None:
            if tensor.data_type in (TensorProto.INT64, TensorProto.INT32) and not is_external(tensor):
                yield from ((value, int(size)) for size in numpy_helper.to_array(tensor).reshape(-1))
        elif isinstance(source, NodeProto) and source.op_type in ARITHMETIC:
            waiting += [(owner, given) for given in source.input[ARITHMETIC[source.op_type]] if given]


def _is_shape(scope: Scope, name: str) -> bool:
    """Whether a value is the shape of something, or part of one."""
    waiting, found, seen = [name], False, set()
    while waiting:
        value = waiting.pop()
        if value in seen:
            continue
        seen.add(value)
        node = scope.producer(value)
        if node is None:
            if scope.constant(value) is None:
                return False
        elif node.op_type == "Shape":
            found = True
        elif node.op_type in SHAPE_CHAIN:
            waiting += [given for given in node.input if given]
        elif constant_of(node) is None:
            return False
    return found


def _is_table(scope: Scope, node: NodeProto, position: int, tensor: TensorProto) -> bool:
    """Whether a constant is a stored mask or stored positions, rather than a weight or a list of axes."""
    if node.op_type in WEIGHT_USERS or (node.op_type == "Gather" and position == 0):
        return False
    if node.op_type == "Gather" and _is_shape(scope, node.input[0]):
        return False
    return len(tensor.dims) >= 2 or (node.op_type == "Gather" and size_of(tensor) > 1)


def same_structure(file: str, first: ModelProto, second: ModelProto, sizes: tuple[str, str]) -> Finding:
    """Compare two exports of one graph at different tracing sizes: operators, edges, attributes, constants (S06).

    Values of floating-point weights are not compared, their shapes are.

    Args:
        file: name of the file.
        first, second: contents of both exports.
        sizes: how to call the tracing sizes of each.
    """
    left, right = ([*_describe(main_scope(model))] for model in (first, second))
    check = f"{file}: exports at two tracing sizes have one structure"
    difference = next((pair for pair in zip(left, right) if pair[0][1] != pair[1][1]), None)
    if difference is None and len(left) == len(right):
        return Finding(check=check, verdict=Verdict.PASS, compared=len(left), expected=len(left))
    if difference is None:
        longer, (node, _) = (0, left[len(right)]) if len(left) > len(right) else (1, right[len(left)])
        cause = f"{len(left)} nodes at {sizes[0]}, {len(right)} at {sizes[1]}"
        place = f"{node}, only at {sizes[longer]}"
    else:
        (place, was), (_, became) = difference
        cause = f"{was} at {sizes[0]}, {became} at {sizes[1]}"
    return Finding(
        check=check,
        verdict=Verdict.FAIL,
        where=f"{file}, {place}",
        cause=cause,
        action="The traced code takes another path, or bakes a size, depending on the tracing input: find the line.",
    )


def _describe(scope: Scope) -> Iterator[tuple[str, str]]:
    """Every node as its name and what must be equal; values go by where they come from, not by name."""
    known: dict[str, str] = {}
    for number, value in enumerate(scope.graph.input):
        known[value.name] = f"input {number}"
    for value in (*scope.graph.input, *scope.graph.output):
        yield value.name, f"declared {_dims(value)}"
    for number, node in enumerate(scope.nodes):
        inputs = ", ".join(known.get(name) or _describe_constant(scope, name) for name in node.input)
        attributes = sorted(_describe_attribute(attribute) for attribute in node.attribute)
        yield name_of(node), f"{node.domain}{node.op_type}({inputs}) {' '.join(attributes)}".strip()
        for body in scope.bodies_of(node):
            yield from _describe(body)
        for place, name in enumerate(node.output):
            known[name] = f"output {place} of node {number}"


def _describe_constant(scope: Scope, name: str) -> str:
    tensor = scope.constant(name) if name else None
    return _content(tensor) if tensor is not None else f"outer {name}" if name else "nothing"


def _describe_attribute(attribute: AttributeProto) -> str:
    if attribute.type == AttributeProto.TENSOR:
        return f"{attribute.name}={_content(attribute.t)}"
    if attribute.type in (AttributeProto.GRAPH, AttributeProto.GRAPHS):
        return attribute.name
    return f"{attribute.name}={helper.get_attribute_value(attribute)}"


def _content(tensor: TensorProto) -> str:
    kind = TensorProto.DataType.Name(tensor.data_type).lower()
    if tensor.data_type in (TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.DOUBLE) or is_external(tensor):
        return f"{kind}{list(tensor.dims)}"
    return f"{kind}{list(tensor.dims)} {np.array2string(numpy_helper.to_array(tensor), threshold=20)}"


def _dims(value) -> list:
    return [axis.dim_param or axis.dim_value for axis in value.type.tensor_type.shape.dim]
