"""Does every attention see its mask? (faults G01, G02, G03)"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from onnx import ModelProto, NodeProto

from harness.checks.graph.walk import PRODUCTS, Cone, Scope, cone, main_scope, name_of, size_of
from harness.contract.finding import Finding, Verdict
from harness.contract.layouts import ATTENTION_MASK, ENCODER, ENCODER_MASK, INPUT_IDS, ModelDims

# Whole attentions in one node: the runtime's own operators, and ai.onnx's since opset 23.
FUSED = frozenset(
    {"Attention", "QAttention", "MultiHeadAttention", "DecoderAttention", "DecoderMaskedMultiHeadAttention"}
)
# The runtime's BiasSoftmax takes the mask as its second input.
SOFTMAXES = frozenset({"Softmax", "BiasSoftmax"})
COMPARISONS = frozenset({"Less", "LessOrEqual", "Greater", "GreaterOrEqual"})
COUNTERS = frozenset({"Range", "CumSum"})
SELF_ATTENTION, CROSS_ATTENTION, FUSED_ATTENTION = "self-attention", "cross-attention", "fused attention"


@dataclass(frozen=True)
class Attention:
    """One attention of a graph.

    Attributes:
        kind: ``self-attention``, ``cross-attention`` or ``fused attention``.
        layer: counted from 0 among those of its kind and scope.
        scope, node: where it is: its Softmax, or the fused node.
        cone: what its softmax is computed from, back to the products of query and key.
    """

    kind: str
    layer: int
    scope: Scope
    node: NodeProto
    cone: Cone

    def text(self, side: str) -> str:
        """How reports call it."""
        branch = f" of {self.scope.label}" if self.scope.label else ""
        return f"{side} layer {self.layer}, {self.kind}{branch}, {name_of(self.node)}"


def attentions(model: ModelProto, ids: str) -> list[list[Attention]]:
    """Find the attentions of a model, one list per scope that has any.

    An attention is a Softmax behind a product of two values that depend on inputs: of query and key. Where both depend
    on the decoder's own ids it is self-attention, else cross-attention. A softmax over logits is none, since one side
    of its product is a weight.

    Args:
        model: contents of the file, weights not needed.
        ids: name of the input that holds the ids of this graph's own tokens.
    """
    found = [_attentions_of(scope, ids) for scope in main_scope(model).scopes()]
    return [group for group in found if group]


def _attentions_of(scope: Scope, ids: str) -> list[Attention]:
    counts: dict[str, int] = {}
    group = []
    for node in scope.nodes:
        kind, seen = None, None
        if node.op_type in FUSED:
            kind, seen = FUSED_ATTENTION, cone(scope, node.input, stop=PRODUCTS | FUSED)
        elif node.op_type in SOFTMAXES:
            seen = cone(scope, node.input, stop=PRODUCTS | FUSED)
            kind = _kind(seen, ids)
        if kind:
            group.append(Attention(kind, counts.get(kind, 0), scope, node, seen))
            counts[kind] = counts.get(kind, 0) + 1
    return group


def _kind(seen: Cone, ids: str) -> str | None:
    for scope, node in seen.nodes:
        if node.op_type not in PRODUCTS:
            continue
        sides = [cone(scope, [name]).inputs for name in node.input[:2]]
        if len(sides) == 2 and all(sides):
            return SELF_ATTENTION if all(ids in side for side in sides) else CROSS_ATTENTION
    return None


def masks_reach_attention(
    file: str, role: str, model: ModelProto, names: Mapping[str, str | None], dims: ModelDims, *, single_token: bool
) -> list[Finding]:
    """Follow every attention back to its mask, not through any product of matrices.

    A walk through the products would find the mask by way of earlier layers. In an encoder every attention must see
    ``attention_mask``; in a decoder every cross-attention ``encoder_attention_mask`` and every self-attention a causal
    mask.

    Args:
        file, role: name and role of the file.
        model: its contents, weights not needed.
        names: the inputs' own names -> the contract's.
        dims: sizes of the model.
        single_token: the file promises one target token per call, for which no causal mask is needed.
    """
    own = {canonical: name for name, canonical in names.items() if canonical}
    side = "encoder" if role == ENCODER else "decoder"
    groups = attentions(model, own.get(INPUT_IDS, INPUT_IDS))
    findings = [_counted(file, side, groups, dims)]
    everything = [attention for group in groups for attention in group]
    if not everything:
        return findings
    wanted = ATTENTION_MASK if role == ENCODER else ENCODER_MASK
    crossing = [a for a in everything if role == ENCODER or a.kind == CROSS_ATTENTION]
    fused = [a for a in everything if role != ENCODER and a.kind == FUSED_ATTENTION]
    if fused:
        findings.append(_fused_see_mask(file, fused, own.get(wanted, wanted), dims))
    if crossing:
        findings.append(_see_mask(file, side, crossing, own.get(wanted, wanted)))
    inner = [a for a in everything if role != ENCODER and a.kind == SELF_ATTENTION]
    if inner:
        findings.append(_see_causal_mask(file, side, inner, single_token))
    return findings


def _counted(file: str, side: str, groups: list[list[Attention]], dims: ModelDims) -> Finding:
    """Hold the number of attentions against the model's layers; many copies are an unrolled loop (fault F09)."""
    expected = dims.encoder_layers if side == "encoder" else 2 * dims.decoder_layers
    counts = [len(group) for group in groups]
    check = f"{file}: one attention per layer and kind"
    if not counts:
        return Finding(
            check=check,
            verdict=Verdict.INCONCLUSIVE,
            where=file,
            cause="no Softmax behind a product of query and key, and no fused attention: masks cannot be followed",
            action="Export without fusing or splitting attention, or rely on suites/parity for this file.",
        )
    wrong = next((count for count in counts if count != expected), None)
    if wrong is None:
        return Finding(check=check, verdict=Verdict.PASS, compared=expected, expected=expected)
    cause = f"{wrong} attentions, the model's {side} has {expected}"
    if wrong > expected and wrong % expected == 0:
        cause += f": {wrong // expected} copies, as of a loop that was unrolled to a fixed number of steps"
    return Finding(
        check=check,
        verdict=Verdict.FAIL,
        where=file,
        cause=cause,
        action="Export one encoder pass and one decoder step of the model under test.",
    )


