"""Does the set decode what ``generate()`` decodes, token for token, score for score?"""

from __future__ import annotations

import pytest

from harness.checks.decode import (
    Row,
    cut_finding,
    first_token_finding,
    never_generated_finding,
    refused_finding,
    spread_finding,
    unlike_settings,
    variety_finding,
)
from harness.contract.errors import InputError
from harness.plugin import not_applicable
from suites.decoding.conftest import BATCH_SIZE

GREEDY = {"num_beams": 1}
OWN = {}

# The whole sentence file is decoded under these.
MAIN = {"greedy": GREEDY, "the-models-own-settings": OWN}

# A few sentences under these, each a rule of its own; short enough for a model that never ends.
FEW, SHORT = 8, 48
RULES = {
    "2-beams": {"num_beams": 2},
    "5-beams-stopping-early": {"num_beams": 5, "early_stopping": True},
    "3-beams-preferring-short": {"num_beams": 3, "length_penalty": 0.3},
    "3-beams-preferring-long-never-stopping-early": {
        "num_beams": 3,
        "length_penalty": 2.0,
        "early_stopping": "never",
    },
    "8-beams": {"num_beams": 8},
    # Where pad is removed, before or after the softmax, shows in these scores only (fault D02).
    "4-beams-not-renormalised": {"num_beams": 4, "renormalize_logits": False},
    "4-beams-from-a-forced-first-token": {"num_beams": 4, "forced_bos_token_id": 10},
}

# Limits that end the output before the model does.
LIMITS = {"2-tokens": 2, "3-tokens": 3, "6-tokens": 6}

# Sentences decoded to the last position.
AT_THE_CAP = 3


@pytest.mark.parametrize("settings_name", list(MAIN))
def test_ids_scores_and_stop_reasons_equal_generate(subject, settings_name, candidate, reference, desk, sources, judge):
    settings = reference.settings.replace(**MAIN[settings_name])
    judge(*desk.compare(candidate, sources, settings, f"token ids equal generate(), {settings_name}"))


@pytest.mark.parametrize("rule", list(RULES))
def test_every_rule_of_beam_search_equals_generate(subject, rule, candidate, reference, desk, sources, judge):
    limit = min(SHORT, reference.settings.max_length)
    settings = reference.settings.replace(max_length=limit, **RULES[rule])
    judge(*desk.compare(candidate, sources[-FEW:], settings, f"token ids equal generate(), {rule}"))


@pytest.mark.parametrize("beams", [1, 4])
@pytest.mark.parametrize("limit", list(LIMITS))
def test_a_short_limit_ends_the_output_as_generate_does(
    subject, limit, beams, candidate, reference, desk, sources, judge
):
    settings = reference.settings.replace(num_beams=beams, max_length=LIMITS[limit])
    judge(*desk.compare(candidate, sources[:FEW], settings, f"token ids at the limit equal generate(), {limit}"))


@pytest.mark.parametrize("settings_name", list(MAIN))
def test_a_sentence_decodes_alone_as_in_a_batch(
    subject, settings_name, candidate, exact, reference, desk, sources, judge
):
    """Rows of a batch end at different steps; none may notice (fault D07)."""
    settings = reference.settings.replace(**MAIN[settings_name])
    check = f"a sentence decodes alone as in a batch, {settings_name}"
    chosen = sources if settings.num_beams == 1 else sources[-FEW:]
    try:
        together = desk.by(candidate, chosen, settings)
        alone = [desk.by(candidate, [source], settings)[0] for source in chosen]
    except InputError as error:
        judge(refused_finding(check, error))
        return
    rows = [Row(source.id, one, among) for source, one, among in zip(chosen, alone, together)]
    judge(
        desk.ids(check, rows, chosen, candidate, settings, names=("alone", "in a batch"), exact=exact),
        spread_finding([together[start : start + BATCH_SIZE] for start in range(0, len(together), BATCH_SIZE)]),
    )


@pytest.mark.parametrize("beams", [1, 2])
def test_generation_to_the_last_position_equals_generate(
    subject, beams, candidate, reference, desk, sources, checkpoint, judge
):
    """Nothing ends these outputs: the end token is banned, and the unknown token stands in for it (fault D08)."""
    own, positions = reference.settings, checkpoint.dims.max_target_positions
    settings = own.replace(
        num_beams=beams,
        max_length=positions,
        eos_token_id=desk.tokenizer.unk_id,
        forced_eos_token_id=None,
        banned_token_ids=tuple(sorted({*own.banned_token_ids, own.eos_token_id})),
    )
    check = f"token ids up to position {positions} equal generate(), {beams} beams"
    judge(*desk.compare(candidate, sources[:AT_THE_CAP], settings, check))


def test_outputs_end_by_themselves_and_hold_no_padding(subject, candidate, reference, desk, sources, judge):
    """Under the set's own settings, as whoever embeds it will decode."""
    own = candidate.artifacts.generation.replace(
        search_rules=reference.settings.search_rules,
        pad_removed_before_softmax=reference.settings.pad_removed_before_softmax,
    )
    try:
        found = desk.by(candidate, sources, own)
    except InputError as error:
        judge(refused_finding("outputs end by themselves", error))
        return
    expected = desk.by_pytorch(sources, reference.settings)
    rows = [Row(source.id, ours, theirs) for source, ours, theirs in zip(sources, expected, found)]
    pad = own.pad_token_id
    # Where an output ends follows from the settings: unlike ones are what is wrong then, and test_settings.py says so.
    ends = [] if unlike_settings(reference.settings, own) else [cut_finding(rows, own)]
    judge(
        never_generated_finding(
            {source.id: decoded for source, decoded in zip(sources, found)},
            own,
            expected=len(sources),
            also_by_reference=[row.id for row in rows if pad in row.reference.generated],
        ),
        *ends,
        variety_finding(found),
    )


def test_the_first_token_is_the_forced_one(subject, candidate, reference, desk, sources, judge):
    own = candidate.artifacts.generation
    if own.forced_bos_token_id is None:
        not_applicable("the model forces no first token")
    try:
        found = desk.by(candidate, sources[:FEW], own)
    except InputError as error:
        judge(refused_finding("the first token is the forced one", error))
        return
    outputs = {source.id: decoded for source, decoded in zip(sources, found)}
    judge(first_token_finding(outputs, own, desk.piece, desk.tokenizer.unk_id))
