"""The golden gate by its commands: propose, review, judge; and everything that may go wrong with its files."""

from __future__ import annotations

import json
import os
import shutil
import signal
import time
from datetime import date
from pathlib import Path

import pytest

from harness.checks.golden import Agreement, edit_of, judge_translation
from harness.contract.errors import ExitCode, InputError
from harness.contract.golden import GoldenEntry
from harness.contract.policy import Policy, PolicyException
from harness.golden.decisions import items
from harness.golden.folder import LOCK, POLICY, TRANSLATIONS, GoldenFolder
from harness.golden.proposal import PROPOSAL, read_proposal
from harness.settings import EMBEDDED_MODEL
from meta_tests.commands import Outcome, run, run_suites, start
from meta_tests.digit_checker import digits
from meta_tests.faults_quality import (
    GOLDEN_FAULTS,
    edit_entry,
    plant_entry_lost,
    plant_retrained,
    plant_translation_edited,
    write_policy,
)

ONE_SUBJECT = ("--layout", "compact", "--exporter", "torchscript")
# What they are translated to is the model's affair.
SOURCES = {
    **{f"pump-{i}": f"Wait {i + 2} minutes, then open valve {10 * i + 7}." for i in range(6)},
    "thanks": "Thank you.",
}


@pytest.fixture(scope="module")
def sentences(tmp_path_factory) -> Path:
    """The sources as a sentence file."""
    path = tmp_path_factory.mktemp("sentences") / "own.jsonl"
    path.write_text("".join(json.dumps({"id": i, "source": s}) + "\n" for i, s in SOURCES.items()), encoding="utf-8")
    return path


def judge_golden(golden: Path, sentences: Path, *arguments: object, report: Path, **options) -> Outcome:
    """`pytest suites/golden` on one float32 set of the embedded model."""
    return run_suites(
        "suites/golden",
        "--golden",
        golden,
        "--sentences",
        sentences,
        *ONE_SUBJECT,
        *arguments,
        report=report,
        **options,
    )


def review(golden: Path, *arguments: object, stdin: bytes = b"", ci: str = "") -> Outcome:
    """`python -m harness review` on the embedded model, outside of any CI unless one is named."""
    return run("-m", "harness", "review", EMBEDDED_MODEL, "--golden", golden, *arguments, stdin=stdin, CI=ci)


def decisions(path: Path, *made: tuple[str, str, str]) -> Path:
    """A decisions file."""
    lines = [dict(zip(("id", "decision", "reason"), one)) for one in made]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return path


def findings(report: Path) -> dict[str, dict]:
    """Finding by check, over the whole run."""
    (path,) = report.glob("*/results.json")
    checks = json.loads(path.read_text(encoding="utf-8"))["checks"]
    return {finding["check"]: finding for check in checks for finding in check["findings"]}


def text_of(finding: dict) -> str:
    return "\n".join([finding["where"], finding["cause"], finding["action"], *finding["details"]])


def files(folder: Path) -> dict[str, bytes]:
    """Content of the golden's own files."""
    return {name: (folder / name).read_bytes() for name in (TRANSLATIONS, LOCK) if (folder / name).exists()}


@pytest.fixture(scope="module")
def approved(tmp_path_factory, sentences) -> Path:
    """A golden of the embedded model, made by the commands: proposed, and every entry accepted. Read it only."""
    folder = tmp_path_factory.mktemp("golden") / EMBEDDED_MODEL.name
    done = judge_golden(folder.parent, sentences, "--golden-propose", report=folder.parent / "report")
    assert done.code == ExitCode.INCOMPLETE, done.output
    assert "not covered: golden translations: nobody approved any of" in done.stdout
    assert [path.name for path in folder.iterdir() if not path.name.startswith(".")] == [PROPOSAL]
    made = decisions(folder.parent / "decisions.jsonl", *((id, "accept", "read, it is right") for id in SOURCES))
    done = review(folder.parent, "--decisions", made)
    assert done.code == ExitCode.GOOD, done.output
    assert not (folder / PROPOSAL).exists()
    return folder


