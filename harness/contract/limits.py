"""Numbers the project holds itself to, written before the first measurement.

Changed only with a reason in the commit.
"""

# Largest absolute difference from PyTorch, float32: encoder output, logits of every step, every K/V tensor.
FAIL_ABOVE = 1e-4
# Above this, plus the rounding noise measured against a float64 reference, a difference is worth a warning.
WARN_ABOVE = 1e-5
# Where a tensor's magnitude exceeds this, differences are scaled down by magnitude / SCALE_FROM.
SCALE_FROM = 10.0
# Two runs that pick different tokens: a tie only when the logits agree within FAIL_ABOVE and the reference's margin
# between both tokens is at most this many times FAIL_ABOVE.
TIE_MARGIN = 2.0
# Beam and greedy scores: largest absolute difference from generate().
SCORE_ABOVE = 1e-4
