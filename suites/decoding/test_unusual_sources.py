"""Sources that are no ordinary sentence, and the tokenizer that reads them."""

from __future__ import annotations

import pytest

from harness.checks.decode import (
    Tokenized,
    final_eos_finding,
    padding_finding,
    source_ids_finding,
    texts_finding,
    unknown_finding,
    unreadable_finding,
)
from harness.contract.errors import InputError
from harness.contract.generation import STOP_EOS
from harness.plugin import not_applicable
from harness.runtime.tokenizer import load_tokenizer
from suites.decoding.conftest import Source

# id -> text. What they come out as is the model's affair; both sides must agree on it.
UNUSUAL = {
    "one-word": "Pump",
    "one-letter": "a",
    "empty": "",
    "blank": "   ",
    "a-dash": "-",
    "emoji": "The pump is ready 🎉👍🏽",
    "very-long": "Check the pump and then close the second valve. " * 60,
    "all-caps": "DO NOT OPEN THE VALVE BEFORE ALICE ARRIVES.",
    "multi-line": "Open the valve.\nClose the door.\r\nCall Peter.",
    "digits-only": "3412 85.5 0 -7 1,250,000",
    "punctuation-only": "... !? ;",
    "chinese": "请勿打开阀门。",
    "product-code": "Order AX-2047/B and RS-485 today.",
    "full-width": "Open valve 37，then wait １５ minutes．",
    "placeholders": "Hello {name}, %s files <b>failed</b>.",
    "special-tokens-in-text": "The <unk> pump </s> is <pad> hot.",
}


@pytest.fixture(scope="session")
def unusual(as_sources):
    """The table above as sources."""
    return as_sources(list(UNUSUAL.items()))


@pytest.mark.parametrize("beams", [1, 4])
def test_unusual_sources_decode_as_with_generate(subject, beams, candidate, reference, desk, unusual, judge):
    """Under a limit, since some of them make a model repeat itself until it is cut."""
    settings = reference.settings.replace(num_beams=beams, max_length=min(64, reference.settings.max_length))
    judge(*desk.compare(candidate, unusual, settings, f"token ids of unusual sources equal generate(), {beams} beams"))


# Sources whose final end token is taken away, to see what this model makes of that.
WITHOUT_END = 4


@pytest.fixture(scope="session")
def tokenized_by(checkpoint, reference):
    """(id, text) pairs and a tokenizer -> the ids of both tokenizers."""
    limit = checkpoint.dims.max_source_positions

    def tokenize(pairs, tokenizer):
        return [
            Tokenized(
                id,
                tuple(reference.tokenizer(text, truncation=True, max_length=limit)["input_ids"]),
                tuple(tokenizer.encode(text, max_length=limit)),
            )
            for id, text in pairs
        ]

    return tokenize


def test_the_sets_tokenizer_can_be_read(subject, artifacts, judge):
    if artifacts.manifest is None and not (artifacts.folder / "source.spm").is_file():
        not_applicable("the set carries no tokenizer: whoever runs it brings one, which is not checked")
    try:
        load_tokenizer(artifacts.folder)
    except InputError as error:
        judge(unreadable_finding(error))
    else:
        judge(unreadable_finding(None))


def test_the_sets_tokenizer_gives_the_librarys_ids_and_texts(
    subject, set_tokenizer, tokenized_by, reference, desk, sources, judge
):
    """Without transformers, against the library's own on the model (faults T01, T03 to T05, D04)."""
    # Of special tokens written out in a text, the library's versions disagree among themselves.
    unusual = [(f"unusual {id}", text) for id, text in UNUSUAL.items() if id != "special-tokens-in-text"]
    tokenized = tokenized_by([(source.id, source.text) for source in sources] + unusual, set_tokenizer)
    few = [list(source.library) for source in tokenized[:4]]
    clean = set_tokenizer.clean_up_tokenization_spaces
    options = {"skip_special_tokens": True, "clean_up_tokenization_spaces": clean}
    texts = [
        (source.id, reference.tokenizer.decode(list(one.generated), **options), set_tokenizer.decode(one.generated))
        for source, one in zip(sources, desk.by_pytorch(sources, reference.settings))
    ]
    padded = reference.tokenizer.pad({"input_ids": few}, return_tensors="np")
    judge(
        source_ids_finding(tokenized, desk.piece, _piece_of(set_tokenizer)),
        padding_finding((padded["input_ids"], padded["attention_mask"]), set_tokenizer.batch(few)),
        texts_finding(texts),
        final_eos_finding(tokenized, reference.settings.eos_token_id, *_without_end(tokenized, sources, desk)),
    )


