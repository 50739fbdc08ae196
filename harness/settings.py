"""The options of a run, frozen."""

from __future__ import annotations

import functools
import importlib.util
from dataclasses import dataclass
from pathlib import Path

from harness.contract.errors import InputError
from harness.contract.layouts import LAYOUTS
from harness.contract.recipes import FLOAT32, Recipe, read_recipes

ROOT = Path(__file__).parent.parent
EMBEDDED_MODEL = ROOT / "fixtures" / "models" / "tiny-marian-en-zh"
CORE_SENTENCES = ROOT / "fixtures" / "sentences" / "core.jsonl"
# For suites/quality and suites/golden: sentences with references, read by people; and many made by the grammar.
QUALITY_SENTENCES = ROOT / "fixtures" / "sentences" / "quality.jsonl"
GRAMMAR_SENTENCES = ROOT / "fixtures" / "sentences" / "grammar-2000.jsonl"
GOLDEN = ROOT / "golden"
RECIPES = ROOT / "exporters" / "recipes.json"
CALIBRATION = ROOT / "fixtures" / "calibration" / "calibration.jsonl"
DEFAULT_EXAMPLES = 25


def torch_is_here() -> bool:
    """Whether this environment has the PyTorch side; runtime-only stacks do not."""
    return importlib.util.find_spec("torch") is not None


@dataclass(frozen=True)
class Subject:
    """What a test is about: one layout by one exporter at one precision, or one set made elsewhere.

    Attributes:
        layout, exporter: as in the manifest; ``elsewhere`` for a set without one.
        folder: the set's folder under ``--artifacts``, else None: it is exported into the cache.
        precision: ``fp32`` or the name of a recipe; ``quantized`` for such a set made elsewhere.
    """

    layout: str
    exporter: str
    folder: Path | None = None
    precision: str = FLOAT32

    @property
    def id(self) -> str:
        """Part of a test's id, e.g. ``compact-by-torchscript`` or ``compact-by-torchscript-at-int8-dynamic``."""
        return f"{self.layout}-by-{self.exporter}" + ("" if self.precision == FLOAT32 else f"-at-{self.precision}")


@dataclass(frozen=True)
class Settings:
    """Options of one run; see ``harness.plugin`` for their help."""

    model: str
    artifacts: Path | None
    layouts: tuple[str, ...]
    exporters: tuple[str, ...]
    precisions: tuple[str, ...]
    recipes: Path
    calibration: Path
    sentences: Path
    baseline: Path | None
    providers: tuple[str, ...]
    max_examples: int
    nightly: bool
    artifact_cache: Path
    golden: Path
    golden_propose: bool
    report: Path

    @classmethod
    def from_options(cls, option, root: Path) -> Settings:
        """Read pytest's options.

        Raises:
            InputError: an option names something that does not exist.
        """
        if option.max_examples < 1:
            raise InputError(what=f"{option.max_examples} examples", where="--max-examples", action="Give 1 or more.")
        recipes = Path(option.recipes) if option.recipes else RECIPES
        return cls(
            model=_model(option, root),
            artifacts=Path(option.artifacts) if option.artifacts else None,
            layouts=_choice(option.layout, tuple(LAYOUTS), "--layout"),
            exporters=_choice(option.exporter, _exporters(), "--exporter"),
            precisions=_precisions(option.precision, recipes),
            recipes=recipes,
            calibration=Path(option.calibration) if option.calibration else CALIBRATION,
            sentences=Path(option.sentences) if option.sentences else CORE_SENTENCES,
            baseline=Path(option.baseline) if option.baseline else None,
            providers=tuple(option.providers.split(",")),
            max_examples=option.max_examples,
            nightly=option.nightly,
            artifact_cache=Path(option.artifact_cache) if option.artifact_cache else root / ".artifact-cache",
            golden=Path(option.golden) if option.golden else GOLDEN,
            golden_propose=option.golden_propose,
            report=Path(option.report) if option.report else root / "reports",
        )

    def recipe(self, precision: str) -> Recipe | None:
        """The recipe of a precision; None for float32 and for a set made elsewhere by a recipe unknown here."""
        return read_recipes(self.recipes).get(precision)

    @property
    def recordings(self) -> Path:
        """Where artifact sets and what was observed on them are kept for runtime-only stacks."""
        return self.artifact_cache / "recorded"

    @property
    def quality_sentences(self) -> tuple[Path, ...]:
        """Sentence files of suites/quality, those that people read first: ``--sentences`` or the project's own.

        Corpus scores of a quantized set need about 2,000 sentences; a float32 set, whose ids equal PyTorch's, does not.
        """
        if self.sentences != CORE_SENTENCES:
            return (self.sentences,)
        quantized = any(subject.precision != FLOAT32 for subject in self.subjects)
        return (QUALITY_SENTENCES, GRAMMAR_SENTENCES) if quantized else (QUALITY_SENTENCES,)

    @functools.cached_property
    def subjects(self) -> tuple[Subject, ...]:
        """What the suites are parametrized over; sets made elsewhere are opened once, not for every test."""
        if self.artifacts is None:
            return tuple(
                Subject(layout, exporter, precision=precision)
                for precision in self.precisions
                for exporter in self.exporters
                for layout in self.layouts
            )
        from harness.runtime.artifact_set import open_sets

        return tuple(
            Subject(s.layout, s.manifest.exporter if s.manifest else "elsewhere", s.folder, s.precision)
            for s in open_sets(self.artifacts, **self._own_configuration())
        )

    def _own_configuration(self) -> dict:
        """Configuration of the model under test, for sets that carry none."""
        from harness.reference.checkpoint import Checkpoint
        from harness.reference.loading import generation_settings

        checkpoint = Checkpoint.open(self.model)
        return {"config": checkpoint.config, "generation": generation_settings(checkpoint)}


def _model(option, root: Path) -> str:
    """What ``--model`` names, or the folder of the model that ``--scale`` makes."""
    if not option.scale:
        return str(option.model)
    if option.model != EMBEDDED_MODEL:
        raise InputError(what="given together with --model", where="--scale", action="Give one of the two.")
    from harness.reference.scale import scale_model

    return str(scale_model(option.scale, Path(option.artifact_cache or root / ".artifact-cache")))


def _precisions(value: str | None, recipes: Path) -> tuple[str, ...]:
    if not value and recipes == RECIPES:
        return (FLOAT32,)
    return _choice(value, (FLOAT32, *read_recipes(recipes)), "--precision")


def _exporters() -> tuple[str, ...]:
    if not torch_is_here():
        return ("torchscript",)
    from harness import compat

    return compat.exporters()


def _choice(value: str | None, known: tuple[str, ...], option: str) -> tuple[str, ...]:
    if not value:
        return known
    chosen = tuple(value.split(","))
    if unknown := [name for name in chosen if name not in known]:
        raise InputError(
            what=f"{', '.join(unknown)} is not available here", where=option, action=f"Available: {', '.join(known)}."
        )
    return chosen
