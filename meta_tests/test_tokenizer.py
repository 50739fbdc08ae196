"""The runtime's tokenizer: what it does, what it refuses, and that it gives the ids of transformers."""

from __future__ import annotations

import io
import json
import re
import shutil
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
import sentencepiece
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from harness.contract.errors import InputError
from harness.runtime.tokenizer import MarianTokenizer, files, load_tokenizer

ROOT = Path(__file__).resolve().parents[1]
# A tokenizer of its own: ids in the tables below must not change with the embedded model.
MODEL = Path(__file__).parent / "tokenizer"
VOCABULARY = json.loads((MODEL / "vocab.json").read_text(encoding="utf-8"))
CONFIG = json.loads((MODEL / "tokenizer_config.json").read_text(encoding="utf-8"))
EOS, UNK, PAD = 0, 1, 7999
# Two rare pieces give their ids to language codes, as the vocabularies of opus-mt-en-zh have them.
CODES = {">>cmn_Hans<<": 7990, ">>cmn_Hant<<": 7991}


def with_codes() -> dict[str, int]:
    """The model's vocabulary with ``CODES`` in the place of two rare pieces."""
    return {**{piece: index for piece, index in VOCABULARY.items() if index not in CODES.values()}, **CODES}


def reversed_ids() -> dict[str, int]:
    """A target vocabulary in which no piece but the special tokens has the id that it has in the source's."""
    special, rest = ("</s>", "<unk>", "<pad>"), [p for p in VOCABULARY if p not in ("</s>", "<unk>", "<pad>")]
    ids = [VOCABULARY[piece] for piece in rest]
    return {**{piece: VOCABULARY[piece] for piece in special}, **dict(zip(rest, reversed(ids), strict=True))}


def other_spm() -> bytes:
    """A small SentencePiece model of Chinese with a control piece ``<ctl>``; the tokenizer's two are equal."""
    sentences = [
        "不要在更换零件之前打开机器",
        "今天的会议改到下午三点",
        "请在安装之后检查所有螺丝",
        "工作时间 是 八小时",
    ]
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(sentences * 5),
        model_writer=model,
        vocab_size=60,
        hard_vocab_limit=False,
        control_symbols=["<ctl>"],
        minloglevel=2,
    )
    return model.getvalue()


def with_pieces_of(spm: bytes) -> dict[str, int]:
    """The model's vocabulary, and after it the pieces of a SentencePiece model that it lacks."""
    processor = sentencepiece.SentencePieceProcessor(model_proto=spm)
    pieces = (processor.id_to_piece(index) for index in range(processor.get_piece_size()))
    return {**VOCABULARY, **{p: 8000 + n for n, p in enumerate(p for p in pieces if p not in VOCABULARY)}}


OTHER_SPM = other_spm()


