"""The embedded model behaves like opus-mt-en-zh where the contract is concerned, and fits a repository."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import sentencepiece
from safetensors.numpy import load_file

MODEL = Path(__file__).resolve().parents[1] / "fixtures" / "models" / "tiny-marian-en-zh"
CONFIG = json.loads((MODEL / "config.json").read_text(encoding="utf-8"))
GENERATION = json.loads((MODEL / "generation_config.json").read_text(encoding="utf-8"))
VOCABULARY = json.loads((MODEL / "vocab.json").read_text(encoding="utf-8"))
PAD = len(VOCABULARY) - 1


@pytest.fixture(scope="module")
def weights() -> dict[str, np.ndarray]:
    return load_file(MODEL / "model.safetensors")


def test_it_fits_a_repository():
    assert sum(path.stat().st_size for path in MODEL.iterdir()) <= 32_000_000


def test_ids_are_where_opus_mt_has_them():
    assert (VOCABULARY["</s>"], VOCABULARY["<unk>"], VOCABULARY["<pad>"]) == (0, 1, PAD)
    assert sorted(VOCABULARY.values()) == list(range(PAD + 1))


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("vocab_size", PAD + 1),
        ("pad_token_id", PAD),
        ("decoder_start_token_id", PAD),
        ("eos_token_id", 0),
        ("forced_eos_token_id", 0),
        ("scale_embedding", True),
        ("tie_word_embeddings", True),
        ("static_position_embeddings", True),
        ("max_position_embeddings", 512),
    ],
)
def test_its_config_says(key, value):
    assert CONFIG[key] == value


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("bad_words_ids", [[PAD]]),
        ("decoder_start_token_id", PAD),
        ("forced_eos_token_id", 0),
        ("max_length", 512),
        ("renormalize_logits", True),
    ],
)
def test_its_generation_config_says(key, value):
    assert GENERATION[key] == value


def test_it_searches_with_beams():
    assert GENERATION["num_beams"] > 1


def test_the_row_of_pad_is_zero_and_no_other(weights):
    norms = np.linalg.norm(weights["model.shared.weight"], axis=1)
    assert norms[PAD] == 0
    assert (norms[:PAD] > 0).all()


def test_its_logits_bias_is_trained(weights):
    bias = weights["final_logits_bias"]
    assert bias.shape == (1, PAD + 1)
    assert np.abs(bias).max() > 0.1
    assert bias[0, PAD] == 0


def test_every_weight_is_finite_float32(weights):
    assert all(value.dtype == np.float32 and np.isfinite(value).all() for value in weights.values())


def test_the_source_folds_full_width_marks_and_the_target_keeps_them():
    source, target = (
        sentencepiece.SentencePieceProcessor(model_file=str(MODEL / f"{side}.spm")) for side in ("source", "target")
    )
    assert "," in source.encode("你好，", out_type=str)[-1]
    assert target.encode("你好，", out_type=str)[-1] == "，"


def test_both_sides_share_their_pieces():
    source, target = (
        sentencepiece.SentencePieceProcessor(model_file=str(MODEL / f"{side}.spm")) for side in ("source", "target")
    )
    pieces = [[side.id_to_piece(index) for index in range(side.get_piece_size())] for side in (source, target)]
    assert pieces[0] == pieces[1]
    assert set(pieces[0]) - set(VOCABULARY) == {"<s>"}
