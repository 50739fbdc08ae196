"""Measure what one onnxruntime release can load on its CPU provider.

Prints the entry that `harness/contract/runtimes.json` holds for the onnxruntime it runs in. It
needs that onnxruntime and nothing else, neither `onnx` nor the harness:

    python -m venv rt && rt/bin/pip install onnxruntime==1.19.2        (below 1.19 also "numpy<2")
    rt/bin/python benchmarks/runtime_capabilities.py MODELS...         prints the entry
    rt/bin/python benchmarks/runtime_capabilities.py MODELS... --into harness/contract/runtimes.json

The last line merges: it adds the entry to the table, or replaces that minor release's.

MODELS are folders with node-test models of the `onnx` package, searched for `model.onnx` at any
depth. Its wheels ship them in `onnx/backend/test/data/node` up to 1.22. Later ones make them: save
the `model` of each case of `onnx.backend.test.case.node.collect_testcases(None)` in a folder of its
own. Each release of `onnx` has models of the newest version of each operator only, so give several:
the table was made with the last patch of every minor from 1.12 to 1.23.

Each model is loaded at every opset that the runtime accepts, not only at its own: kernels are
registered by version, so an operator can be there at opset 21 and missing at 22. Not measured, for
want of node tests: random generators, constructors of sequences and optionals. Left out: ai.onnx.ml
and training operators.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

HOW = (
    "benchmarks/runtime_capabilities.py asked each release's CPU provider to load one-node models: `lacks` are standard"
    " operators that it refuses at every opset, as not registered or not implemented; `lacks_at` those that it so"
    " refuses at the listed opsets only; `lacks_contrib` the com.microsoft operators, of those tried, of which a valid"
    " float32 node does not load."
)

MIN_OPSET = 7  # onnxruntime supports nothing older
IR = 8  # for every model but those that measure it: all releases in question load it

# TensorProto.DataType: https://onnx.ai/onnx/api/classes.html#tensorproto
FLOAT, UINT8, INT8, INT32, INT64, BOOL, UINT4 = 1, 2, 3, 6, 7, 9, 21
MODEL_TYPES = {FLOAT, INT32, INT64, BOOL}
QUANTIZED_TYPES = MODEL_TYPES | {UINT8, INT8}

# A valid node for each com.microsoft operator: integer attributes, (type, shape) of the inputs, and the
# number of outputs where more than one is required.
# https://github.com/microsoft/onnxruntime/blob/main/docs/ContribOperators.md
HIDDEN = (FLOAT, (1, 1, 16))
CACHE = (FLOAT, (1, 2, 4, 8))
CONTRIB = {
    "Attention": ({"num_heads": 2}, [HIDDEN, (FLOAT, (16, 48)), (FLOAT, (48,))]),
    "BiasGelu": ({}, [HIDDEN, (FLOAT, (16,))]),
    "DecoderMaskedMultiHeadAttention": ({"num_heads": 2}, [HIDDEN, HIDDEN, HIDDEN]),
    "DynamicQuantizeMatMul": ({}, [HIDDEN, (UINT8, (16, 4)), (FLOAT, (1,))]),
    "FastGelu": ({}, [HIDDEN]),
    "FusedMatMul": ({}, [HIDDEN, (FLOAT, (16, 4))]),
    "GatherBlockQuantized": ({"block_size": 16}, [(UINT4, (4, 32)), (INT64, (2,)), (FLOAT, (4, 2))]),
    "GroupQueryAttention": (
        {"num_heads": 2, "kv_num_heads": 2},
        [HIDDEN, HIDDEN, HIDDEN, CACHE, CACHE, (INT32, (1,)), (INT32, (1,))],
        3,
    ),
    "MatMulIntegerToFloat": ({}, [(UINT8, (2, 16)), (UINT8, (16, 4)), (FLOAT, (1,)), (FLOAT, (1,))]),
    "MatMulNBits": (
        {"K": 16, "N": 4, "bits": 4, "block_size": 16},
        [HIDDEN, (UINT8, (4, 1, 8)), (FLOAT, (4,))],
    ),
    "MultiHeadAttention": ({"num_heads": 2}, [HIDDEN, HIDDEN, HIDDEN]),
    "QAttention": (
        {"num_heads": 2},
        [(UINT8, (1, 1, 16)), (UINT8, (16, 48)), (FLOAT, (48,)), (FLOAT, ()), (FLOAT, ())],
    ),
    "RotaryEmbedding": ({}, [(FLOAT, (1, 2, 1, 8)), (INT64, (1,)), (FLOAT, (4, 4)), (FLOAT, (4, 4))]),
    "SkipLayerNormalization": ({}, [HIDDEN, HIDDEN, (FLOAT, (16,))]),
}


# --- protobuf, as much as a one-node model takes -----------------------------------------------------------


def varint(value: int) -> bytes:
    """Encode a non-negative integer."""
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


def field(number: int, value: int | str | bytes) -> bytes:
    """Encode one field of a message."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    data = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(data)) + data


