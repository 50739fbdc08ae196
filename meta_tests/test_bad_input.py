"""Input that cannot be used: one line with what, where and what to do, exit code 4, and nothing of the user's
touched."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import onnx
import pytest
import torch
from onnx.external_data_helper import set_external_data
from safetensors.torch import load_file, save_file

from harness.contract.errors import ExitCode
from harness.contract.manifest import MANIFEST
from harness.settings import EMBEDDED_MODEL
from meta_tests.commands import Outcome, run, run_suites

# A module that asks for nothing but the start of a run: what it tests never comes to matter here.
ANY_SUITE = "suites/decoding/test_settings.py"


def snapshot(folder: Path) -> dict[str, str]:
    """Every file below a folder with the hash of its bytes."""
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def assert_one_line(outcome: Outcome, *words: str) -> None:
    """The command said what is wrong in one line of standard error, and left with the code for bad input."""
    assert "Traceback" not in outcome.output, outcome.output
    assert outcome.code == ExitCode.USAGE, outcome.output
    lines = [line for line in outcome.stderr.splitlines() if line.strip()]
    assert len(lines) == 1, outcome.stderr
    assert lines[0].lower().startswith("error: ")
    for word in words:
        assert word in lines[0], f"{word!r} is not in: {lines[0]}"


# --- artifact sets ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class BadSet:
    """A fault in a set's folder, and the words of the line that names it."""

    layout: str
    plant: Callable[[Path], None]
    words: tuple[str, ...]


def cut(name: str, keep: float):
    def plant(folder: Path) -> None:
        os.truncate(folder / name, int((folder / name).stat().st_size * keep))

    return plant


def remove(*names: str):
    def plant(folder: Path) -> None:
        for name in names:
            (folder / name).unlink()

    return plant


def empty(folder: Path) -> None:
    shutil.rmtree(folder)
    folder.mkdir()


def vanish(folder: Path) -> None:
    shutil.rmtree(folder)


def write(name: str, data: bytes):
    return lambda folder: (folder / name).write_bytes(data)


def manifest(change: Callable[[dict], object]):
    """Edit the manifest."""

    def plant(folder: Path) -> None:
        data = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        change(data)
        (folder / MANIFEST).write_text(json.dumps(data), encoding="utf-8")

    return plant


def foreign(*names: str):
    """Make the set one without a manifest, but with the model's own configs, and without some files."""

    def plant(folder: Path) -> None:
        for name in ("config.json", "generation_config.json"):
            shutil.copyfile(EMBEDDED_MODEL / name, folder / name)
        remove(MANIFEST, *names)(folder)

    return plant


def whole_generate(folder: Path) -> None:
    """One graph with the loop inside, as some exporters of generate() leave it."""
    foreign("encoder.onnx")(folder)
    (folder / "decoder.onnx").rename(folder / "model.onnx")


def external(location: str, *, written: float = 1.0):
    """Move the encoder's weights to a data file, of which a part is written; where it is said to lie is `location`."""

    def plant(folder: Path) -> None:
        model = onnx.load(str(folder / "encoder.onnx"))
        tensor = max(model.graph.initializer, key=lambda tensor: len(tensor.raw_data))
        data = tensor.raw_data
        set_external_data(tensor, location, offset=0, length=len(data))
        tensor.ClearField("raw_data")
        (folder / "encoder.onnx").write_bytes(model.SerializeToString())
        if written:
            (folder / location).resolve().write_bytes(data[: int(len(data) * written)])

    return plant


def other_bytes(folder: Path) -> None:
    path = folder / "decoder.onnx"
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(bytes(data))


