"""One graph file in an onnxruntime session, spoken to in the contract's names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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


@dataclass(frozen=True)
class SessionProfile:
    """How sessions are opened.

    Attributes:
        providers: execution providers in order of preference.
        optimisation: a key of ``OPTIMISATION_LEVELS``.
        threads: threads of one operator; None takes what affinity and quota allow.
        spinning: whether idle threads wait by spinning: fastest alone, slowest beside another library's threads.
    """

    providers: Sequence[str] = ("CPUExecutionProvider",)
    optimisation: str = "all"
    threads: int | None = None
    spinning: bool = True

    def options(self) -> onnxruntime.SessionOptions:
        """Session options; errors come as exceptions, so the runtime's own log stays silent."""
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = OPTIMISATION_LEVELS[self.optimisation]
        options.intra_op_num_threads = self.threads or usable_threads()
        options.log_severity_level = FATAL_ONLY
        # Idle threads that spin steal the cores from PyTorch, which runs in turn with the sessions.
        options.add_session_config_entry("session.intra_op.allow_spinning", "1" if self.spinning else "0")
        return options


def check_providers(providers: Sequence[str]) -> None:
    """Raise ``InputError`` for a provider that this onnxruntime does not have."""
    available = onnxruntime.get_available_providers()
    if missing := [name for name in providers if name not in available]:
        raise InputError(
            what=f"this onnxruntime has no {', '.join(missing)}",
            where="--providers",
            action=f"Available: {', '.join(available)}.",
        )


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
        with explain(where=path):
            self._session = onnxruntime.InferenceSession(
                str(path), profile.options(), providers=list(profile.providers)
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
