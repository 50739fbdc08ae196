"""Does the set give PyTorch's values for any batch, any source, any padding, any past and any number of new tokens?

The examples of a property are shared out over ranges of lengths: drawn over the whole range at once, so few would
leave too much of it out.
"""

from __future__ import annotations

from suites.shapes.strategies import SHORT, continuations, encodings

# Shortest and longest source, from the model's maximum.
SOURCES = (
    lambda most: (1, min(SHORT, most)),
    lambda most: (1, most),
    lambda most: (max(1, most - 1), most),
)

# Shortest and longest past, from the model's maximum; what is appended fits into the rest.
PASTS = (
    lambda most: (0, 0),
    lambda most: (1, min(SHORT, most - 1)),
    lambda most: (1, most - 1),
    lambda most: (max(1, most - 3), most - 1),
)


def test_any_batch_is_encoded_as_by_pytorch(subject, explorer_of, sizes, judge):
    """Encoder output, and cross K/V where the encoder emits them, at every real position."""
    ranges = [encodings(sizes, bounds(sizes.dims.max_source_positions)) for bounds in SOURCES]
    judge(explorer_of("the encoder on any batch, length and padding").explore(ranges))


def test_any_past_is_continued_as_by_pytorch(subject, explorer_of, sizes, not_promised, judge):
    """Logits and every K/V, over an encoder output of any length and padding."""
    ranges = [continuations(sizes, bounds(sizes.dims.max_target_positions)) for bounds in PASTS]
    judge(explorer_of("the decoder on any past, new tokens and batch").explore(ranges), *not_promised)
