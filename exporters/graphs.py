"""The modules that are traced: one per graph contract, built on the library's own encoder and decoder.

Inputs and outputs are positional and in the order of ``harness.contract.layouts``.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import nn

from harness import compat
from harness.contract.layouts import DECODER, DECODER_INIT, DECODER_STEP, ENCODER, ENCODER_HIDDEN, GraphSpec
from harness.reference.family import cross_kv


class EncoderGraph(nn.Module):
    """Ids and mask to hidden states ``[batch, source, d_model]``."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.encoder = model.get_encoder()

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
        return self.encoder(input_ids=input_ids, attention_mask=attention_mask, return_dict=True).last_hidden_state


class EncoderWithCrossGraph(nn.Module):
    """As ``EncoderGraph``, followed by every layer's cross K/V."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.encoder, self.decoder = model.get_encoder(), model.get_decoder()

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> tuple[torch.Tensor, ...]:
        hidden = self.encoder(input_ids=input_ids, attention_mask=attention_mask, return_dict=True).last_hidden_state
        return (hidden, *cross_kv(self.decoder, hidden))


class _DecoderGraph(nn.Module):
    """What the decoder graphs share: the library's decoder, the output projection and the logits bias."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.decoder, self.lm_head = model.get_decoder(), model.lm_head
        self.register_buffer("final_logits_bias", model.final_logits_bias.detach().clone())
        self.cache_argument = compat.cache_argument(self.decoder)
        self.d_model = model.config.d_model

    def decode(self, input_ids, hidden, mask, cache) -> tuple[torch.Tensor, list[torch.Tensor], list[torch.Tensor]]:
        output = self.decoder(
            input_ids=input_ids,
            encoder_hidden_states=hidden,
            encoder_attention_mask=mask,
            use_cache=True,
            return_dict=True,
            **{self.cache_argument: cache},
        )
        logits = self.lm_head(output.last_hidden_state) + self.final_logits_bias
        return (logits, *compat.unpack_cache(compat.cache_of(output)))


class CachedDecoderGraph(_DecoderGraph):
    """Cross K/V given; self past of any length."""

    def forward(self, input_ids: torch.Tensor, mask: torch.Tensor, *past: torch.Tensor) -> tuple[torch.Tensor, ...]:
        self_past, cross = past[: len(past) // 2], past[len(past) // 2 :]
        # The decoder attends to the encoder only when hidden states are passed; with cross K/V in the cache it reads
        # nothing of them but their shape.
        hidden = cross[0].new_zeros(cross[0].shape[0], cross[0].shape[2], self.d_model)
        logits, self_kv, _ = self.decode(input_ids, hidden, mask, compat.pack_cache(self_past, cross))
        return (logits, *self_kv)


class InitDecoderGraph(_DecoderGraph):
    """No cache yet; emits self and cross K/V."""

    def forward(self, input_ids: torch.Tensor, hidden: torch.Tensor, mask: torch.Tensor) -> tuple[torch.Tensor, ...]:
        logits, self_kv, cross = self.decode(input_ids, hidden, mask, None)
        return (logits, *self_kv, *cross)


class RecomputingDecoderGraph(_DecoderGraph):
    """Self past of any length; cross K/V recomputed from the hidden states at every call."""

    def forward(
        self, input_ids: torch.Tensor, hidden: torch.Tensor, mask: torch.Tensor, *past: torch.Tensor
    ) -> tuple[torch.Tensor, ...]:
        cache = compat.pack_cache(past, cross_kv(self.decoder, hidden))
        logits, self_kv, _ = self.decode(input_ids, hidden, mask, cache)
        return (logits, *self_kv)


def module_for(spec: GraphSpec, model: nn.Module) -> nn.Module:
    """Build the module that fulfils a graph contract, in evaluation mode."""
    if spec.role == ENCODER:
        graph = EncoderGraph if len(spec.outputs) == 1 else EncoderWithCrossGraph
    elif spec.role == DECODER_INIT:
        graph = InitDecoderGraph
    elif spec.role == DECODER and any(tensor.name == ENCODER_HIDDEN for tensor in spec.inputs):
        graph = RecomputingDecoderGraph
    else:
        assert spec.role in (DECODER, DECODER_STEP), spec.role
        graph = CachedDecoderGraph
    return graph(model).eval()


def dummy_inputs(
    spec: GraphSpec, sizes: dict[str, int], source: torch.Tensor, mask: torch.Tensor
) -> tuple[torch.Tensor, ...]:
    """Tracing inputs of a graph.

    Args:
        spec: the graph's contract.
        sizes: ``batch``, ``source``, ``target``, ``past``, ``total`` in elements.
        source, mask: int64 ``[batch, source]`` from the real tokenizer; other ids are drawn from it, other float
            tensors from a fixed generator.
    """
    generator = torch.Generator().manual_seed(0)
    tensors = []
    for tensor in spec.inputs:
        shape = [sizes.get(size, size) if isinstance(size, str) else size for size in tensor.shape]
        if tensor.name.endswith("attention_mask"):
            tensors.append(mask)
        elif tensor.dtype == "int64":
            tensors.append(source[:, : shape[1]].contiguous())
        else:
            tensors.append(torch.randn(shape, generator=generator))
    return tuple(tensors)


def distinct_sizes(fixed: Sequence[int], *, smallest_source: int, variant: int = 0) -> dict[str, int]:
    """Choose tracing sizes: all at least 2, all different, none equal to a size of the model.

    A baked axis then shows as a constant that can come from nowhere else (faults S01, S03). ``variant`` picks other
    sizes, for the check that two traces give one structure.
    """
    used = set(fixed)
    sizes: dict[str, int] = {}
    start = {"batch": 2, "target": 3, "past": 4, "source": smallest_source}
    for axis, size in start.items():
        size += 2 * variant
        while size in used or (axis == "past" and size + sizes["target"] in used):
            size += 1
        sizes[axis] = size
        used.add(size)
        if axis == "past":
            sizes["total"] = size + sizes["target"]
            used.add(sizes["total"])
    return sizes
