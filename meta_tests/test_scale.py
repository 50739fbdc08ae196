"""Recipes of models at real size: deterministic, whole, and small on disk where they are zero."""

from __future__ import annotations

import pytest

from harness.contract.errors import InputError
from harness.reference.scale import _draw, read_scale, scale_names


@pytest.mark.parametrize("name", scale_names())
def test_a_recipe_names_all_that_is_needed(name):
    recipe = read_scale(name)
    assert {"tokenizer", "seed", "scales", "zero", "end_bias", "config", "generation"} == set(recipe)


def test_an_extending_recipe_changes_only_what_it_names():
    base, endless = read_scale("opus-mt-en-zh"), read_scale("opus-mt-en-zh-endless")
    assert endless["config"] == base["config"]
    assert endless["generation"] == {**base["generation"], "forced_eos_token_id": None}


def test_weights_are_drawn_the_same_everywhere():
    recipe = read_scale("opus-mt-en-zh")
    drawn = _draw(recipe, "model.encoder.layers.0.fc1.bias", (2048,))
    assert drawn.dtype == "float32"
    assert (drawn == _draw(recipe, "model.encoder.layers.0.fc1.bias", (2048,))).all()
    assert abs(drawn.std() / recipe["scales"]["bias"] - 1) < 0.05


def test_the_end_token_is_banned_by_its_bias_in_the_endless_recipe():
    assert _draw(read_scale("opus-mt-en-zh-endless"), "final_logits_bias", (1, 65001))[0, 0] == -10000


def test_an_unknown_scale_is_refused():
    with pytest.raises(InputError, match="unknown scale"):
        read_scale("no-such")
