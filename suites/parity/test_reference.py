"""Is the reference itself worth comparing with?"""

from __future__ import annotations

import pytest

from harness.contract.finding import Finding, Verdict
from harness.contract.limits import FAIL_ABOVE


@pytest.mark.parametrize("length", ("short", "medium", "long"))
def test_float32_rounding_noise_stays_below_the_limit(length, noise_of, judge):
    """Float32 PyTorch against float64 PyTorch. Noise beyond the limit makes every comparison on this model moot."""
    noise = noise_of(length)
    sound = noise <= FAIL_ABOVE
    judge(
        Finding(
            check=f"float32 rounding noise of PyTorch, {length} sentences",
            verdict=Verdict.PASS if sound else Verdict.INCONCLUSIVE,
            measured=noise,
            limit=FAIL_ABOVE,
            unit="largest absolute difference from float64, scaled",
            passing_limit=noise,
            cause="" if sound else "the model amplifies rounding errors beyond the parity limit",
            action="" if sound else "Parity in float32 cannot be decided on this model; compare in float64.",
        )
    )
