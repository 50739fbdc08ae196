"""Faults planted in quantized sets, each with the check of ``suites/quantization`` that has to find it.

Every plant takes the folder of a set made by ``python -m exporters --precision`` and changes it in place; ``reseal``
makes the manifest agree, as it would if the quantizer itself had made the mistake. None depends on the model's words.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
from onnx import GraphProto, ModelProto, TensorProto, helper, numpy_helper

from meta_tests.faults import add_constant, edited, edited_manifest, producer, set_data

DYNAMIC, STATIC, INT4 = "int8-dynamic", "int8-static", "int4-weights"


@dataclass(frozen=True)
class QuantizationFault:
    """A planted fault.

    Attributes:
        precision: recipe of the set that it is planted in.
        plant: (folder, folder of the float32 set) -> None, changes the first in place.
        test: name of the test that must fail, without parameters.
        words: what the finding must say; every entry is part of its text.
        elsewhere: the manifest is removed: the set counts as made elsewhere.
    """

    precision: str
    plant: Callable[[Path, Path], None]
    test: str
    words: tuple[str, ...]
    elsewhere: bool = False


def stored(graph: GraphProto, name: str) -> tuple[TensorProto, np.ndarray]:
    """An initializer and its contents, free to change."""
    tensor = next(tensor for tensor in graph.initializer if tensor.name == name)
    return tensor, numpy_helper.to_array(tensor).copy()


def scaled(model: ModelProto, name: str, factor: float, columns: slice = slice(None)) -> None:
    """Multiply a weight's scale, of all columns or of some."""
    tensor, scale = stored(model.graph, f"{name}_scale")
    scale[columns] *= factor
    set_data(tensor, scale)


FC1 = "decoder.layers.1.fc1.weight"
TABLE = "decoder.embed_tokens.weight"


def plant_scale(folder: Path, _: Path) -> None:
    """The scales of one tensor are four times too large."""
    with edited(folder / "decoder.onnx") as model:
        scaled(model, FC1, 4.0)


def plant_scale_of_a_column(folder: Path, _: Path) -> None:
    """The scale of one output column is off: the tensor's average hardly moves."""
    with edited(folder / "decoder.onnx") as model:
        scaled(model, FC1, 1.5, slice(17, 18))


def plant_scale_of_the_encoder(folder: Path, _: Path) -> None:
    """Every product of the encoder's last layer comes out eight times too large."""
    with edited(folder / "encoder.onnx") as model:
        names = [t.name for t in model.graph.initializer if t.name.startswith("encoder.layers.3.")]
        for name in names:
            if name.endswith("weight_scale"):
                scaled(model, name.removesuffix("_scale"), 8.0)


def digit_rows(folder: Path) -> list[int]:
    """Rows of the embedding that stand for digits."""
    vocabulary = json.loads((folder / "vocab.json").read_text(encoding="utf-8"))
    return sorted(index for piece, index in vocabulary.items() if piece.strip("▁").isdigit())[:10]


def plant_digit_rows(folder: Path, _: Path) -> None:
    """Every digit got the row of the first: 3 boxes become 8."""
    rows = digit_rows(folder)
    for file, side in (("encoder.onnx", "encoder"), ("decoder.onnx", "decoder")):
        with edited(folder / file) as model:
            for kind in ("quantized", "scale"):
                tensor, array = stored(model.graph, f"{side}.embed_tokens.weight_{kind}")
                array[rows] = array[rows[0]]
                set_data(tensor, array)


def plant_digit_rows_coarse(folder: Path, _: Path) -> None:
    """The digits' rows kept three levels."""
    with edited(folder / "decoder.onnx") as model:
        tensor, array = stored(model.graph, f"{TABLE}_quantized")
        rows = digit_rows(folder)
        array[rows] = np.clip(np.round(array[rows] / 127.0), -1, 1).astype(np.int8) * 127
        set_data(tensor, array)


def plant_four_bits(folder: Path, _: Path) -> None:
    """One matrix was rounded to 4 bits, and its scale made to fit."""
    with edited(folder / "encoder.onnx") as model:
        tensor, array = stored(model.graph, "encoder.layers.2.fc2.weight_quantized")
        set_data(tensor, np.clip(np.round(array / 127.0 * 7), -7, 7).astype(np.int8))
        scaled(model, "encoder.layers.2.fc2.weight", 127 / 7)


def plant_four_bits_in_eight(folder: Path, _: Path) -> None:
    """One matrix was rounded to 4 bits and stored as multiples, its scale as it was."""
    with edited(folder / "encoder.onnx") as model:
        tensor, array = stored(model.graph, "encoder.layers.2.fc2.weight_quantized")
        set_data(tensor, (np.clip(np.round(array / 18.0), -7, 7) * 18).astype(np.int8))


