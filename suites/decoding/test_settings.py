"""Do both sides decode under the same settings? Checked first: unlike settings are an error, not a comparison."""

from __future__ import annotations

from harness.checks.decode import settings_finding


def test_the_sets_generation_settings_are_the_models(subject, artifacts, reference, judge):
    file = "manifest.json" if artifacts.manifest else "the set's generation_config.json"
    judge(settings_finding(reference.settings, artifacts.generation, file=file))
