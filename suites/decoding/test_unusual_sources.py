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
)
from harness.plugin import not_applicable
from harness.runtime.tokenizer import load_tokenizer

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


def test_the_sets_tokenizer_gives_the_librarys_ids_and_texts(subject, artifacts, reference, desk, sources, judge):
    """The tokenizer in the set, without transformers, against the library's on the model (faults T01 to T05)."""
    if artifacts.manifest is None and not (artifacts.folder / "source.spm").is_file():
        not_applicable("the set carries no tokenizer")
    tokenizer, library = load_tokenizer(artifacts.folder), reference.tokenizer
    limit = artifacts.dims.max_source_positions
    texts = {**{source.id: source.text for source in sources}, **UNUSUAL}
    # Versions 4.x of the library do not truncate with </s> kept at one id only; at the model's limit all agree.
    tokenized = [
        Tokenized(
            id,
            tuple(library(text, truncation=True, max_length=limit)["input_ids"]),
            tuple(tokenizer.encode(text, max_length=limit)),
        )
        for id, text in texts.items()
        if id != "special-tokens-in-text"
    ]
    short = [source.text for source in sources[:4]]
    padded = library(short, padding=True, return_tensors="np")
    decoded = desk.by_pytorch(sources, reference.settings)
    clean = tokenizer.clean_up_tokenization_spaces
    read = [
        (
            source.id,
            library.decode(list(result.generated), skip_special_tokens=True, clean_up_tokenization_spaces=clean),
            tokenizer.decode(result.generated),
        )
        for source, result in zip(sources, decoded)
    ]
    judge(
        source_ids_finding(tokenized, desk.piece, lambda token: str(tokenizer.decode([token]) or token)),
        padding_finding(
            (padded["input_ids"], padded["attention_mask"]), tokenizer.batch([tokenizer.encode(t) for t in short])
        ),
        texts_finding(read),
        final_eos_finding(tokenized, reference.settings.eos_token_id, {}),
        unknown_finding(
            "unknown pieces in the sentences",
            {source.id: tokenizer.unknown_pieces(source.text) for source in sources},
            sources=len(sources),
            by_design=False,
        ),
        unknown_finding(
            "unknown pieces in the unusual sources",
            {id: tokenizer.unknown_pieces(text) for id, text in UNUSUAL.items()},
            sources=len(UNUSUAL),
            by_design=True,
        ),
    )


def test_target_language_prefixes_decode_as_with_generate(
    subject, candidate, reference, desk, sources, as_sources, judge
):
    """``>>cmn_Hans<<`` before the text chooses the target language, where the vocabulary has such codes."""
    codes = desk.tokenizer.language_codes
    if not codes:
        not_applicable("the tokenizer has no target-language codes")
    marked = as_sources([(f"{code}, {s.id}", f"{code} {s.text}") for code in codes[:4] for s in sources[:4]])
    settings = reference.settings.replace(max_length=min(64, reference.settings.max_length))
    judge(*desk.compare(candidate, marked, settings, "token ids with target-language prefixes equal generate()"))