def plant_float_decoder(folder: Path, float32: Path) -> None:
    """The float32 decoder lies in the quantized set."""
    shutil.copyfile(float32 / "decoder.onnx", folder / "decoder.onnx")


def plant_float_product(folder: Path, float32: Path) -> None:
    """One product of the decoder is in float."""
    weights = {t.name: t for t in onnx.load(str(float32 / "decoder.onnx")).graph.initializer}
    with edited(folder / "decoder.onnx") as model:
        graph = model.graph
        last = next(n for n in graph.node if n.op_type == "Mul" and n.output[0].endswith("/fc1/MatMul_output_0"))
        cast = producer(graph, last.input[0])
        integer = producer(graph, cast.input[0])
        given = producer(graph, integer.input[0]).input[0]
        weight = add_constant(graph, "left", np.ascontiguousarray(numpy_helper.to_array(weights[_matrix(integer)]).T))
        last.CopyFrom(helper.make_node("MatMul", [given, weight], [last.output[0]], name="left_in_float"))
        for node in (cast, integer):
            graph.node.remove(node)


def _matrix(integer) -> str:
    return integer.input[1].removesuffix("_quantized")


def plant_float_lookup(folder: Path, float32: Path) -> None:
    """The tied embedding is integers for the projection and float for the lookup."""
    table = stored(onnx.load(str(float32 / "decoder.onnx")).graph, TABLE)[1]
    with edited(folder / "decoder.onnx") as model:
        graph = model.graph
        lookup = next(n for n in graph.node if n.op_type == "Gather" and n.input[0] == f"{TABLE}_quantized")
        last = next(n for n in graph.node if n.op_type == "Mul" and n.input[0] == f"{lookup.output[0]}_cast")
        last.CopyFrom(
            helper.make_node("Gather", [add_constant(graph, TABLE, table), lookup.input[1]], [last.output[0]])
        )


def plant_pad_row(folder: Path, _: Path) -> None:
    """The row decoding starts from is one level off zero."""
    pad = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))["generation"]["pad_token_id"]
    with edited(folder / "decoder.onnx") as model:
        tensor, array = stored(model.graph, f"{TABLE}_quantized")
        array[pad, 3] = 1
        set_data(tensor, array)


def plant_ballast(folder: Path, _: Path) -> None:
    """Six megabytes that nothing reads."""
    with edited(folder / "decoder.onnx") as model:
        add_constant(model.graph, "ballast", np.arange(1_500_000, dtype=np.int32))


def _activation(model: ModelProto) -> str:
    """The activation that the last layer's second product reads."""
    names = [n.input[0] for n in model.graph.node if n.op_type == "QuantizeLinear"]
    return [name for name in names if "layers.1" in name][-1]


def plant_activation_scale(folder: Path, _: Path) -> None:
    """An activation's range is a tenth of what it has to be."""
    with edited(folder / "decoder.onnx") as model:
        tensor, scale = stored(model.graph, f"{_activation(model)}_scale")
        set_data(tensor, (scale / 10).astype(np.float32))


def plant_coarse_activation(folder: Path, _: Path) -> None:
    """An activation's range is forty times too wide."""
    with edited(folder / "decoder.onnx") as model:
        tensor, scale = stored(model.graph, f"{_activation(model)}_scale")
        set_data(tensor, (scale * 40).astype(np.float32))


def plant_lost_side(folder: Path, _: Path) -> None:
    """An activation's range has no negative side."""
    with edited(folder / "decoder.onnx") as model:
        tensor, _point = stored(model.graph, f"{_activation(model)}_zero_point")
        set_data(tensor, np.array(0, np.uint8))


def plant_refused(folder: Path, _: Path) -> None:
    """A zero point whose size is not the number of columns."""
    with edited(folder / "decoder.onnx") as model:
        tensor, array = stored(model.graph, f"{FC1}_zero_point")
        set_data(tensor, array[:3])


def plant_three_sentences(folder: Path, _: Path) -> None:
    """The manifest of a set that was calibrated with three sentences."""
    with edited_manifest(folder) as manifest:
        record = manifest["quantization"]["calibration"]
        record.update(texts=record["texts"][:3], sentences=3, over_30_words=0)


