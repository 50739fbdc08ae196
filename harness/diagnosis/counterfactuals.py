"""Which mistake would make PyTorch agree with the artifact?

Each experiment makes one known mistake on the PyTorch side. Where the artifact equals that wrong reference in every
tensor, and not the right one, the mistake is the cause: no guess is needed.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import torch

from harness.checks.cache import swapped_tensors
from harness.checks.numeric import difference
from harness.contract.limits import FAIL_ABOVE
from harness.contract.seq2seq import DecoderState, EncoderOutput, Seq2Seq
from harness.reference.torch_model import TorchModel

# Steps that an experiment runs: position and cache faults show from the second on.
STEPS = 3


@dataclass(frozen=True)
class Diagnosis:
    """Cause and remedy, in the words of the finding; both empty when no experiment fits."""

    cause: str = ""
    action: str = ""


class _EncoderMaskIgnored(TorchModel):
    def encode(self, input_ids: np.ndarray, attention_mask: np.ndarray) -> EncoderOutput:
        encoder = super().encode(input_ids, np.ones_like(attention_mask))
        return dataclasses.replace(encoder, mask=attention_mask)


class _CrossMaskIgnored(TorchModel):
    def step(self, state: DecoderState, decoder_input_ids: np.ndarray) -> tuple[np.ndarray, DecoderState]:
        open_mask = dataclasses.replace(state.encoder, mask=np.ones_like(state.encoder.mask))
        logits, after = super().step(dataclasses.replace(state, encoder=open_mask), decoder_input_ids)
        return logits, dataclasses.replace(after, encoder=dataclasses.replace(after.encoder, mask=state.encoder.mask))


class _BothMasksIgnored(_EncoderMaskIgnored, _CrossMaskIgnored):
    pass


@contextlib.contextmanager
def _attribute(owner: object, name: str, value: object) -> Iterator[None]:
    own = getattr(owner, name)
    setattr(owner, name, value)
    try:
        yield
    finally:
        setattr(owner, name, own)


@contextlib.contextmanager
def _embedding_scaled(model: torch.nn.Module, sides: tuple[str, ...], power: float) -> Iterator[None]:
    """``power`` 0 leaves the scale out, 2 applies it twice."""
    scale = model.config.d_model**0.5 if model.config.scale_embedding else 1.0
    parts = {"encoder": model.get_encoder(), "decoder": model.get_decoder()}
    with contextlib.ExitStack() as stack:
        for side in sides:
            stack.enter_context(_attribute(parts[side], "embed_scale", scale**power))
        yield


@contextlib.contextmanager
def _bias_dropped(model: torch.nn.Module) -> Iterator[None]:
    own = model.final_logits_bias.clone()
    model.final_logits_bias.zero_()
    try:
        yield
    finally:
        model.final_logits_bias.copy_(own)


@contextlib.contextmanager
def _positions_from(model: torch.nn.Module, offset: int) -> Iterator[None]:
    """Every decoder call gets the positions that follow ``offset``, whatever its past."""
    table = model.get_decoder().embed_positions

    def frozen(shape, *_args, **_kwargs):
        return table.weight[offset : offset + shape[1]]

    with _attribute(table, "forward", frozen):
        yield


@dataclass(frozen=True)
class _Experiment:
    """A mistake: how to make it, and what to say when it fits."""

    cause: str
    action: str
    reference: type[TorchModel] = TorchModel
    mistake: Callable[[torch.nn.Module], contextlib.AbstractContextManager] = lambda model: contextlib.nullcontext()


_DIFFERS = "Compare it with the graph of a sound export; suites/export names the node."


def _experiments(traced_past: int) -> Iterator[_Experiment]:
    yield _Experiment(
        "the encoder ignores attention_mask: padding takes part in self-attention", _DIFFERS, _EncoderMaskIgnored
    )
    yield _Experiment(
        "the decoder ignores encoder_attention_mask: padding takes part in cross-attention", _DIFFERS, _CrossMaskIgnored
    )
    yield _Experiment("encoder and decoder ignore the padding mask", _DIFFERS, _BothMasksIgnored)
    yield _Experiment(
        "final_logits_bias is missing",
        "Add the model's final_logits_bias to the logits inside the graph.",
        mistake=_bias_dropped,
    )
    for sides in (("encoder",), ("decoder",), ("encoder", "decoder")):
        for power, what in ((0.0, "missing"), (2.0, "applied twice")):
            yield _Experiment(
                f"the embedding scale sqrt(d_model) is {what} in the {' and '.join(sides)}",
                "Scale embeddings once, inside the graph.",
                mistake=lambda model, sides=sides, power=power: _embedding_scaled(model, sides, power),
            )
    for offset in sorted({0, 1, 2, traced_past}):
        yield _Experiment(
            f"positions are frozen: every step is embedded from position {offset}, whatever the past",
            "Derive the position from the past's length at run time; trace with a past of 2 or more.",
            mistake=lambda model, offset=offset: _positions_from(model, offset),
        )


def diagnose(
    reference: TorchModel,
    candidate: Seq2Seq,
    input_ids: np.ndarray,
    attention_mask: np.ndarray,
    target_ids: np.ndarray,
    traced_past: int = 0,
) -> Diagnosis:
    """Look for the one mistake that explains what the candidate does.

    Args:
        reference: the sound PyTorch side.
        candidate: the artifact.
        input_ids, attention_mask: int64 ``[batch, source]``; with padding, or mask faults cannot show.
        target_ids: int64 ``[batch, target]``, start token first.
        traced_past: past length of the export's tracing inputs: a frozen position holds it.
    """
    steps = target_ids[:, :STEPS]
    observed = _observe(candidate, input_ids, attention_mask, steps)
    sound = _observe(reference, input_ids, attention_mask, steps)
    if swapped := _first_swap(sound, observed):
        place, pairs = swapped
        text = ", ".join(f"{name} holds {other}" for name, other in pairs[:4])
        return Diagnosis(
            f"cache tensors are swapped: {text} ({place})", "Reconnect the graph's present outputs, key before value."
        )
    for experiment in _experiments(traced_past):
        with torch.no_grad(), experiment.mistake(reference.model):
            wrong = _observe(experiment.reference(reference.model), input_ids, attention_mask, steps)
        # A mistake that changes nothing on this model (no bias, nothing padded) explains nothing.
        if _equal(wrong, observed) and not _equal(wrong, sound):
            return Diagnosis(experiment.cause, experiment.action)
    at_once = [_at_once(model, input_ids, attention_mask, steps) for model in (reference, candidate)]
    if _equal(sound, observed) and not _equal(*at_once):
        return Diagnosis(
            "token by token the set agrees with PyTorch, given several tokens at once it does not: "
            "the causal mask is missing or baked",
            "Trace the decoder with 2 or more target tokens; suites/export names the attention without its mask.",
        )
    return _by_place(sound, observed)


def _at_once(model: Seq2Seq, input_ids, attention_mask, target_ids) -> list[tuple[str, dict[str, np.ndarray]]]:
    """What a model emits for all target tokens in one call."""
    logits, _ = model.step(model.start(model.encode(input_ids, attention_mask)), target_ids)
    return [("all tokens at once", {"logits": logits})]


def _observe(model: Seq2Seq, input_ids, attention_mask, target_ids) -> list[tuple[str, dict[str, np.ndarray]]]:
    """What a model emits place by place; padded source positions are set to zero, since they mean nothing."""
    encoder = model.encode(input_ids, attention_mask)
    real = attention_mask.astype(bool)
    places = [("encoder", {"last_hidden_state": np.where(real[..., None], encoder.hidden, 0.0)})]
    state = model.start(encoder)
    for step in range(target_ids.shape[1]):
        logits, state = model.step(state, target_ids[:, step : step + 1])
        cross = {name: np.where(real[:, None, :, None], array, 0.0) for name, array in state.encoder.cross.items()}
        places.append((f"step {step}", {**cross, **state.past, "logits": logits}))
    return places


def _equal(left, right) -> bool:
    return all(
        difference(place, name, array, other[name]).scaled <= FAIL_ABOVE
        for (place, tensors), (_, other) in zip(left, right)
        for name, array in tensors.items()
        if name in other
    )


def _first_swap(sound, observed) -> tuple[str, list[tuple[str, str]]] | None:
    for (place, tensors), (_, other) in zip(sound, observed):
        caches = {name: array for name, array in tensors.items() if name.startswith("present.")}
        if pairs := swapped_tensors(caches, {name: other[name] for name in caches if name in other}):
            return place, pairs
    return None


def _by_place(sound, observed) -> Diagnosis:
    """No experiment fits: say at least which part of the model differs first."""
    for (place, tensors), (_, other) in zip(sound, observed):
        for name, array in tensors.items():
            if name in other and difference(place, name, array, other[name]).scaled > FAIL_ABOVE:
                return Diagnosis(
                    f"{name} at {place} is the first tensor that differs; everything before it agrees",
                    "Look at what computes it: none of the known mistakes explains the difference alone.",
                )
    return Diagnosis("the difference does not show in the first steps of this batch", "See the place above.")
