"""What was under test, and where: the head of every report."""

from __future__ import annotations

import platform
from pathlib import Path
from typing import Any

import onnxruntime

from harness.runtime.threads import affinity, quota, usable_threads
from harness.settings import Settings, torch_is_here

# Instruction sets that change kernels and integer arithmetic, oldest first.
_INTERESTING = (
    "sse4_1",
    "avx",
    "f16c",
    "fma",
    "avx2",
    "avx512f",
    "avx512bw",
    "avx512_vnni",
    "avx_vnni",
    "amx_int8",
    "asimd",
    "asimddp",
    "i8mm",
)


def run_context(settings: Settings) -> dict[str, Any]:
    """Model, hashes, versions, instruction sets and threads; ``header`` holds what the terminal shows."""
    found = _versions()
    stack = _stack(found)
    header = {"stack": f"{stack} ({', '.join(f'{name} {version}' for name, version in found.items())})"}
    if torch_is_here():
        header = {**_model_lines(settings), **header}
    header["cpu"] = f"{platform.machine()}, {' '.join(instruction_sets()) or 'instruction sets unknown'}"
    limit = quota()
    header["threads"] = (
        f"{usable_threads()} used, {affinity()} by affinity, quota {'none' if limit is None else f'{limit:g}'}"
    )
    return {
        "stack": stack,
        "header": header,
        "versions": found,
        "instruction_sets": instruction_sets(),
        "threads": {"used": usable_threads(), "affinity": affinity(), "quota": limit},
        "providers": list(settings.providers),
    }


def _versions() -> dict[str, str]:
    if torch_is_here():
        from harness import compat

        return compat.versions()
    return {"python": platform.python_version(), "onnxruntime": onnxruntime.__version__}


def _stack(found: dict[str, str]) -> str:
    """Name of the tox environment that pins this stack, e.g. ``ort117``, or ``rt117`` without torch."""
    major, minor = found["onnxruntime"].split(".")[:2]
    return f"{'ort' if torch_is_here() else 'rt'}{major}{minor}"


def _model_lines(settings: Settings) -> dict[str, str]:
    from harness.reference.checkpoint import Checkpoint

    checkpoint = Checkpoint.open(settings.model)
    kind = "pickle, restricted unpickler" if checkpoint.pickled else "safetensors"
    lines = {"model": f"{checkpoint.model_id} ({checkpoint.family}), weights {checkpoint.weights_sha256[:16]} ({kind})"}
    if settings.artifacts:
        lines["artifacts"] = str(settings.artifacts)
    else:
        made = f"{', '.join(settings.layouts)} by {', '.join(settings.exporters)}"
        lines["subjects"] = f"{made} at {', '.join(settings.precisions)}"
    return lines


def instruction_sets() -> list[str]:
    """Instruction sets of this CPU that matter here, from ``/proc/cpuinfo``; empty where there is none."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return []
    line = next((line for line in text.splitlines() if line.lower().startswith(("flags", "features"))), "")
    flags = set(line.split(":", 1)[-1].split())
    return [name for name in _INTERESTING if name in flags]
