"""``python -m harness profile``: what was put into a graph on disk shows, with its time, where it was put."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper

from harness.contract.errors import ExitCode
from harness.report import operators
from harness.report.operators import read_trace
from meta_tests.commands import Outcome, run

PLANTED = 30


def profile(*arguments: object, tmp_path: Path) -> Outcome:
    """Run the command with its temporary folder under ``tmp_path``, and see that it leaves no trace there."""
    (tmp_path / "temporary").mkdir(exist_ok=True)
    done = run("-m", "harness", "profile", *arguments, TMPDIR=str(tmp_path / "temporary"))
    # A dot file there is onnxruntime's own, written when it is imported.
    assert [path for path in (tmp_path / "temporary").iterdir() if not path.name.startswith(".")] == []
    return done


def graphs(done: Outcome) -> dict[str, dict]:
    assert (done.code, done.stderr) == (ExitCode.GOOD, "")
    return {graph["role"]: graph for graph in json.loads(done.stdout)}


def plant_sines(path: Path) -> None:
    """Put a chain of Sin nodes beside the logits and add nothing of it to them: dear, and the model says the same."""
    model = onnx.load(path)
    for node in model.graph.node:
        node.output[:] = ["sine_0" if name == "logits" else name for name in node.output]
    for i in range(PLANTED):
        model.graph.node.append(helper.make_node("Sin", [f"sine_{i}"], [f"sine_{i + 1}"], name=f"planted/Sin_{i}"))
    model.graph.initializer.append(helper.make_tensor("nothing", TensorProto.FLOAT, [], [0.0]))
    model.graph.node.append(helper.make_node("Mul", [f"sine_{PLANTED}", "nothing"], ["nothing_of_it"]))
    model.graph.node.append(helper.make_node("Add", ["sine_0", "nothing_of_it"], ["logits"]))
    onnx.save(model, path)


def test_every_graph_is_ranked_dearest_first(exported, tmp_path):
    found = graphs(profile(exported("compact"), "--json", "--top", 5, tmp_path=tmp_path))
    assert list(found) == ["encoder", "decoder"]
    for graph in found.values():
        ms = [cost["ms"] for cost in graph["operators"]]
        assert ms == sorted(ms, reverse=True)
        assert sum(ms) == pytest.approx(graph["node_ms"], abs=0.05)
        assert sum(cost["share"] for cost in graph["operators"]) == pytest.approx(1, abs=0.01)
        assert 0 < graph["node_ms"] <= graph["run_ms"]
        assert len(graph["nodes"]) == 5
        assert all(cost["calls"] % graph["runs"] == 0 for cost in graph["operators"])
    assert found["encoder"]["runs"] == operators.ROUNDS
    assert found["decoder"]["runs"] > operators.ROUNDS
    assert "MatMul" in {cost["name"] for cost in found["decoder"]["operators"]}


def test_operators_put_into_the_decoder_are_found_there(set_copy, tmp_path):
    folder = set_copy("compact")
    plant_sines(folder / "decoder.onnx")
    found = graphs(profile(folder, "--json", "--beams", 1, tmp_path=tmp_path))
    (sine,) = [cost for cost in found["decoder"]["operators"] if cost["name"] == "Sin"]
    assert sine["calls"] == PLANTED * found["decoder"]["runs"]
    assert found["decoder"]["operators"][0]["name"] == "Sin"
    assert "Sin" not in {cost["name"] for cost in found["encoder"]["operators"]}


def test_the_table_names_operators_and_nodes_of_a_file_of_sentences(exported, tmp_path):
    (tmp_path / "s.txt").write_text("Thank you.\nOne.\n")
    done = profile(exported("compact"), "--sentences", tmp_path / "s.txt", "--top", 2, tmp_path=tmp_path)
    assert (done.code, done.stderr) == (ExitCode.GOOD, "")
    assert "encoder: 1 runs, " in done.stdout
    assert done.stdout.count("│ MatMul ") >= 2
    assert "/MatMul" in done.stdout


def test_the_time_of_a_branch_is_not_counted_twice(tmp_path):
    size = 300
    inner = helper.make_graph(
        [helper.make_node("MatMul", ["x", "x"], ["y"], name="inner/MatMul")],
        "then",
        [],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [size, size])],
    )
    other = helper.make_graph(
        [helper.make_node("Identity", ["x"], ["z"])],
        "else",
        [],
        [helper.make_tensor_value_info("z", TensorProto.FLOAT, [size, size])],
    )
    graph = helper.make_graph(
        [helper.make_node("If", ["flag"], ["out"], name="If", then_branch=inner, else_branch=other)],
        "graph",
        [
            helper.make_tensor_value_info("flag", TensorProto.BOOL, []),
            helper.make_tensor_value_info("x", TensorProto.FLOAT, [size, size]),
        ],
        [helper.make_tensor_value_info("out", TensorProto.FLOAT, [size, size])],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    options = onnxruntime.SessionOptions()
    options.enable_profiling = True
    options.profile_file_prefix = str(tmp_path / "decoder")
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    for _ in range(3):
        session.run(None, {"flag": np.array(True), "x": np.ones((size, size), np.float32)})
    costs = read_trace(Path(session.end_profiling()), "decoder")
    calls = {cost.name: cost.calls for cost in costs.operators}
    assert (calls["If"], calls["MatMul"]) == (3, 3)
    assert costs.operators[0].name == "MatMul"
    assert costs.node_ms <= costs.run_ms


def test_a_full_trace_is_refused(exported, tmp_path, monkeypatch):
    """The profiler drops what comes after a million events; a run that long takes minutes, so the limit is lowered."""
    monkeypatch.setattr(operators, "MAX_EVENTS", 200)
    with pytest.raises(operators.InputError, match="the encoder is full after 200 events"):
        operators.profile(exported("compact"), ["Thank you."])


# arguments after the set -> words of the one line
BAD_INPUT = {
    "no such sentences": (("--sentences", "nowhere.txt"), "nowhere.txt: cannot be read"),
    "too many beams": (("--beams", "9"), "num_beams is 9"),
    "no rows": (("--top", "0"), "--top: 0 rows"),
}


@pytest.mark.parametrize("case", BAD_INPUT)
def test_bad_input_is_one_line(case, exported, tmp_path):
    arguments, words = BAD_INPUT[case]
    done = profile(exported("compact"), *arguments, tmp_path=tmp_path)
    assert (done.code, done.stdout) == (ExitCode.USAGE, "")
    assert words in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_folder_without_a_set_is_one_line(tmp_path):
    done = profile(tmp_path / "nothing", tmp_path=tmp_path)
    assert done.code == ExitCode.USAGE
    assert len(done.stderr.splitlines()) == 1
