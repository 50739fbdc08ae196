"""Is a quantized set what its recipe says, are its weights still the model's, and can this CPU run it?

Quality is another question: suites/quality and suites/golden. These checks say which tensor broke it.
"""

from __future__ import annotations

import dataclasses

import numpy as np
import onnxruntime
import pytest

from exporters.shared_weights import graph_bytes
from harness.checks.graph.quantization import (
    activations_fit,
    all_finite,
    calibration_is_sound,
    enough_nodes,
    no_float_copy,
    small_enough,
    weights_survive,
)
from harness.checks.graph.quantized import LOOKUP, PRODUCT
from harness.checks.graph.running import refused
from harness.checks.integer import FULL, REDUCED, multiplies_exactly
from harness.contract.errors import InputError
from harness.contract.finding import Finding, Verdict
from harness.contract.limits import FLIP_MARGIN, LOGITS_FAIL_BELOW_DB
from harness.diagnosis.quantization import rank_weights, signal_to_noise
from harness.plugin import not_applicable
from harness.report.context import instruction_sets
from harness.runtime.artifact_model import ArtifactModel
from harness.runtime.session import OPTIMISATION_LEVELS, SessionProfile, named_profile

NO_SCALE = "its scale was not found or contradicts its shape, or its operator is none that this project reads"


def test_as_many_nodes_are_quantized_as_the_recipe_says(subject, artifacts, quantized, recipe, judge):
    counts = artifacts.manifest.quantization["files"] if recipe else {}
    judge(
        *(
            enough_nodes(
                file.file, file.uses, counts[file.file]["expected"] if counts else None, recipe and recipe.method
            )
            for file in quantized
        )
    )


def test_no_float_copy_of_a_quantized_weight_is_left(subject, quantized, judge):
    judge(*(no_float_copy(file.file, file.model, file.path.parent, file.uses) for file in quantized))


def test_the_set_is_as_small_as_its_weights_make_it(subject, artifacts, quantized, recipe, judge):
    sizes = {file.file: graph_bytes(file.path) for file in quantized}
    counts = artifacts.manifest.quantization["files"] if recipe else {}
    float32 = {name: entry["float32_bytes"] for name, entry in counts.items()}
    judge(small_enough([use for file in quantized for use in file.uses], sizes, float32 or None))


def test_every_weight_is_pytorchs_rounded(subject, quantized, judged, bits_of, piece, examined, judge):
    """Tensor by tensor, channel by channel, and the embedding row by row: which one was damaged."""
    findings = [_unread(file) for file in quantized]
    for file in quantized:
        if judged[file.file]:
            findings += weights_survive(file.file, judged[file.file], bits_of(file.role), piece)
    judge(*_explained(findings, judged, examined))


def _unread(file) -> Finding:
    unread = [use for use in file.uses if use.kind != "float" and use.weight is None]
    return Finding(
        check=f"{file.file}: every quantized weight can be read",
        verdict=Verdict.INCONCLUSIVE if unread else Verdict.PASS,
        where=f"{file.file}, {unread[0].node}: {unread[0].stored}" if unread else "",
        cause=NO_SCALE if unread else "",
        action="Rely on the logits, and on suites/quality." if unread else "",
    )


def _explained(findings: list[Finding], judged, examined) -> list[Finding]:
    """Findings, the first failed one with what the experiments say."""
    first = next((index for index, finding in enumerate(findings) if finding.failed), None)
    if first is None:
        return findings
    report, finding = examined(), findings[first]
    findings[first] = dataclasses.replace(
        finding,
        cause="; ".join(filter(None, (finding.cause, report.cause))),
        action=report.action or finding.action,
        details=(*finding.details, *report.lines, *rank_weights(judged)),
    )
    return findings


def test_the_pad_row_of_the_embedding_stays_zero(subject, artifacts, checkpoint, quantized, judge):
    """After dequantization: Marian starts decoding from it."""
    if checkpoint.family != "marian":
        not_applicable("only Marian starts decoding from the row of pad")
    pad, findings = artifacts.generation.pad_token_id, []
    for file in quantized:
        for use in file.uses:
            if use.purpose == LOOKUP and use.weight is not None:
                findings.append(_pad_row(file.file, use.weight, pad))
    if not findings:
        not_applicable("the lookups are in float: see suites/export")
    judge(*findings)


