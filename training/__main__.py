"""The recipe's commands: `python -m training corpus | tokenizer | sentences | train | evaluate | card`."""

from __future__ import annotations

import argparse
import os
import sys
from dataclasses import replace
from pathlib import Path

_ROOT = Path(__file__).parent.parent
_MODEL = _ROOT / "fixtures/models/tiny-marian-en-zh"
# Threads that spin for long while they wait stall a run on a busy machine to a thirtieth of its speed. glibc hands
# every large block back to the system and faults its pages in again at the next step, which costs a third.
_ENVIRONMENT = {
    "GOMP_SPINCOUNT": "10000",
    "MALLOC_MMAP_MAX_": "0",
    "MALLOC_TRIM_THRESHOLD_": "20000000000",
    "MALLOC_TOP_PAD_": "100000000",
}


def _arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("python -m training", description=__doc__)
    parser.add_argument(
        "--work", type=Path, default=_ROOT / ".training", help="downloads, text, checkpoint (%(default)s)"
    )
    parser.add_argument(
        "--model",
        type=Path,
        help="folder of the model; tokenizer and train write WORK/model, evaluate and card read the embedded model",
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    commands.add_parser("corpus", help="download the help texts, split them, write the tokenizer's text")
    commands.add_parser("tokenizer", help="train the SentencePiece model")
    sentences = commands.add_parser("sentences", help="write held-out sentences of the grammar with their slots")
    sentences.add_argument("--out", type=Path, default=_ROOT / "fixtures/sentences/grammar-2000.jsonl")
    train = commands.add_parser("train", help="train, or go on from the checkpoint")
    train.add_argument("--tokens", type=float, help="source and target tokens of this stage (44e6; 17e6 with --from)")
    train.add_argument("--from", dest="published", type=Path, metavar="MODEL",
                       help="a further stage: go on from this model and its tokenizer, not from nothing")  # fmt: skip
    train.add_argument("--minutes", type=float, default=600, help="stop after this time (%(default)s)")
    train.add_argument("--threads", type=int, default=2, help="(%(default)s)")
    for name, about in (("evaluate", "score the model on held-out text"), ("card", "write the model card")):
        command = commands.add_parser(name, help=about)
        command.add_argument("--threads", type=int, default=2, help="(%(default)s)")
    return parser


def _with_environment() -> None:
    if any(os.environ.get(name) != value for name, value in _ENVIRONMENT.items()):
        os.execve(sys.executable, [sys.executable, "-m", "training", *sys.argv[1:]], {**os.environ, **_ENVIRONMENT})


def _run(arguments: argparse.Namespace) -> None:
    arguments.work.mkdir(parents=True, exist_ok=True)
    trained = arguments.model or arguments.work / "model"
    published = arguments.model or _MODEL
    # Each command imports only what it needs: the corpus needs no torch.
    if arguments.command == "corpus":
        from training import corpus

        corpus.build(arguments.work)
    elif arguments.command == "tokenizer":
        from training import tokenizer

        tokenizer.build(arguments.work, trained)
    elif arguments.command == "sentences":
        from training import held_out

        held_out.write(arguments.out)
    elif arguments.command == "train":
        from training.train import CONTINUED, Plan, train

        _with_environment()
        plan = CONTINUED if arguments.published else Plan()
        if arguments.tokens is not None:
            plan = replace(plan, tokens=arguments.tokens)
        train(arguments.work, trained, plan, arguments.threads, arguments.minutes, arguments.published)
    else:
        from training import evaluate

        run = evaluate.evaluate if arguments.command == "evaluate" else evaluate.card
        run(arguments.work, published, arguments.threads)


def main() -> int:
    arguments = _arguments().parse_args()
    try:
        _run(arguments)
    except (RuntimeError, ValueError, FileNotFoundError) as error:
        print(f"python -m training {arguments.command}: {error}", file=sys.stderr)
        return 4
    return 0


if __name__ == "__main__":
    sys.exit(main())
