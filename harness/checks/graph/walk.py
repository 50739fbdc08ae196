"""Walking an ONNX graph: scopes, producers, and what a value is computed from."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np
import onnx
from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto, numpy_helper

STANDARD_DOMAINS = ("", "ai.onnx")
# These read the sizes of their input and nothing of its values.
SIZE_READERS = frozenset({"Shape", "Size"})
# The input at this position only says which shape the output gets.
SHAPE_INPUTS = {"Reshape": 1, "Expand": 1, "Tile": 1, "ConstantOfShape": 0}
# Products of two tensors, plain, fused or quantized: where one layer of computation ends and the next begins.
PRODUCTS = frozenset(
    {
        "MatMul", "Gemm", "Einsum", "FusedMatMul", "FusedGemm", "MatMulInteger", "MatMulIntegerToFloat",
        "QLinearMatMul", "DynamicQuantizeMatMul", "MatMulNBits", "QGemm",
    }
)  # fmt: skip


class Scope:
    """One graph body: the main graph, or a branch or loop body inside a node.

    Attributes:
        graph: the body.
        outer: the scope around it, whose values it sees; None for the main graph.
        owner: the node that holds it; None for the main graph.
        label: how reports call it, e.g. ``then_branch``; empty for the main graph.
    """

    def __init__(
        self, graph: GraphProto, outer: Scope | None = None, owner: NodeProto | None = None, label: str = ""
    ) -> None:
        self.graph, self.outer, self.owner, self.label = graph, outer, owner, label
        self.nodes = list(graph.node)
        self.inputs = [value.name for value in graph.input]
        self.outputs = [value.name for value in graph.output]
        self._initializers = {tensor.name: tensor for tensor in graph.initializer}
        self._producers = {name: node for node in self.nodes for name in node.output if name}
        self.bodies: dict[str, list[Scope]] = {}
        for node in self.nodes:
            for attribute in node.attribute:
                if attribute.type == AttributeProto.GRAPH:
                    body = Scope(attribute.g, self, node, attribute.name)
                    self.bodies.setdefault(node.output[0], []).append(body)

    def scopes(self) -> Iterator[Scope]:
        """This scope and every one inside it."""
        yield self
        for bodies in self.bodies.values():
            for body in bodies:
                yield from body.scopes()

    def bodies_of(self, node: NodeProto) -> list[Scope]:
        """The bodies that a node of this scope holds."""
        return self.bodies.get(node.output[0], []) if node.output else []

    def resolve(self, name: str) -> tuple[Scope, NodeProto | TensorProto | None]:
        """Find what makes a value: its scope, and a node, an initializer, or None for an input.

        A name that nothing makes belongs to the main graph's scope.
        """
        scope = self
        while True:
            if name in scope._producers:
                return scope, scope._producers[name]
            if name in scope._initializers:
                return scope, scope._initializers[name]
            if name in scope.inputs or scope.outer is None:
                return scope, None
            scope = scope.outer

    def producer(self, name: str) -> NodeProto | None:
        """The node that makes a value, in this scope or around it."""
        found = self.resolve(name)[1]
        return found if isinstance(found, NodeProto) else None

    def constant(self, name: str) -> TensorProto | None:
        """The tensor of an initializer or of a Constant node, or None for a value that is computed."""
        found = self.resolve(name)[1]
        return constant_of(found) if isinstance(found, NodeProto) else found


def main_scope(model: ModelProto) -> Scope:
    """The main graph of a model."""
    return Scope(model.graph)


def all_nodes(model: ModelProto) -> Iterator[tuple[NodeProto, str]]:
    """Every node of a model with the place it is in: branches, loop bodies and local functions included."""
    for scope in main_scope(model).scopes():
        place = f" in {scope.label} of {name_of(scope.owner)}" if scope.owner is not None else ""
        for node in scope.nodes:
            yield node, place
    for function in model.functions:
        for node in function.node:
            yield node, f" in function {function.name}"


def name_of(node: NodeProto) -> str:
    """How reports call a node: its name with its operator, or its first output where it has no name."""
    return f"{node.name or 'the node that makes ' + (node.output[0] if node.output else '?')} ({node.op_type})"


def constant_of(node: NodeProto) -> TensorProto | None:
    """The tensor that a Constant node holds, whichever attribute it uses."""
    if node.op_type != "Constant" or node.domain not in STANDARD_DOMAINS:
        return None
    for attribute in node.attribute:
        if attribute.name == "value":
            return attribute.t
        if attribute.name in ("value_int", "value_ints", "value_float", "value_floats"):
            dtype = np.int64 if "int" in attribute.name else np.float32
            return numpy_helper.from_array(np.asarray(onnx.helper.get_attribute_value(attribute), dtype))
    return None


def is_external(tensor: TensorProto) -> bool:
    """Whether a tensor's bytes are in another file."""
    return tensor.data_location == TensorProto.EXTERNAL


def size_of(tensor: TensorProto) -> int:
    """Number of elements."""
    return int(np.prod(tensor.dims, dtype=np.int64)) if tensor.dims else 1


@dataclass
class Cone:
    """Everything that a value is computed from, up to where the walk stopped.

    Attributes:
        inputs: inputs of the main graph.
        nodes: nodes with their scope, those where the walk stopped included.
        constants: initializers and contents of Constant nodes by value name.
    """

    inputs: set[str] = field(default_factory=set)
    nodes: list[tuple[Scope, NodeProto]] = field(default_factory=list)
    constants: dict[str, TensorProto] = field(default_factory=dict)

    @property
    def operators(self) -> set[str]:
        """Operators in the cone."""
        return {node.op_type for _, node in self.nodes}


def cone(scope: Scope, names: Iterable[str], *, stop: frozenset[str] = frozenset(), sizes_too: bool = False) -> Cone:
    """Walk back from values of a scope.

    Args:
        scope: where the names are seen.
        names: values to start from.
        stop: operators whose inputs are not looked at.
        sizes_too: also follow what only decides on shapes; without it, what values are computed from.
    """
    stop = stop if sizes_too else stop | SIZE_READERS
    found, seen = Cone(), set()
    waiting = [(scope, name) for name in names if name]
    while waiting:
        asked, name = waiting.pop()
        owner, source = asked.resolve(name)
        if (key := (id(owner), name)) in seen:
            continue
        seen.add(key)
        if isinstance(source, TensorProto):
            found.constants[name] = source
        elif source is None:
            if owner.outer is None:
                found.inputs.add(name)
            else:
                waiting += [(owner.outer, outer) for outer in owner.owner.input if outer]
        else:
            found.nodes.append((owner, source))
            if (tensor := constant_of(source)) is not None:
                found.constants[name] = tensor
            elif source.op_type not in stop:
                waiting += _sources(owner, source, name, sizes_too)
    return found


def _sources(scope: Scope, node: NodeProto, name: str, sizes_too: bool) -> list[tuple[Scope, str]]:
    """What one output of a node depends on."""
    left_out = None if sizes_too else SHAPE_INPUTS.get(node.op_type)
    sources = [(scope, given) for i, given in enumerate(node.input) if given and i != left_out]
    position = list(node.output).index(name)
    for body in scope.bodies_of(node):
        same = len(body.outputs) == len(node.output)
        sources += [(body, body.outputs[position])] if same else [(body, output) for output in body.outputs]
    return sources
