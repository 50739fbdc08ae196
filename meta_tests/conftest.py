"""Exported sets of the embedded model, and copies of it, to plant faults in."""

from __future__ import annotations

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
