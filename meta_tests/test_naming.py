"""Unit tests of ``harness/runtime/naming.py``: the tensor names of other exporters."""

from __future__ import annotations

import pytest

from harness.contract.layouts import (
    CROSS,
    DECODER,
    DECODER_INIT,
    DECODER_STEP,
    ENCODER,
    SELF,
    past_of_present,
    present_names,
)
from harness.runtime.naming import BRANCH_FLAG, canonical_name, is_cache

LAYERS = 2


def alternating(names_of) -> list[str]:
    """Self and cross names of each layer in turn: key, value, cross key, cross value."""
    own, crossed = names_of(SELF), names_of(CROSS)
    return [name for i in range(0, len(own), 2) for name in (*own[i : i + 2], *crossed[i : i + 2])]


PRESENT_SELF = present_names(LAYERS, SELF)
PRESENT_BOTH = alternating(lambda attention: present_names(LAYERS, attention))
PAST_SELF = [past_of_present(name) for name in PRESENT_SELF]
PAST_BOTH = [past_of_present(name) for name in PRESENT_BOTH]


def split(direction: str, pairs: int, plural: str = "") -> list[str]:
    return [f"{direction}_{part}{plural}_{i}" for i in range(pairs) for part in ("key", "value")]


def flat(direction: str, tensors: int) -> list[str]:
    return [f"{direction}_{i}" for i in range(tensors)]


# names in a graph, whether they are outputs -> the contract's
HABITS = {
    "past_key_0 without cross": (split("past", LAYERS), False, PAST_SELF),
    "past_key_0 with cross": (split("past", 2 * LAYERS), False, PAST_BOTH),
    "past_keys_0 with cross": (split("past", 2 * LAYERS, plural="s"), False, PAST_BOTH),
    "present_key_0 without cross": (split("present", LAYERS), True, PRESENT_SELF),
    "present_key_0 with cross": (split("present", 2 * LAYERS), True, PRESENT_BOTH),
    "past_0 without cross": (flat("past", 2 * LAYERS), False, PAST_SELF),
    "past_0 with cross": (flat("past", 4 * LAYERS), False, PAST_BOTH),
    "past_key_values_0 with cross": (flat("past_key_values", 4 * LAYERS), False, PAST_BOTH),
    "present_0 without cross": (flat("present", 2 * LAYERS), True, PRESENT_SELF),
    "present_0 with cross": (flat("present", 4 * LAYERS), True, PRESENT_BOTH),
    "the contract's own, in": (PAST_BOTH, False, PAST_BOTH),
    "the contract's own, out": (PRESENT_BOTH, True, PRESENT_BOTH),
}


@pytest.mark.parametrize("habit", HABITS)
def test_cache_names_of_other_exporters_are_understood(habit):
    names, output, expected = HABITS[habit]
    found = [canonical_name(name, role=DECODER_STEP, output=output, layers=LAYERS, caches=len(names)) for name in names]
    assert found == expected
    assert all(is_cache(name) for name in names)


# role, whether an output, name in the graph -> the contract's
OTHERS = {
    "ids of the encoder": (ENCODER, False, "input_ids", "input_ids"),
    "ids of the decoder": (DECODER_INIT, False, "decoder_input_ids", "input_ids"),
    "mask of the encoder": (ENCODER, False, "attention_mask", "attention_mask"),
    "mask of the decoder": (DECODER, False, "attention_mask", "encoder_attention_mask"),
    "mask of the decoder by its full name": (DECODER, False, "encoder_attention_mask", "encoder_attention_mask"),
    "hidden states out": (ENCODER, True, "encoder_outputs", "last_hidden_state"),
    "hidden states in": (DECODER, False, "hidden_states", "encoder_hidden_states"),
    "logits": (DECODER, True, "lm_logits", "logits"),
    "the branch flag": (DECODER, False, BRANCH_FLAG, BRANCH_FLAG),
}


@pytest.mark.parametrize("case", OTHERS)
def test_other_names_are_understood_by_role_and_direction(case):
    role, output, name, expected = OTHERS[case]
    assert canonical_name(name, role=role, output=output, layers=LAYERS, caches=0) == expected


# role, whether an output, name
UNKNOWN = {
    "a position input": (DECODER, False, "position_ids"),
    "logits of an encoder": (ENCODER, True, "logits"),
    "logits as an input": (DECODER, False, "logits"),
    "ids as an output": (DECODER, True, "input_ids"),
    "a cache without a number": (DECODER, False, "past_key"),
    "a cache with a tail": (DECODER, False, "past_key_0_quantized"),
    "another attention": (DECODER, False, "past_key_values.0.other.key"),
}


@pytest.mark.parametrize("case", UNKNOWN)
def test_a_name_that_nobody_uses_is_not_guessed(case):
    role, output, name = UNKNOWN[case]
    assert canonical_name(name, role=role, output=output, layers=LAYERS, caches=0) is None
    assert not is_cache(name)
