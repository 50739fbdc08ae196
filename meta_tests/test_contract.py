"""Unit tests of ``harness/contract``: findings, errors, sentences, layouts and the manifest."""

from __future__ import annotations

import json
import math
import pickle

import pytest

from harness.contract.errors import ExitCode, InputError
from harness.contract.finding import Finding, RunVerdict, Verdict, with_count
from harness.contract.generation import GenerationSettings
from harness.contract.known_errors import KNOWN_ERRORS, explain, recognise
from harness.contract.layouts import LAYOUTS, ModelDims, past_of_present, present_names
from harness.contract.manifest import MANIFEST, FileRecord, Manifest
from harness.contract.sentences import Sentence, read_sentences

DIMS = ModelDims(
    d_model=16,
    encoder_layers=2,
    decoder_layers=3,
    encoder_heads=2,
    decoder_heads=4,
    encoder_ffn=32,
    decoder_ffn=24,
    vocab_size=50,
    source_vocab_size=60,
    max_source_positions=64,
    max_target_positions=48,
)


# --- errors ----------------------------------------------------------------------------------------------------------


def test_an_input_error_is_one_line_of_where_what_and_action():
    error = InputError(what="two\nlines", where="file.txt", action="Write\n  it again.")
    assert str(error) == "file.txt: two lines. Write it again."


def test_an_input_error_survives_the_way_from_a_worker():
    error = pickle.loads(pickle.dumps(InputError(what="what", where="where", action="Act.")))
    assert (error.what, error.where, error.action) == ("what", "where", "Act.")


def test_exit_codes_are_those_of_the_readme():
    assert {code.name: int(code) for code in ExitCode} == {
        "GOOD": 0,
        "HOLD": 1,
        "INCOMPLETE": 3,
        "USAGE": 4,
        "INTERNAL": 5,
    }
    assert [verdict.exit_code for verdict in RunVerdict] == [ExitCode.GOOD, ExitCode.HOLD, ExitCode.INCOMPLETE]


# An error text as a library raises it -> words of the cause.
LIBRARY_TEXTS = {
    "an opset too new": ("Opset 23 is under development and support for this is limited. The operator schemas and or "
                         "other functionality may change before next ONNX release, current official support for domain "
                         "ai.onnx is till opset 19.", "opset 23, this onnxruntime guarantees up to 19"),
    "an IR too new": ("Unsupported model IR version: 11, max supported IR version: 9", "IR version 11"),
    "no kernel": (
        "Could not find an implementation for LayerNormalization(17) node",
        "no kernel for LayerNormalization",
    ),
    "a full disk": ("OSError: [Errno 28] No space left on device: '/x'", "the disk is full"),
}  # fmt: skip


@pytest.mark.parametrize("case", LIBRARY_TEXTS)
def test_an_error_of_a_library_is_explained(case):
    text, cause = LIBRARY_TEXTS[case]
    with pytest.raises(InputError, match="somewhere: ") as caught, explain(where="somewhere"):
        raise RuntimeError(text)
    assert cause in caught.value.what
    assert caught.value.action


def test_an_error_that_nobody_knows_is_left_alone():
    assert recognise("the moon is in the wrong house") is None
    with pytest.raises(RuntimeError, match="moon"), explain(where="x"):
        raise RuntimeError("the moon is in the wrong house")


def test_every_known_error_has_a_remedy_that_is_a_sentence():
    assert all(known.remedy.strip().endswith(".") or known.remedy.startswith("pip ") for known in KNOWN_ERRORS)


# --- findings --------------------------------------------------------------------------------------------------------


def finding(**changes) -> Finding:
    return Finding(**{"check": "a check", "verdict": Verdict.PASS, **changes})


def test_a_finding_that_compared_everything_stays_as_it_is():
    whole = finding(compared=3, expected=3)
    assert with_count(whole) is whole


def test_a_finding_without_a_count_stays_as_it_is():
    assert not with_count(finding()).failed


# compared, expected
MISCOUNTS = {"too few": (2, 3), "too many": (4, 3), "none promised": (1, None)}


@pytest.mark.parametrize("case", MISCOUNTS)
def test_another_number_than_promised_fails(case):
    compared, expected = MISCOUNTS[case]
    judged = with_count(finding(compared=compared, expected=expected))
    assert judged.failed
    assert str(compared) in judged.cause
    assert judged.action


def test_a_miscount_keeps_the_cause_that_was_known():
    assert with_count(finding(compared=1, expected=2, cause="the file is cut")).cause == "the file is cut"


# expected
NOTHINGS = {"of three": 3, "of none": 0}


@pytest.mark.parametrize("case", NOTHINGS)
def test_comparing_nothing_is_an_error_of_the_check(case):
    judged = finding(compared=0, expected=NOTHINGS[case])
    with pytest.raises(ValueError, match="nothing was compared"):
        with_count(judged)


