"""One file for the weights of a set, where two of its graphs hold the same large one."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

import onnx
from onnx import ModelProto, TensorProto
from onnx.external_data_helper import set_external_data

from harness.runtime.onnx_file import inspect

WEIGHTS_FILE = "weights.data"
# A tied embedding of opus-mt has 133 MB in float32 and 33 MB in int8. Below this a set of self-contained files is worth
# more than the bytes that sharing saves.
SHARED_ABOVE_BYTES = 1 << 24
# Smaller tensors stay in the graph: shape inference reads them.
EXTERNAL_ABOVE_BYTES = 1024
# The runtime maps the file into memory, which begins at a page.
ALIGNMENT = 4096


def share_large_weights(paths: Sequence[Path], above: int = SHARED_ABOVE_BYTES) -> None:
    """Move the weights of all graphs into ``weights.data`` beside them, equal bytes once.

    Nothing is done unless two of the graphs hold an equal tensor of at least ``above`` bytes. The runtime maps the
    file, so that what two sessions share is in memory once (external data:
    https://onnx.ai/onnx/repo-docs/ExternalData.html).

    Args:
        paths: the graph files of one set, in one folder that no one else reads yet.
    """
    if not _is_worth_it(paths, above):
        return
    data = paths[0].parent / WEIGHTS_FILE
    places: dict[str, int] = {}
    with data.open("wb") as stream:
        for path in paths:
            before = set(inspect(path).external)
            model = onnx.load(str(path))
            for tensor in _large(model, EXTERNAL_ABOVE_BYTES):
                content = _bytes(tensor)
                key = _key(tensor, content)
                if key not in places:
                    stream.write(bytes(-stream.tell() % ALIGNMENT))
                    places[key] = stream.tell()
                    stream.write(content)
                _point(tensor, content, places[key])
            path.write_bytes(model.SerializeToString())
            for name in before:
                (path.parent / name).unlink()


def graph_bytes(path: Path) -> int:
    """Bytes of a graph file and of the weights it points to, wherever they are."""
    model = onnx.load(str(path), load_external_data=False)
    outside = (tensor for tensor in model.graph.initializer if tensor.data_location == TensorProto.EXTERNAL)
    lengths = (int(entry.value) for tensor in outside for entry in tensor.external_data if entry.key == "length")
    return path.stat().st_size + sum(lengths)


def _is_worth_it(paths: Sequence[Path], above: int) -> bool:
    held: list[set[str]] = []
    for path in paths:
        model = onnx.load(str(path))
        held.append({_key(tensor, _bytes(tensor)) for tensor in _large(model, above)})
    return sum(map(len, held)) > len(set().union(*held))


def _large(model: ModelProto, above: int) -> list[TensorProto]:
    return [tensor for tensor in model.graph.initializer if len(_bytes(tensor)) >= above]


def _bytes(tensor: TensorProto) -> bytes:
    if not tensor.HasField("raw_data"):
        tensor.raw_data = onnx.numpy_helper.to_array(tensor).tobytes()
        for name in ("float_data", "int32_data", "int64_data"):
            tensor.ClearField(name)
    return tensor.raw_data


def _key(tensor: TensorProto, content: bytes) -> str:
    return f"{tensor.data_type} {hashlib.sha256(content).hexdigest()}"


def _point(tensor: TensorProto, content: bytes, offset: int) -> None:
    set_external_data(tensor, WEIGHTS_FILE, offset=offset, length=len(content))
    tensor.ClearField("raw_data")
