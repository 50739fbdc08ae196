"""Faults planted in the files of an exported set, each with the check of ``suites/export`` that has to find it.

Every plant takes the folder of a set made by ``python -m exporters`` and changes it in place. The manifest is left as
it is, so ``test_files_are_those_of_the_manifest`` fails beside the named test; ``reseal`` makes the manifest agree.
Plants find their place by the graph's structure, so they work on both exporters' graphs.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, helper, numpy_helper

from harness.contract.manifest import MANIFEST, FileRecord

# A size that no model of the meta tests has and no export traces with.
ODD_SIZE = 13


@dataclass(frozen=True)
class Fault:
    """A planted fault.

    Attributes:
        plant: folder -> None, changes the set in place.
        layout: layout of the set that it is planted in.
        test: name of the test that must fail, without parameters.
        words: what the finding must say; every entry is part of its text.
        cached: planted in the artifact cache, behind a manifest that agrees, in place of under ``--artifacts``: the
            check makes a second export and compares.
        verdict: ``fail``, or ``warn`` where the fault alone must not hold a release.
    """

    plant: Callable[[Path], None]
    layout: str
    test: str
    words: tuple[str, ...]
    cached: bool = False
    verdict: str = "fail"


@contextmanager
def edited(path: Path) -> Iterator[ModelProto]:
    """Load a model, let the block change it, and store it."""
    model = onnx.load(str(path))
    yield model
    onnx.save(model, str(path))


def reseal(folder: Path) -> None:
    """Write the hashes of the files as they are now into the manifest."""
    with edited_manifest(folder) as manifest:
        for name in manifest["files"]:
            record = FileRecord.of(folder / name)
            manifest["files"][name] = {"sha256": record.sha256, "bytes": record.bytes}


@contextmanager
def edited_manifest(folder: Path) -> Iterator[dict]:
    """Load a manifest, let the block change it, and store it."""
    path = folder / MANIFEST
    manifest = json.loads(path.read_text(encoding="utf-8"))
    yield manifest
    path.write_text(json.dumps(manifest, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


# --- surgery ---------------------------------------------------------------------------------------------------------


def producer(graph: GraphProto, name: str) -> NodeProto | None:
    """The node that makes a value."""
    return next((node for node in graph.node if name in node.output), None)


def rewire(graph: GraphProto, old: str, new: str, *, keep: NodeProto | None = None) -> None:
    """Make every node but ``keep`` read ``new`` where it read ``old``."""
    for node in graph.node:
        if node is not keep:
            for i, name in enumerate(node.input):
                if name == old:
                    node.input[i] = new


def prepend(graph: GraphProto, *nodes: NodeProto) -> None:
    """Put nodes before all others."""
    everything = [*nodes, *(copy_of(node) for node in graph.node)]
    del graph.node[:]
    graph.node.extend(everything)


def copy_of(node: NodeProto) -> NodeProto:
    """A copy that does not change with the original."""
    copied = NodeProto()
    copied.CopyFrom(node)
    return copied


def add_constant(graph: GraphProto, name: str, value: np.ndarray) -> str:
    """Add an initializer and return its name."""
    graph.initializer.append(numpy_helper.from_array(value, name))
    return name


def rename_output(graph: GraphProto, node: NodeProto, old: str, new: str) -> None:
    """Give an output of a node another name, also where it is read inside the graph."""
    node.output[list(node.output).index(old)] = new
    rewire(graph, old, new)


def replace_output(graph: GraphProto, name: str, *nodes: NodeProto) -> None:
    """Put nodes between a graph output and what made it; they read ``<name>.sound`` and make ``name``."""
    rename_output(graph, producer(graph, name), name, f"{name}.sound")
    graph.node.extend(nodes)


def softmaxes(graph: GraphProto) -> list[NodeProto]:
    """Every Softmax in order: in a decoder self- and cross-attention of a layer alternate."""
    return [node for node in graph.node if node.op_type == "Softmax"]


def mask_addition(graph: GraphProto, softmax: NodeProto) -> tuple[NodeProto, str]:
    """The Add that masks a Softmax's scores, and the name of the unmasked scores."""
    node = producer(graph, softmax.input[0])
    while node.op_type != "Add":
        node = producer(graph, node.input[0])
    scores = next(name for name in node.input if _comes_from_product(graph, name))
    return node, scores


