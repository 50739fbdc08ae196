"""A runtime-only stack, played by blocking torch, finds what is changed in a recording on disk."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from harness.recording import FACTS, SET, TENSORS
from meta_tests.commands import run_suites
from meta_tests.faults import reseal
from meta_tests.faults_runtime import plant_weight_perturbed

STACK = "ort132"


@pytest.fixture(scope="module")
def without_torch(tmp_path_factory) -> Path:
    """A folder for PYTHONPATH in which every Python starts without torch and transformers, as runtime-only stacks
    do."""
    folder = tmp_path_factory.mktemp("without-torch")
    # None in sys.modules: find_spec finds nothing, and an import raises ModuleNotFoundError.
    (folder / "sitecustomize.py").write_text("import sys\n\nsys.modules.update(torch=None, transformers=None)\n")
    return folder


@pytest.fixture(scope="module")
def recorded(tmp_path_factory) -> Iterator[Path]:
    """A recording made by the torch stack's own command."""
    cache = tmp_path_factory.mktemp("recorded")
    done = run_suites(
        "suites/upgrade", "--layout", "compact", "--exporter", "torchscript", "--artifact-cache", cache,
        report=cache / "report",
    )  # fmt: skip
    assert done.code == 3, done.output
    yield next((cache / "recorded").glob(f"*/*/{FACTS}")).parent
    shutil.rmtree(cache, ignore_errors=True)


def _move_one_logit(folder: Path) -> None:
    with np.load(folder / TENSORS) as stored:
        tensors = {name: stored[name].copy() for name in stored.files}
    tensors["logits.3.1"][2, 5] += 1e-3
    np.savez_compressed(folder / TENSORS, **tensors)


def _edit_one_id(folder: Path) -> None:
    facts = json.loads((folder / FACTS).read_text(encoding="utf-8"))
    facts["decoded"][4]["ids"][3] += 1
    (folder / FACTS).write_text(json.dumps(facts), encoding="utf-8")


def _perturb_the_decoder(folder: Path) -> None:
    plant_weight_perturbed(folder / SET)
    reseal(folder / SET)


# name -> what is changed in the recording, and the words that must tell it.
RECORDING_FAULTS: dict[str, tuple[Callable[[Path], None], tuple[str, ...]]] = {
    "V01-logit-moved": (
        _move_one_logit,
        ("logits equal those recorded", "first: batch 1, step 3, logits[2, 5]: 0.001 apart"),
    ),
    "V01-id-edited": (
        _edit_one_id,
        ("translations equal those recorded", "1 sentences changed with the runtime", "first at step 3"),
    ),
    "V01-weights-changed": (
        _perturb_the_decoder,
        ("first: batch 0, step 0, logits", "the drift stays without graph optimisation"),
    ),
}


def _planted(recorded: Path, place: Path, name: str, plant: Callable[[Path], None]) -> None:
    """A copy of the recording under a name of its own, with something changed."""
    folder = Path(shutil.copytree(recorded, place / "recorded" / STACK / name))
    facts = json.loads((folder / FACTS).read_text(encoding="utf-8"))
    facts.update(stack=STACK, subject=name)
    (folder / FACTS).write_text(json.dumps(facts), encoding="utf-8")
    plant(folder)


def test_a_runtime_only_stack_finds_every_change_of_a_recording(recorded, without_torch, tmp_path, subtests):
    """All in one run, beside an unchanged copy that has to pass."""
    _planted(recorded, tmp_path, "sound", lambda folder: None)
    for name, (plant, _) in RECORDING_FAULTS.items():
        _planted(recorded, tmp_path, name, plant)
    done = run_suites("suites", "--artifact-cache", tmp_path, report=tmp_path / "report", python_path=without_torch)
    shutil.rmtree(tmp_path / "recorded")
    assert done.code == 1, done.output
    assert "HOLD (runtime upgrade only): 3 of 4 checks failed" in done.stdout
    assert "Traceback" not in done.output
    results = next((tmp_path / "report").glob("*/results.json"))
    checks = {c["id"]: c for c in json.loads(results.read_text(encoding="utf-8"))["checks"]}
    for name, (_, words) in {"sound": (None, ()), **RECORDING_FAULTS}.items():
        with subtests.test(name):
            check = next(check for id, check in checks.items() if id.endswith(f"[{STACK}-{name}]"))
            assert check["verdict"] == ("fail" if words else "pass"), check
            told = json.dumps(check["findings"], ensure_ascii=False)
            assert [word for word in words if word not in told] == [], told


def test_a_sound_recording_alone_releases_the_runtime(recorded, without_torch, tmp_path):
    _planted(recorded, tmp_path, "sound", lambda folder: None)
    done = run_suites("suites", "--artifact-cache", tmp_path, report=tmp_path / "report", python_path=without_torch)
    shutil.rmtree(tmp_path / "recorded")
    assert done.code == 0, done.output
    assert "RELEASE (runtime upgrade only): 1 checks passed" in done.stdout


def test_without_a_recording_the_user_reads_how_to_make_one(without_torch, tmp_path):
    done = run_suites("suites", "--artifact-cache", tmp_path, report=tmp_path / "report", python_path=without_torch)
    assert done.code == 4, done.output
    assert "no recorded artifact set yet" in done.words
    assert "`tox -e ort132`, or `pytest suites/upgrade` where torch is installed" in done.words
    assert "Traceback" not in done.output
