"""What each onnxruntime minor release can load on its CPU provider.

The facts are in `runtimes.json`, measured by `benchmarks/runtime_capabilities.py`, which says how a
release is added. They are of one patch of each minor release and of one-node models: a session may
load more where graph optimization fuses an operator that has no kernel of its own.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from harness.contract.errors import InputError

TABLE = Path(__file__).with_name("runtimes.json")


@dataclass(frozen=True)
class Runtime:
    """One onnxruntime minor release.

    Attributes:
        minor: the release, `major.minor`.
        max_ir: the highest ONNX IR version of a model that it loads.
        max_opset: the highest version of the standard operator set (ai.onnx) that it loads.
        lacks: standard operators that it loads at no opset. Operators that are newer than `max_opset`
            are not listed.
        lacks_contrib: com.microsoft operators of which it loads no float32 node, out of the 14 that
            were tried.
        lacks_at: standard operators that it loads at some opsets only, with the opsets of the model,
            7 to `max_opset`, at which it does not.
    """

    minor: str
    max_ir: int
    max_opset: int
    lacks: frozenset[str]
    lacks_contrib: frozenset[str]
    lacks_at: Mapping[str, frozenset[int]] = field(hash=False)

    def is_missing(self, domain: str, op: str, opset: int | None = None) -> bool:
        """Tell whether a node of this operator keeps a model from loading.

        Args:
            domain: the node's domain; operators outside of ai.onnx and com.microsoft were not measured,
                and are never missing.
            op: the node's operator; one that was never tried is not missing.
            opset: the model's version of ai.onnx; without it, operators that are missing at some opsets
                only are not missing.
        """
        if domain in ("", "ai.onnx"):
            return op in self.lacks or opset in self.lacks_at.get(op, ())
        return domain == "com.microsoft" and op in self.lacks_contrib


def known_runtimes() -> dict[str, Runtime]:
    """Return the measured releases by `major.minor`, oldest first."""
    entries = json.loads(TABLE.read_text("utf-8"))["runtimes"]
    return {
        minor: Runtime(
            minor=minor,
            max_ir=entry["max_ir"],
            max_opset=entry["max_opset"],
            lacks=frozenset(entry["lacks"]),
            lacks_contrib=frozenset(entry["lacks_contrib"]),
            lacks_at={op: frozenset(opsets) for op, opsets in entry["lacks_at"].items()},
        )
        for minor, entry in entries.items()
    }


def runtime(version: str) -> Runtime:
    """Return the entry for an onnxruntime version, `1.14` or `1.14.1`.

    A version newer than the table gets the newest entry: from 1.14 to 1.32, no release dropped what
    the one before it loads.

    Raises:
        InputError: the version is older than the table, or is no version.
    """
    known = known_runtimes()
    newest = list(known)[-1]
    match = re.match(r"(\d+)\.(\d+)", version)
    minor = f"{int(match[1])}.{int(match[2])}" if match else ""
    if minor in known:
        return known[minor]
    if match and _number(minor) > _number(newest):
        return known[newest]
    raise InputError(
        what="no such release in the table of runtimes",
        where=f"onnxruntime {version!r}",
        action=f"Name one of {', '.join(known)}",
    )


def _number(minor: str) -> tuple[int, ...]:
    return tuple(int(part) for part in minor.split("."))