def make_folder(folder: Path, *, remove: tuple[str, ...] = (), **contents: dict | str | bytes) -> Path:
    """A copy of the tokenizer, with files removed or replaced (``vocab={...}`` is ``vocab.json``)."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in files(MODEL):
        if name not in remove:
            shutil.copy(MODEL / name, folder / name)
    for stem, value in contents.items():
        path = folder / (stem if stem in ("source.spm", "target.spm") else f"{stem}.json")
        path.write_bytes(value if isinstance(value, bytes) else json.dumps(value).encode())
    return folder


@pytest.fixture(scope="module")
def tokenizer() -> MarianTokenizer:
    return load_tokenizer(MODEL)


@pytest.fixture(scope="module")
def coded(tmp_path_factory: pytest.TempPathFactory) -> MarianTokenizer:
    return load_tokenizer(make_folder(tmp_path_factory.mktemp("coded"), vocab=with_codes()))


# --- what it gives ------------------------------------------------------------------------------------------

# id: (text, ids), as transformers 4.26, 4.36 and 5.24 give them.
TEXTS = {
    "sentence": ("The dog is not here.", [22, 822, 362, 19, 21, 722, 3, EOS]),
    "full-width": ("12，３：", [2, 8, 7, 6, 11, 26, EOS]),
    "empty": ("", [EOS]),
    "spaces": ("  \t\n\u3000", [EOS]),
    "unknown character": ("x \U0010ffff", [1791, 2, UNK, EOS]),
    "special tokens in the text": ("The</s><pad> <unk>dog", [22, EOS, PAD, UNK, 822, 362, EOS]),
    "NUL": ("a\x00", [32, UNK, EOS]),
    "code that the vocabulary has": (">>cmn_Hans<< The dog", [7990, 22, 822, 362, EOS]),
    "code that it lacks": (">>xx<< The dog", [UNK, 22, 822, 362, EOS]),
    "half a code": ("1 << 2", [2, 8, 2496, 3108, 2, 7, EOS]),
}


@pytest.mark.parametrize(("text", "ids"), TEXTS.values(), ids=TEXTS)
def test_encode(coded: MarianTokenizer, text: str, ids: list[int]) -> None:
    assert coded.encode(text) == ids


def test_ids_and_names_of_the_special_tokens(tokenizer: MarianTokenizer, coded: MarianTokenizer) -> None:
    assert (tokenizer.eos_id, tokenizer.unk_id, tokenizer.pad_id) == (EOS, UNK, PAD)
    assert tokenizer.special_ids == {EOS, UNK, PAD}
    assert tokenizer.model_max_length == 256
    assert (tokenizer.language_codes, coded.language_codes) == ((), tuple(CODES))


@pytest.mark.parametrize(("side", "kept"), [("right", slice(0, 3)), ("left", slice(-3, None))])
def test_truncation_keeps_eos(tmp_path: Path, tokenizer: MarianTokenizer, side: str, kept: slice) -> None:
    cut = load_tokenizer(make_folder(tmp_path, tokenizer_config={**CONFIG, "truncation_side": side}))
    text = "The dog is not here."
    whole = tokenizer.encode(text)
    assert cut.encode(text, 4) == [*whole[:-1][kept], EOS]
    assert cut.encode(text, 1) == [EOS]
    assert cut.encode(text, len(whole)) == cut.encode(text, 10**9) == cut.encode(text) == whole
    with pytest.raises(InputError, match="leaves no room for </s>"):
        cut.encode(text, 0)


@pytest.mark.parametrize(
    ("side", "input_ids", "mask"),
    [
        ("right", [[5, 6, EOS], [EOS, PAD, PAD]], [[1, 1, 1], [1, 0, 0]]),
        ("left", [[5, 6, EOS], [PAD, PAD, EOS]], [[1, 1, 1], [0, 0, 1]]),
    ],
)
def test_batch(tmp_path: Path, side: str, input_ids: list, mask: list) -> None:
    padded = load_tokenizer(make_folder(tmp_path, tokenizer_config={**CONFIG, "padding_side": side}))
    got_ids, got_mask = padded.batch([[5, 6, EOS], [EOS]])
    assert got_ids.dtype == got_mask.dtype == np.int64
    assert (got_ids.tolist(), got_mask.tolist()) == (input_ids, mask)


def test_batch_of_nothing_is_an_error(tokenizer: MarianTokenizer) -> None:
    with pytest.raises(ValueError, match="no texts"):
        tokenizer.batch([])


def test_decode_drops_special_tokens_and_takes_arrays(tokenizer: MarianTokenizer) -> None:
    text = "他说 , 好 ."
    ids = [PAD, *tokenizer.encode(text), UNK, EOS, PAD]
    assert tokenizer.decode(ids) == tokenizer.decode(np.array(ids)) == text
    assert tokenizer.decode([]) == tokenizer.decode([PAD, EOS]) == ""


def test_clean_up_is_what_the_config_says(tmp_path: Path, tokenizer: MarianTokenizer) -> None:
    cleaning = make_folder(tmp_path, tokenizer_config={**CONFIG, "clean_up_tokenization_spaces": True})
    ids = tokenizer.encode("he said , no .")
    assert tokenizer.decode(ids) == "he said , no ."
    assert load_tokenizer(cleaning).decode(ids) == "he said, no."


@pytest.mark.parametrize("index", [-1, 8000, 10**12])
def test_decode_refuses_an_id_of_another_vocabulary(tokenizer: MarianTokenizer, index: int) -> None:
    with pytest.raises(InputError, match=f"id {index} is not in its vocabulary of 8000"):
        tokenizer.decode([5, index])


@pytest.mark.parametrize("text", ["\ud800", "a\udfffb", ">>\ud800<< a", "</s>\ud83d"], ids=ascii)
def test_lone_surrogate_is_refused(tokenizer: MarianTokenizer, text: str) -> None:
    with pytest.raises(InputError, match=r"lone surrogate U\+D[0-9A-F]{3} at character \d"):
        tokenizer.encode(text)


def test_unknown_pieces_are_named_before_decode_hides_them(coded: MarianTokenizer) -> None:
    text = ">>xx<< Tom \u16a0 2"
    assert coded.unknown_pieces(text) == [">>xx<<", "\u16a0"]
    assert coded.unknown_count(coded.encode(text)) == 2
    assert coded.decode(coded.encode(text)) == "Tom  2"
    assert coded.unknown_pieces(">>cmn_Hans<< Tom") == []


def test_separate_vocabularies(tmp_path: Path, tokenizer: MarianTokenizer) -> None:
    folder = make_folder(tmp_path, tokenizer_config={**CONFIG, "separate_vocabs": True}, target_vocab=reversed_ids())
    separate, text = load_tokenizer(folder), "你好 12"
    assert separate.encode(text) == tokenizer.encode(text) != separate.encode(text, target=True)
    assert separate.decode(separate.encode(text, target=True)) == text != separate.decode(separate.encode(text))


def test_target_texts_are_cut_by_the_target_model(tmp_path: Path) -> None:
    vocabulary = with_pieces_of(OTHER_SPM)
    two = load_tokenizer(make_folder(tmp_path, vocab=vocabulary, **{"target.spm": OTHER_SPM}))
    assert two.pieces("更换工作", target=True) == ["▁", "更", "换", "工", "作"] != two.pieces("更换工作")
    # transformers 5 decodes a shared vocabulary with source.spm, to which the target's control piece is plain text.
    assert two.decode([vocabulary["<ctl>"], *two.encode("更换 工作", target=True)]) == "<ctl> 更换 工作"


# id: (token's flags, text, what is cut)
FLAGS = {
    "none": ({}, "a\x85<x>b", ["▁a", "\x85", "<x>", "▁b"]),
    "left blanks": ({"lstrip": True}, "a\x85<x>", ["▁a", "<x>"]),
    "right blanks": ({"rstrip": True}, "<x>\n>>xx<<b", ["<x>", ">>xx<<", "▁b"]),
    # The rest of the word stays a text of its own: transformers joins the token to one neighbour only.
    "inside a word": ({"single_word": True}, "a<x>b", ["▁a", "<", "x", ">", "▁b"]),
    "end of a word": ({"single_word": True}, "a<x> b", ["▁a", "<", "x", ">", "▁b"]),
    "start of a word": ({"single_word": True}, "a <x>b", ["▁a", "▁<", "x", ">", "b"]),
    "a word": ({"single_word": True}, "a <x> b", ["▁a", "<x>", "▁b"]),
}


@pytest.mark.parametrize(("flags", "text", "pieces"), FLAGS.values(), ids=FLAGS)
def test_added_token(tmp_path: Path, flags: dict, text: str, pieces: list[str]) -> None:
    listed = {**CONFIG["added_tokens_decoder"], "8000": {"content": "<x>", **flags}}
    folder = make_folder(tmp_path, tokenizer_config={**CONFIG, "added_tokens_decoder": listed})
    assert load_tokenizer(folder).pieces(text) == pieces


def test_longest_added_token_counts(tmp_path: Path) -> None:
    folder = make_folder(tmp_path, tokenizer_config={}, added_tokens={"<x": 8000, "<x>": 8001})
    assert load_tokenizer(folder).encode("<x><x") == [8001, 8000, EOS]


# --- which files --------------------------------------------------------------------------------------------

# id: (files of the folder, text, ids)
OLD_FORMATS = {
    "no config": ({"tokenizer_config": {}}, "a</s>", [32, EOS, EOS]),
    "special_tokens_map.json": (
        {"tokenizer_config": {}, "special_tokens_map": {"eos_token": {"content": "<pad>"}, "pad_token": "</s>"}},
        "a",
        [32, PAD],
    ),
    "special_tokens_map.json next to added_tokens_decoder": (
        {"tokenizer_config": CONFIG, "special_tokens_map": {"eos_token": "<pad>"}},
        "a",
        [32, EOS],
    ),
    "added_tokens.json": ({"tokenizer_config": {}, "added_tokens": {"<x>": 8000}}, "a<x>", [32, 8000, EOS]),
    "tokenizer.json": (
        {"tokenizer_config": {}, "tokenizer": {"added_tokens": [{"id": 8000, "content": "<x>"}]}},
        "a<x>",
        [32, 8000, EOS],
    ),
    "additional_special_tokens": (
        {"tokenizer_config": {"additional_special_tokens": ["<x>", "▁The"]}},
        "a<x>▁The",
        [32, 8000, 22, EOS],
    ),
    "both lists of special tokens": (
        {
            "tokenizer_config": {"additional_special_tokens": ["<x>"]},
            "special_tokens_map": {"additional_special_tokens": ["<y>"]},
        },
        "<x><y>",
        [8000, 2496, 69, 1685, EOS],
    ),
    "named tokens": ({"tokenizer_config": {"mask_token": "<x>", "bos_token": "<y>"}}, "<x><y>", [8001, 8000, EOS]),
    "extra_special_tokens": (
        {"tokenizer_config": {"extra_special_tokens": {"x_token": "<x>"}, "y_token": "<y>"}},
        "<x><y>",
        [8001, 8000, EOS],
    ),
    "split_special_tokens": (
        {"tokenizer_config": {**CONFIG, "split_special_tokens": True}},
        "</s>",
        [2496, 72, 18, 1685, EOS],
    ),
}


@pytest.mark.parametrize(("contents", "text", "ids"), OLD_FORMATS.values(), ids=OLD_FORMATS)
def test_every_file_format(tmp_path: Path, contents: dict, text: str, ids: list[int]) -> None:
    folder = make_folder(tmp_path, **contents)
    assert load_tokenizer(folder).encode(text) == ids


@pytest.mark.parametrize(("contents", "text", "ids"), OLD_FORMATS.values(), ids=OLD_FORMATS)
def test_every_file_format_in_transformers(tmp_path: Path, contents: dict, text: str, ids: list[int]) -> None:
    pair = Reference(make_folder(tmp_path, **contents))
    if pair.release < (5, 0):
        pytest.skip("transformers before 5 reads some of these files otherwise: see the tokenizer's module")
    assert pair.their_ids(text) == ids


def test_listed_files_are_enough(tmp_path: Path, coded: MarianTokenizer) -> None:
    model = make_folder(tmp_path / "model", vocab=with_codes(), added_tokens={"<x>": 8000})
    (model / "tokenizer_config.json").unlink()
    (model / "README.md").write_text("not the tokenizer's")
    artifacts = tmp_path / "set"
    artifacts.mkdir()
    for name in files(model):
        shutil.copy(model / name, artifacts / name)
    assert sorted(files(model)) == ["added_tokens.json", "source.spm", "target.spm", "vocab.json"]
    text = ">>cmn_Hans<< a<x>"
    assert load_tokenizer(artifacts).encode(text) == load_tokenizer(model).encode(text) == [7990, 32, 8000, EOS]


@pytest.mark.parametrize(
    ("tokenizer_config", "config"),
    [
        ({"tokenizer_class": "MarianTokenizer"}, {"model_type": "t5"}),
        ({}, {"model_type": "marian"}),
        ({}, {"tokenizer_class": "MarianTokenizer", "model_type": "x"}),
        ({}, {}),
    ],
    ids=["tokenizer_class", "model_type", "class in config.json", "by its files"],
)
def test_class_is_found(tmp_path: Path, tokenizer_config: dict, config: dict) -> None:
    folder = make_folder(tmp_path, tokenizer_config=tokenizer_config, config=config)
    assert type(load_tokenizer(folder)) is MarianTokenizer


VALID_SPM = (MODEL / "source.spm").read_bytes()
# id: (files removed, files replaced, what the message must say)
BROKEN = {
    "no vocab.json": (("vocab.json",), {}, "no vocab.json"),
    "no source.spm": (("source.spm",), {}, "no source.spm"),
    "no target.spm": (("target.spm",), {}, "no target.spm"),
    "no target_vocab.json": ((), {"tokenizer_config": {"separate_vocabs": True}}, "no target_vocab.json"),
    "vocab.json is not JSON": ((), {"vocab": b"{oops"}, r"vocab\.json: not JSON"),
    "vocab.json is not UTF-8": ((), {"vocab": b"\xff\xfe{"}, r"vocab\.json: not UTF-8"),
    "vocab.json is a list": ((), {"vocab": b"[]"}, r"vocab\.json: a JSON list, expected an object"),
    "vocab.json has text for ids": ((), {"vocab": {"<unk>": "1"}}, r"vocab\.json: the id of '<unk>' is '1'"),
    "vocab.json has no <unk>": ((), {"vocab": {"</s>": 0}}, r"vocab\.json: no entry '<unk>'"),
    "truncated spm": ((), {"source.spm": VALID_SPM[:-100]}, r"source\.spm: not a whole SentencePiece model"),
    "empty spm": ((), {"target.spm": b""}, r"target\.spm: not a whole SentencePiece model"),
    "Git LFS pointer": ((), {"source.spm": b"version https://git-lfs.github.com/spec/v1\n"}, "Git LFS pointer"),
    "config is not JSON": ((), {"tokenizer_config": b"{"}, r"tokenizer_config\.json: not JSON"),
    "special_tokens_map is a list": (
        (),
        {"tokenizer_config": {}, "special_tokens_map": b"[]"},
        r"special_tokens_map\.json: a JSON list",
    ),
    "added_tokens_decoder is a list": ((), {"tokenizer_config": {"added_tokens_decoder": []}}, "malformed field"),
    "added token without content": (
        (),
        {"tokenizer_config": {"added_tokens_decoder": {"5": {}}}},
        r"malformed field .* \(\{\} is not a token\)",
    ),
    "added token without id": (
        (),
        {"tokenizer_config": {}, "tokenizer": {"added_tokens": [{"content": "a"}]}},
        r"malformed field .* \('id'\)",
    ),
    "padding side": ((), {"tokenizer_config": {"padding_side": "top"}}, "padding_side is 'top'"),
    "model_max_length is text": ((), {"tokenizer_config": {"model_max_length": "long"}}, "malformed field"),
    "sampling": (
        (),
        {"tokenizer_config": {"sp_model_kwargs": {"enable_sampling": True}}},
        r"tokenizer_config\.json: sp_model_kwargs sets enable_sampling\. Remove it",
    ),
    "another class": (
        (),
        {"tokenizer_config": {"tokenizer_class": "T5Tokenizer"}},
        r"tokenizer_config\.json: tokenizer 'T5Tokenizer' is not supported\. Supported: MarianTokenizer",
    ),
    "another model": (
        (),
        {"tokenizer_config": {}, "config": {"model_type": "t5"}},
        r"[^_]config\.json: tokenizer 't5' is not supported",
    ),
    "no tokenizer at all": (("source.spm", "tokenizer_config.json"), {}, "neither .* names a tokenizer"),
}


@pytest.mark.parametrize(("remove", "contents", "message"), BROKEN.values(), ids=BROKEN)
def test_broken_folder_is_named_in_one_line(tmp_path: Path, remove: tuple, contents: dict, message: str) -> None:
    folder = make_folder(tmp_path, remove=remove, **contents)
    with pytest.raises(InputError) as caught:
        load_tokenizer(folder)
    assert re.search(message, str(caught.value)), caught.value
    assert str(folder) in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("function", [load_tokenizer, files], ids=["load_tokenizer", "files"])
def test_missing_folder(tmp_path: Path, function) -> None:
    with pytest.raises(InputError, match="no such folder"):
        function(tmp_path / "nowhere")


def test_needs_neither_torch_nor_transformers() -> None:
    script = (
        "import sys\n"
        "for name in ('torch', 'transformers', 'tokenizers'): sys.modules[name] = None\n"
        "from harness.runtime.tokenizer import load_tokenizer\n"
        f"print(load_tokenizer({str(MODEL)!r}).encode('The dog'))\n"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, cwd=ROOT, check=False)
    assert run.stdout == "[22, 822, 362, 0]\n", run.stderr


# --- the ids of transformers --------------------------------------------------------------------------------


def added_tokens(*contents: str) -> dict:
    """The model's tokenizer config with more added tokens, each with another way to treat its neighbours."""
    listed = dict(CONFIG["added_tokens_decoder"])
    flags = ({"lstrip": True}, {"rstrip": True}, {"single_word": True}, {"lstrip": True, "special": True})
    for number, (content, treatment) in enumerate(zip(contents, flags, strict=True)):
        listed[str(8000 + number)] = {"content": content, **treatment}
    return {**CONFIG, "added_tokens_decoder": listed}