BAD_SETS = {
    "a folder that is not there": BadSet("compact", vanish, ("no such folder",)),
    "an empty folder": BadSet("compact", empty, ("no .onnx file inside", "Give a folder")),
    "a graph cut in half": BadSet("compact", cut("decoder.onnx", 0.5), ("decoder.onnx", "truncated", "again")),
    "a graph that misses its end": BadSet("compact", cut("encoder.onnx", 0.9999), ("encoder.onnx", "truncated")),
    "an empty graph file": BadSet("compact", cut("decoder.onnx", 0), ("decoder.onnx", "not an ONNX file")),
    "a web page in place of a graph": BadSet("compact", write("encoder.onnx", b"<html>"), ("not an ONNX file",)),
    "external data missing": BadSet("compact", external("w.data", written=0), ("encoder.onnx", "'w.data' is missing")),
    "external data cut": BadSet("compact", external("w.data", written=0.5), ("'w.data' has", "are needed")),
    "external data one folder up": BadSet("compact", external("../w.data"), ("'../w.data' lies outside", "Keep")),
    "external data elsewhere": BadSet("compact", external("/dev/zero", written=0), ("'/dev/zero' lies outside",)),
    "a graph with another byte": BadSet("compact", other_bytes, ("not the one that was exported", "decoder.onnx")),
    "a graph of the set missing": BadSet("pair", remove("decoder_step.onnx"), ("decoder_step.onnx is listed",)),
    "the tokenizer missing": BadSet("compact", remove("vocab.json"), ("vocab.json is listed but not there",)),
    "a manifest that is not JSON": BadSet("compact", write(MANIFEST, b"{"), ("manifest.json", "not JSON (line 1")),
    "a manifest of another schema": BadSet(
        "compact", manifest(lambda m: m.update(schema=2)), ("schema 2, expected 1",)
    ),
    "another number of layers": BadSet(
        "compact", manifest(lambda m: m["dims"].update(decoder_layers=1)), ("do not follow", "manifest.json")
    ),
    "another layout": BadSet("compact", manifest(lambda m: m.update(layout="single")), ("do not follow", "Export")),
    "a layout that nobody knows": BadSet("compact", manifest(lambda m: m.update(layout="x")), ("unknown layout 'x'",)),
    "a field missing": BadSet("compact", manifest(lambda m: m.pop("tensors")), ("field 'tensors' is missing",)),
    "no manifest and no config": BadSet("pair", remove(MANIFEST), ("neither manifest.json nor config.json",)),
    "an encoder alone without a config": BadSet("compact", remove(MANIFEST, "decoder.onnx"), ("only an encoder",)),
    "no step decoder": BadSet("pair", foreign("decoder_step.onnx"), ("decoder_init.onnx has no partner",)),
    "no first decoder": BadSet("pair", foreign("decoder_init.onnx"), ("decoder_step.onnx has no partner",)),
    "an encoder alone": BadSet("compact", foreign("decoder.onnx"), ("only an encoder", "Export the decoder too")),
    "a decoder alone": BadSet("pair", foreign("encoder.onnx"), ("no encoder", "decoder_step.onnx")),
    "a whole generate() in one graph": BadSet(
        "compact", whole_generate, ("model.onnx is the only graph", "generate()")
    ),
    "no tokenizer elsewhere": BadSet("pair", foreign("source.spm"), ("source.spm",)),
    "a config that is not JSON": BadSet("pair", lambda f: (foreign()(f), write("config.json", b"{")(f)), ("not JSON",)),
    "a config without sizes": BadSet("pair", lambda f: (foreign()(f), write("config.json", b"{}")(f)), ("config",)),
    "a config that is a list": BadSet("pair", lambda f: (foreign()(f), write("config.json", b"[]")(f)), ("a list",)),
}


@pytest.mark.parametrize("case", BAD_SETS)
def test_translate_refuses(case, set_copy):
    bad = BAD_SETS[case]
    folder = set_copy(bad.layout)
    bad.plant(folder)
    before = snapshot(folder.parent)
    outcome = run("-m", "harness", "translate", folder, "Thank you.")
    assert_one_line(outcome, folder.name, *bad.words)
    assert outcome.stdout == ""
    assert snapshot(folder.parent) == before


# The same, through pytest: fault -> further options.
BAD_SETS_FOR_THE_SUITES = {
    "an empty folder": (),
    "a graph cut in half": ("-n", "2"),
    "external data one folder up": (),
    "another number of layers": (),
    "a whole generate() in one graph": (),
}


@pytest.mark.parametrize("case", BAD_SETS_FOR_THE_SUITES)
def test_the_suites_refuse(case, set_copy, tmp_path):
    bad = BAD_SETS[case]
    folder = set_copy(bad.layout)
    bad.plant(folder)
    before = snapshot(folder.parent)
    workers = BAD_SETS_FOR_THE_SUITES[case]
    outcome = run_suites(ANY_SUITE, "--artifacts", folder, *workers, report=tmp_path / "reports")
    assert_one_line(outcome, folder.name, *bad.words)
    assert snapshot(folder.parent) == before


