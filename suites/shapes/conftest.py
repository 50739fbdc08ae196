"""Runs scenarios on PyTorch and the subject, as Hypothesis draws them, and turns the outcome into one finding."""

from __future__ import annotations

import dataclasses
import functools
import math
import os
import re
import shlex
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import hypothesis
import numpy as np
import pytest
from hypothesis.database import DirectoryBasedExampleDatabase
from hypothesis.errors import Flaky
from hypothesis.strategies import SearchStrategy

from fixtures.models import Reference
from harness import compat
from harness.checks.numeric import Comparison
from harness.checks.shapes import (
    STEP,
    Promise,
    Scenario,
    SideBySide,
    Variation,
    at_tracing_sizes,
    noise_of,
    replay,
    variations,
)
from harness.contract.errors import InputError
from harness.contract.finding import Finding, Verdict
from harness.contract.layouts import ENCODER
from harness.contract.limits import FAIL_ABOVE, WARN_ABOVE
from harness.diagnosis.counterfactuals import diagnose
from harness.reference.checkpoint import Checkpoint
from harness.reference.torch_model import TorchModel
from harness.report.repro import Repro
from harness.runtime.artifact_model import ArtifactModel
from harness.settings import DEFAULT_EXAMPLES, EMBEDDED_MODEL, ROOT, Settings
from suites.shapes.strategies import Sizes, large_batch

# A set and PyTorch, both rounding in float32, differ by up to the sum of their distances from float64. Another order of
# summation may double either. Beyond that, a difference is the set's own.
NOISE_FACTOR = 4.0
# Calls that follow the encoder in one run of the state machine.
MOST_CALLS = 8
UNSTEADY = "the same calls do not always give the same values: a random operator, or memory read before it is written"


class ScenarioFailed(AssertionError):
    """What Hypothesis minimises: the calls of one example up to the one that went wrong."""

    def __init__(self, sides: SideBySide) -> None:
        super().__init__(sides.finding().text())
        self.sides = sides


