"""The phenomena checks, held against labelled pairs, sound references, and a command line."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from harness.checks.phenomena import check_pair

ROOT = Path(__file__).resolve().parents[1]
# Two sets by two writers; the second was first seen by the checks when they were done (meta_tests/phenomena/README.md).
PAIRS = ROOT / "meta_tests" / "phenomena"
PHENOMENA = sorted(path.stem for path in PAIRS.glob("*.jsonl"))
# Targets of the checks, written before they were: of every phenomenon's faults, and of sound translations.
PRECISION, RECALL, FALSE_ALARMS_IN_2000 = 0.98, 0.95, 1


def read(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def labelled(phenomenon: str) -> list[dict]:
    return read(PAIRS / f"{phenomenon}.jsonl") + read(PAIRS / "second" / f"{phenomenon}.jsonl")


def verdict(entry: dict) -> str:
    return check_pair(entry["source"], entry["translation"])[entry["phenomenon"]].verdict


@pytest.mark.parametrize("phenomenon", PHENOMENA)
def test_faults_of_the_labelled_pairs_are_found_and_no_others(phenomenon):
    entries = labelled(phenomenon)
    called = {entry["id"] for entry in entries if verdict(entry) == "fault"}
    faults = {entry["id"] for entry in entries if entry["verdict"] == "fault"}
    assert len(called & faults) >= RECALL * len(faults), sorted(faults - called)
    assert len(called & faults) >= PRECISION * len(called), sorted(called - faults)


@pytest.mark.parametrize("phenomenon", PHENOMENA)
def test_verdicts_agree_with_the_labels(phenomenon):
    entries = labelled(phenomenon)
    wrong = [entry["id"] for entry in entries if verdict(entry) != entry["verdict"]]
    assert len(wrong) <= 0.05 * len(entries), wrong


@pytest.mark.parametrize("name", ["grammar-2000", "quality"])
def test_sound_references_raise_no_alarm(name):
    alarms, judged = [], 0
    for entry in read(ROOT / "fixtures" / "sentences" / f"{name}.jsonl"):
        for reference in entry.get("references") or [entry["reference"]]:
            judged += 1
            found = {n for n, v in check_pair(entry["source"], reference).items() if v.verdict == "fault"}
            alarms += [(entry["id"], reference, found)] if found else []
    assert judged > 800
    assert len(alarms) <= max(FALSE_ALARMS_IN_2000, FALSE_ALARMS_IN_2000 * judged // 2000), alarms


def command(*arguments: str, given: str = "") -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-m", "harness", "phenomena", *arguments],
        input=given,
        capture_output=True,
        text=True,
        cwd=ROOT,
    )


def test_the_command_writes_one_line_of_verdicts_per_pair():
    given = '{"id": "a", "source": "Wait 15 minutes.", "translation": "等待50分钟。"}\n'
    done = command("-", given=given)
    (line,) = done.stdout.splitlines()
    result = json.loads(line)
    assert (done.returncode, result["id"], result["numbers"]["verdict"]) == (0, "a", "fault")
    assert "15" in json.dumps(result["numbers"]["slots"], ensure_ascii=False)
    assert result["negation"] == {"verdict": "na", "slots": []}


def test_fail_makes_a_fault_an_exit_code():
    given = '{"source": "Do not open the door.", "translation": "打开门。"}\n'
    assert command("-", "--fail", given=given).returncode == 1
    assert command("-", given=given).returncode == 0


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("{not json}\n", "standard input:1: not JSON"),
        ('{"source": "Hello"}\n', "translation"),
        ('{"source": "Hello", "translation": "你好"}\n[1]\n', "standard input:2: not an object"),
        ('{"source": 1, "translation": "你好"}\n', "source"),
    ],
    ids=["no json", "no translation", "no object", "no text"],
)
def test_bad_lines_are_refused_with_their_number(given, told):
    done = command("-", given=given)
    assert done.returncode == 4
    assert told in done.stderr
    assert "Traceback" not in done.stderr
    assert len(done.stderr.strip().splitlines()) <= 3


def test_a_missing_file_is_refused():
    done = command("no-such-file.jsonl")
    assert (done.returncode, "Traceback" in done.stderr) == (4, False)
    assert "no-such-file.jsonl" in done.stderr


def test_a_glossary_of_ones_own_is_heeded(tmp_path):
    glossary = tmp_path / "own.tsv"
    glossary.write_text("Norvatek\t诺瓦泰克\n", encoding="utf-8")
    given = '{"source": "Norvatek sent the invoice.", "translation": "西门子寄来了发票。"}\n'
    done = command("-", "--glossary", str(glossary), given=given)
    assert json.loads(done.stdout)["names"]["verdict"] == "fault"
