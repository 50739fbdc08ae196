"""Warnings of the exporters that were looked at, each with the reason why it does no harm here.

A warning is written as ``<library file>: <category>: <message>`` (logger name for log records). One that matches none
of these fails the check ``the tracer warned of nothing unknown`` of ``suites/export``.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class KnownWarning:
    """A regular expression over the written form, and why the warning may stay."""

    pattern: str
    reason: str


_TO_BOOLEAN = r"TracerWarning: Converting a tensor to a Python boolean"
_REGISTERED = r"TracerWarning: torch\.tensor results are registered as constants"

KNOWN_WARNINGS: dict[str, KnownWarning] = {
    "embedding-padding-index": KnownWarning(
        rf"^torch/nn/functional\.py: {_TO_BOOLEAN}",
        "dropout and embedding compare sizes and probabilities of the module, which are the model's own constants",
    ),
    "marian-attention-shape-asserts": KnownWarning(
        rf"^transformers/models/marian/modeling_marian\.py: {_TO_BOOLEAN}",
        "attention asserts the shapes it just built and picks the cached cross K/V; every branch is the one wanted at "
        "all sizes, since tracing sizes are distinct and suites/shapes compares other sizes with PyTorch",
    ),
    "marian-registered-constants": KnownWarning(
        rf"^transformers/models/marian/modeling_marian\.py: {_REGISTERED}",
        "the constant is the smallest float32, used as mask value",
    ),
    "mask-utils": KnownWarning(
        rf"^transformers/(modeling_attn_mask_utils|masking_utils)\.py: {_TO_BOOLEAN}",
        "mask builders ask whether lengths differ or a mask can be skipped; with target and past of 2 or more the "
        "general branch is traced, and suites/shapes calls it with lengths 1 and 0",
    ),
    "cache-utils": KnownWarning(
        rf"^transformers/cache_utils\.py: ({_TO_BOOLEAN}|{_REGISTERED})",
        "the cache asks whether it is empty and starts from an empty tensor; traced with a past of 2 or more it "
        "concatenates, which is right for a past of 0 too",
    ),
    "legacy-exporter-notice": KnownWarning(
        r"DeprecationWarning: (You are using the legacy TorchScript-based ONNX export|The feature will be removed)",
        "the exporter is named explicitly; it is a subject of the suites",
    ),
    "index-opset": KnownWarning(
        r"UserWarning: Exporting aten::index operator of advanced indexing",
        "only masks are indexed, by ranges that start at 0: no index is negative",
    ),
    "torchvision-absent": KnownWarning(
        r"^torch\.onnx\._internal\.exporter\._registration: torchvision is not installed",
        "no operator of torchvision is in a translation model",
    ),
    "axis-name-shared": KnownWarning(
        r"UserWarning: # The axis name: \w+ will not be used, since it shares the same shape constraints",
        "several inputs share the axis by design",
    ),
    "treespec": KnownWarning(
        r"FutureWarning: `isinstance\(treespec, LeafSpec\)` is deprecated",
        "torch's own pytree code",
    ),
}