@dataclass
class Explorer:
    """Gathers what the examples of one test measure, and explains the smallest that fails.

    Args:
        check: name of the check.
        reference, reference64: PyTorch in float32, and in float64 to measure rounding noise.
        candidate: the artifact set.
        sizes: what limits its scenarios.
        settings: the run's options.
        rerun: the pytest command of this test.
        repro_folder: where a failure leaves its script.
        model_noise: measures the rounding noise of PyTorch on one large batch.
    """

    check: str
    reference: TorchModel
    reference64: TorchModel
    candidate: ArtifactModel
    sizes: Sizes
    settings: Settings
    rerun: str
    repro_folder: Path
    model_noise: Callable[[], float]
    passed: list[SideBySide] = field(default_factory=list)
    undecided: list[SideBySide] = field(default_factory=list)
    failed: SideBySide | None = None

    @property
    def exact(self) -> bool:
        """Whether differences are held against the limit; a quantized set has to run and to stay finite."""
        return not self.candidate.artifacts.quantized

    @cached_property
    def promise(self) -> Promise:
        """The tensors that have to be compared."""
        artifacts = self.candidate.artifacts
        return Promise.of(artifacts.layout, artifacts.dims, self.candidate.sessions[ENCODER].outputs)

    def begin(self) -> SideBySide:
        """A scenario that is made up as it goes; ``finish`` takes it when it is over or went wrong."""
        return SideBySide(self.reference, self.candidate, self.promise, self.check, exact=self.exact)

    def finish(self, sides: SideBySide) -> None:
        """Keep what one scenario measured.

        Raises:
            ScenarioFailed: it went wrong, by more than rounding explains.
        """
        if sides.sound:
            self.passed.append(sides)
        elif not sides.complaint and sides.worst <= NOISE_FACTOR * max(self._noise(sides), self.model_noise()):
            self.undecided.append(sides)
        else:
            self.failed = sides
            raise ScenarioFailed(sides)

    def _noise(self, sides: SideBySide) -> float:
        return noise_of(self.reference, self.reference64, self.promise, tuple(sides.calls))

    def play(self, scenario: Scenario) -> None:
        """Make a scenario's calls and keep what they measured; raises what ``finish`` raises."""
        self.finish(self._replay(scenario))

    def _replay(self, scenario: Scenario) -> SideBySide:
        return replay(self.reference, self.candidate, self.promise, scenario, self.check, exact=self.exact)

    def profile(self, share: int = 1) -> hypothesis.settings:
        """The same examples in every run, or with ``--nightly`` new ones and a database of those that failed.

        Args:
            share: how many ranges share the examples of one property.
        """
        nightly = self.settings.nightly
        return hypothesis.settings(
            max_examples=math.ceil(self.settings.max_examples / share),
            stateful_step_count=MOST_CALLS,
            derandomize=not nightly,
            database=DirectoryBasedExampleDatabase(ROOT / ".hypothesis" / "examples") if nightly else None,
            deadline=None,  # machines are shared
            suppress_health_check=[hypothesis.HealthCheck.too_slow],
            phases=[hypothesis.Phase.reuse, hypothesis.Phase.generate, hypothesis.Phase.shrink],
            report_multiple_bugs=False,
            verbosity=hypothesis.Verbosity.quiet,
            print_blob=False,
        )

    def explore(self, ranges: Sequence[SearchStrategy[Scenario]]) -> Finding:
        """Play what is drawn from one range after the other; see ``conclude``."""

        def run() -> None:
            for scenarios in ranges:
                self.profile(len(ranges))(hypothesis.given(scenarios)(lambda scenario: self.play(scenario)))()

        return self.conclude(run)

    def conclude(self, run: Callable[[], None]) -> Finding:
        """Run examples and return one finding for all: the worst figure, or the smallest example that fails."""
        shutil.rmtree(self.repro_folder, ignore_errors=True)
        try:
            run()
        except ScenarioFailed as failure:
            return self._failure(failure.sides, self._cause(failure.sides))
        except Flaky:
            if self.failed is None:
                raise
            return self._failure(self.failed, UNSTEADY)
        return self._success()

    def _success(self) -> Finding:
        total = Comparison(self.check, exact=self.exact)
        for sides in self.passed + self.undecided:
            total.expected += sides.comparison.expected
            total.differences += sides.comparison.differences
        worst = max(self.passed + self.undecided, key=lambda sides: sides.worst)
        if self.exact and worst.worst > WARN_ABOVE:
            total.noise = self._noise(worst)
        most = max(worst.comparison.differences, key=lambda found: found.scaled)
        seen = f"{len(self.passed) + len(self.undecided)} examples, the largest difference at {most.text()}"
        finding = dataclasses.replace(total.finding(), details=(seen,))
        return self._not_decided(finding, total.noise) if self.undecided else finding

    def _not_decided(self, finding: Finding, noise: float) -> Finding:
        return dataclasses.replace(
            finding,
            verdict=Verdict.INCONCLUSIVE,
            cause=f"{len(self.undecided)} examples differ by no more than rounding explains: there, PyTorch in float32 "
            f"is up to {noise:.2g} from itself in float64",
            action="Parity in float32 cannot be decided on this model; compare in float64.",
        )

    def _failure(self, sides: SideBySide, cause: str) -> Finding:
        script = self._repro(sides).write(self.repro_folder)
        calls = [f"{number}. {call.text()}" for number, call in enumerate(sides.calls, 1)]
        beyond = "" if sides.complaint else ", ".join(found.name for found in sides.comparison.failing)
        return dataclasses.replace(
            sides.finding(),
            cause=cause,
            action=f"Run `python {_shown(script)}`, the smallest example that fails.",
            details=(*calls, *([f"beyond the limit: {beyond}"] if beyond else []), f"rerun: {self.rerun}"),
        )

    def _cause(self, sides: SideBySide) -> str:
        """What the failing calls need in order to fail, or what a wrong PyTorch would explain."""
        scenario = tuple(sides.calls)
        if abs(self._replay(scenario).worst - sides.worst) > FAIL_ABOVE:
            return UNSTEADY
        manifest = self.candidate.artifacts.manifest
        traced = [at_tracing_sizes(scenario, manifest.dummy_sizes)] if manifest and self._fits(scenario) else []
        passing, passing_traced = (
            [variation for variation in tried if self._passes(variation)] for tried in (variations(scenario), traced)
        )
        if sides.complaint:
            clues = [sides.complaint]
        elif passing:
            # The first is the most specific; the others only narrow down where.
            clues = [f"it passes {passing[0].name}: {passing.pop(0).cause}"]
        else:
            clues = [f"it fails without padding, past or neighbours too, at {_lengths(scenario)}: {self._diagnosis()}"]
        return "; ".join([*clues, *(f"it passes {variation.name}" for variation in passing + passing_traced)])

    def _fits(self, scenario: Scenario) -> bool:
        """Whether the scenario fits into the model's position tables at the tracing sizes too."""
        dims, traced = self.sizes.dims, self.candidate.artifacts.manifest.dummy_sizes
        steps = traced["past"] + traced["target"] * sum(call.kind == STEP for call in scenario)
        return traced["source"] <= dims.max_source_positions and steps <= dims.max_target_positions

    def _passes(self, variation: Variation) -> bool:
        return all(self._replay(scenario).sound for scenario in variation.scenarios)

    def _diagnosis(self) -> str:
        """No size matters: look for a mistake that explains the values on a small padded batch."""
        dims, rng = self.sizes.dims, np.random.default_rng(0)
        ids = self.sizes.tokens(rng, (2, 4), dims.source_vocab_size)
        mask = np.array([[1, 1, 1, 1], [1, 1, 0, 0]])
        target = self.sizes.tokens(rng, (2, 3), dims.vocab_size)
        manifest = self.candidate.artifacts.manifest
        try:
            return diagnose(
                self.reference, self.candidate, ids, mask, target, manifest.dummy_sizes["past"] if manifest else 0
            ).cause
        except InputError as error:
            return str(error)

    def _repro(self, sides: SideBySide) -> Repro:
        artifacts = self.candidate.artifacts
        return Repro(
            title=self.check,
            scenario=tuple(sides.calls),
            model=self.settings.model,
            artifacts=artifacts.folder,
            layout=artifacts.layout,
            providers=tuple(self.settings.providers),
            project=ROOT,
            rerun=self.rerun,
        )


