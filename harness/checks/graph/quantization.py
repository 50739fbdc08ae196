"""Is a quantized set what its recipe says, and are its weights still the model's? (faults Q01, Q02, Q04, Q05)"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from onnx import ModelProto, NodeProto, numpy_helper

from harness.checks.graph.quantized import FLOAT, INTEGER, LOOKUP, PRODUCT, StoredWeight, Use
from harness.checks.graph.walk import main_scope
from harness.contract.finding import Finding, Verdict
from harness.contract.limits import (
    ACTIVATION_CLIPPED_SHARE,
    ACTIVATION_OVERSHOOT,
    ACTIVATION_SCALE_ABOVE,
    ACTIVATION_UNUSED_SHARE,
    CALIBRATION_LONG_SHARE,
    CALIBRATION_LONG_WORDS,
    CALIBRATION_SENTENCES,
    LEVELS_FEWEST,
    ROW_FAIL_BELOW_DB,
    SIZE_PER_NODE,
    SIZE_SLACK,
    STEPS_FAIL_ABOVE,
    WEIGHT_FAIL_BELOW_DB,
    WEIGHT_WARN_BELOW_DB,
)
from harness.contract.recipes import DYNAMIC, MINMAX, STATIC
from harness.contract.sentences import normalised

# Copies of a float tensor are looked for among those that agree with it at least so well.
SAME_ABOVE = 0.99
# A parameter is taken for a weight's own from this correlation on.
RELATED_ABOVE = 0.5
SHARED_ABOVE_BYTES = 1024
_SHOWN = 12
_ENDLESS_DB = 200.0
QUANTIZE_AGAIN = "Quantize the float32 set again: `python -m exporters MODEL --precision NAME`."


# --- how many nodes (Q01) --------------------------------------------------------------------------------------------


def enough_nodes(file: str, found: Sequence[Use], expected: int | None, method: str | None) -> Finding:
    """Count the quantized nodes of a file (fault Q01).

    Args:
        file: name of the file.
        found: products with a weight, and lookups.
        expected: how many the recipe quantizes; None for a set made elsewhere.
        method: the recipe's; ``dynamic`` and ``static`` promise products that compute with integers.
    """
    integers = method in (DYNAMIC, STATIC)
    good = [u for u in found if u.kind == INTEGER or (u.kind != FLOAT and (u.purpose == LOOKUP or not integers))]
    wanted = len(found) if expected is None else expected
    missing = max(0, wanted - len(good))
    left = [use for use in found if use not in good]
    empty = not good and bool(found)
    verdict = Verdict.FAIL if empty or (missing and expected is not None) else Verdict.PASS
    if verdict is Verdict.PASS and missing:
        verdict = Verdict.WARN
    first = f", first in float: {left[0].node}" if left else ""
    return Finding(
        check=f"{file}: as many nodes are quantized as the recipe says",
        verdict=verdict,
        measured=float(missing if expected or not empty else len(left)),
        limit=0.0,
        unit="nodes in float that should not be",
        passing_limit=float(missing),
        where=f"{file}: {len(good)} of {wanted or len(found)}{first}",
        cause=_count_cause(empty, missing, expected),
        action=QUANTIZE_AGAIN if verdict is Verdict.FAIL else "",
        details=tuple(f"{use.purpose} in {use.kind}: {use.node}, {use.stored}" for use in left[:_SHOWN]),
    )


def _count_cause(empty: bool, missing: int, expected: int | None) -> str:
    if empty and expected == 0:
        return "the recipe leaves the whole file in float"
    if empty:
        return "the file was left in float"
    if missing and expected is None:
        return "some products were left in float, on purpose or because the quantizer did not see their weights"
    return "fewer nodes were quantized than the recipe says" if missing else ""


# --- what is stored (Q02) --------------------------------------------------------------------------------------------


def no_float_copy(file: str, model: ModelProto, folder: Path, found: Sequence[Use]) -> Finding:
    """Look for float tensors that hold a quantized weight a second time, as half-quantized ties do (fault Q02)."""
    weights = {use.weight.name: use.weight for use in found if use.weight}
    copies: list[tuple[str, str, int]] = []
    for name, array in _float_matrices(model, folder):
        for weight in weights.values():
            if any(_correlation(array, turned) > SAME_ABOVE for turned in _orientations(weight.values, array.shape)):
                copies.append((name, weight.name, array.nbytes))
                break
    wasted = sum(size for _, _, size in copies)
    lines = tuple(f"{name} in float, {weight} quantized: {size} bytes" for name, weight, size in copies)
    return Finding(
        check=f"{file}: no float copy of a quantized weight is left",
        verdict=Verdict.FAIL if copies else Verdict.PASS,
        measured=float(wasted),
        limit=0.0,
        unit="bytes of float copies",
        passing_limit=float(wasted),
        where=f"{file}: {lines[0]}" if lines else "",
        cause="a weight that several nodes read, was quantized for some of them only" if lines else "",
        action="Quantize every reader (MatMul and Gather in the recipe's operators), or exclude all." if lines else "",
        details=lines[1:_SHOWN],
    )


def _float_matrices(model: ModelProto, folder: Path) -> Iterable[tuple[str, np.ndarray]]:
    for scope in main_scope(model).scopes():
        for tensor in scope.graph.initializer:
            if len(tensor.dims) == 2 and tensor.data_type in (1, 10):
                array = numpy_helper.to_array(tensor, str(folder)).astype(np.float32)
                if array.nbytes >= SHARED_ABOVE_BYTES:
                    yield tensor.name, array


def _orientations(array: np.ndarray, shape: tuple[int, ...]) -> list[np.ndarray]:
    """The array, plain and transposed, as far as it then has a shape."""
    return [turned for turned in (array, array.T) if turned.shape == shape]


def _correlation(left: np.ndarray, right: np.ndarray) -> float:
    norm = float(np.linalg.norm(left)) * float(np.linalg.norm(right))
    return float(np.vdot(left, right)) / norm if norm else 0.0


def small_enough(found: Sequence[Use], sizes: Mapping[str, int], float32: Mapping[str, int] | None) -> Finding:
    """Hold the bytes of the graph files against those of the float32 set.

    Args:
        found: the set's uses of weights.
        sizes: file -> bytes.
        float32: file -> bytes of the float32 set; None where there is none: then only an estimate is reported.
    """
    weights = {(use.weight.file, use.weight.name): use.weight for use in found if use.weight}
    saved = sum(4 * weight.values.size - weight.bytes for weight in weights.values())
    total = sum(sizes.values())
    before = sum(float32.values()) if float32 else total + saved
    added = SIZE_PER_NODE * sum(use.kind != FLOAT for use in found)
    ratio, limit = total / before, (before - saved + added) / before + SIZE_SLACK
    large = ratio > limit
    return Finding(
        check="the set is as small as its quantized weights make it",
        verdict=Verdict.FAIL if large else Verdict.PASS,
        measured=ratio,
        limit=limit,
        unit=f"of the {'' if float32 else 'estimated '}bytes in float32",
        passing_limit=ratio,
        where=", ".join(f"{file}: {size} bytes" for file, size in sizes.items()),
        cause=f"{total - before + saved} bytes more than its quantized weights leave over" if large else "",
        action="See the copies and node counts; share equal weights." if large else "",
    )


# --- what it is worth (Q05) ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class JudgedWeight:
    """A quantized weight beside the parameter that it is of.

    Attributes:
        use: the node that reads it.
        parameter: the parameter's name; empty where none of its shape is anything like it.
        snr: signal-to-noise ratio of the whole tensor, dB.
        channels: per column of a product, per row of a lookup: root-mean-square error in steps.
        rows: per row of a lookup, the signal-to-noise ratio in dB; empty for a product.
        factor: what the parameter has to be multiplied by to come nearest.
        factors: the same per channel.
        levels: how many different integers it holds.
    """

    use: Use
    parameter: str
    snr: float
    channels: np.ndarray
    rows: np.ndarray
    factor: float
    factors: np.ndarray
    levels: int

    @property
    def weight(self) -> StoredWeight:
        """The stored weight."""
        return self.use.weight

    def text(self) -> str:
        """One line of a ranking."""
        return f"{self.weight.file}: {self.parameter or self.weight.name} {self.snr:.1f} dB ({self.use.node})"


def judge_weights(found: Iterable[Use], parameters: Mapping[str, np.ndarray]) -> list[JudgedWeight]:
    """Compare every quantized weight with the parameter it is of, worst first.

    Args:
        found: uses of weights; those in float are left out.
        parameters: PyTorch's, by name, float32; matrices in either orientation.
    """
    seen: dict[tuple[str, str, str], JudgedWeight] = {}
    for use in found:
        if use.weight is not None and (key := (use.weight.file, use.weight.name, use.purpose)) not in seen:
            seen[key] = _judge(use, parameters)
    return sorted(seen.values(), key=lambda judged: judged.snr)


def _judge(use: Use, parameters: Mapping[str, np.ndarray]) -> JudgedWeight:
    values = use.weight.values
    name, reference = _parameter_of(values, parameters, product=use.purpose == PRODUCT)
    levels = len(np.unique(np.round(values / use.weight.step)))
    if reference is None:
        nothing = np.zeros(0)
        return JudgedWeight(use, "", -np.inf, nothing, nothing, np.nan, nothing, levels)
    error, axis = values - reference, 0 if use.purpose == PRODUCT else 1
    with np.errstate(divide="ignore", invalid="ignore"):
        channels = np.sqrt(np.mean(np.square(error / use.weight.step), axis=axis))
        power = np.square(reference).sum(axis=axis)
        factors = np.where(power > 0, (values * reference).sum(axis=axis) / power, 1.0)
        rows = _decibels(power, np.square(error).sum(axis=axis)) if axis == 1 else np.zeros(0)
    return JudgedWeight(
        use, name, float(_decibels(np.square(reference).sum(), np.square(error).sum())), channels, rows,
        float(np.vdot(values, reference) / np.vdot(reference, reference)), factors, levels,
    )  # fmt: skip


def _decibels(signal: np.ndarray, noise: np.ndarray) -> np.ndarray:
    """10 log10 of signal over noise; a row of zeros that stayed zero is perfect."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = 10 * np.log10(np.asarray(signal, np.float64) / np.asarray(noise, np.float64))
    return np.where(np.asarray(noise) == 0, _ENDLESS_DB, np.nan_to_num(ratio, neginf=-_ENDLESS_DB, posinf=_ENDLESS_DB))


