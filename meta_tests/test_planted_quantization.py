"""Quantized sets through the real command line: sound recipes pass, and every planted fault is found and named."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from harness.settings import CORE_SENTENCES, EMBEDDED_MODEL
from meta_tests.commands import run, run_suites
from meta_tests.faults import reseal
from meta_tests.faults_quantization import FAULTS
from meta_tests.test_planted_faults import SHARED, TIMEOUT, _checks, _texts

SUITE = "suites/quantization"


def _judged(report: Path, done) -> tuple[set[str], list[str]]:
    """Verdicts of the run's checks, and its failed findings as the user reads them."""
    checks = _checks(report, done)
    return {c["verdict"] for c in checks}, [text for c in checks for text in _texts(c) if ": fail" in text]


@pytest.mark.parametrize("name", FAULTS)
def test_the_suite_finds_the_fault(name, quantized_copy, exported, calibration, tmp_path):
    """At its own check, with the tensor and the cause in the words; the run holds the release."""
    fault, folder = FAULTS[name], quantized_copy(FAULTS[name].precision)
    fault.plant(folder, exported("compact"))
    reseal(folder)
    if fault.elsewhere:
        # Its own config.json takes the manifest's place.
        (folder / "manifest.json").unlink()
        for file in ("config.json", "generation_config.json"):
            shutil.copyfile(EMBEDDED_MODEL / file, folder / file)
    done = run_suites(
        SUITE, "-k", fault.test, "--artifacts", folder, "--calibration", calibration,
        report=tmp_path / "report", timeout=TIMEOUT, **SHARED,
    )  # fmt: skip
    assert done.code == 1, done.output
    assert "HOLD: " in done.stdout
    assert "Traceback" not in done.output, done.output
    failed = _judged(tmp_path / "report", done)[1]
    assert any(all(word in text for word in fault.words) for text in failed), f"{fault.words} not in:\n" + "\n".join(
        failed
    )


@pytest.mark.parametrize("precision", ["int8-dynamic", "int8-static", "int8-weights", "int4-weights"])
def test_sound_recipes_pass(precision, exported, calibration, tmp_path):
    """INCOMPLETE, because only one suite was run; but every check passes."""
    done = run_suites(
        SUITE, "--layout", "compact", "--exporter", "torchscript", "--precision", precision,
        "--calibration", calibration, report=tmp_path / "report", timeout=TIMEOUT, **SHARED,
    )  # fmt: skip
    assert done.code == 3, done.output
    assert _judged(tmp_path / "report", done)[0] <= {"pass", "warn", "not applicable"}, done.output


# What stands in the calibration file -> what the finding says.
BAD_CALIBRATION = {
    "three sentences": (lambda good: good[:3], "3 sentences do not show an activation's range"),
    "short sentences only": (lambda good: good[:40] * 1 + [f"Row {i}." for i in range(150)], "limit 0.2"),
    "an evaluation sentence": (
        lambda good: [*good, json.loads(CORE_SENTENCES.read_text("utf-8").splitlines()[0])["source"].upper() + "  !"],
        "the set was tuned on what it is judged by",
    ),
}


@pytest.mark.parametrize("case", BAD_CALIBRATION)
def test_a_bad_calibration_set_is_found(case, calibration, tmp_path):
    """Made by the exporter from the file, then tested."""
    change, words = BAD_CALIBRATION[case]
    good = [json.loads(line)["source"] for line in calibration.read_text(encoding="utf-8").splitlines()]
    file, folder = tmp_path / "calibration.txt", tmp_path / "set"
    file.write_text("".join(f"{text}\n" for text in change(good)), encoding="utf-8")
    made = run(
        "-m", "exporters", EMBEDDED_MODEL, "--out", folder, "--precision", "int8-static", "--calibration", file,
        timeout=TIMEOUT,
    )  # fmt: skip
    assert made.code == 0, made.output
    done = run_suites(
        SUITE, "-k", "calibration_set", "--artifacts", folder, report=tmp_path / "report", timeout=TIMEOUT, **SHARED
    )
    shutil.rmtree(folder)
    assert done.code == 1, done.output
    assert words in done.words, done.output


# Change of a recipe file -> what the command says.
BAD_RECIPES = {
    "an unknown key": (lambda recipe: recipe.update(colour=1), "unknown key 'colour'"),
    "an unknown key of a side": (lambda recipe: recipe["encoder"].update(bias=True), "unknown key 'bias'"),
    "a missing key": (lambda recipe: recipe["decoder"].pop("per_channel"), "key 'per_channel' is missing"),
    "an unknown method": (lambda recipe: recipe.update(method="magic"), "unknown method 'magic'"),
    "an unknown operator": (lambda recipe: recipe["encoder"].update(operators=["Conv"]), "operator 'Conv'"),
    "bits that the method has not": (lambda recipe: recipe.update(bits=4), "4 bits with method dynamic"),
    "a calibration that is not used": (lambda recipe: recipe.update(calibration="minmax"), "Only `static` calibrates"),
}


@pytest.mark.parametrize("case", BAD_RECIPES)
def test_a_bad_recipe_is_refused_in_one_line(case, own_recipes, tmp_path):
    change, words = BAD_RECIPES[case]
    file = own_recipes("int8-dynamic", change)
    done = run("-m", "exporters", EMBEDDED_MODEL, "--out", tmp_path / "set", "--precision", "mine", "--recipes", file)
    assert done.code == 4, done.output
    assert words in done.words and len(done.stderr.splitlines()) == 1, done.output


def test_a_recipe_of_ones_own_is_applied(own_recipes, tmp_path):
    """Excluded by pattern, per tensor, 7 bits: counted, and within the limits of 7 bits."""

    def change(recipe: dict) -> None:
        recipe["encoder"].update(exclude=["*fc2*"], per_channel=False, reduce_range=True)

    done = run_suites(
        SUITE, "--layout", "compact", "--exporter", "torchscript", "--recipes", own_recipes("int8-dynamic", change),
        "--precision", "mine", "--artifact-cache", tmp_path / "cache", report=tmp_path / "report", timeout=TIMEOUT,
        **SHARED,
    )  # fmt: skip
    folder = next((tmp_path / "cache").glob("compact-torchscript-mine-*/manifest.json"))
    counts = json.loads(folder.read_text(encoding="utf-8"))["quantization"]["files"]["encoder.onnx"]
    shutil.rmtree(tmp_path / "cache")
    assert done.code == 3, done.output
    assert _judged(tmp_path / "report", done)[0] <= {"pass", "warn", "not applicable"}, done.output
    assert counts["expected"] == counts["found"] == 25
    assert len(counts["left_in_float"]) == 4


def test_a_whole_half_left_out_by_the_recipe_is_found(own_recipes, tmp_path):
    """Nothing is missing against the recipe; but the decoder was promised as int8."""
    file = own_recipes("int8-dynamic", lambda recipe: recipe["decoder"].update(operators=[]))
    done = run_suites(
        SUITE, "-k", "as_many_nodes", "--layout", "compact", "--exporter", "torchscript", "--recipes", file,
        "--precision", "mine", "--artifact-cache", tmp_path / "cache", report=tmp_path / "report", timeout=TIMEOUT,
        **SHARED,
    )  # fmt: skip
    shutil.rmtree(tmp_path / "cache")
    assert done.code == 1, done.output
    assert "the recipe leaves the whole file in float" in done.words
