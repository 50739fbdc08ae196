"""Is every axis that is declared dynamic also dynamic inside the graph?"""

from __future__ import annotations

import numpy as np
import onnx
import pytest

from harness.checks.graph.axes import axes_are_dynamic, same_structure
from harness.checks.graph.running import Sizes, refused, shapes_are
from harness.contract.errors import InputError
from harness.contract.layouts import ENCODER_OUTPUT, LOGITS
from harness.plugin import not_applicable


def test_no_size_of_the_tracing_inputs_is_baked(subject, artifacts, graphs, judge):
    traced = artifacts.manifest.dummy_sizes if artifacts.manifest else {}
    judge(*(axes_are_dynamic(graph.file, graph.model, artifacts.dims, traced) for graph in graphs))


# Sizes that no export traces with: its own are all at least 2 and the smallest that no size of the model equals.
RUNS = {
    "single-tokens": Sizes(batch=1, source=2, first=1, second=1),
    "larger-than-traced": Sizes(batch=8, source=23, first=9, second=4),
}


@pytest.mark.parametrize("sizes", RUNS.values(), ids=RUNS.keys())
def test_the_graphs_run_at_other_sizes(subject, sizes, candidate, judge):
    """One row is padded where there is more than one. Values are compared in suites/shapes."""
    dims = candidate.artifacts.dims
    if candidate.single_token_steps and sizes.second > 1:
        sizes = Sizes(sizes.batch, sizes.source, sizes.first, second=1)
    check = f"the graphs run at {sizes.text()}"
    try:
        found = _run(candidate, sizes)
    except InputError as error:
        judge(refused(check, error))
        return
    crossed = any(name.startswith("present.") for name in found["encoder"])
    judge(shapes_are(check, list(sizes.expected(dims, crossed=crossed)), found))


def _run(model, sizes: Sizes) -> dict[str, dict[str, tuple[int, ...]]]:
    """Place -> output -> shape of one encoder call and two decoder calls."""
    draw = np.random.default_rng(0).integers
    vocabulary = min(model.artifacts.dims.vocab_size, model.artifacts.dims.source_vocab_size)
    mask = np.ones((sizes.batch, sizes.source), np.int64)
    mask[1:2, -1] = 0
    encoder = model.encode(draw(vocabulary, size=mask.shape), mask)
    places = {"encoder": {ENCODER_OUTPUT: encoder.hidden, **encoder.cross}}
    state = model.start(encoder)
    for place, target in (("first call", sizes.first), ("second call", sizes.second)):
        logits, state = model.step(state, draw(vocabulary, size=(sizes.batch, target)))
        places[place] = {LOGITS: logits, **state.past}
    return {place: {name: array.shape for name, array in arrays.items()} for place, arrays in places.items()}


def test_two_tracing_sizes_give_one_structure(subject, checkpoint, settings, artifacts, graphs, judge):
    """Exported again at other sizes, every node, edge and constant must be the same."""
    if subject.folder is not None:
        not_applicable("this run did not export the set")
    if artifacts.quantized:
        not_applicable("asked of the float32 set that it is made from")
    from exporters.cache import cached_set
    from exporters.export import ExportOptions
    from harness.runtime.artifact_set import open_set

    options = ExportOptions(subject.layout, subject.exporter, variant=1)
    other = open_set(cached_set(checkpoint, options, settings.artifact_cache))
    sizes = tuple(
        ", ".join(f"{axis} {size}" for axis, size in made.manifest.dummy_sizes.items()) for made in (artifacts, other)
    )
    judge(
        *(
            same_structure(
                graph.file, graph.model, onnx.load(str(other.files[graph.role]), load_external_data=False), sizes
            )
            for graph in graphs
        )
    )