def test_a_failed_finding_reads_with_figure_limit_count_place_cause_and_action():
    text = finding(
        verdict=Verdict.FAIL,
        measured=0.25,
        limit=1e-4,
        unit="apart",
        passing_limit=0.25,
        compared=5,
        expected=6,
        where="step 1, logits",
        cause="a mask",
        action="Export again.",
        details=("row 3",),
    ).text()
    assert text.splitlines() == [
        "a check: fail",
        "  measured 0.25 apart, limit 0.0001",
        "  smallest limit that would pass: 0.25",
        "  compared 5 of 6",
        "  where: step 1, logits",
        "  cause: a mask",
        "  action: Export again.",
        "    row 3",
    ]


@pytest.mark.parametrize("figure", [math.inf, -math.inf, math.nan])
def test_figures_that_json_cannot_hold_become_words(figure):
    text = json.dumps(finding(measured=figure, limit=1.0, passing_limit=figure).to_json(), allow_nan=False)
    assert json.loads(text)["measured"] == str(figure)


# --- sentences -------------------------------------------------------------------------------------------------------


def test_plain_text_gives_one_sentence_a_line(tmp_path):
    path = tmp_path / "s.txt"
    path.write_bytes("\ufeffOne.\r\n\n  Two. \nÜber 三\n".encode())
    assert read_sentences(path) == [
        Sentence("line-1", "One."),
        Sentence("line-3", "  Two. "),
        Sentence("line-4", "Über 三"),
    ]


def test_json_lines_carry_id_and_tags(tmp_path):
    path = tmp_path / "s.jsonl"
    path.write_text('{"source": "One.", "id": "a", "tags": ["short"]}\n{"source": "Two."}\n', encoding="utf-8")
    assert read_sentences(path) == [Sentence("a", "One.", ("short",)), Sentence("line-2", "Two.")]


# file name, bytes -> place after the file's name, words
BAD_SENTENCES = {
    "an empty file": ("s.txt", b"", "", "no sentence inside"),
    "blank lines only": ("s.txt", b"\n \n\t\n", "", "no sentence inside"),
    "a line that is not UTF-8": ("s.txt", b"good\nb\xe4d\n", ":2", "not UTF-8"),
    "UTF-16": ("s.txt", "good".encode("utf-16"), ":1", "not UTF-8"),
    "a NUL": ("s.txt", b"good\nb\0d\n", ":2", "NUL"),
    "a line that is not JSON": ("s.jsonl", b'{"source": "a"}\n{"source": \n', ":2", "not JSON"),
    "a line without a source": ("s.jsonl", b'{"text": "a"}\n', ":1", "`source`"),
    "a source that is no text": ("s.jsonl", b'{"source": 3}\n', ":1", "`source`"),
    "a JSON list": ("s.jsonl", b'["a"]\n', ":1", "`source`"),
    "tags that are a word": ("s.jsonl", b'{"source": "a", "tags": "short"}\n', ":1", "`tags`"),
    "an id used twice": ("s.jsonl", b'{"source": "a", "id": 1}\n\n{"source": "b", "id": "1"}\n', ":3", "line 1"),
}


@pytest.mark.parametrize("case", BAD_SENTENCES)
def test_a_bad_sentence_file_is_refused_with_file_and_line(case, tmp_path):
    name, data, place, words = BAD_SENTENCES[case]
    path = tmp_path / name
    path.write_bytes(data)
    with pytest.raises(InputError) as caught:
        read_sentences(path)
    assert caught.value.where == f"{path}{place}"
    assert words in caught.value.what


def test_a_missing_sentence_file_is_refused(tmp_path):
    with pytest.raises(InputError, match="cannot be read"):
        read_sentences(tmp_path / "none.txt")


# --- layouts and manifest --------------------------------------------------------------------------------------------


