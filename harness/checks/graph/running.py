"""Findings about graphs that were run: refused by the runtime, or of other shapes than promised."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from harness.contract.errors import InputError
from harness.contract.finding import Finding, Verdict
from harness.contract.layouts import CROSS, ENCODER_OUTPUT, LOGITS, SELF, ModelDims, present_names

Shapes = Mapping[str, tuple[int, ...]]


def refused(check: str, error: InputError) -> Finding:
    """Turn the runtime's refusal of a file or of an input into a failure with its cause."""
    return Finding(check=check, verdict=Verdict.FAIL, where=error.where, cause=error.what, action=error.action)


@dataclass(frozen=True)
class Sizes:
    """Sizes of one run, in elements: the first call appends ``first`` target tokens, the second ``second``."""

    batch: int
    source: int
    first: int
    second: int

    def text(self) -> str:
        """How reports call it."""
        return f"batch {self.batch}, source {self.source}, {self.first} target tokens, then {self.second} on that past"

    def expected(self, dims: ModelDims, *, crossed: bool) -> Iterator[tuple[str, dict[str, tuple[int, ...]]]]:
        """Place and shape of every output, in the order of the calls; ``crossed``: cross K/V come from the encoder."""
        heads, width = dims.decoder_heads, dims.head_dim
        cross = dict.fromkeys(present_names(dims.decoder_layers, CROSS), (self.batch, heads, self.source, width))
        hidden = {ENCODER_OUTPUT: (self.batch, self.source, dims.d_model)}
        yield "encoder", {**hidden, **cross} if crossed else hidden
        past = 0
        for place, target in (("first call", self.first), ("second call", self.second)):
            past += target
            cache = dict.fromkeys(present_names(dims.decoder_layers, SELF), (self.batch, heads, past, width))
            yield place, {LOGITS: (self.batch, target, dims.vocab_size), **cache}


def shapes_are(check: str, expected: Sequence[tuple[str, Shapes]], found: Mapping[str, Shapes]) -> Finding:
    """Compare the shapes of outputs, place by place; a missing output counts as not compared."""
    wrong = [
        f"{place}, {name}: shape {list(found[place][name])}, expected {list(shape)}"
        for place, shapes in expected
        for name, shape in shapes.items()
        if name in found[place] and found[place][name] != shape
    ]
    present = sum(name in found[place] for place, shapes in expected for name in shapes)
    return Finding(
        check=check,
        verdict=Verdict.FAIL if wrong else Verdict.PASS,
        compared=present,
        expected=sum(len(shapes) for _, shapes in expected),
        where=wrong[0] if wrong else "",
        cause="an axis is baked at the size it had while tracing" if wrong else "",
        action="Export with every batch and length axis dynamic, from distinct tracing sizes." if wrong else "",
        details=tuple(wrong[:8]),
    )