def test_a_set_of_another_model_is_refused(set_copy, tmp_path):
    folder = set_copy("compact")
    manifest(lambda data: data["model"].update(weights_sha256="f" * 64))(folder)
    outcome = run_suites(ANY_SUITE, "--artifacts", folder, report=tmp_path / "reports")
    assert_one_line(outcome, "made from weights ffffffffffff, not", "--model")


# --- models ----------------------------------------------------------------------------------------------------------


class Planted:
    """Runs a command when it is unpickled."""

    def __init__(self, command: str) -> None:
        self.command = command

    def __reduce__(self):
        return os.system, (self.command,)


EXECUTED = "executed"


def pickled(folder: Path) -> None:
    """Weights in a pickle that touches a file beside the model."""
    (folder / "model.safetensors").unlink()
    weights = load_file(EMBEDDED_MODEL / "model.safetensors")
    torch.save({**weights, "planted": Planted(f"touch {folder.parent / EXECUTED}")}, folder / "pytorch_model.bin")


def cut_pickle(folder: Path) -> None:
    (folder / "model.safetensors").unlink()
    torch.save(load_file(EMBEDDED_MODEL / "model.safetensors"), folder / "pytorch_model.bin")
    cut("pytorch_model.bin", 0.5)(folder)


def weights(change: Callable[[dict], object]):
    """Edit the tensors of the checkpoint."""

    def plant(folder: Path) -> None:
        tensors = load_file(folder / "model.safetensors")
        change(tensors)
        save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})

    return plant


def config(**changes):
    def plant(folder: Path) -> None:
        data = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        (folder / "config.json").write_text(json.dumps({**data, **changes}), encoding="utf-8")

    return plant


def generation(**changes):
    def plant(folder: Path) -> None:
        path = folder / "generation_config.json"
        path.write_text(json.dumps({**json.loads(path.read_text(encoding="utf-8")), **changes}), encoding="utf-8")

    return plant


BIAS, WEIGHT = "final_logits_bias", "model.encoder.layers.0.fc1.weight"

# fault -> words of the line that names it
BAD_MODELS = {
    "a folder that is not there": (vanish, ("no such model folder", "hub id")),
    "an empty folder": (empty, ("the folder is empty",)),
    "no config": (remove("config.json"), ("config.json", "no such file")),
    "a config without a model type": (config(model_type=None), ("no model_type",)),
    "no tokenizer": (remove("source.spm", "target.spm", "vocab.json", "tokenizer_config.json"), ("Copy",)),
    "a tokenizer file that is a Git LFS pointer": (write("source.spm", b"version https://git-lfs"), ("source.spm",)),
    "an unknown architecture": (config(model_type="t5"), ("architecture 't5' is not supported", "marian")),
    "no weights": (remove("model.safetensors"), ("no weights", "model.safetensors")),
    "weights cut": (cut("model.safetensors", 0.7), ("model.safetensors", "truncated", "bytes")),
    "weights that are text": (write("model.safetensors", b"version https://git-lfs"), ("safetensors",)),
    "a pickle that runs a command": (pickled, ("pytorch_model.bin", "unrestricted pickle", "safetensors")),
    "a pickle cut in half": (cut_pickle, ("pytorch_model.bin", "cannot be read")),
    "a tensor missing": (weights(lambda t: t.pop(WEIGHT)), ("1 tensors are missing", WEIGHT)),
    "the logits bias missing": (weights(lambda t: t.pop(BIAS)), ("1 tensors are missing", BIAS)),
    "a tensor of another shape": (weights(lambda t: t.update({WEIGHT: t[WEIGHT][1:].clone()})), ("config.json",)),
    "more layers than weights": (config(decoder_layers=9), ("tensors are missing", "decoder.layers")),
    "a setting nobody reproduces": (generation(no_repeat_ngram_size=3), ("no_repeat_ngram_size is 3", "Remove")),
}


@pytest.mark.parametrize("case", BAD_MODELS)
def test_the_exporter_refuses(case, model_copy, tmp_path):
    plant, words = BAD_MODELS[case]
    folder = model_copy()
    plant(folder)
    before = snapshot(folder.parent)
    outcome = run("-m", "exporters", folder, "--out", tmp_path / "out")
    assert_one_line(outcome, *words)
    assert snapshot(folder.parent) == before
    assert not [path for path in tmp_path.iterdir() if "out" in path.name]


# The same, before the first test of a run.
BAD_MODELS_FOR_THE_SUITES = ("an unknown architecture", "a pickle that runs a command", "the logits bias missing")


