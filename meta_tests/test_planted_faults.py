"""Every suite, run through the real command line, finds the faults that are planted in files on disk.

Faults of one suite are planted in waves: one fault in each of a run's six sets, so that one start of the command line
answers for six faults, and every layout and exporter has its share. The sets lie in an artifact cache of their own,
their manifests in agreement with the files, so that the run takes them for its own exports.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from harness.contract.finding import Finding, Verdict
from harness.contract.layouts import LAYOUTS
from harness.settings import ROOT
from meta_tests.commands import Outcome, run, run_suites
from meta_tests.faults import FAULTS, reseal
from meta_tests.faults_runtime import RUNTIME_FAULTS

EXPORTERS = ("torchscript", "dynamo")
# Short sentences with the words of the planted vocabulary fault.
SENTENCES = ("open-valve\tOpen the valve.", "pumps\tThe second pump is ready.", "alice\tAlice closed the door at 9.")

# Fault of suites/export -> the set it is planted in. "changed-file" is missing: the cache would make such a set again.
EXPORT_SUBJECTS = {
    "invalid-file": "compact-by-torchscript",
    "contradicting-shape": "pair-by-torchscript",
    "F03-ir-version": "single-by-torchscript",
    "F03-opset": "pair-by-dynamo",
    "F11-operator": "compact-by-dynamo",
    "F04-refused": "single-by-dynamo",
    "G15-dropout": "pair-by-torchscript",
    "F09-loop": "compact-by-dynamo",
    "F09-branch": "pair-by-dynamo",
    "F09-unrolled": "single-by-torchscript",
    "unlisted-file": "single-by-dynamo",
    "unknown-warning": "compact-by-torchscript",
    "renamed-output": "single-by-torchscript",
    "outputs-reordered": "single-by-dynamo",
    "F07-fixed-axis": "pair-by-torchscript",
    "F10-hidden-only": "compact-by-torchscript",
    "G08-cross-again": "pair-by-dynamo",
    "G01-mask-unused": "compact-by-dynamo",
    "G01-mask-replaced": "pair-by-torchscript",
    "G01-mask-cut": "pair-by-dynamo",
    "G02-cross-mask-cut": "single-by-dynamo",
    "G03-causal-mask-cut": "compact-by-dynamo",
    "S01-baked-source": "compact-by-torchscript",
    "S04-baked-batch": "single-by-torchscript",
    "S06-structure": "pair-by-torchscript",
    "not-deterministic": "single-by-torchscript",
    "F01-twice": "pair-by-dynamo",
    "F01-transposed": "compact-by-torchscript",
    "F01-two-files": "single-by-dynamo",
    "G09-logits-bias": "compact-by-dynamo",
    "weight-changed": "pair-by-torchscript",
    "G10-scale-doubled": "pair-by-dynamo",
    "G16-pad-row": "single-by-dynamo",
    "G13-level": "single-by-torchscript",
}


@dataclass(frozen=True)
class Planted:
    """A fault, where it is planted, and what must come of it; see ``Fault`` and ``RuntimeFault``."""

    name: str
    suite: str
    subject: str
    plant: object
    test: str
    words: tuple[str, ...]
    verdict: str = "fail"
    parameter: str = ""

    @property
    def expression(self) -> str:
        """What ``-k`` has to be given to run its test on its set."""
        return " and ".join(filter(None, (self.test, self.subject, self.parameter)))


def _all_planted() -> list[Planted]:
    exports = [
        Planted(name, "export", EXPORT_SUBJECTS[name], fault.plant, fault.test, fault.words, fault.verdict)
        for name, fault in FAULTS.items()
        if name in EXPORT_SUBJECTS
    ]
    others = [
        Planted(name, f.suite, f.subject, f.plant, f.test, f.words, parameter=f.parameter)
        for name, f in RUNTIME_FAULTS.items()
    ]
    return exports + others


def _waves() -> dict[str, list[Planted]]:
    """Suite and number -> faults that one run is to find: never two in one set."""
    waves: dict[str, list[Planted]] = {}
    for planted in _all_planted():
        number = 1
        while any(other.subject == planted.subject for other in waves.get(f"{planted.suite}-{number}", [])):
            number += 1
        waves.setdefault(f"{planted.suite}-{number}", []).append(planted)
    return waves


WAVES = _waves()
# Options that keep a run short.
OPTIONS = {"shapes": ("--max-examples", "10")}
# The harness starts as many threads as there are cores for it; several runs at once share them, as its workers would.
SHARED = {"PYTEST_XDIST_WORKER_COUNT": os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1")}
# A run answers for six sets, on machines that do other work as well.
TIMEOUT = 600


@pytest.fixture
def sets(exported, tmp_path) -> Iterator[Path]:
    """An empty artifact cache, removed after the test: six sets hold hundreds of megabytes."""
    folder = tmp_path / "cache"
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def sentences(tmp_path) -> Path:
    """A sentence file that decodes fast."""
    path = tmp_path / "sentences.jsonl"
    entries = (dict(zip(("id", "source"), line.split("\t"))) for line in SENTENCES)
    path.write_text("".join(json.dumps(entry) + "\n" for entry in entries), encoding="utf-8")
    return path


def _copy(exported, subject: str, cache: Path) -> Path:
    source = exported(*subject.split("-by-"))
    return Path(shutil.copytree(source, cache / source.name))


def _run_wave(wave: str, cache: Path, sentences: Path) -> tuple[Outcome, list[dict]]:
    """The suite on a cache, restricted to the tests of a wave: the outcome, and the checks of ``results.json``."""
    suite = wave.rpartition("-")[0]
    expression = " or ".join(f"({planted.expression})" for planted in WAVES[wave])
    report = cache.parent / "report"
    done = run_suites(
        f"suites/{suite}", "-k", expression, "--artifact-cache", cache, "--sentences", sentences,
        *OPTIONS.get(suite, ()), report=report, timeout=TIMEOUT, **SHARED,
    )  # fmt: skip
    return done, _checks(report, done)


def _checks(report: Path, done: Outcome) -> list[dict]:
    found = list(report.glob("*/results.json"))
    assert found, done.output
    return json.loads(found[0].read_text(encoding="utf-8"))["checks"]


def _texts(check: dict) -> list[str]:
    """Findings of a check as the user reads them, with their verdict."""
    texts = []
    for data in check["findings"]:
        figures = {
            name: None if data[name] is None else float(data[name]) for name in ("measured", "limit", "passing_limit")
        }
        texts.append(
            Finding(
                **{**data, **figures, "verdict": Verdict(data["verdict"]), "details": tuple(data["details"])}
            ).text()
        )
    return texts


def _of(planted: Planted, checks: list[dict]) -> list[dict]:
    """The checks that were made of a fault's test on its set."""
    return [
        check
        for check in checks
        if check["subject"] == planted.subject and check["id"].split("::")[1].split("[")[0] == planted.test
    ]


