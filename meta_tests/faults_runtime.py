"""Faults planted in the files of an exported set that only a run shows: for parity, shapes, decoding and upgrade.

As in ``faults``, a plant takes the folder of a set made by ``python -m exporters`` and changes it in place, whatever
its
layout and exporter: a plant in the decoder changes every decoder file of the set.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from onnx import GraphProto, NodeProto, TensorProto, helper, numpy_helper

from meta_tests.faults import (
    add_constant,
    copy_of,
    edited,
    edited_manifest,
    embedding_of,
    mask_addition,
    plant_baked_batch_like_heads,
    plant_baked_source,
    plant_causal_mask_cut,
    prepend,
    producer,
    rename_output,
    rewire,
    set_data,
    softmaxes,
)

# A position that every model of the meta tests has beyond its first steps.
LAST_GOOD_POSITION = 60


@dataclass(frozen=True)
class RuntimeFault:
    """A planted fault that is found by running the set.

    Attributes:
        suite: the question's folder under ``suites/``.
        plant: folder -> None, changes the set in place.
        subject: id of the set that it is planted in, layout and exporter.
        test: name of the test that must fail, without parameters.
        words: what the finding must say; every entry is part of its text.
        parameter: further part of the test's id, where it has parameters of its own and one of them is enough.
    """

    suite: str
    plant: Callable[[Path], None]
    subject: str
    test: str
    words: tuple[str, ...]
    parameter: str = ""


def decoder_files(folder: Path) -> list[Path]:
    """The decoder graphs of a set."""
    return sorted(folder.glob("decoder*.onnx"))


# --- masks -----------------------------------------------------------------------------------------------------------


def _cut_masks(path: Path, attentions: slice) -> None:
    """Leave the mask out of the chosen attentions; a decoder's are self and cross by turns."""
    with edited(path) as model:
        for softmax in softmaxes(model.graph)[attentions]:
            addition, scores = mask_addition(model.graph, softmax)
            rewire(model.graph, addition.output[0], scores)


def plant_no_encoder_mask(folder: Path) -> None:
    """No padding mask in any layer of the encoder."""
    _cut_masks(folder / "encoder.onnx", slice(None))


def plant_no_cross_mask(folder: Path) -> None:
    """No padding mask in any cross-attention."""
    for path in decoder_files(folder):
        _cut_masks(path, slice(1, None, 2))


def plant_no_cross_mask_in_first_layer(folder: Path) -> None:
    """No padding mask in the cross-attention of layer 0."""
    for path in decoder_files(folder):
        _cut_masks(path, slice(1, 2))


def plant_no_causal_mask(folder: Path) -> None:
    """No causal mask in any layer."""
    for path in decoder_files(folder):
        _cut_masks(path, slice(0, None, 2))


# --- positions and embeddings ----------------------------------------------------------------------------------------


def _position_lookup(graph: GraphProto) -> NodeProto:
    return next(node for node in graph.node if node.op_type == "Gather" and "embed_positions" in node.input[0])


def _insert_before(graph: GraphProto, user: NodeProto, *nodes: NodeProto) -> None:
    """Put nodes right before one of the graph's."""
    place = next(i for i, node in enumerate(graph.node) if node is user or node == user)
    everything = [copy_of(node) for node in graph.node]
    everything[place:place] = nodes
    del graph.node[:]
    graph.node.extend(everything)


def _change_positions(path: Path, *nodes_of: Callable[[GraphProto, str], NodeProto]) -> None:
    """Put nodes between the position ids and their lookup; the last one makes ``positions``."""
    with edited(path) as model:
        graph = model.graph
        lookup = _position_lookup(graph)
        own = lookup.input[1]
        lookup.input[1] = "positions"
        _insert_before(graph, lookup, *(make(graph, own) for make in nodes_of))