@pytest.mark.parametrize("case", BAD_MODELS_FOR_THE_SUITES)
def test_the_suites_refuse_the_model(case, model_copy, tmp_path):
    plant, words = BAD_MODELS[case]
    folder = model_copy()
    plant(folder)
    before = snapshot(folder.parent)
    assert_one_line(run_suites(ANY_SUITE, "--model", folder, report=tmp_path / "reports"), *words)
    assert snapshot(folder.parent) == before


def test_a_baseline_does_not_run_what_a_pickle_holds(model_copy, tmp_path):
    folder = model_copy()
    pickled(folder)
    (tmp_path / "s.txt").write_text("Thank you.\n")
    outcome = run("-m", "harness", "baseline", folder, "--sentences", tmp_path / "s.txt", "--out", tmp_path / "b.json")
    assert_one_line(outcome, "pytorch_model.bin", "unrestricted pickle")
    assert not (folder.parent / EXECUTED).exists()
    assert not (tmp_path / "b.json").exists()


def test_a_hub_id_without_a_network_is_refused(tmp_path):
    nowhere = {"HF_HUB_OFFLINE": "0", "HF_ENDPOINT": "http://127.0.0.1:9", "HF_HOME": str(tmp_path)}
    outcome = run("-m", "exporters", "nobody/no-such-model", "--out", tmp_path / "out", **nowhere)
    assert_one_line(outcome, "nobody/no-such-model", "neither a folder nor a model that could be fetched", "network")


def test_the_suites_refuse_a_hub_id_without_a_network(tmp_path):
    outcome = run_suites(ANY_SUITE, "--model", "nobody/no-such-model", report=tmp_path / "r", HF_HOME=str(tmp_path))
    assert_one_line(outcome, "nobody/no-such-model", "neither a folder nor a model", "network")


# --- options ---------------------------------------------------------------------------------------------------------


# options of translate, standard input -> words
BAD_TRANSLATIONS = {
    "nine beams": (("--beams", "9", "Hello."), b"", ("num_beams is 9", "1 and 8")),
    "no beams": (("--beams", "0", "Hello."), b"", ("num_beams is 0",)),
    "no sentences at a time": (("--batch-size", "0", "Hello."), b"", ("--batch-size", "1 or more")),
    "a length beyond the positions": (("--max-length", "99999", "Hello."), b"", ("--max-length", "99999 tokens")),
    "a length of nothing": (("--max-length", "1", "Hello."), b"", ("max_length is 1",)),
    "an unknown provider": (("--providers", "Abacus", "Hello."), b"", ("no Abacus", "Available: ")),
    "a source too long": (("word " * 2000,), b"", ("tokens, the model takes", "--truncate")),
    "bytes that are not UTF-8": ((), b"Hello.\nThank you.\nB\xe4h.\n", ("standard input, line 3", "not UTF-8")),
}


@pytest.mark.parametrize("case", BAD_TRANSLATIONS)
def test_translate_refuses_options(case, exported):
    options, stdin, words = BAD_TRANSLATIONS[case]
    assert_one_line(run("-m", "harness", "translate", exported("compact"), *options, stdin=stdin), *words)


# options of the exporter -> words
BAD_EXPORTS = {
    "an opset the target cannot load": (("--opset", "20", "--target-ort", "1.14"), ("opset 20", "1.14", "up to 18")),
    "an opset the exporter cannot write": (("--opset", "99"), ("opset 99", "writes 11 to")),
    "an unknown target": (("--target-ort", "0.1"), ("onnxruntime '0.1'", "1.14")),
    "a target that is a word": (("--target-ort", "newest"), ("onnxruntime 'newest'", "1.14")),
}


@pytest.mark.parametrize("case", BAD_EXPORTS)
def test_the_exporter_refuses_options(case, tmp_path):
    options, words = BAD_EXPORTS[case]
    outcome = run("-m", "exporters", EMBEDDED_MODEL, *options, "--out", tmp_path / "out")
    assert_one_line(outcome, *words)
    assert not list(tmp_path.iterdir())


def test_the_exporter_leaves_a_folder_that_is_taken(tmp_path):
    (tmp_path / "mine.txt").write_text("mine")
    before = snapshot(tmp_path)
    assert_one_line(run("-m", "exporters", EMBEDDED_MODEL, "--out", tmp_path), "already exists", str(tmp_path))
    assert snapshot(tmp_path) == before