@pytest.fixture
def golden(approved, tmp_path) -> Path:
    """A copy of the golden that a test may change."""
    return Path(shutil.copytree(approved, tmp_path / approved.name))


# --- judging ------------------------------------------------------------------------------------------------------


def test_a_golden_that_was_just_approved_agrees_word_for_word(approved, sentences, tmp_path):
    done = judge_golden(approved, sentences, report=tmp_path)
    assert done.code == ExitCode.INCOMPLETE, done.output  # suites/golden alone is not the whole gate
    assert "not covered" not in done.stdout
    found = findings(tmp_path)
    assert {finding["verdict"] for finding in found.values()} == {"pass"}
    assert f"{len(SOURCES)} the approved translation" in text_of(found["translations agree with the golden"])


def test_every_fault_of_the_files_is_told_by_its_own_check(golden, sentences, tmp_path, subtests):
    for fault in GOLDEN_FAULTS.values():
        fault.plant(golden)
    done = judge_golden(golden, sentences, report=tmp_path / "report")
    assert done.code == ExitCode.HOLD, done.output
    assert "Traceback" not in done.output
    found = findings(tmp_path / "report")
    for name, fault in GOLDEN_FAULTS.items():
        with subtests.test(name):
            finding = found[fault.check]
            assert finding["verdict"] == "fail"
            assert [word for word in fault.words if word not in text_of(finding)] == [], finding


def test_orphans_and_lost_entries_are_told(golden, sentences, tmp_path):
    """The sentence file lost a sentence and changed another; the golden lost an entry."""
    plant_entry_lost(golden)
    lines = sentences.read_text(encoding="utf-8").splitlines()
    other = json.dumps({"id": "pump-2", "source": "Wait 5 minutes."})
    (tmp_path / sentences.name).write_text("\n".join([lines[0], other, *lines[3:]]) + "\n", encoding="utf-8")
    done = judge_golden(golden, tmp_path / sentences.name, report=tmp_path / "report")
    assert done.code == ExitCode.HOLD, done.output
    found = findings(tmp_path / "report")
    orphans = text_of(found["every golden entry and every exception belongs to a sentence"])
    assert f"entry pump-1 has no sentence in {sentences.name} any more" in orphans
    assert "entry pump-2 is of" in orphans and "'Wait 5 minutes.'" in orphans
    assert "thanks was approved, and is gone from translations.jsonl" in text_of(
        found["the golden is as it was approved"]
    )


def test_a_wrong_translation_holds_and_an_exception_lets_it_pass(golden, approved, sentences, tmp_path):
    """The golden says other numbers than the model: as if the model had lost them. Approved through a review."""
    proposal = propose(golden, sentences, tmp_path)
    entries = {entry["id"]: entry for entry in proposal["entries"]}
    entries["pump-0"]["translation"] = "完全不同的另一句话，与水泵无关。"
    (golden / PROPOSAL).write_text(json.dumps(proposal), encoding="utf-8")
    made = decisions(tmp_path / "d.jsonl", ("pump-0", "replace", "planted"))
    assert review(golden, "--decisions", made).code == ExitCode.GOOD
    done = judge_golden(golden, sentences, report=tmp_path / "held")
    assert done.code == ExitCode.HOLD, done.output
    held = findings(tmp_path / "held")["translations agree with the golden"]
    assert held["where"].startswith("pump-0: ")
    assert "完全不同" in held["where"] and SOURCES["pump-0"] in held["where"]
    write_policy(golden, "id: pump-0, reason: accepted until the retraining, expires: 2999-12-31")
    done = judge_golden(golden, sentences, report=tmp_path / "excepted")
    assert done.code == ExitCode.INCOMPLETE, done.output
    excepted = findings(tmp_path / "excepted")["translations agree with the golden"]
    assert excepted["verdict"] == "known"
    assert "accepted until the retraining" in text_of(excepted)


