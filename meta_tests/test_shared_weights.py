"""A set whose graphs share one weights file is the same model, and damage to that file is seen."""

from __future__ import annotations

import shutil
import subprocess
import sys

import numpy as np
import onnx
import pytest

from exporters.export import ExportOptions, export
from exporters.quantize import quantization, quantize
from exporters.shared_weights import WEIGHTS_FILE, graph_bytes
from harness.contract.recipes import find_recipe
from harness.runtime.artifact_model import ArtifactModel
from harness.runtime.artifact_set import open_set
from harness.settings import EMBEDDED_MODEL, RECIPES, ROOT


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    """The embedded model's compact set, sharing what an embedding of 8 MB would not be shared for otherwise."""
    folder = tmp_path_factory.mktemp("shared") / "set"
    export(str(EMBEDDED_MODEL), folder, ExportOptions(share_above=1 << 20))
    return folder


def _outputs(folder) -> list[np.ndarray]:
    model = ArtifactModel(open_set(folder))
    ids = np.arange(10, 22, dtype=np.int64).reshape(2, 6)
    state = model.start(model.encode(ids, np.ones_like(ids)))
    return [state.encoder.hidden, model.step(state, ids[:, :1])[0]]


def test_it_computes_what_self_contained_files_compute(shared, exported):
    for found, expected in zip(_outputs(shared), _outputs(exported("compact"))):
        np.testing.assert_array_equal(found, expected)


def test_the_embedding_is_on_disk_once(shared, exported):
    inside = sum(path.stat().st_size for path in exported("compact").glob("*.onnx"))
    outside = sum(path.stat().st_size for path in shared.iterdir() if path.suffix in (".onnx", ".data"))
    embedding = 8000 * 256 * 4
    assert embedding * 0.95 < inside - outside < embedding * 1.2
    assert abs(sum(graph_bytes(path) for path in shared.glob("*.onnx")) - inside) < inside * 0.01


def test_weights_begin_at_a_page(shared):
    for path in shared.glob("*.onnx"):
        tensors = onnx.load(str(path), load_external_data=False).graph.initializer
        offsets = [int(e.value) for t in tensors for e in t.external_data if e.key == "offset"]
        assert offsets
        assert not any(offset % 4096 for offset in offsets)


def test_a_quantized_set_is_made_from_it(shared, tmp_path):
    out = tmp_path / "int8"
    manifest = quantize(shared, out, quantization(find_recipe("int8-dynamic", RECIPES), None))
    counts = manifest.quantization["files"]
    assert all(entry["expected"] == entry["found"] > 0 for entry in counts.values())
    assert np.isfinite(_outputs(out)[1]).all()


@pytest.mark.parametrize("damage", ["changed", "cut", "gone"])
def test_damage_to_the_weights_file_is_refused_in_one_line(shared, tmp_path, damage):
    copy = tmp_path / "copy"
    shutil.copytree(shared, copy)
    weights = copy / WEIGHTS_FILE
    content = bytearray(weights.read_bytes())
    if damage == "changed":
        content[5000] ^= 1
        weights.write_bytes(content)
    elif damage == "cut":
        weights.write_bytes(content[: len(content) // 2])
    else:
        weights.unlink()
    command = [sys.executable, "-m", "harness", "translate", str(copy), "Hello."]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 4, done.stderr
    assert WEIGHTS_FILE in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
