"""Unit tests of ``harness/runtime/onnx_file.py``: files cut anywhere, and external data in every wrong place."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from harness.contract.errors import InputError
from harness.runtime.onnx_file import inspect

ROWS, COLUMNS = 16, 8
BYTES = ROWS * COLUMNS * 4


def model_of(*initializers: TensorProto, nodes: tuple = ()) -> onnx.ModelProto:
    value = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", ROWS])
    graph = helper.make_graph(list(nodes), "graph", [value], [value], list(initializers))
    return helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)])


def weight(name: str = "weight") -> TensorProto:
    return numpy_helper.from_array(np.arange(ROWS * COLUMNS, dtype=np.float32).reshape(ROWS, COLUMNS), name)


def external(location: str, *, offset: int = 0, length: int = BYTES) -> TensorProto:
    """A tensor whose bytes are said to lie in another file."""
    tensor = TensorProto(name="weight", data_type=TensorProto.FLOAT, dims=[ROWS, COLUMNS])
    tensor.data_location = TensorProto.EXTERNAL
    for key, value in (("location", location), ("offset", str(offset)), ("length", str(length))):
        tensor.external_data.add(key=key, value=value)
    return tensor


def in_a_branch(tensor: TensorProto) -> tuple:
    """An If whose one branch holds the tensor."""
    branch = model_of(tensor).graph
    return (helper.make_node("If", ["x"], ["y"], then_branch=branch, else_branch=branch),)


def in_a_constant(tensor: TensorProto) -> tuple:
    """A Constant that holds the tensor."""
    return (helper.make_node("Constant", [], ["y"], value=tensor),)


def stored(folder: Path, model: onnx.ModelProto) -> Path:
    path = folder / "model.onnx"
    path.write_bytes(model.SerializeToString())
    return path


def test_a_whole_file_is_read(tmp_path):
    found = inspect(stored(tmp_path, model_of(weight(), nodes=in_a_constant(weight("other")))))
    assert (found.ir_version, found.external) == (8, {})


def test_a_file_cut_anywhere_is_refused(tmp_path):
    whole = model_of(weight(), nodes=in_a_branch(weight("inner"))).SerializeToString()
    path, read = tmp_path / "model.onnx", []
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        try:
            inspect(path)
            read.append(length)
        except InputError as error:
            assert error.where == str(path)
    # The opset import is the last field: a file that ends exactly before it has a frame that is whole.
    assert read in ([], [len(whole) - len(_last_field(whole))])


def _last_field(whole: bytes) -> bytes:
    imports = onnx.ModelProto(opset_import=[helper.make_opsetid("", 17)]).SerializeToString()
    assert whole.endswith(imports)
    return imports


# bytes
NO_MODELS = {
    "empty": b"",
    "text": b"this is no model at all, and long enough to be one",
    "a Git LFS pointer": b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 3\n",
    "zeros": bytes(4096),
    "ones": b"\xff" * 4096,
    "a pickle": b"\x80\x02}q\x00.",
    "an empty graph-less model": onnx.ModelProto(ir_version=8).SerializeToString(),
    "two graphs, one behind the other": 2 * model_of(weight()).SerializeToString(),
}


@pytest.mark.parametrize("case", NO_MODELS)
def test_a_file_that_is_no_model_is_refused(case, tmp_path):
    path = tmp_path / "model.onnx"
    path.write_bytes(NO_MODELS[case])
    with pytest.raises(InputError, match=r"truncated or not an ONNX file"):
        inspect(path)


def test_damaged_bytes_never_end_in_another_exception(tmp_path):
    whole = model_of(external("weights.bin"), nodes=in_a_branch(external("weights.bin"))).SerializeToString()
    generator = np.random.default_rng(0)
    (tmp_path / "weights.bin").write_bytes(bytes(BYTES))
    path = tmp_path / "model.onnx"
    for _ in range(500):
        damaged = bytearray(whole)
        damaged[generator.integers(len(whole))] = generator.integers(256)
        path.write_bytes(bytes(damaged))
        try:
            inspect(path)
        except InputError:
            continue


def test_a_folder_in_place_of_a_file_is_refused(tmp_path):
    with pytest.raises(InputError, match="cannot be read"):
        inspect(tmp_path)


# where a tensor is held -> its model
HOLDERS = {
    "an initializer": lambda tensor: model_of(tensor),
    "a branch": lambda tensor: model_of(nodes=in_a_branch(tensor)),
    "a constant": lambda tensor: model_of(nodes=in_a_constant(tensor)),
}


@pytest.mark.parametrize("holder", HOLDERS)
def test_external_data_is_found_wherever_it_is_held(holder, tmp_path):
    path = stored(tmp_path, HOLDERS[holder](external("weights.bin", offset=64)))
    with pytest.raises(InputError, match=r"'weights\.bin' is missing"):
        inspect(path)
    (tmp_path / "weights.bin").write_bytes(bytes(64 + BYTES))
    assert inspect(path).external == {"weights.bin": 64 + BYTES}


def test_external_data_that_is_too_short_is_refused_with_both_sizes(tmp_path):
    (tmp_path / "weights.bin").write_bytes(bytes(BYTES - 1))
    path = stored(tmp_path, model_of(external("weights.bin")))
    with pytest.raises(InputError, match=f"has {BYTES - 1} bytes, {BYTES} are needed"):
        inspect(path)


def test_external_data_in_a_folder_below_is_inside(tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "weights.bin").write_bytes(bytes(BYTES))
    assert inspect(stored(tmp_path, model_of(external("data/weights.bin")))).external == {"data/weights.bin": BYTES}


# location, relative to the set's folder; the data exists at every one of them
OUTSIDE = {
    "one folder up": "../secret.bin",
    "down and up": "inner/../../secret.bin",
    "with back slashes": "..\\secret.bin",
    "absolute": "{outside}/secret.bin",
    "through a link to a file": "link.bin",
    "through a link to a folder": "linked/secret.bin",
}


@pytest.mark.parametrize("case", OUTSIDE)
def test_external_data_outside_the_folder_is_refused(case, tmp_path):
    folder = tmp_path / "set"
    (folder / "inner").mkdir(parents=True)
    (tmp_path / "secret.bin").write_bytes(bytes(BYTES))
    os.symlink(tmp_path / "secret.bin", folder / "link.bin")
    os.symlink(tmp_path, folder / "linked")
    location = OUTSIDE[case].format(outside=tmp_path)
    with pytest.raises(InputError, match="lies outside the artifact folder"):
        inspect(stored(folder, model_of(external(location))))


def test_a_set_behind_a_link_is_not_outside_of_itself(tmp_path):
    folder = tmp_path / "set"
    folder.mkdir()
    (folder / "weights.bin").write_bytes(bytes(BYTES))
    stored(folder, model_of(external("weights.bin")))
    os.symlink(folder, tmp_path / "latest")
    assert inspect(tmp_path / "latest" / "model.onnx").external == {"weights.bin": BYTES}
