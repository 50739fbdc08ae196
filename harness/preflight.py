"""Everything that makes a run senseless, found before its first test."""

from __future__ import annotations

from harness.contract.errors import InputError
from harness.contract.recipes import STATIC
from harness.contract.sentences import read_sentences
from harness.golden.folder import GoldenFolder
from harness.reference.baseline import read_baseline
from harness.reference.checkpoint import Checkpoint
from harness.reference.family import family_of
from harness.reference.loading import generation_settings, load_model
from harness.runtime.artifact_set import ArtifactSet, open_sets
from harness.settings import Settings


def check(settings: Settings) -> None:
    """Open everything that the options name.

    Raises:
        InputError: the first thing that cannot be used.
    """
    checkpoint = Checkpoint.open(settings.model)
    family_of(checkpoint.config, where=checkpoint.folder)
    generation = generation_settings(checkpoint)
    if settings.artifacts:
        for artifacts in open_sets(settings.artifacts, config=checkpoint.config, generation=generation):
            _check_same_model(artifacts, checkpoint)
    else:
        _check_cache(settings)
        _check_calibration(settings)
    _check_golden(settings, checkpoint)
    if settings.baseline:
        read_baseline(settings.baseline).require_fits(checkpoint, where=settings.baseline)
    load_model(checkpoint)  # last, because it takes longest


def _check_same_model(artifacts: ArtifactSet, checkpoint: Checkpoint) -> None:
    if artifacts.manifest and artifacts.manifest.weights_sha256 != checkpoint.weights_sha256:
        raise InputError(
            what=f"made from weights {artifacts.manifest.weights_sha256[:12]}, not {checkpoint.weights_sha256[:12]}",
            where=artifacts.folder,
            action="Name the model the set was made from with --model.",
        )
    if artifacts.dims != checkpoint.dims:
        raise InputError(
            what="its sizes are not those of the model",
            where=artifacts.folder,
            action="Name the model the set was made from with --model.",
        )


def _check_calibration(settings: Settings) -> None:
    recipes = [settings.recipe(precision) for precision in settings.precisions]
    if any(recipe and recipe.method == STATIC for recipe in recipes):
        read_sentences(settings.calibration)


def _check_golden(settings: Settings, checkpoint: Checkpoint) -> None:
    if not settings.golden.is_dir() and not settings.golden_propose:
        raise InputError(
            what="no such folder", where=settings.golden, action="Name the folder of golden translations with --golden."
        )
    folder = GoldenFolder.of(settings.golden, checkpoint.model_id)
    folder.policy()
    if folder.exists:
        folder.golden()


def _check_cache(settings: Settings) -> None:
    probe = settings.artifact_cache / ".writable"
    try:
        settings.artifact_cache.mkdir(parents=True, exist_ok=True)
        probe.touch()
        probe.unlink(missing_ok=True)
    except OSError as error:
        raise InputError(
            what=f"the artifact cache cannot be written ({error.strerror})",
            where=settings.artifact_cache,
            action="Name a folder you may write to with --artifact-cache.",
        ) from None
