"""One sequence of calls, made on PyTorch and on an artifact set side by side, and compared tensor by tensor."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from harness.checks.numeric import Comparison, Difference, difference
from harness.contract.errors import InputError
from harness.contract.finding import Finding, with_count
from harness.contract.layouts import (
    ATTENTION_MASK,
    CROSS,
    DECODER,
    DECODER_INIT,
    DECODER_STEP,
    ENCODER,
    ENCODER_MASK,
    ENCODER_OUTPUT,
    LAYOUTS,
    LOGITS,
    ModelDims,
    present_names,
)
from harness.contract.seq2seq import DecoderState, EncoderOutput, Seq2Seq

ENCODE, GIVEN, STEP, SELECT = "encode", "given", "step", "select"


@dataclass(frozen=True)
class Call:
    """One call of a scenario.

    Attributes:
        kind: what is called:
            - ``encode``: each side encodes ``input_ids`` and ``attention_mask``, int64 ``[batch, source]``;
            - ``given``: PyTorch encodes them, and both sides go on from its output and from the self K/V under their
              ``present.{i}.decoder.*`` names, float32 ``[batch, heads, past, head_dim]``;
            - ``step``: ``input_ids``, int64 ``[batch, target]``, are appended;
            - ``select``: ``rows``, int64 ``[rows]``, are kept, in this order, repeats allowed.
        arrays: the call's arguments by name.
    """

    kind: str
    arrays: Mapping[str, np.ndarray]

    def text(self) -> str:
        """The call in one line, with the sizes that matter."""
        if self.kind == SELECT:
            return f"keep rows {self.arrays['rows'].tolist()}"
        batch, length = self.arrays["input_ids"].shape
        if self.kind == STEP:
            return f"append {length} token{'s' if length > 1 else ''}, batch {batch}"
        lengths = ", ".join(str(n) for n in self.arrays["attention_mask"].sum(axis=1))
        text = f"batch {batch}, source {length}, real tokens {lengths}"
        return (
            f"encode {text}" if self.kind == ENCODE else f"given PyTorch's encoder ({text}) and a past of {self.past}"
        )

    @property
    def past(self) -> int:
        """Length of the self K/V that a ``given`` call hands over."""
        return next(array.shape[2] for name, array in self.arrays.items() if name.startswith("present."))


Scenario = tuple[Call, ...]


def save_scenario(path: Path, scenario: Scenario) -> None:
    """Write a scenario to an ``.npz`` file; its arrays are named ``<number>/<kind>/<argument>``."""
    arrays = {
        f"{number:03d}/{call.kind}/{name}": array
        for number, call in enumerate(scenario)
        for name, array in call.arrays.items()
    }
    with path.open("wb") as stream:
        np.savez_compressed(stream, **arrays)


def load_scenario(path: Path) -> Scenario:
    """Read what ``save_scenario`` wrote."""
    calls: dict[tuple[str, str], dict[str, np.ndarray]] = {}
    with np.load(path, allow_pickle=False) as stored:
        for key in sorted(stored.files):
            number, kind, name = key.split("/")
            calls.setdefault((number, kind), {})[name] = stored[key]
    return tuple(Call(kind, arrays) for (_, kind), arrays in sorted(calls.items()))


@dataclass(frozen=True)
class Promise:
    """Names of the tensors that a set emits: by its encoder, by its first decoder step and by the later ones."""

    encoder: tuple[str, ...]
    first: tuple[str, ...]
    later: tuple[str, ...]

    @classmethod
    def of(cls, layout: str, dims: ModelDims, encoder_outputs: Collection[str]) -> Promise:
        """What a layout promises.

        Args:
            layout: a name in ``LAYOUTS``, or Optimum's ``merged``, whose one file makes the promise of ``pair``.
            dims: sizes of the model.
            encoder_outputs: what the encoder emits. In a set without a manifest, cross K/V among it tell ``compact``
                from ``single``: both have one decoder file of the same name.
        """
        if layout == "single" and set(present_names(dims.decoder_layers, CROSS)) & set(encoder_outputs):
            layout = "compact"
        graphs = LAYOUTS[layout if layout in LAYOUTS else "pair"].graphs(dims)
        names = {role: tuple(tensor.name for tensor in graph.outputs) for role, graph in graphs.items()}
        return cls(names[ENCODER], names.get(DECODER_INIT) or names[DECODER], names.get(DECODER_STEP) or names[DECODER])


class SideBySide:
    """Makes the same calls on both sides and compares everything that the set promises after each.

    Args:
        reference: PyTorch.
        candidate: the artifact set.
        promise: the tensors it promises.
        check: name of the check.
        exact: see ``Comparison``.

    Attributes:
        calls: the calls made.
        comparison: what they gave.
        complaint: why the set could not be compared any further: what it said, or what it does not emit.
    """

    def __init__(
        self, reference: Seq2Seq, candidate: Seq2Seq, promise: Promise, check: str, *, exact: bool = True
    ) -> None:
        self.reference, self.candidate, self.promise = reference, candidate, promise
        self.comparison = Comparison(check, exact=exact)
        self.calls: list[Call] = []
        self.complaint = ""
        self._ours: DecoderState
        self._theirs: DecoderState

    @property
    def length(self) -> int:
        """Target tokens in the cache."""
        return self._ours.length

    @property
    def batch(self) -> int:
        """Rows the decoder works on."""
        return len(self._ours.encoder.mask)

    def make(self, call: Call) -> bool:
        """Make one call and compare; return whether all is well so far."""
        self.calls.append(call)
        {ENCODE: self._encode, GIVEN: self._given, STEP: self._step, SELECT: self._select}[call.kind](**call.arrays)
        return self.sound

    @property
    def sound(self) -> bool:
        """Whether every promised tensor was there and within its limit so far."""
        return not self.complaint and not self.comparison.failing

    @property
    def worst(self) -> float:
        """The largest scaled difference."""
        return max(found.scaled for found in self.comparison.differences)

    def finding(self) -> Finding:
        """What the calls gave."""
        found = with_count(self.comparison.finding())
        if not self.complaint:
            return found
        return dataclasses.replace(found, where=f"first: {self._place()}", cause=self.complaint)

    def _encode(self, input_ids: np.ndarray, attention_mask: np.ndarray) -> None:
        expected = self.reference.encode(input_ids, attention_mask)
        self._ours = self.reference.start(expected)
        found = self._asked(self.promise.encoder, lambda: self.candidate.encode(input_ids, attention_mask))
        if found is not None:
            self._theirs = self.candidate.start(found)
            self._compare(self.promise.encoder, _encoder_tensors(expected), _encoder_tensors(found))

    def _given(self, input_ids: np.ndarray, attention_mask: np.ndarray, **past: np.ndarray) -> None:
        encoder = self.reference.encode(input_ids, attention_mask)
        length = self.calls[-1].past
        kind = encoder.hidden.dtype
        self._ours = DecoderState(encoder, {name: array.astype(kind) for name, array in past.items()}, length)
        self._theirs = DecoderState(_single_precision(encoder), past, length)

    def _step(self, input_ids: np.ndarray) -> None:
        promised = self.promise.later if self.length else self.promise.first
        logits, after = self.reference.step(self._ours, input_ids)
        before, self._ours = self._theirs, after
        found = self._asked(promised, lambda: self.candidate.step(before, input_ids))
        if found is not None:
            self._theirs = found[1]
            self._compare(promised, _step_tensors(logits, after), _step_tensors(*found))

    def _select(self, rows: np.ndarray) -> None:
        """The order that is expected is worked out here, so that a mistake in ``select`` itself shows too."""
        expected = {name: np.take(array, rows, axis=0) for name, array in _state_tensors(self._ours).items()}
        self._ours, self._theirs = self._ours.select(rows), self._theirs.select(rows)
        found = _state_tensors(self._theirs)
        held = self.promise.encoder + (self.promise.first if self.length else ())
        promised = [name for name in expected if name in held or name.split(".")[-2:-1] != [CROSS]]
        self._compare(promised, expected, found)

    def _asked(self, promised, call):
        """The candidate's answer, or None with the refusal on record."""
        try:
            return call()
        except InputError as error:
            self.complaint = f"{Path(error.where).name}: {error.what}"
        except Exception as error:  # a runtime raises its own types, and each of them is a failure of the set
            self.complaint = f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
        self.comparison.expected += len(promised)
        self.comparison.differences.append(
            Difference(self._place(), promised[0], np.inf, np.inf, 0.0, (), "the call was refused")
        )
        return None

    def _place(self) -> str:
        return f"call {len(self.calls)} ({self.calls[-1].text()})"

    def _compare(self, promised, reference: Mapping[str, np.ndarray], candidate: Mapping[str, np.ndarray]) -> None:
        self.comparison.expected += len(promised)
        if missing := [name for name in promised if name not in candidate]:
            self.complaint = f"promised and not there: {', '.join(missing)}"
        for name in promised:
            if name in candidate:
                keep = _meaningful(name, reference[name], self._ours.encoder.mask)
                found = _difference_everywhere(self._place(), name, reference[name], candidate[name], keep)
                self.comparison.differences.append(found)