def _comes_from_product(graph: GraphProto, name: str) -> bool:
    node = producer(graph, name)
    while node is not None and node.op_type in ("Mul", "Div", "Reshape", "Identity"):
        node = producer(graph, node.input[0])
    return node is not None and node.op_type == "MatMul"


def embedding_of(graph: GraphProto) -> tuple[NodeProto, TensorProto]:
    """The Gather that looks the ids up, and its table."""
    tables = {tensor.name: tensor for tensor in graph.initializer}
    largest = max(
        (node for node in graph.node if node.op_type == "Gather" and node.input[0] in tables),
        key=lambda node: tables[node.input[0]].dims[0] * len(tables[node.input[0]].dims),
    )
    return largest, tables[largest.input[0]]


def _declared_size(graph: GraphProto, output: str, axis: int) -> int:
    """Size of an axis as an output declares it."""
    value = next(value for value in graph.output if value.name == output)
    return value.type.tensor_type.shape.dim[axis].dim_value


def set_data(tensor: TensorProto, array: np.ndarray) -> None:
    """Replace a tensor's contents."""
    tensor.CopyFrom(numpy_helper.from_array(array, tensor.name))


def some_matrix(graph: GraphProto) -> TensorProto:
    """A weight matrix that is no embedding and no position table: the first that a MatMul or Transpose reads."""
    looked_up = {node.input[0] for node in graph.node if node.op_type == "Gather"}
    read = {name for node in graph.node if node.op_type in ("MatMul", "Transpose") for name in node.input}
    return next(t for t in graph.initializer if len(t.dims) == 2 and t.name in read - looked_up)


# --- files and runtimes ----------------------------------------------------------------------------------------------


def plant_unknown_attribute(folder: Path) -> None:
    """An attribute that no operator has."""
    with edited(folder / "decoder.onnx") as model:
        node = next(node for node in model.graph.node if node.op_type == "Add")
        node.attribute.append(helper.make_attribute("colour", 1))


def plant_wrong_inner_shape(folder: Path) -> None:
    """A declared shape of an inner value that contradicts what is computed."""
    with edited(folder / "encoder.onnx") as model:
        name = embedding_of(model.graph)[0].output[0]
        model.graph.value_info.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, ["a", "b"]))


def plant_new_ir(folder: Path) -> None:
    """An IR version that the oldest target runtime refuses."""
    with edited(folder / "decoder.onnx") as model:
        model.ir_version = 10


def plant_new_opset(folder: Path) -> None:
    """An opset that the oldest target runtime refuses."""
    with edited(folder / "encoder.onnx") as model:
        model.opset_import[0].version = 19


def plant_missing_operator(folder: Path) -> None:
    """An operator that onnxruntime 1.14 lacks, its output unused, so that newer runtimes run the file as before."""
    with edited(folder / "encoder.onnx") as model:
        graph, name = model.graph, "last_hidden_state"
        width = _declared_size(graph, name, 2)
        blocks = -(-width // 32)
        packed = add_constant(graph, "packed", np.zeros((1, blocks, 16), np.uint8))
        scales = add_constant(graph, "scales", np.ones(blocks, np.float32))
        sizes = {"K": width, "N": 1, "bits": 4, "block_size": 32}
        inputs = [name, packed, scales]
        graph.node.append(
            helper.make_node("MatMulNBits", inputs, ["one"], "four_bits", domain="com.microsoft", **sizes)
        )
        model.opset_import.append(helper.make_opsetid("com.microsoft", 1))


def plant_unloadable_operator(folder: Path) -> None:
    """An operator that no runtime knows."""
    with edited(folder / "decoder.onnx") as model:
        softmaxes(model.graph)[0].op_type = "Hardmaximum"


def plant_dropout(folder: Path) -> None:
    """A Dropout that is switched on."""
    with edited(folder / "encoder.onnx") as model:
        graph = model.graph
        ratio = add_constant(graph, "ratio", np.array(0.1, np.float32))
        training = add_constant(graph, "training", np.array(True))
        name = "last_hidden_state"
        replace_output(graph, name, helper.make_node("Dropout", [f"{name}.sound", ratio, training], [name], "dropout"))


def plant_loop(folder: Path) -> None:
    """The logits made inside a Loop."""
    with edited(folder / "decoder.onnx") as model:
        graph = model.graph
        flag = helper.make_tensor_value_info("go", TensorProto.BOOL, [])
        body = helper.make_graph(
            [
                helper.make_node("Identity", ["go"], ["go.on"]),
                helper.make_node("Identity", ["logits.sound"], ["carried"]),
            ],
            "body",
            [helper.make_tensor_value_info("turn", TensorProto.INT64, []), flag, _untyped("before")],
            [helper.make_tensor_value_info("go.on", TensorProto.BOOL, []), _untyped("carried")],
        )
        once = add_constant(graph, "once", np.array(1, np.int64))
        start = add_constant(graph, "start", np.array(True))
        replace_output(
            graph,
            "logits",
            helper.make_node("Loop", [once, start, "logits.sound"], ["logits"], "generate_loop", body=body),
        )


def _untyped(name: str) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, None)


