"""Do a graph's inputs and outputs keep the contract of its layout, and is every input used?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from onnx import ModelProto, TensorProto, ValueInfoProto

from harness.checks.graph.walk import cone, main_scope
from harness.contract.finding import Finding, Verdict
from harness.contract.layouts import (
    ATTENTION_MASK,
    CROSS,
    DECODER_INIT,
    ENCODER,
    ENCODER_HIDDEN,
    ENCODER_MASK,
    ENCODER_OUTPUT,
    INPUT_IDS,
    LAYOUTS,
    LOGITS,
    SELF,
    GraphSpec,
    ModelDims,
    TensorSpec,
    past_of_present,
    present_names,
)

EXPORT_AGAIN = "Export the graph with the names, order and axes of its layout, see harness/contract/layouts.py."
_DTYPES = {TensorProto.FLOAT: "float32", TensorProto.INT64: "int64", TensorProto.BOOL: "bool"}


@dataclass(frozen=True)
class Declared:
    """An input or output as the file declares it; ``None`` in the shape is an axis without any name or size."""

    name: str
    dtype: str
    shape: tuple[int | str | None, ...] | None


def declared(values: Sequence[ValueInfoProto]) -> list[Declared]:
    """Read the declarations of inputs or outputs."""
    found = []
    for value in values:
        tensor = value.type.tensor_type
        shape = None
        if tensor.HasField("shape"):
            shape = tuple(
                axis.dim_value if axis.HasField("dim_value") else axis.dim_param or None for axis in tensor.shape.dim
            )
        number = tensor.elem_type
        found.append(Declared(value.name, _DTYPES.get(number) or TensorProto.DataType.Name(number).lower(), shape))
    return found


def keeps_contract(file: str, model: ModelProto, spec: GraphSpec, dims: ModelDims) -> list[Finding]:
    """Compare a graph of this project with its contract: names, order, types, sizes, dynamic axes (fault S02).

    Args:
        file: name of the file.
        model: its contents, weights not needed.
        spec: the contract that follows from layout and sizes.
        dims: sizes of the model.
    """
    findings = []
    for side, expected, values in (
        ("inputs", spec.inputs, declared(model.graph.input)),
        ("outputs", spec.outputs, declared(model.graph.output)),
    ):
        problems = _list_problems([tensor.name for tensor in expected], [value.name for value in values])
        by_name = {value.name: value for value in values}
        problems += [
            problem
            for tensor in expected
            if tensor.name in by_name
            for problem in _mismatches(by_name[tensor.name], tensor)
        ]
        cause = _known_cause({value.name for value in values}, spec.role, side, dims)
        matched = sum(tensor.name in by_name for tensor in expected)
        findings.append(
            _finding(f"{file}: {side} keep the contract of {spec.role}", file, problems, cause, matched, len(expected))
        )
    return findings


def _list_problems(expected: list[str], found: list[str]) -> list[str]:
    problems = [f"{name} is missing" for name in expected if name not in found]
    problems += [f"{name} is not in the contract" for name in found if name not in expected]
    if not problems and expected != found:
        first = next(i for i, (left, right) in enumerate(zip(expected, found)) if left != right)
        problems.append(f"position {first} holds {found[first]}, expected {expected[first]}: another order")
    return problems


def _mismatches(value: Declared, spec: TensorSpec) -> list[str]:
    problems = []
    if value.dtype != spec.dtype:
        problems.append(f"{value.name} is {value.dtype}, expected {spec.dtype}")
    if value.shape is None:
        return problems
    if len(value.shape) != len(spec.shape):
        return [*problems, f"{value.name} has {len(value.shape)} axes, expected {list(spec.shape)}"]
    for axis, (found, wanted) in enumerate(zip(value.shape, spec.shape)):
        if isinstance(wanted, str) and isinstance(found, int):
            problems.append(f"{value.name}: axis {axis} ({wanted}) is fixed at {found}, it must be dynamic")
        elif isinstance(wanted, int) and isinstance(found, int) and found != wanted:
            problems.append(f"{value.name}: axis {axis} is {found}, expected {wanted}")
    return problems


def _known_cause(names: set[str], role: str, side: str, dims: ModelDims) -> tuple[str, str] | None:
    """Cause and action where the names alone tell what went wrong (faults F10, G08)."""
    if side == "outputs" and role != ENCODER and LOGITS not in names:
        hidden = "hidden states come out" if ENCODER_OUTPUT in names else "no logits come out"
        return (
            f"{hidden}, not logits: the output projection is missing or in another file",
            "Export the output projection and the logits bias with the decoder.",
        )
    crossed = names & set(present_names(dims.decoder_layers, CROSS))
    if side == "outputs" and role not in (ENCODER, DECODER_INIT) and crossed:
        return (
            f"cross-attention K/V come out again at every step: {_re_emitted_bytes(len(crossed), dims)} bytes per "
            "source token, sentence and step that need not move",
            "Compute cross-attention K/V once and feed them back unchanged; do not make them outputs of a step.",
        )
    return None


def _re_emitted_bytes(tensors: int, dims: ModelDims) -> int:
    """Bytes per source token that so many float32 cross-attention tensors hold."""
    return tensors * dims.decoder_heads * dims.head_dim * 4


def _finding(
    check: str, file: str, problems: list[str], known: tuple[str, str] | None, compared: int, expected: int
) -> Finding:
    cause, action = known or (problems[0] if problems else "", EXPORT_AGAIN)
    return Finding(
        check=check,
        verdict=Verdict.FAIL if problems else Verdict.PASS,
        compared=compared if compared else None,
        expected=expected,
        where=f"{file}: {problems[0]}" if problems else "",
        cause=cause if problems else "",
        action=action if problems else "",
        details=tuple(problems[:12]),
    )


@dataclass(frozen=True)
class ForeignGraph:
    """A graph made elsewhere, with the contract's name of every input and output.

    Attributes:
        file, role: name and role of the file; ``decoder_merged`` for Optimum's one-file decoder.
        model: its contents, weights not needed.
        inputs, outputs: own name -> the contract's name, None where this project knows none.
        branch_flag: name of the input that chooses a merged decoder's branch, None elsewhere.
    """

    file: str
    role: str
    model: ModelProto
    inputs: Mapping[str, str | None]
    outputs: Mapping[str, str | None]
    branch_flag: str | None

    @property
    def merged(self) -> bool:
        """Whether one file holds the first and the later steps behind a flag."""
        return self.branch_flag in self.inputs

    @property
    def takes_past(self) -> bool:
        """Whether the graph continues a cache."""
        return any((name or "").startswith("past_key_values.") for name in self.inputs.values())


def keeps_habits(graph: ForeignGraph, dims: ModelDims) -> list[Finding]:
    """Hold a graph made elsewhere against what any runtime needs of it (faults F10, G07's missing layers, G08, S02).

    Known names, logits, K/V of every layer, dynamic batch and lengths. Order is free. A decoder that continues a cache
    may be fixed at one target token per call.
    """
    findings = []
    for side, names, values, required in (
        ("inputs", graph.inputs, declared(graph.model.graph.input), _required_inputs(graph, dims)),
        ("outputs", graph.outputs, declared(graph.model.graph.output), _required_outputs(graph, dims)),
    ):
        known = {canonical for canonical in names.values() if canonical}
        problems = [f"{own} is a name that this project does not know" for own, name in names.items() if name is None]
        problems += [f"{name} is missing" for name in required if name not in known]
        if side == "outputs":
            problems += _cross_again(graph, known, dims)
        specs = _specs(graph.role, side, dims)
        for value in values:
            if (name := names[value.name]) in specs:
                problems += _mismatches(value, _relaxed(graph, value, specs[name]))
        check = f"{graph.file}: {side} are what a runtime needs of a {graph.role.replace('_', ' ')}"
        role = DECODER_INIT if graph.merged else graph.role
        cause = _known_cause(known, role, side, dims)
        present = sum(name in known for name in required)
        findings.append(_finding(check, graph.file, problems, cause, present, len(required)))
    return findings


def _required_inputs(graph: ForeignGraph, dims: ModelDims) -> list[str]:
    if graph.role == ENCODER:
        return [INPUT_IDS, ATTENTION_MASK]
    required = [INPUT_IDS, ENCODER_MASK]
    if not graph.takes_past:
        return [*required, ENCODER_HIDDEN]
    required += [past_of_present(name) for name in present_names(dims.decoder_layers, SELF)]
    cross = [past_of_present(name) for name in present_names(dims.decoder_layers, CROSS)]
    if any(name in graph.inputs.values() for name in cross):
        return [*required, *cross]
    return [*required, ENCODER_HIDDEN]


def _required_outputs(graph: ForeignGraph, dims: ModelDims) -> list[str]:
    if graph.role == ENCODER:
        return [ENCODER_OUTPUT]
    required = [LOGITS, *present_names(dims.decoder_layers, SELF)]
    if graph.role == DECODER_INIT or graph.merged:
        required += present_names(dims.decoder_layers, CROSS)
    return required


def _cross_again(graph: ForeignGraph, outputs: set[str], dims: ModelDims) -> list[str]:
    """Name the cross K/V that a step emits although it was given them.

    A merged decoder must declare them for its first step; its later steps may only emit a constant in their place.
    """
    crossed = [name for name in present_names(dims.decoder_layers, CROSS) if name in outputs]
    if not graph.takes_past or graph.role == ENCODER:
        return []
    if not graph.merged:
        return [f"{name} comes out of a decoder that continues a cache" for name in crossed]
    scope = main_scope(graph.model)
    steps = [body for body in scope.scopes() if body.label == "then_branch" and body.outer is scope]
    own = {canonical: name for name, canonical in graph.outputs.items()}
    positions = {value.name: i for i, value in enumerate(graph.model.graph.output)}
    return [
        f"{name} comes out of the branch that continues a cache"
        for body in steps
        for name in crossed
        if cone(body, [body.outputs[positions[own[name]]]]).inputs
    ]


def _specs(role: str, side: str, dims: ModelDims) -> dict[str, TensorSpec]:
    """The contract's tensors of encoders, or of decoders, over all layouts."""
    specs = {}
    for layout in LAYOUTS.values():
        for graph in layout.graphs(dims).values():
            if (graph.role == ENCODER) == (role == ENCODER):
                specs.update((tensor.name, tensor) for tensor in getattr(graph, side))
    return specs


def _relaxed(graph: ForeignGraph, value: Declared, spec: TensorSpec) -> TensorSpec:
    """Allow one target token per call where a decoder continues a cache and says so."""
    one_token = graph.takes_past and not graph.merged and value.shape is not None and value.shape[1:2] == (1,)
    if not one_token or spec.name not in (INPUT_IDS, LOGITS):
        return spec
    return TensorSpec(spec.name, spec.dtype, (spec.shape[0], 1, *spec.shape[2:]))


def uses_inputs(file: str, model: ModelProto, names: Mapping[str, str | None]) -> Finding:
    """Require that every input reaches an output by its values, not only by its sizes (faults G01, G02).

    Args:
        file: name of the file.
        model: its contents, weights not needed.
        names: own name -> the contract's name, for the wording.
    """
    scope = main_scope(model)
    used = cone(scope, scope.outputs).inputs
    touched = cone(scope, scope.outputs, sizes_too=True).inputs
    initialized = {tensor.name for tensor in model.graph.initializer}
    inputs = [name for name in scope.inputs if name not in initialized]
    unused = [name for name in inputs if name not in used]
    # The hidden states' sizes alone are harmless where cross K/V are given; everything else is a fault.
    harmless = [name for name in unused if names.get(name) == ENCODER_HIDDEN and name in touched]
    problems = [
        f"{name} feeds {'nothing but sizes' if name in touched else 'nothing'}"
        for name in unused
        if name not in harmless
    ]
    notes = [f"{name} is read for its sizes only: its bytes need not be passed" for name in harmless]
    masks = [name for name in unused if names.get(name) in (ATTENTION_MASK, ENCODER_MASK)]
    verdict = Verdict.FAIL if problems else Verdict.WARN if notes else Verdict.PASS
    cause = ""
    if masks:
        cause = f"{masks[0]} is ignored: padding changes the translation"
    elif problems:
        cause = "the exporter replaced the input by what it held while tracing"
    return Finding(
        check=f"{file}: every input is used",
        verdict=verdict,
        where=f"{file}: {(problems + notes)[0]}" if problems or notes else "",
        cause=cause,
        action="Export with eager attention, and pass every input to the model." if problems else "",
        details=tuple(problems + notes),
    )