def read_varint(data: bytes, at: int) -> tuple[int, int]:
    """Return the integer that starts at `at`, and where it ends."""
    value = shift = 0
    while True:
        value |= (data[at] & 127) << shift
        shift += 7
        at += 1
        if data[at - 1] < 128:
            return value, at


def fields(message: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Yield number and value of each field: integers, or bytes for strings and messages."""
    at = 0
    while at < len(message):
        key, at = read_varint(message, at)
        if key & 7 == 0:
            value, at = read_varint(message, at)
        else:
            size, at = read_varint(message, at) if key & 7 == 2 else ({1: 8, 5: 4}[key & 7], at)
            value, at = message[at : at + size], at + size
        yield key >> 3, value


def get(message: bytes, number: int) -> list:
    """Return the values of field `number`."""
    return [value for key, value in fields(message) if key == number]


def tensor_info(name: str, kind: int, shape: tuple[int, ...] | None = None) -> bytes:
    """Encode a tensor's ValueInfoProto; a shape of None is unknown."""
    tensor = field(1, kind)
    if shape is not None:
        tensor += field(2, b"".join(field(1, field(1, size)) for size in shape))
    return field(1, name) + field(2, field(1, tensor))


def one_node(op: str, attributes: dict[str, int], inputs: list, outputs: int = 1, domain: str = "") -> bytes:
    """Encode a graph of one node, `inputs` being (type, shape); its first output, a float, is the graph's."""
    names = [f"x{i}" for i in range(len(inputs))]
    node = b"".join(field(1, name) for name in names) + b"".join(field(2, f"y{i}") for i in range(outputs))
    node += field(4, op) + field(7, domain)
    for name, number in attributes.items():
        node += field(5, field(1, name) + field(3, number) + field(20, 2))
    graph = field(1, node) + field(2, "graph") + field(12, tensor_info("y0", FLOAT))
    return graph + b"".join(field(11, tensor_info(name, *spec)) for name, spec in zip(names, inputs, strict=True))


def stamp(graph: bytes, opset: int = 13, ir: int = IR) -> bytes:
    """Encode the model that a graph is at this opset and IR version."""
    contrib = field(8, field(1, "com.microsoft") + field(2, 1))
    return field(1, ir) + field(7, graph) + field(8, field(2, opset)) + contrib


# --- loading ------------------------------------------------------------------------------------------------


def session_error(model: bytes) -> str:
    """Create a CPU session; return the error, empty when there is none."""
    import onnxruntime  # here: only the child process loads it

    onnxruntime.set_default_logger_severity(4)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    try:
        onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # onnxruntime's exceptions have no common base
        return str(error) or type(error).__name__
    return ""


class Loader:
    """`session_error` in a child process: some releases crash on some models."""

    def __init__(self) -> None:
        self.pool = ProcessPoolExecutor(1)

    def __call__(self, model: bytes) -> str:
        """Return the error, empty when the model loads."""
        try:
            return self.pool.submit(session_error, model).result()
        except BrokenProcessPool:
            self.pool = ProcessPoolExecutor(1)
            return "crashed"


def highest(load: Loader, models: dict[int, bytes]) -> int:
    """Return the last number before the first model that does not load."""
    loaded = 0
    for number, model in models.items():
        if load(model):
            return loaded
        loaded = number
    raise SystemExit(f"every number up to {loaded} loads: raise the range")


# --- operators ----------------------------------------------------------------------------------------------


class Case(NamedTuple):
    """A node test: its opset, how far its types are from a translation model's (0 to 2), its graph."""

    opset: int
    distance: int
    graph: bytes


def element_types(type_proto: bytes) -> Iterator[int]:
    """Yield the tensor element types in a TypeProto, 0 for a map or an opaque type."""
    for tensor in get(type_proto, 1) + get(type_proto, 8):
        yield from get(tensor, 1)
    for container in get(type_proto, 4) + get(type_proto, 9):  # sequence, optional
        yield from element_types(get(container, 1)[0])
    if get(type_proto, 5) or get(type_proto, 7):
        yield 0


def read_cases(folders: list[Path]) -> dict[str, list[Case]]:
    """Return the tests of each standard operator, of the types nearest to a translation model's that it has."""
    cases: dict[str, list[Case]] = defaultdict(list)
    for model in sorted({path.read_bytes() for folder in folders for path in folder.rglob("model.onnx")}):
        (graph,) = get(model, 7)
        nodes = get(graph, 1)
        if len(nodes) != 1 or any(get(nodes[0], 7)):  # several nodes, or another domain
            continue
        opsets = {b"".join(get(item, 1)): get(item, 2)[0] for item in get(model, 8)}
        types = {kind for value in get(graph, 11) + get(graph, 12) for kind in element_types(get(value, 2)[0])}
        distance = 0 if types <= MODEL_TYPES else 1 if types <= QUANTIZED_TYPES else 2
        cases[get(nodes[0], 4)[0].decode()].append(Case(opsets[b""], distance, graph))
    if not cases:
        raise SystemExit("no one-node model.onnx in " + ", ".join(map(str, folders)))
    return {
        op: [case for case in found if case.distance == min(found, key=lambda c: c.distance).distance]
        for op, found in cases.items()
    }


def is_present(load: Loader, cases: list[Case], opset: int) -> bool | None:
    """Tell whether an operator loads at this opset, is lacking there, or (None) cannot be told.

    It is not registered when its own opset says so; at another, it may not exist yet, or no longer.
    """
    lacking = None
    for case in sorted(cases, key=lambda case: abs(case.opset - opset)):
        error = load(stamp(case.graph, opset))
        if not error:
            return True
        if "Could not find an implementation" in error or "Failed to find kernel" in error:
            lacking = False
        if case.opset == opset and ("No Op registered for" in error or "is not a registered function/op" in error):
            lacking = False
    return lacking


def lacking(load: Loader, cases: dict[str, list[Case]], max_opset: int) -> tuple[list[str], dict[str, list[int]]]:
    """Return the operators that are lacking at every opset, and others with the opsets where they are."""
    lacks, lacks_at = [], {}
    for op in sorted(cases):
        if min(case.opset for case in cases[op]) > max_opset:
            continue
        present = {opset: is_present(load, cases[op], opset) for opset in range(MIN_OPSET, max_opset + 1)}
        missing = [opset for opset in present if present[opset] is False]
        if not any(present.values()):
            print(f"{op} loads at no opset" + ("" if missing else ", but is not lacking"), file=sys.stderr)
        if missing and any(present.values()):
            lacks_at[op] = missing
        elif missing:
            lacks.append(op)
    return lacks, lacks_at


def lacking_contrib(load: Loader) -> list[str]:
    """Return the operators of CONTRIB that do not load: not registered, or not for float32 on the CPU."""
    errors = {op: load(stamp(one_node(op, *spec, domain="com.microsoft"))) for op, spec in CONTRIB.items()}
    for op, error in errors.items():
        if error:
            print(f"com.microsoft {op}: {error[:200]}", file=sys.stderr)
    return [op for op, error in errors.items() if error]


# --- the entry ----------------------------------------------------------------------------------------------


def measure(folders: list[Path]) -> dict:
    """Return the entry of the running onnxruntime."""
    load, cases = Loader(), read_cases(folders)
    identity = one_node("Identity", {}, [(FLOAT, (2,))])
    max_ir = highest(load, {ir: stamp(identity, ir=ir) for ir in range(3, 30)})
    max_opset = highest(load, {opset: stamp(identity, opset) for opset in range(MIN_OPSET, 60)})
    lacks, lacks_at = lacking(load, cases, max_opset)
    return {
        "version": metadata.version("onnxruntime"),
        "max_ir": max_ir,
        "max_opset": max_opset,
        "lacks": lacks,
        "lacks_at": lacks_at,
        "lacks_contrib": lacking_contrib(load),
    }


def render(value: dict) -> str:
    """Return indented JSON with each list on one line."""
    text = json.dumps(value, indent=2)
    return re.sub(r"\[[^][{}]*\]", lambda found: " ".join(found[0].split()).replace("[ ", "[").replace(" ]", "]"), text)


def merge(table: Path, minor: str, entry: dict) -> None:
    """Add the entry to the table, or replace that minor release's, keeping the order of releases."""
    runtimes = json.loads(table.read_text("utf-8"))["runtimes"] if table.exists() else {}
    runtimes[minor] = entry
    ordered = dict(sorted(runtimes.items(), key=lambda item: [int(part) for part in item[0].split(".")]))
    table.write_text(render({"schema": 1, "how": HOW, "runtimes": ordered}) + "\n", "utf-8")


def main() -> None:
    """Measure, and print or merge."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", type=Path, help="folders with node-test models of the onnx package")
    parser.add_argument("--into", type=Path, metavar="FILE", help="merge the entry into this table instead of printing")
    arguments = parser.parse_args()
    if not find_spec("onnxruntime"):
        parser.error("no onnxruntime in this environment: install the release to measure")
    entry = measure(arguments.models)
    minor = ".".join(entry["version"].split(".")[:2])
    if arguments.into:
        merge(arguments.into, minor, entry)
    else:
        print(render({minor: entry}))


if __name__ == "__main__":
    main()
