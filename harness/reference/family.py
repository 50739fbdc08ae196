"""Where the parts of a supported model family are.

A family is one entry of ``FAMILIES``. Marian, BART, mBART and M2M100 share the decoder structure read here; a family
is listed only once its exports pass the suites.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from harness.contract.errors import InputError


@dataclass(frozen=True)
class Family:
    """How to reach into a model.

    Attributes:
        model_class: name of the class in ``transformers``.
        required_buffers: state that the library would silently replace by zeros when a checkpoint lacks it.
        learned_positions: whether the position table comes from the checkpoint.
    """

    model_class: str
    required_buffers: tuple[str, ...]
    learned_positions: bool


FAMILIES = {
    "marian": Family(
        model_class="MarianMTModel",
        required_buffers=("final_logits_bias",),
        learned_positions=False,
    ),
}


def family_of(config: dict[str, Any], *, where: object) -> Family:
    """Look a family up by its config's ``model_type``.

    Raises:
        InputError: the architecture is not supported.
    """
    try:
        return FAMILIES[config["model_type"]]
    except KeyError:
        raise InputError(
            what=f"architecture {config['model_type']!r} is not supported",
            where=where,
            action=f"Supported: {', '.join(FAMILIES)}.",
        ) from None


def cross_kv(decoder: torch.nn.Module, encoder_hidden: torch.Tensor) -> list[torch.Tensor]:
    """Cross-attention K/V of every layer: ``[key, value] * layers``, each ``[batch, heads, source, head_dim]``."""
    tensors = []
    for layer in decoder.layers:
        attention = layer.encoder_attn
        for projection in (attention.k_proj, attention.v_proj):
            batch, source, _ = encoder_hidden.shape
            split = projection(encoder_hidden).view(batch, source, attention.num_heads, attention.head_dim)
            tensors.append(split.transpose(1, 2).contiguous())
    return tensors