@pytest.mark.parametrize("wave", WAVES)
def test_the_suite_finds_every_fault_of_a_wave(wave, exported, sets, sentences, subtests):
    """Each fault at its own check, with its place and its cause in the words; the run holds the release."""
    for planted in WAVES[wave]:
        folder = _copy(exported, planted.subject, sets)
        planted.plant(folder)
        reseal(folder)
    done, checks = _run_wave(wave, sets, sentences)
    assert done.code == 1, done.output
    assert "HOLD: " in done.stdout
    assert "Traceback" not in done.output, done.output
    for planted in WAVES[wave]:
        with subtests.test(planted.name):
            found = [
                text
                for check in _of(planted, checks)
                if check["verdict"] == planted.verdict
                for text in _texts(check)
                if all(word in text for word in planted.words)
            ]
            assert found, f"{planted.words} not in:\n" + "\n".join(
                f"{check['verdict']}: {check['message']}\n" + "\n".join(_texts(check)) for check in _of(planted, checks)
            )


@pytest.mark.parametrize("wave", [name for name in WAVES if name.endswith("-1")])
def test_sound_sets_pass_the_same_command(wave, exported, sets, sentences):
    """INCOMPLETE, because only a part of the suites was run; but every check passes."""
    for planted in WAVES[wave]:
        _copy(exported, planted.subject, sets)
    done, checks = _run_wave(wave, sets, sentences)
    assert done.code == 3, done.output
    assert "INCOMPLETE: filtered by keyword" in done.stdout
    assert {check["verdict"] for check in checks} <= {"pass", "warn"}, done.output
    assert all(_of(planted, checks) for planted in WAVES[wave])


def test_a_changed_file_is_found_in_a_set_that_is_given(set_copy, tmp_path):
    """Under ``--artifacts``, with the manifest as it was."""
    fault, folder = FAULTS["changed-file"], set_copy("compact")
    fault.plant(folder)
    done = run_suites(
        "suites/export/test_files.py", "-k", fault.test, "--artifacts", folder, report=tmp_path / "report"
    )
    assert done.code == 1, done.output
    assert all(word in done.words for word in fault.words), done.output
    assert done.stdout.rstrip().splitlines()[-1].startswith("HOLD: 1 of 1 checks failed")