# layout -> role -> (inputs, outputs), for 3 decoder layers: 6 self and 6 cross tensors
TENSOR_COUNTS = {
    "compact": {"encoder": (2, 7), "decoder": (2 + 12, 1 + 6)},
    "pair": {"encoder": (2, 1), "decoder_init": (3, 1 + 12), "decoder_step": (2 + 12, 1 + 6)},
    "single": {"encoder": (2, 1), "decoder": (3 + 6, 1 + 6)},
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_layout_promises_every_cache_tensor(layout):
    graphs = LAYOUTS[layout].graphs(DIMS)
    assert tuple(graphs) == LAYOUTS[layout].roles
    assert {role: (len(g.inputs), len(g.outputs)) for role, g in graphs.items()} == TENSOR_COUNTS[layout]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_batch_is_dynamic_everywhere(layout):
    tensors = [t for g in LAYOUTS[layout].graphs(DIMS).values() for t in (*g.inputs, *g.outputs)]
    assert all(tensor.dynamic_axes[0] == "batch" for tensor in tensors)


def test_a_present_goes_back_in_as_past_key_values():
    assert [past_of_present(name) for name in present_names(1, "decoder")] == [
        "past_key_values.0.decoder.key",
        "past_key_values.0.decoder.value",
    ]


@pytest.fixture
def manifest(tmp_path) -> Manifest:
    """A manifest of a set with one file, written to ``tmp_path``."""
    (tmp_path / "encoder.onnx").write_bytes(b"bytes")
    made = Manifest(
        model_id="m",
        family="marian",
        weights_sha256="0" * 64,
        layout="pair",
        exporter="torchscript",
        opset=17,
        ir_version=8,
        target_ort="1.14",
        dims=DIMS,
        dummy_sizes={"batch": 2},
        generation=GenerationSettings(49, 0, 49, 32, num_beams=4, banned_token_ids=(49,)),
        tokenizer_files=("vocab.json",),
        files={"encoder.onnx": FileRecord.of(tmp_path / "encoder.onnx")},
        versions={"torch": "2"},
        unknown_warnings=("w",),
    )
    made.write(tmp_path)
    return made


def test_a_manifest_reads_as_it_was_written(manifest, tmp_path):
    assert Manifest.read(tmp_path) == manifest


def test_a_changed_file_is_named_with_both_sizes(manifest, tmp_path):
    assert manifest.changed_files(tmp_path) == []
    (tmp_path / "encoder.onnx").write_bytes(b"other bytes")
    (changed,) = manifest.changed_files(tmp_path)
    assert changed.startswith("encoder.onnx: 5 bytes")
    assert "11 bytes" in changed


def _change(*path: str, to):
    def plant(data: dict) -> None:
        for key in path[:-1]:
            data = data[key]
        data[path[-1]] = to

    return plant


def _drop(*path: str):
    def plant(data: dict) -> None:
        for key in path[:-1]:
            data = data[key]
        del data[path[-1]]

    return plant


# change -> words
BAD_MANIFESTS = {
    "another schema": (_change("schema", to=99), "schema 99"),
    "no schema": (_drop("schema"), "schema None"),
    "an unknown layout": (_change("layout", to="triple"), "unknown layout 'triple'"),
    "another layout": (_change("layout", to="single"), "do not follow from its layout and sizes"),
    "another number of layers": (_change("dims", "decoder_layers", to=2), "decoder_init, decoder_step"),
    "a size missing": (_drop("dims", "d_model"), "d_model"),
    "a size that is a word": (_change("dims", "decoder_heads", to="four"), "malformed field"),
    "no heads": (_change("dims", "decoder_heads", to=0), "malformed field"),
    "no layers at all": (_drop("dims"), "'dims' is missing"),
    "tensors missing": (_drop("tensors"), "'tensors' is missing"),
    "tensors that are a list": (_change("tensors", to=["encoder"]), "malformed field"),
    "an opset that is a word": (_change("export", "opset", to="new"), "malformed field"),
    "an unknown generation setting": (_change("generation", "top_k", to=3), "top_k"),
    "too many beams": (_change("generation", "num_beams", to=9), "supported are 1 to 8"),
    "files that are a list": (_change("files", to=["encoder.onnx"]), "malformed field"),
    "a file outside the folder": (_change("files", "../secret", to={"sha256": "0", "bytes": 1}), "leaves the folder"),
    "a file that is not there": (_change("files", "gone.onnx", to={"sha256": "0", "bytes": 1}), "gone.onnx is listed"),
}


@pytest.mark.parametrize("case", BAD_MANIFESTS)
def test_a_manifest_that_contradicts_itself_is_refused(case, manifest, tmp_path):
    plant, words = BAD_MANIFESTS[case]
    data = manifest.to_json()
    plant(data)
    (tmp_path / MANIFEST).write_text(json.dumps(data), encoding="utf-8")
    with pytest.raises(InputError) as caught:
        Manifest.read(tmp_path)
    assert words in caught.value.what
    assert caught.value.action


# bytes -> words
UNREADABLE = {
    "an empty file": (b"", "not JSON"),
    "a cut file": (b'{"schema": 1,', "line 1"),
    "not UTF-8": (b"\xff\xfe{", "not UTF-8"),
    "a list": (b"[]", "schema 'list'"),
}


@pytest.mark.parametrize("case", UNREADABLE)
def test_a_manifest_that_is_no_json_object_is_refused(case, tmp_path):
    data, words = UNREADABLE[case]
    (tmp_path / MANIFEST).write_bytes(data)
    with pytest.raises(InputError) as caught:
        Manifest.read(tmp_path)
    assert words in caught.value.what