def _parameter_of(
    values: np.ndarray, parameters: Mapping[str, np.ndarray], *, product: bool
) -> tuple[str, np.ndarray | None]:
    """The parameter that a weight correlates with most, in the weight's orientation.

    Correlation and not distance: a weight whose scale is wrong is still the same weight.
    """
    best, name, reference = RELATED_ABOVE, "", None
    for candidate, array in parameters.items():
        if array.ndim != 2:
            continue
        for turned in (array.T, array) if product else (array,):
            if turned.shape == values.shape and (like := abs(_correlation(values, turned))) > best:
                best, name, reference = like, candidate, turned
    return name, reference


def weights_survive(file: str, judged: Sequence[JudgedWeight], bits: int, piece: Callable[[int], str]) -> list[Finding]:
    """Hold every quantized weight of a file against its parameter: tensors, channels, levels and rows.

    Args:
        file: name of the file.
        judged: its weights.
        bits: of the weights of products.
        piece: row of the embedding -> the piece of text it stands for.
    """
    tables = {one.weight.name for one in judged if one.use.purpose == LOOKUP}
    problems, weak = [], []
    for one in judged:
        width = 8 if one.weight.name in tables and bits == 4 else bits
        if problem := _problem(one, width):
            problems.append((one, problem))
        elif one.snr < WEIGHT_WARN_BELOW_DB[width]:
            weak.append(one)
    lowest = min(judged, key=lambda one: one.snr)
    limit = WEIGHT_FAIL_BELOW_DB[bits]
    first = problems[0] if problems else None
    verdict = Verdict.FAIL if problems else Verdict.WARN if weak else Verdict.PASS
    tensors = Finding(
        check=f"{file}: every quantized weight is its float32 weight, rounded",
        verdict=verdict,
        measured=lowest.snr,
        limit=limit,
        unit="dB signal-to-noise, the lowest of all tensors",
        passing_limit=lowest.snr,
        compared=len([one for one in judged if one.parameter]),
        expected=len(judged),
        where=first[0].text() if first else weak[0].text() if weak else "",
        cause=first[1] if first else "its values spread over a few large ones" if weak else "",
        action=QUANTIZE_AGAIN if first else "Exclude it in the recipe, or quantize it per channel." if weak else "",
        details=tuple(f"{one.text()}: {problem}" for one, problem in problems[1:_SHOWN])
        + tuple(f"lowest: {one.text()}" for one in sorted(judged, key=lambda one: one.snr)[:5]),
    )
    return [tensors, *(_rows(file, one, piece) for one in judged if one.use.purpose == LOOKUP and one.parameter)]


