"""Is it still what was stored before the upgrade, or by another team? (``--baseline FILE``)"""

from __future__ import annotations

import dataclasses

import pytest

from harness.checks.decode import (
    Row,
    Tokenized,
    refused_finding,
    scores_finding,
    source_ids_finding,
    texts_finding,
    unlike_settings,
)
from harness.contract.errors import InputError
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
    found = desk.by_pytorch(stored_sources, settings)
    ids, scores = _compare(baseline, stored_sources, found, reference.model, settings, desk)
    if ids.failed:
        then = ", ".join(f"{name} {version}" for name, version in baseline.versions.items())
        ids = dataclasses.replace(
            ids,
            cause="the libraries of this stack decode otherwise than those that stored the baseline",
            action=f"Find the package that moved. Stored with {then}.",
        )
    judge(ids, scores, *_compare_text(baseline, _library_encode(checkpoint, reference), _library_decode(desk), desk))


def test_the_set_gives_the_baseline(
    request, subject, candidate, exact, baseline, stored_sources, checkpoint, reference, desk, judge
):
    _require_comparable(baseline, checkpoint, reference)
    # By the search rules of the library that stored it: what differs then is the set's doing, not the library's.
    settings = baseline.settings
    desk.require_like_settings(candidate, settings)
    try:
        found = desk.by(candidate, stored_sources, settings)
    except InputError as error:
        judge(refused_finding("token ids equal the baseline", error))
        return
    ids, *scores = _compare(baseline, stored_sources, found, candidate, settings, desk, exact=exact)
    now = desk.by_pytorch(stored_sources, reference.settings.replace(num_beams=settings.num_beams))
    if ids.failed and [one.token_ids for one in found] == [one.token_ids for one in now]:
        ids = dataclasses.replace(
            ids,
            cause="PyTorch decodes the same on this stack: the libraries moved, not the set",
            action="See test_pytorch_gives_the_baseline.",
        )
    texts = []
    if (candidate.artifacts.folder / "source.spm").is_file():
        tokenizer = request.getfixturevalue("set_tokenizer")
        texts = _compare_text(baseline, tokenizer.encode, tokenizer.decode, desk)
    judge(ids, *scores, *texts)


def _library_encode(checkpoint, reference):
    limit = checkpoint.dims.max_source_positions
    return lambda text: reference.tokenizer(text, truncation=True, max_length=limit)["input_ids"]


def _library_decode(desk):
    clean = desk.tokenizer.clean_up_tokenization_spaces
    return lambda ids: desk.reference.tokenizer.decode(
        list(ids), skip_special_tokens=True, clean_up_tokenization_spaces=clean
    )


def _compare_text(baseline, encode, decode, desk) -> list[Finding]:
    sources = [Tokenized(row.id, row.source_ids, tuple(encode(row.source))) for row in baseline.rows]
    texts = [(row.id, row.text, decode(row.decoded.generated)) for row in baseline.rows]
    found = [
        source_ids_finding(sources, desk.piece, desk.piece, check="source ids equal the baseline", names=NAMES),
        texts_finding(texts, check="texts equal the baseline", names=NAMES),
    ]
    action = "Compare the tokenizer files, and the versions of tokenizers, transformers and sentencepiece."
    return [dataclasses.replace(finding, action=action) if finding.failed else finding for finding in found]


def _compare(baseline, stored_sources, found, model, settings, desk, *, exact: bool = True) -> list[Finding]:
    rows = [Row(stored.id, stored.decoded, decoded) for stored, decoded in zip(baseline.rows, found)]
    ids = desk.ids("token ids equal the baseline", rows, stored_sources, model, settings, names=NAMES, exact=exact)
    return [ids, scores_finding("scores: equal the baseline", rows, settings, names=NAMES)] if exact else [ids]