def test_the_exporter_leaves_a_file_that_has_the_name(tmp_path):
    (tmp_path / "out").write_text("mine")
    assert_one_line(run("-m", "exporters", EMBEDDED_MODEL, "--out", tmp_path / "out"), "already exists")
    assert (tmp_path / "out").read_text() == "mine"


def test_the_exporter_refuses_a_place_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("mine")
    outcome = run("-m", "exporters", EMBEDDED_MODEL, "--out", tmp_path / "file" / "out")
    assert_one_line(outcome, "cannot be written", "Name a folder")


# arguments
UNKNOWN_OPTIONS = {
    "no command": ("-m", "harness"),
    "an unknown command": ("-m", "harness", "interpret"),
    "an unknown layout": ("-m", "exporters", "model", "--out", "out", "--layout", "triple"),
    "an unknown exporter": ("-m", "exporters", "model", "--out", "out", "--exporter", "paper"),
    "beams that are a word": ("-m", "harness", "translate", "set", "--beams", "many"),
    "no folder to write": ("-m", "exporters", "model"),
}


@pytest.mark.parametrize("case", UNKNOWN_OPTIONS)
def test_a_command_line_that_means_nothing_is_answered_with_its_usage(case):
    outcome = run(*UNKNOWN_OPTIONS[case])
    assert outcome.code == ExitCode.USAGE
    assert "Traceback" not in outcome.output
    assert outcome.stderr.startswith("usage: ")
    assert ": error: " in outcome.stderr.splitlines()[-1]


# sentence file of the baseline command -> place after the file's name, words
BAD_SENTENCES = {
    "an empty file": ("s.txt", b"", "", "no sentence inside"),
    "a line that is not UTF-8": ("s.txt", b"good\nb\xe4d\n", ":2", "not UTF-8"),
    "a line that is not JSON": ("s.jsonl", b'{"source": "a"}\n{\n', ":2", "not JSON"),
    "a sentence too long": ("s.txt", b"word " * 2000, "", "sentence line-1 has"),
}


@pytest.mark.parametrize("case", BAD_SENTENCES)
def test_the_baseline_refuses_sentences(case, tmp_path):
    name, data, place, words = BAD_SENTENCES[case]
    path = tmp_path / name
    path.write_bytes(data)
    outcome = run("-m", "harness", "baseline", EMBEDDED_MODEL, "--sentences", path, "--out", tmp_path / "out.json")
    assert_one_line(outcome, f"{path}{place}: ", words)
    assert [entry.name for entry in tmp_path.iterdir()] == [name]


def test_the_baseline_leaves_a_file_that_is_there(tmp_path):
    (tmp_path / "out.json").write_text("mine")
    outcome = run(
        "-m", "harness", "baseline", EMBEDDED_MODEL, "--sentences", "none.txt", "--out", tmp_path / "out.json"
    )
    assert_one_line(outcome, "out.json", "already exists")
    assert (tmp_path / "out.json").read_text() == "mine"


# files beside the run, its options -> words
BAD_OPTIONS = {
    "a bad line among the sentences": ({"s.jsonl": b'{"source": "a"}\n{}\n'}, ("--sentences", "s.jsonl"), ("jsonl:2",)),
    "a cache that cannot be written": ({"file": b""}, ("--artifact-cache", "file/cache"), ("cache cannot be written",)),
    "a report that cannot be written": ({"file": b""}, ("--report", "file/reports"), ("cannot be written", "--report")),
    "a baseline that is not JSON": ({"b.json": b"{"}, ("--baseline", "b.json"), ("b.json", "not JSON (line 1")),
    "a baseline with a field missing": ({"b.json": b'{"schema": 1}'}, ("--baseline", "b.json"), ("'rows' is missing",)),
    "an unknown layout": ({}, ("--layout", "compact,triple"), ("--layout", "triple", "compact, pair, single")),
    "an unknown provider": ({}, ("--providers", "CPUExecutionProvider,Abacus"), ("no Abacus", "Available: ")),
}


@pytest.mark.parametrize("case", BAD_OPTIONS)
def test_the_suites_refuse_options(case, exported, tmp_path):
    files, (option, value), words = BAD_OPTIONS[case]
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
    in_place = tmp_path / value if value.split("/")[0] in files else value
    # The run's own report folder comes first: of an option given twice pytest takes the last.
    outcome = run_suites(ANY_SUITE, "--report", tmp_path / "reports", option, in_place)
    assert_one_line(outcome, *words)