def plant_branch(folder: Path) -> None:
    """An If in a layout without branches."""
    with edited(folder / "encoder.onnx") as model:
        graph, name = model.graph, "last_hidden_state"
        branch = [
            helper.make_graph([helper.make_node("Identity", [f"{name}.sound"], [side])], side, [], [_untyped(side)])
            for side in ("yes", "no")
        ]
        condition = add_constant(graph, "condition", np.array(True))
        node = helper.make_node("If", [condition], [name], "choice", then_branch=branch[0], else_branch=branch[1])
        replace_output(graph, name, node)


def plant_unrolled_steps(folder: Path) -> None:
    """The whole decoder twice in one graph."""
    with edited(folder / "decoder.onnx") as model:
        graph = model.graph
        again = [copy_of(node) for node in graph.node]
        made = {name for node in again for name in node.output if name}
        for node in again:
            node.name += ".again"
            for names in (node.input, node.output):
                for i, name in enumerate(names):
                    names[i] = f"{name}.again" if name in made else name
        graph.node.extend(again)


def plant_unlisted_file(folder: Path) -> None:
    """A graph that belongs to no role."""
    shutil.copyfile(folder / "encoder.onnx", folder / "encoder_old.onnx")


def plant_changed_tokenizer(folder: Path) -> None:
    """A byte more in a file of the tokenizer."""
    with (folder / "vocab.json").open("ab") as stream:
        stream.write(b"\n")


def plant_unknown_warning(folder: Path) -> None:
    """A warning of the tracer that nobody has judged."""
    with edited_manifest(folder) as manifest:
        manifest["export"]["unknown_warnings"] = ["torch/x.py: TracerWarning: Iterating over a tensor"]


# --- inputs and outputs ----------------------------------------------------------------------------------------------


def plant_renamed_output(folder: Path) -> None:
    """A cache output under a name of no layout."""
    with edited(folder / "decoder.onnx") as model:
        old, new = "present.0.decoder.value", "present.0.value"
        rename_output(model.graph, producer(model.graph, old), old, new)
        next(value for value in model.graph.output if value.name == old).name = new


def plant_outputs_in_another_order(folder: Path) -> None:
    """Key and value of one layer in the other order."""
    with edited(folder / "decoder.onnx") as model:
        values = list(model.graph.output)
        keys = [i for i, value in enumerate(values) if value.name.startswith("present.0.decoder")]
        values[keys[0]], values[keys[1]] = values[keys[1]], values[keys[0]]
        ordered = [onnx.ValueInfoProto.FromString(value.SerializeToString()) for value in values]
        del model.graph.output[:]
        model.graph.output.extend(ordered)


def plant_fixed_declared_axis(folder: Path) -> None:
    """A batch axis declared fixed, as a simplifier leaves it."""
    with edited(folder / "encoder.onnx") as model:
        model.graph.input[0].type.tensor_type.shape.dim[0].dim_value = 3


def plant_hidden_states_only(folder: Path) -> None:
    """A decoder that ends before the output projection."""
    with edited(folder / "decoder.onnx") as model:
        graph = model.graph
        projection = producer(graph, "logits")
        while projection.op_type != "MatMul":
            projection = next(
                node
                for name in projection.input
                if (node := producer(graph, name)) is not None and node.op_type != "Constant"
            )
        output = next(value for value in graph.output if value.name == "logits")
        graph.node.append(helper.make_node("Identity", [projection.input[0]], ["last_hidden_state"]))
        output.name = "last_hidden_state"
        output.type.tensor_type.shape.dim[2].ClearField("dim_value")


