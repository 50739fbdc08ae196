"""Text to token ids and back, without transformers.

The ids are those of ``transformers.MarianTokenizer`` 5.24, and with them those of 4.26 and 4.36 but for the following,
where the versions disagree among themselves and the newest is followed:

- ``>>code<<``. 5.x takes a code at the start of a text (up to the first ``<<``, line breaks included) and leaves the
  rest alone. 4.x takes the longest ``>>...<<`` of the line as one code, and deletes any other from the text.
- Blanks next to ``</s>``, ``<unk>`` or ``<pad>`` written out in a text: 4.26 strips them, so that a code may follow.
- Which tokens are cut out of a text. 4.26 reads neither ``added_tokens_decoder`` nor ``tokenizer.json`` nor
  ``split_special_tokens``; only 5.x knows ``extra_special_tokens`` and a model's own ``..._token``; 5.x ignores
  ``lstrip`` and ``rstrip`` in ``special_tokens_map.json``. 4.x refuses a vocabulary without ``<pad>``.
- Truncation that leaves ``</s>`` alone, as 5.x does: 4.x returns the text whole.
- ``decode``. ``clean_up_tokenization_spaces`` (``" ,"`` becomes ``","``) is off by default in 5.x and on in 4.x, where
  4.26 does not read the config: pass the attribute of that name to any version's ``decode`` and they agree. With a
  shared vocabulary 5.x decodes with ``source.spm``, 4.x with ``target.spm``, which shows where a piece is a control or
  byte piece in one only; 4.26 also leaves ``▁`` in pieces that ``target.spm`` lacks. An id that the vocabulary lacks is
  ``<unk>`` in 4.x, in 5.x the SentencePiece model's piece of that number or an error. 4.x puts blanks around added
  tokens that are not special.

``sacremoses`` makes no difference: no version applies its normalizer when it tokenizes. ``sentencepiece`` does, here as
in transformers: where two segmentations score the same, as of ``....``, 0.1.99 and 0.2.3 take different ones
(google/sentencepiece#747). Where one added token stands inside another, transformers can miss both; here the longest
counts.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import sentencepiece

from harness.contract.errors import InputError
from harness.contract.manifest import read_json

COPY_AGAIN = "Copy the model's tokenizer files again, as they were saved; a Git LFS pointer is not the file."
CONFIG = "tokenizer_config.json"
# Longer than this is how transformers writes "no limit".
NO_LIMIT = 10**20
# Named special tokens, in the order in which transformers gives ids to those that the vocabulary lacks.
NAMED_TOKENS = ("bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token")
# Special tokens without a name; transformers 5 renamed the list.
UNNAMED_TOKENS = ("extra_special_tokens", "additional_special_tokens")
# SentencePiece options that a config may set. Sampling is not among them: its ids differ from run to run.
SENTENCEPIECE_OPTIONS = ("add_bos", "add_eos", "reverse", "emit_unk_piece", "num_threads")
# English tokenization artifacts, replaced in this order: ``clean_up_tokenization`` of transformers.
CLEAN_UP = (
    (" .", "."),
    (" ?", "?"),
    (" !", "!"),
    (" ,", ","),
    (" ' ", "'"),
    (" n't", "n't"),
    (" 'm", "'m"),
    (" 's", "'s"),
    (" 've", "'ve"),
    (" 're", "'re"),
)


@dataclass(frozen=True)
class AddedToken:
    """A token that is cut out of a text before SentencePiece sees it.

    ``lstrip`` and ``rstrip`` remove the blanks on its left and right; a ``single_word`` inside a word is no token.
    """

    content: str
    lstrip: bool = False
    rstrip: bool = False
    single_word: bool = False

    @classmethod
    def from_json(cls, value: Any) -> AddedToken:
        """Read the dictionary form of the Hugging Face files, or a plain string.

        Raises:
            ValueError: neither of the two.
        """
        if isinstance(value, str):
            return cls(value)
        if not isinstance(value, dict) or not isinstance(value.get("content"), str):
            raise ValueError(f"{value!r} is not a token")
        return cls(value["content"], *(bool(value.get(flag)) for flag in ("lstrip", "rstrip", "single_word")))


class AddedTokens:
    """The added tokens of a tokenizer, the special ones among them.

    Args:
        tokens: id -> token, as the tokenizer's files list them.
        special: contents of the special tokens, at least one. Those that are not listed get the vocabulary's id, or one
            after its end.
        vocabulary: piece -> id.
    """

    def __init__(self, tokens: dict[int, AddedToken], special: Sequence[str], vocabulary: dict[str, int]) -> None:
        self.tokens = dict(tokens)
        self.ids = {token.content: index for index, token in tokens.items()}
        unused = itertools.count(len({*vocabulary, *self.ids}))
        for content in special:
            if content not in self.ids:
                index = vocabulary[content] if content in vocabulary else next(unused)
                self.tokens[index], self.ids[content] = AddedToken(content), index
        self.special = frozenset(special)
        self.special_ids = frozenset(self.ids[content] for content in special)
        contents = {token.content for token in self.tokens.values() if token.content}
        longest_first = sorted(contents, key=len, reverse=True)
        self._pattern = re.compile(f"({'|'.join(map(re.escape, longest_first))})")

    def segments(self, text: str) -> list[str]:
        """Split a text into added tokens and what stands between them; nothing empty."""
        parts = [part for part in self._pattern.split(text) if part]
        for here, part in enumerate(parts):
            if part not in self.ids:
                continue
            token = self.tokens[self.ids[part]]
            before = parts[here - 1] if here else ""
            after = parts[here + 1] if here + 1 < len(parts) else ""
            if token.lstrip and before:
                parts[here - 1] = before.rstrip()
            if token.rstrip and after:
                parts[here + 1] = after.lstrip()
            if token.single_word and before and before[-1] != " ":
                parts[here - 1 : here + 1] = [parts[here - 1] + part, ""]
            elif token.single_word and after and after[0] != " ":
                parts[here : here + 2] = ["", part + parts[here + 1]]
        return [part for part in parts if part]


class MarianTokenizer:
    """Two SentencePiece models and the vocabulary that numbers their pieces; see the module for what it equals.

    Attributes:
        FILES: the files that decide ids and text -> what they hold. All that are present must travel together.
        vocabulary, target_vocabulary: piece -> id, one and the same object unless the config has ``separate_vocabs``.
        language_codes: entries like ``>>cmn_Hans<<`` of the vocabulary, which may open a source text.
        eos_id, pad_id, unk_id: ids of ``</s>``, ``<pad>`` and ``<unk>``.
        special_ids: ids that ``decode`` drops. ``unk_id`` is one of them, so that unknown pieces vanish unseen.
        model_max_length: longest input in ids, ``</s>`` included, that the config claims. ``None`` for no limit.
        clean_up_tokenization_spaces: whether ``decode`` removes blanks before English punctuation.
        padding_side: ``right`` or ``left``.
    """

    FILES: ClassVar[dict[str, str]] = {
        "source.spm": "SentencePiece model of the source language",
        "target.spm": "SentencePiece model of the target language",
        "vocab.json": "piece -> id, of both languages or of the source",
        "target_vocab.json": "piece -> id of the target, with separate_vocabs",
        CONFIG: "special and added tokens, longest input, clean-up",
        "special_tokens_map.json": "special tokens, before transformers 4.34",
        "added_tokens.json": "added tokens, before transformers 4.34",
        "tokenizer.json": "added tokens of a converted tokenizer; the rest of the file is not used",
    }

    def __init__(self, folder: Path, config: dict[str, Any]) -> None:
        self._separate = bool(config.get("separate_vocabs"))
        self.vocabulary = _read_ids(folder / "vocab.json")
        self.target_vocabulary = _read_ids(folder / "target_vocab.json") if self._separate else self.vocabulary
        self._pieces_by_id = {index: piece for piece, index in self.target_vocabulary.items()}
        self._source_spm = _load_spm(folder / "source.spm", config)
        self._target_spm = _load_spm(folder / "target.spm", config)

        named = {"eos_token": "</s>", "unk_token": "<unk>", "pad_token": "<pad>", **_named_tokens(config)}
        self._unk = named["unk_token"]
        for name, vocabulary in (("vocab.json", self.vocabulary), ("target_vocab.json", self.target_vocabulary)):
            if self._unk not in vocabulary:
                raise InputError(what=f"no entry {self._unk!r}", where=folder / name, action=COPY_AGAIN)
        special = [named[name] for name in sorted(named, key=_rank)] + _unnamed_special_tokens(config)
        special = list(dict.fromkeys(filter(None, special)))
        self._added = AddedTokens(_added_tokens(folder, config), special, self.vocabulary)
        self.eos_id, self.unk_id, self.pad_id = (
            self._added.ids[named[name]] for name in ("eos_token", "unk_token", "pad_token")
        )
        self.special_ids = self._added.special_ids
        self.language_codes = tuple(p for p in self.vocabulary if p.startswith(">>") and p.endswith("<<"))

        limit = config.get("model_max_length", 512)
        self.model_max_length = int(limit) if limit is not None and limit <= NO_LIMIT else None
        self.clean_up_tokenization_spaces = bool(config.get("clean_up_tokenization_spaces", False))
        self.padding_side = _side(config, "padding_side")
        self._truncation_side = _side(config, "truncation_side")
        self._split_added = not config.get("split_special_tokens", False)

    @classmethod
    def from_folder(cls, folder: Path | str) -> MarianTokenizer:
        """Read a tokenizer from the folder of a model or of an artifact set.

        Raises:
            InputError: a file is missing, damaged or says something that this class does not do.
        """
        folder = Path(folder)
        config = _read_config(folder)
        required = ["source.spm", "target.spm", "vocab.json"]
        for name in [*required, "target_vocab.json"] if config.get("separate_vocabs") else required:
            if not (folder / name).is_file():
                raise InputError(what=f"no {name} ({cls.FILES[name]})", where=folder, action=COPY_AGAIN)
        try:
            return cls(folder, config)
        except (TypeError, ValueError, AttributeError, KeyError) as error:
            raise InputError(
                what=f"malformed field in {CONFIG} or the files of added tokens ({error})",
                where=folder,
                action=COPY_AGAIN,
            ) from None

    def pieces(self, text: str, *, target: bool = False) -> list[str]:
        """Split a text into pieces, added tokens and language code included, ``</s>`` not.

        Args:
            text: any text that UTF-8 can hold.
            target: split it as a text of the target language.

        Raises:
            InputError: the text has a lone surrogate, which no encoding of text can hold.
        """
        _require_utf8(text)
        spm = self._target_spm if target else self._source_spm
        if not self._split_added:
            return _cut(text, spm)
        pieces: list[str] = []
        for segment in self._added.segments(text):
            pieces.extend([segment] if segment in self._added.ids else _cut(segment, spm))
        return pieces

    def encode(self, text: str, max_length: int | None = None, *, target: bool = False) -> list[int]:
        """Encode one text; the last id is ``eos_id``. A text of spaces is ``[eos_id]``.

        Args:
            text: any text that UTF-8 can hold.
            max_length: longest result; pieces are dropped from the end, ``</s>`` stays. ``None`` keeps everything.
            target: encode it as a text of the target language.

        Raises:
            InputError: a lone surrogate in the text, or a ``max_length`` below 1.
        """
        vocabulary = self.target_vocabulary if target else self.vocabulary
        ids = [self._id(piece, vocabulary) for piece in self.pieces(text, target=target)]
        if max_length is not None:
            if max_length < 1:
                raise InputError(
                    what=f"{max_length} leaves no room for </s>", where="max_length", action="Give 1 or more."
                )
            excess = max(0, len(ids) + 1 - max_length)
            ids = ids[excess:] if self._truncation_side == "left" else ids[: len(ids) - excess]
        return [*ids, self.eos_id]

    def batch(self, id_lists: Sequence[Sequence[int]]) -> tuple[np.ndarray, np.ndarray]:
        """Pad encoded texts to the longest.

        Returns:
            ``input_ids`` and ``attention_mask``, both int64 ``[batch, source]``.

        Raises:
            ValueError: no texts.
        """
        if len(id_lists) == 0:
            raise ValueError("a batch of no texts has no shape")
        shape = len(id_lists), max(map(len, id_lists))
        input_ids, attention_mask = np.full(shape, self.pad_id, np.int64), np.zeros(shape, np.int64)
        for row, ids in enumerate(id_lists):
            filled = slice(shape[1] - len(ids), None) if self.padding_side == "left" else slice(len(ids))
            input_ids[row, filled], attention_mask[row, filled] = ids, 1
        return input_ids, attention_mask

    def decode(self, ids: Iterable[int]) -> str:
        """Return the text of generated ids without special tokens: ``decode(ids, skip_special_tokens=True)``.

        Raises:
            InputError: an id that neither the vocabulary nor the SentencePiece model has.
        """
        spm = self._target_spm if self._separate else self._source_spm
        text, run = "", []
        for piece in (self._piece(int(index), spm) for index in ids if int(index) not in self.special_ids):
            if piece in self._added.special:  # same text under another id, in a separate target vocabulary
                text, run = f"{text}{spm.decode_pieces(run)}{piece} ", []
            else:
                run.append(piece)
        text = (text + spm.decode_pieces(run)).replace("▁", " ").strip()
        for artifact, clean in CLEAN_UP if self.clean_up_tokenization_spaces else ():
            text = text.replace(artifact, clean)
        return text

    def unknown_pieces(self, text: str, *, target: bool = False) -> list[str]:
        """Pieces of a text that the model only sees as ``<unk>``, in order; an unknown language code is one."""
        vocabulary = self.target_vocabulary if target else self.vocabulary
        unknown = {self.unk_id, vocabulary[self._unk]}
        return [piece for piece in self.pieces(text, target=target) if self._id(piece, vocabulary) in unknown]

    def unknown_count(self, ids: Iterable[int]) -> int:
        """How many generated ids are ``<unk>``: with a shared vocabulary ``decode`` drops them without a trace."""
        return sum(int(index) == self.target_vocabulary[self._unk] for index in ids)

    def _id(self, piece: str, vocabulary: dict[str, int]) -> int:
        if piece in self._added.ids:
            return self._added.ids[piece]
        return vocabulary.get(piece, vocabulary[self._unk])

    def _piece(self, index: int, spm: sentencepiece.SentencePieceProcessor) -> str:
        if index in self._added.tokens:
            return self._added.tokens[index].content
        if index in self._pieces_by_id:
            return self._pieces_by_id[index]
        if 0 <= index < spm.get_piece_size():
            return spm.id_to_piece(index)
        raise InputError(
            what=f"id {index} is not in its vocabulary of {len(self._pieces_by_id)}",
            where="tokenizer",
            action="Use the tokenizer that was saved with the model.",
        )


TOKENIZERS = {"MarianTokenizer": MarianTokenizer}
MODEL_TYPES = {"marian": "MarianTokenizer"}


def load_tokenizer(folder: Path | str) -> MarianTokenizer:
    """Read the tokenizer of a model folder or artifact set, of the class that its files name.

    Raises:
        InputError: no such folder, a tokenizer that is not supported, or a file missing or damaged.
    """
    return _tokenizer_class(Path(folder)).from_folder(folder)


def files(folder: Path | str) -> list[str]:
    """Names of the tokenizer files in a folder, which must travel in an artifact set.

    Raises:
        InputError: no such folder, or a tokenizer that is not supported.
    """
    return [name for name in _tokenizer_class(Path(folder)).FILES if (Path(folder) / name).is_file()]


def _tokenizer_class(folder: Path) -> type[MarianTokenizer]:
    if not folder.is_dir():
        raise InputError(what="no such folder", where=folder, action="Give the folder of a model or an artifact set.")
    where, found = CONFIG, _read_object(folder / CONFIG).get("tokenizer_class")
    if found is None:
        model = _read_object(folder / "config.json")
        where, found = "config.json", model.get("tokenizer_class") or model.get("model_type")
    if found is None and (folder / "source.spm").is_file():  # old folders name no class; sets have no config.json
        return MarianTokenizer
    if found is None:
        raise InputError(what=f"neither {CONFIG} nor config.json names a tokenizer", where=folder, action=COPY_AGAIN)
    name = MODEL_TYPES.get(str(found), str(found))
    if name not in TOKENIZERS:
        raise InputError(
            what=f"tokenizer {found!r} is not supported",
            where=folder / where,
            action=f"Supported: {', '.join(TOKENIZERS)} (model types: {', '.join(MODEL_TYPES)}).",
        )
    return TOKENIZERS[name]


def _read_object(path: Path) -> dict[str, Any]:
    """Contents of an optional JSON file; empty without it."""
    if not path.is_file():
        return {}
    data = read_json(path, action=COPY_AGAIN)
    if not isinstance(data, dict):
        raise InputError(what=f"a JSON {type(data).__name__}, expected an object", where=path, action=COPY_AGAIN)
    return data


def _read_config(folder: Path) -> dict[str, Any]:
    """``tokenizer_config.json``, with the special tokens that transformers before 4.34 kept in a file of their own."""
    config = _read_object(folder / CONFIG)
    if "added_tokens_decoder" in config:
        return config
    lists = {name: config[name] for name in UNNAMED_TOKENS if config.get(name)}
    return {**config, **_read_object(folder / "special_tokens_map.json"), **lists}


def _read_ids(path: Path) -> dict[str, int]:
    ids = _read_object(path)
    for piece, index in ids.items():
        if type(index) is not int:
            raise InputError(what=f"the id of {piece!r} is {index!r}, not an integer", where=path, action=COPY_AGAIN)
    return ids


def _load_spm(path: Path, config: dict[str, Any]) -> sentencepiece.SentencePieceProcessor:
    options = {name: value for name, value in (config.get("sp_model_kwargs") or {}).items() if value}
    refused = sorted(options.keys() - set(SENTENCEPIECE_OPTIONS))
    if refused:
        raise InputError(
            what=f"sp_model_kwargs sets {', '.join(refused)}",
            where=path.with_name(CONFIG),
            action=f"Remove it: ids must not vary. Supported: {', '.join(SENTENCEPIECE_OPTIONS)}.",
        )
    spm = sentencepiece.SentencePieceProcessor(**options)
    try:
        spm.Load(str(path))
    except (RuntimeError, OSError) as error:
        reason = str(error).replace(str(path), path.name)
        raise InputError(what=f"not a whole SentencePiece model ({reason})", where=path, action=COPY_AGAIN) from None
    return spm


def _named_tokens(config: dict[str, Any]) -> dict[str, str]:
    """Name -> content of every ``..._token`` that is set: the standard names, and a model's own."""
    named = {name: value for name, value in config.items() if name.endswith("_token")}
    named = {name: value for name, value in named.items() if isinstance(value, (str, dict))}
    own = config.get("extra_special_tokens")
    named.update(own if isinstance(own, dict) else {})
    return {name: AddedToken.from_json(value).content for name, value in named.items()}