def _piece_of(tokenizer):
    """Id -> piece of the set's own vocabulary."""
    pieces = {index: piece for piece, index in tokenizer.vocabulary.items()}
    return lambda token: pieces.get(token, "not in the vocabulary")


def _without_end(tokenized, sources, desk):
    """What PyTorch makes of sources that lost their end token: stop reason by id, and a line about this model."""
    settings = desk.reference.settings.replace(num_beams=1)
    end = settings.eos_token_id
    endless_sources = [one for one in tokenized if one.runtime and one.runtime[-1] != end]
    lost = [Source(one.id, "", one.runtime) for one in endless_sources[:WITHOUT_END]]
    consequences = {one.id: found.stop_reason for one, found in zip(lost, desk.by_pytorch(lost, settings))}
    whole = [source for source in sources if len(source.input_ids) > 1][:WITHOUT_END]
    cut = [Source(source.id, source.text, source.input_ids[:-1]) for source in whole]
    pairs = list(zip(desk.by_pytorch(whole, settings), desk.by_pytorch(cut, settings)))
    changed = sum(ours.token_ids != theirs.token_ids for ours, theirs in pairs)
    endless = sum(theirs.stop_reason != STOP_EOS for _, theirs in pairs)
    line = f"without it PyTorch decodes {changed} of {len(pairs)} sentences otherwise, {endless} of them without an end"
    return consequences, (line,)


def test_unknown_pieces_are_counted(subject, set_tokenizer, reference, desk, sources, judge):
    """What the unknown token hides, in sources and in PyTorch's outputs (fault T02)."""
    decoded = desk.by_pytorch(sources, reference.settings)
    emitted = {s.id: ["<unk>"] * set_tokenizer.unknown_count(one.generated) for s, one in zip(sources, decoded)}
    seen = {source.id: set_tokenizer.unknown_pieces(source.text) for source in sources}
    unusual = {id: set_tokenizer.unknown_pieces(text) for id, text in UNUSUAL.items()}
    judge(
        unknown_finding("unknown pieces in the outputs", emitted, sources=len(sources), by_design=False),
        unknown_finding("unknown pieces in the sentences", seen, sources=len(sources), by_design=False),
        unknown_finding("unknown pieces in the unusual sources", unusual, sources=len(UNUSUAL), by_design=True),
    )


def test_target_language_prefixes_decode_as_with_generate(
    subject, candidate, reference, desk, sources, as_sources, set_tokenizer, tokenized_by, judge
):
    """``>>cmn_Hans<<`` before the text chooses the target language, where the vocabulary has such codes."""
    codes = desk.tokenizer.language_codes
    if not codes:
        not_applicable("the tokenizer has no target-language codes")
    marked = as_sources([(f"{code}, {s.id}", f"{code} {s.text}") for code in codes[:4] for s in sources[:4]])
    settings = reference.settings.replace(max_length=min(64, reference.settings.max_length))
    tokenized = tokenized_by([(source.id, source.text) for source in marked], set_tokenizer)
    judge(
        source_ids_finding(tokenized, desk.piece, _piece_of(set_tokenizer)),
        *desk.compare(candidate, marked, settings, "token ids with target-language prefixes equal generate()"),
    )
