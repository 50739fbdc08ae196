"""``Seq2Seq`` on PyTorch: the library's own modules, fed step by step through its own cache."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import numpy as np
import torch

from harness import compat
from harness.contract.generation import Decoded, GenerationSettings, stop_reason
from harness.contract.layouts import CROSS, SELF, present_names
from harness.contract.seq2seq import DecoderState, EncoderOutput
from harness.reference.family import cross_kv


class TorchModel:
    """A loaded PyTorch model seen through the contract.

    Args:
        model: a model from ``harness.reference.loading.load_model``; float32, or float64 to measure rounding noise.
    """

    def __init__(self, model: torch.nn.Module) -> None:
        self.model = model
        self._decoder = model.get_decoder()
        self._cache_argument = compat.cache_argument(self._decoder)
        layers = len(self._decoder.layers)
        self._self_names = present_names(layers, SELF)
        self._cross_names = present_names(layers, CROSS)
        self.dtype = next(model.parameters()).dtype

    def encode(self, input_ids: np.ndarray, attention_mask: np.ndarray) -> EncoderOutput:
        """See ``Seq2Seq.encode``; cross K/V included."""
        with _computing(self.dtype):
            hidden = self.model.get_encoder()(
                input_ids=torch.from_numpy(input_ids),
                attention_mask=torch.from_numpy(attention_mask),
                return_dict=True,
            ).last_hidden_state
            cross = cross_kv(self._decoder, hidden)
        return EncoderOutput(attention_mask, hidden.numpy(), _named(self._cross_names, cross))

    def start(self, encoder: EncoderOutput) -> DecoderState:
        """See ``Seq2Seq.start``."""
        attention = self._decoder.layers[0].self_attn
        shape = (encoder.mask.shape[0], attention.num_heads, 0, attention.head_dim)
        empty = np.zeros(shape, encoder.hidden.dtype)
        return DecoderState(encoder, dict.fromkeys(self._self_names, empty), 0)

    def step(self, state: DecoderState, decoder_input_ids: np.ndarray) -> tuple[np.ndarray, DecoderState]:
        """See ``Seq2Seq.step``. With an empty cache the library computes cross K/V itself, and those are returned."""
        encoder = state.encoder
        cache = None
        if state.length:
            cache = compat.pack_cache(
                [torch.from_numpy(state.past[name]) for name in self._self_names],
                [torch.from_numpy(encoder.cross[name]) for name in self._cross_names],
            )
        with _computing(self.dtype):
            output = self._decoder(
                input_ids=torch.from_numpy(decoder_input_ids),
                encoder_hidden_states=torch.from_numpy(encoder.hidden),
                encoder_attention_mask=torch.from_numpy(encoder.mask),
                use_cache=True,
                return_dict=True,
                **{self._cache_argument: cache},
            )
            logits = self.model.lm_head(output.last_hidden_state) + self.model.final_logits_bias
        self_kv, cross = compat.unpack_cache(compat.cache_of(output))
        encoder = EncoderOutput(encoder.mask, encoder.hidden, _named(self._cross_names, cross))
        length = state.length + decoder_input_ids.shape[1]
        return logits.numpy(), DecoderState(encoder, _named(self._self_names, self_kv), length)

    def generate(
        self, input_ids: np.ndarray, attention_mask: np.ndarray, settings: GenerationSettings
    ) -> list[Decoded]:
        """The library's own ``generate()`` under these settings.

        Scores are ``sequences_scores`` for beams; for greedy, the sum of log-softmax of the processed scores at the
        chosen tokens (``output_scores``).
        """
        with torch.no_grad(), _generation_config(self.model, settings):
            output = self.model.generate(
                input_ids=torch.from_numpy(input_ids),
                attention_mask=torch.from_numpy(attention_mask),
                return_dict_in_generate=True,
                output_scores=True,
            )
        sequences = output.sequences.numpy()
        if settings.num_beams > 1:
            scores = output.sequences_scores.tolist()
        else:
            scores = _greedy_scores(output.scores, sequences, settings)
        return [_decoded(row, score, settings) for row, score in zip(sequences, scores)]


@contextlib.contextmanager
def _computing(dtype: torch.dtype) -> Iterator[None]:
    """No gradients, and the model's precision as torch's default: transformers 4.36 makes its causal mask in that."""
    default = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        with torch.no_grad():
            yield
    finally:
        torch.set_default_dtype(default)


def _named(names: list[str], tensors: list[torch.Tensor]) -> dict[str, np.ndarray]:
    return {name: tensor.detach().numpy() for name, tensor in zip(names, tensors)}


@contextlib.contextmanager
def _generation_config(model: torch.nn.Module, settings: GenerationSettings) -> Iterator[None]:
    """Give the model exactly these settings for one call, whatever its own configuration says."""
    from transformers import GenerationConfig

    own = model.generation_config
    model.generation_config = GenerationConfig(
        decoder_start_token_id=settings.decoder_start_token_id,
        bos_token_id=own.bos_token_id,
        eos_token_id=settings.eos_token_id,
        pad_token_id=settings.pad_token_id,
        max_length=settings.max_length,
        num_beams=settings.num_beams,
        length_penalty=settings.length_penalty,
        early_stopping=settings.early_stopping,
        renormalize_logits=settings.renormalize_logits,
        forced_bos_token_id=settings.forced_bos_token_id,
        forced_eos_token_id=settings.forced_eos_token_id,
        bad_words_ids=[[token] for token in settings.banned_token_ids] or None,
        do_sample=False,
    )
    try:
        yield
    finally:
        model.generation_config = own


def _greedy_scores(
    scores: tuple[torch.Tensor, ...], sequences: np.ndarray, settings: GenerationSettings
) -> list[float]:
    totals = []
    for row, ids in enumerate(sequences):
        total = 0.0
        for step, token in enumerate(ids[1:]):
            total += float(torch.log_softmax(scores[step][row].double(), dim=-1)[int(token)])
            if token == settings.eos_token_id:
                break
        totals.append(total)
    return totals


def _decoded(sequence: np.ndarray, score: float, settings: GenerationSettings) -> Decoded:
    """Cut padding off a sequence and name why it ended."""
    ids = [int(token) for token in sequence]
    ends = [i for i, token in enumerate(ids) if i > 0 and token == settings.eos_token_id]
    ids = ids[: ends[0] + 1] if ends else ids
    return Decoded(tuple(ids), score, stop_reason(ids, settings))
