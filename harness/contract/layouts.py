"""Artifact layouts: which graphs a set holds, their tensors, and the weights they may hold twice.

Tensor names follow the ecosystem's convention (Optimum, transformers): ``past_key_values.{i}.decoder.key`` goes in,
``present.{i}.decoder.key`` comes out, key before value, layer by layer.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

INPUT_IDS = "input_ids"
ATTENTION_MASK = "attention_mask"
ENCODER_HIDDEN = "encoder_hidden_states"
ENCODER_MASK = "encoder_attention_mask"
ENCODER_OUTPUT = "last_hidden_state"
LOGITS = "logits"

SELF, CROSS = "decoder", "encoder"

ENCODER = "encoder"
DECODER = "decoder"
DECODER_INIT = "decoder_init"
DECODER_STEP = "decoder_step"


def past_name(layer: int, attention: str, part: str) -> str:
    """Name of a cache input, e.g. ``past_key_values.0.decoder.key``."""
    return f"past_key_values.{layer}.{attention}.{part}"


def present_name(layer: int, attention: str, part: str) -> str:
    """Name of a cache output, e.g. ``present.0.encoder.value``."""
    return f"present.{layer}.{attention}.{part}"


def past_of_present(name: str) -> str:
    """Name of the input that a cache output is fed back to."""
    return name.replace("present.", "past_key_values.", 1)


def present_names(layers: int, attention: str) -> list[str]:
    """All cache outputs of one attention kind (``SELF`` or ``CROSS``), key before value, layer by layer."""
    return [present_name(i, attention, part) for i in range(layers) for part in ("key", "value")]


@dataclass(frozen=True)
class ModelDims:
    """Sizes of a model that shape its tensors, all in elements."""

    d_model: int
    encoder_layers: int
    decoder_layers: int
    encoder_heads: int
    decoder_heads: int
    encoder_ffn: int
    decoder_ffn: int
    vocab_size: int
    source_vocab_size: int
    max_source_positions: int
    max_target_positions: int

    @property
    def head_dim(self) -> int:
        """Width of one decoder head."""
        return self.d_model // self.decoder_heads

    def to_json(self) -> dict[str, int]:
        """Return the sizes as JSON types."""
        return asdict(self)


@dataclass(frozen=True)
class TensorSpec:
    """One graph input or output: name, ONNX element type name and shape; a string is a dynamic axis."""

    name: str
    dtype: str
    shape: tuple[int | str, ...]

    def to_json(self) -> dict[str, Any]:
        """Return the tensor as JSON types."""
        return {"name": self.name, "dtype": self.dtype, "shape": list(self.shape)}

    @property
    def dynamic_axes(self) -> dict[int, str]:
        """Axis index -> name, for the axes that must stay dynamic."""
        return {axis: size for axis, size in enumerate(self.shape) if isinstance(size, str)}


@dataclass(frozen=True)
class GraphSpec:
    """The contract of one graph file."""

    role: str
    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]


def _ids(name: str, length: str) -> TensorSpec:
    return TensorSpec(name, "int64", ("batch", length))


def _hidden(dims: ModelDims, name: str) -> TensorSpec:
    return TensorSpec(name, "float32", ("batch", "source", dims.d_model))


def _cache(dims: ModelDims, name: str, length: str) -> TensorSpec:
    return TensorSpec(name, "float32", ("batch", dims.decoder_heads, length, dims.head_dim))


def _caches(dims: ModelDims, name_of, attention: str, length: str) -> tuple[TensorSpec, ...]:
    return tuple(
        _cache(dims, name_of(i, attention, part), length)
        for i in range(dims.decoder_layers)
        for part in ("key", "value")
    )


def _logits(dims: ModelDims) -> TensorSpec:
    return TensorSpec(LOGITS, "float32", ("batch", "target", dims.vocab_size))


def _encoder(dims: ModelDims, *, emits_cross: bool) -> GraphSpec:
    cross = _caches(dims, present_name, CROSS, "source") if emits_cross else ()
    return GraphSpec(
        ENCODER,
        (_ids(INPUT_IDS, "source"), _ids(ATTENTION_MASK, "source")),
        (_hidden(dims, ENCODER_OUTPUT), *cross),
    )


def _cached_decoder(dims: ModelDims, role: str) -> GraphSpec:
    """The decoder that is given cross K/V and a self past of any length, 0 included."""
    return GraphSpec(
        role,
        (
            _ids(INPUT_IDS, "target"),
            _ids(ENCODER_MASK, "source"),
            *_caches(dims, past_name, SELF, "past"),
            *_caches(dims, past_name, CROSS, "source"),
        ),
        (_logits(dims), *_caches(dims, present_name, SELF, "total")),
    )


def _init_decoder(dims: ModelDims) -> GraphSpec:
    return GraphSpec(
        DECODER_INIT,
        (_ids(INPUT_IDS, "target"), _hidden(dims, ENCODER_HIDDEN), _ids(ENCODER_MASK, "source")),
        (
            _logits(dims),
            *_caches(dims, present_name, SELF, "target"),
            *_caches(dims, present_name, CROSS, "source"),
        ),
    )


def _recomputing_decoder(dims: ModelDims) -> GraphSpec:
    return GraphSpec(
        DECODER,
        (
            _ids(INPUT_IDS, "target"),
            _hidden(dims, ENCODER_HIDDEN),
            _ids(ENCODER_MASK, "source"),
            *_caches(dims, past_name, SELF, "past"),
        ),
        (_logits(dims), *_caches(dims, present_name, SELF, "total")),
    )


@dataclass(frozen=True)
class Layout:
    """One way to cut a model into graph files.

    Attributes:
        roles: graph roles; the file of a role is ``<role>.onnx``.
        copies: parameter kind -> how many of the layout's files may hold it. One file never holds a weight twice;
            what is not named here may be in one file only.
    """

    name: str
    roles: tuple[str, ...]
    copies: dict[str, int]

    def graphs(self, dims: ModelDims) -> dict[str, GraphSpec]:
        """Role -> contract of its graph for a model of these sizes."""
        builders = {
            "compact": lambda: (_encoder(dims, emits_cross=True), _cached_decoder(dims, DECODER)),
            "pair": lambda: (
                _encoder(dims, emits_cross=False),
                _init_decoder(dims),
                _cached_decoder(dims, DECODER_STEP),
            ),
            "single": lambda: (_encoder(dims, emits_cross=False), _recomputing_decoder(dims)),
        }
        return {graph.role: graph for graph in builders[self.name]()}


# The allowance: the tied embedding and the sinusoidal table are needed by encoder and decoders alike, and `pair` ships
# the whole decoder twice. "embedding" is the (tied) token matrix, "positions" the position table, "decoder" the rest
# of the decoder's weights.
LAYOUTS = {
    "compact": Layout("compact", (ENCODER, DECODER), {"embedding": 2, "positions": 2}),
    "pair": Layout("pair", (ENCODER, DECODER_INIT, DECODER_STEP), {"embedding": 3, "positions": 3, "decoder": 2}),
    "single": Layout("single", (ENCODER, DECODER), {"embedding": 2, "positions": 2}),
}


def file_of(role: str) -> str:
    """File name of a role in a set that this project wrote."""
    return f"{role}.onnx"
