"""The quality gate: columns, corpus bounds and verdicts on made-up observations, and a planted set by its command."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import date
from pathlib import Path

import numpy as np
import pytest
from sacrebleu.metrics import BLEU, CHRF

from harness.checks.quality.columns import (
    MINIMAL_PAIRS,
    Column,
    State,
    compare_columns,
    phenomenon_findings,
)
from harness.checks.quality.corpus import Ratio, corpus_finding, corpus_ratios
from harness.checks.quality.flips import Flip, Pair, flips_finding, length_finding
from harness.contract.errors import ExitCode, InputError
from harness.contract.finding import RunVerdict, Verdict
from harness.contract.policy import Policy, PolicyException
from harness.contract.sentences import Sentence, read_sentences
from harness.report.ledger import FAILED, NOT_APPLICABLE, NOT_COVERED, PASSED, SKIPPED, Entry, Ledger
from harness.report.terminal import precision_lines
from harness.settings import EMBEDDED_MODEL
from meta_tests.commands import run, run_suites
from meta_tests.digit_checker import Place, Said, digits
from meta_tests.faults_quality import QUALITY_FAULTS, plant_digits_swapped

TODAY = date(2026, 12, 1)


# --- columns ------------------------------------------------------------------------------------------------------


# PyTorch, fp32, quantized of "Take 1 and 2" -> what it is, and the slots
STATES = {
    "all right": (("12", "12", "12"), State.SOUND, ()),
    "broken by quantization": (("12", "12", "1"), State.NEWLY_BROKEN, ("2",)),
    "broken by the export": (("12", "1", "1"), State.BROKEN_EVERYWHERE, ("2",)),
    "the model's own fault": (("1", "1", "1"), State.BROKEN_EVERYWHERE, ("2",)),
    "the model's own fault, in other words": (("1", "1y", "1x"), State.BROKEN_EVERYWHERE, ("2",)),
    "a second slot on top of the model's own": (("1", "1", "x"), State.NEWLY_BROKEN, ("1",)),
    "another slot, the model's own is right": (("1", "1", "2"), State.NEWLY_BROKEN, ("1",)),
    "fixed by chance": (("1", "1", "12"), State.NEWLY_FIXED, ("2",)),
}


@pytest.mark.parametrize("case", STATES)
def test_a_sentence_in_three_columns_is(case):
    texts, state, slots = STATES[case]
    columns = [Column(name, (text,)) for name, text in zip(("PyTorch", "fp32", "int8"), texts)]
    (cell,) = compare_columns([Sentence("a", "Take 1 and 2.")], columns, digits)
    assert (cell.state, cell.slots) == (state, slots)


def test_a_loop_is_no_news_where_there_was_another_one():
    loops = lambda source, text: {"loops": Said("fault", (Place(""),) if len(set(text)) == 1 else ())}
    (cell,) = compare_columns([Sentence("a", "A.")], [Column("fp32", ("甲甲甲",)), Column("int8", ("乙乙乙",))], loops)
    assert cell.state is State.BROKEN_EVERYWHERE


def test_the_export_is_judged_in_its_own_column():
    (cell,) = compare_columns(
        [Sentence("a", "Take 1 and 2.")], [Column("PyTorch", ("12",)), Column("fp32", ("1",))], digits
    )
    assert cell.state is State.NEWLY_BROKEN


def test_a_column_of_another_length_is_an_error():
    with pytest.raises(ValueError, match="int8 has 1 translations of 2 sentences"):
        compare_columns([Sentence("a", "1"), Sentence("b", "2")], [Column("int8", ("1",))], digits)


def test_minimal_twins_that_come_out_alike_are_newly_broken():
    twins = [Sentence("a", "Open it.", pair="b"), Sentence("b", "Do not open it.", pair="a"), Sentence("c", "Yes.")]
    cells = compare_columns(
        twins, [Column("fp32", ("打开", "别打开", "是")), Column("int8", ("打开", "打开", "是"))], digits
    )
    assert [(c.sentence.id, c.state, c.slots) for c in cells if c.phenomenon == MINIMAL_PAIRS] == [
        ("a", State.NEWLY_BROKEN, ("as b",)),
        ("b", State.NEWLY_BROKEN, ("as a",)),
    ]


def numbered(count: int, broken: int, *, critical: int = -1) -> list:
    """Findings over `count` sentences, the first `broken` of them newly broken; one may be critical."""
    sentences = [Sentence(f"s{i}", "Take 1.", critical=i == critical) for i in range(count)]
    right = Column("fp32", ("1",) * count)
    wrong = Column("int8", ("x",) * broken + ("1",) * (count - broken))
    return compare_columns(sentences, [right, wrong], digits)


# sentences, broken, critical one, policy -> verdict
POLICIES = {
    "nothing broken": ((200, 0), {}, Policy(), Verdict.PASS),
    "one of 200": ((200, 1), {}, Policy(), Verdict.PASS),
    "one of 199": ((199, 1), {}, Policy(), Verdict.FAIL),
    "one of 200, and it is critical": ((200, 1), {"critical": 0}, Policy(), Verdict.FAIL),
    "one of 200, and another is critical": ((200, 1), {"critical": 1}, Policy(), Verdict.PASS),
    "two of 200": ((200, 2), {}, Policy(), Verdict.FAIL),
    "two of 200, where the team allows 1 %": ((200, 2), {}, Policy(newly_broken=0.01), Verdict.PASS),
    "one of 10, excepted": (
        (10, 1),
        {},
        Policy(exceptions=(PolicyException("s0", "r", date(2026, 12, 1)),)),
        Verdict.KNOWN,
    ),
    "one of 10, excepted until yesterday": (
        (10, 1),
        {},
        Policy(exceptions=(PolicyException("s0", "r", date(2026, 11, 30)),)),
        Verdict.FAIL,
    ),
    "one of 10, excepted for another phenomenon": (
        (10, 1),
        {},
        Policy(exceptions=(PolicyException("s0", "r", date(2027, 1, 1), "names"),)),
        Verdict.FAIL,
    ),
}


@pytest.mark.parametrize("case", POLICIES)
def test_the_policy_decides_on(case):
    sizes, options, policy, verdict = POLICIES[case]
    cells = numbered(*sizes, **options)
    (finding,) = phenomenon_findings(cells, policy, columns=("fp32", "int8"), sentences=sizes[0], today=TODAY)
    assert finding.verdict is verdict, finding.text()


def test_a_finding_names_sentence_slot_and_both_texts():
    (finding,) = phenomenon_findings(
        numbered(20, 2, critical=1), Policy(), columns=("fp32", "int8"), sentences=20, today=TODAY
    )
    assert finding.where == "s1, critical [1] 'Take 1.'; fp32: 1; int8: x"
    assert finding.cause == "2 sentences, 1 of them critical, broke between fp32 and int8"
    assert finding.measured == 10


def test_a_phenomenon_that_no_sentence_has_does_not_apply():
    cells = compare_columns([Sentence("a", "Yes.")], [Column("fp32", ("是",)), Column("int8", ("是",))], digits)
    (finding,) = phenomenon_findings(cells, Policy(), columns=("fp32", "int8"), sentences=1, today=TODAY)
    assert finding.verdict is Verdict.NOT_APPLICABLE


# --- flips --------------------------------------------------------------------------------------------------------


def pair(left: str, right: str, margin: float | None) -> Pair:
    flip = None if margin is None else Flip(1, "a", "b", margin, 2 * margin)
    return Pair(left, "source", left, right, len(left), len(right), flip)


def test_flips_are_reported_worst_first_with_their_margins():
    pairs = [
        pair("打开阀门。", "打开阀门。", None),
        pair("请等五分钟。", "请等五分。", 0.1),
        pair("是的。", "不。", 3.0),
    ]
    finding = flips_finding(pairs, names=("fp32", "int8"), expected=3)
    assert finding.verdict is Verdict.PASS
    assert finding.measured == pytest.approx(100 / 3)
    assert "largest 3" in finding.details[0]
    assert "是的。" in finding.details[1] and "margin 3, moved by 6" in finding.details[1]


# left, right -> verdict, word of the cause
LENGTHS = {
    "same": (("一二三四", "一二三五"), Verdict.PASS, ""),
    "a quarter shorter": (("一二三四", "一二三"), Verdict.FAIL, "deletions"),
    "a quarter longer": (("一二三四", "一二三四四"), Verdict.FAIL, "repetition"),
}


@pytest.mark.parametrize("case", LENGTHS)
def test_the_length_ratio_is_judged(case):
    texts, verdict, word = LENGTHS[case]
    finding = length_finding([pair(*texts, 1.0)], Policy(), names=("fp32", "int8"), expected=1)
    assert finding.verdict is verdict
    assert word in finding.cause


# --- corpus -------------------------------------------------------------------------------------------------------


def corpus(count: int, noise: float) -> tuple[list[str], list[str], list[tuple[str, ...]]]:
    """Random texts with a fifth of their characters wrong on the left, and `noise` of them more on the right."""
    random = np.random.default_rng(7)
    letters = np.array(list("请不要打开阀门火车明天早上离开医生电话水泵温度压力高低"))
    references = random.integers(0, len(letters), (count, 15))
    spoil = lambda table, share: np.where(
        random.random(table.shape) < share, random.integers(0, len(letters), table.shape), table
    )
    left = spoil(references, 0.2)
    right = spoil(left, noise)
    texts = [["".join(letters[row]) for row in table] for table in (left, right, references)]
    return texts[0], texts[1], [(text,) for text in texts[2]]


# sentences, noise -> verdicts of BLEU and chrF
CORPORA = {
    "equal, few sentences": (5, 0, {Verdict.PASS}),
    "equal": (300, 0, {Verdict.PASS}),
    "hardly worse, enough sentences": (2000, 0.001, {Verdict.PASS}),
    "hardly worse, too few sentences": (60, 0.005, {Verdict.INCONCLUSIVE}),
    "much worse": (300, 0.05, {Verdict.FAIL}),
}


@pytest.mark.parametrize("case", CORPORA)
def test_a_corpus_is(case):
    count, noise, verdicts = CORPORA[case]
    ratios = corpus_ratios(*corpus(count, noise))
    found = [corpus_finding(ratio, Policy(), names=("fp32", "int8"), expected=count) for ratio in ratios]
    assert {finding.verdict for finding in found} == verdicts, [finding.text() for finding in found]
    assert all("signature nrefs:1" in finding.details[0] for finding in found)
    assert "tok:zh" in found[0].details[0]


def test_scores_are_those_of_sacrebleu():
    left, right, references = corpus(50, 0.1)
    two = [(*own, left[0]) if i % 2 else own for i, own in enumerate(references)]  # unlike numbers of references
    streams = [[own[0] for own in two], [own[1] if len(own) > 1 else None for own in two]]
    bleu, chrf = corpus_ratios(left, right, two)
    assert bleu.right == pytest.approx(BLEU(tokenize="zh").corpus_score(right, streams).score)
    assert chrf.left == pytest.approx(CHRF().corpus_score(left, streams).score)
    assert bleu.lower < bleu.point < bleu.upper


def test_an_undecided_corpus_says_how_many_sentences_would_decide():
    ratio = Ratio("BLEU", "signature", 40.0, 39.8, lower=0.9851, upper=1.005, sentences=400)
    finding = corpus_finding(ratio, Policy(), names=("fp32", "int8"), expected=400)
    assert finding.verdict is Verdict.INCONCLUSIVE
    assert "about 1569 sentences would be needed to show that it is above 0.99" in finding.cause


def test_a_model_that_scores_nothing_is_not_judged_by_references():
    ratio = Ratio("BLEU", "signature", 0.2, 0.1, lower=0.3, upper=0.7, sentences=400)
    assert corpus_finding(ratio, Policy(), names=("a", "b"), expected=400).verdict is Verdict.NOT_APPLICABLE


def test_the_needed_number_holds_what_it_promises():
    """A corpus of the size that an undecided one asked for is decided."""
    few = next(ratio for ratio in corpus_ratios(*corpus(150, 0.003)))
    needed = few.sentences_needed(0.99)
    many = next(ratio for ratio in corpus_ratios(*corpus(2 * needed, 0.003)))
    assert (few.lower < 0.99 < few.upper, many.lower < 0.99 < many.upper) == (True, False)


# --- sentence files -----------------------------------------------------------------------------------------------


def test_a_quality_sentence_is_read_with_everything_that_is_known_of_it(tmp_path):
    path = tmp_path / "s.jsonl"
    entries = (
        {"id": "a", "source": "A.", "references": ["甲。", "乙。"], "tags": ["x"], "critical": True, "pair": "b"},
        {"id": "b", "source": "B.", "reference": "丙。", "slots": [["number", 3]], "pair": None},
    )
    path.write_text("\n".join(map(json.dumps, entries)), encoding="utf-8")
    assert read_sentences(path) == [
        Sentence("a", "A.", ("x",), ("甲。", "乙。"), True, "b"),
        Sentence("b", "B.", (), ("丙。",)),
    ]


def test_references_that_are_no_list_are_refused(tmp_path):
    (tmp_path / "s.jsonl").write_text('{"source": "A.", "references": "甲。"}', encoding="utf-8")
    with pytest.raises(InputError, match="`references` is not a list of texts"):
        read_sentences(tmp_path / "s.jsonl")


# --- verdict per precision ----------------------------------------------------------------------------------------


def entry(name: str, outcome: str = PASSED, precision: str = "", message: str = "") -> Entry:
    return Entry(f"suites/quality/test_a.py::{name}", outcome, 0.0, message=message, precision=precision)


BROKEN = {"check": "breaks no numbers", "verdict": "fail", "where": "q-1 [85]", "cause": "", "measured": None}
SOUND = {"fp32": entry("fp32", precision="fp32"), "int8": entry("int8", precision="int8"), "all": entry("all")}
HELD = replace(entry("int8", FAILED, "int8"), findings=[BROKEN])

# entries, gaps -> verdict of fp32, of int8, of the run
VERDICTS = {
    "everything passes": (SOUND, [], ("RELEASE", "RELEASE", "RELEASE")),
    "int8 fails": ({**SOUND, "int8": HELD}, [], ("RELEASE", "HOLD", "HOLD")),
    "what is about no set fails": ({**SOUND, "all": entry("all", FAILED)}, [], ("HOLD", "HOLD", "HOLD")),
    "int8 is undecided": (
        {**SOUND, "int8": entry("int8", SKIPPED, "int8", "blocked: x")},
        [],
        ("RELEASE", "INCOMPLETE", "INCOMPLETE"),
    ),
    "int8 fails in a filtered run": ({**SOUND, "int8": HELD}, ["filtered"], ("INCOMPLETE", "HOLD", "HOLD")),
}


@pytest.mark.parametrize("case", VERDICTS)
def test_every_precision_has_its_verdict_and_the_run_the_worst(case):
    entries, gaps, verdicts = VERDICTS[case]
    ledger = Ledger({}, dict(entries), list(gaps))
    written = ledger.to_json()
    found = (*(written["precisions"][name]["verdict"] for name in ("fp32", "int8")), written["verdict"])
    assert found == verdicts
    assert written["exit_code"] == RunVerdict(verdicts[-1]).exit_code
    assert [line.split(": ")[:2] for line in precision_lines(ledger)] == [["fp32", verdicts[0]], ["int8", verdicts[1]]]


def test_a_verdict_says_why_and_what_it_does_not_cover():
    message = f"{NOT_APPLICABLE}{NOT_COVERED}golden translations: nobody approved any"
    ledger = Ledger({}, {"int8": HELD, "golden": entry("golden", SKIPPED, message=message)})
    ledger.add_offer("a lock")
    (line,) = precision_lines(ledger)
    assert "breaks no numbers: q-1 [85]" in line
    assert line.endswith("not covered: golden translations: nobody approved any")
    written = ledger.to_json()
    assert written["precisions"]["int8"]["failures"] == ["quality, all layouts, breaks no numbers: q-1 [85]"]
    assert (written["not_covered"], written["offers"]) == (["golden translations: nobody approved any"], [])


def test_a_release_makes_its_offers():
    ledger = Ledger({}, dict(SOUND), offers=["a lock"])
    assert ledger.to_json()["offers"] == ["a lock"]


# --- a planted set ------------------------------------------------------------------------------------------------

ONE_SUBJECT = ("--layout", "compact", "--exporter", "torchscript")
# With the digits that are swapped, and without them: so many that the corpus scores hardly move.
TOUCHED = [38, 83, 30, 80, 35, 28, 13, 18, 23, 87]
UNTOUCHED = [number for number in range(1, 1000) if not set("38") & set(str(number))]
KEPT = 2


@pytest.fixture
def sentences(tmp_path) -> Path:
    """Sentences with numbers; the references are PyTorch's own translations, so that any change costs BLEU.

    Of those with a swapped digit, two that the model translates with their number.
    """
    plain = tmp_path / "plain.txt"
    plain.write_text("".join(f"Wait {number} minutes.\n" for number in (*TOUCHED, *UNTOUCHED)), encoding="utf-8")
    done = run("-m", "harness", "baseline", EMBEDDED_MODEL, "--sentences", plain, "--out", tmp_path / "baseline.json")
    assert done.code == ExitCode.GOOD, done.output
    rows = json.loads((tmp_path / "baseline.json").read_text(encoding="utf-8"))["rows"]
    path = tmp_path / "numbers.jsonl"
    right = [row["id"] for row, number in zip(rows, TOUCHED) if str(number) in row["text"]][:KEPT]
    lines = (
        {"id": row["id"], "source": row["source"], "reference": row["text"], "critical": row["id"] in right}
        for row in rows
        if row["id"] in right or row in rows[len(TOUCHED) :]
    )
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return path


def judge_quality(folder: Path, sentences: Path, report: Path) -> tuple[ExitCode, str, dict[str, dict]]:
    """Exit code, output, and findings by check of `pytest suites/quality` on a set."""
    done = run_suites("suites/quality", "--artifacts", folder, "--sentences", sentences, report=report)
    (path,) = report.glob("*/results.json")
    checks = json.loads(path.read_text(encoding="utf-8"))["checks"]
    return done.code, done.stdout, {finding["check"]: finding for c in checks for finding in c["findings"]}


@pytest.mark.parametrize("fault", QUALITY_FAULTS)
def test_a_word_that_is_read_as_another_holds_the_release(fault, set_copy, tmp_path):
    plant, texts, phenomenon = QUALITY_FAULTS[fault]
    path = tmp_path / "sentences.jsonl"
    rows = ({"id": f"s-{number}", "source": text, "critical": True} for number, text in enumerate(texts))
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    folder = set_copy("compact")
    plant(folder)
    code, output, found = judge_quality(folder, path, tmp_path / "planted")
    assert code == ExitCode.HOLD, output
    finding = found[f"ONNX fp32 breaks no {phenomenon} that PyTorch got right"]
    assert finding["verdict"] == "fail", output
    assert "s-" in finding["where"] and "critical" in finding["where"]


def test_numbers_that_change_hold_the_release_while_bleu_hardly_moves(set_copy, sentences, tmp_path):
    folder = set_copy("compact")
    plant_digits_swapped(folder)
    code, output, found = judge_quality(folder, sentences, tmp_path / "planted")
    assert code == ExitCode.HOLD, output
    assert "Traceback" not in output
    numbers = found["ONNX fp32 breaks no numbers that PyTorch got right"]
    assert numbers["verdict"] == "fail"
    assert "'Wait " in numbers["where"] and "[" in numbers["where"]
    scores = [finding for check, finding in found.items() if check.startswith("corpus ")]
    assert [finding["verdict"] for finding in scores] == ["pass", "pass"]
    last = output.strip().splitlines()[-2:]
    assert last[0].startswith("fp32: HOLD: ") and "breaks no numbers" in last[0] and "'Wait " in last[0]
    assert last[1].startswith("HOLD: ")