def test_a_known_fault_is_not_required_and_improving_is_told(golden, sentences, tmp_path):
    proposal = propose(golden, sentences, tmp_path)
    for entry in proposal["entries"]:
        if entry["id"] == "pump-1":
            entry["translation"] = "错。"
    (golden / PROPOSAL).write_text(json.dumps(proposal), encoding="utf-8")
    made = decisions(tmp_path / "d.jsonl", ("pump-1", "known-fault", "both numbers are lost"))
    assert review(golden, "--decisions", made).code == ExitCode.GOOD
    entry = json.loads((golden / TRANSLATIONS).read_text(encoding="utf-8").splitlines()[1])
    assert (entry["known_fault"], entry["observed"], entry["judgement"]) == (True, "错。", "both numbers are lost")
    done = judge_golden(golden, sentences, report=tmp_path / "report")
    assert done.code == ExitCode.INCOMPLETE, done.output
    assert "1 a known fault that is gone" in text_of(
        findings(tmp_path / "report")["translations agree with the golden"]
    )


# file -> what is written into it -> what the one line must say
UNREADABLE = {
    "an unknown key in the policy": (POLICY, "schema: 1\ntresholds: {}\n", "unknown key `tresholds`"),
    "an unknown threshold": (POLICY, "schema: 1\nthresholds: {newly_borken: 1}\n", "unknown key `newly_borken`"),
    "an unknown key of an exception": (
        POLICY,
        "schema: 1\nexceptions: [{id: a, reason: b, expires: 2030-01-01, expiry: 1}]\n",
        "unknown key `expiry`",
    ),
    "an exception without an end": (
        POLICY,
        "schema: 1\nexceptions: [{id: a, reason: b}]\n",
        "exception 'a' has no `expires`",
    ),
    "an end that is no day": (
        POLICY,
        "schema: 1\nexceptions: [{id: a, reason: b, expires: soon}]\n",
        "a day as 2027-01-31 is needed",
    ),
    "a policy that is no YAML": (POLICY, "a: [\n", "not YAML"),
    "YAML that builds objects": (POLICY, "!!python/object/apply:os.system ['true']\n", "not YAML"),
    "an unknown key of an entry": (
        TRANSLATIONS,
        '{"id": "a", "source": "A.", "accepted": ["甲。"], "acepted": []}\n',
        "translations.jsonl:1: unknown key `acepted`",
    ),
    "an entry that accepts nothing": (TRANSLATIONS, '{"id": "a", "source": "A."}\n', "no `accepted` translation"),
    "a lock that is no lock": (LOCK, "{}\n", "not a lock of schema 1"),
}  # fmt: skip


@pytest.mark.parametrize("case", UNREADABLE)
def test_an_unreadable_golden_is_refused_for(case, golden):
    name, content, words = UNREADABLE[case]
    (golden / name).write_text(content, encoding="utf-8")
    with pytest.raises(InputError) as refused:
        GoldenFolder(golden).policy()
        GoldenFolder(golden).golden()
    assert words in str(refused.value)
    assert str(golden / name) in str(refused.value)


def test_an_unreadable_golden_ends_the_run_before_it_starts(golden, sentences, tmp_path):
    (golden / POLICY).write_text("schema: 1\ntresholds: {}\n", encoding="utf-8")
    done = judge_golden(golden, sentences, report=tmp_path / "report")
    assert done.code == ExitCode.USAGE, done.output
    assert "unknown key `tresholds`" in done.words
    assert "Traceback" not in done.output


RIGHT = GoldenEntry("a", "Wait 1 or 2 minutes.", ("请等 1 或 2 分钟。", "等 1、2 分钟。"))
WRONG = GoldenEntry("a", "Wait 1 or 2 minutes.", ("请等 1 或 2 分钟。",), known_fault=True, observed="请等 1 分钟。")
MISSED = GoldenEntry("a", "Wait 1 or 2 minutes.", ("请等一两分钟。",))  # the checker does not read 一 and 两
EXCEPTED = Policy(exceptions=(PolicyException("a", "r", date(2026, 12, 1), "digits"),))

