"""``python -m harness``: translate with an artifact set, store a PyTorch baseline."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

from harness.commands import Parser, run
from harness.contract.errors import InputError


def main(arguments: list[str] | None = None) -> int:
    """Entry point; returns the exit code."""
    parser = Parser(prog="python -m harness", description=__doc__.strip("`").replace("``", ""))
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    _add_translate(commands)
    _add_baseline(commands)
    options, rest = parser.parse_known_args(arguments)
    # argparse leaves over what follows an option that stands between DIR and the texts.
    if rest and ("texts" not in options or any(text.startswith("-") for text in rest)):
        parser.error(f"unrecognized arguments: {' '.join(rest)}")
    if rest:
        options.texts = [*options.texts, *rest]
    return run(lambda: options.run(options))


def _add_translate(commands: argparse._SubParsersAction) -> None:
    command = commands.add_parser(
        "translate", help="translate text with an artifact set, without torch and transformers"
    )
    command.add_argument("folder", metavar="DIR", help="artifact set, e.g. one written by `python -m exporters`")
    command.add_argument(
        "texts", nargs="*", metavar="TEXT", help="sentences; without any, one a line from standard input"
    )
    command.add_argument("--beams", type=int, metavar="N", help="1 for greedy, up to 8; default: the model's own")
    command.add_argument("--max-length", type=int, metavar="N", help="longest output in tokens, start token included")
    command.add_argument(
        "--batch-size", type=int, default=8, metavar="N", help="sentences decoded together (default: 8)"
    )
    command.add_argument("--truncate", action="store_true", help="cut sources that exceed the model's positions")
    command.add_argument("--providers", default="CPUExecutionProvider", help="comma-separated execution providers")
    command.set_defaults(run=_translate)


def _add_baseline(commands: argparse._SubParsersAction) -> None:
    command = commands.add_parser("baseline", help="store what PyTorch makes of a file of sentences")
    command.add_argument("model", metavar="MODEL", help="model folder or hub id")
    command.add_argument("--sentences", required=True, type=Path, metavar="FILE", help="sentences, see the README")
    command.add_argument("--out", required=True, type=Path, metavar="FILE", help="JSON file to write; must not exist")
    command.add_argument("--beams", type=int, metavar="N", help="1 for greedy, up to 8; default: the model's own")
    command.set_defaults(run=_baseline)


def _translate(options: argparse.Namespace) -> None:
    from harness.runtime.session import SessionProfile, check_providers
    from harness.runtime.translate import Translator

    providers = tuple(options.providers.split(","))
    check_providers(providers)
    if options.batch_size < 1:
        raise InputError(what=f"{options.batch_size} sentences", where="--batch-size", action="Give 1 or more.")
    translator = Translator(options.folder, SessionProfile(providers=providers))
    settings = translator.settings
    if options.beams is not None:
        settings = settings.replace(num_beams=options.beams)
    if options.max_length is not None:
        limit = translator.model.artifacts.dims.max_target_positions
        if options.max_length > limit:
            raise InputError(
                what=f"{options.max_length} tokens, the model has {limit} positions",
                where="--max-length",
                action=f"Give {limit} or less.",
            )
        settings = settings.replace(max_length=options.max_length)
    texts = iter(options.texts) if options.texts else _standard_input()
    for result in translator.stream(texts, settings=settings, batch_size=options.batch_size, truncate=options.truncate):
        print(result.text, flush=True)


def _standard_input() -> Iterator[str]:
    for number, line in enumerate(sys.stdin.buffer, 1):
        try:
            yield line.decode("utf-8").rstrip("\r\n")
        except UnicodeDecodeError:
            raise InputError(
                what="not UTF-8", where=f"standard input, line {number}", action="Convert the text to UTF-8."
            ) from None


def _baseline(options: argparse.Namespace) -> None:
    from harness.reference.baseline import write_baseline

    write_baseline(options.model, options.sentences, options.out, beams=options.beams)


if __name__ == "__main__":
    sys.exit(main())