def _problem(one: JudgedWeight, bits: int) -> str:
    """What is wrong with a tensor as a whole, or with the scale of a channel; empty where nothing is."""
    if not one.parameter:
        return "no parameter of the model is anything like it"
    if abs(one.factor - 1) > 0.1 and np.ptp(one.factors) < 0.5 * abs(one.factor - 1):
        return f"its scale is off: every value is {one.factor:.3g} times PyTorch's"
    bad = np.flatnonzero(one.channels > STEPS_FAIL_ABOVE) if one.use.purpose == PRODUCT else np.zeros(0, int)
    coarse = bits >= 7 and one.levels < LEVELS_FEWEST and one.weight.values.size >= SHARED_ABOVE_BYTES
    if coarse:
        return f"it holds {one.levels} levels: {int(np.ceil(np.log2(one.levels + 1)))} bits where {bits} are promised"
    if len(bad):
        worst = int(bad[np.argmax(np.abs(np.log(np.maximum(np.abs(one.factors[bad]), 1e-6))))])
        return (
            f"{len(bad)} of {len(one.channels)} columns are not their rounded values; column {worst} is "
            f"{one.factors[worst]:.3g} times PyTorch's: a scale or zero point is off"
        )
    if one.snr < WEIGHT_FAIL_BELOW_DB[bits]:
        return f"{one.snr:.1f} dB are too few for {bits} bits: a few large values stretch its scale"
    return ""


