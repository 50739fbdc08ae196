"""Does onnxruntime load the set, at every optimisation level and from any folder, and get the same numbers?

The one place where a set that the runtime refuses fails; elsewhere the tests that would run it are blocked.
"""

from __future__ import annotations

import dataclasses
import shutil
from collections.abc import Callable

import pytest

from harness.checks.graph.running import refused
from harness.checks.numeric import Comparison
from harness.contract.errors import InputError
from harness.plugin import blocked
from harness.runtime.artifact_model import ArtifactModel
from harness.runtime.artifact_set import open_sets
from harness.runtime.session import OPTIMISATION_LEVELS, SessionProfile

UNOPTIMISED = "off"


@pytest.fixture(scope="session")
def at_level(artifacts, settings, observe) -> Callable:
    """Optimisation level -> what the subject's set gives there, or why the runtime refuses it."""
    seen: dict = {}

    def find(level: str):
        if level not in seen:
            try:
                seen[level] = observe(ArtifactModel(artifacts, SessionProfile(settings.providers, optimisation=level)))
            except InputError as error:
                seen[level] = error
        return seen[level]

    return find


@pytest.mark.parametrize("level", OPTIMISATION_LEVELS)
def test_every_optimisation_level_loads_and_gives_the_same(subject, level, at_level, exact, noise, judge):
    """Every level against no optimisation at all; that one against itself, which asks for finite values only."""
    check = f"optimisation level {level} loads and gives what level {UNOPTIMISED} gives"
    found = at_level(level)
    if isinstance(found, InputError):
        judge(refused(check, found))
        return
    plain = at_level(UNOPTIMISED)
    if isinstance(plain, InputError):
        blocked(f"level {UNOPTIMISED} is refused: {plain}")
    comparison = Comparison(check, noise=noise, exact=exact)
    for place in plain:
        comparison.add_all(place, plain[place], found[place])
    cause = "values are not finite" if level == UNOPTIMISED else f"optimisation level {level} changes values"
    judge(comparison.finding(cause=cause, action="Load with a lower graph_optimization_level, or another onnxruntime."))


def test_loads_from_a_folder_with_spaces_and_chinese_characters(
    subject, checkpoint, artifacts, settings, candidate, observe, noise, judge, tmp_path
):
    """Copied to ``模型 一``, the set must load and give what it gives from its own folder (fault F05)."""
    check = "the set loads from a folder with spaces and Chinese characters"
    folder = tmp_path / "模型 一"
    # Not linked: the onnx package refuses external data that has a second name.
    shutil.copytree(artifacts.folder, folder)
    try:
        sets = open_sets(folder, config=checkpoint.config, generation=artifacts.generation)
        moved = next(found for found in sets if found.layout == artifacts.layout)
        there = observe(ArtifactModel(moved, SessionProfile(settings.providers)))
    except InputError as error:
        cause = f"its own folder works, {folder.name!r} does not: {error.what}"
        action = "Name folders in ASCII without spaces for this onnxruntime, or use another build of it."
        judge(dataclasses.replace(refused(check, error), cause=cause, action=action))
        return
    finally:
        shutil.rmtree(folder)  # pytest would keep the copies of the last three runs
    comparison, here = Comparison(check, noise=noise), observe(candidate)
    for place in here:
        comparison.add_all(place, here[place], there[place])
    judge(comparison.finding(cause="the same files give other values from another folder"))
