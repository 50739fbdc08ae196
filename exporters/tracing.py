"""Running the two exporters of torch."""

from __future__ import annotations

import contextlib
import io
import logging
import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import torch
from torch import nn

from exporters.known_warnings import KNOWN_WARNINGS
from harness import compat
from harness.contract.layouts import GraphSpec


@dataclass
class TraceLog:
    """Warnings of one export: how often each known one came, and the text of every unknown one."""

    known: dict[str, int] = field(default_factory=dict)
    unknown: list[str] = field(default_factory=list)

    def add(self, text: str) -> None:
        """Sort one warning in."""
        first = " ".join(text.split())
        for name, known in KNOWN_WARNINGS.items():
            if re.search(known.pattern, first):
                self.known[name] = self.known.get(name, 0) + 1
                return
        if first[:400] not in self.unknown:
            self.unknown.append(first[:400])

    def merge(self, other: TraceLog) -> None:
        """Add another graph's warnings."""
        for name, count in other.known.items():
            self.known[name] = self.known.get(name, 0) + count
        self.unknown += [text for text in other.unknown if text not in self.unknown]


def trace(
    exporter: str, module: nn.Module, spec: GraphSpec, inputs: tuple[torch.Tensor, ...], opset: int, path: Path
) -> TraceLog:
    """Trace a module into ``path`` and return what the exporter warned of.

    Args:
        exporter: ``torchscript`` or ``dynamo``.
        module: a module of ``exporters.graphs``.
        spec: names and dynamic axes of inputs and outputs.
        inputs: tracing inputs in the order of ``spec.inputs``.
        opset: ai.onnx opset to write.
        path: file to write; weights beyond protobuf's 2 GB go to files beside it.
    """
    log = TraceLog()
    with _collect_warnings(log), torch.no_grad():
        {"torchscript": _torchscript, "dynamo": _dynamo}[exporter](module, spec, inputs, opset, path)
    return log


def _torchscript(module, spec: GraphSpec, inputs, opset: int, path: Path) -> None:
    tensors = (*spec.inputs, *spec.outputs)
    torch.onnx.export(
        module,
        inputs,
        str(path),
        input_names=[tensor.name for tensor in spec.inputs],
        output_names=[tensor.name for tensor in spec.outputs],
        dynamic_axes={tensor.name: tensor.dynamic_axes for tensor in tensors},
        opset_version=opset,
        # Folding transposes the tied embedding and stores it a second time; the runtime folds at load.
        do_constant_folding=False,
        **compat.torchscript_arguments(),
    )


def _dynamo(module, spec: GraphSpec, inputs, opset: int, path: Path) -> None:
    axes = {name: torch.export.Dim(name, min=1) for name in ("batch", "source", "target", "past")}
    shapes = [{axis: axes[name] for axis, name in tensor.dynamic_axes.items()} for tensor in spec.inputs]
    fixed = 3 if not _past_count(spec) else len(shapes) - _past_count(spec)
    program = torch.onnx.export(
        module,
        inputs,
        None,
        dynamo=True,
        input_names=[tensor.name for tensor in spec.inputs],
        output_names=[tensor.name for tensor in spec.outputs],
        dynamic_shapes=_grouped(shapes, fixed),
        opset_version=opset,
        verbose=False,
    )
    program.save(str(path), external_data=False)


def _past_count(spec: GraphSpec) -> int:
    return sum(tensor.name.startswith("past_key_values.") for tensor in spec.inputs)


def _grouped(shapes: list[dict], fixed: int) -> tuple:
    """``*past`` is one tuple argument to torch.export."""
    return (*shapes[:fixed], tuple(shapes[fixed:])) if shapes[fixed:] else tuple(shapes)


@contextlib.contextmanager
def _collect_warnings(log: TraceLog) -> Iterator[None]:
    """Catch Python warnings and the exporters' log records; keep their chatter off the terminal."""
    handler = _LogHandler(log)
    loggers = [logging.getLogger(name) for name in ("torch.onnx", "torch.export", "onnxscript", "onnx_ir")]
    with warnings.catch_warnings(record=True) as caught, contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("always")
        for logger in loggers:
            logger.addHandler(handler)
            logger.propagate = False
        try:
            yield
        finally:
            for logger in loggers:
                logger.removeHandler(handler)
                logger.propagate = True
    for warning in caught:
        log.add(f"{_library_path(warning.filename)}: {warning.category.__name__}: {warning.message}")


def _library_path(filename: str) -> str:
    """Path below site-packages, so that a warning reads the same on every machine."""
    path = Path(filename)
    return path.as_posix().split("site-packages/")[-1] if "site-packages" in path.parts else path.name


class _LogHandler(logging.Handler):
    def __init__(self, log: TraceLog) -> None:
        super().__init__(level=logging.WARNING)
        self.log = log

    def emit(self, record: logging.LogRecord) -> None:
        self.log.add(f"{record.name}: {record.getMessage()}")
