"""What is done to a traced graph before it may be called an artifact."""

from __future__ import annotations

import hashlib

import onnx
from onnx import numpy_helper

from harness.contract.errors import InputError
from harness.contract.layouts import GraphSpec
from harness.contract.runtimes import Runtime

# Below this a repeated constant costs less than the edge that would share it.
SHARED_ABOVE_BYTES = 1024


def tidy(model: onnx.ModelProto, spec: GraphSpec, ir_version: int) -> None:
    """Bring a traced model into the project's form, in place.

    Equal weights are stored once, inputs and outputs carry the contract's axis names, the exporter's notes (which hold
    paths of the exporting machine) are removed, and the IR version is set.
    """
    share_equal_initializers(model.graph)
    _name_axes(model.graph, spec)
    _drop_notes(model)
    model.ir_version = ir_version


def share_equal_initializers(graph: onnx.GraphProto) -> None:
    """Replace initializers of equal type, shape and bytes by the first of them."""
    first: dict[tuple, str] = {}
    renamed: dict[str, str] = {}
    for tensor in graph.initializer:
        data = numpy_helper.to_array(tensor)
        if data.nbytes < SHARED_ABOVE_BYTES:
            continue
        key = (tensor.data_type, tuple(tensor.dims), hashlib.sha256(data.tobytes()).hexdigest())
        if key in first:
            renamed[tensor.name] = first[key]
        else:
            first[key] = tensor.name
    if not renamed:
        return
    kept = [tensor for tensor in graph.initializer if tensor.name not in renamed]
    del graph.initializer[:]
    graph.initializer.extend(kept)
    for node in graph.node:
        for i, name in enumerate(node.input):
            node.input[i] = renamed.get(name, name)


def _name_axes(graph: onnx.GraphProto, spec: GraphSpec) -> None:
    declared = {tensor.name: tensor for tensor in (*spec.inputs, *spec.outputs)}
    for value in (*graph.input, *graph.output):
        shape = value.type.tensor_type.shape
        for axis, size in enumerate(declared[value.name].shape if value.name in declared else ()):
            if isinstance(size, str) and not shape.dim[axis].HasField("dim_value"):
                shape.dim[axis].dim_param = size


def _drop_notes(model: onnx.ModelProto) -> None:
    model.doc_string = ""
    del model.metadata_props[:]
    graph = model.graph
    # Shapes of inner values are not part of the artifact: they would go stale when axes are renamed.
    del graph.value_info[:]
    for item in (graph, *graph.node, *graph.initializer, *graph.input, *graph.output):
        item.ClearField("doc_string")
        if hasattr(item, "metadata_props"):
            del item.metadata_props[:]


def refuse_missing_operators(model: onnx.ModelProto, runtime: Runtime, role: str) -> None:
    """Name the operators that the oldest target runtime lacks (fault F11).

    Raises:
        InputError: at least one is lacking.
    """
    opset = next(o.version for o in model.opset_import if o.domain in ("", "ai.onnx"))
    lacking = sorted(
        {node.op_type for node in model.graph.node if runtime.is_missing(node.domain, node.op_type, opset)}
    )
    if lacking:
        raise InputError(
            what=f"onnxruntime {runtime.minor} has no {', '.join(lacking)} (opset {opset})",
            where=role,
            action="Name a newer --target-ort, another --opset or the other --exporter.",
        )
