"""Every difference between versions of torch, transformers, onnx and onnxruntime. No version branch anywhere else.

The supported stacks are listed in ``constraints/``; what differs between them is described in ``docs/stacks.md``.
"""

from __future__ import annotations

import inspect
import platform
from collections.abc import Callable, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

import torch
import transformers

STACK_PACKAGES = (
    "torch", "transformers", "tokenizers", "onnx", "onnxruntime", "onnxscript", "onnxslim", "onnxsim", "numpy",
    "sentencepiece",
)  # fmt: skip

try:
    from transformers.cache_utils import DynamicCache, EncoderDecoderCache
except ImportError:  # transformers before 4.42 passes plain tuples
    DynamicCache = EncoderDecoderCache = None


def release(version: str) -> tuple[int, int]:
    """Major and minor of a version string, e.g. ``(4, 36)``."""
    major, minor = version.split("+")[0].split(".")[:2]
    return int(major), int(minor)


def versions() -> dict[str, str]:
    """Versions of Python and of every installed package that shapes a result."""
    found = {"python": platform.python_version()}
    for package in STACK_PACKAGES:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return found


def stack_name() -> str:
    """Name of the stack by its runtime, e.g. ``ort132``: the tox environment that pins it."""
    major, minor = release(metadata.version("onnxruntime"))
    return f"ort{major}{minor}"


def exporters() -> tuple[str, ...]:
    """Exporters that are a subject on this stack.

    ``torch.onnx.export(dynamo=True)`` exists since torch 2.5 and emits opset 18 or newer; the older
    ``torch.onnx.dynamo_export`` of torch 2.1 does not support dynamic shapes of the cache.
    """
    return ("torchscript", "dynamo") if release(torch.__version__) >= (2, 6) else ("torchscript",)


def default_opset(exporter: str) -> int:
    """Opset named explicitly in every export, since the libraries' own defaults differ (14, 17, 20)."""
    if exporter == "dynamo":
        return 18
    return 14 if release(torch.__version__) < (2, 0) else 17


def opset_range(exporter: str) -> tuple[int, int]:
    """Lowest and highest opset the exporter of this torch can write for these graphs."""
    if exporter == "dynamo":
        return 18, 18
    return 11, 17 if release(torch.__version__) < (2, 6) else 20


def torchscript_arguments() -> dict[str, Any]:
    """Arguments that make ``torch.onnx.export`` use the TorchScript exporter on every torch."""
    return {"dynamo": False} if "dynamo" in inspect.signature(torch.onnx.export).parameters else {}


def eager_attention() -> dict[str, Any]:
    """Arguments of ``from_pretrained`` that select eager attention, the only kind before transformers 4.36."""
    return {"attn_implementation": "eager"} if release(transformers.__version__) >= (4, 36) else {}


def attention_implementation(model: torch.nn.Module) -> str:
    """Name of the attention kernels a loaded model uses."""
    return getattr(model.config, "_attn_implementation", None) or "eager"


def float32_arguments() -> dict[str, Any]:
    """Arguments of ``from_pretrained`` that load float32; the keyword was renamed in transformers 4.56."""
    key = "dtype" if release(transformers.__version__) >= (4, 56) else "torch_dtype"
    return {key: torch.float32}


def pack_cache(self_kv: Sequence[torch.Tensor], cross_kv: Sequence[torch.Tensor]) -> Any:
    """Build the cache this transformers wants from ``[key, value] * layers`` of self and of cross attention.

    ``cross_kv`` is marked as computed: the decoder reuses it and never looks at the encoder's hidden states.
    """
    layers = range(len(self_kv) // 2)
    if EncoderDecoderCache is None or release(transformers.__version__) < (4, 48):
        return tuple((*self_kv[2 * i : 2 * i + 2], *cross_kv[2 * i : 2 * i + 2]) for i in layers)
    self_cache, cross_cache = DynamicCache(), DynamicCache()
    for i in layers:
        self_cache.update(self_kv[2 * i], self_kv[2 * i + 1], i)
        cross_cache.update(cross_kv[2 * i], cross_kv[2 * i + 1], i)
    cache = EncoderDecoderCache(self_cache, cross_cache)
    for i in layers:
        cache.is_updated[i] = True
    return cache


def unpack_cache(cache: Any) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
    """Return ``[key, value] * layers`` of self and of cross attention."""
    if hasattr(cache, "self_attention_cache"):
        flat = lambda part: [t for layer in part.layers for t in (layer.keys, layer.values)]
        return flat(cache.self_attention_cache), flat(cache.cross_attention_cache)
    return (
        [tensor for layer in cache for tensor in layer[:2]],
        [tensor for layer in cache for tensor in layer[2:4]],
    )


def cache_argument(decoder: torch.nn.Module) -> str:
    """Name of the decoder's cache parameter: renamed to ``cache`` in transformers 5."""
    parameters = inspect.signature(inspect.unwrap(decoder.forward)).parameters
    return "cache" if "cache" in parameters else "past_key_values"


def cache_of(output: Any) -> Any:
    """The cache in a decoder's output, under either name."""
    cache = getattr(output, "cache", None)
    return output.past_key_values if cache is None else cache


def pad_removed_before_softmax(family: str) -> bool:
    """Whether ``generate()`` sets Marian's pad logit to minus infinity before beam search's log-softmax.

    ``MarianMTModel.adjust_logits_during_generation`` did so until transformers 4.30.
    """
    return family == "marian" and release(transformers.__version__) < (4, 30)


def pickled_arguments(state: dict[str, torch.Tensor]) -> dict[str, Any]:
    """Arguments of ``from_pretrained`` that keep it from unpickling freely.

    Before transformers 5 it is handed the state that the restricted unpickler read; from 5 on it refuses to be, and
    unpickles with ``weights_only`` itself.
    """
    return {"state_dict": dict(state)} if release(transformers.__version__) < (5, 0) else {}


def load_pickled_weights(path: Path) -> dict[str, torch.Tensor]:
    """Load a state dict through torch's restricted unpickler; raises ``pickle.UnpicklingError`` for anything else."""
    return torch.load(path, map_location="cpu", weights_only=True)


def search_rules() -> str:
    """Which generation of beam search this transformers runs; see ``SEARCH_RULES`` of ``harness.contract.generation``.

    Exact for the pinned versions (4.26, 4.36, 5.24). Between them, 4.27 to 4.35 honour "never" and still normalise
    cut hypotheses by their whole length, and 4.50 to 4.51 let a finished row change while its neighbours run: there
    beam search under ``early_stopping="never"`` or at the length limit may differ from ``generate()``.
    """
    version = release(transformers.__version__)
    if version < (4, 36):
        return "sequence_length"
    return "generated_length" if version < (4, 50) else "running_beams"


def simplifier() -> tuple[str, Callable[[Any], Any] | None]:
    """Name and function of the graph simplifier of this stack, ``ModelProto -> ModelProto``; None where there is none.

    onnxslim needs a newer onnx than the ort117 stack has; onnxsim 0.4.36 is what that one pins.
    """
    try:
        import onnxslim

        return "onnxslim", onnxslim.slim
    except ImportError:
        pass
    try:
        import onnxsim

        return "onnxsim", lambda model: onnxsim.simplify(model)[0]
    except ImportError:
        return "none", None
