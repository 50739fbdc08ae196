"""Does the cache stay PyTorch's while a search appends, reorders and drops?"""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule, run_state_machine_as_test

from harness.checks.shapes import ENCODE, SELECT, Call
from suites.shapes.strategies import MAX_BATCH, append, lengths, seeds, sources

# Rows that a search begins with, and the longest source and the most new tokens of one call: how a cache changes is
# what these runs are about, and `test_any_length` covers the sizes.
FIRST_ROWS = 4
LONGEST_SOURCE = 24
MOST_TOKENS = 8


class Search(RuleBasedStateMachine):
    """A search that does anything a decoding loop may do, in any order.

    Attributes:
        explorer: set by the test.
    """

    explorer = None

    def __init__(self) -> None:
        super().__init__()
        self.sides = self.explorer.begin()
        self.sizes = self.explorer.sizes
        self.sound = True

    def make(self, call: Call) -> None:
        self.sound = self.sides.make(call)
        if not self.sound:
            self.explorer.finish(self.sides)

    @initialize(data=st.data())
    def encode(self, data) -> None:
        longest = min(LONGEST_SOURCE, self.sizes.dims.max_source_positions)
        self.make(Call(ENCODE, data.draw(sources(self.sizes, (1, longest), FIRST_ROWS))))

    @property
    def room(self) -> int:
        return self.sizes.dims.max_target_positions - self.sides.length

    @precondition(lambda self: self.room)
    @rule(rng=seeds())
    def append_one_token(self, rng) -> None:
        self.make(append(self.sizes, self.sides.batch, self.sides.length, 1, rng))

    @precondition(lambda self: self.room > 1 and not (self.sides.length and self.sizes.single_token_steps))
    @rule(rng=seeds(), data=st.data())
    def append_several_tokens(self, rng, data) -> None:
        tokens = data.draw(lengths(2, min(MOST_TOKENS, self.room)))
        self.make(append(self.sizes, self.sides.batch, self.sides.length, tokens, rng))

    @rule(data=st.data())
    def reorder_and_repeat_rows(self, data) -> None:
        rows = st.integers(0, self.sides.batch - 1)
        self.make(_select(data.draw(st.lists(rows, min_size=1, max_size=MAX_BATCH))))

    @precondition(lambda self: self.sides.batch > 1)
    @rule(data=st.data())
    def drop_finished_rows(self, data) -> None:
        rows = st.integers(0, self.sides.batch - 1)
        kept = data.draw(st.lists(rows, min_size=1, max_size=self.sides.batch - 1, unique=True))
        self.make(_select(sorted(kept)))

    def teardown(self) -> None:
        if self.sound and self.sides.calls:
            self.explorer.finish(self.sides)


def _select(rows: list[int]) -> Call:
    return Call(SELECT, {"rows": np.array(rows, dtype=np.int64)})


def test_the_cache_equals_pytorch_whatever_a_search_does(subject, explorer_of, not_promised, judge):
    """Prefill, single tokens, several tokens, reordered, repeated and dropped rows; every tensor after every call."""
    explorer = explorer_of("the cache through appending, reordering and dropping")
    machine = type("Search", (Search,), {"explorer": explorer})
    finding = explorer.conclude(lambda: run_state_machine_as_test(machine, settings=explorer.profile()))
    judge(finding, *not_promised)
