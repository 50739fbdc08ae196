"""Where did quantization break a set? Experiments, run only when a check has failed, and bounded in time.

Ablation swaps whole graphs between the float32 and the quantized set; then node after node of the quantized files is
put back into float, worst weight first, and what the logits recover ranks the nodes. What is proposed is tried: the set
is quantized again without those nodes, and run.
"""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
from onnx import ModelProto, NodeProto, helper, numpy_helper

from harness.checks.graph.quantization import JudgedWeight
from harness.checks.graph.quantized import LOOKUP, Use
from harness.contract.errors import InputError
from harness.contract.layouts import ENCODER
from harness.runtime.artifact_model import ArtifactModel
from harness.runtime.artifact_set import ArtifactSet
from harness.runtime.session import named_profile

BUDGET_SECONDS = 60.0
# Nodes of one proposal, and what a node has to recover to be in it, in dB.
PROPOSED = 6
WORTH_DB = 1.0
_SHOWN = 8

Logits = Callable[[ArtifactModel], np.ndarray]


def signal_to_noise(reference: np.ndarray, found: np.ndarray) -> float:
    """Decibels of the reference's power over that of the difference; endless where there is none."""
    noise = float(np.square(found.astype(np.float64) - reference).sum())
    signal = float(np.square(reference.astype(np.float64)).sum())
    return float("inf") if noise == 0 else 10 * float(np.log10(signal / noise)) if np.isfinite(noise) else -float("inf")


@dataclass(frozen=True)
class Case:
    """A set to be examined.

    Attributes:
        float32, quantized: both sets in sessions.
        judged: file -> its weights beside PyTorch's, worst first.
        parameters: PyTorch's matrices by name.
        logits: model -> logits of forced steps.
        requantize: exclusion patterns -> the set made anew by its recipe with them; None where there is no recipe.
        limit: what the logits have to reach, dB.
    """

    float32: ArtifactModel
    quantized: ArtifactModel
    judged: Mapping[str, Sequence[JudgedWeight]]
    parameters: Mapping[str, np.ndarray]
    logits: Logits
    requantize: Callable[[Sequence[str]], ArtifactSet] | None
    limit: float


@dataclass
class Report:
    """What the experiments say.

    Attributes:
        cause, action: in the words of a finding.
        lines: figures, most important first.
    """

    cause: str = ""
    action: str = ""
    lines: list[str] = dataclasses.field(default_factory=list)


def examine(case: Case, *, budget: float = BUDGET_SECONDS) -> Report:
    """Ablate, rank, propose and try, as far as the time goes."""
    end = time.monotonic() + budget
    reference = case.logits(case.float32)
    value = lambda model: signal_to_noise(reference, case.logits(model))
    base, report = value(case.quantized), Report()
    report.lines.append(f"logits of the set against its float32 set: {base:.1f} dB")
    _ablate(case, value, report)
    if case.requantize is not None and _recipe_is_sound(case, value, report):
        return report
    ranked = _recovery(case, value, base, end)
    report.lines += [f"left in float, {gain:+.1f} dB: {one.text()}" for one, gain in ranked[:_SHOWN]]
    if time.monotonic() > end:
        report.lines.append(f"stopped after {budget:.0f} s; nodes beyond those listed were not tried")
    _propose(case, value, ranked, report)
    return report


def rank_weights(judged: Mapping[str, Sequence[JudgedWeight]]) -> list[str]:
    """The weights of all files that lost most, one line each."""
    everything = sorted((one for weights in judged.values() for one in weights), key=lambda one: one.snr)
    return [f"signal-to-noise: {one.text()}" for one in everything[:_SHOWN]]


def _ablate(case: Case, value: Callable[[ArtifactModel], float], report: Report) -> None:
    """Quantize one half only, by taking the other half's sessions from the float32 set."""
    figures = {}
    for name, encoder, decoder in (
        ("encoder", case.quantized, case.float32),
        ("decoder", case.float32, case.quantized),
    ):
        mixed = copy.copy(decoder)
        mixed.sessions = {**decoder.sessions, ENCODER: encoder.sessions[ENCODER]}
        try:
            figures[name] = value(mixed)
        except InputError as error:  # sets of unlike layouts do not fit together
            report.lines.append(f"{name} alone could not be tried: {error.what}")
            return
        report.lines.append(f"only the {name} quantized: {figures[name]:.1f} dB")
    worse = min(figures, key=figures.get)
    if abs(figures["encoder"] - figures["decoder"]) > WORTH_DB:
        report.cause = f"the {worse} is what loses: alone quantized it leaves {figures[worse]:.1f} dB"


def _recipe_is_sound(case: Case, value: Callable[[ArtifactModel], float], report: Report) -> bool:
    """Whether the same recipe, applied anew, gives a good set: then the files are at fault and not the recipe."""
    try:
        made = case.requantize([])
        again = value(ArtifactModel(made, named_profile("suites")))
    except InputError as error:
        report.lines.append(f"could not be quantized again: {error.what}")
        return False
    report.lines.append(f"quantized again by the same recipe: {again:.1f} dB")
    if again < case.limit or again < value(case.quantized) + WORTH_DB:
        return False
    report.action = f"Quantize again by the same recipe: that gives {again:.1f} dB. These files were changed since."
    return True