def plant_frozen_positions(folder: Path) -> None:
    """Every call of a decoder starts at position 0, whatever its past."""
    for path in decoder_files(folder):
        _change_positions(
            path,
            lambda _, own: helper.make_node("ReduceMin", [own], ["first"], keepdims=0),
            lambda _, own: helper.make_node("Sub", [own, "first"], ["positions"]),
        )


def _clip_positions(path: Path) -> None:
    def clipped(graph: GraphProto, own: str) -> NodeProto:
        last = add_constant(graph, "last", np.array(LAST_GOOD_POSITION, np.int64))
        return helper.make_node("Min", [own, last], ["positions"])

    _change_positions(path, clipped)


def plant_clipped_target_positions(folder: Path) -> None:
    """Decoders that know their first positions only."""
    for path in decoder_files(folder):
        _clip_positions(path)


def plant_clipped_source_positions(folder: Path) -> None:
    """An encoder that knows its first positions only."""
    _clip_positions(folder / "encoder.onnx")


def plant_no_decoder_scale(folder: Path) -> None:
    """Decoder embeddings not multiplied by sqrt(d_model)."""
    for path in decoder_files(folder):
        with edited(path) as model:
            gather, _ = embedding_of(model.graph)
            scaling = next(n for n in model.graph.node if n.op_type == "Mul" and gather.output[0] in n.input)
            rewire(model.graph, scaling.output[0], gather.output[0])


# --- cache -----------------------------------------------------------------------------------------------------------


def _swap_outputs(path: Path, left: str, right: str) -> None:
    with edited(path) as model:
        graph = model.graph
        for name in (left, right):
            rename_output(graph, producer(graph, name), name, f"{name}.sound")
        graph.node.append(helper.make_node("Identity", [f"{right}.sound"], [left]))
        graph.node.append(helper.make_node("Identity", [f"{left}.sound"], [right]))


def plant_key_and_value_swapped(folder: Path) -> None:
    """Key and value of layer 0 come out under each other's name."""
    for path in decoder_files(folder):
        _swap_outputs(path, "present.0.decoder.key", "present.0.decoder.value")


def plant_layers_swapped(folder: Path) -> None:
    """The keys of layers 0 and 1 come out under each other's name."""
    for path in decoder_files(folder):
        _swap_outputs(path, "present.0.decoder.key", "present.1.decoder.key")


def plant_past_of_the_first_row(folder: Path) -> None:
    """Every row continues the keys of row 0: a cache whose rows are not looked at."""
    for path in decoder_files(folder):
        with edited(path) as model:
            graph = model.graph
            name = "past_key_values.0.decoder.key"
            if name not in [value.name for value in graph.input]:
                continue
            rewire(graph, name, "shared")
            first = add_constant(graph, "first_row", np.array([0], np.int64))
            prepend(
                graph,
                helper.make_node("Gather", [name, first], ["of_first_row"], axis=0),
                helper.make_node("Shape", [name], ["shape_of_past"]),
                helper.make_node("Expand", ["of_first_row", "shape_of_past"], ["shared"]),
            )


# --- weights ---------------------------------------------------------------------------------------------------------


def _decoder_vector(graph: GraphProto, ending: str) -> TensorProto:
    return next(tensor for tensor in graph.initializer if tensor.name.endswith(ending))


def plant_no_logits_bias(folder: Path) -> None:
    """``final_logits_bias`` all zero."""
    for path in decoder_files(folder):
        with edited(path) as model:
            bias = _decoder_vector(model.graph, "final_logits_bias")
            set_data(bias, np.zeros_like(numpy_helper.to_array(bias)))


def plant_weight_perturbed(folder: Path) -> None:
    """One element of layer 0's value bias moved by a hundredth."""
    for path in decoder_files(folder):
        with edited(path) as model:
            bias = _decoder_vector(model.graph, "layers.0.self_attn.v_proj.bias")
            array = numpy_helper.to_array(bias).copy()
            array[7] += 0.01
            set_data(bias, array)


