"""What a wrong cache looks like from outside."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from harness.checks.numeric import difference
from harness.contract.limits import FAIL_ABOVE


def swapped_tensors(reference: Mapping[str, np.ndarray], candidate: Mapping[str, np.ndarray]) -> list[tuple[str, str]]:
    """Find tensors that hold each other's values (fault G07).

    Args:
        reference, candidate: contract name -> float32 ``[batch, heads, length, head_dim]`` of one step.

    Returns:
        Pairs (name, name whose values it holds), only where the reference tells the two apart.
    """
    pairs = []
    for name, array in candidate.items():
        if name not in reference or _alike(reference[name], array):
            continue
        owners = [other for other, expected in reference.items() if other != name and _alike(expected, array)]
        pairs += [(name, other) for other in owners[:1]]
    return pairs


def moved_rows(reference: np.ndarray, candidate: np.ndarray) -> list[int] | None:
    """Which reference row each candidate row holds, when rows were permuted and nothing else is wrong (fault G14)."""
    if reference.shape != candidate.shape or _alike(reference, candidate):
        return None
    order = []
    for row in candidate:
        match = next((i for i, expected in enumerate(reference) if _alike(expected, row)), None)
        if match is None:
            return None
        order.append(match)
    return order


def _alike(reference: np.ndarray, candidate: np.ndarray) -> bool:
    return difference("", "", reference, candidate).scaled <= FAIL_ABOVE
