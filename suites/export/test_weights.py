"""Does the set hold the model's weights, all of them and each once?"""

from __future__ import annotations

import math

import numpy as np

from harness.checks.graph.embedding import pad_row_is_zero, scales_embedding
from harness.checks.graph.weights import holds_every_parameter, stored_once
from harness.contract.layouts import LAYOUTS
from harness.plugin import not_applicable


def test_every_weight_is_stored_once(subject, artifacts, weights, parameters, quantized_parameters, judge):
    # Optimum's merged decoder is the one decoder file of its set, so the allowance is that of `single`.
    layout = LAYOUTS.get(artifacts.layout, LAYOUTS["single"])
    made_here = artifacts.manifest is not None
    judge(stored_once(weights, parameters, layout.copies, made_here=made_here, quantized=quantized_parameters))


def test_every_weight_of_pytorch_is_in_the_set(subject, artifacts, graphs, weights, parameters, judge):
    if artifacts.quantized:
        not_applicable("quantized weights do not keep their bytes")
    roles = {graph.file: graph.role for graph in graphs}
    judge(*holds_every_parameter(weights, parameters, roles, made_here=artifacts.manifest is not None))


def test_the_embedding_is_scaled_as_in_pytorch(subject, graphs, reference, judge):
    config = reference.model.model.config
    scale = math.sqrt(config.d_model) if config.scale_embedding else 1.0
    judge(*(scales_embedding(graph.file, graph.model, graph.path.parent, graph.ids, scale) for graph in graphs))


def test_the_pad_row_of_the_embedding_is_zero(subject, artifacts, graphs, checkpoint, reference, judge):
    if checkpoint.family != "marian":
        not_applicable("only Marian starts decoding from the row of pad")
    pad, model = artifacts.generation.pad_token_id, reference.model.model
    findings = []
    for graph in graphs:
        side = model.get_encoder() if graph.role == "encoder" else model.get_decoder()
        row = side.embed_tokens.weight[pad].detach().numpy()
        findings.append(
            pad_row_is_zero(graph.file, graph.model, graph.path.parent, graph.ids, pad, float(np.abs(row).max()))
        )
    judge(*findings)