def _rows(file: str, one: JudgedWeight, piece: Callable[[int], str]) -> Finding:
    """Look at every row of an embedding on its own: a few collapsed ones vanish in the tensor's average."""
    limit = WEIGHT_FAIL_BELOW_DB[7] if one.weight.rowwise else ROW_FAIL_BELOW_DB
    # An all-zero row has no signal: there only the error counts.
    lost = (one.rows < limit) & (one.channels > 0)
    off = one.channels > STEPS_FAIL_ABOVE
    bad = np.flatnonzero(lost | off)
    bad = bad[np.argsort(one.rows[bad], kind="stable")]
    names = [f"row {row} {piece(int(row))!r} {one.rows[row]:.1f} dB" for row in bad[:_SHOWN]]
    worst = float(one.rows[one.channels > 0].min(initial=_ENDLESS_DB))
    return Finding(
        check=f"{file}: every row of the embedding survives",
        verdict=Verdict.FAIL if len(bad) else Verdict.PASS,
        measured=worst,
        limit=limit,
        unit="dB signal-to-noise, the lowest of all rows",
        passing_limit=worst,
        compared=len(one.rows),
        expected=len(one.rows),
        where=f"{file}: {one.parameter}, {names[0]}" if names else "",
        cause=_row_cause(one, bad) if names else "",
        action=QUANTIZE_AGAIN if names else "",
        details=tuple(names[1:]),
    )