# --- manifest and tokenizer ------------------------------------------------------------------------------------------


def _generation(**changes: object) -> Callable[[Path], None]:
    def plant(folder: Path) -> None:
        with edited_manifest(folder) as manifest:
            manifest["generation"].update(changes)

    return plant


def plant_vocabulary_entries_swapped(folder: Path) -> None:
    """The ids of two frequent pieces exchanged, as in a vocabulary of another training run."""
    path = folder / "vocab.json"
    vocabulary = json.loads(path.read_text(encoding="utf-8"))
    left, right = "▁the", "▁valve"
    vocabulary[left], vocabulary[right] = vocabulary[right], vocabulary[left]
    path.write_text(json.dumps(vocabulary, ensure_ascii=False), encoding="utf-8")


_TENSORS = "test_every_tensor_of_every_step_equals_pytorch"
_CACHED = "test_cached_decoding_equals_uncached"
_SETTINGS = "test_the_sets_generation_settings_are_the_models"
_IDS = "test_ids_scores_and_stop_reasons_equal_generate"
_ANY_PAST = "test_any_past_is_continued_as_by_pytorch"

RUNTIME_FAULTS: dict[str, RuntimeFault] = {
    "G01-no-encoder-mask": RuntimeFault(
        "parity",
        plant_no_encoder_mask,
        "compact-by-torchscript",
        _TENSORS,
        ("first: encoder, last_hidden_state", "the encoder ignores attention_mask"),
        "short",
    ),
    "G02-no-cross-mask": RuntimeFault(
        "parity",
        plant_no_cross_mask,
        "compact-by-dynamo",
        _TENSORS,
        ("first: step 0, logits", "the decoder ignores encoder_attention_mask"),
        "short",
    ),
    "G02-no-cross-mask-in-one-layer": RuntimeFault(
        "parity",
        plant_no_cross_mask_in_first_layer,
        "compact-by-dynamo",
        _TENSORS,
        ("first: step 0", "present.1.decoder.key at step 0 is the first tensor that differs"),
        "short",
    ),
    "G04-positions-frozen": RuntimeFault(
        "parity",
        plant_frozen_positions,
        "pair-by-torchscript",
        _TENSORS,
        ("first: step 1, logits", "positions are frozen: every step is embedded from position 0"),
        "short",
    ),
    "G06-cached-is-not-uncached": RuntimeFault(
        "parity",
        plant_frozen_positions,
        "single-by-dynamo",
        _CACHED,
        ("first: step 1, logits", "positions are frozen"),
    ),
    "G07-key-and-value": RuntimeFault(
        "parity",
        plant_key_and_value_swapped,
        "pair-by-dynamo",
        _TENSORS,
        ("cache tensors are swapped", "present.0.decoder.key holds present.0.decoder.value", "step 0"),
        "short",
    ),
    "G07-layers": RuntimeFault(
        "parity",
        plant_layers_swapped,
        "single-by-torchscript",
        _TENSORS,
        ("cache tensors are swapped", "present.0.decoder.key holds present.1.decoder.key", "step 0"),
        "short",
    ),
    "G09-logits-bias-zero": RuntimeFault(
        "parity",
        plant_no_logits_bias,
        "compact-by-torchscript",
        _TENSORS,
        ("first: step 0, logits", "final_logits_bias is missing"),
        "short",
    ),
    "G10-decoder-scale": RuntimeFault(
        "parity",
        plant_no_decoder_scale,
        "single-by-dynamo",
        _TENSORS,
        # Decoding starts from the row of pad, which is zero at any scale.
        ("first: step 1", "the embedding scale sqrt(d_model) is missing in the decoder"),
        "short",
    ),
    "G03-no-causal-mask": RuntimeFault(
        "parity",
        plant_no_causal_mask,
        "pair-by-dynamo",
        _CACHED,
        ("first: step 0, logits", "given several tokens at once it does not", "the causal mask is missing"),
    ),
    "weight-perturbed": RuntimeFault(
        "parity",
        plant_weight_perturbed,
        "pair-by-torchscript",
        _TENSORS,
        ("first: step 0, present.0.decoder.value", "present.0.decoder.value at step 0 is the first tensor"),
        "short",
    ),
    "G01-neighbours": RuntimeFault(
        "parity",
        plant_no_encoder_mask,
        "single-by-torchscript",
        "test_batch_neighbours_change_nothing",
        ("encoder, last_hidden_state", "the encoder ignores attention_mask"),
    ),
    "S04-batch-baked": RuntimeFault(
        "shapes",
        plant_baked_batch_like_heads,
        "compact-by-torchscript",
        _ANY_PAST,
        ("call 2 (append 1 token, batch 1)", "cause: decoder.onnx: node", "an axis is baked inside the graph"),
    ),
    "S01-source-baked": RuntimeFault(
        "shapes",
        plant_baked_source,
        "compact-by-dynamo",
        "test_any_batch_is_encoded_as_by_pytorch",
        ("call 1 (encode batch 1, source 1", "cause: encoder.onnx: node", "it passes at the tracing sizes"),
    ),
    "G03-causal-mask-cut": RuntimeFault(
        "shapes",
        plant_causal_mask_cut,
        "single-by-torchscript",
        _ANY_PAST,
        ("it passes when the same tokens are appended one by one", "causal mask"),
    ),
    "G14-rows-stale": RuntimeFault(
        "shapes",
        plant_past_of_the_first_row,
        "single-by-dynamo",
        "test_the_cache_equals_pytorch_whatever_a_search_does",
        ("present.0.decoder.key", "it passes with each row alone"),
    ),
    "G05-target-positions": RuntimeFault(
        "shapes",
        plant_clipped_target_positions,
        "pair-by-torchscript",
        "test_a_target_of_exactly_the_maximum_is_decoded",
        ("decoder at its maximum of", "first: call 2 (append"),
    ),
    "G05-source-positions": RuntimeFault(
        "shapes",
        plant_clipped_source_positions,
        "pair-by-dynamo",
        "test_a_source_of_exactly_the_maximum_is_encoded",
        ("encoder at its maximum of", "first: call 1 (encode", "last_hidden_state"),
    ),
    "D01-start-id": RuntimeFault(
        "decoding",
        _generation(decoder_start_token_id=0),
        "compact-by-torchscript",
        _SETTINGS,
        ("starts decoding from id 0", "to start from 7999", "manifest.json"),
    ),
    "D02-pad-ban": RuntimeFault(
        "decoding",
        _generation(banned_token_ids=[]),
        "pair-by-torchscript",
        _SETTINGS,
        ("banned_token_ids: model [7999], set []", "manifest.json"),
    ),
    "D06-length-penalty": RuntimeFault(
        "decoding",
        _generation(length_penalty=2.0),
        "single-by-torchscript",
        _SETTINGS,
        ("length_penalty: model 1.0, set 2.0", "manifest.json"),
    ),
    "G09-ids-without-bias": RuntimeFault(
        "decoding",
        plant_no_logits_bias,
        "pair-by-dynamo",
        _IDS,
        ("the logits differ",),
        "greedy",
    ),
    "T05-vocabulary": RuntimeFault(
        "decoding",
        plant_vocabulary_entries_swapped,
        "compact-by-dynamo",
        "test_the_sets_tokenizer_gives_the_librarys_ids_and_texts",
        ("open-valve", "▁valve"),
    ),
    "G07-ids-with-swapped-cache": RuntimeFault(
        "decoding",
        plant_key_and_value_swapped,
        "single-by-dynamo",
        _IDS,
        ("the logits are right up to step 1 and differ from step 2 on: cache or positions",),
        "greedy",
    ),
}
