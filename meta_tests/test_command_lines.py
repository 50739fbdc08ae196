"""The commands on good input: in an interpreter without torch, in order, with the texts that PyTorch makes."""

from __future__ import annotations

import json
import os
import shutil
import signal
import time
from pathlib import Path

import onnx
import pytest

from harness.contract.errors import ExitCode
from harness.contract.layouts import LAYOUTS
from harness.contract.manifest import MANIFEST, Manifest
from harness.settings import EMBEDDED_MODEL
from meta_tests.commands import run, start

SOURCES = (
    "Do not open the valve.",
    "Thank you.",
    "The train to Berlin leaves at 7:45 on Monday, but the bus is late again.",
    "",
    "Where is the nearest pharmacy?",
    "One.",
    "She said: 'I cannot come.' <tag> & 100 %",
)

# Raises at any import of a package that deployments do without, and says at the end which of them were there.
NO_TORCH = """
import atexit, sys

BLOCKED = ("torch", "transformers", "onnx", "huggingface_hub", "safetensors", "tokenizers", "pytest")

class Finder:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in BLOCKED:
            raise ImportError(f"{name} is not installed")

def tell():
    with open(__file__ + ".loaded", "w") as stream:
        stream.write(" ".join(sorted({name.split(".")[0] for name in sys.modules})))

sys.meta_path.insert(0, Finder())
atexit.register(tell)
"""


@pytest.fixture(scope="module")
def expected(tmp_path_factory) -> list[str]:
    """What PyTorch's generate() makes of ``SOURCES``, through the baseline command."""
    folder = tmp_path_factory.mktemp("baseline")
    lines = [json.dumps({"source": source}) for source in SOURCES]
    (folder / "s.jsonl").write_text("\n".join(lines), encoding="utf-8")
    out = folder / "baseline.json"
    done = run("-m", "harness", "baseline", EMBEDDED_MODEL, "--sentences", folder / "s.jsonl", "--out", out)
    assert (done.code, done.stderr) == (ExitCode.GOOD, "")
    return [row["text"] for row in json.loads(out.read_text(encoding="utf-8"))["rows"]]


# --- translate -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", LAYOUTS)
def test_translate_without_torch_gives_the_texts_of_generate(layout, exported, expected, tmp_path):
    folder = shutil.copytree(exported(layout), tmp_path / "deployed")
    (tmp_path / "sitecustomize.py").write_text(NO_TORCH)
    stdin = "".join(f"{source}\n" for source in SOURCES).encode()
    done = run("-m", "harness", "translate", folder, stdin=stdin, python_path=tmp_path)
    shutil.rmtree(folder)
    assert (done.code, done.stderr) == (ExitCode.GOOD, "")
    assert done.stdout.splitlines() == expected
    loaded = (tmp_path / "sitecustomize.py.loaded").read_text().split()
    assert {"onnxruntime", "sentencepiece", "numpy"} <= set(loaded)
    assert not {"torch", "transformers", "onnx", "huggingface_hub"} & set(loaded)


def test_the_import_block_of_these_tests_blocks(tmp_path):
    (tmp_path / "sitecustomize.py").write_text(NO_TORCH)
    assert "torch is not installed" in run("-c", "import torch", python_path=tmp_path).stderr


def test_lines_keep_their_order_whatever_the_batches(exported, expected):
    stdin = "\r\n".join(SOURCES * 3).encode()
    done = run("-m", "harness", "translate", exported("compact"), "--batch-size", "2", stdin=stdin)
    assert done.stdout.splitlines() == expected * 3


def test_texts_may_be_given_as_arguments(exported, expected):
    done = run("-m", "harness", "translate", exported("compact"), *SOURCES[:3])
    assert done.stdout.splitlines() == expected[:3]


# arguments, DIR for the set
PLACES = {
    "before the set": ("--beams", "4", "DIR", SOURCES[0], SOURCES[1]),
    "between the set and the texts": ("DIR", "--beams", "4", SOURCES[0], SOURCES[1]),
    "between the texts": ("DIR", SOURCES[0], "--beams", "4", SOURCES[1]),
    "behind the texts": ("DIR", SOURCES[0], SOURCES[1], "--beams", "4"),
}


@pytest.mark.parametrize("place", PLACES)
def test_options_may_stand(place, exported, expected):
    folder = exported("compact")
    done = run("-m", "harness", "translate", *(folder if word == "DIR" else word for word in PLACES[place]))
    assert (done.code, done.stdout.splitlines()) == (ExitCode.GOOD, expected[:2]), done.stderr


def test_a_closed_pipe_is_no_error(exported):
    command = start("-m", "harness", "translate", exported("compact"), *SOURCES)
    command.stdout.close()
    assert command.wait(60) == ExitCode.GOOD
    assert command.stderr.read() == b""


def test_truncate_takes_a_source_that_is_too_long(exported):
    done = run("-m", "harness", "translate", exported("compact"), "--truncate", "--beams", "1", "word " * 2000)
    assert done.code == ExitCode.GOOD
    assert len(done.stdout.splitlines()) == 1


# --- sets with other names -------------------------------------------------------------------------------------------


def split_name(direction: str, pair: int, part: str) -> str:
    return f"{direction}_{part}_{pair}"


def flat_name(direction: str, pair: int, part: str) -> str:
    return f"{direction}_{2 * pair + (part == 'value')}"


