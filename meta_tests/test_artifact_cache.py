"""The artifact cache: one export for two processes at once, and through kills, damage and other options."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

from exporters.cache import cached_set
from exporters.export import ExportOptions
from harness.contract.errors import ExitCode
from harness.contract.manifest import MANIFEST, Manifest
from harness.reference.checkpoint import Checkpoint
from harness.settings import EMBEDDED_MODEL
from meta_tests.commands import run_suites, start

# A small suite that needs every test's set.
SUITE = "suites/export/test_inputs_and_outputs.py"


def arguments(cache: Path, report: Path) -> tuple:
    """A run of the suite on one subject, with a cache of its own."""
    one_subject = ("--layout", "compact", "--exporter", "torchscript")
    return (SUITE, *one_subject, "--artifact-cache", cache, "--report", report, "-p", "no:cacheprovider")


def start_run(cache: Path, report: Path, *further: object) -> subprocess.Popen:
    return start("-m", "pytest", *arguments(cache, report), *further)


def watch(cache: Path, *runs: subprocess.Popen) -> set[str]:
    """Wait for the runs; return the names of all unfinished folders that were seen meanwhile: one per export."""
    seen: set[str] = set()
    while any(run.poll() is None for run in runs):
        seen |= {path.name for path in cache.glob(".*.partial-*")}
        time.sleep(0.01)
    for run in runs:
        stdout, _ = run.communicate()
        assert run.returncode == ExitCode.INCOMPLETE, stdout.decode()
        assert b" passed" in stdout
        assert b" failed" not in stdout
    return seen


def the_set(cache: Path) -> Path:
    """The one set in a cache, whole and with nothing unfinished beside it."""
    (folder,) = (path for path in cache.iterdir() if path.is_dir())
    assert not folder.name.startswith(".")
    assert Manifest.read(folder).changed_files(folder) == []
    return folder


@pytest.fixture
def cache(tmp_path):
    """An empty cache, removed after the test."""
    folder = tmp_path / "cache"
    folder.mkdir()
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def filled(cache, exported) -> Path:
    """A copy of the cached compact set in a cache of its own: the folder of the set."""
    source = exported("compact")
    return Path(shutil.copytree(source, cache / source.name))


def test_two_runs_at_once_export_once(cache, tmp_path):
    seen = watch(cache, start_run(cache, tmp_path / "one"), start_run(cache, tmp_path / "two"))
    assert len(seen) == 1, seen
    the_set(cache)


def test_two_workers_export_once(cache, tmp_path):
    seen = watch(cache, start_run(cache, tmp_path / "reports", "-n", "2"))
    assert len(seen) == 1, seen
    the_set(cache)


def test_a_killed_export_is_cleaned_up_and_made_again(cache, tmp_path):
    killed = start_run(cache, tmp_path / "killed")
    while not list(cache.glob(".*.partial-*/encoder.onnx")):
        assert killed.poll() is None, killed.stdout.read()
        time.sleep(0.005)
    os.killpg(killed.pid, signal.SIGKILL)
    killed.communicate()
    (left,) = cache.glob(".*.partial-*")
    assert left.name in watch(cache, start_run(cache, tmp_path / "again"))
    assert not left.exists()
    the_set(cache)


def _cut(folder: Path) -> None:
    os.truncate(folder / "decoder.onnx", 1000)


def _lose(folder: Path) -> None:
    (folder / "vocab.json").unlink()


def _flip(folder: Path) -> None:
    data = bytearray((folder / "encoder.onnx").read_bytes())
    data[len(data) // 2] ^= 1
    (folder / "encoder.onnx").write_bytes(bytes(data))


def _spoil_manifest(folder: Path) -> None:
    (folder / MANIFEST).write_text("{")


DAMAGE = {
    "a graph cut": _cut,
    "a file lost": _lose,
    "a byte flipped": _flip,
    "the manifest spoiled": _spoil_manifest,
}


@pytest.mark.parametrize("case", DAMAGE)
def test_a_damaged_set_is_made_again(case, filled):
    promised = (filled / MANIFEST).read_bytes()
    DAMAGE[case](filled)
    again = cached_set(Checkpoint.open(str(EMBEDDED_MODEL)), ExportOptions("compact"), filled.parent)
    assert again == the_set(filled.parent) == filled
    assert (again / MANIFEST).read_bytes() == promised


def test_a_damaged_set_is_made_again_through_the_command_line(filled, tmp_path):
    _cut(filled)
    outcome = run_suites(*arguments(filled.parent, tmp_path))
    assert " failed" not in outcome.stdout
    assert the_set(filled.parent) == filled


def _with_generation(folder: Path) -> Checkpoint:
    path = folder / "generation_config.json"
    path.write_text(json.dumps({**json.loads(path.read_text(encoding="utf-8")), "num_beams": 2}), encoding="utf-8")
    return Checkpoint.open(str(folder))


# options that need a set of their own
OTHER_OPTIONS = {
    "layout": ExportOptions("single"),
    "opset": ExportOptions("compact", opset=16),
    "target runtime": ExportOptions("compact", target_ort="1.17"),
    "tracing sizes": ExportOptions("compact", variant=1),
}


@pytest.fixture
def exports(monkeypatch) -> list[str]:
    """Names of the folders that ``cached_set`` had exported, by an export that writes nothing but says so."""
    names: list[str] = []
    monkeypatch.setattr("exporters.cache.export", lambda checkpoint, folder, options: names.append(folder.name))
    return names


@pytest.mark.parametrize("option", OTHER_OPTIONS)
def test_another_option_is_another_set(option, filled, exports):
    checkpoint = Checkpoint.open(str(EMBEDDED_MODEL))
    assert cached_set(checkpoint, ExportOptions("compact"), filled.parent) == filled
    assert exports == []
    other = cached_set(checkpoint, OTHER_OPTIONS[option], filled.parent)
    assert exports == [other.name]
    assert other != filled


def test_the_default_opset_is_the_same_set_when_named(filled, exports):
    options = ExportOptions("compact", opset=ExportOptions("compact").resolved_opset())
    assert cached_set(Checkpoint.open(str(EMBEDDED_MODEL)), options, filled.parent) == filled
    assert exports == []


def test_another_generation_config_is_another_set(filled, exports, model_copy):
    other = cached_set(_with_generation(model_copy()), ExportOptions("compact"), filled.parent)
    assert exports == [other.name]
    assert other != filled