def plant_cross_emitted_again(folder: Path) -> None:
    """A step decoder that hands cross-attention K/V back."""
    with edited(folder / "decoder_step.onnx") as model:
        given = [value for value in model.graph.input if ".encoder." in value.name]
        for value in given:
            name = value.name.replace("past_key_values", "present")
            model.graph.node.append(helper.make_node("Identity", [value.name], [name]))
            emitted = model.graph.output.add()
            emitted.CopyFrom(value)
            emitted.name = name


# --- masks -----------------------------------------------------------------------------------------------------------


def plant_encoder_mask_ignored(folder: Path) -> None:
    """Ones of the ids' shape in the place of the encoder's mask."""
    with edited(folder / "encoder.onnx") as model:
        graph = model.graph
        rewire(graph, "attention_mask", "all_ones")
        prepend(
            graph,
            helper.make_node("Shape", ["attention_mask"], ["mask_shape"], "mask_shape"),
            helper.make_node(
                "ConstantOfShape",
                ["mask_shape"],
                ["all_ones"],
                "all_ones",
                value=numpy_helper.from_array(np.ones(1, np.int64)),
            ),
        )


def _cut_mask(path: Path, attention: int) -> None:
    with edited(path) as model:
        softmax = softmaxes(model.graph)[attention]
        addition, scores = mask_addition(model.graph, softmax)
        rewire(model.graph, addition.output[0], scores)


def plant_encoder_mask_cut(folder: Path) -> None:
    """The encoder's mask not added in layer 1."""
    _cut_mask(folder / "encoder.onnx", 1)


def plant_cross_mask_cut(folder: Path) -> None:
    """``encoder_attention_mask`` not added in layer 1's cross-attention."""
    _cut_mask(folder / "decoder.onnx", 3)


def plant_causal_mask_cut(folder: Path) -> None:
    """No causal mask in layer 0."""
    _cut_mask(folder / "decoder.onnx", 0)


# --- axes ------------------------------------------------------------------------------------------------------------


def _bake_reshape(path: Path, sizes: Callable[[list[int]], list[int]]) -> None:
    """Give the first Reshape that splits heads a constant shape.

    Args:
        path: the graph.
        sizes: heads and head width -> the constant shape.
    """
    with edited(path) as model:
        graph = model.graph
        out = next(node for node in graph.node if node.op_type == "Reshape" and _splits_heads(graph, node))
        cache = next(value for value in (*graph.output, *graph.input) if value.name.endswith(".key"))
        dims = [axis.dim_value for axis in cache.type.tensor_type.shape.dim]
        out.input[1] = add_constant(graph, "baked_shape", np.array(sizes([dims[1], dims[3]]), np.int64))


def _splits_heads(graph: GraphProto, node: NodeProto) -> bool:
    """Whether a Reshape makes ``[batch, length, heads, width]``: a transposition to heads first follows it."""
    following = [other for other in graph.node if node.output[0] in other.input]
    return any(
        list(attribute.ints) == [0, 2, 1, 3]
        for other in following
        if other.op_type == "Transpose"
        for attribute in other.attribute
    )


def plant_baked_source(folder: Path) -> None:
    """The encoder's first Reshape holds the traced source length."""
    traced = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))["export"]["dummy_sizes"]["source"]
    _bake_reshape(folder / "encoder.onnx", lambda heads: [-1, traced, *heads])


def plant_baked_batch_like_heads(folder: Path) -> None:
    """The decoder's first Reshape holds a batch that equals the number of heads: only a run can tell."""
    _bake_reshape(folder / "decoder.onnx", lambda heads: [heads[0], -1, *heads])


def plant_size_dependent_constant(folder: Path) -> None:
    """A constant that another tracing size would not have given."""
    with edited(folder / "encoder.onnx") as model:
        graph = model.graph
        name = "last_hidden_state"
        shift = add_constant(graph, "shift", np.array([ODD_SIZE, 0], np.int64))
        replace_output(
            graph,
            name,
            helper.make_node("ReduceSum", [shift], ["nothing"], "nothing", keepdims=0),
            helper.make_node("Cast", ["nothing"], ["nothing.float"], to=TensorProto.FLOAT),
            helper.make_node("Mul", ["nothing.float", add_constant(graph, "zero", np.array(0, np.float32))], ["none"]),
            helper.make_node("Add", [f"{name}.sound", "none"], [name]),
        )
    reseal(folder)