def _encoder_tensors(encoder: EncoderOutput) -> dict[str, np.ndarray]:
    return {ENCODER_OUTPUT: encoder.hidden, **encoder.cross}


def _step_tensors(logits: np.ndarray, state: DecoderState) -> dict[str, np.ndarray]:
    return {LOGITS: logits, **state.past, **state.encoder.cross}


def _state_tensors(state: DecoderState) -> dict[str, np.ndarray]:
    return {ENCODER_MASK: state.encoder.mask, **_encoder_tensors(state.encoder), **state.past}


def _single_precision(encoder: EncoderOutput) -> EncoderOutput:
    cross = {name: array.astype(np.float32) for name, array in encoder.cross.items()}
    return EncoderOutput(encoder.mask, encoder.hidden.astype(np.float32), cross)


def _meaningful(name: str, reference: np.ndarray, mask: np.ndarray) -> np.ndarray | None:
    """Positions whose value means something, as booleans over the tensor's leading axes; None for all.

    What an encoder leaves at padded positions is never read. A row without a single real token is compared in the
    decoder where PyTorch gives it finite values.
    """
    real = mask.astype(bool)
    if name == ENCODER_OUTPUT:
        return real
    if name.split(".")[-2:-1] == [CROSS]:
        return np.broadcast_to(real[:, None, :], reference.shape[:3])
    defined = real.any(axis=1) | np.isfinite(reference.reshape(len(reference), -1)).all(axis=1)
    return None if defined.all() else defined


