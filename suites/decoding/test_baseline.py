"""Is it still what was stored before the upgrade, or by another team? (``--baseline FILE``)"""

from __future__ import annotations

import dataclasses

import pytest

from harness.checks.decode import Row, scores_finding, unlike_settings
from harness.contract.finding import Finding, Verdict
from harness.plugin import blocked, not_applicable
from harness.reference.baseline import Baseline, read_baseline
from suites.decoding.conftest import Source

NAMES = ("baseline", "now")


@pytest.fixture(scope="session")
def baseline(settings) -> Baseline:
    """The stored baseline."""
    if settings.baseline is None:
        not_applicable("no --baseline was given")
    return read_baseline(settings.baseline)


@pytest.fixture(scope="session")
def stored_sources(baseline: Baseline) -> list[Source]:
    """The baseline's sentences, by the ids that were stored."""
    return [Source(row.id, row.source, row.source_ids) for row in baseline.rows]


def test_the_baseline_is_of_this_model_and_these_settings(baseline, checkpoint, reference, judge):
    same = baseline.weights_sha256 == checkpoint.weights_sha256
    own = reference.settings.replace(num_beams=baseline.settings.num_beams)
    unlike = unlike_settings(baseline.settings, own, names=NAMES)
    judge(
        Finding(
            check="the baseline was stored from these weights",
            verdict=Verdict.PASS if same else Verdict.FAIL,
            where=f"baseline {baseline.weights_sha256[:16]}, model {checkpoint.weights_sha256[:16]}",
            cause="" if same else "the baseline is of other weights: nothing can be said about an upgrade",
            action="" if same else "Store a baseline of this model, or name that one with --model.",
        ),
        Finding(
            check="the baseline was decoded under the model's settings",
            verdict=Verdict.FAIL if unlike else Verdict.PASS,
            where=unlike[0] if unlike else "",
            cause="unlike settings are not compared" if unlike else "",
            action="Store the baseline again, or restore generation_config.json." if unlike else "",
            details=tuple(unlike[1:]),
        ),
    )


def _require_comparable(baseline: Baseline, checkpoint, reference) -> None:
    own = reference.settings.replace(num_beams=baseline.settings.num_beams)
    if baseline.weights_sha256 != checkpoint.weights_sha256 or unlike_settings(baseline.settings, own):
        blocked("the baseline is of another model or of unlike settings")


def test_pytorch_gives_the_baseline(baseline, stored_sources, checkpoint, reference, desk, judge):
    """The library upgrade itself, without any export."""
    _require_comparable(baseline, checkpoint, reference)
    settings = reference.settings.replace(num_beams=baseline.settings.num_beams)
    judge(
        *_compare(baseline, stored_sources, desk.by_pytorch(stored_sources, settings), reference.model, settings, desk)
    )


def test_the_set_gives_the_baseline(subject, candidate, baseline, stored_sources, checkpoint, reference, desk, judge):
    _require_comparable(baseline, checkpoint, reference)
    settings = reference.settings.replace(num_beams=baseline.settings.num_beams)
    desk.require_like_settings(candidate, settings)
    judge(*_compare(baseline, stored_sources, desk.by(candidate, stored_sources, settings), candidate, settings, desk))


def _compare(baseline, stored_sources, found, model, settings, desk) -> list[Finding]:
    rows = [Row(stored.id, stored.decoded, decoded) for stored, decoded in zip(baseline.rows, found)]
    ids = desk.ids("token ids equal the baseline", rows, stored_sources, model, settings, names=NAMES)
    if ids.failed:
        then = ", ".join(f"{name} {version}" for name, version in baseline.versions.items())
        ids = dataclasses.replace(
            ids,
            cause="this stack decodes otherwise than the one that stored the baseline",
            action=f"Run the other suites: they say whether the export or the library moved. Stored with {then}.",
        )
    return [
        ids,
        scores_finding("scores: equal the baseline", rows, settings, names=NAMES),
    ]
