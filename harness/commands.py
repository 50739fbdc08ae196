"""What every command of the project shares: exit codes and one-line errors."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable

from harness.contract.errors import ExitCode, InputError


class Parser(argparse.ArgumentParser):
    """An ``argparse`` parser that leaves with the project's usage code."""

    def error(self, message: str):
        self.print_usage(sys.stderr)
        self.exit(ExitCode.USAGE, f"{self.prog}: error: {message}\n")


def run(command: Callable[[], int | None]) -> int:
    """Run a command and turn its outcome into an exit code.

    Unusable input is one line on standard error. What is not understood keeps its traceback, because someone has to
    look at it.
    """
    try:
        return int(command() or ExitCode.GOOD)
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
        return ExitCode.USAGE
    except KeyboardInterrupt:
        print("error: interrupted", file=sys.stderr)
        return ExitCode.INCOMPLETE
    except BrokenPipeError:
        # The reader of our output is gone; point stdout elsewhere so that the interpreter's last flush stays quiet.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return ExitCode.GOOD
    except Exception:
        import traceback

        traceback.print_exc()
        return ExitCode.INTERNAL