@pytest.fixture
def baseline(tmp_path, sentences) -> Path:
    """What PyTorch makes of the sentences, stored by the command."""
    path = tmp_path / "baseline.json"
    done = run(
        "-m", "harness", "baseline", "fixtures/models/tiny-marian-en-zh", "--sentences", sentences, "--out", path
    )
    assert done.code == 0, done.output
    return path


def _edit_baseline(path: Path, change) -> Path:
    data = json.loads(path.read_text(encoding="utf-8"))
    change(data)
    edited = path.with_name("edited.json")
    edited.write_text(json.dumps(data), encoding="utf-8")
    return edited


def _one_token_edited(data: dict) -> None:
    data["rows"][1]["ids"][2] += 1


def _other_weights(data: dict) -> None:
    data["model"]["weights_sha256"] = "0123456789abcdef" * 4


def test_a_baseline_is_held_against_pytorch_and_the_set(baseline, set_copy, tmp_path, subtests):
    """As stored it passes; an edited token names its sentence; a baseline of other weights is refused as such."""
    folder = set_copy("compact")

    def held(file: Path, name: str) -> Outcome:
        return run_suites(
            "suites/decoding/test_baseline.py", "--artifacts", folder, "--baseline", file,
            report=tmp_path / name, timeout=TIMEOUT, **SHARED,
        )  # fmt: skip

    with subtests.test("as stored"):
        done = held(baseline, "stored")
        assert done.code == 3, done.output
        assert {check["verdict"] for check in _checks(tmp_path / "stored", done)} == {"pass"}
    with subtests.test("one token edited"):
        done = held(_edit_baseline(baseline, _one_token_edited), "edited")
        assert done.code == 1, done.output
        failed = [c for c in _checks(tmp_path / "edited", done) if c["verdict"] == "fail"]
        assert [c["id"].split("::")[1] for c in failed] == [
            "test_pytorch_gives_the_baseline",
            "test_the_set_gives_the_baseline[compact-by-torchscript]",
        ]
        assert all(any("pumps, step 2: baseline" in text for text in _texts(check)) for check in failed)
    with subtests.test("of other weights"):
        done = held(_edit_baseline(baseline, _other_weights), "other")
        assert done.code == 1, done.output
        assert "baseline 0123456789abcdef" in done.words
        assert "the baseline is of other weights" in done.words
        assert [
            check["message"] for check in _checks(tmp_path / "other", done) if check["verdict"] == "inconclusive"
        ] == ["blocked: the baseline is of another model or of unlike settings"] * 2


def test_every_question_has_at_least_three_planted_faults():
    from meta_tests.faults_quality import GOLDEN_FAULTS, QUALITY_FAULTS
    from meta_tests.faults_quantization import FAULTS as QUANTIZATION_FAULTS
    from meta_tests.test_planted_recordings import RECORDING_FAULTS

    planted = [p.suite for p in _all_planted()] + ["upgrade"] * len(RECORDING_FAULTS)
    planted += ["quantization"] * len(QUANTIZATION_FAULTS)
    planted += ["golden"] * len(GOLDEN_FAULTS) + ["quality"] * len(QUALITY_FAULTS)
    questions = {path.parent.name for path in (ROOT / "suites").glob("*/test_*.py")}
    assert questions == set(planted)
    assert {question: planted.count(question) for question in questions if planted.count(question) < 3} == {}


def test_every_layout_and_exporter_has_planted_faults():
    wanted = {f"{layout}-by-{exporter}" for layout in LAYOUTS for exporter in EXPORTERS}
    for suite in ("export", "parity", "shapes", "decoding"):
        assert {p.subject for p in _all_planted() if p.suite == suite} == wanted, suite


def test_every_registered_fault_is_planted_and_names_a_test_that_exists():
    assert set(FAULTS) - set(EXPORT_SUBJECTS) == {"changed-file"}
    assert set(EXPORT_SUBJECTS) <= set(FAULTS)
    functions = {
        (path.parent.name, name)
        for path in (ROOT / "suites").glob("*/test_*.py")
        for name in re.findall(r"^def (test_\w+)\(", path.read_text(encoding="utf-8"), re.MULTILINE)
    }
    assert {(p.suite, p.test) for p in _all_planted()} - functions == set()


def test_every_check_of_the_export_suite_has_a_planted_fault():
    """Every test of suites/export that a fault can be planted for; the others need another machine or runtime."""
    text = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "suites" / "export").glob("test_*.py"))
    tests = set(re.findall(r"^def (test_\w+)\(", text, re.MULTILINE))
    assert tests - {fault.test for fault in FAULTS.values()} == {
        "test_loads_from_a_folder_with_spaces_and_chinese_characters",
        "test_the_installed_runtime_has_what_every_file_needs",
    }