# id: files that differ from the embedded model's. transformers 4.26 does not read added_tokens_decoder.
VARIANTS = {
    "embedded": {},
    "language codes, no config": {"vocab": with_codes(), "tokenizer_config": {}},
    "separate vocabularies": {
        "vocab": with_codes(),
        "target_vocab": reversed_ids(),
        "tokenizer_config": {**CONFIG, "separate_vocabs": True},
    },
    "two SentencePiece models": {"vocab": with_pieces_of(OTHER_SPM), "target.spm": OTHER_SPM},
    "added tokens": {"tokenizer_config": added_tokens("<x>", "[y]", "ab", "abc")},
}


class Reference:
    """transformers' tokenizer and ours of one folder."""

    def __init__(self, folder: Path) -> None:
        transformers = pytest.importorskip("transformers", reason="the comparison needs the library to compare with")
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Recommended: pip install sacremoses")  # makes no difference to the ids
            self.theirs = transformers.MarianTokenizer.from_pretrained(str(folder))
        self.ours = load_tokenizer(folder)
        self.release = tuple(map(int, transformers.__version__.split(".")[:2]))

    def their_ids(self, text: str, **options) -> list[int]:
        return self.theirs(text, **options)["input_ids"]

    def their_text(self, ids: list[int]) -> str:
        clean = self.ours.clean_up_tokenization_spaces
        text = self.theirs.decode(ids, skip_special_tokens=True, clean_up_tokenization_spaces=clean)
        return text.replace("▁", " ").strip()  # 4.26 leaves it in pieces that target.spm lacks


