"""Where a graph looks its ids up, and what becomes of the row (faults G10, G16)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from onnx import ModelProto, NodeProto, numpy_helper

from harness.checks.graph.walk import Scope, main_scope, name_of
from harness.contract.finding import Finding, Verdict

# These pass ids, or a looked-up row, on without changing a value.
UNCHANGED = frozenset({"Identity", "Cast", "Reshape", "Squeeze", "Unsqueeze"})


@dataclass(frozen=True)
class Lookup:
    """Where a graph looks its ids up: the Gather node and the name of the table."""

    scope: Scope
    node: NodeProto
    table: str


def lookups(model: ModelProto, ids: str) -> list[Lookup]:
    """Find the lookups of a graph's own ids in a stored table, in branches too."""
    found = []
    for scope in main_scope(model).scopes():
        for node in scope.nodes:
            if node.op_type == "Gather" and origin(scope, node.input[1]) == ids:
                table = _stored_table(scope, node.input[0])
                # Scales that are looked up beside the rows of a quantized table are no table.
                if table and len(scope.constant(table).dims) == 2:
                    found.append(Lookup(scope, node, table))
    return found


def _stored_table(scope: Scope, name: str) -> str:
    """The initializer that a lookup reads, directly or dequantized as a whole; empty for a value that is computed."""
    node = scope.producer(name)
    if node is not None and node.op_type == "DequantizeLinear":
        name = node.input[0]
    return name if scope.constant(name) is not None else ""


def origin(scope: Scope, name: str) -> str:
    """The value that a chain of nodes passes on unchanged."""
    while (node := scope.producer(name)) is not None and node.op_type in UNCHANGED:
        name = node.input[0]
    return name


def pad_row_is_zero(
    file: str, model: ModelProto, folder: Path, ids: str, pad: int, reference_maximum: float
) -> Finding:
    """Hold the embedding row of pad, with which Marian starts to decode, against zero (fault G16).

    A quantized table is read through the zero point of its DequantizeLinear.

    Args:
        file: name of the file.
        model: its contents; weights may be in external files of ``folder``.
        ids: name of the graph's ids input.
        pad: pad token id.
        reference_maximum: largest absolute value of the row in PyTorch.
    """
    check = f"{file}: the pad row of the embedding is zero"
    found = lookups(model, ids)
    if not found:
        return Finding(
            check=check,
            verdict=Verdict.INCONCLUSIVE,
            cause=f"no Gather looks {ids} up in a stored table",
            action="Export the embedding as a Gather on an initializer.",
        )
    table = found[0].scope.constant(found[0].table)
    row = numpy_helper.to_array(table, str(folder))[pad].astype(np.float64) - _zero_point(found[0])
    maximum = float(np.max(np.abs(row)))
    if maximum == 0.0:
        return Finding(check=check, verdict=Verdict.PASS, measured=0.0, limit=0.0, unit="largest absolute value")
    own = reference_maximum > 0.0
    return Finding(
        check=check,
        verdict=Verdict.WARN if own else Verdict.FAIL,
        measured=maximum,
        limit=0.0,
        unit="largest absolute value",
        passing_limit=maximum,
        where=f"{file}: {found[0].table}[{pad}]",
        cause=(
            f"the PyTorch model's own pad row is not zero either (largest absolute value {reference_maximum:.3g})"
            if own
            else "the row was changed during or after the export; decoding starts from it: any first token may differ"
        ),
        action="Zero the row in the checkpoint, if that is not intended." if own else "Export the set again.",
    )


def _zero_point(lookup: Lookup) -> float:
    """Zero point of a quantized table, 0 for a float one; dequantized on either side of the lookup."""
    values = (lookup.table, *lookup.node.output)
    for node in lookup.scope.nodes:
        if node.op_type == "DequantizeLinear" and node.input[0] in values and len(node.input) > 2:
            return float(numpy_helper.to_array(lookup.scope.constant(node.input[2])).reshape(-1)[0])
    return 0.0


def scales_embedding(file: str, model: ModelProto, folder: Path, ids: str, expected: float) -> Finding:
    """Multiply up the scalars between the lookup and the rest of the graph (fault G10).

    Args:
        file, model, folder, ids: see ``pad_row_is_zero``.
        expected: sqrt(d_model) where the model scales its embedding, else 1.
    """
    check = f"{file}: the embedding is scaled as in PyTorch"
    found = lookups(model, ids)
    if not found:
        return Finding(
            check=check,
            verdict=Verdict.INCONCLUSIVE,
            cause=f"no Gather looks {ids} up in a stored table",
            action="Rely on suites/parity, which compares the encoder's output.",
        )
    scales = [(_scale_after(lookup, folder), lookup) for lookup in found]
    scale, lookup = max(scales, key=lambda pair: abs(pair[0] - expected))
    right = math.isclose(scale, expected, rel_tol=1e-5)
    return Finding(
        check=check,
        verdict=Verdict.PASS if right else Verdict.FAIL,
        where="" if right else f"{file}, {name_of(lookup.node)}",
        cause="" if right else f"the embedding is multiplied by {scale:.6g}, PyTorch multiplies by {expected:.6g}",
        action="" if right else "Export the model's own embedding and scale (scale_embedding in config.json), once.",
    )


def _scale_after(lookup: Lookup, folder: Path) -> float:
    """Product of the scalar factors that a looked-up row is multiplied by."""
    scale, value = 1.0, lookup.node.output[0]
    while True:
        step = next((s for node in lookup.scope.nodes if (s := _factor(lookup.scope, node, value, folder))), None)
        if step is None:
            return scale
        factor, value = step
        scale *= factor


def _factor(scope: Scope, node: NodeProto, value: str, folder: Path) -> tuple[float, str] | None:
    """Factor and output of a node that only scales a value or passes it on."""
    if value not in node.input:
        return None
    if node.op_type in UNCHANGED | {"QuantizeLinear", "DequantizeLinear"} and node.input[0] == value:
        return 1.0, node.output[0]
    if node.op_type not in ("Mul", "Div") or (node.op_type == "Div" and node.input[0] != value):
        return None
    other = node.input[1] if node.input[0] == value else node.input[0]
    if node.op_type == "Mul" and row_scale_of(scope, other):  # a quantized row turned into float: no scaling
        return 1.0, node.output[0]
    tensor = scope.constant(other)
    if tensor is None:
        return None
    array = numpy_helper.to_array(tensor, str(folder))
    if array.size != 1:
        return None
    factor = float(array.reshape(-1)[0])
    return (1.0 / factor if node.op_type == "Div" else factor), node.output[0]


def row_scale_of(scope: Scope, name: str) -> str:
    """The stored scales that a value was looked up in, as a quantized row's own is; empty where it is no such value."""
    node = scope.producer(origin(scope, name))
    return node.input[0] if node is not None and node.op_type == "Gather" and scope.constant(node.input[0]) else ""