def _row_cause(one: JudgedWeight, bad: np.ndarray) -> str:
    rows = one.weight.values[bad]
    alike = len(bad) - len(np.unique(rows, axis=0))
    text = f"{len(bad)} rows of the embedding are not those of the model"
    if not np.any(rows):
        return f"{text}: they are zero"
    return f"{text}: they collapsed, {alike + 1} of them are equal" if alike else f"{text}: too coarse, or overwritten"


# --- activations (Q04) -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ActivationScale:
    """Scale and zero point that a static graph gives an activation, and the range they leave."""

    file: str
    name: str
    scale: float
    low: float
    high: float


def activation_scales(file: str, model: ModelProto, folder: Path) -> list[ActivationScale]:
    """Every QuantizeLinear of a computed value whose scale is stored, in the main graph."""
    scope, found = main_scope(model), []
    for node in scope.nodes:
        if node.op_type == "QuantizeLinear" and scope.constant(node.input[0]) is None and scope.constant(node.input[1]):
            found.append(_activation(file, scope, node, folder))
    return found


def _activation(file: str, scope, node: NodeProto, folder: Path) -> ActivationScale:
    scale = float(numpy_helper.to_array(scope.constant(node.input[1]), str(folder)).reshape(-1)[0])
    point = numpy_helper.to_array(scope.constant(node.input[2]), str(folder)) if len(node.input) > 2 else np.uint8(0)
    bounds, zero = np.iinfo(point.dtype), int(point.reshape(-1)[0])
    return ActivationScale(file, node.input[0], scale, (bounds.min - zero) * scale, (bounds.max - zero) * scale)


@dataclass(frozen=True)
class ObservedRange:
    """What an activation really was on some sentences: extremes, and the share of values outside of its range."""

    low: float
    high: float
    clipped: float


def activations_fit(
    scales: Sequence[ActivationScale], observed: Mapping[tuple[str, str], ObservedRange], calibration: str | None
) -> Finding:
    """Hold calibrated ranges against what activations are on other sentences (fault Q04).

    Args:
        scales: of every file.
        observed: (file, activation) -> what it was.
        calibration: the recipe's; ``minmax`` clips next to nothing, the others on purpose a little.
    """
    problems = []
    for one in scales:
        seen = observed.get((one.file, one.name))
        if problem := _scale_problem(one, seen, calibration):
            problems.append(f"{one.file}: {one.name}: {problem}")
    clipped = max((seen.clipped for seen in observed.values()), default=0.0)
    return Finding(
        check="calibrated ranges fit the activations of other sentences",
        verdict=Verdict.FAIL if problems else Verdict.PASS,
        measured=clipped,
        limit=ACTIVATION_CLIPPED_SHARE,
        unit="share of an activation's values outside of its range, the largest",
        compared=len(observed),
        expected=len(scales),
        where=problems[0] if problems else "",
        cause="a range lost a side, or a scale is off: values are cut off or fall on a few levels" if problems else "",
        action="Calibrate again with at least 150 sentences like those to be translated." if problems else "",
        details=tuple(problems[1:_SHOWN]),
    )


