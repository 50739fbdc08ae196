"""Text in, text out, on an artifact set."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.contract.errors import InputError
from harness.contract.generation import Decoded, GenerationSettings
from harness.runtime.artifact_model import ArtifactModel
from harness.runtime.artifact_set import open_set
from harness.runtime.search import generate
from harness.runtime.session import SessionProfile
from harness.runtime.tokenizer import load_tokenizer

# Sentences read ahead and sorted by length, so that a batch pads little; output keeps the input's order.
SORT_WINDOW = 512


@dataclass(frozen=True)
class Translation:
    """One translated sentence: the source as given, the text, and the ids behind it."""

    source: str
    text: str
    decoded: Decoded


class Translator:
    """A set with its tokenizer.

    Args:
        folder: the artifact set; nothing else of the model is needed.
        profile: how sessions are opened.
        verify: compare every file with the manifest's hash first.

    Raises:
        InputError: the set or its tokenizer cannot be used.
    """

    def __init__(self, folder: Path | str, profile: SessionProfile = SessionProfile(), *, verify: bool = True) -> None:
        artifacts = open_set(folder)
        if verify and artifacts.manifest and (changed := artifacts.manifest.changed_files(artifacts.folder)):
            raise InputError(
                what=f"a file is not the one that was exported: {changed[0]}",
                where=artifacts.folder,
                action="Restore the file or export the set again; `pytest suites --artifacts` says what changed.",
            )
        self.tokenizer = load_tokenizer(artifacts.folder)
        self.model = ArtifactModel(artifacts, profile)
        self.settings: GenerationSettings = artifacts.generation
        self._max_source = artifacts.dims.max_source_positions

    def translate(
        self,
        texts: Sequence[str],
        settings: GenerationSettings | None = None,
        *,
        batch_size: int = 8,
        truncate: bool = False,
    ) -> list[Translation]:
        """Translate sentences in batches sorted by length; the result keeps the order given.

        Args:
            texts: one sentence each.
            settings: instead of the set's own.
            batch_size: sentences decoded together.
            truncate: cut sources that exceed the model's positions; otherwise they are an error.

        Raises:
            InputError: a source is too long.
        """
        encoded = [self._encode(text, truncate) for text in texts]
        order = sorted(range(len(texts)), key=lambda i: len(encoded[i]))
        results: list[Translation | None] = [None] * len(texts)
        for start in range(0, len(order), batch_size):
            chunk = order[start : start + batch_size]
            ids, mask = self.tokenizer.batch([encoded[i] for i in chunk])
            for i, decoded in zip(chunk, generate(self.model, ids, mask, settings or self.settings)):
                results[i] = Translation(texts[i], self.tokenizer.decode(decoded.generated), decoded)
        return results

    def stream(self, texts: Iterator[str], **options) -> Iterator[Translation]:
        """Translate an endless source window by window."""
        window: list[str] = []
        for text in texts:
            window.append(text)
            if len(window) == SORT_WINDOW:
                yield from self.translate(window, **options)
                window = []
        yield from self.translate(window, **options)

    def _encode(self, text: str, truncate: bool) -> list[int]:
        ids = self.tokenizer.encode(text, max_length=self._max_source if truncate else None)
        if len(ids) > self._max_source:
            raise InputError(
                what=f"{len(ids)} tokens, the model takes {self._max_source}",
                where=f"text {text[:40]!r}...",
                action="Split it into sentences, or pass --truncate.",
            )
        return ids
