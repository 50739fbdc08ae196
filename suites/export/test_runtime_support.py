"""Can every onnxruntime that has to load the set do so?"""

from __future__ import annotations

import onnxruntime

from harness.checks.graph.files import is_supported
from harness.contract.runtimes import runtime
from harness.plugin import not_applicable


def test_the_oldest_target_runtime_has_what_every_file_needs(subject, artifacts, graphs, judge):
    if artifacts.manifest is None:
        not_applicable("a set made elsewhere names no oldest runtime")
    oldest = runtime(artifacts.manifest.target_ort)
    judge(*(finding for graph in graphs for finding in is_supported(graph.file, graph.model, oldest, "oldest target")))


def test_the_installed_runtime_has_what_every_file_needs(subject, graphs, judge):
    installed = runtime(onnxruntime.__version__)
    judge(*(finding for graph in graphs for finding in is_supported(graph.file, graph.model, installed, "installed")))