def _difference_everywhere(
    place: str, name: str, reference: np.ndarray, candidate: np.ndarray, keep: np.ndarray | None
) -> Difference:
    """Compare where it means something, and require finite values wherever PyTorch has them."""
    found = difference(place, name, reference, candidate, keep)
    if found.problem or keep is None:
        return found
    wild = np.isfinite(reference) & ~np.isfinite(candidate)
    if not wild.any():
        return found
    index = tuple(int(i) for i in np.argwhere(wild)[0])
    problem = f"{candidate[index]} at the padded position {list(index)}"
    return dataclasses.replace(found, absolute=np.inf, scaled=np.inf, index=index, problem=problem)


def replay(
    reference: Seq2Seq, candidate: Seq2Seq, promise: Promise, scenario: Scenario, check: str, *, exact: bool = True
) -> SideBySide:
    """Make a scenario's calls until the first that goes wrong."""
    sides = SideBySide(reference, candidate, promise, check, exact=exact)
    for call in scenario:
        if not sides.make(call):
            break
    return sides


def noise_of(single: Seq2Seq, double: Seq2Seq, promise: Promise, scenario: Scenario) -> float:
    """Rounding noise: the largest scaled difference of a float32 model from itself in float64 over a scenario."""
    sides = SideBySide(double, single, promise, "rounding noise")
    for call in scenario:
        sides.make(call)
    return sides.worst


@dataclass(frozen=True)
class Variation:
    """A failing scenario with one thing taken out of it.

    Attributes:
        name: completes "it passes ...".
        cause: what follows if it does.
        scenarios: what has to pass, all of it.
    """

    name: str
    cause: str
    scenarios: tuple[Scenario, ...]


