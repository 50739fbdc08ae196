"""What one stack made of an artifact set, kept so that another runtime can be held against it.

The torch stacks record; the runtime-only stacks replay, with numpy, onnxruntime and sentencepiece alone.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from harness.checks.numeric import Comparison
from harness.contract.errors import InputError
from harness.contract.finding import Finding, Verdict
from harness.contract.layouts import LOGITS
from harness.contract.limits import SCORE_ABOVE
from harness.contract.manifest import read_json
from harness.contract.sentences import Sentence
from harness.contract.seq2seq import Seq2Seq
from harness.runtime.artifact_model import ArtifactModel
from harness.runtime.artifact_set import ArtifactSet, open_set
from harness.runtime.search import generate
from harness.runtime.session import SessionProfile, named_profile
from harness.runtime.tokenizer import load_tokenizer

FACTS, TENSORS, SET = "recording.json", "recording.npz", "set"
SCHEMA = 1
RECORD_AGAIN = "Record it again: `tox -e ort132`, or `pytest suites/upgrade` where torch is installed."
# Forced target tokens whose logits are kept.
STEPS = 8
BATCH_SIZE = 8


@dataclass(frozen=True)
class Recording:
    """A recorded set: ``folder/set`` is the artifact set, the rest what was observed on it."""

    folder: Path
    facts: dict[str, Any]

    @property
    def id(self) -> str:
        """Recording stack and set, e.g. ``ort132-compact-by-torchscript``."""
        return f"{self.facts['stack']}-{self.facts['subject']}"


def record(artifacts: ArtifactSet, subject: str, stack: str, sentences: list[Sentence], folder: Path) -> Recording:
    """Observe a set and store set and observations in ``folder``, replacing what was recorded there before.

    Args:
        artifacts: a set with a manifest.
        subject, stack: names for the recording.
        sentences: sources to decode.
        folder: where to write; its parent is made.
    """
    facts, tensors = _observe(artifacts, sentences)
    facts.update(schema=SCHEMA, subject=subject, stack=stack, versions=artifacts.manifest.versions)
    folder.parent.mkdir(parents=True, exist_ok=True)
    partial = Path(tempfile.mkdtemp(prefix=f".{folder.name}.partial-", dir=folder.parent))
    try:
        shutil.copytree(artifacts.folder, partial / SET)
        np.savez_compressed(partial / TENSORS, **tensors)
        (partial / FACTS).write_text(json.dumps(facts, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
        shutil.rmtree(folder, ignore_errors=True)
        os.replace(partial, folder)
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise
    return Recording(folder, facts)


def find_recordings(folder: Path) -> list[Recording]:
    """Every recording below ``folder``, by name.

    Raises:
        InputError: there is none, or one cannot be read.
    """
    found = []
    for path in sorted(folder.glob(f"*/*/{FACTS}")):
        facts = read_json(path, action=RECORD_AGAIN)
        if not isinstance(facts, dict) or facts.get("schema") != SCHEMA:
            raise InputError(what=f"not a recording of schema {SCHEMA}", where=path, action=RECORD_AGAIN)
        found.append(Recording(path.parent, facts))
    if not found:
        raise InputError(what="no recorded artifact set yet", where=folder, action=RECORD_AGAIN)
    return found


def replay(recording: Recording, profile: SessionProfile) -> list[Finding]:
    """Run a recorded set on this runtime and compare with what was recorded (fault V01)."""
    artifacts = open_set(recording.folder / SET)
    with np.load(recording.folder / TENSORS) as stored:
        tensors = {name: stored[name] for name in stored.files}
    drift = _drift(artifacts, recording, tensors, profile)
    return [
        _with_cause(drift, artifacts, recording, tensors, profile),
        _decodes(artifacts, recording, tensors, profile),
    ]


def _observe(artifacts: ArtifactSet, sentences: list[Sentence]) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    tokenizer = load_tokenizer(artifacts.folder)
    model = ArtifactModel(artifacts, named_profile("suites"))
    rows = [tokenizer.encode(s.source, max_length=artifacts.dims.max_source_positions) for s in sentences]
    settings = artifacts.generation
    decoded, texts, tensors = [], [], {}
    for number, start in enumerate(range(0, len(rows), BATCH_SIZE)):
        ids, mask = tokenizer.batch(rows[start : start + BATCH_SIZE])
        results = generate(model, ids, mask, settings)
        decoded += [{"ids": list(r.token_ids), "score": r.score, "stop": r.stop_reason} for r in results]
        texts += [tokenizer.decode(result.generated) for result in results]
        targets = _targets([result.token_ids for result in results], settings.pad_token_id)
        tensors.update({f"ids.{number}": ids, f"mask.{number}": mask, f"targets.{number}": targets})
        tensors.update({f"{name}.{number}": array for name, array in _logits(model, ids, mask, targets).items()})
    facts = {
        "sources": [sentence.source for sentence in sentences],
        "texts": texts,
        "decoded": decoded,
        "batches": -(-len(rows) // BATCH_SIZE),
    }
    return facts, tensors


def _targets(rows: list[tuple[int, ...]], pad: int) -> np.ndarray:
    targets = np.full((len(rows), STEPS), pad, np.int64)
    for target, row in zip(targets, rows):
        target[: len(row[:STEPS])] = row[:STEPS]
    return targets


def _logits(model: Seq2Seq, ids: np.ndarray, mask: np.ndarray, targets: np.ndarray) -> dict[str, np.ndarray]:
    """Logits ``[batch, vocab]`` of every forced step."""
    state = model.start(model.encode(ids, mask))
    steps = {}
    for step in range(targets.shape[1]):
        logits, state = model.step(state, targets[:, step : step + 1])
        steps[f"{LOGITS}.{step}"] = logits[:, -1]
    return steps


def _drift(artifacts: ArtifactSet, recording: Recording, tensors: dict, profile: SessionProfile) -> Comparison:
    model = ArtifactModel(artifacts, profile)
    comparison = Comparison(f"logits equal those recorded on {recording.facts['stack']}")
    for number in range(recording.facts["batches"]):
        ids, mask, targets = (tensors[f"{name}.{number}"] for name in ("ids", "mask", "targets"))
        for name, array in _logits(model, ids, mask, targets).items():
            place = f"batch {number}, step {name.split('.')[1]}"
            comparison.add_all(place, {LOGITS: tensors[f"{name}.{number}"]}, {LOGITS: array})
    return comparison


def _with_cause(
    drift: Comparison, artifacts: ArtifactSet, recording: Recording, tensors: dict, profile: SessionProfile
) -> Finding:
    """On a drift beyond the limit, tell whether this runtime's graph optimisation is what moves the values."""
    if not drift.failing:
        return drift.finding()
    plain = _drift(artifacts, recording, tensors, replace(profile, optimisation="off"))
    if plain.failing:
        return drift.finding(
            cause="the kernels of this runtime, or the files: the drift stays without graph optimisation",
            action="Run suites/parity with torch on both stacks to see which side moved.",
        )
    return drift.finding(
        cause="graph optimisation of this runtime: without it the drift is gone",
        action="Lower the optimisation level on this runtime, or report the fusion upstream.",
    )


