"""Does the set give PyTorch's values for any batch, any source, any padding, any past and any number of new tokens?

Each range of lengths is explored by itself: a few examples over the whole range would leave too many sizes out.
"""

from __future__ import annotations

import pytest

from suites.shapes.strategies import SHORT, continuations, encodings

# Range -> shortest and longest source, from the model's maximum.
SOURCES = {
    "short sources": lambda most: (1, min(SHORT, most)),
    "sources of any length": lambda most: (1, most),
    "the longest sources": lambda most: (max(1, most - 1), most),
}

# Range -> shortest and longest past, from the model's maximum; what is appended fits into the rest.
PASTS = {
    "no past": lambda most: (0, 0),
    "a short past": lambda most: (1, min(SHORT, most - 1)),
    "a past of any length": lambda most: (1, most - 1),
    "the longest past": lambda most: (max(1, most - 3), most - 1),
}


@pytest.mark.parametrize("length", SOURCES)
def test_any_batch_is_encoded_as_by_pytorch(subject, length, explorer_of, sizes, judge):
    """Encoder output, and cross K/V where the encoder emits them, at every real position."""
    bounds = SOURCES[length](sizes.dims.max_source_positions)
    judge(explorer_of(f"the encoder on {length}").explore(encodings(sizes, bounds), ranges=len(SOURCES)))


@pytest.mark.parametrize("past", PASTS)
def test_any_past_is_continued_as_by_pytorch(subject, past, explorer_of, sizes, not_promised, judge):
    """Logits and every K/V, over an encoder output of any length and padding."""
    bounds = PASTS[past](sizes.dims.max_target_positions)
    finding = explorer_of(f"the decoder after {past}").explore(continuations(sizes, bounds), ranges=len(PASTS))
    judge(finding, *not_promised)