def variations(scenario: Scenario) -> Iterator[Variation]:
    """Yield the variations of a failing scenario that really change it; its first call is the one that encodes."""
    ordered = _in_first_order(scenario)
    if ordered is not scenario:
        yield Variation("without reordering rows", "some cache tensors keep the rows' old order", (ordered,))
    mask = scenario[0].arrays["attention_mask"]
    if not mask.any(axis=1).all():
        cause = "a softmax over nothing but padding; mask with a large finite number, or refuse such rows"
        with_a_token = _mapped(scenario, attention_mask=_with_a_token)
        yield Variation("with a real token in every row", cause, (with_a_token,))
    if not mask.all():
        graph, name = ("encoder", ATTENTION_MASK) if len(scenario) == 1 else ("decoder", ENCODER_MASK)
        unpadded = _mapped(scenario, attention_mask=np.ones_like)
        yield Variation("without padding", f"the {graph} loses or ignores {name}", (unpadded,))
    split = tuple(single for call in scenario for single in _one_by_one(call))
    if len(split) > len(scenario):
        cause = "the causal mask or the target length is baked at the traced length"
        yield Variation("when the same tokens are appended one by one", cause, (split,))
    if (uncached := _without_past(ordered)) is not ordered:
        cause = "the position offset ignores the past, or the cache is used wrongly"
        yield Variation("with the same tokens and no past", cause, (uncached,))
    if (batch := len(ordered[0].arrays["attention_mask"])) > 1:
        single = tuple(_row(ordered, row) for row in range(batch))
        yield Variation("with each row alone", "the batch axis is baked, or rows of a batch mix", single)


def at_tracing_sizes(scenario: Scenario, sizes: Mapping[str, int]) -> Variation:
    """The scenario at the sizes of the export's tracing inputs.

    Args:
        scenario: the failing calls.
        sizes: ``batch``, ``source``, ``target`` and ``past``, in elements.
    """
    listed = ", ".join(f"{axis} {sizes[axis]}" for axis in ("batch", "source", "target", "past"))
    cause = "an axis, a position or a mask is baked at those sizes"
    return Variation(f"at the tracing sizes ({listed})", cause, (_resized(_in_first_order(scenario), sizes),))


def _mapped(scenario: Scenario, **functions) -> Scenario:
    """Replace the named arguments of every call that has them."""
    return tuple(
        Call(call.kind, {name: functions.get(name, lambda array: array)(array) for name, array in call.arrays.items()})
        for call in scenario
    )


def _with_a_token(mask: np.ndarray) -> np.ndarray:
    filled = mask.copy()
    filled[:, 0] = 1
    return filled


def _row(scenario: Scenario, row: int) -> Scenario:
    return tuple(Call(c.kind, {name: array[row : row + 1] for name, array in c.arrays.items()}) for c in scenario)


def _in_first_order(scenario: Scenario) -> Scenario:
    """The scenario without ``select``; itself where there is none.

    Every row that is left at the end is there from the start and is given, call by call, what its ancestors were given:
    nothing but the reordering is taken out.
    """
    if not any(call.kind == SELECT for call in scenario):
        return scenario
    calls, rows = [], slice(None)
    for call in reversed(scenario):
        if call.kind == SELECT:
            rows = call.arrays["rows"][rows]
        else:
            calls.append(Call(call.kind, {name: array[rows] for name, array in call.arrays.items()}))
    return tuple(reversed(calls))


def _one_by_one(call: Call) -> list[Call]:
    if call.kind != STEP:
        return [call]
    ids = call.arrays["input_ids"]
    return [Call(STEP, {"input_ids": ids[:, i : i + 1]}) for i in range(ids.shape[1])]


def _without_past(scenario: Scenario) -> Scenario:
    """All target tokens at once and nothing before them; the scenario itself where it has no past."""
    first, steps = scenario[0], scenario[1:]
    if first.kind == GIVEN and first.past:
        first = Call(
            GIVEN, {name: array[:, :, :0] if array.ndim == 4 else array for name, array in first.arrays.items()}
        )
    elif len(steps) < 2:
        return scenario
    return first, Call(STEP, {"input_ids": np.concatenate([call.arrays["input_ids"] for call in steps], axis=1)})


def _resized(scenario: Scenario, sizes: Mapping[str, int]) -> Scenario:
    """Every axis brought to another size, by cutting or repeating what is there.

    Where there was padding, one token of it stays at least; where there was no past, there is none: a set may have a
    graph of its own for that.
    """

    def resize(call: Call, name: str, array: np.ndarray) -> np.ndarray:
        if array.ndim == 4:
            return np.resize(array, (sizes["batch"], array.shape[1], sizes["past"] if call.past else 0, array.shape[3]))
        resized = np.resize(array, (sizes["batch"], sizes["target" if call.kind == STEP else "source"]))
        if name == "attention_mask" and not array.all():
            resized[-1, -1] = 0
        return resized

    return tuple(
        Call(call.kind, {name: resize(call, name, array) for name, array in call.arrays.items()}) for call in scenario
    )