FAULTS = {
    "scale-off": QuantizationFault(
        DYNAMIC,
        plant_scale,
        "test_every_weight_is_pytorchs_rounded",
        (FC1, "its scale is off: every value is 4 times PyTorch's", "Quantize again by the same recipe"),
    ),
    "scale-of-a-column-off": QuantizationFault(
        STATIC,
        plant_scale_of_a_column,
        "test_every_weight_is_pytorchs_rounded",
        (FC1, "1 of 1024 columns", "column 17 is 1.5 times PyTorch's"),
    ),
    "scale-off-in-a-set-made-elsewhere": QuantizationFault(
        DYNAMIC,
        plant_scale,
        "test_every_weight_is_pytorchs_rounded",
        (FC1, "its scale is off: every value is 4 times PyTorch's", "Leave in float:"),
        elsewhere=True,
    ),
    "encoder-too-loud": QuantizationFault(
        STATIC,
        plant_scale_of_the_encoder,
        "test_logits_stay_near_those_in_float32",
        ("the encoder is what loses", "only the decoder quantized: 3", "Quantize again by the same recipe"),
    ),
    "digit-rows-collapsed": QuantizationFault(
        DYNAMIC,
        plant_digit_rows,
        "test_every_weight_is_pytorchs_rounded",
        ("decoder.onnx: every row of the embedding survives: fail", "9 rows of the embedding", "they collapsed"),
    ),
    "digit-rows-coarse": QuantizationFault(
        STATIC,
        plant_digit_rows_coarse,
        "test_every_weight_is_pytorchs_rounded",
        ("10 rows of the embedding are not those of the model", "row "),
    ),
    "one-layer-at-4-bits": QuantizationFault(
        DYNAMIC,
        plant_four_bits,
        "test_every_weight_is_pytorchs_rounded",
        ("encoder.layers.2.fc2.weight", "15 levels: 4 bits where 8 are promised"),
    ),
    "one-layer-at-4-bits-in-8": QuantizationFault(
        STATIC,
        plant_four_bits_in_eight,
        "test_every_weight_is_pytorchs_rounded",
        ("encoder.layers.2.fc2.weight", "15 levels: 4 bits where 8 are promised"),
    ),
    "decoder-left-in-float": QuantizationFault(
        DYNAMIC,
        plant_float_decoder,
        "test_as_many_nodes_are_quantized_as_the_recipe_says",
        ("decoder.onnx: 0 of 18", "the file was left in float"),
    ),
    "decoder-left-in-float-elsewhere": QuantizationFault(
        INT4,
        plant_float_decoder,
        "test_as_many_nodes_are_quantized_as_the_recipe_says",
        ("decoder.onnx: 0 of 18", "the file was left in float"),
        elsewhere=True,
    ),
    "one-product-left-in-float": QuantizationFault(
        DYNAMIC,
        plant_float_product,
        "test_as_many_nodes_are_quantized_as_the_recipe_says",
        ("decoder.onnx: 17 of 18, first in float: left_in_float", "fewer nodes were quantized"),
    ),
    "Q02-float-lookup": QuantizationFault(
        DYNAMIC,
        plant_float_lookup,
        "test_no_float_copy_of_a_quantized_weight_is_left",
        (f"{TABLE} in float, {TABLE} quantized", "bytes"),
    ),
    "ballast": QuantizationFault(
        INT4,
        plant_ballast,
        "test_the_set_is_as_small_as_its_weights_make_it",
        ("bytes more than its quantized weights leave over",),
    ),
    "pad-row": QuantizationFault(
        DYNAMIC,
        plant_pad_row,
        "test_the_pad_row_of_the_embedding_stays_zero",
        ("decoder.onnx: the dequantized pad row is zero: fail", TABLE),
    ),
    "activation-scale-off": QuantizationFault(
        STATIC,
        plant_activation_scale,
        "test_calibrated_ranges_fit_other_sentences",
        ("decoder.onnx: ", "its range is", "a scale is off"),
    ),
    "activation-coarse": QuantizationFault(
        STATIC,
        plant_coarse_activation,
        "test_calibrated_ranges_fit_other_sentences",
        ("decoder.onnx: ", "most levels are never used"),
    ),
    "Q04-lost-side": QuantizationFault(
        STATIC,
        plant_lost_side,
        "test_calibrated_ranges_fit_other_sentences",
        ("decoder.onnx: ", "a range lost a side"),
    ),
    "refused": QuantizationFault(
        DYNAMIC,
        plant_refused,
        "test_every_optimisation_level_runs_it",
        ("optimisation level off loads the set", "decoder.onnx"),
    ),
    "Q04-three-sentences": QuantizationFault(
        STATIC,
        plant_three_sentences,
        "test_the_calibration_set_is_sound",
        ("measured 3 different sentences, limit 150", "3 sentences do not show an activation's range"),
    ),
}
