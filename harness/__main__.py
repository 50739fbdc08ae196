"""``python -m harness``: translate with an artifact set, profile it, store a PyTorch baseline, review goldens."""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
from collections.abc import Iterator
from pathlib import Path

from harness.commands import Parser, run
from harness.contract.errors import ExitCode, InputError


def main(arguments: list[str] | None = None) -> int:
    """Entry point; returns the exit code."""
    parser = Parser(prog="python -m harness", description=__doc__.strip("`").replace("``", ""))
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    _add_translate(commands)
    _add_profile(commands)
    _add_baseline(commands)
    _add_phenomena(commands)
    _add_review(commands)
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
    command.add_argument(
        "--profile",
        default="server",
        metavar="NAME",
        help="session options: server, edge or suites, see docs/operations.md (default: server)",
    )
    command.add_argument(
        "--session-config",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="a further session configuration entry of onnxruntime; may be repeated",
    )
    command.set_defaults(run=_translate)


def _add_profile(commands: argparse._SubParsersAction) -> None:
    command = commands.add_parser("profile", help="rank the operators of an artifact set by time")
    command.add_argument("folder", metavar="DIR", help="artifact set, e.g. one written by `python -m exporters`")
    command.add_argument(
        "--sentences", type=Path, metavar="FILE", help="sentences to translate (default: four, five times)"
    )
    command.add_argument("--beams", type=int, metavar="N", help="1 for greedy, up to 8; default: the model's own")
    command.add_argument(
        "--top", type=int, default=10, metavar="N", help="operator types and nodes to show of each graph (default: 10)"
    )
    command.add_argument("--json", action="store_true", help="JSON in place of tables, with every operator type")
    command.set_defaults(run=_profile)


def _add_baseline(commands: argparse._SubParsersAction) -> None:
    command = commands.add_parser("baseline", help="store what PyTorch makes of a file of sentences")
    command.add_argument("model", metavar="MODEL", help="model folder or hub id")
    command.add_argument("--sentences", required=True, type=Path, metavar="FILE", help="sentences, see the README")
    command.add_argument("--out", required=True, type=Path, metavar="FILE", help="JSON file to write; must not exist")
    command.add_argument("--beams", type=int, metavar="N", help="1 for greedy, up to 8; default: the model's own")
    command.set_defaults(run=_baseline)


def _add_review(commands: argparse._SubParsersAction) -> None:
    command = commands.add_parser("review", help="read a proposal beside the golden translations and approve it")
    command.add_argument("model", metavar="MODEL", help="model folder, hub id, or name of the golden's folder")
    command.add_argument(
        "--golden",
        type=Path,
        metavar="DIR",
        help="the golden's folder, or one with a folder per model (default: golden/)",
    )
    command.add_argument(
        "--proposal", type=Path, metavar="FILE", help="read this proposal in place of the one beside the golden"
    )
    command.add_argument(
        "--decisions", type=Path, metavar="FILE", help="take decisions from this file (JSON lines) instead of asking"
    )
    command.set_defaults(run=_review)


def _add_phenomena(commands: argparse._SubParsersAction) -> None:
    command = commands.add_parser(
        "phenomena", help="judge numbers, names, negation, markup, completeness and script of any translator's output"
    )
    command.add_argument(
        "file",
        metavar="FILE",
        help="JSON lines with `source` (English) and `translation` (Chinese); - for standard input",
    )
    command.add_argument(
        "--glossary", type=Path, metavar="FILE", help="names of your own and their Chinese forms, see docs/phenomena.md"
    )
    command.add_argument("--fail", action="store_true", help="exit with 1 if anything is a fault")
    command.set_defaults(run=_phenomena)


def _translate(options: argparse.Namespace) -> None:
    from harness.runtime.session import check_providers, config_entries, named_profile
    from harness.runtime.translate import Translator

    providers = tuple(options.providers.split(","))
    check_providers(providers)
    if options.batch_size < 1:
        raise InputError(what=f"{options.batch_size} sentences", where="--batch-size", action="Give 1 or more.")
    profile = named_profile(options.profile, providers)
    profile = dataclasses.replace(profile, entries=config_entries(options.session_config))
    translator = Translator(options.folder, profile)
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


def _profile(options: argparse.Namespace) -> None:
    from harness.contract.sentences import read_sentences
    from harness.report.operators import profile, table

    if options.top < 1:
        raise InputError(what=f"{options.top} rows", where="--top", action="Give 1 or more.")
    sentences = [s.source for s in read_sentences(options.sentences)] if options.sentences else None
    graphs = profile(options.folder, sentences, options.beams)
    if options.json:
        print(json.dumps([costs.to_json(options.top) for costs in graphs], indent=1, ensure_ascii=False))
    else:
        print("\n".join(table(costs, options.top) for costs in graphs), end="")


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


def _review(options: argparse.Namespace) -> int:
    from harness.golden.review import review
    from harness.settings import GOLDEN

    return review(
        options.golden or GOLDEN,
        options.model,
        proposal_path=options.proposal,
        decisions_path=options.decisions,
    )


def _phenomena(options: argparse.Namespace) -> ExitCode:
    from harness.checks.phenomena.glossary import built_in
    from harness.checks.phenomena.stream import judged_lines

    glossary = built_in()
    if options.glossary is not None:
        glossary = glossary.with_file(options.glossary)
    faulty = False
    for line, has_fault in judged_lines(options.file, glossary):
        sys.stdout.buffer.write(line.encode("utf-8", "surrogatepass") + b"\n")
        sys.stdout.flush()
        faulty = faulty or has_fault
    return ExitCode.HOLD if options.fail and faulty else ExitCode.GOOD


if __name__ == "__main__":
    sys.exit(main())