# entry, the candidate's text, whether float32, policy -> agreement, slots
AGREEMENTS = {
    "the same": (RIGHT, "请等 1 或 2 分钟。", True, Policy(), Agreement.EXACT, ()),
    "another accepted one": (RIGHT, "等 1、2 分钟。", True, Policy(), Agreement.ACCEPTED, ()),
    "a sound paraphrase": (RIGHT, "请等 1 到 2 分钟。", True, Policy(), Agreement.BY_PHENOMENA, ()),
    "unrelated, with its numbers": (RIGHT, "12 只猫在睡觉呢", True, Policy(), Agreement.FAR, ()),
    "unrelated, with its numbers, by int8": (RIGHT, "12 只猫在睡觉呢", False, Policy(), Agreement.BY_PHENOMENA, ()),
    "a number lost": (RIGHT, "请等 1 分钟。", True, Policy(), Agreement.FAULTY, ("digits: 2",)),
    "a number lost, by int8": (RIGHT, "请等 1 分钟。", False, Policy(), Agreement.FAULTY, ("digits: 2",)),
    "a number lost, excepted": (RIGHT, "请等 1 分钟。", True, EXCEPTED, Agreement.EXCEPTED, ("digits: 2",)),
    "far, excepted for digits only": (RIGHT, "12 只猫在睡觉呢", True, EXCEPTED, Agreement.FAR, ()),
    "no more wrong than what was approved": (MISSED, "请等一两分钟吧。", True, Policy(), Agreement.BY_PHENOMENA, ()),
    "a known fault": (WRONG, "请等 1 分钟。", True, Policy(), Agreement.KNOWN_FAULT, ()),
    "a known fault, corrected": (WRONG, "请等 1 或 2 分钟。", True, Policy(), Agreement.IMPROVED, ()),
    "a known fault, corrected otherwise": (WRONG, "等上 1 至 2 分钟。", True, Policy(), Agreement.IMPROVED, ()),
    "a known fault, wrong otherwise": (WRONG, "等。", True, Policy(), Agreement.OTHER_WORDS, ("digits: 1, 2",)),
}


@pytest.mark.parametrize("case", AGREEMENTS)
def test_a_candidates_translation_is(case):
    entry, text, exact, policy, agreement, slots = AGREEMENTS[case]
    found = judge_translation(entry, text, policy, digits, exact=exact, today=date(2026, 12, 1))
    assert (found.agreement, found.slots) == (agreement, slots)


# --- a candidate --------------------------------------------------------------------------------------------------


def test_other_weights_are_a_candidate_and_get_the_lock_through_a_review(golden, sentences, model_copy, tmp_path):
    model = model_copy()
    plant_retrained(model)
    before = files(golden)
    report = tmp_path / "report"
    done = judge_golden(golden, sentences, "--model", model, "--artifact-cache", tmp_path / "cache", report=report)
    assert done.code == ExitCode.INCOMPLETE, done.output
    finding = findings(report)["translations agree with the golden"]
    assert finding["verdict"] == "pass"
    assert "a candidate, other weights than the lock's" in text_of(finding)
    assert files(golden) == before
    (proposal,) = report.glob("*/golden-proposal.json")
    made = decisions(tmp_path / "d.jsonl", ("lock", "accept", "retrained on more numbers"))
    assert review(golden, "--proposal", proposal, "--decisions", made).code == ExitCode.GOOD
    lock = json.loads((golden / LOCK).read_text(encoding="utf-8"))
    assert lock["weights_sha256"] != json.loads(before[LOCK])["weights_sha256"]
    assert lock["reason"] == "retrained on more numbers"
    assert files(golden)[TRANSLATIONS] == before[TRANSLATIONS]
    done = judge_golden(
        golden, sentences, "--model", model, "--artifact-cache", tmp_path / "cache", report=tmp_path / "again"
    )
    shutil.rmtree(tmp_path / "cache")
    assert "the lock's own weights" in text_of(findings(tmp_path / "again")["translations agree with the golden"])


# --- proposals ----------------------------------------------------------------------------------------------------