def _see_mask(file: str, side: str, group: list[Attention], mask: str) -> Finding:
    blind = [attention for attention in group if mask not in attention.cone.inputs]
    check = f"{file}: every {'layer' if side == 'encoder' else 'cross-attention'} sees {mask}"
    if not blind:
        return Finding(check=check, verdict=Verdict.PASS, compared=len(group), expected=len(group))
    return Finding(
        check=check,
        verdict=Verdict.FAIL,
        measured=float(len(blind)),
        limit=0.0,
        unit=f"of {len(group)} attentions",
        where=f"{file}, {blind[0].text(side)}",
        cause=f"{mask} does not reach it: {_in_place_of_mask(blind[0])}; padding moves real positions",
        action="Export with eager attention, and pass the mask to the model while tracing.",
        details=tuple(f"{attention.text(side)}: {_in_place_of_mask(attention)}" for attention in blind),
    )


def _fused_see_mask(file: str, group: list[Attention], mask: str, dims: ModelDims) -> Finding:
    """Fused decoders: as many nodes must see the mask as there are layers; the causal mask is inside the operator."""
    seeing = sum(mask in attention.cone.inputs for attention in group)
    enough = seeing >= dims.decoder_layers
    blind = next((attention for attention in group if mask not in attention.cone.inputs), group[0])
    return Finding(
        check=f"{file}: {mask} reaches the fused attentions of every decoder layer",
        verdict=Verdict.PASS if enough else Verdict.FAIL,
        where="" if enough else f"{file}, {blind.text('decoder')}",
        cause="" if enough else f"{mask} reaches {seeing} of {dims.decoder_layers} layers",
        action="" if enough else "Fuse again from a graph that passes suites/export.",
        details=("whether fused self-attentions are causal is not visible here: suites/parity decides",),
    )


def _see_causal_mask(file: str, side: str, group: list[Attention], single_token: bool) -> Finding:
    blind = [attention for attention in group if not _is_causal(attention)]
    check = f"{file}: every self-attention sees a causal mask"
    if not blind:
        return Finding(check=check, verdict=Verdict.PASS, compared=len(group), expected=len(group))
    cause = f"{_in_place_of_mask(blind[0])}, and nothing compares positions"
    if single_token:
        action = "Feed this file one token per call only."
    else:
        action = "Trace with a target length of 2 or more, so that the library builds the causal mask."
        cause += "; longer target prefixes are wrong"
    return Finding(
        check=check,
        verdict=Verdict.WARN if single_token else Verdict.FAIL,
        measured=float(len(blind)),
        limit=0.0,
        unit=f"of {len(group)} attentions",
        where=f"{file}, {blind[0].text(side)}",
        cause=cause,
        action=action,
        details=tuple(attention.text(side) for attention in blind),
    )


def _is_causal(attention: Attention) -> bool:
    """Whether the scores depend on a comparison of two counted positions, or on a stored triangle."""
    for scope, node in attention.cone.nodes:
        if node.op_type == "Trilu":
            return True
        if node.op_type in COMPARISONS and all(cone(scope, [name]).operators & COUNTERS for name in node.input):
            return True
    return any(
        len(tensor.dims) >= 2 and sum(size > 1 for size in tensor.dims) >= 2
        for tensor in attention.cone.constants.values()
    )


def _in_place_of_mask(attention: Attention) -> str:
    """What the scores are masked with instead, as far as the graph tells."""
    tensors = [name for name, tensor in attention.cone.constants.items() if size_of(tensor) > 1]
    fills = [name_of(node) for _, node in attention.cone.nodes if node.op_type == "ConstantOfShape"]
    others = sorted(attention.cone.inputs)
    if others:
        return f"it sees {', '.join(others)} only"
    if tensors or fills:
        return f"its mask comes from {(fills + tensors)[0]}"
    return "no mask is added to its scores"
