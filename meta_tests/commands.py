"""Run one of the project's commands as a user would: a new interpreter, started at the top of the repository."""

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]

# What pytest and pytest-xdist tell their own children; a pytest started from a test must not take it for its own.
_OF_THE_OUTER_RUN = ("PYTEST_", "COV_CORE_")


@dataclass(frozen=True)
class Outcome:
    """What a command left behind: its exit code and the two streams as text."""

    code: int
    stdout: str
    stderr: str

    @property
    def output(self) -> str:
        """Both streams, stdout first."""
        return self.stdout + self.stderr

    @property
    def words(self) -> str:
        """Both streams with every run of white space as one space: a wrapped line can be looked for as one."""
        return " ".join(self.output.split())


def environment(python_path: Path | None = None, **variables: str) -> dict[str, str]:
    """The environment for a child: ours without the outer pytest's variables, the repository (after `python_path`) on
    PYTHONPATH, UTF-8 streams, wide lines and no network for the hub client."""
    child = {name: value for name, value in os.environ.items() if not name.startswith(_OF_THE_OUTER_RUN)}
    folders = [str(folder) for folder in (python_path, REPOSITORY) if folder is not None]
    child.update(PYTHONPATH=os.pathsep.join(folders), PYTHONUTF8="1", COLUMNS="200", HF_HUB_OFFLINE="1", NO_COLOR="1")
    child.update(variables)
    return child


def start(*arguments: object, python_path: Path | None = None, cwd: Path = REPOSITORY, **variables: str):
    """Start `python ARGUMENTS...` and return the `subprocess.Popen`: in a process group of its own, streams as
    pipes."""
    return subprocess.Popen(
        [sys.executable, *map(str, arguments)],
        cwd=cwd,
        env=environment(python_path, **variables),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )


def run(
    *arguments: object,
    stdin: bytes = b"",
    python_path: Path | None = None,
    cwd: Path = REPOSITORY,
    timeout: float = 240,
    **variables: str,
) -> Outcome:
    """Run `python ARGUMENTS...` to its end. `stdin` is bytes; `variables` are set in the child's environment. Raises
    `subprocess.TimeoutExpired` after `timeout` seconds."""
    done = subprocess.run(
        [sys.executable, *map(str, arguments)],
        input=stdin,
        capture_output=True,
        cwd=cwd,
        env=environment(python_path, **variables),
        timeout=timeout,
    )
    return Outcome(done.returncode, _text(done.stdout), _text(done.stderr))


def run_suites(*arguments: object, report: Path | None = None, **options) -> Outcome:
    """`python -m pytest ARGUMENTS... -p no:cacheprovider`, its report under `report` when one is given."""
    where = () if report is None else ("--report", report)
    return run("-m", "pytest", *arguments, *where, "-p", "no:cacheprovider", **options)


def _text(stream: bytes) -> str:
    return stream.decode("utf-8", errors="replace")
