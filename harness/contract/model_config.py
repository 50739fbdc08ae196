"""What ``config.json`` and ``generation_config.json`` of a Hugging Face model say, read without transformers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from harness.contract.errors import InputError
from harness.contract.generation import GenerationSettings
from harness.contract.layouts import ModelDims
from harness.contract.manifest import read_object

# Options that change what is emitted and that this harness does not reproduce, with the values that switch them off.
UNSUPPORTED = {
    "do_sample": (False,),
    "min_length": (0,),
    "min_new_tokens": (),
    "no_repeat_ngram_size": (0,),
    "encoder_no_repeat_ngram_size": (0,),
    "repetition_penalty": (1.0,),
    "encoder_repetition_penalty": (1.0,),
    "diversity_penalty": (0.0,),
    "num_beam_groups": (1,),
    "exponential_decay_length_penalty": (),
    "suppress_tokens": (),
    "begin_suppress_tokens": (),
    "sequence_bias": (),
    "guidance_scale": (1.0,),
    "penalty_alpha": (0.0,),
}
# transformers' default where neither file gives a length.
DEFAULT_MAX_LENGTH = 20


def dims_of(config: dict[str, Any], *, where: object) -> ModelDims:
    """Sizes of a BART-like encoder-decoder.

    Raises:
        InputError: a size is missing.
    """
    try:
        return ModelDims(
            d_model=config["d_model"],
            encoder_layers=config["encoder_layers"],
            decoder_layers=config["decoder_layers"],
            encoder_heads=config["encoder_attention_heads"],
            decoder_heads=config["decoder_attention_heads"],
            encoder_ffn=config["encoder_ffn_dim"],
            decoder_ffn=config["decoder_ffn_dim"],
            vocab_size=config.get("decoder_vocab_size") or config["vocab_size"],
            source_vocab_size=config["vocab_size"],
            max_source_positions=config["max_position_embeddings"],
            max_target_positions=config["max_position_embeddings"],
        )
    except KeyError as error:
        raise InputError(
            what=f"no {error.args[0]}", where=where, action="Give the config.json that transformers wrote."
        ) from None


def settings_of(folder: Path, config: dict[str, Any]) -> GenerationSettings:
    """Generation settings of a model folder; ``config.json`` speaks where ``generation_config.json`` is silent.

    Raises:
        InputError: the model asks for something the harness does not reproduce, or an id is missing.
    """
    path = folder / "generation_config.json"
    generation = read_object(path, action="Write it again.") if path.is_file() else {}
    merged = {**config, **{key: value for key, value in generation.items() if value is not None}}
    _refuse_unsupported(merged, path)
    banned = merged.get("bad_words_ids") or []
    if any(len(word) != 1 for word in banned):
        raise InputError(
            what="bad_words_ids bans a sequence of several tokens, which this harness does not reproduce",
            where=path,
            action="Ban single tokens only.",
        )
    return GenerationSettings(
        decoder_start_token_id=_one_id(merged, "decoder_start_token_id", path),
        eos_token_id=_one_id(merged, "eos_token_id", path),
        pad_token_id=_one_id(merged, "pad_token_id", path),
        max_length=_max_length(merged),
        num_beams=merged.get("num_beams") or 1,
        length_penalty=float(merged.get("length_penalty", 1.0)),
        early_stopping=merged.get("early_stopping") or False,
        renormalize_logits=bool(merged.get("renormalize_logits")),
        forced_bos_token_id=merged.get("forced_bos_token_id"),
        forced_eos_token_id=merged.get("forced_eos_token_id"),
        banned_token_ids=tuple(sorted(word[0] for word in banned)),
    )


def _refuse_unsupported(merged: dict[str, Any], path: Path) -> None:
    for name, off in UNSUPPORTED.items():
        value = merged.get(name)
        if value not in (None, [], *off):
            raise InputError(
                what=f"{name} is {value!r}, which this harness does not reproduce",
                where=path,
                action=f"Remove {name} to test the model without it.",
            )


def _one_id(merged: dict[str, Any], key: str, path: Path) -> int:
    if not isinstance(merged.get(key), int):
        raise InputError(
            what=f"{key} is {merged.get(key)!r}, one token id is needed",
            where=path,
            action=f"Set {key} to one token id.",
        )
    return merged[key]


def _max_length(merged: dict[str, Any]) -> int:
    """The model's own limit, never beyond its position table."""
    if merged.get("max_new_tokens"):
        wanted = merged["max_new_tokens"] + 1
    else:
        wanted = merged.get("max_length") or DEFAULT_MAX_LENGTH
    return min(wanted, merged.get("max_position_embeddings", wanted))