def _recovery(
    case: Case, value: Callable[[ArtifactModel], float], base: float, end: float
) -> list[tuple[JudgedWeight, float]]:
    """Every quantized node put back into float on its own, worst weight first; what the logits gain, in dB."""
    gains = []
    for role, one in _worst_first(case):
        if time.monotonic() > end:
            break
        with _in_float(case, {role: [one]}) as model:
            gains.append((one, value(model) - base))
    return sorted(gains, key=lambda pair: -pair[1])


def _worst_first(case: Case) -> list[tuple[str, JudgedWeight]]:
    roles = {path.name: role for role, path in case.quantized.artifacts.files.items()}
    known = [
        (roles[file], one)
        for file, weights in case.judged.items()
        for one in weights
        if one.parameter and one.use.given and one.use.output
    ]
    return sorted(known, key=lambda pair: pair[1].snr)


@contextlib.contextmanager
def _in_float(case: Case, chosen: Mapping[str, Sequence[JudgedWeight]]) -> Iterator[ArtifactModel]:
    """The quantized set with some nodes in float (role -> weights), in sessions of its own."""
    artifacts, files = case.quantized.artifacts, {}
    with tempfile.TemporaryDirectory(prefix="in-float-") as folder:
        for role, weights in chosen.items():
            model = onnx.load(str(artifacts.files[role]))
            for one in weights:
                put_back(model, one.use, _oriented(case.parameters[one.parameter], one))
            files[role] = Path(folder) / f"{role}.onnx"
            onnx.save(model, str(files[role]))
        changed = dataclasses.replace(artifacts, files={**artifacts.files, **files})
        yield ArtifactModel(changed, named_profile("suites"))


def _oriented(parameter: np.ndarray, one: JudgedWeight) -> np.ndarray:
    """The parameter as the node reads it; a square one is turned where that is more like the weight."""
    if parameter.shape != one.weight.values.shape:
        return parameter.T
    if parameter.shape[0] == parameter.shape[1]:
        plain, turned = (abs(float(np.vdot(one.weight.values, array))) for array in (parameter, parameter.T))
        return parameter.T if turned > plain else parameter
    return parameter


def put_back(model: ModelProto, use: Use, weight: np.ndarray) -> None:
    """Give a quantized node's output from a float weight instead, in place.

    Args:
        model: a quantized graph whose node is in the main graph.
        use: a use whose ``given`` and ``output`` are known.
        weight: float32, ``[inputs, outputs]`` for a product, ``[vocabulary, width]`` for a lookup.
    """
    graph, name = model.graph, f"{use.output}/in_float"
    graph.initializer.append(numpy_helper.from_array(np.ascontiguousarray(weight), f"{name}/weight"))
    operator, inputs = (
        ("Gather", [f"{name}/weight", use.given])
        if use.purpose == LOOKUP
        else ("MatMul", [use.given, f"{name}/weight"])
    )
    nodes = []
    for node in graph.node:
        made = NodeProto()
        made.CopyFrom(node)
        if use.output in node.output:
            made.output[list(node.output).index(use.output)] = f"{name}/unused"
            nodes += [made, helper.make_node(operator, inputs, [use.output], name=name)]
        else:
            nodes.append(made)
    del graph.node[:]
    graph.node.extend(nodes)


def _propose(
    case: Case, value: Callable[[ArtifactModel], float], ranked: Sequence[tuple[JudgedWeight, float]], report: Report
) -> None:
    """Leave the most rewarding nodes in float together, quantize again so, and say what comes of it."""
    chosen = [one for one, gain in ranked[:PROPOSED] if gain > WORTH_DB]
    if not chosen:
        report.lines.append("no single node recovers more than 1 dB: the loss is spread over the set")
        return
    patterns = list(dict.fromkeys(one.weight.name for one in chosen))
    listed = ", ".join(f'"{pattern}"' for pattern in patterns)
    if case.requantize is None:
        roles = {path.name: role for role, path in case.quantized.artifacts.files.items()}
        by_role: dict[str, list[JudgedWeight]] = {}
        for one in chosen:
            by_role.setdefault(roles[one.weight.file], []).append(one)
        with _in_float(case, by_role) as model:
            after = value(model)
        report.action = f"Leave in float: {listed}; the logits then reach {after:.1f} dB."
        return
    try:
        made = case.requantize(patterns)
        after = value(ArtifactModel(made, named_profile("suites")))
    except InputError as error:
        report.lines.append(f"the proposal could not be tried: {error.what}")
        return
    size = sum(path.stat().st_size for path in made.folder.iterdir() if path.suffix in (".onnx", ".data"))
    outcome = f"the logits reach {after:.1f} dB in {size / 1e6:.1f} MB"
    report.action = f"Exclude in the recipe: [{listed}]; quantized again so, {outcome}."