def rename_caches(path: Path, name_of) -> None:
    """Give the cache tensors of a graph the names that a hand-written export would."""
    model = onnx.load(str(path))
    for values in (model.graph.input, model.graph.output):
        caches = [value.name for value in values if value.name.startswith(("past_key_values.", "present."))]
        crossed = any(".encoder." in name for name in caches)
        renamed = {name: _other_name(name, name_of, crossed) for name in caches}
        for value in values:
            value.name = renamed.get(value.name, value.name)
        for node in model.graph.node:
            for names in (node.input, node.output):
                names[:] = [renamed.get(name, name) for name in names]
    onnx.save(model, str(path))


def _other_name(name: str, name_of, crossed: bool) -> str:
    direction, layer, attention, part = name.split(".")
    pair = 2 * int(layer) + (attention == "encoder") if crossed else int(layer)
    return name_of({"past_key_values": "past", "present": "present"}[direction], pair, part)


def as_if_made_elsewhere(folder: Path) -> None:
    (folder / MANIFEST).unlink()
    for name in ("config.json", "generation_config.json"):
        shutil.copyfile(EMBEDDED_MODEL / name, folder / name)


# layout, habit
FOREIGN = {
    "past_key_0, cross K/V among them": ("pair", split_name),
    "past_0, cross K/V among them": ("pair", flat_name),
    "past_key_0, no cross K/V": ("single", split_name),
    "past_0, no cross K/V": ("single", flat_name),
}


@pytest.mark.parametrize("case", FOREIGN)
def test_a_set_with_the_names_of_another_exporter_translates_alike(case, set_copy, expected):
    layout, name_of = FOREIGN[case]
    folder = set_copy(layout)
    as_if_made_elsewhere(folder)
    for path in folder.glob("decoder*.onnx"):
        rename_caches(path, name_of)
        assert not [i.name for i in onnx.load(str(path)).graph.input if "past_key_values" in i.name]
    done = run("-m", "harness", "translate", folder, *(source for source in SOURCES if source))
    assert (done.code, done.stderr) == (ExitCode.GOOD, "")
    assert done.stdout.splitlines() == [text for source, text in zip(SOURCES, expected) if source]


# --- help ------------------------------------------------------------------------------------------------------------


# arguments -> what the help must mention
HELP = {
    "the harness": (("-m", "harness", "--help"), ("translate", "baseline")),
    "translate": (
        ("-m", "harness", "translate", "--help"),
        ("DIR", "TEXT", "--beams", "--max-length", "--batch-size", "--truncate", "--providers"),
    ),
    "baseline": (("-m", "harness", "baseline", "--help"), ("MODEL", "--sentences", "--out", "--beams")),
    "review": (("-m", "harness", "review", "--help"), ("MODEL", "--golden", "--proposal", "--decisions")),
    "the exporter": (
        ("-m", "exporters", "--help"),
        ("MODEL", "--layout", "--exporter", "--opset", "--target-ort", "--out", *LAYOUTS),
    ),
    "the suites": (
        ("-m", "pytest", "--help", "-p", "no:cacheprovider"),
        ("--model", "--artifacts", "--layout", "--exporter", "--sentences", "--baseline", "--golden",
         "--golden-propose", "--providers",
         "--max-examples", "--nightly", "--artifact-cache", "--report"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", HELP)
def test_help_names_every_option(case):
    arguments, words = HELP[case]
    done = run(*arguments)
    assert done.code == ExitCode.GOOD
    assert [word for word in words if word not in done.stdout] == []


# --- exporters -------------------------------------------------------------------------------------------------------


def test_an_export_leaves_one_folder_whose_manifest_counts_every_tensor(tmp_path):
    out = tmp_path / "new" / "set"
    done = run("-m", "exporters", EMBEDDED_MODEL, "--layout", "pair", "--target-ort", "1.16", "--out", out)
    assert done.code == ExitCode.GOOD, done.stderr
    assert done.stdout.startswith(f"{out}: layout pair, torchscript exporter, opset ")
    assert "for onnxruntime 1.16 and newer" in done.stdout
    assert [line.split()[2] for line in done.stderr.splitlines()] == ["encoder", "decoder_init", "decoder_step"]
    assert os.listdir(out.parent) == ["set"]
    manifest = Manifest.read(out)
    assert sorted(os.listdir(out)) == sorted([*manifest.files, MANIFEST])
    for role, spec in manifest.graphs.items():
        graph = onnx.load(str(out / f"{role}.onnx")).graph
        assert [value.name for value in graph.input] == [tensor.name for tensor in spec.inputs]
        assert [value.name for value in graph.output] == [tensor.name for tensor in spec.outputs]


# signal -> exit code, last line of standard error, whether a hidden unfinished folder may stay
INTERRUPTIONS = {
    "Ctrl-C": (signal.SIGINT, ExitCode.INCOMPLETE, "error: interrupted", False),
    "kill -9": (signal.SIGKILL, -signal.SIGKILL, "exporting compact ", True),
}


@pytest.mark.parametrize("how", INTERRUPTIONS)
def test_an_interrupted_export_leaves_no_half_made_folder(how, tmp_path):
    sent, code, last_words, may_stay = INTERRUPTIONS[how]
    command = start("-m", "exporters", EMBEDDED_MODEL, "--out", tmp_path / "set")
    # As soon as it exports and has something to leave behind: later, a busy machine may have finished.
    said = command.stderr.readline()
    while not list(tmp_path.glob(".set.partial-*")):
        assert command.poll() is None, said + command.stderr.read()
        time.sleep(0.005)
    command.send_signal(sent)
    _, stderr = command.communicate(timeout=60)
    assert command.returncode == code
    assert (said + stderr).decode().splitlines()[-1].startswith(last_words)
    assert not (tmp_path / "set").exists()
    assert bool(list(tmp_path.iterdir())) == may_stay
