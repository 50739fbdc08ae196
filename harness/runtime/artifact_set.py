"""An artifact set on disk, made here or elsewhere, checked before a session is opened."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.contract.errors import InputError
from harness.contract.generation import GenerationSettings
from harness.contract.layouts import DECODER, DECODER_INIT, DECODER_STEP, ENCODER, LAYOUTS, ModelDims, file_of
from harness.contract.manifest import MANIFEST, Manifest, read_object
from harness.contract.model_config import dims_of, settings_of
from harness.contract.recipes import FLOAT32
from harness.runtime.naming import DECODER_MERGED, FILE_NAMES
from harness.runtime.onnx_file import inspect

MERGED = "merged"
QUANTIZED = "quantized"
# Any of these in a graph means that some of its numbers are integers of few bits.
QUANTIZED_OPERATORS = frozenset(
    {
        "QuantizeLinear", "DequantizeLinear", "DynamicQuantizeLinear", "MatMulInteger", "QLinearMatMul", "QGemm",
        "DynamicQuantizeMatMul", "MatMulIntegerToFloat", "MatMulNBits", "GatherBlockQuantized", "QAttention",
    }
)  # fmt: skip


@dataclass(frozen=True)
class ArtifactSet:
    """One runnable set of graphs.

    Attributes:
        folder: where the files are.
        layout: ``compact``, ``pair``, ``single`` or, for Optimum's one-file decoder, ``merged``.
        files: role -> path.
        dims, generation: from the manifest, or from the ``config.json`` of the set or of the model under test.
        manifest: None for a set made elsewhere.
        others: ``.onnx`` files in the folder that belong to no role.
        operators: operators of all its graphs.
    """

    folder: Path
    layout: str
    files: dict[str, Path]
    dims: ModelDims
    generation: GenerationSettings
    manifest: Manifest | None = None
    others: tuple[Path, ...] = field(default=())
    operators: frozenset[str] = frozenset()

    @property
    def precision(self) -> str:
        """``fp32`` or the recipe's name, by the manifest; without one, ``quantized`` where the nodes say so."""
        if self.manifest:
            return self.manifest.precision
        return QUANTIZED if self.operators & QUANTIZED_OPERATORS else FLOAT32

    @property
    def quantized(self) -> bool:
        """Whether equality with PyTorch is not asked of the set."""
        return self.precision != FLOAT32

    @property
    def name(self) -> str:
        """How reports call the set, e.g. ``compact-torchscript`` or ``pair-elsewhere``."""
        return f"{self.layout}-{self.manifest.exporter if self.manifest else 'elsewhere'}"


def open_sets(
    folder: Path | str, *, config: dict[str, Any] | None = None, generation: GenerationSettings | None = None
) -> list[ArtifactSet]:
    """Open every set in a folder: one with a manifest, or each that Optimum's file names make up.

    Args:
        folder: the set's folder.
        config, generation: model configuration for sets that carry neither a manifest nor a ``config.json``.

    Raises:
        InputError: no usable set, a file missing, truncated or pointing outside, a manifest that contradicts itself.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise InputError(what="no such folder", where=folder, action="Give a folder with an exported model.")
    if (folder / MANIFEST).is_file():
        return [_own_set(folder)]
    return _foreign_sets(folder, config, generation)


def open_set(folder: Path | str) -> ArtifactSet:
    """Open a folder to run it; where it holds several sets, the first."""
    return open_sets(folder)[0]


def _own_set(folder: Path) -> ArtifactSet:
    manifest = Manifest.read(folder)
    files, operators = {}, set()
    for role in LAYOUTS[manifest.layout].roles:
        path = folder / file_of(role)
        if not path.is_file() or path.name not in manifest.files:
            raise InputError(
                what=f"layout {manifest.layout} needs {path.name}, which is not there",
                where=folder,
                action="Export the set again with `python -m exporters`.",
            )
        operators |= inspect(path).operators
        files[role] = path
    others = tuple(path for path in sorted(folder.glob("*.onnx")) if path not in files.values())
    return ArtifactSet(
        folder, manifest.layout, files, manifest.dims, manifest.generation, manifest, others, frozenset(operators)
    )


def _foreign_sets(
    folder: Path, config: dict[str, Any] | None, generation: GenerationSettings | None
) -> list[ArtifactSet]:
    present = _files_by_role(folder)
    layouts = _layouts_of(present, folder)
    operators = {path: inspect(path).operators for path in present.values()}
    own_config = folder / "config.json"
    if own_config.is_file():
        config = read_object(own_config, action="Copy the model's config.json again.")
        generation = settings_of(folder, config)
    if config is None or generation is None:
        raise InputError(
            what=f"neither {MANIFEST} nor config.json",
            where=folder,
            action="Copy the model's config.json into the folder.",
        )
    dims = dims_of(config, where=own_config)
    used = {path for files in layouts.values() for path in files.values()}
    others = tuple(path for path in sorted(folder.glob("*.onnx")) if path not in used)
    return [
        ArtifactSet(
            folder, layout, files, dims, generation, None, others,
            frozenset().union(*(operators[path] for path in files.values())),
        )
        for layout, files in layouts.items()
    ]  # fmt: skip


def _files_by_role(folder: Path) -> dict[str, Path]:
    files = {}
    for role, names in FILE_NAMES.items():
        if path := next((folder / name for name in names if (folder / name).is_file()), None):
            files[role] = path
    return files


def _layouts_of(present: dict[str, Path], folder: Path) -> dict[str, dict[str, Path]]:
    """Sort the files found into runnable layouts, or say what is missing (faults F06, F09, F10)."""
    found = sorted(path.name for path in folder.glob("*.onnx"))
    if not found:
        raise InputError(what="no .onnx file inside", where=folder, action="Give a folder with an exported model.")
    if ENCODER not in present:
        if len(found) == 1:
            raise InputError(
                what=f"{found[0]} is the only graph: a whole generate() or one-piece export cannot be stepped",
                where=folder,
                action="Export encoder and single decoder steps; the loop belongs outside the graph.",
            )
        raise InputError(
            what=f"no encoder ({' or '.join(FILE_NAMES[ENCODER])}), found {', '.join(found)}",
            where=folder,
            action="Add the encoder, or export the set again.",
        )
    layouts = {}
    if DECODER_INIT in present and DECODER_STEP in present:
        layouts["pair"] = {role: present[role] for role in LAYOUTS["pair"].roles}
    if DECODER_MERGED in present:
        layouts[MERGED] = {ENCODER: present[ENCODER], DECODER_MERGED: present[DECODER_MERGED]}
    if DECODER in present:
        # Which of the two one-decoder layouts it is, the session's inputs tell; both run through the same steps.
        layouts["single"] = {role: present[role] for role in LAYOUTS["single"].roles}
    if layouts:
        return layouts
    half = next((role for role in (DECODER_INIT, DECODER_STEP) if role in present), None)
    if half:
        other = DECODER_STEP if half == DECODER_INIT else DECODER_INIT
        raise InputError(
            what=f"{present[half].name} has no partner: no {' or '.join(FILE_NAMES[other])}",
            where=folder,
            action="Export the decoder with its past (text2text-generation-with-past in Optimum).",
        )
    raise InputError(
        what=f"only an encoder, no decoder ({', '.join(found)})",
        where=folder,
        action="Export the decoder too.",
    )
