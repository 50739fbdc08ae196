"""Measure what each named session profile costs: load time, tokens per second, peak memory.

    python benchmarks/session_profiles.py DIR [--rounds N] [--tokens N]

DIR is an artifact set. Every measurement is a process of its own, which opens the set with one profile, translates
once to warm up, then measures; a round measures every profile once, in an order that rotates, so that what the machine
does meanwhile meets all of them alike. Prints a Markdown table of medians, with the range over the rounds in brackets.

Outputs are cut or forced to go on to the same number of tokens, so that profiles and sets of random weights are
measured on equal work. Peak memory is VmHWM of the process (proc_pid_status(5)), Python and libraries included;
`ru_maxrss` would start from the parent's.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import subprocess
import sys
import time
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(REPOSITORY))

# batch, beams
SHAPES = {"batch 1, greedy": (1, 1), "batch 8, greedy": (8, 1), "batch 8, beam 4": (8, 4)}
FIGURES = {"load, s": 2, **{f"tokens/s, {name}": 0 for name in SHAPES}, "peak, MB": 0}
SENTENCE = "The train to Berlin leaves at 7:45 on Monday, but the bus is late again."


def measure(folder: Path, profile: str, tokens: int) -> dict[str, float]:
    """Measure one profile in this process.

    Args:
        tokens: length of every output.

    Returns:
        A value for every key of ``FIGURES``.
    """
    from harness.runtime.session import named_profile
    from harness.runtime.translate import Translator

    started = time.perf_counter()
    translator = Translator(folder, named_profile(profile), verify=False)
    figures = {"load, s": time.perf_counter() - started}
    for name, (batch, beams) in SHAPES.items():
        settings = translator.settings.replace(num_beams=beams, max_length=tokens + 1)
        # No output can end early: the end token is banned, and forced at max_length by none.
        settings = settings.replace(
            banned_token_ids=(*settings.banned_token_ids, settings.eos_token_id), forced_eos_token_id=None
        )
        texts = [SENTENCE] * batch
        translator.translate(texts, settings, batch_size=batch)
        started = time.perf_counter()
        results = translator.translate(texts, settings, batch_size=batch)
        seconds = time.perf_counter() - started
        figures[f"tokens/s, {name}"] = sum(len(result.decoded.generated) for result in results) / seconds
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    figures["peak, MB"] = int(re.search(r"VmHWM:\s*(\d+) kB", status)[1]) / 1000
    return figures


def rounds(folder: Path, profiles: list[str], count: int, tokens: int) -> dict[str, list[dict[str, float]]]:
    """Measure every profile ``count`` times, interleaved, each time in a process of its own."""
    found: dict[str, list[dict[str, float]]] = {profile: [] for profile in profiles}
    for number in range(count):
        turn = number % len(profiles)
        for profile in profiles[turn:] + profiles[:turn]:
            command = [sys.executable, __file__, str(folder), "--tokens", str(tokens), "--one", profile]
            found[profile].append(json.loads(subprocess.run(command, check=True, capture_output=True).stdout))
    return found


def table(found: dict[str, list[dict[str, float]]]) -> str:
    """Markdown: a row per figure, a column per profile."""
    lines = [f"| | {' | '.join(f'`{profile}`' for profile in found)} |", f"|---{'|---' * len(found)}|"]
    for figure, digits in FIGURES.items():
        cells = []
        for measured in found.values():
            values = [one[figure] for one in measured]
            low, middle, high = (f"{f(values):,.{digits}f}" for f in (min, statistics.median, max))
            cells.append(f"{middle} ({low} to {high})")
        lines.append(f"| {figure} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    """Entry point."""
    from harness.runtime.session import PROFILES

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", metavar="DIR", type=Path, help="artifact set")
    parser.add_argument("--rounds", type=int, default=5, metavar="N", help="measurements of every profile (default: 5)")
    parser.add_argument("--tokens", type=int, default=32, metavar="N", help="length of every output (default: 32)")
    parser.add_argument("--one", metavar="NAME", help="measure this profile once, here, and print JSON")
    options = parser.parse_args()
    if options.one:
        print(json.dumps(measure(options.folder, options.one, options.tokens)))
        return
    profiles = list(json.loads(PROFILES.read_text(encoding="utf-8"))["profiles"])
    print(table(rounds(options.folder, profiles, options.rounds, options.tokens)))


if __name__ == "__main__":
    main()
