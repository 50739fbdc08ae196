"""Does this CPU multiply integers as numpy does? (fault Q03)

CPUs without VNNI add two products of u8 x s8 in 16 bits: 255 x 127 twice does not fit, and saturates without a word.
Kernels for one row are others than those for several. Both are asked here on models of one node.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from onnx import TensorProto, helper

from harness.contract.finding import Finding, Verdict

# Largest magnitudes of s8 weights: all 8 bits, and the 7 that `reduce_range` leaves.
FULL, REDUCED = 127, 64
# Inputs of a product: a pair, a vector register, and a real layer; an odd rest.
_DEPTHS = (2, 64, 512, 77)
_OUTPUTS = 33
ROWS = (1, 4)
GIVEN, WEIGHTS, PRODUCT = "given", "weights", "product"

Run = Callable[[bytes, Mapping[str, np.ndarray]], np.ndarray]


@dataclass(frozen=True)
class Case:
    """One product: uint8 ``[rows, inputs]`` by int8 ``[inputs, outputs]``."""

    name: str
    given: np.ndarray
    weights: np.ndarray

    def model(self) -> bytes:
        """A graph of one MatMulInteger whose weights are stored, as in an artifact."""
        graph = helper.make_graph(
            [helper.make_node("MatMulInteger", [GIVEN, WEIGHTS], [PRODUCT])],
            "integers",
            [helper.make_tensor_value_info(GIVEN, TensorProto.UINT8, ["rows", self.given.shape[1]])],
            [helper.make_tensor_value_info(PRODUCT, TensorProto.INT32, ["rows", self.weights.shape[1]])],
            [helper.make_tensor(WEIGHTS, TensorProto.INT8, self.weights.shape, self.weights.tobytes(), raw=True)],
        )
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 14)])
        model.ir_version = 7
        return model.SerializeToString()

    def expected(self) -> np.ndarray:
        """int32 ``[rows, outputs]`` by numpy."""
        return self.given.astype(np.int32) @ self.weights.astype(np.int32)


def cases(largest: int) -> Iterator[Case]:
    """The extreme pairs of both signs, and random numbers, with weights up to a magnitude."""
    rng = np.random.default_rng(0)
    for depth in _DEPTHS:
        full = np.full((max(ROWS), depth), 255, np.uint8)
        extreme = np.full((depth, _OUTPUTS), largest, np.int8)
        alternating = extreme * np.where(np.arange(_OUTPUTS) % 2, 1, -1).astype(np.int8)
        yield Case(f"255 x {largest}, {depth} inputs", full, extreme)
        yield Case(f"255 x ±{largest}, {depth} inputs", full, alternating)
        given = rng.integers(0, 256, full.shape, dtype=np.uint8)
        yield Case(f"random, {depth} inputs", given, rng.integers(-largest, largest + 1, extreme.shape).astype(np.int8))


def multiplies_exactly(run: Run, largest: int, needed: bool, instruction_sets: Sequence[str]) -> Finding:
    """Compare the runtime's integer products with numpy's, for one row and for several.

    Args:
        run: model bytes and feeds -> the product.
        largest: largest magnitude of the weights.
        needed: whether the set under test has weights so large; else a difference is only a warning.
        instruction_sets: of this CPU.
    """
    wrong, compared = [], 0
    for case in cases(largest):
        expected, model = case.expected(), case.model()
        for rows in ROWS:
            compared += 1
            found = run(model, {GIVEN: case.given[:rows]})
            if not np.array_equal(found, expected[:rows]):
                at = tuple(int(i) for i in np.argwhere(found != expected[:rows])[0])
                wrong.append(f"{case.name}, {rows} rows: {found[at]} for {expected[:rows][at]}")
    return Finding(
        check=f"this CPU multiplies u8 by s8 exactly, weights up to {largest}",
        verdict=Verdict.PASS if not wrong else Verdict.FAIL if needed else Verdict.WARN,
        measured=float(len(wrong)),
        limit=0.0,
        unit="products that differ from numpy's",
        passing_limit=float(len(wrong)),
        compared=compared,
        expected=compared,
        where=wrong[0] if wrong else "",
        cause=_cause(wrong, instruction_sets),
        action="Quantize with reduce_range, or run where the CPU has VNNI." if wrong else "",
        details=(*wrong[1:8], f"instruction sets: {' '.join(instruction_sets) or 'unknown'}"),
    )


def _cause(wrong: list[str], instruction_sets: Sequence[str]) -> str:
    if not wrong:
        return ""
    if any("vnni" in name for name in instruction_sets):
        return "the kernel is wrong: this CPU has VNNI, and needs no 16-bit sums"
    return "pairs of products saturate in 16 bits: this CPU has no VNNI"
