"""Rounding, packing, ranges and the integer test, each against another implementation or a known answer."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from exporters.calibration import BINS, Range, fingerprint
from exporters.quantized_graph import plan, quantized_nodes, rewrite, with_outputs
from exporters.weights import LARGEST, pack_blocks, round_weight
from harness.checks.graph.quantization import calibration_is_sound, enough_nodes, judge_weights, weights_survive
from harness.checks.graph.quantized import FLOAT, LOOKUP, PRODUCT, uses
from harness.checks.integer import FULL, GIVEN, REDUCED, multiplies_exactly
from harness.contract.finding import Verdict
from harness.contract.recipes import Recipe, find_recipe, lacking, read_recipes
from harness.contract.runtimes import runtime
from harness.settings import RECIPES

VOCABULARY, WIDTH, OUTPUTS = 60, 32, 48


def _weight(shape: tuple[int, int], seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def _model() -> onnx.ModelProto:
    """Looks ids up, multiplies by a stored matrix, by its own transpose, and projects with the table."""
    graph = helper.make_graph(
        [
            helper.make_node("Gather", ["table", "input_ids"], ["row"], name="lookup"),
            helper.make_node("MatMul", ["row", "matrix"], ["wide"], name="up"),
            helper.make_node("Transpose", ["back"], ["turned"], perm=[1, 0]),
            helper.make_node("MatMul", ["wide", "turned"], ["narrow"], name="down"),
            helper.make_node("Transpose", ["table"], ["columns"], perm=[1, 0]),
            helper.make_node("MatMul", ["narrow", "columns"], ["logits"], name="project"),
        ],
        "small",
        [helper.make_tensor_value_info("input_ids", TensorProto.INT64, ["batch", "source"])],
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["batch", "source", VOCABULARY])],
        [
            numpy_helper.from_array(_weight((VOCABULARY, WIDTH)), "table"),
            numpy_helper.from_array(_weight((WIDTH, OUTPUTS), 1), "matrix"),
            numpy_helper.from_array(_weight((WIDTH, OUTPUTS), 2), "back"),
        ],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 14)])
    model.ir_version = 7
    return model


PARAMETERS = {
    "table": _weight((VOCABULARY, WIDTH)), "matrix": _weight((WIDTH, OUTPUTS), 1), "back": _weight((WIDTH, OUTPUTS), 2)
}  # fmt: skip
IDS = {"input_ids": np.arange(12, dtype=np.int64).reshape(2, 6)}


def _run(model: onnx.ModelProto) -> list[np.ndarray]:
    return onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"]).run(None, IDS)


def _quantized(recipe: Recipe) -> onnx.ModelProto:
    model = _model()
    chosen = plan(model, recipe.encoder)
    seen = _run(with_outputs(model, chosen.activations))[1:]
    ranges = {name: (float(array.min()), float(array.max())) for name, array in zip(chosen.activations, seen)}
    rewrite(model, chosen, recipe, "encoder", ranges)
    return model


# Recipes that every supported runtime has.
EVERYWHERE = [name for name in read_recipes(RECIPES) if not lacking(find_recipe(name, RECIPES), runtime("1.14"))]


@pytest.mark.parametrize("name", EVERYWHERE)
def test_a_quantized_graph_keeps_its_values_and_its_weights(name):
    model = _quantized(find_recipe(name, RECIPES))
    onnx.checker.check_model(model, full_check=True)
    expected, found = _run(_model())[0], _run(model)[0]
    assert np.square(expected).sum() > 100 * np.square(found - expected).sum()
    assert quantized_nodes(model) == 4
    read = uses("small.onnx", model, Path(), "input_ids")
    assert sorted(use.purpose for use in read) == [LOOKUP, PRODUCT, PRODUCT, PRODUCT]
    judged = judge_weights(read, PARAMETERS)
    assert {one.parameter for one in judged} == set(PARAMETERS)
    assert min(one.snr for one in judged) > 30
    assert {f.verdict for f in weights_survive("small.onnx", judged, 8, str)} == {Verdict.PASS}
    assert enough_nodes("small.onnx", read, 4, find_recipe(name, RECIPES).method).verdict is Verdict.PASS


def test_a_tied_table_is_stored_once_as_integers():
    model = _quantized(find_recipe("int8-dynamic", RECIPES))
    large = [tensor.name for tensor in model.graph.initializer if len(tensor.dims) == 2]
    assert sorted(large) == ["back_quantized", "matrix_quantized", "table_quantized"]


def test_a_table_of_which_one_reader_is_excluded_stays_in_float_as_a_whole():
    recipe = find_recipe("int8-dynamic", RECIPES).to_json()
    recipe["encoder"]["exclude"] = ["project"]
    model = _quantized(Recipe.from_json("int8-dynamic", recipe, where="test"))
    kinds = {use.node: use.kind for use in uses("small.onnx", model, Path(), "input_ids")}
    assert kinds["lookup"] == kinds["project"] == FLOAT
    assert list(kinds.values()).count(FLOAT) == 2


# Columns or tensor, bits -> as onnxruntime's own quantizer is asked for it.
@pytest.mark.parametrize("per_channel", [True, False])
def test_weights_round_as_onnxruntimes_own_quantizer_does(per_channel, tmp_path):
    from onnxruntime.quantization import quantize_dynamic

    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "matrix"], ["y"])],
        "one",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["rows", WIDTH])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["rows", OUTPUTS])],
        [numpy_helper.from_array(PARAMETERS["matrix"], "matrix")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 14)])
    model.ir_version = 7
    onnx.save(model, str(tmp_path / "float.onnx"))
    quantize_dynamic(tmp_path / "float.onnx", tmp_path / "int8.onnx", per_channel=per_channel)
    theirs = {t.name: numpy_helper.to_array(t) for t in onnx.load(str(tmp_path / "int8.onnx")).graph.initializer}
    ours = round_weight(PARAMETERS["matrix"], channel_axis=1 if per_channel else None, bits=8, symmetric=True)
    np.testing.assert_allclose(theirs["matrix_scale"].reshape(-1), ours.scale.reshape(-1), rtol=1e-6)
    assert np.abs(theirs["matrix_quantized"].astype(int) - ours.values).max() <= 1


@pytest.mark.parametrize("symmetric", [True, False])
@pytest.mark.parametrize("bits", [8, 7])
def test_rounding_stays_within_half_a_step_and_keeps_zero(bits, symmetric):
    weight = np.concatenate([_weight((40, 8)) + 1, np.zeros((1, 8), np.float32)])
    rounded = round_weight(weight, channel_axis=1, bits=bits, symmetric=symmetric)
    back = (rounded.values.astype(np.float32) - rounded.zero_point) * rounded.scale
    assert np.abs(back - weight).max() <= rounded.scale.max() * (0.5 if symmetric else 1.0) + 1e-6
    assert not back[-1].any()
    assert np.abs(rounded.values.astype(int)).max() <= (LARGEST[bits] if symmetric else 128)


def test_packed_blocks_hold_the_rounded_weight():
    weight = _weight((50, 6))
    packed, scale = pack_blocks(weight, 32)
    assert packed.shape == (6, 2, 16) and scale.shape == (12,)
    numbers = np.stack([packed & 15, packed >> 4], axis=-1).reshape(6, 2, 32).astype(np.float32) - 8
    back = (numbers * scale.reshape(6, 2, 1)).reshape(6, 64)[:, :50].T
    assert np.abs(back - weight).max() <= scale.max() / 2 + 1e-6


def test_a_histogram_grows_with_its_values_and_loses_none():
    seen = Range(histogram=True)
    for top in (0.5, 3.0, 100.0):
        seen.add(np.linspace(-top, top, 1001, dtype=np.float32))
    seen.add(np.zeros((0, 4), np.float32))
    assert seen.counts.sum() == seen.seen == 3003
    assert seen.top >= 100.0 and len(seen.counts) == BINS
    assert (seen.low, seen.high) == (-100.0, 100.0)


@pytest.mark.parametrize("name", ["int8-static-entropy", "int8-static-percentile"])
def test_a_lonely_outlier_is_cut_off(name):
    seen = Range(histogram=True)
    seen.add(np.random.default_rng(0).normal(size=200_000).astype(np.float32))
    seen.add(np.array([400.0], np.float32))
    low, high = seen.result(find_recipe(name, RECIPES))
    assert -10 < low < -2 and 2 < high < 60


def _saturating(model: bytes, feeds) -> np.ndarray:
    """What a CPU without VNNI computes: neighbouring products are added in 16 bits."""
    weights = numpy_helper.to_array(onnx.load_from_string(model).graph.initializer[0]).astype(np.int64)
    given, pairs = feeds[GIVEN].astype(np.int64), []
    for i in range(0, given.shape[1], 2):
        pairs.append(np.clip(given[:, i : i + 2] @ weights[i : i + 2], -(1 << 15), (1 << 15) - 1))
    return np.sum(pairs, axis=0).astype(np.int32)


def test_a_cpu_that_saturates_is_named_and_seven_bits_are_its_remedy():
    bad = multiplies_exactly(_saturating, FULL, True, ["avx2"])
    assert bad.verdict is Verdict.FAIL and "saturate in 16 bits" in bad.cause and "reduce_range" in bad.action
    assert multiplies_exactly(_saturating, FULL, False, ["avx2"]).verdict is Verdict.WARN
    assert multiplies_exactly(_saturating, REDUCED, True, ["avx2"]).verdict is Verdict.PASS


def test_a_kernel_that_is_wrong_for_one_row_only_is_found():
    def run(model: bytes, feeds) -> np.ndarray:
        weights = numpy_helper.to_array(onnx.load_from_string(model).graph.initializer[0]).astype(np.int32)
        return feeds[GIVEN].astype(np.int32) @ weights + (len(feeds[GIVEN]) == 1)

    found = multiplies_exactly(run, FULL, True, ["avx512_vnni"])
    assert found.verdict is Verdict.FAIL and "1 rows" in found.where and "the kernel is wrong" in found.cause


def test_calibration_and_evaluation_overlap_whatever_case_and_punctuation(calibration):
    record = fingerprint(calibration)
    first = json.loads(calibration.read_text(encoding="utf-8").splitlines()[0])["source"]
    sound = calibration_is_sound(record, {"core.jsonl: a": "Another sentence."})
    assert [finding.verdict for finding in sound] == [Verdict.PASS] * 3
    shared = calibration_is_sound(record, {"core.jsonl: a": first.upper().replace(" ", "  ") + "!"})[2]
    assert shared.verdict is Verdict.FAIL and "core.jsonl: a" in shared.where


def test_int4_is_refused_where_the_runtime_has_no_such_operator():
    recipe = find_recipe("int4-weights", RECIPES)
    assert "MatMulNBits, which onnxruntime 1.14 does not have" in lacking(recipe, runtime("1.14"))
    assert not lacking(recipe, runtime("1.16"))
