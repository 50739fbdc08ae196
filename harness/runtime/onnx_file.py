"""A look into an ``.onnx`` file without the onnx package: is it whole, and where do its weights lie?

Reads protobuf's wire format (https://protobuf.dev/programming-guides/encoding/) just far enough; tensor bytes are
skipped, not copied. Field numbers are those of onnx.proto.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from harness.contract.errors import InputError

COPY_AGAIN = "Copy or export the file again."
_MODEL_IR, _MODEL_GRAPH = 1, 7
_GRAPH_NODE, _GRAPH_INITIALIZER = 1, 5
_NODE_OPERATOR, _NODE_ATTRIBUTE = 4, 5
_ATTRIBUTE_TENSOR, _ATTRIBUTE_GRAPH = 5, 6
_TENSOR_EXTERNAL = 13
_ENTRY_KEY, _ENTRY_VALUE = 1, 2


@dataclass(frozen=True)
class OnnxFile:
    """What the runtime has to know of a file before it opens it.

    Attributes:
        ir_version: as stored.
        external: locations of external data, as stored, and the bytes that must exist there.
        operators: operators of all nodes, those in branches included.
    """

    ir_version: int
    external: dict[str, int]
    operators: frozenset[str] = frozenset()


def inspect(path: Path) -> OnnxFile:
    """Read a file's frame.

    Raises:
        InputError: the file is truncated, not ONNX, or its external data is missing, too short or outside the folder.
    """
    try:
        with path.open("rb") as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as data:
            found = _model(data)
    except (ValueError, IndexError) as error:  # mmap refuses an empty file with ValueError
        raise InputError(what=f"truncated or not an ONNX file ({error})", where=path, action=COPY_AGAIN) from None
    except OSError as error:
        raise InputError(what=f"cannot be read ({error.strerror})", where=path, action=COPY_AGAIN) from None
    for location, size in found.external.items():
        _check_external(path, location, size)
    return found


def _check_external(path: Path, location: str, size: int) -> None:
    pure = PurePosixPath(location.replace("\\", "/"))
    target = path.parent / location
    outside = pure.is_absolute() or ".." in pure.parts or path.parent.resolve() not in target.resolve().parents
    if outside:
        raise InputError(
            what=f"its external data {location!r} lies outside the artifact folder",
            where=path,
            action="Keep the data file beside the .onnx file and store its plain name.",
        )
    found = target.stat().st_size if target.is_file() else None
    if found is None or found < size:
        state = "is missing" if found is None else f"has {found} bytes, {size} are needed"
        raise InputError(
            what=f"its external data {location!r} {state}",
            where=path,
            action="Copy the data file that belongs to the .onnx file into the same folder.",
        )


def _model(data: mmap.mmap) -> OnnxFile:
    ir_version, external, operators, graphs = 0, {}, set(), 0
    for number, value in _fields(data, 0, len(data)):
        if number == _MODEL_IR and isinstance(value, int):
            ir_version = value
        elif number == _MODEL_GRAPH and isinstance(value, slice):
            graphs += 1
            _graph(data, value, external, operators)
    if not ir_version or graphs != 1:
        raise ValueError("no graph inside")
    return OnnxFile(ir_version, external, frozenset(operators))


def _graph(data: mmap.mmap, where: slice, external: dict[str, int], operators: set[str]) -> None:
    for number, value in _fields(data, where.start, where.stop):
        if number == _GRAPH_INITIALIZER:
            _tensor(data, value, external)
        elif number == _GRAPH_NODE:
            operators.update(str(data[name], "utf-8", "replace") for name in _children(data, value, _NODE_OPERATOR))
            for attribute in _children(data, value, _NODE_ATTRIBUTE):
                for inner in _children(data, attribute, _ATTRIBUTE_GRAPH):
                    _graph(data, inner, external, operators)
                for inner in _children(data, attribute, _ATTRIBUTE_TENSOR):
                    _tensor(data, inner, external)


def _tensor(data: mmap.mmap, where: slice, external: dict[str, int]) -> None:
    entries = {}
    for entry in _children(data, where, _TENSOR_EXTERNAL):
        pair = {number: bytes(data[value]).decode() for number, value in _fields(data, entry.start, entry.stop)}
        entries[pair.get(_ENTRY_KEY)] = pair.get(_ENTRY_VALUE, "")
    if location := entries.get("location"):
        end = int(entries.get("offset") or 0) + int(entries.get("length") or 0)
        external[location] = max(external.get(location, 0), end)


def _children(data: mmap.mmap, where: slice, wanted: int) -> Iterator[slice]:
    for number, value in _fields(data, where.start, where.stop):
        if number == wanted and isinstance(value, slice):
            yield value


def _fields(data: mmap.mmap, start: int, stop: int) -> Iterator[tuple[int, int | slice]]:
    """Yield (field number, varint value or slice of a length-delimited value)."""
    position = start
    while position < stop:
        key, position = _varint(data, position, stop)
        number, wire = key >> 3, key & 7
        if wire == 0:
            value, position = _varint(data, position, stop)
            yield number, value
        elif wire == 2:
            length, position = _varint(data, position, stop)
            if position + length > stop:
                raise ValueError(f"ends {position + length - stop} bytes early")
            yield number, slice(position, position + length)
            position += length
        elif wire in (1, 5):
            position += 8 if wire == 1 else 4
        else:
            raise ValueError("unknown wire type")
    if position != stop:
        raise ValueError("ends inside a field")


def _varint(data: mmap.mmap, position: int, stop: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if position >= stop or shift > 63:
            raise ValueError("ends inside a number")
        byte = data[position]
        value |= (byte & 0x7F) << shift
        position, shift = position + 1, shift + 7
        if byte < 0x80:
            return value, position
