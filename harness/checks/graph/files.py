"""Is a file valid ONNX, and can the runtimes that have to load it do so?"""

from __future__ import annotations

from pathlib import Path

import onnx
from onnx import ModelProto

from harness.checks.graph.walk import STANDARD_DOMAINS, all_nodes, main_scope, name_of
from harness.contract.finding import Finding, Verdict
from harness.contract.runtimes import Runtime

RANDOM = frozenset(
    {"RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", "Bernoulli", "Multinomial", "Dropout"}
)
LOOPS = frozenset({"Loop", "Scan", "SequenceMap"})
TOO_NEW_FOR_ONNX = "ir_version is higher than the checker's"
INVALID = "Whoever wrote or changed the file last left it invalid: export it again, or check the tool."


def passes_checker(path: Path) -> Finding:
    """Run the ONNX checker with type inference on a file, by path, so that files over 2 GB work (fault F08)."""
    return _tried(
        "the ONNX checker accepts the file", path, lambda: onnx.checker.check_model(str(path), full_check=True)
    )


def infers_shapes(path: Path, model: ModelProto, scratch: Path) -> Finding:
    """Run strict shape inference on a file, by path.

    Values of shapes are propagated too, except where the graph has branches: onnx's propagation fails on any shape
    that both branches of an ``If`` take ("Data for input 0 already exists").

    Args:
        path: the file.
        model: its contents, weights not needed.
        scratch: a file to write the inferred model to.
    """
    branches = any(scope.outer for scope in main_scope(model).scopes())

    def infer() -> None:
        onnx.shape_inference.infer_shapes_path(
            str(path), str(scratch), check_type=True, strict_mode=True, data_prop=not branches
        )

    return _tried("strict shape inference accepts the file", path, infer)


def _tried(check: str, path: Path, attempt) -> Finding:
    check = f"{path.name}: {check}"
    try:
        attempt()
    except Exception as error:  # checker and inference raise several types, and RuntimeError
        lines = [line.strip() for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
        # Says nothing about the file: whether the runtime loads so new a file is asked by ``is_supported``.
        too_old = TOO_NEW_FOR_ONNX in lines[0]
        return Finding(
            check=check,
            verdict=Verdict.INCONCLUSIVE if too_old else Verdict.FAIL,
            where=path.name,
            cause=f"the installed onnx {onnx.__version__} is older than the file" if too_old else lines[0][:400],
            action="Check the file with a newer onnx." if too_old else INVALID,
            details=tuple(line[:400] for line in lines[1:6]),
        )
    return Finding(check=check, verdict=Verdict.PASS)


def is_supported(file: str, model: ModelProto, runtime: Runtime, why: str) -> list[Finding]:
    """Hold IR version, opset and operators against what a runtime loads (faults F03, F11).

    Args:
        file: name of the file.
        model: its contents, weights not needed.
        runtime: the runtime.
        why: what makes the runtime matter, e.g. ``oldest target``.
    """
    name = f"onnxruntime {runtime.minor} ({why})"
    opset = opset_of(model)
    findings = [
        _not_newer(
            f"{file}: {name} loads its {what}",
            file,
            found,
            highest,
            f"{what} {found}, onnxruntime {runtime.minor} loads up to {highest}",
            action,
        )
        for what, found, highest, action in (
            (
                "IR version",
                model.ir_version,
                runtime.max_ir,
                f"Export with --target-ort {runtime.minor}, or set ir_version = {runtime.max_ir} in the file.",
            ),
            (
                "opset",
                opset,
                runtime.max_opset,
                f"Export with --opset {runtime.max_opset} or lower, or name a newer --target-ort.",
            ),
        )
    ]
    return [*findings, _has_operators(file, model, runtime, name, opset)]


def opset_of(model: ModelProto) -> int:
    """Version of the standard operator set that a model imports; 0 without one."""
    return max((entry.version for entry in model.opset_import if entry.domain in STANDARD_DOMAINS), default=0)


def _not_newer(check: str, file: str, found: int, highest: int, cause: str, action: str) -> Finding:
    if found <= highest:
        return Finding(check=check, verdict=Verdict.PASS)
    return Finding(
        check=check,
        verdict=Verdict.FAIL,
        measured=float(found),
        limit=float(highest),
        passing_limit=float(found),
        where=file,
        cause=cause,
        action=action,
    )


def _has_operators(file: str, model: ModelProto, runtime: Runtime, name: str, opset: int) -> Finding:
    lacking: dict[str, str] = {}
    for node, place in all_nodes(model):
        if runtime.is_missing(node.domain, node.op_type, opset):
            operator = node.op_type if node.domain in STANDARD_DOMAINS else f"{node.domain}.{node.op_type}"
            lacking.setdefault(operator, f"{name_of(node)}{place}")
    check = f"{file}: {name} has its operators"
    if not lacking:
        return Finding(check=check, verdict=Verdict.PASS)
    return Finding(
        check=check,
        verdict=Verdict.FAIL,
        where=f"{file}, {next(iter(lacking.values()))}",
        cause=f"onnxruntime {runtime.minor} has no {', '.join(lacking)} at opset {opset}",
        action="Export with another --opset or the other --exporter, or raise the oldest runtime with --target-ort.",
        details=tuple(f"{operator}: first {node}" for operator, node in lacking.items()),
    )


def only_inference(file: str, model: ModelProto, branch_flag: str | None) -> Finding:
    """Look for operators of training, chance and loops, in branches and functions too (faults G15, F09).

    Args:
        file: name of the file.
        model: its contents, weights not needed.
        branch_flag: the input that may choose between the two branches of a merged decoder; None where the layout has
            no branches.
    """
    bad = []
    for node, place in all_nodes(model):
        if problem := _unwanted(node, branch_flag):
            bad.append((f"{name_of(node)}{place}", problem))
    check = f"{file}: no operator of training, chance or loops"
    if not bad:
        return Finding(check=check, verdict=Verdict.PASS)
    node, (cause, action) = bad[0]
    return Finding(
        check=check,
        verdict=Verdict.FAIL,
        measured=float(len(bad)),
        limit=0.0,
        unit="nodes",
        where=f"{file}, {node}",
        cause=cause,
        action=action,
        details=tuple(f"{node}: {cause}" for node, (cause, _) in bad[:10]),
    )


def _unwanted(node: onnx.NodeProto, branch_flag: str | None) -> tuple[str, str] | None:
    """Cause and action for a node that no inference graph should hold."""
    if node.op_type in RANDOM:
        return (
            f"{node.op_type} belongs to training or draws random numbers: outputs may differ from run to run",
            "Call model.eval() before exporting.",
        )
    if any(attribute.name == "training_mode" and attribute.i for attribute in node.attribute):
        return f"{node.op_type} in training mode", "Call model.eval() before exporting."
    if node.op_type in LOOPS:
        return (
            f"{node.op_type}: generation was exported with the model, or an operation was scripted",
            "Export the encoder and single decoder steps; the loop belongs outside the graph.",
        )
    if node.op_type == "If" and (branch_flag is None or list(node.input) != [branch_flag]):
        allowed = f"only {branch_flag} may choose a branch" if branch_flag else "its layout has no branches"
        return (
            f"If on {node.input[0] if node.input else 'nothing'}: {allowed}",
            "A Python condition on tensor values was exported; trace with sizes of 2 or more, in evaluation mode.",
        )
    return None
