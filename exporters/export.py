"""From a checkpoint to an artifact set."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import onnx
import torch

from exporters.graphs import distinct_sizes, dummy_inputs, module_for
from exporters.postprocess import refuse_missing_operators, tidy
from exporters.shared_weights import SHARED_ABOVE_BYTES, share_large_weights
from exporters.tracing import TraceLog, trace
from harness import compat
from harness.contract.errors import InputError
from harness.contract.generation import GenerationSettings
from harness.contract.known_errors import explain
from harness.contract.layouts import LAYOUTS, GraphSpec, file_of
from harness.contract.manifest import FileRecord, Manifest
from harness.contract.runtimes import Runtime, runtime
from harness.reference.checkpoint import Checkpoint
from harness.reference.family import family_of
from harness.reference.loading import generation_settings, load_model
from harness.runtime.tokenizer import files as tokenizer_files
from harness.runtime.tokenizer import load_tokenizer

# Protobuf cannot hold more in one message; above it weights go to one external file per graph.
PROTOBUF_LIMIT_BYTES = (1 << 31) - (1 << 24)
OLDEST_RUNTIME = "1.14"

# Sources of the tracing ids. Any text will do; it goes through the real tokenizer so that ids, mask and final EOS are
# those of a real batch.
DUMMY_TEXTS = (
    "Please check the pump and the two valves before you start the motor again on Monday morning.",
    "The meeting is on Friday.",
)


@dataclass(frozen=True)
class ExportOptions:
    """How to make a set.

    Attributes:
        layout: ``compact``, ``pair`` or ``single``.
        exporter: ``torchscript`` or ``dynamo``.
        opset: ai.onnx opset; None takes the stack's.
        target_ort: oldest onnxruntime that has to load the set.
        variant: which tracing sizes to use; another value must give the same structure.
        share_above: see ``exporters.shared_weights``.
    """

    layout: str = "compact"
    exporter: str = "torchscript"
    opset: int | None = None
    target_ort: str = OLDEST_RUNTIME
    variant: int = 0
    share_above: int = SHARED_ABOVE_BYTES

    def resolved_opset(self) -> int:
        """The opset that will be written."""
        return self.opset if self.opset is not None else compat.default_opset(self.exporter)


def export(
    model: str | Checkpoint,
    out: Path,
    options: ExportOptions = ExportOptions(),
    *,
    progress: Callable[[str], None] = lambda text: None,
) -> Manifest:
    """Write an artifact set to ``out``.

    The set is made in a folder beside ``out`` and renamed at the end: an interrupted export leaves nothing.

    Args:
        model: model folder, hub id or an opened checkpoint.
        out: folder to write; must not exist or be empty.
        options: layout, exporter and targets.
        progress: called with a short text when a graph is begun.

    Raises:
        InputError: unusable model or options, ``out`` is taken, or the target runtime cannot load the result.
    """
    checkpoint = model if isinstance(model, Checkpoint) else Checkpoint.open(model)
    _check_options(options)
    family_of(checkpoint.config, where=checkpoint.folder)
    refuse_taken(out)
    generation = generation_settings(checkpoint)
    torch_model = load_model(checkpoint)
    with renamed_at_the_end(out) as folder, explain(where=f"export of {checkpoint.model_id}"):
        return _write_set(checkpoint, torch_model, generation, folder, options, progress)


def refuse_taken(out: Path) -> None:
    """Raise ``InputError`` when ``out`` already holds something."""
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise InputError(what="already exists", where=out, action="Name another folder or remove this one first.")


def _check_options(options: ExportOptions) -> None:
    if options.layout not in LAYOUTS:
        raise InputError(
            what=f"unknown layout {options.layout!r}", where="--layout", action=f"Known: {', '.join(LAYOUTS)}."
        )
    if options.exporter not in compat.exporters():
        raise InputError(
            what=f"exporter {options.exporter!r} is not available with torch {torch.__version__}",
            where="--exporter",
            action=f"Available on this stack: {', '.join(compat.exporters())}.",
        )
    opset, target = options.resolved_opset(), runtime(options.target_ort)
    low, high = compat.opset_range(options.exporter)
    if not low <= opset <= high:
        raise InputError(
            what=f"opset {opset} asked for, {options.exporter} of torch {torch.__version__} writes {low} to {high}",
            where="--opset",
            action="Choose an opset in that range.",
        )
    if opset > target.max_opset:
        raise InputError(
            what=f"opset {opset} asked for, onnxruntime {target.minor} loads up to {target.max_opset}",
            where="--opset",
            action=f"Pass --opset {target.max_opset} or lower, or a newer --target-ort.",
        )
    needed = required_ir(opset)
    if needed > target.max_ir:
        raise InputError(
            what=f"opset {opset} needs IR version {needed}, onnxruntime {target.minor} loads up to {target.max_ir}",
            where="--opset",
            action="Pass a lower --opset or a newer --target-ort.",
        )


def required_ir(opset: int) -> int:
    """Lowest IR version that may hold an ai.onnx opset (https://onnx.ai/onnx/repo-docs/Versioning.html)."""
    return onnx.helper.find_min_ir_version_for([onnx.helper.make_opsetid("", opset)])


@contextmanager
def renamed_at_the_end(out: Path) -> Iterator[Path]:
    """Give a folder to fill, and rename it to ``out`` at the end; an interruption leaves nothing."""
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        folder = Path(tempfile.mkdtemp(prefix=f".{out.name}.partial-", dir=out.parent))
    except OSError as error:
        raise InputError(
            what=f"cannot be written ({error.strerror})", where=out.parent, action="Name a folder you may write to."
        ) from None
    try:
        folder.chmod(0o755)
        yield folder
        if out.exists():
            out.rmdir()
        os.replace(folder, out)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def _write_set(
    checkpoint: Checkpoint,
    model: torch.nn.Module,
    generation: GenerationSettings,
    folder: Path,
    options: ExportOptions,
    progress: Callable[[str], None],
) -> Manifest:
    if (kind := compat.attention_implementation(model)) != "eager":
        raise InputError(
            what=f"attention implementation {kind!r} hides the mask from the exporter",
            where=checkpoint.folder,
            action="Load the model with attn_implementation='eager'.",
        )
    dims, opset, target = checkpoint.dims, options.resolved_opset(), runtime(options.target_ort)
    source, mask, sizes = _tracing_batch(checkpoint, options.variant)
    log = TraceLog()
    for role, spec in LAYOUTS[options.layout].graphs(dims).items():
        progress(f"{options.layout} {role} ({options.exporter}, opset {opset})")
        inputs = dummy_inputs(spec, sizes, source, mask)
        _write_graph(
            module_for(spec, model), spec, inputs, folder / file_of(role), options.exporter, opset, target, log
        )
    share_large_weights([folder / file_of(role) for role in LAYOUTS[options.layout].roles], options.share_above)
    names = tokenizer_files(checkpoint.folder)
    for name in names:
        shutil.copyfile(checkpoint.folder / name, folder / name)
    manifest = Manifest(
        model_id=checkpoint.model_id,
        family=checkpoint.family,
        weights_sha256=checkpoint.weights_sha256,
        layout=options.layout,
        exporter=options.exporter,
        opset=opset,
        ir_version=required_ir(opset),
        target_ort=target.minor,
        dims=dims,
        dummy_sizes=sizes,
        generation=generation,
        tokenizer_files=tuple(names),
        files={path.name: FileRecord.of(path) for path in sorted(folder.iterdir())},
        versions=compat.versions(),
        known_warnings=dict(sorted(log.known.items())),
        unknown_warnings=tuple(log.unknown),
    )
    manifest.write(folder)
    return manifest


def _tracing_batch(checkpoint: Checkpoint, variant: int) -> tuple[torch.Tensor, torch.Tensor, dict[str, int]]:
    """Ids and mask ``[batch, source]`` from the real tokenizer, one row padded, and the tracing sizes."""
    tokenizer = load_tokenizer(checkpoint.folder)
    dims = checkpoint.dims
    fixed = (*dims.to_json().values(), dims.head_dim, dims.d_model // dims.encoder_heads)
    sizes = distinct_sizes(fixed, smallest_source=7, variant=variant)
    rows = [tokenizer.encode(DUMMY_TEXTS[i % 2], max_length=sizes["source"] - (i % 2)) for i in range(sizes["batch"])]
    ids, mask = tokenizer.batch(rows)
    return torch.from_numpy(ids), torch.from_numpy(mask), sizes


def _write_graph(
    module: torch.nn.Module,
    spec: GraphSpec,
    inputs: tuple[torch.Tensor, ...],
    path: Path,
    exporter: str,
    opset: int,
    target: Runtime,
    log: TraceLog,
) -> None:
    with tempfile.TemporaryDirectory(prefix=f".{path.stem}-", dir=path.parent) as scratch:
        traced = Path(scratch) / path.name
        found = trace(exporter, module, spec, inputs, opset, traced)
        model = onnx.load(str(traced))
    log.merge(found)
    tidy(model, spec, required_ir(opset))
    refuse_missing_operators(model, target, spec.role)
    save(model, path)


def save(model: onnx.ModelProto, path: Path) -> None:
    """Store a graph, its weights beside it where one message cannot hold them."""
    if model.ByteSize() < PROTOBUF_LIMIT_BYTES:
        onnx.save(model, str(path))
        return
    onnx.save(model, str(path), save_as_external_data=True, all_tensors_to_one_file=True, location=f"{path.name}.data")
