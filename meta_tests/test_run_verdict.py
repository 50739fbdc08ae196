"""What a run concludes: RELEASE only when everything was looked at, and the exit code that says the same.

The suites are emptied by ``meta_tests.hollow``, so that runs take seconds; one test is made to end as wanted.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from harness.contract.errors import ExitCode
from meta_tests.commands import Outcome, run_suites

ONE_TEST = "test_the_oldest_target_runtime_has_what_every_file_needs"
ITS_FILE = "suites/export/test_runtime_support.py"
ITS_ID = f"{ITS_FILE}::{ONE_TEST}[compact-by-torchscript]"
ONE_SUBJECT = ("--layout", "compact", "--exporter", "torchscript")


def run_hollow(*arguments: object, report: Path, end: str = "", which: str = ONE_TEST) -> Outcome:
    """Run emptied suites on one subject; `which` ends as `end` says."""
    variables = {"HOLLOW": which, "HOLLOW_END": end} if end else {}
    return run_suites("-p", "meta_tests.hollow", *arguments, *ONE_SUBJECT, report=report, **variables)


def results(report: Path) -> dict:
    (path,) = report.glob("*/results.json")
    return json.loads(path.read_text(encoding="utf-8"))


# arguments, how ONE_TEST ends -> exit code, words of the verdict and of its reasons
RUNS = {
    "every suite, one layout": (("suites",), "", ExitCode.GOOD, ("RELEASE: ",)),
    "a test that does not apply": (("suites",), "not applicable", ExitCode.GOOD, ("RELEASE: ",)),
    "a test that is skipped": (("suites",), "skip", ExitCode.INCOMPLETE, ("INCOMPLETE: ", ONE_TEST, "planted skip")),
    "a failure, the rest left out": (
        ("suites", "-x"),
        "fail",
        ExitCode.HOLD,
        ("HOLD: 1 of ", "also: ", "tests did not run"),
    ),
    "a failure in a filtered run": (
        ("suites", "-k", "runtime_support"),
        "fail",
        ExitCode.HOLD,
        ("HOLD: 1 of 2", "also: filtered by keyword"),
    ),
    "a filter by name": (("suites", "-k", "not batch"), "", ExitCode.INCOMPLETE, ("INCOMPLETE: filtered by keyword",)),
    "one test left out": (
        ("suites", "--deselect", ITS_ID),
        "",
        ExitCode.INCOMPLETE,
        ("INCOMPLETE: filtered by deselect",),
    ),
    "one file left out": (
        ("suites", "--ignore", ITS_FILE),
        "",
        ExitCode.INCOMPLETE,
        ("INCOMPLETE: filtered by ignore", f"suite files were not run: {ITS_FILE}"),
    ),
    "one file": ((ITS_FILE,), "", ExitCode.INCOMPLETE, ("INCOMPLETE: ", "suite files were not run: suites/decoding/")),
    "one test": ((ITS_ID,), "", ExitCode.INCOMPLETE, ("INCOMPLETE: single tests were named", "were not run")),
    "tests set up and not run": (("suites", "--setup-only"), "", ExitCode.INCOMPLETE, ("INCOMPLETE: ", "to its end")),
    "an interrupted run": (
        ("suites",),
        "interrupt",
        ExitCode.INCOMPLETE,
        ("INCOMPLETE: ", "tests did not run", "the run was interrupted"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", RUNS)
def test_the_verdict_on(case, tmp_path):
    arguments, end, code, words = RUNS[case]
    outcome = run_hollow(*arguments, report=tmp_path, end=end)
    assert outcome.code == code, outcome.output
    assert [word for word in words if word not in outcome.stdout] == [], outcome.stdout
    last = outcome.stdout.strip().splitlines()[-1]
    written = results(tmp_path)
    assert last.startswith(words[0])
    assert last.startswith(f"{written['verdict']}: {written['reasons'][0]}")
    assert written["exit_code"] == code


# how the worker goes -> what is run
LOST_WORKERS = {
    "kill": ("suites", "-n", "2"),
    "leave": (ITS_FILE, "-n", "1", "--max-worker-restart", "0"),
}


@pytest.mark.parametrize("end", LOST_WORKERS)
def test_a_run_that_lost_a_worker_is_incomplete(end, tmp_path):
    outcome = run_hollow(*LOST_WORKERS[end], report=tmp_path, end=end)
    assert outcome.code == ExitCode.INCOMPLETE, outcome.output
    assert "RELEASE" not in outcome.output
    assert "INCOMPLETE: a worker was lost" in outcome.stdout.strip().splitlines()[-1]
    written = results(tmp_path)
    assert f"a worker was lost in {ITS_ID}" in written["reasons"]
    assert not [check for check in written["checks"] if check["id"] == ITS_ID and check["verdict"] == "pass"]


# further options
BROKEN = {"in one process": (), "in a worker": ("-n", "1")}


@pytest.mark.parametrize("where", BROKEN)
def test_an_internal_error_is_no_verdict(where, tmp_path):
    outcome = run_hollow(ITS_FILE, *BROKEN[where], report=tmp_path, end="break a hook")
    assert outcome.code == ExitCode.INTERNAL, outcome.output
    assert "planted in a hook" in outcome.output
    assert "RELEASE" not in outcome.output


def test_a_failing_check_is_held_with_its_finding_in_the_report(set_copy, tmp_path):
    folder = set_copy("compact")
    with (folder / "vocab.json").open("ab") as stream:
        stream.write(b"\n")
    outcome = run_suites("suites/export/test_files.py", "--artifacts", folder, report=tmp_path / "reports")
    assert outcome.code == ExitCode.HOLD, outcome.output
    assert "Traceback" not in outcome.output
    last = outcome.stdout.strip().splitlines()[-1]
    assert last.startswith("HOLD: 1 of ")
    written = results(tmp_path / "reports")
    (failed,) = [check for check in written["checks"] if check["verdict"] == "fail"]
    assert failed["id"].startswith("suites/export/test_files.py::test_files_are_those_of_the_manifest")
    (finding,) = [finding for finding in failed["findings"] if finding["verdict"] == "fail"]
    assert "vocab.json" in finding["where"] + finding["cause"] + " ".join(finding["details"])
    assert finding["action"]
    assert f"cause: export, compact-by-torchscript: {finding['check']}" in outcome.stdout
    assert list((tmp_path / "reports").glob("*/junit.xml"))
