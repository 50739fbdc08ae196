"""Is every file of the set valid, unchanged, and made the same way twice?"""

from __future__ import annotations

import subprocess
import sys

from harness.checks.graph.files import infers_shapes, only_inference, passes_checker
from harness.checks.graph.folder import nothing_changed, nothing_unlisted, same_files, tracer_was_silent
from harness.plugin import not_applicable
from harness.settings import ROOT

NO_MANIFEST = "a set made elsewhere has no manifest"


def test_the_onnx_checker_accepts_every_file(subject, graphs, judge):
    judge(*(passes_checker(graph.path) for graph in graphs))


def test_strict_shape_inference_accepts_every_file(subject, graphs, judge, tmp_path):
    judge(*(infers_shapes(graph.path, graph.model, tmp_path / graph.file) for graph in graphs))


def test_no_operator_of_training_chance_or_loops(subject, graphs, judge):
    judge(*(only_inference(graph.file, graph.model, graph.branch_flag) for graph in graphs))


def test_files_are_those_of_the_manifest(subject, artifacts, judge):
    if artifacts.manifest is None:
        not_applicable(NO_MANIFEST)
    judge(nothing_changed(artifacts.manifest.changed_files(artifacts.folder), len(artifacts.manifest.files)))


def test_no_graph_beside_those_of_the_layout(subject, artifacts, judge):
    judge(nothing_unlisted([path.name for path in artifacts.others]))


def test_the_tracer_warned_of_nothing_unknown(subject, artifacts, judge):
    if artifacts.manifest is None:
        not_applicable(NO_MANIFEST)
    judge(tracer_was_silent(artifacts.manifest.unknown_warnings))


def test_a_second_export_is_byte_identical(subject, settings, checkpoint, artifacts, judge, tmp_path):
    """Made in a process of its own, so that neither counters nor hash seeds are shared."""
    if subject.folder is not None:
        not_applicable("this run did not export the set")
    again = tmp_path / "again"
    command = [sys.executable, "-m", "exporters", str(checkpoint.folder.resolve()), "--out", str(again)]
    command += ["--layout", subject.layout, "--exporter", subject.exporter, "--precision", subject.precision]
    command += ["--recipes", str(settings.recipes.resolve()), "--calibration", str(settings.calibration.resolve())]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stderr}"
    judge(same_files(artifacts.folder, again, [path.name for path in artifacts.files.values()]))
