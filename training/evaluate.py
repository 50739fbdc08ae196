"""Scores of the model on held-out text, and the model card that states them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

import jinja2
import sacrebleu
import torch
from transformers import MarianMTModel

from training import corpus
from training.corpus import read_pairs
from training.tokenizer import Tokenizer
from training.train import RECORD, padded

_SENTENCES = Path(__file__).parent.parent / "fixtures/sentences/grammar-2000.jsonl"
_CARD = Path(__file__).parent / "card.md.jinja"
_BATCH = 64
REQUIRED = ("Hello, how are you?", "This is a test sentence for ONNX export.")


@dataclass(frozen=True)
class Output:
    text: str
    to_the_limit: bool


class Translator:
    """The model as it is published, with transformers' own search."""

    def __init__(self, model: Path, threads: int) -> None:
        torch.set_num_threads(threads)
        self.model = MarianMTModel.from_pretrained(model).eval()
        self.tokenizer = Tokenizer(model)

    def translate(self, texts: Sequence[str], beams: int) -> list[Output]:
        """Translations in the order of `texts`, decoded in batches of similar length."""
        ids = [self.tokenizer.pair(text, "")[0] for text in texts]
        order = sorted(range(len(ids)), key=lambda index: len(ids[index]))
        outputs: dict[int, Output] = {}
        for start in range(0, len(order), _BATCH):
            batch = order[start : start + _BATCH]
            for index, row in zip(batch, self._generate([ids[index] for index in batch], beams)):
                outputs[index] = Output(
                    self.tokenizer.decode(row), len(row) >= self.model.config.max_position_embeddings
                )
            print(f"\r  {len(outputs)}/{len(order)}", end="", flush=True)
        print("\r", end="")
        return [outputs[index] for index in range(len(texts))]

    def _generate(self, rows: list[list[int]], beams: int) -> list[list[int]]:
        """Ids of each output without start and padding; the end id stays, so that a full-length row had none."""
        source = padded(rows, self.tokenizer.pad)
        with torch.inference_mode():
            made = self.model.generate(
                input_ids=source, attention_mask=(source != self.tokenizer.pad).long(), num_beams=beams
            )
        return [[index for index in row[1:] if index != self.tokenizer.pad] for row in made.tolist()]


def corpus_scores(outputs: list[Output], references: list[str]) -> dict[str, float]:
    """BLEU (zh tokenizer) and chrF, and how many outputs ran to the length limit."""
    texts = [output.text for output in outputs]
    return {
        "bleu": round(sacrebleu.corpus_bleu(texts, [references], tokenize="zh").score, 1),
        "chrf": round(sacrebleu.corpus_chrf(texts, [references]).score, 1),
        "exact": round(100 * sum(map(str.__eq__, texts, references)) / len(texts), 1),
        "to_the_limit": sum(output.to_the_limit for output in outputs),
    }


def _slots_kept(rows: list[dict], outputs: list[Output], group: str) -> dict:
    """Share of the sentences with such slots whose translation holds the Chinese of every one of them."""
    wanted = [(row, output) for row, output in zip(rows, outputs) if any(s["group"] == group for s in row["slots"])]
    kept = [all(s["chinese"] in o.text for s in row["slots"] if s["group"] == group) for row, o in wanted]
    lost = [(row["source"], row["reference"], o.text) for (row, o), good in zip(wanted, kept) if not good]
    return {"sentences": len(wanted), "kept": round(100 * sum(kept) / len(wanted), 1), "lost": lost}


_NEGATIONS = "不没未无非勿别莫"


def _negations_kept(rows: list[dict], outputs: list[Output]) -> dict:
    """Share of the negative sentences whose translation has as many negating characters as the reference."""
    wanted = [(row, output) for row, output in zip(rows, outputs) if "neg" in row["tags"]]

    def count(text: str) -> int:
        return sum(text.count(character) for character in _NEGATIONS)

    kept = [count(output.text) == count(row["reference"]) for row, output in wanted]
    lost = [(row["source"], row["reference"], o.text) for (row, o), good in zip(wanted, kept) if not good]
    return {"sentences": len(wanted), "kept": round(100 * sum(kept) / len(wanted), 1), "lost": lost}


def measure(work: Path, model: Path, threads: int) -> dict:
    """Every figure of the model card. The held-out help texts are fetched if they are not there yet."""
    if not (work / "help.heldout.jsonl").exists():
        corpus.build(work)
    translator = Translator(model, threads)
    rows = [json.loads(line) for line in _SENTENCES.read_text(encoding="utf-8").splitlines()]
    sets = {
        "grammar": [(row["source"], row["reference"]) for row in rows],
        "help": read_pairs(work / "help.heldout.jsonl"),
    }
    figures: dict = {"scores": {}, "samples": []}
    outputs: dict[tuple[str, int], list[Output]] = {}
    for name, pairs in sets.items():
        for beams in (1, 4):
            outputs[name, beams] = translator.translate([english for english, _ in pairs], beams)
            scores = corpus_scores(outputs[name, beams], [chinese for _, chinese in pairs])
            figures["scores"][f"{name}, {'greedy' if beams == 1 else 'beam 4'}"] = scores
    grammar = outputs["grammar", 4]
    figures["slots"] = {
        "numbers": _slots_kept(rows, grammar, "number"),
        "names": _slots_kept(rows, grammar, "name"),
        "copied (codes, files, URLs, placeholders)": _slots_kept(rows, grammar, "copied"),
        "negations": _negations_kept(rows, grammar),
    }
    figures["required"] = list(zip(REQUIRED, (output.text for output in translator.translate(REQUIRED, 4))))
    for name, pairs in sets.items():
        # Drawn, not chosen: the bad ones too.
        drawn = Random(0).sample(range(len(pairs)), 5)
        figures["samples"] += [(*pairs[index], outputs[name, 4][index].text) for index in drawn]
    figures["stages"] = json.loads((model / RECORD).read_text(encoding="utf-8"))["stages"]
    figures["parameters"] = sum(parameter.numel() for parameter in translator.model.parameters())
    return figures


def evaluate(work: Path, model: Path, threads: int) -> dict:
    """Print every figure, with up to ten of the sentences that lost a slot."""
    figures = measure(work, model, threads)
    for name, scores in figures["scores"].items():
        print(f"{name}: " + ", ".join(f"{key} {value}" for key, value in scores.items()))
    for name, kept in figures["slots"].items():
        print(f"{name}: kept in {kept['kept']} % of {kept['sentences']} sentences")
        for source, reference, text in kept["lost"][:10]:
            print(f"    {source}\n      expected {reference}\n      got      {text}")
    for source, text in figures["required"]:
        print(f"{source} -> {text}")
    (work / "figures.json").write_text(json.dumps(figures, ensure_ascii=False, indent=1), encoding="utf-8")
    return figures


def card(work: Path, model: Path, threads: int) -> None:
    """Measure, and write README.md into the model's folder."""
    figures = evaluate(work, model, threads)
    template = jinja2.Template(_CARD.read_text(encoding="utf-8"), trim_blocks=True, lstrip_blocks=True)
    text = template.render(**figures, bytes=_size(model))
    (model / "README.md").write_text(text + "\n", encoding="utf-8")


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.iterdir() if path.name != "README.md")
