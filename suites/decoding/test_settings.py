"""Do both sides decode under the same settings? Checked first: unlike settings are an error, not a comparison."""

from __future__ import annotations

from harness.checks.decode import settings_finding
from harness.plugin import not_applicable


def test_the_sets_generation_settings_are_the_models(subject, artifacts, reference, judge):
    if artifacts.manifest is None and not (artifacts.folder / "config.json").is_file():
        not_applicable("the set carries no settings: it is decoded under the model's, its users bring theirs")
    file = "manifest.json" if artifacts.manifest else "the set's generation_config.json"
    judge(settings_finding(reference.settings, artifacts.generation, file=file))