def _pad_row(file: str, weight, pad: int) -> Finding:
    largest = float(np.abs(weight.values[pad]).max())
    return Finding(
        check=f"{file}: the dequantized pad row is zero",
        verdict=Verdict.FAIL if largest else Verdict.PASS,
        measured=largest,
        limit=0.0,
        unit="largest absolute value",
        passing_limit=largest,
        where=f"{file}: {weight.name}[{pad}]" if largest else "",
        cause="zero is not among the table's levels, or the row was overwritten" if largest else "",
        action="Quantize the table with a zero point that is a level." if largest else "",
    )


def test_calibrated_ranges_fit_other_sentences(subject, scales, observed, recipe, judge):
    if not scales:
        not_applicable("no activation has a stored scale")
    judge(activations_fit(scales, observed, recipe.calibration if recipe else None))


def test_the_calibration_set_is_sound(subject, artifacts, quantized, recipe, evaluation, judge):
    """Enough sentences, enough long ones, none that quality is judged by (fault Q04)."""
    if recipe is None:
        not_applicable("a set made elsewhere does not say what it was calibrated with")
    if recipe.calibration is None:
        not_applicable("the recipe does not calibrate")
    judge(*calibration_is_sound(artifacts.manifest.quantization["calibration"], evaluation))


@pytest.mark.parametrize("level", OPTIMISATION_LEVELS)
def test_every_optimisation_level_runs_it(subject, level, settings, artifacts, quantized, forced, judge):
    check = f"optimisation level {level} loads the set and gives finite values"
    try:
        profile = dataclasses.replace(named_profile("suites", settings.providers), optimisation=level)
        model = ArtifactModel(artifacts, profile)
        logits = forced.logits(model)
    except InputError as error:
        judge(refused(check, error))
        return
    judge(all_finite({f"step {step}": array for step, array in enumerate(logits)}, check))


def test_logits_stay_near_those_in_float32(
    subject, artifacts, quantized, opened, float32_model, forced, bits_of, judged, examined, judge
):
    """Forced through the same tokens. Which other words a set would choose is reported, with the float32 margin."""
    expected, found = (forced.logits(model) for model in (float32_model, opened(artifacts)))
    value, limit = signal_to_noise(expected, found), LOGITS_FAIL_BELOW_DB[bits_of("decoder")]
    near = Finding(
        check="logits of forced steps stay near those of the float32 set",
        verdict=Verdict.PASS if value >= limit else Verdict.FAIL,
        measured=value,
        limit=limit,
        unit="dB signal-to-noise",
        passing_limit=value,
        cause="" if value >= limit else "the set is not the model any more",
        action="" if value >= limit else "Read which tensors and nodes lose most.",
    )
    judge(*_explained([near], judged, examined), _flips(expected, found, forced))


def _flips(expected: np.ndarray, found: np.ndarray, forced) -> Finding:
    """Where the best token differs, by how much the float32 set preferred its own."""
    best, other = expected.argmax(axis=-1), found.argmax(axis=-1)
    margins = {
        (int(step), int(row)): float(expected[step, row, best[step, row]] - expected[step, row, other[step, row]])
        for step, row in np.argwhere(best != other)
    }
    ranked = sorted(margins.items(), key=lambda pair: -pair[1])
    lines = [f"{forced.names[row]}, step {step}: margin {margin:.3g}" for (step, row), margin in ranked]
    wide = bool(ranked) and ranked[0][1] > FLIP_MARGIN
    return Finding(
        check="tokens flip only where float32 nearly chose the other",
        verdict=Verdict.WARN if wide else Verdict.PASS,
        measured=ranked[0][1] if ranked else 0.0,
        limit=FLIP_MARGIN,
        unit=f"logits, the largest margin of {len(ranked)} flips in {best.size} steps",
        passing_limit=ranked[0][1] if ranked else 0.0,
        where=lines[0] if wide else "",
        cause="another word was chosen against a clear preference (fault Q07)" if wide else "",
        action="Read these sentences in suites/quality." if wide else "",
        details=tuple(lines[:8]),
    )


def test_this_cpu_multiplies_integers_exactly(subject, settings, quantized, judge):
    """255 x 127 pairs and random numbers, u8 by s8, for one row and several, against numpy (fault Q03)."""
    integers = [u.weight.largest for f in quantized for u in f.uses if u.weight and u.purpose == PRODUCT]
    largest = max(integers, default=FULL)

    def run(model: bytes, feeds) -> np.ndarray:
        session = onnxruntime.InferenceSession(model, SessionProfile().options(), providers=list(settings.providers))
        return session.run(None, dict(feeds))[0]

    judge(
        *(
            multiplies_exactly(run, weights, largest > REDUCED or weights == REDUCED, instruction_sets())
            for weights in (FULL, REDUCED)
        )
    )
