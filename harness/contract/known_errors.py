"""Error texts of torch and onnxruntime, each with its cause and a remedy: the one table.

A user reads the cause and the remedy in place of the stack trace. What is not in the table stays an internal error,
with its traceback, because it is not understood yet.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from harness.contract.errors import InputError


@dataclass(frozen=True)
class KnownError:
    """A regular expression over an exception's text; groups may be used in ``cause`` as ``{0}``, ``{1}``."""

    pattern: str
    cause: str
    remedy: str


KNOWN_ERRORS = (
    KnownError(
        r"Unsupported model IR version: (\d+), max supported IR version: (\d+)",
        "IR version {0}, this onnxruntime loads up to {1}",
        "Export with --target-ort set to the oldest runtime that has to load the file.",
    ),
    KnownError(
        r"Opset (\d+) is under development and support for this is limited.*?till opset (\d+)",
        "opset {0}, this onnxruntime guarantees up to {1}",
        "Export with a lower --opset.",
    ),
    KnownError(
        r"Could not find an implementation for (\w+)\((\d+)\)",
        "this onnxruntime has no kernel for {0} of opset {1}",
        "Export with another --opset or the other --exporter, or upgrade the runtime.",
    ),
    KnownError(
        r"(?:([\w.:]+)\(-?\d+\) is not a registered function/op|No Op registered for (\w+))",
        "this onnxruntime does not know the operator {0}{1}",
        "Export for this runtime with --target-ort, or upgrade it.",
    ),
    KnownError(
        r"(?i)protobuf parsing failed|ModelProto does not have a graph|INVALID_PROTOBUF|Failed to load model because",
        "not a whole ONNX file",
        "Copy or export the file again.",
    ),
    KnownError(
        r"Node \(([^)]*)\) Op \((\w+)\) \[(?:Shape|Type)InferenceError\] (.{0,160})",
        "shapes or types contradict each other at node {0} ({1}): {2}",
        "Run suites/export on the set: strict shape inference names the node.",
    ),
    KnownError(
        r"This is an invalid model\..*?Error[: ]+(.{0,160})",
        "not a valid model: {0}",
        "Run suites/export on the set: the ONNX checker names the node.",
    ),
    KnownError(
        r"(?i)external data path.*(?:escapes|outside|not within|not allowed|is absolute)|must be a relative path",
        "its external data lies outside the artifact folder",
        "Keep the data file beside the .onnx file and store its plain name.",
    ),
    KnownError(
        r"(?i)(?:cannot get file size|cannot open file|No such file or directory|External data path does not exist"
        r"|GetFileLength for|External initializer.*(?:out of bounds|file))",
        "its external data is missing or too short",
        "Copy the data file that belongs to the .onnx file into the same folder.",
    ),
    KnownError(
        r"Name:'([^']*)'.*?cannot be reshaped to the.*?Input shape:\{([\d,]*)\}, requested shape:\{([-\d,]*)\}",
        "node {0} wants shape ({2}) and got ({1}): an axis is baked inside the graph",
        "Export with every batch and length axis dynamic, from tracing sizes of 2 or more that all differ.",
    ),
    KnownError(
        r"Got invalid dimensions for input: (\S+) .*?index: (\d+) Got: (\d+) Expected: (\d+)",
        "input {0} takes only size {3} on axis {1}, {2} was given: the axis is baked",
        "Declare the axis dynamic when exporting.",
    ),
    KnownError(
        r"Invalid rank for input: (\S+) Got: (\d+) Expected: (\d+)",
        "input {0} has rank {2}, {1} was given",
        "Export with the tensor contract of the layout.",
    ),
    KnownError(
        r"Name:'([^']*)'.*?indices element out of data bounds, idx=(-?\d+)",
        "node {0} looks up entry {1} of a table that is shorter: a position or token id beyond the model's tables",
        "Split or truncate the input, or check that tokenizer and model belong together.",
    ),
    KnownError(
        r"Name:'([^']*)'[^']*Status Message: (.{0,160})",
        "node {0} cannot run: {1}",
        "An axis is baked inside the graph or inputs do not belong together; run suites/export on the set.",
    ),
    KnownError(
        r"(?:Invalid Feed Input Name|Required inputs \(\[([^\]]*)\]\) are missing)",
        "the graph's inputs are not those of its layout {0}",
        "Export with the tensor names of the layout, see the README.",
    ),
    KnownError(
        r"Specified provider '?(\w+)'? is not|Unknown Provider Type: (\w+)",
        "this onnxruntime has no provider {0}{1}",
        "Install the onnxruntime build that has it, or leave --providers out.",
    ),
    KnownError(
        r"Exporting the operator '?([\w:]+)'? to ONNX opset version (\d+) is not supported",
        "the TorchScript exporter has no {0} at opset {1}",
        "Raise --opset, or use --exporter dynamo.",
    ),
    KnownError(
        r"(?:Constraints violated|specialized it to be a constant)(.{0,120})",
        "torch.export fixed an axis that must stay dynamic{0}",
        "Use --exporter torchscript, or tracing sizes that no size of the model equals.",
    ),
    KnownError(
        r"No module named '(onnxscript|onnx_ir)[\w.]*'",
        "the dynamo exporter needs {0}",
        "pip install onnxscript, or use --exporter torchscript.",
    ),
    KnownError(
        r"(?:larger than the 2GiB limit|exceeds maximum protobuf size of 2GB)",
        "the graph exceeds protobuf's 2 GB",
        "Its weights must go to external data; export with this project's exporter.",
    ),
    KnownError(
        r"DefaultCPUAllocator: (?:can't allocate memory|not enough memory)|Failed to allocate memory|bad allocation",
        "out of memory",
        "Use a smaller batch or a machine with more memory.",
    ),
    KnownError(r"No space left on device", "the disk is full", "Free space or name another folder."),
)


def recognise(text: str) -> tuple[str, str] | None:
    """Return cause and remedy for an error text, or None when the table does not know it."""
    flat = " ".join(text.split())
    for known in KNOWN_ERRORS:
        if match := re.search(known.pattern, flat):
            return known.cause.format(*(group or "" for group in match.groups())), known.remedy
    return None


@contextmanager
def explain(*, where: object) -> Iterator[None]:
    """Turn a known error inside the block into an ``InputError``; let any other pass."""
    try:
        yield
    except InputError:
        raise
    except Exception as error:  # every library raises its own types; the text decides
        if (known := recognise(f"{type(error).__name__}: {error}")) is None:
            raise
        raise InputError(what=known[0], where=where, action=known[1]) from error