def propose(golden: Path, sentences: Path, place: Path) -> dict:
    """Propose beside the golden, and read the proposal."""
    done = judge_golden(golden, sentences, "--golden-propose", report=place / "propose")
    assert done.code == ExitCode.INCOMPLETE, done.output
    return json.loads((golden / PROPOSAL).read_text(encoding="utf-8"))


def test_two_proposals_at_once_leave_one_whole_proposal_and_the_golden_as_it_was(golden, sentences, tmp_path):
    before = files(golden)
    command = ["-m", "pytest", "suites/golden", "--golden", golden, "--sentences", sentences, "--golden-propose"]
    common = [*ONE_SUBJECT, "-p", "no:cacheprovider", "--report"]
    runs = [start(*command, *common, tmp_path / f"report-{i}") for i in range(2)]
    for running in runs:
        stdout, stderr = running.communicate(timeout=240)
        assert running.returncode == ExitCode.INCOMPLETE, (stdout + stderr).decode()
    assert len(json.loads((golden / PROPOSAL).read_text(encoding="utf-8"))["entries"]) == len(SOURCES)
    assert files(golden) == before
    assert not list(golden.glob(".*.partial"))


# Writes a proposal, and is killed when the new file is there but not yet in its place.
KILLED = """
import os, signal, sys
from pathlib import Path
from harness.contract import files
from harness.golden.proposal import read_proposal, write_proposal

path = Path(sys.argv[1])
proposal = read_proposal(path)
files.os.replace = lambda *paths: os.kill(os.getpid(), signal.SIGKILL)
write_proposal(proposal, path)
"""


def test_a_kill_in_the_middle_of_a_proposal_leaves_everything_as_it_was(golden, sentences, tmp_path):
    propose(golden, sentences, tmp_path)
    before, proposed = files(golden), (golden / PROPOSAL).read_bytes()
    assert run("-c", KILLED, golden / PROPOSAL).code == -signal.SIGKILL
    assert (files(golden), (golden / PROPOSAL).read_bytes()) == (before, proposed)
    assert list(golden.glob(".*.partial"))
    propose(golden, sentences, tmp_path)
    assert not list(golden.glob(".*.partial"))
    assert (golden / PROPOSAL).read_bytes() == proposed


@pytest.mark.parametrize("seconds", [2, 5])
def test_a_run_killed_at_any_time_leaves_the_golden_and_no_half_proposal(seconds, golden, sentences, tmp_path):
    before = files(golden)
    running = start(
        "-m", "pytest", "suites/golden", "--golden", golden, "--sentences", sentences, "--golden-propose",
        *ONE_SUBJECT, "-p", "no:cacheprovider", "--report", tmp_path / "report",
    )  # fmt: skip
    time.sleep(seconds)
    os.killpg(running.pid, signal.SIGKILL)
    running.communicate()
    assert files(golden) == before
    written = [json.loads(path.read_text(encoding="utf-8")) for path in golden.glob(PROPOSAL)]
    assert [len(proposal["entries"]) for proposal in written] in ([], [len(SOURCES)])


# --- review -------------------------------------------------------------------------------------------------------


@pytest.fixture
def proposed(golden, sentences, approved) -> Path:
    """A golden with a proposal that differs in one translation, written as the command writes it."""
    entries = [json.loads(line) for line in (golden / TRANSLATIONS).read_text(encoding="utf-8").splitlines()]
    lock = json.loads((golden / LOCK).read_text(encoding="utf-8"))
    data = {
        "schema": 1,
        "lock": {**{key: value for key, value in lock.items() if key != "schema"}, "entries": {}, "seal": ""},
        "entries": [
            {"id": e["id"], "source": e["source"], "translation": e["accepted"][0], "tags": []} for e in entries
        ],
    }
    data["entries"][3]["translation"] = "新的[b]译文[/b]。"
    (golden / PROPOSAL).write_text(json.dumps(data), encoding="utf-8")
    return golden


