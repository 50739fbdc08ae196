"""A simpler graph that computes the same: onnxslim, or onnxsim on the stack that has it."""

from __future__ import annotations

import dataclasses
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
from onnx import GraphProto, ModelProto, TensorProto, helper, numpy_helper

from exporters.export import refuse_taken, renamed_at_the_end, save
from exporters.postprocess import SHARED_ABOVE_BYTES, refuse_missing_operators, tidy
from exporters.shared_weights import graph_bytes, share_large_weights
from harness import compat
from harness.contract.errors import InputError
from harness.contract.known_errors import explain
from harness.contract.manifest import FileRecord, Manifest
from harness.contract.runtimes import runtime
from harness.runtime.artifact_model import ArtifactModel
from harness.runtime.artifact_set import ArtifactSet, open_set
from harness.runtime.session import SessionProfile

# Runs of each side, in turn, whose medians are compared.
ROUNDS = 15


def simplify(folder: Path, out: Path, *, progress: Callable[[str], None] = lambda text: None) -> Manifest:
    """Write a simplified copy of a set to ``out``, to be tested like any other: ``pytest suites --artifacts OUT``.

    What the simplifier stored twice is shared again; names, axes and IR version stay those of the layout. The gain in
    nodes, bytes and run time (interleaved on both sets) is reported through ``progress``.

    Raises:
        InputError: no simplifier on this stack, the set is not of this project, or ``out`` is taken.
    """
    name, tool = compat.simplifier()
    if tool is None:
        raise InputError(
            what="neither onnxslim nor onnxsim is installed", where="--simplify", action="Leave the option out."
        )
    artifacts = open_set(folder)
    if artifacts.manifest is None:
        raise InputError(what="only sets of this project are simplified", where=folder, action="Export the model.")
    refuse_taken(out)
    with renamed_at_the_end(out) as made, explain(where=f"{name} of {folder.name}"):
        for role, path in artifacts.files.items():
            model = onnx.load(str(path))
            simpler = tool(model)
            _keep_form(simpler, artifacts.manifest, role)
            save(simpler, made / path.name)
            sizes = " to ".join(f"{graph_bytes(p)} bytes" for p in (path, made / path.name))
            progress(f"{name} {role}: {len(model.graph.node)} to {len(simpler.graph.node)} nodes, {sizes}")
        share_large_weights([made / path.name for path in artifacts.files.values()])
        manifest = _manifest(artifacts, made, name)
        ratio = _time_ratio(artifacts, open_set(made))
        progress(f"{name}: run time {ratio:.2f} of the unsimplified set's, median of {ROUNDS} interleaved runs")
    return manifest


def _keep_form(model: ModelProto, manifest: Manifest, role: str) -> None:
    share_transposed_initializers(model.graph)
    tidy(model, manifest.graphs[role], manifest.ir_version)
    refuse_missing_operators(model, runtime(manifest.target_ort), role)


def share_transposed_initializers(graph: GraphProto) -> None:
    """Replace a matrix whose transpose is stored too, as folding leaves the tied embedding, by a Transpose node."""
    arrays = {
        tensor.name: numpy_helper.to_array(tensor)
        for tensor in graph.initializer
        if len(tensor.dims) == 2 and tensor.data_type == TensorProto.FLOAT
    }
    looked_up = {node.input[0] for node in graph.node if node.op_type == "Gather"}
    for kept in looked_up & set(arrays):
        for name, array in arrays.items():
            turned = array.nbytes >= SHARED_ABOVE_BYTES and array.shape == arrays[kept].shape[::-1]
            if name != kept and turned and np.array_equal(array, arrays[kept].T):
                graph.initializer.remove(next(tensor for tensor in graph.initializer if tensor.name == name))
                node = helper.make_node("Transpose", [kept], [name], name=f"{name}/Transpose", perm=[1, 0])
                graph.node.insert(0, node)


def _manifest(artifacts: ArtifactSet, made: Path, name: str) -> Manifest:
    for file in artifacts.manifest.tokenizer_files:
        shutil.copyfile(artifacts.folder / file, made / file)
    manifest = dataclasses.replace(
        artifacts.manifest,
        simplifier=name,
        files={path.name: FileRecord.of(path) for path in sorted(made.iterdir())},
    )
    manifest.write(made)
    return manifest


def _time_ratio(before: ArtifactSet, after: ArtifactSet) -> float:
    """Run time of the second set as a share of the first's: encoder and three steps, in turn."""
    models = [ArtifactModel(artifacts, SessionProfile(spinning=False)) for artifacts in (before, after)]
    ids = np.ones((2, 12), np.int64)
    seconds: list[list[float]] = [[], []]
    for _ in range(ROUNDS):
        for model, taken in zip(models, seconds):
            begin = time.perf_counter()
            state = model.start(model.encode(ids, np.ones_like(ids)))
            for _ in range(3):
                _, state = model.step(state, ids[:, :1])
            taken.append(time.perf_counter() - begin)
    return float(np.median(seconds[1]) / np.median(seconds[0]))
