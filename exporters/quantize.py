"""From a float32 artifact set to a quantized one."""

from __future__ import annotations

import dataclasses
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import onnx
import onnxruntime

from exporters.calibration import calibrate, fingerprint
from exporters.export import refuse_taken, renamed_at_the_end, save
from exporters.quantized_graph import OLDEST_OPSET, Plan, opset_of, plan, quantized_nodes, rewrite
from exporters.shared_weights import graph_bytes, share_large_weights
from harness import compat
from harness.contract.errors import InputError
from harness.contract.known_errors import explain
from harness.contract.manifest import FileRecord, Manifest, sha256_of
from harness.contract.recipes import FLOAT32, STATIC, Recipe, lacking
from harness.contract.runtimes import known_runtimes, runtime
from harness.runtime.artifact_set import ArtifactSet, open_set


@dataclass(frozen=True)
class Quantization:
    """A recipe, and the sentences that it calibrates with.

    Attributes:
        recipe: see ``harness.contract.recipes``.
        calibration: sentence file; None where the recipe needs none.
    """

    recipe: Recipe
    calibration: Path | None = None

    def key(self) -> dict[str, Any]:
        """What a cache has to tell apart."""
        return {"recipe": self.recipe.to_json(), "calibration": sha256_of(self.calibration) if self.calibration else ""}


def quantization(recipe: Recipe, calibration: Path | None) -> Quantization:
    """Put a recipe and a sentence file together, and drop the file where the recipe does not calibrate.

    Raises:
        InputError: the installed runtime cannot run the result, or the recipe calibrates and there is no file.
    """
    if reason := lacking(recipe, runtime(onnxruntime.__version__)):
        raise InputError(what=reason, where="--precision", action="Use a newer onnxruntime or an int8 recipe.")
    if recipe.method != STATIC:
        return Quantization(recipe)
    if calibration is None or not calibration.is_file():
        raise InputError(
            what=f"{recipe.name} calibrates with sentences: {calibration or 'no file'} is not there",
            where="--calibration",
            action="Name a file of at least 150 sentences that no evaluation uses.",
        )
    return Quantization(recipe, calibration)


def quantize(
    folder: Path, out: Path, how: Quantization, *, progress: Callable[[str], None] = lambda text: None
) -> Manifest:
    """Write the quantized set of a float32 set to ``out``.

    The new manifest holds the whole recipe, the calibration's fingerprint, and for each file how many nodes had to be
    quantized, how many are, and which were left in float and why.

    Args:
        folder: a set of this project.
        out: folder to write; must not exist or be empty.
        how: recipe and calibration sentences.
        progress: called with a short text now and then.

    Raises:
        InputError: the set is no float32 set of this project, its opset is too old, or calibration fails.
    """
    artifacts = open_set(folder)
    if artifacts.manifest is None or artifacts.manifest.precision != FLOAT32:
        raise InputError(
            what="only float32 sets of this project are quantized", where=folder, action="Export with --precision."
        )
    refuse_taken(out)
    models = {role: onnx.load(str(path)) for role, path in artifacts.files.items()}
    _require_opset(models[next(iter(models))], folder)
    with renamed_at_the_end(out) as made, explain(where=f"{how.recipe.name} of {folder.name}"):
        return _write(artifacts, models, made, how, progress)


def _require_opset(model: onnx.ModelProto, folder: Path) -> None:
    if (opset := opset_of(model)) < OLDEST_OPSET:
        raise InputError(
            what=f"opset {opset}, quantization needs {OLDEST_OPSET}", where=folder, action="Pass a higher --opset."
        )


def _write(
    artifacts: ArtifactSet,
    models: dict[str, onnx.ModelProto],
    made: Path,
    how: Quantization,
    progress: Callable[[str], None],
) -> Manifest:
    recipe, manifest = how.recipe, artifacts.manifest
    plans = {role: plan(model, recipe.side(role)) for role, model in models.items()}
    record: dict[str, Any] = {"recipe": recipe.to_json(), "versions": compat.versions(), "files": {}}
    ranges: dict = {role: {} for role in models}
    if how.calibration:
        activations = {role: chosen.activations for role, chosen in plans.items()}
        ranges, calls = calibrate(artifacts, models, activations, recipe, how.calibration, progress)
        record["calibration"] = {**fingerprint(how.calibration), "calls": calls}
    for role, model in models.items():
        progress(f"{recipe.name} {role}")
        rewrite(model, plans[role], recipe, role, ranges[role])
        path = made / artifacts.files[role].name
        save(model, path)
        record["files"][path.name] = _counts(plans[role], model, artifacts.files[role])
    share_large_weights([made / path.name for path in artifacts.files.values()])
    for name in manifest.tokenizer_files:
        shutil.copyfile(artifacts.folder / name, made / name)
    quantized = dataclasses.replace(
        manifest,
        precision=recipe.name,
        quantization=record,
        target_ort=_target(manifest.target_ort, recipe),
        files={path.name: FileRecord.of(path) for path in sorted(made.iterdir())},
    )
    quantized.write(made)
    return quantized


def _counts(chosen: Plan, model: onnx.ModelProto, source: Path) -> dict[str, Any]:
    return {
        "expected": len(chosen.nodes),
        "found": quantized_nodes(model),
        "left_in_float": dict(sorted(chosen.left.items())),
        "float32_bytes": graph_bytes(source),
    }


def _target(asked: str, recipe: Recipe) -> str:
    """The oldest runtime that loads the result: the one asked for, or the first that has the recipe's operators."""
    able = [minor for minor, known in known_runtimes().items() if not lacking(recipe, known)]
    order = list(known_runtimes())
    return max(asked, able[0], key=order.index)