def _scale_problem(one: ActivationScale, seen: ObservedRange | None, calibration: str | None) -> str:
    if not (np.isfinite(one.scale) and 0 < one.scale < ACTIVATION_SCALE_ABOVE):
        return f"its scale is {one.scale}"
    if seen is None:
        return ""
    text = f"its range is {one.low:.3g} to {one.high:.3g}, its values reach from {seen.low:.3g} to {seen.high:.3g}"
    if seen.clipped > ACTIVATION_CLIPPED_SHARE:
        return f"{text}, {seen.clipped:.1%} are cut off"
    # Low and high bounds are compared apart: a range may have lost one side only.
    room = max(one.high - one.low, 1e-12)
    beyond = max(seen.high - one.high, one.low - seen.low) / room
    if calibration == MINMAX and beyond > ACTIVATION_OVERSHOOT:
        return f"{text}, {beyond:.0%} of the range beyond its end"
    if max(seen.high, 0) - min(seen.low, 0) < ACTIVATION_UNUSED_SHARE * room:
        return f"{text}: most levels are never used"
    return ""


def all_finite(outputs: Mapping[str, np.ndarray], check: str) -> Finding:
    """Require finite values everywhere."""
    bad = [name for name, array in outputs.items() if not np.isfinite(array).all()]
    return Finding(
        check=check,
        verdict=Verdict.FAIL if bad else Verdict.PASS,
        compared=len(outputs),
        expected=len(outputs),
        where=bad[0] if bad else "",
        cause="values are not finite" if bad else "",
        action="Look for a scale of zero, or of infinity." if bad else "",
    )


# --- calibration sentences (Q04) -------------------------------------------------------------------------------------


def calibration_is_sound(record: Mapping, evaluation: Mapping[str, str]) -> list[Finding]:
    """Look at the sentences that a set was calibrated with: enough, long enough, and none that it is judged by.

    Args:
        record: the manifest's fingerprint of the calibration file.
        evaluation: place, as ``file: id``, -> a sentence that quality is judged by.
    """
    texts, long = list(record["texts"]), int(record[f"over_{CALIBRATION_LONG_WORDS}_words"])
    different = len(set(texts))
    enough = different >= CALIBRATION_SENTENCES
    hashes = {hashlib.sha256(normalised(text).encode()).hexdigest()[:16]: place for place, text in evaluation.items()}
    shared = [hashes[text] for text in texts if text in hashes]
    file, share = record["file"], long / max(1, len(texts))
    fix = "Write other calibration sentences, and quantize again."
    return [
        Finding(
            check=f"calibration has at least {CALIBRATION_SENTENCES} different sentences",
            verdict=Verdict.PASS if enough else Verdict.FAIL,
            measured=float(different),
            limit=float(CALIBRATION_SENTENCES),
            unit="different sentences",
            passing_limit=float(different),
            where=file,
            cause="" if enough else f"{different} sentences do not show an activation's range",
            action="" if enough else fix,
        ),
        Finding(
            check=f"at least {CALIBRATION_LONG_SHARE:.0%} of the calibration sentences are long",
            verdict=Verdict.PASS if share >= CALIBRATION_LONG_SHARE else Verdict.FAIL,
            measured=share,
            limit=CALIBRATION_LONG_SHARE,
            unit=f"of the sentences have more than {CALIBRATION_LONG_WORDS} words",
            passing_limit=share,
            where=f"{file}: {long} of {len(texts)}",
            cause="" if share >= CALIBRATION_LONG_SHARE else "ranges at late positions were hardly seen",
            action="" if share >= CALIBRATION_LONG_SHARE else fix,
        ),
        Finding(
            check="no calibration sentence is one that quality is judged by",
            verdict=Verdict.FAIL if shared else Verdict.PASS,
            measured=float(len(shared)),
            limit=0.0,
            unit="sentences in common",
            passing_limit=float(len(shared)),
            compared=len(evaluation),
            expected=len(evaluation),
            where=f"{file}, also {shared[0]}" if shared else "",
            cause="the set was tuned on what it is judged by" if shared else "",
            action=fix if shared else "",
            details=tuple(shared[1:_SHOWN]),
        ),
    ]
