"""Exit codes and the one exception for input that cannot be used."""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    """Exit codes of every command of the project, pytest included."""

    GOOD = 0
    HOLD = 1
    INCOMPLETE = 3
    USAGE = 4
    INTERNAL = 5


class InputError(Exception):
    """Something the user gave cannot be used.

    Printed as one line and answered with ``ExitCode.USAGE``; a traceback would only hide the line.

    Args:
        what: what is wrong, in a few words.
        where: the file, option or tensor it is wrong in.
        action: one concrete thing to do next.
    """

    def __init__(self, *, what: str, where: object, action: str) -> None:
        self.what, self.where, self.action = what, str(where), action
        super().__init__(what, str(where), action)

    def __str__(self) -> str:
        return " ".join(f"{self.where}: {self.what}. {self.action}".split())

    def __reduce__(self):
        return (_rebuild_input_error, (self.what, self.where, self.action))


def _rebuild_input_error(what: str, where: str, action: str) -> InputError:
    return InputError(what=what, where=where, action=action)
