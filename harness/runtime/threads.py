"""How many threads this process may really use."""

from __future__ import annotations

import os
from pathlib import Path

CGROUP = Path("/sys/fs/cgroup")


def quota() -> float | None:
    """CPUs the control group grants, or None without a limit (cgroup v2 ``cpu.max``, then v1)."""
    for limit, period in (
        (CGROUP / "cpu.max", None),
        (CGROUP / "cpu/cpu.cfs_quota_us", CGROUP / "cpu/cpu.cfs_period_us"),
    ):
        try:
            words = limit.read_text().split() + (period.read_text().split() if period else [])
            if words[0] in ("max", "-1"):
                return None
            return int(words[0]) / int(words[1])
        except (OSError, ValueError, IndexError):
            continue
    return None


def affinity() -> int:
    """CPUs this process may be scheduled on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def usable_threads() -> int:
    """Threads worth starting: affinity, capped by the quota rounded down, at least 1 (fault P04).

    Under pytest-xdist the workers share them.
    """
    limit = quota()
    threads = affinity() if limit is None else min(affinity(), max(1, int(limit)))
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    return max(1, threads // workers)