def plant_other_bytes(folder: Path) -> None:
    """A cached file that another process would not have written."""
    with edited(folder / "encoder.onnx") as model:
        model.graph.name += "_of_process_4711"
    reseal(folder)


# --- weights ---------------------------------------------------------------------------------------------------------


def plant_weight_twice(folder: Path) -> None:
    """A matrix stored a second time in a Constant node and read from there once."""
    with edited(folder / "encoder.onnx") as model:
        graph = model.graph
        tensor = some_matrix(graph)
        user = next(node for node in graph.node if tensor.name in node.input)
        user.input[list(user.input).index(tensor.name)] = "copied"
        prepend(graph, helper.make_node("Constant", [], ["copied"], "copied", value=tensor))
        graph.node[0].attribute[0].t.name = "copied"
        graph.node.append(helper.make_node("Identity", [tensor.name], ["unused"]))


def plant_embedding_transposed(folder: Path) -> None:
    """The tied embedding a second time, transposed, as constant folding leaves it."""
    with edited(folder / "decoder.onnx") as model:
        graph = model.graph
        _, table = embedding_of(graph)
        turned = next(node for node in graph.node if node.op_type == "Transpose" and node.input[0] == table.name)
        rewire(graph, turned.output[0], add_constant(graph, "folded", numpy_helper.to_array(table).T.copy()))


def plant_weight_in_two_files(folder: Path) -> None:
    """A matrix of the encoder in the decoder's file too."""
    encoder = onnx.load(str(folder / "encoder.onnx"))
    matrix = numpy_helper.to_array(some_matrix(encoder.graph))
    with edited(folder / "decoder.onnx") as model:
        name = add_constant(model.graph, "stray", matrix)
        model.graph.node.append(helper.make_node("Identity", [name], ["unused"]))


def plant_logits_bias_dropped(folder: Path) -> None:
    """Logits without ``final_logits_bias``."""
    with edited(folder / "decoder.onnx") as model:
        graph = model.graph
        bias = next(tensor for tensor in graph.initializer if tensor.name.endswith("final_logits_bias"))
        addition = next(node for node in graph.node if bias.name in node.input)
        raw = next(name for name in addition.input if name != bias.name)
        graph.node.append(helper.make_node("Identity", [raw], ["logits"]))
        graph.node.remove(addition)
        graph.initializer.remove(bias)


def plant_weight_changed(folder: Path) -> None:
    """One element of one matrix moved by a hundredth."""
    with edited(folder / "encoder.onnx") as model:
        tensor = some_matrix(model.graph)
        array = numpy_helper.to_array(tensor).copy()
        array[0, 0] += 0.01
        set_data(tensor, array)


def plant_scale_doubled(folder: Path) -> None:
    """The embedding multiplied by sqrt(d_model) once more."""
    with edited(folder / "encoder.onnx") as model:
        graph = model.graph
        gather, table = embedding_of(graph)
        name = gather.output[0]
        rename_output(graph, gather, name, f"{name}.once")
        scale = add_constant(graph, "scale_again", np.array(table.dims[1] ** 0.5, np.float32))
        again = helper.make_node("Mul", [f"{name}.once", scale], [name], "scale_again")
        for node in graph.node:
            for i, given in enumerate(node.input):
                if given == f"{name}.once":
                    node.input[i] = name
        nodes = [copy_of(node) for node in graph.node]
        place = next(i for i, node in enumerate(nodes) if f"{name}.once" in node.output)
        del graph.node[:]
        graph.node.extend([*nodes[: place + 1], again, *nodes[place + 1 :]])


def plant_pad_row(folder: Path) -> None:
    """A pad row that is not zero."""
    pad = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))["generation"]["pad_token_id"]
    with edited(folder / "decoder.onnx") as model:
        _, table = embedding_of(model.graph)
        array = numpy_helper.to_array(table).copy()
        array[pad, 3] = 0.25
        set_data(table, array)


# --- runs ------------------------------------------------------------------------------------------------------------


