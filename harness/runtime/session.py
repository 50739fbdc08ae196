"""One graph file in an onnxruntime session, spoken to in the contract's names."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnxruntime

from harness.contract.errors import InputError
from harness.contract.known_errors import explain
from harness.runtime.naming import canonical_name, is_cache
from harness.runtime.threads import usable_threads

OPTIMISATION_LEVELS = {
    "off": onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL,
    "basic": onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC,
    "extended": onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED,
    "all": onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL,
}
FATAL_ONLY = 4
# Named ways to open sessions, and the configuration keys that onnxruntime's header documents, with where it is.
PROFILES = Path(__file__).with_name("session_profiles.json")
KEYS = Path(__file__).with_name("session_keys.json")


@dataclass(frozen=True)
class SessionProfile:
    """How sessions are opened.

    Attributes:
        providers: execution providers in order of preference.
        optimisation: a key of ``OPTIMISATION_LEVELS``.
        threads: threads of one operator; None takes what affinity and quota allow.
        spinning: whether idle threads wait by spinning: fastest alone, slowest beside another library's threads.
        arena: whether freed memory is kept for later calls; without, less memory and slower.
        memory_pattern: whether the sizes of one call plan the memory of the next with the same shapes.
        entries: further configuration entries, key and value, see ``config_entries``; they win over the rest.
        traces: folder for onnxruntime's profile of every session; None profiles nothing.
    """

    providers: Sequence[str] = ("CPUExecutionProvider",)
    optimisation: str = "all"
    threads: int | None = None
    spinning: bool = True
    arena: bool = True
    memory_pattern: bool = True
    entries: tuple[tuple[str, str], ...] = ()
    traces: Path | None = None

    def options(self) -> onnxruntime.SessionOptions:
        """Session options; errors come as exceptions, so the runtime's own log stays silent."""
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = OPTIMISATION_LEVELS[self.optimisation]
        options.intra_op_num_threads = self.threads or usable_threads()
        options.log_severity_level = FATAL_ONLY
        options.enable_cpu_mem_arena = self.arena
        options.enable_mem_pattern = self.memory_pattern
        # Idle threads that spin steal the cores from PyTorch, which runs in turn with the sessions.
        entries = {"session.intra_op.allow_spinning": "1" if self.spinning else "0", **dict(self.entries)}
        for key, value in entries.items():
            options.add_session_config_entry(key, value)
        return options


def named_profile(name: str, providers: Sequence[str] = ("CPUExecutionProvider",)) -> SessionProfile:
    """A profile of ``session_profiles.json``; docs/operations.md has what each costs.

    Raises:
        InputError: no profile has this name.
    """
    profiles = json.loads(PROFILES.read_text(encoding="utf-8"))["profiles"]
    if name not in profiles:
        raise InputError(what=f"no profile {name!r}", where="--profile", action=f"Choose one of {', '.join(profiles)}.")
    options = {key: value for key, value in profiles[name].items() if key != "purpose"}
    return SessionProfile(providers=providers, **options)


def config_entries(texts: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """Read ``KEY=VALUE`` texts; onnxruntime itself takes any key and says nothing.

    Raises:
        InputError: a text has no ``=``, or its key is none that onnxruntime's header documents.
    """
    known = json.loads(KEYS.read_text(encoding="utf-8"))["keys"]
    entries = []
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals:
            raise InputError(what="no `=`", where=f"--session-config {text}", action="Give KEY=VALUE.")
        if key not in known:
            (nearest,) = difflib.get_close_matches(key, known, n=1, cutoff=0.0)
            raise InputError(
                what="onnxruntime has no such key and would not say so",
                where=f"--session-config {key}",
                action=f"The nearest that it has is {nearest}.",
            )
        entries.append((key, value))
    return tuple(entries)


def check_providers(providers: Sequence[str]) -> None:
    """Raise ``InputError`` for a provider that this onnxruntime does not have."""
    available = onnxruntime.get_available_providers()
    if missing := [name for name in providers if name not in available]:
        raise InputError(
            what=f"this onnxruntime has no {', '.join(missing)}",
            where="--providers",
            action=f"Available: {', '.join(available)}.",
        )


@contextmanager
def _entries_taken(profile: SessionProfile) -> Iterator[None]:
    """Turn what onnxruntime says to a value that a known key does not take into an ``InputError``."""
    try:
        yield
    except InputError:
        raise
    except Exception as error:  # the runtime raises types of its own, RuntimeError among them
        if not profile.entries:
            raise
        raise InputError(
            what=f"onnxruntime opens no session with {', '.join(map('='.join, profile.entries))} ({str(error)[-160:]})",
            where="--session-config",
            action="Give a value that onnxruntime's header documents for the key.",
        ) from error


class GraphSession:
    """A session whose inputs and outputs go by the contract's names.

    Args:
        path: the graph file.
        role: its role.
        layers: decoder layers of the model.
        profile: how to open it.

    Raises:
        InputError: the runtime refuses the file, or an input has a name this project does not know.
    """

    def __init__(self, path: Path, role: str, layers: int, profile: SessionProfile) -> None:
        self.path, self.role = path, role
        options = profile.options()
        if profile.traces is not None:
            options.enable_profiling = True
            # A prefix of its own: traces of sessions opened in the same second would have the same name.
            options.profile_file_prefix = str(profile.traces / role)
        with _entries_taken(profile), explain(where=path):
            # Without fallback: onnxruntime would print to stdout and go on with other providers than were asked for.
            self._session = onnxruntime.InferenceSession(
                str(path), options, providers=list(profile.providers), enable_fallback=False
            )
        self.inputs = self._names(self._session.get_inputs(), layers, output=False)
        self.outputs = self._names(self._session.get_outputs(), layers, output=True)

    def _names(self, values, layers: int, *, output: bool) -> dict[str, str]:
        """Contract name -> the graph's own name."""
        caches = sum(is_cache(value.name) for value in values)
        names = {}
        for value in values:
            name = canonical_name(value.name, role=self.role, output=output, layers=layers, caches=caches)
            if name is None and not output:
                raise InputError(
                    what=f"input {value.name!r} is not a name of any known layout",
                    where=self.path,
                    action="Rename it to the contract's names, see the README.",
                )
            names[name or value.name] = value.name
        return names

    def shape_of(self, name: str) -> list[int | str | None]:
        """Declared shape of an input or output, by the contract's name."""
        own = {**self.inputs, **self.outputs}[name]
        values = (*self._session.get_inputs(), *self._session.get_outputs())
        return next(value.shape for value in values if value.name == own)

    def run(self, feeds: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Run the graph on those of ``feeds`` that it takes; return every output by the contract's name.

        Raises:
            InputError: an input is not in ``feeds``, or the runtime fails in a known way.
        """
        if missing := [name for name in self.inputs if name not in feeds]:
            raise InputError(
                what=f"input {missing[0]!r} does not belong to its layout",
                where=self.path,
                action="Export the graph with the tensors of one layout.",
            )
        with explain(where=self.path):
            values = self._session.run(
                list(self.outputs.values()), {own: feeds[name] for name, own in self.inputs.items()}
            )
        return dict(zip(self.outputs, values))

    def end_trace(self) -> Path:
        """Write the session's profile into the folder that its ``SessionProfile`` names, and return the file."""
        return Path(self._session.end_profiling())