def _decodes(artifacts: ArtifactSet, recording: Recording, tensors: dict, profile: SessionProfile) -> Finding:
    """Decode again; every id and text must be the recorded one, every score near it."""
    tokenizer, model = load_tokenizer(artifacts.folder), ArtifactModel(artifacts, profile)
    results = []
    for number in range(recording.facts["batches"]):
        results += generate(model, tensors[f"ids.{number}"], tensors[f"mask.{number}"], artifacts.generation)
    flips, worst = [], 0.0
    for source, text, stored, result in zip(
        recording.facts["sources"], recording.facts["texts"], recording.facts["decoded"], results
    ):
        worst = max(worst, abs(stored["score"] - result.score))
        new = tokenizer.decode(result.generated)
        if list(result.token_ids) != stored["ids"] or new != text:
            step = next((i for i, (a, b) in enumerate(zip(stored["ids"], result.token_ids)) if a != b), None)
            flips.append(f"{source[:60]!r}: {text!r} became {new!r}, first at step {step}")
    return Finding(
        check=f"translations equal those recorded on {recording.facts['stack']}",
        verdict=Verdict.FAIL if flips or worst > SCORE_ABOVE else Verdict.PASS,
        measured=worst,
        limit=SCORE_ABOVE,
        unit="largest score difference",
        passing_limit=worst,
        compared=len(results),
        expected=len(recording.facts["sources"]),
        where=flips[0] if flips else "",
        cause=f"{len(flips)} sentences changed with the runtime" if flips else "",
        action="Read them: a tie between two words may be accepted, a changed number may not." if flips else "",
        details=tuple(flips[1:6]),
    )