@pytest.fixture(scope="module", params=VARIANTS)
def reference(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Reference:
    pair = Reference(make_folder(tmp_path_factory.mktemp("reference"), **VARIANTS[request.param]))
    if request.param == "added tokens" and pair.release < (4, 34):
        pytest.skip("transformers before 4.34 does not read added_tokens_decoder")
    return pair


ONE_CODE = re.compile(r">>[^<>\n]+<<(?!<)(?!.*<<)", re.DOTALL)
ANY_CODE = re.compile(r">>.*<<", re.DOTALL)
BLANK_AT_SPECIAL = re.compile(r"\s(</s>|<unk>|<pad>)|(</s>|<unk>|<pad>)\s")


def versions_agree(text: str, release: tuple[int, int]) -> bool:
    """Whether a version of transformers treats a text as the newest does: see the tokenizer's module."""
    if release >= (5, 0):
        return True
    if release < (4, 34) and BLANK_AT_SPECIAL.search(text):
        return False
    return not ANY_CODE.search(text) or bool(ONE_CODE.match(text))


FRAGMENTS = [piece.replace("▁", " ") for piece in VOCABULARY] + ["</s>", "<unk>", "<pad>"]
MARKUP = [
    *("</s>", "<unk>", "<pad>", "<s>", "<x>", "[y]", "abc", "ab", ">>cmn_Hans<<", ">>xx<<", ">>", "<<", "<", ">"),
    *(" ", "\t", "\n", "\r\n", "\u3000", "\u00a0", "\u200b", "\x1c", "\x85", "▁", "⁇", "\x00", "\x7f", "\ufeff"),
    *("👨‍👩‍👧", "🏳️‍🌈", "e\u0301", "ﬁ", "①", "ｶﾞ", "１２", "，", "。", "“", "3,5%", "don't", "\U0010ffff"),
]
any_text = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
texts = st.one_of(
    any_text,
    st.lists(st.one_of(st.sampled_from(FRAGMENTS), st.sampled_from(MARKUP), any_text), max_size=10).map("".join),
    st.lists(st.sampled_from(MARKUP), max_size=8).map("".join),
)
comparison = settings(max_examples=300, deadline=None, database=None, derandomize=True)


@comparison
@given(text=texts)
def test_encode_equals_transformers(reference: Reference, text: str) -> None:
    assume(versions_agree(text, reference.release))
    assert reference.ours.encode(text) == reference.their_ids(text)


@comparison
@given(text=texts)
def test_encode_target_equals_transformers(reference: Reference, text: str) -> None:
    assume(versions_agree(text, reference.release))
    assert reference.ours.encode(text, target=True) == reference.theirs(text_target=text)["input_ids"]


@comparison
@given(text=texts, max_length=st.integers(2, 20))
def test_truncation_equals_transformers(reference: Reference, text: str, max_length: int) -> None:
    assume(versions_agree(text, reference.release))
    expected = reference.their_ids(text, truncation=True, max_length=max_length)
    assert reference.ours.encode(text, max_length) == expected


@comparison
@given(ids=st.lists(st.one_of(st.integers(0, 8003), st.sampled_from([EOS, UNK, PAD, 2, 3, 6])), max_size=30))
def test_decode_equals_transformers(reference: Reference, ids: list[int]) -> None:
    # What 4.x does with the ids above, of added tokens and of pieces of one SentencePiece model only, is its own.
    limit = 8000 if reference.release < (5, 0) else len(reference.theirs)
    ids = [index for index in ids if index < limit]
    assert reference.ours.decode(ids) == reference.their_text(ids)


@settings(comparison, max_examples=100)
@given(batch=st.lists(texts, min_size=1, max_size=5))
def test_batch_equals_transformers(reference: Reference, batch: list[str]) -> None:
    assume(all(versions_agree(text, reference.release) for text in batch))
    theirs = reference.theirs(batch, padding=True, return_tensors="np")
    ours = reference.ours.batch([reference.ours.encode(text) for text in batch])
    for got, name in zip(ours, ("input_ids", "attention_mask"), strict=True):
        np.testing.assert_array_equal(got, theirs[name], err_msg=name)


# id: (text, first release of transformers -> its ids). The last column is ours.
DISAGREEMENTS = {
    "code inside the text": (
        "The >>cmn_Hans<< dog",
        {
            (4, 26): [22, 822, 362, 0],
            (5, 0): [22, 2, 1685, 1685, 266, 384, 273, 591, 1264, 796, 18, 3108, 3108, 822, 362, 0],
        },
    ),
    "shift operators": (
        "if (a >> 2 && b << 3)",
        {
            (4, 26): [379, 51, 252, 2, 11, 30, 0],
            (5, 0): [379, 51, 252, 2, 1685, 1685, 2, 7, 1489, 5101, 1776, 2496, 3108, 2, 11, 30, 0],
        },
    ),
    "two codes": (
        ">>cmn_Hans<<>>b<< The dog",
        {(4, 26): [1, 22, 822, 362, 0], (5, 0): [7990, 2, 1685, 1685, 458, 3108, 3108, 22, 822, 362, 0]},
    ),
    "empty code": (
        ">><<The dog",
        {(4, 26): [2, 1685, 1685, 3108, 3108, 2935, 140, 822, 362, 0], (5, 0): [1, 22, 822, 362, 0]},
    ),
    "code after a special token": (
        "</s> >>cmn_Hans<< The",
        {
            (4, 26): [0, 7990, 22, 0],
            (4, 34): [0, 22, 0],
            (5, 0): [0, 2, 1685, 1685, 266, 384, 273, 591, 1264, 796, 18, 3108, 3108, 22, 0],
        },
    ),
}


@pytest.mark.parametrize(("text", "by_release"), DISAGREEMENTS.values(), ids=DISAGREEMENTS)
def test_known_disagreements_between_versions(
    tmp_path: Path, coded: MarianTokenizer, text: str, by_release: dict[tuple[int, int], list[int]]
) -> None:
    """The table of what ours does differently from old versions is true on every version, and complete for ours."""
    pair = Reference(make_folder(tmp_path, vocab=with_codes()))
    assert coded.encode(text) == by_release[max(by_release)]
    assert pair.their_ids(text) == by_release[max(since for since in by_release if since <= pair.release)]
