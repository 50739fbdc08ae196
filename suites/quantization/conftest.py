"""A quantized set beside its float32 set and PyTorch's weights, read once per subject."""

from __future__ import annotations

import dataclasses
import functools
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
import pytest

from fixtures.models import Reference
from harness.checks.graph.quantization import (
    ActivationScale,
    JudgedWeight,
    ObservedRange,
    activation_scales,
    judge_weights,
)
from harness.checks.graph.quantized import PRODUCT, Use, uses
from harness.contract.errors import InputError
from harness.contract.layouts import INPUT_IDS
from harness.contract.limits import LOGITS_FAIL_BELOW_DB
from harness.contract.recipes import Recipe
from harness.contract.sentences import Sentence, read_sentences
from harness.diagnosis.quantization import Case, Report, examine
from harness.plugin import blocked, not_applicable
from harness.reference.checkpoint import Checkpoint
from harness.runtime.artifact_model import ArtifactModel
from harness.runtime.artifact_set import ArtifactSet, open_set
from harness.runtime.naming import canonical_name
from harness.runtime.session import named_profile
from harness.runtime.tokenizer import load_tokenizer
from harness.settings import ROOT, Settings

# Sentences whose logits are compared, and forced steps of each.
SENTENCES, STEPS = 12, 16


@dataclass(frozen=True)
class QuantizedFile:
    """One graph of a quantized set.

    Attributes:
        role, path: its role and file.
        model: its contents; weights in external files are not loaded.
        ids: the graph's own name of its ids input.
        uses: every product with a stored matrix, and every lookup of the ids.
    """

    role: str
    path: Path
    model: onnx.ModelProto
    ids: str
    uses: list[Use]

    @property
    def file(self) -> str:
        """Name of the file."""
        return self.path.name


@pytest.fixture(scope="session")
def quantized(artifacts: ArtifactSet) -> list[QuantizedFile]:
    """The graph files of a quantized subject; for a float32 one the question does not arise."""
    if not artifacts.quantized:
        not_applicable("the set is float32")
    return [_read(role, path) for role, path in artifacts.files.items()]


def _read(role: str, path: Path) -> QuantizedFile:
    model = onnx.load(str(path), load_external_data=False)
    names = [value.name for value in model.graph.input]
    ids = next((n for n in names if canonical_name(n, role=role, output=False, layers=0, caches=0) == INPUT_IDS), "")
    return QuantizedFile(role, path, model, ids, uses(path.name, model, path.parent, ids))


@pytest.fixture(scope="session")
def recipe(artifacts: ArtifactSet) -> Recipe | None:
    """The recipe in the set's manifest; None for a set made elsewhere."""
    if not artifacts.manifest or not artifacts.manifest.quantization:
        return None
    entry = artifacts.manifest.quantization.get("recipe")
    return Recipe.from_json(artifacts.manifest.precision, entry, where=artifacts.folder / "manifest.json")


@pytest.fixture(scope="session")
def bits_of(quantized: list[QuantizedFile], recipe: Recipe | None) -> Callable[[str], int]:
    """Role -> bits of its products' weights: the recipe's; of a set made elsewhere, what its integers need."""
    integers = [u.weight.largest for f in quantized for u in f.uses if u.weight and u.purpose == PRODUCT]
    largest = max(integers, default=127)
    found = 4 if largest <= 8 else 7 if largest <= 64 else 8
    return (lambda role: recipe.weight_bits(role)) if recipe else (lambda role: found)


@pytest.fixture(scope="session")
def parameters(reference: Reference) -> dict[str, np.ndarray]:
    """PyTorch's matrices by name, float32, tied ones once."""
    found, seen = {}, set()
    for name, tensor in reference.model.model.state_dict().items():
        if tensor.ndim == 2 and tensor.data_ptr() not in seen:
            seen.add(tensor.data_ptr())
            found[name] = tensor.detach().float().numpy()
    return found


@pytest.fixture(scope="session")
def judged(quantized: list[QuantizedFile], parameters) -> dict[str, list[JudgedWeight]]:
    """File -> its quantized weights beside PyTorch's, worst first."""
    return {file.file: judge_weights(file.uses, parameters) for file in quantized}


@pytest.fixture(scope="session")
def piece(checkpoint: Checkpoint) -> Callable[[int], str]:
    """Row of the embedding -> its piece of text."""
    pieces = {index: text for text, index in load_tokenizer(checkpoint.folder).vocabulary.items()}
    return lambda row: pieces.get(row, "")


@pytest.fixture(scope="session")
def float32(subject, float32_of) -> ArtifactSet:
    """The float32 set that the subject is held against."""
    return float32_of(subject)


@dataclass(frozen=True)
class Forced:
    """Sources and target tokens that every set is driven through.

    Attributes:
        input_ids, attention_mask: int64 ``[batch, source]``.
        target_ids: int64 ``[batch, steps]``: what the float32 set says, start token first.
        names: sentence ids, in row order.
    """

    input_ids: np.ndarray
    attention_mask: np.ndarray
    target_ids: np.ndarray
    names: tuple[str, ...]

    def logits(self, model: ArtifactModel) -> np.ndarray:
        """float32 ``[steps, batch, vocabulary]``."""
        state, steps = model.start(model.encode(self.input_ids, self.attention_mask)), []
        for step in range(self.target_ids.shape[1]):
            logits, state = model.step(state, self.target_ids[:, step : step + 1])
            steps.append(logits[:, -1])
        return np.stack(steps)


