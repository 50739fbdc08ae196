"""The SentencePiece model and vocabulary, in the form that MarianTokenizer reads."""

from __future__ import annotations

import json
from pathlib import Path

import sentencepiece
from sentencepiece.sentencepiece_model_pb2 import ModelProto

VOCABULARY = 8000
END, UNKNOWN = 0, 1
_SPECIAL = {"lstrip": False, "normalized": False, "rstrip": False, "single_word": False, "special": True}
_CONFIG = {
    "added_tokens_decoder": {
        str(index): {"content": piece, **_SPECIAL}
        for index, piece in ((END, "</s>"), (UNKNOWN, "<unk>"), (VOCABULARY - 1, "<pad>"))
    },
    "clean_up_tokenization_spaces": False,
    "eos_token": "</s>",
    "model_max_length": 512,
    "pad_token": "<pad>",
    "separate_vocabs": False,
    "source_lang": "en",
    "sp_model_kwargs": {},
    "target_lang": "zh",
    "tokenizer_class": "MarianTokenizer",
    "unk_token": "<unk>",
}


def build(work: Path, model: Path) -> None:
    """Train one joint model on `work`/tokenizer.txt and write source.spm, target.spm and vocab.json into `model`.

    Digits are pieces of their own, which makes figures copyable. End is id 0 and pad the last id, as in opus-mt. The
    pieces of both sides are the same; their normalisation is not: the source's folds full-width letters and marks
    (`nmt_nfkc`, as opus-mt's does), the target's keeps them, or no output could hold a Chinese comma.
    """
    model.mkdir(parents=True, exist_ok=True)
    target = _trained(work, "identity")
    source = ModelProto.FromString(target.SerializeToString())
    source.normalizer_spec.CopyFrom(_trained(work, "nmt_nfkc").normalizer_spec)
    (model / "source.spm").write_bytes(source.SerializeToString())
    (model / "target.spm").write_bytes(target.SerializeToString())
    vocabulary = {"</s>": END, "<unk>": UNKNOWN}
    for piece in target.pieces:
        vocabulary.setdefault(piece.piece, len(vocabulary))
    vocabulary.pop("<s>")
    vocabulary = {piece: index for index, piece in enumerate([*vocabulary, "<pad>"])}
    _write(model / "vocab.json", vocabulary)
    _write(model / "tokenizer_config.json", _CONFIG)
    print(f"{len(vocabulary)} pieces")


def _trained(work: Path, normalisation: str) -> ModelProto:
    prefix = work / normalisation
    sentencepiece.SentencePieceTrainer.train(
        input=str(work / "tokenizer.txt"), model_prefix=str(prefix), vocab_size=VOCABULARY, character_coverage=0.9998,
        model_type="unigram", split_digits=True, num_threads=2, shuffle_input_sentence=True, minloglevel=1,
        normalization_rule_name=normalisation, input_sentence_size=300_000,
    )  # fmt: skip
    return ModelProto.FromString(prefix.with_suffix(".model").read_bytes())


def _write(path: Path, value: dict) -> None:
    path.write_text(json.dumps(value, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")


class Tokenizer:
    """Text to ids and back, as MarianTokenizer does it for this vocabulary."""

    def __init__(self, model: Path) -> None:
        self._source = sentencepiece.SentencePieceProcessor(model_file=str(model / "source.spm"))
        self._target = sentencepiece.SentencePieceProcessor(model_file=str(model / "target.spm"))
        self._ids = json.loads((model / "vocab.json").read_text(encoding="utf-8"))
        self._texts = list(self._ids)
        self.pad = len(self._ids) - 1

    def pair(self, english: str, chinese: str) -> tuple[list[int], list[int]]:
        """Ids of a source and its target, each with the end id."""
        return self._encode(self._source, english), self._encode(self._target, chinese)

    def _encode(self, side: sentencepiece.SentencePieceProcessor, text: str) -> list[int]:
        return [*(self._ids.get(piece, UNKNOWN) for piece in side.encode(text, out_type=str)), END]

    def decode(self, ids: list[int]) -> str:
        return self._target.decode([self._texts[index] for index in ids if index not in (END, self.pad)])
