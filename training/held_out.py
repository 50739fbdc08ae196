"""The held-out sentences of the grammar, with references and slots, as the suites read them."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

from training.grammar.generate import held_out_sentences
from training.grammar.templates import Sentence

COUNT = 2000
_SEED = 77


def row(number: int, sentence: Sentence) -> dict:
    return {
        "id": f"grammar-{number:04d}",
        "source": sentence.english,
        "reference": sentence.chinese,
        "tags": list(sentence.tags),
        "slots": [asdict(slot) for slot in sentence.slots],
    }


def write(out: Path) -> None:
    """Write the 2,000 sentences, one JSON object a line."""
    rows = [row(number, sentence) for number, sentence in enumerate(held_out_sentences(_SEED, COUNT), start=1)]
    out.write_text("\n".join(json.dumps(entry, ensure_ascii=False) for entry in rows) + "\n", encoding="utf-8")
    print(f"{len(rows)} sentences in {out.name}")