@pytest.fixture(scope="session")
def opened(settings: Settings) -> Callable[[ArtifactSet], ArtifactModel]:
    """Set -> its sessions; ends the test where the runtime refuses it."""

    def find(artifacts: ArtifactSet) -> ArtifactModel:
        try:
            return ArtifactModel(artifacts, named_profile("suites", settings.providers))
        except InputError as error:
            return blocked(str(error))

    return find


@pytest.fixture(scope="session")
def float32_model(float32: ArtifactSet, opened) -> ArtifactModel:
    """The float32 set in sessions."""
    return opened(float32)


@pytest.fixture(scope="session")
def forced(checkpoint: Checkpoint, float32_model: ArtifactModel, core_sentences: list[Sentence]) -> Forced:
    """A padded batch of sentences of every length, and the tokens the float32 set answers with."""
    tokenizer, limit = load_tokenizer(checkpoint.folder), checkpoint.dims.max_source_positions
    chosen = core_sentences[:: max(1, len(core_sentences) // SENTENCES)][:SENTENCES]
    ids, mask = tokenizer.batch([tokenizer.encode(sentence.source, max_length=limit) for sentence in chosen])
    start = float32_model.artifacts.generation.decoder_start_token_id
    targets = np.full((len(chosen), 1), start, np.int64)
    state = float32_model.start(float32_model.encode(ids, mask))
    for _ in range(min(STEPS, checkpoint.dims.max_target_positions) - 1):
        logits, state = float32_model.step(state, targets[:, -1:])
        targets = np.concatenate([targets, logits[:, -1].argmax(axis=-1)[:, None]], axis=1)
    return Forced(ids, mask, targets, tuple(sentence.id for sentence in chosen))


@pytest.fixture(scope="session")
def requantize(
    settings: Settings, float32: ArtifactSet, recipe: Recipe | None, tmp_path_factory
) -> Callable[[Sequence[str]], ArtifactSet] | None:
    """Exclusion patterns -> the subject's recipe with them, applied to its float32 set; None without a recipe."""
    if recipe is None:
        return None
    from exporters.quantize import quantization, quantize

    def make(patterns: Sequence[str]) -> ArtifactSet:
        sides = {
            side: dataclasses.replace(kept, exclude=(*kept.exclude, *patterns))
            for side, kept in (("encoder", recipe.encoder), ("decoder", recipe.decoder))
        }
        how = quantization(dataclasses.replace(recipe, **sides), settings.calibration)
        folder = tmp_path_factory.mktemp("requantized") / "set"
        quantize(float32.folder, folder, how)
        return open_set(folder)

    return make


@pytest.fixture(scope="session")
def examined(
    artifacts: ArtifactSet, opened, float32_model, judged, parameters, forced: Forced, requantize, bits_of
) -> Callable[[], Report]:
    """() -> where the subject lost what it lost; experiments, so asked for on failure only, and made once."""

    @functools.cache
    def find() -> Report:
        return examine(
            Case(
                float32_model, opened(artifacts), judged, parameters, forced.logits, requantize,
                LOGITS_FAIL_BELOW_DB[bits_of("decoder")],
            )
        )  # fmt: skip

    return find


@pytest.fixture(scope="session")
def scales(quantized: list[QuantizedFile]) -> list[ActivationScale]:
    """Stored scales of activations, all files."""
    return [scale for file in quantized for scale in activation_scales(file.file, file.model, file.path.parent)]


@pytest.fixture(scope="session")
def observed(
    artifacts: ArtifactSet, quantized: list[QuantizedFile], scales, checkpoint: Checkpoint, core_sentences
) -> dict[tuple[str, str], ObservedRange]:
    """(file, activation) -> what it was while the set itself translated the project's sentences."""
    from exporters.calibration import watch

    watched = {
        file.role: {scale.name: _Watched(scale) for scale in scales if scale.file == file.file} for file in quantized
    }
    models = {file.role: onnx.load(str(file.path)) for file in quantized}
    # A set made elsewhere may carry no tokenizer; the model's is the same.
    watch(artifacts, models, watched, [s.source for s in core_sentences[:SENTENCES]], tokenizer=checkpoint.folder)
    files = {file.role: file.file for file in quantized}
    return {(files[role], name): one.range() for role, found in watched.items() for name, one in found.items()}


class _Watched:
    """Extremes of an activation, and how many of its values a range cuts off."""

    def __init__(self, scale: ActivationScale) -> None:
        self.scale, self.low, self.high, self.outside, self.seen = scale, np.inf, -np.inf, 0, 0

    def add(self, array: np.ndarray) -> None:
        if array.size:
            half = self.scale.scale / 2
            outside = (array < self.scale.low - half) | (array > self.scale.high + half)
            self.outside, self.seen = self.outside + int(outside.sum()), self.seen + array.size
            self.low, self.high = min(self.low, float(array.min())), max(self.high, float(array.max()))

    def range(self) -> ObservedRange:
        return ObservedRange(self.low, self.high, self.outside / max(1, self.seen))


@pytest.fixture(scope="session")
def evaluation(settings: Settings) -> dict[str, str]:
    """Place -> every sentence that quality is judged by: the project's, the run's, and all goldens."""
    golden = [ROOT / "golden", *([settings.golden] if settings.golden else [])]
    files = {settings.sentences, *(ROOT / "fixtures" / "sentences").glob("*.jsonl")}
    files |= {path for folder in golden for path in folder.glob("**/translations.jsonl")}
    found = {}
    for path in sorted(files):
        if path.name == "translations.jsonl":
            entries = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
            found.update((f"{path.parent.name}/{path.name}: {entry['id']}", entry["source"]) for entry in entries)
        else:
            found.update((f"{path.name}: {sentence.id}", sentence.source) for sentence in read_sentences(path))
    return found