def _rank(name: str) -> int:
    return NAMED_TOKENS.index(name) if name in NAMED_TOKENS else len(NAMED_TOKENS)


def _unnamed_special_tokens(config: dict[str, Any]) -> list[str]:
    for name in UNNAMED_TOKENS:
        if config.get(name) and isinstance(config[name], list):
            return [AddedToken.from_json(value).content for value in config[name]]
    return []


def _added_tokens(folder: Path, config: dict[str, Any]) -> dict[int, AddedToken]:
    if "added_tokens_decoder" in config:
        listed = config["added_tokens_decoder"].items()
        return {int(index): AddedToken.from_json(value) for index, value in listed}
    tokens = {index: AddedToken(content) for content, index in _read_ids(folder / "added_tokens.json").items()}
    for value in _read_object(folder / "tokenizer.json").get("added_tokens", []):
        tokens[int(value["id"])] = AddedToken.from_json(value)
    return tokens


def _side(config: dict[str, Any], name: str) -> str:
    side = config.get(name, "right")
    if side not in ("right", "left"):
        raise ValueError(f"{name} is {side!r}, neither 'right' nor 'left'")
    return side


def _cut(text: str, spm: sentencepiece.SentencePieceProcessor) -> list[str]:
    """Pieces of a text without added tokens. Only a language code at its very start is kept whole."""
    end = text.find("<<") if text.startswith(">>") else -1
    if end < 0:
        return spm.encode(text, out_type=str)
    return [text[: end + 2], *spm.encode(text[end + 2 :], out_type=str)]


def _require_utf8(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise InputError(
            what=f"lone surrogate U+{ord(text[error.start]):04X} at character {error.start}",
            where="text",
            action="Read the text as UTF-8 with errors='replace'.",
        ) from None