def plant_level_dependent_values(folder: Path) -> None:
    """Scales so small that their products lose digits, until an optimisation level fuses them away.

    The runtime's MatMulScaleFusion multiplies the scalars first, where the factors are 1e-21, 1e-21, 1e21, 1e21.
    """
    with edited(folder / "encoder.onnx") as model:
        graph, name = model.graph, "last_hidden_state"
        width = _declared_size(graph, name, 2)
        small = add_constant(graph, "small", np.array(1e-21, np.float32))
        large = add_constant(graph, "large", np.array(1e21, np.float32))
        unit = add_constant(graph, "unit", np.eye(width, dtype=np.float32))
        replace_output(
            graph,
            name,
            helper.make_node("Mul", [f"{name}.sound", small], ["left"]),
            helper.make_node("Mul", [unit, small], ["right"]),
            helper.make_node("MatMul", ["left", "right"], ["tiny"]),
            helper.make_node("Mul", ["tiny", large], ["less_tiny"]),
            helper.make_node("Mul", ["less_tiny", large], [name]),
        )


FAULTS: dict[str, Fault] = {
    "invalid-file": Fault(
        plant_unknown_attribute,
        "compact",
        "test_the_onnx_checker_accepts_every_file",
        ("decoder.onnx", "Unrecognized attribute: colour"),
    ),
    "contradicting-shape": Fault(
        plant_wrong_inner_shape,
        "compact",
        "test_strict_shape_inference_accepts_every_file",
        ("encoder.onnx", "Gather", "rank"),
    ),
    "F03-ir-version": Fault(
        plant_new_ir,
        "compact",
        "test_the_oldest_target_runtime_has_what_every_file_needs",
        ("IR version 10, onnxruntime 1.14 loads up to 8", "set ir_version = 8"),
    ),
    "F03-opset": Fault(
        plant_new_opset,
        "compact",
        "test_the_oldest_target_runtime_has_what_every_file_needs",
        ("opset 19, onnxruntime 1.14 loads up to 18", "--opset 18"),
    ),
    "F11-operator": Fault(
        plant_missing_operator,
        "compact",
        "test_the_oldest_target_runtime_has_what_every_file_needs",
        ("onnxruntime 1.14 has no com.microsoft.MatMulNBits", "four_bits (MatMulNBits)"),
    ),
    "F04-refused": Fault(
        plant_unloadable_operator,
        "compact",
        "test_every_optimisation_level_loads_and_gives_the_same",
        ("decoder.onnx", "does not know the operator Hardmaximum"),
    ),
    "G15-dropout": Fault(
        plant_dropout,
        "compact",
        "test_no_operator_of_training_chance_or_loops",
        ("dropout (Dropout)", "model.eval()"),
    ),
    "F09-loop": Fault(
        plant_loop,
        "compact",
        "test_no_operator_of_training_chance_or_loops",
        ("generate_loop (Loop)", "the loop belongs outside the graph"),
    ),
    "F09-branch": Fault(
        plant_branch,
        "compact",
        "test_no_operator_of_training_chance_or_loops",
        ("choice (If)", "its layout has no branches"),
    ),
    "F09-unrolled": Fault(
        plant_unrolled_steps, "compact", "test_every_attention_sees_its_mask", ("2 copies", "unrolled")
    ),
    "changed-file": Fault(
        plant_changed_tokenizer,
        "compact",
        "test_files_are_those_of_the_manifest",
        ("vocab.json", "changed after the export"),
    ),
    "unlisted-file": Fault(
        plant_unlisted_file,
        "compact",
        "test_no_graph_beside_those_of_the_layout",
        ("encoder_old.onnx",),
        verdict="warn",
    ),
    "unknown-warning": Fault(
        plant_unknown_warning,
        "compact",
        "test_the_tracer_warned_of_nothing_unknown",
        ("Iterating over a tensor", "known_warnings.py"),
    ),
    "renamed-output": Fault(
        plant_renamed_output,
        "compact",
        "test_names_types_and_axes_follow_the_layout",
        ("present.0.decoder.value is missing", "present.0.value is not in the contract"),
    ),
    "outputs-reordered": Fault(
        plant_outputs_in_another_order,
        "compact",
        "test_names_types_and_axes_follow_the_layout",
        ("position 1 holds present.0.decoder.value", "another order"),
    ),
    "F07-fixed-axis": Fault(
        plant_fixed_declared_axis,
        "compact",
        "test_names_types_and_axes_follow_the_layout",
        ("input_ids: axis 0 (batch) is fixed at 3",),
    ),
    "F10-hidden-only": Fault(
        plant_hidden_states_only,
        "compact",
        "test_names_types_and_axes_follow_the_layout",
        ("hidden states come out, not logits", "Export the output projection"),
    ),
    "G08-cross-again": Fault(
        plant_cross_emitted_again,
        "pair",
        "test_names_types_and_axes_follow_the_layout",
        ("decoder_step.onnx", "come out again at every step", "bytes per source token"),
    ),
    "G01-mask-unused": Fault(
        plant_encoder_mask_ignored,
        "compact",
        "test_every_input_is_used",
        ("attention_mask feeds nothing but sizes", "padding changes the translation"),
    ),
    "G01-mask-replaced": Fault(
        plant_encoder_mask_ignored,
        "compact",
        "test_every_attention_sees_its_mask",
        ("attention_mask does not reach it", "encoder layer 0", "all_ones (ConstantOfShape)"),
    ),
    "G01-mask-cut": Fault(
        plant_encoder_mask_cut,
        "compact",
        "test_every_attention_sees_its_mask",
        ("encoder layer 1, self-attention", "no mask is added to its scores"),
    ),
    "G02-cross-mask-cut": Fault(
        plant_cross_mask_cut,
        "compact",
        "test_every_attention_sees_its_mask",
        ("decoder layer 1, cross-attention", "encoder_attention_mask does not reach it"),
    ),
    "G03-causal-mask-cut": Fault(
        plant_causal_mask_cut,
        "compact",
        "test_every_attention_sees_its_mask",
        ("decoder layer 0, self-attention", "nothing compares positions"),
    ),
    "S01-baked-source": Fault(
        plant_baked_source,
        "compact",
        "test_no_size_of_the_tracing_inputs_is_baked",
        ("baked_shape holds", "the tracing size of source", "(Reshape)"),
    ),
    "S04-baked-batch": Fault(
        plant_baked_batch_like_heads,
        "compact",
        "test_the_graphs_run_at_other_sizes",
        ("decoder.onnx", "An axis is baked inside the graph"),
    ),
    "S06-structure": Fault(
        plant_size_dependent_constant,
        "compact",
        "test_two_tracing_sizes_give_one_structure",
        ("encoder.onnx", "nodes at"),
        cached=True,
    ),
    "not-deterministic": Fault(
        plant_other_bytes,
        "compact",
        "test_a_second_export_is_byte_identical",
        ("encoder.onnx", "again"),
        cached=True,
    ),
    "F01-twice": Fault(
        plant_weight_twice,
        "compact",
        "test_every_weight_is_stored_once",
        ("encoder.onnx: copied", "stored twice in one file"),
    ),
    "F01-transposed": Fault(
        plant_embedding_transposed,
        "compact",
        "test_every_weight_is_stored_once",
        ("decoder.onnx: folded", "a second time transposed"),
    ),
    "F01-two-files": Fault(
        plant_weight_in_two_files,
        "compact",
        "test_every_weight_is_stored_once",
        ("decoder.onnx: stray", "2 files hold"),
    ),
    "G09-logits-bias": Fault(
        plant_logits_bias_dropped,
        "compact",
        "test_every_weight_of_pytorch_is_in_the_set",
        ("final_logits_bias", "the logits bias was dropped"),
    ),
    "weight-changed": Fault(
        plant_weight_changed,
        "compact",
        "test_every_weight_of_pytorch_is_in_the_set",
        ("encoder.onnx", "is not among the weights"),
    ),
    "G10-scale-doubled": Fault(
        plant_scale_doubled,
        "compact",
        "test_the_embedding_is_scaled_as_in_pytorch",
        ("encoder.onnx", "PyTorch multiplies by"),
    ),
    "G16-pad-row": Fault(
        plant_pad_row,
        "compact",
        "test_the_pad_row_of_the_embedding_is_zero",
        ("decoder.onnx", "0.25", "decoding starts from it"),
    ),
    "G13-level": Fault(
        plant_level_dependent_values,
        "compact",
        "test_every_optimisation_level_loads_and_gives_the_same",
        ("optimisation level extended changes values",),
    ),
}