def _lengths(scenario: Scenario) -> str:
    """Source tokens, and target tokens that were appended."""
    source, *target = (call.arrays["input_ids"].shape[1] for call in scenario if "input_ids" in call.arrays)
    return f"source {source}" + (f", target {sum(target)}" if target else "")


def _shown(path: Path) -> str:
    """A path as short as it can be typed from here."""
    return shlex.quote(min(os.path.relpath(path), str(path.resolve()), key=len))


def _rerun(nodeid: str, settings: Settings) -> str:
    """The pytest command that runs one test with the options that shape it."""
    words = ["python", "-m", "pytest", nodeid]
    if settings.model != str(EMBEDDED_MODEL):
        words += ["--model", settings.model]
    if settings.artifacts:
        words += ["--artifacts", str(settings.artifacts)]
    if settings.max_examples != DEFAULT_EXAMPLES:
        words += ["--max-examples", str(settings.max_examples)]
    if settings.providers != ("CPUExecutionProvider",):
        words += ["--providers", ",".join(settings.providers)]
    return shlex.join([*words, "--nightly"] if settings.nightly else words)


@pytest.fixture(scope="session")
def sizes(subject, candidate: ArtifactModel, reference: Reference) -> Sizes:
    """What limits the subject's scenarios."""
    generation = reference.settings
    return Sizes(
        candidate.artifacts.dims,
        generation.pad_token_id,
        generation.decoder_start_token_id,
        candidate.single_token_steps,
    )


@pytest.fixture(scope="session")
def model_noise(reference: Reference, reference64: TorchModel, checkpoint: Checkpoint) -> Callable[[], float]:
    """How far PyTorch in float32 is from itself in float64 on one large batch; measured once, when it is asked for.

    A model that amplifies rounding does so by chance: on a small example the noise may happen to be small.
    """

    @functools.cache
    def measure() -> float:
        dims, generation = checkpoint.dims, reference.settings
        sizes = Sizes(dims, generation.pad_token_id, generation.decoder_start_token_id, False)
        promise = Promise.of("compact", dims, ())
        return noise_of(reference.model, reference64, promise, large_batch(sizes))

    return measure


@pytest.fixture
def explorer_of(
    request, subject, settings, reference: Reference, reference64, candidate, sizes, model_noise
) -> Callable[[str], Explorer]:
    """Name of a check -> its explorer."""
    name = re.sub(r"[^\w-]+", "-", f"{request.node.originalname}-{request.node.callspec.id}").strip("-")
    folder = settings.report / compat.stack_name() / "repro" / name
    rerun = _rerun(request.node.nodeid, settings)
    return lambda check: Explorer(
        check, reference.model, reference64, candidate, sizes, settings, rerun, folder, model_noise
    )


@pytest.fixture
def not_promised(candidate: ArtifactModel) -> list[Finding]:
    """What could not be checked, because the set does not promise it."""
    if not candidate.single_token_steps:
        return []
    return [
        Finding(
            check="several tokens at once after a past",
            verdict=Verdict.NOT_APPLICABLE,
            cause="a set made elsewhere promises one token per step once it has a past",
        )
    ]
