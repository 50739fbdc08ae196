"""Exported sets of the embedded model, and copies of it, to plant faults in."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from harness.settings import EMBEDDED_MODEL, ROOT


@pytest.fixture(scope="session")
def exported() -> Callable[..., Path]:
    """(layout, exporter="torchscript") -> folder of the embedded model's set, from the repository's artifact cache.

    The folder is shared with every other run on this machine: read it, never write to it.
    """
    from exporters.cache import cached_set
    from exporters.export import ExportOptions
    from harness.reference.checkpoint import Checkpoint

    checkpoint = Checkpoint.open(str(EMBEDDED_MODEL))

    def find(layout: str, exporter: str = "torchscript") -> Path:
        return cached_set(checkpoint, ExportOptions(layout, exporter), ROOT / ".artifact-cache")

    return find


@pytest.fixture(scope="session")
def calibration(tmp_path_factory) -> Path:
    """A sound calibration file, written from a template: 200 sentences, a quarter of them over 30 words."""
    clause = "part {0} of line {1} goes to hall {2} after check {3} at gate {0}{2}"
    path = tmp_path_factory.mktemp("calibration") / "calibration.jsonl"
    lines = []
    for number in range(200):
        count = 4 if number % 4 == 0 else 1 + number % 2
        clauses = [clause.format(number, number % 7 + i, number * 3 % 11, i) for i in range(count)]
        lines.append(json.dumps({"id": f"c{number}", "source": f"{' and '.join(clauses).capitalize()}."}))
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


@pytest.fixture(scope="session")
def quantized(calibration) -> Callable[..., Path]:
    """Recipe's name -> folder of the embedded model's compact set; shared, as ``exported``'s are."""
    from exporters.cache import cached_set
    from exporters.export import ExportOptions
    from exporters.quantize import quantization
    from harness.contract.recipes import find_recipe
    from harness.reference.checkpoint import Checkpoint
    from harness.settings import RECIPES

    checkpoint = Checkpoint.open(str(EMBEDDED_MODEL))

    def find(precision: str) -> Path:
        how = quantization(find_recipe(precision, RECIPES), calibration)
        return cached_set(checkpoint, ExportOptions("compact", "torchscript"), ROOT / ".artifact-cache", how)

    return find


@pytest.fixture
def quantized_copy(quantized, tmp_path) -> Iterator[Callable[..., Path]]:
    """Recipe's name -> a copy of the quantized set that the test may change; removed after the test."""
    yield from _copies(quantized, tmp_path / "quantized")


@pytest.fixture
def own_recipes(tmp_path) -> Callable[[str, Callable[[dict], object]], Path]:
    """(Name of a recipe of the project, change) -> a file with that recipe, changed, under the name ``mine``."""
    from harness.settings import RECIPES

    def write(name: str, change: Callable[[dict], object]) -> Path:
        recipe = json.loads(RECIPES.read_text(encoding="utf-8"))["recipes"][name]
        change(recipe)
        path = tmp_path / "recipes.json"
        path.write_text(json.dumps({"schema": 1, "recipes": {"mine": recipe}}), encoding="utf-8")
        return path

    return write


@pytest.fixture
def set_copy(exported, tmp_path) -> Iterator[Callable[..., Path]]:
    """(layout, exporter="torchscript") -> a copy of the set that the test may change; removed after the test."""
    yield from _copies(exported, tmp_path / "sets")


@pytest.fixture
def model_copy(tmp_path) -> Iterator[Callable[[], Path]]:
    """() -> a copy of the embedded model that the test may change; removed after the test."""
    yield from _copies(lambda: EMBEDDED_MODEL, tmp_path / "models")


def _copies(source_of: Callable[..., Path], place: Path) -> Iterator[Callable[..., Path]]:
    def copy(*arguments: str) -> Path:
        source = source_of(*arguments)
        return Path(shutil.copytree(source, place / source.name))

    yield copy
    # Every copy holds tens of megabytes, and pytest keeps the temporary folders of three runs.
    shutil.rmtree(place, ignore_errors=True)