def test_review_shows_both_and_asks_until_there_is_a_reason(proposed):
    answers = "perhaps\n\naccept\n\naccept\nsame meaning, better word\n"
    done = review(proposed, stdin=answers.encode())
    assert done.code == ExitCode.GOOD, done.output
    assert "1 of 1: pump-3 (changed)" in done.stdout
    assert "新的[b]译文[/b]。" in done.stdout
    assert "a reason is needed" in done.stdout and "'perhaps' is none of accept, replace" in done.words
    entry = json.loads((proposed / TRANSLATIONS).read_text(encoding="utf-8").splitlines()[3])
    assert entry["accepted"][0] == "新的[b]译文[/b]。" and len(entry["accepted"]) == 2
    assert entry["judgement"] == "same meaning, better word"
    assert not (proposed / PROPOSAL).exists()


@pytest.mark.parametrize("answers", ["", "quit\n", "skip\n"])
def test_a_review_that_is_left_changes_nothing(answers, proposed):
    before = files(proposed)
    done = review(proposed, stdin=answers.encode())
    assert done.code == ExitCode.INCOMPLETE, done.output
    assert files(proposed) == before
    assert (proposed / PROPOSAL).exists()


def test_a_source_that_stands_twice_is_offered_once(proposed):
    data = json.loads((proposed / PROPOSAL).read_text(encoding="utf-8"))
    new = {"source": "It is late.", "translation": "晚了。", "tags": []}
    data["entries"] = [*data["entries"], {"id": "late-1", **new}, {"id": "late-2", **new}]
    (proposed / PROPOSAL).write_text(json.dumps(data), encoding="utf-8")
    assert [item.id for item in items(GoldenFolder(proposed).golden(), read_proposal(proposed / PROPOSAL))] == [
        "pump-3",
        "late-1",
    ]


# decisions -> what the one line must say
REFUSED = {
    "an id with nothing to decide": (('{"id": "pump-0", "decision": "accept", "reason": "r"}',), "'pump-0'"),
    "no reason": (('{"id": "pump-3", "decision": "accept", "reason": " "}',), "pump-3: a reason is needed"),
    "an unknown decision": (('{"id": "pump-3", "decision": "bless", "reason": "r"}',), "'bless' is none of accept"),
    "an unknown key": (('{"id": "pump-3", "decision": "accept", "because": "r"}',), "unknown key `because`"),
    "decided twice": (('{"id": "pump-3", "decision": "accept", "reason": "r"}',) * 2, "pump-3 is decided twice"),
    "no JSON": (("accept everything",), "Expecting value"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_a_decisions_file_is_refused_with(case, proposed, tmp_path):
    lines, words = REFUSED[case]
    (tmp_path / "d.jsonl").write_text("\n".join(lines), encoding="utf-8")
    before = files(proposed)
    done = review(proposed, "--decisions", tmp_path / "d.jsonl")
    assert (done.code, done.stdout) == (ExitCode.USAGE, "")
    assert words in done.stderr and len(done.stderr.splitlines()) == 1
    assert files(proposed) == before


def test_review_is_refused_in_ci(proposed):
    before = files(proposed)
    done = review(proposed, ci="true")
    assert (done.code, done.stdout) == (ExitCode.USAGE, "")
    assert len(done.stderr.splitlines()) == 1
    assert "CI is set, and goldens are approved by people" in done.stderr
    assert files(proposed) == before


def test_review_without_a_proposal_says_how_to_get_one(golden):
    done = review(golden)
    assert done.code == ExitCode.USAGE
    assert "pytest suites/golden --golden-propose" in done.stderr


def test_an_edit_by_hand_is_shown_in_the_review_and_stays_a_failure_until_accepted(proposed, tmp_path):
    plant_translation_edited(proposed)
    edit_entry(proposed, 1, judgement="rewritten")
    done = review(proposed, "--decisions", decisions(tmp_path / "d.jsonl", ("pump-0", "accept", "my correction")))
    assert done.code == ExitCode.INCOMPLETE, done.output
    assert "pump-1 (edited)" in done.stdout
    after = GoldenFolder(proposed).golden()
    assert [entry.id for entry in after.entries if edit_of(entry, after.lock)] == ["pump-1"]
