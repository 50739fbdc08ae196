"""Does the cache stay PyTorch's while a search appends, reorders, repeats and drops rows?"""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule, run_state_machine_as_test

from harness.checks.shapes import ENCODE, SELECT, Call
from suites.shapes.strategies import MAX_BATCH, append, lengths, seeds, sources

# Fewest and most rows that a search begins with; the examples are shared out over them.
FIRST_ROWS = ((1, 1), (2, 3), (4, MAX_BATCH))
# The longest source and the most new tokens of one call: how a cache changes is what these runs are about, and
# `test_any_length` covers the sizes.
LONGEST_SOURCE = 24
MOST_TOKENS = 8


class Search(RuleBasedStateMachine):
    """A search that does anything a decoding loop may do, in any order.

    Every rule ends with new tokens, so that no change of the rows goes unread.

    Attributes:
        explorer, first_rows: set by the test.
    """

    explorer = None
    first_rows = None

    def __init__(self) -> None:
        super().__init__()
        self.sides = self.explorer.begin()
        self.sizes = self.explorer.sizes

    @initialize(data=st.data(), repeats=st.integers(1, 2), rng=seeds())
    def begin(self, data, repeats, rng) -> None:
        longest = min(LONGEST_SOURCE, self.sizes.dims.max_source_positions)
        self.make(Call(ENCODE, data.draw(sources(self.sizes, (1, longest), self.first_rows))))
        if repeats * self.sides.batch <= MAX_BATCH and repeats > 1:
            self.keep(np.repeat(np.arange(self.sides.batch), repeats))
        self.append(data, rng)

    @precondition(lambda self: self.room)
    @rule(data=st.data(), rng=seeds())
    def go_on(self, data, rng) -> None:
        self.append(data, rng)

    @precondition(lambda self: self.room)
    @rule(data=st.data(), rng=seeds())
    def reorder_beams(self, data, rng) -> None:
        self.keep(data.draw(self.rows(self.sides.batch, self.sides.batch)))
        self.append(data, rng)

    @precondition(lambda self: self.room)
    @rule(data=st.data(), rng=seeds())
    def repeat_or_drop_any_rows(self, data, rng) -> None:
        self.keep(data.draw(self.rows(1, MAX_BATCH)))
        self.append(data, rng)

    @precondition(lambda self: self.room and self.sides.batch > 1)
    @rule(data=st.data(), rng=seeds())
    def drop_finished_rows(self, data, rng) -> None:
        self.keep(sorted(data.draw(self.rows(1, self.sides.batch - 1, unique=True))))
        self.append(data, rng)

    @property
    def room(self) -> int:
        """Tokens that still fit."""
        return self.sizes.dims.max_target_positions - self.sides.length

    def rows(self, fewest: int, most: int, unique: bool = False) -> st.SearchStrategy[list[int]]:
        return st.lists(st.integers(0, self.sides.batch - 1), min_size=fewest, max_size=most, unique=unique)

    def keep(self, rows) -> None:
        self.make(Call(SELECT, {"rows": np.array(rows, dtype=np.int64)}))

    def append(self, data, rng: np.random.Generator) -> None:
        """One token, or several where the set promises it."""
        one_by_one = self.sides.length and self.sizes.single_token_steps
        tokens = 1 if one_by_one else data.draw(lengths(1, min(MOST_TOKENS, self.room)))
        self.make(append(self.sizes, self.sides.batch, self.sides.length, tokens, rng))

    def make(self, call: Call) -> None:
        if self.sides.sound and not self.sides.make(call):
            self.explorer.finish(self.sides)

    def teardown(self) -> None:
        if self.sides.calls and self.sides.sound:
            self.explorer.finish(self.sides)


def test_the_cache_equals_pytorch_whatever_a_search_does(subject, explorer_of, not_promised, judge):
    """Prefill, single tokens, several tokens, reordered, repeated and dropped rows; every tensor after every call."""
    explorer = explorer_of("the cache through appending, reordering and dropping")

    def run() -> None:
        for rows in FIRST_ROWS:
            machine = type("Search", (Search,), {"explorer": explorer, "first_rows": rows})
            run_state_machine_as_test(machine, settings=explorer.profile(len(FIRST_ROWS)))

    judge(explorer.conclude(run), *not_promised)
