"""The subject's graph files and weights, read once per subject."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
import pytest

from fixtures.models import Reference
from fixtures.sentences import SHORT
from harness.checks.graph.quantization import judge_weights
from harness.checks.graph.quantized import uses
from harness.checks.graph.weights import Weight, stored_weights
from harness.checks.numeric import noise_floor
from harness.contract.layouts import ENCODER_OUTPUT, INPUT_IDS, LOGITS
from harness.contract.sentences import Sentence
from harness.contract.seq2seq import Seq2Seq
from harness.reference.checkpoint import Checkpoint
from harness.reference.torch_model import TorchModel
from harness.runtime.artifact_set import ArtifactSet
from harness.runtime.naming import BRANCH_FLAG, canonical_name, is_cache
from harness.runtime.tokenizer import load_tokenizer

# Sentences and forced target tokens of a small batch: padding, an empty cache and a growing one.
BATCH, STEPS = 3, 3

Observed = dict[str, dict[str, np.ndarray]]


@dataclass(frozen=True)
class GraphFile:
    """One graph of a set.

    Attributes:
        role, path: its role and file.
        model: its contents; weights in external files are not loaded.
        inputs, outputs: the graph's own names -> the contract's, None for a name of no known layout.
    """

    role: str
    path: Path
    model: onnx.ModelProto
    inputs: dict[str, str | None]
    outputs: dict[str, str | None]

    @property
    def file(self) -> str:
        """Name of the file."""
        return self.path.name

    @property
    def ids(self) -> str:
        """The graph's own name of its ids input."""
        return next((own for own, name in self.inputs.items() if name == INPUT_IDS), INPUT_IDS)

    @property
    def branch_flag(self) -> str | None:
        """Name of the input that chooses a branch, in a merged decoder."""
        return BRANCH_FLAG if BRANCH_FLAG in self.inputs else None


@pytest.fixture(scope="session")
def graphs(artifacts: ArtifactSet) -> list[GraphFile]:
    """The graph files of the test's subject."""
    return [_read(role, path, artifacts.dims.decoder_layers) for role, path in artifacts.files.items()]


def _read(role: str, path: Path, layers: int) -> GraphFile:
    model = onnx.load(str(path), load_external_data=False)
    weights = {tensor.name for tensor in model.graph.initializer}

    def names(values, *, output: bool) -> dict[str, str | None]:
        own = [value.name for value in values if value.name not in weights]
        caches = sum(is_cache(name) for name in own)
        return {name: canonical_name(name, role=role, output=output, layers=layers, caches=caches) for name in own}

    return GraphFile(role, path, model, names(model.graph.input, output=False), names(model.graph.output, output=True))


@pytest.fixture(scope="session")
def parameters(reference: Reference) -> list[Weight]:
    """Parameters and buffers of the PyTorch model, tied ones under each of their names."""
    state = reference.model.model.state_dict()
    return [Weight.of("PyTorch", name, tensor.detach().numpy()) for name, tensor in state.items()]


@pytest.fixture(scope="session")
def weights(graphs: list[GraphFile]) -> list[Weight]:
    """Every constant tensor of the subject's files."""
    return [weight for graph in graphs for weight in stored_weights(graph.file, graph.model, graph.path.parent)]


@pytest.fixture(scope="session")
def quantized_parameters(artifacts: ArtifactSet, graphs: list[GraphFile], reference: Reference) -> dict:
    """(file, tensor) -> the parameter whose integers or scales the tensor holds; empty for a float32 set."""
    if not artifacts.quantized:
        return {}
    state = reference.model.model.state_dict()
    matrices = {name: tensor.detach().float().numpy() for name, tensor in state.items() if tensor.ndim == 2}
    found = {}
    for graph in graphs:
        for judged in judge_weights(uses(graph.file, graph.model, graph.path.parent, graph.ids), matrices):
            if judged.parameter:
                found[graph.file, judged.use.stored] = judged.parameter
                found[graph.file, f"{judged.weight.name}_scale"] = judged.parameter
    return found


@pytest.fixture(scope="session")
def observe(checkpoint: Checkpoint, core_sentences: list[Sentence]) -> Callable[[Seq2Seq], Observed]:
    """Model -> place -> tensors of a padded batch: encoder output and cross K/V, then logits and self K/V per step.

    Target tokens are drawn once from the sources, one per step, so that every model is driven the same way.
    """
    tokenizer = load_tokenizer(checkpoint.folder)
    sources = [sentence.source for sentence in core_sentences if SHORT in sentence.tags][:BATCH]
    ids, mask = tokenizer.batch([tokenizer.encode(source, checkpoint.dims.max_source_positions) for source in sources])

    def run(model: Seq2Seq) -> Observed:
        encoder = model.encode(ids, mask)
        found = {"encoder": {ENCODER_OUTPUT: encoder.hidden, **encoder.cross}}
        state = model.start(encoder)
        for step in range(STEPS):
            logits, state = model.step(state, ids[:, step : step + 1])
            found[f"step {step}"] = {LOGITS: logits, **state.past}
        return found

    return run


@pytest.fixture(scope="session")
def noise(reference: Reference, reference64: TorchModel, observe: Callable[[Seq2Seq], Observed]) -> float:
    """Rounding noise of the small batch: how far float32 PyTorch is from float64 PyTorch."""
    single, double = observe(reference.model), observe(reference64)
    return max(noise_floor(single[place], double[place]) for place in single)
