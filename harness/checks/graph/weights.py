"""Are the weights of a set those of the model, each stored once? (faults F01, G09)"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

import numpy as np
from onnx import ModelProto, NodeProto, TensorProto, numpy_helper

from harness.checks.graph.walk import constant_of, main_scope
from harness.contract.finding import Finding, Verdict
from harness.contract.layouts import ENCODER

# Below this a repeated constant costs less than the edge that would share it.
SHARED_ABOVE_BYTES = 1024
EMBEDDING, POSITIONS, DECODER_WEIGHTS, OTHER = "embedding", "positions", "decoder", "other"
_EMBEDDING = re.compile(r"(?:^|\.)(?:shared|embed_tokens|lm_head)\.")
_CROSS_KV = re.compile(r"\.encoder_attn\.[kv]_proj\.")


@dataclass(frozen=True)
class Weight:
    """Identity of one tensor, without its bytes.

    Attributes:
        file: file that holds it; ``PyTorch`` for a parameter.
        name: initializer, value of a Constant node, or parameter.
        shape, bytes: its shape and size.
        plain, transposed: hashes of its bytes as stored, and with both axes of a matrix swapped.
        uniform: all elements are equal, as in a bias of zeros: equal bytes then prove nothing.
        floating: whether it holds floating-point numbers.
    """

    file: str
    name: str
    shape: tuple[int, ...]
    bytes: int
    plain: str
    transposed: str
    uniform: bool
    floating: bool

    @classmethod
    def of(cls, file: str, name: str, array: np.ndarray) -> Weight:
        """Take the identity of an array."""
        plain = _digest(array)
        return cls(
            file=file,
            name=name,
            shape=tuple(array.shape),
            bytes=array.nbytes,
            plain=plain,
            transposed=_digest(array.T) if array.ndim == 2 and min(array.shape) > 1 else plain,
            uniform=array.size == 0 or bool((array == array.flat[0]).all()),
            floating=array.dtype.kind == "f",
        )

    @property
    def key(self) -> str:
        """Equal for a matrix and its transpose."""
        return min(self.plain, self.transposed)

    def text(self) -> str:
        """How reports call it."""
        return f"{self.file}: {self.name} {list(self.shape)}"


def _digest(array: np.ndarray) -> str:
    return hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()


def stored_weights(file: str, model: ModelProto, folder: Path) -> list[Weight]:
    """Every constant tensor of a file: initializers and Constant nodes, in branches and functions too.

    Args:
        file: name of the file.
        model: its contents; weights may be in external files.
        folder: where external files are.
    """
    return [Weight.of(file, name, numpy_helper.to_array(tensor, str(folder))) for name, tensor in _tensors(model)]


def _tensors(model: ModelProto) -> Iterator[tuple[str, TensorProto]]:
    for scope in main_scope(model).scopes():
        yield from ((tensor.name, tensor) for tensor in scope.graph.initializer)
        yield from _constants(scope.nodes)
    for function in model.functions:
        yield from _constants(function.node)


def _constants(nodes: Iterable[NodeProto]) -> Iterator[tuple[str, TensorProto]]:
    for node in nodes:
        if (tensor := constant_of(node)) is not None:
            yield node.output[0], tensor


def kind_of(parameters: Iterable[str]) -> str:
    """Kind of a weight in the layouts' allowance tables, by the names of the parameters it equals.

    ``embedding`` is the token matrix under any of its names, ``positions`` a position table, ``decoder`` everything
    else of the decoder and the logits bias; the rest, the encoder's own, is ``other``.
    """
    names = list(parameters)
    if any(_EMBEDDING.search(name) for name in names):
        return EMBEDDING
    if any("embed_positions." in name for name in names):
        return POSITIONS
    if any(name.startswith("model.decoder.") or name == "final_logits_bias" for name in names):
        return DECODER_WEIGHTS
    return OTHER


@dataclass(frozen=True)
class _Copies:
    """One weight, everywhere it is stored."""

    kind: str
    stored: tuple[Weight, ...]
    allowed: int

    @property
    def files(self) -> list[str]:
        return sorted({weight.file for weight in self.stored})

    @property
    def wasted(self) -> int:
        """Bytes beyond one copy in each file that may hold the weight."""
        return (len(self.stored) - min(len(self.files), self.allowed)) * self.stored[0].bytes

    @property
    def folded(self) -> bool:
        """Nothing beyond a transposed second copy of the embedding in a file, as constant folding leaves it."""
        if self.kind != EMBEDDING or len(self.files) > self.allowed:
            return False
        per_file = [[weight.plain for weight in self.stored if weight.file == file] for file in self.files]
        return all(len(hashes) == len(set(hashes)) for hashes in per_file)

    def text(self) -> str:
        places = "; ".join(weight.text() for weight in self.stored)
        return f"{self.kind}, {self.wasted} bytes wasted, {len(self.files)} files of {self.allowed} allowed: {places}"


def stored_once(
    stored: Iterable[Weight],
    parameters: Iterable[Weight],
    copies: Mapping[str, int],
    *,
    made_here: bool,
    quantized: Mapping[tuple[str, str], str] = MappingProxyType({}),
) -> Finding:
    """Require that no file holds a weight twice and no more files hold it than the layout allows (fault F01).

    Tensors under 1 KB and those of one repeated value do not count.

    Args:
        stored: all weights of the set.
        parameters: those of the PyTorch model.
        copies: kind -> files that may hold such a weight; see ``Layout.copies``.
        made_here: the project's exporters never fold the embedding's transpose; for other sets it is a warning.
        quantized: (file, name) of a tensor -> the parameter whose integers or scales it holds.
    """
    owners: dict[str, list[str]] = {}
    for parameter in parameters:
        owners.setdefault(parameter.key, []).append(parameter.name)
    groups: dict[str, list[Weight]] = {}
    for weight in stored:
        if weight.bytes >= SHARED_ABOVE_BYTES and not weight.uniform:
            groups.setdefault(weight.key, []).append(weight)
    repeated = []
    for key, group in groups.items():
        kind = kind_of(owners.get(key) or _names_of(group, quantized))
        found = _Copies(kind, tuple(group), copies.get(kind, 1))
        if found.wasted:
            repeated.append(found)
    check = "every weight is stored once"
    if not repeated:
        return Finding(check=check, verdict=Verdict.PASS, compared=len(groups), expected=len(groups))
    failing = [found for found in repeated if made_here or not found.folded]
    repeated.sort(key=lambda found: (found not in failing, -found.wasted))
    wasted = sum(found.wasted for found in repeated)
    return Finding(
        check=check,
        verdict=Verdict.FAIL if failing else Verdict.WARN,
        measured=float(wasted),
        limit=0.0,
        unit="bytes wasted",
        passing_limit=float(wasted),
        where="; ".join(weight.text() for weight in repeated[0].stored[:4]),
        cause=_cause_of_copies(repeated[0]),
        action="Export without constant folding and share equal initializers; simplifiers may have to be left out.",
        details=tuple(found.text() for found in repeated[:12]),
    )


def _names_of(group: Iterable[Weight], quantized: Mapping[tuple[str, str], str]) -> list[str]:
    """Parameters behind a quantized tensor; its own names where those are not known, as of a table of positions."""
    known = [quantized[place] for weight in group if (place := (weight.file, weight.name)) in quantized]
    return known or ([weight.name for weight in group] if quantized else [])


def _cause_of_copies(found: _Copies) -> str:
    turned = len({weight.plain for weight in found.stored}) > 1
    name = found.stored[0].name
    if len(found.files) > found.allowed:
        return f"{len(found.files)} files hold {name}, {found.allowed} may; {found.wasted} bytes wasted"
    if turned:
        return f"{name} is stored a second time transposed, as constant folding does; {found.wasted} bytes wasted"
    return f"{name} is stored twice in one file; {found.wasted} bytes wasted"


def holds_every_parameter(
    stored: Iterable[Weight], parameters: Iterable[Weight], roles: Mapping[str, str], *, made_here: bool
) -> list[Finding]:
    """Look for every parameter's bytes, plain or transposed, in the files that need it (fault G09).

    Encoder files need the encoder's parameters; every decoder file needs the decoder's, the output projection and the
    logits bias. Cross-attention K/V projections are needed by the set as a whole: whoever computes them holds them.

    Args:
        stored: all weights of the set.
        parameters: those of the PyTorch model, tied ones under each of their names.
        roles: file name -> role.
        made_here: in sets of other exporters a parameter may have been folded into another tensor.
    """
    stored, parameters = list(stored), list(parameters)
    known = {parameter.key for parameter in parameters}
    findings = []
    for file, role in roles.items():
        held = [weight for weight in stored if weight.file == file]
        needed = [parameter for parameter in parameters if _needs(role, parameter.name)]
        findings.append(_presence(file, needed, held, known, made_here))
    findings += [_presence("the set", parameters, stored, known, made_here), _no_strangers(stored, known)]
    return findings


def _needs(role: str, parameter: str) -> bool:
    """Whether every file of this role must hold a parameter."""
    if parameter.startswith("model.encoder."):
        return role == ENCODER
    return role != ENCODER and not _CROSS_KV.search(parameter) and not parameter.startswith("model.shared.")


def _presence(file: str, needed: list[Weight], held: list[Weight], known: set[str], made_here: bool) -> Finding:
    """Judge the missing parameters; those that a tensor of their size made elsewhere may hold are only a warning."""
    keys = {weight.key for weight in held}
    missing = [parameter for parameter in needed if parameter.key not in keys]
    strangers = {weight.bytes for weight in held if weight.floating and weight.key not in known}
    folded = [parameter for parameter in missing if not made_here and parameter.bytes in strangers]
    lost = [parameter for parameter in missing if parameter not in folded]
    check = f"{file}: every weight of the PyTorch model is there"
    if not missing:
        return Finding(check=check, verdict=Verdict.PASS, compared=len(needed), expected=len(needed))
    first = (lost or folded)[0].name
    if lost:
        dropped = first == "final_logits_bias"
        cause = f"{first} is not among the weights" + (": the logits bias was dropped" if dropped else "")
        action = "Export again from the weights under test; add the logits bias to the projection." if dropped else (
            "Export again from the weights under test, and check that --model names them."
        )  # fmt: skip
    else:
        cause = f"{first} was not found by its bytes; a tensor of its size is there: it may have been folded"
        action = "Rely on suites/parity for these weights."
    return Finding(
        check=check,
        verdict=Verdict.FAIL if lost else Verdict.WARN,
        measured=float(len(missing)),
        limit=0.0,
        unit=f"of {len(needed)} parameters missing",
        where=f"{file}: {', '.join(parameter.name for parameter in (lost or folded)[:4])}",
        cause=cause,
        action=action,
        details=tuple(f"{parameter.name} {list(parameter.shape)}" for parameter in (*lost, *folded)[:20]),
    )


def _no_strangers(stored: list[Weight], known: set[str]) -> Finding:
    strangers = [
        weight
        for weight in stored
        if weight.floating and weight.bytes >= SHARED_ABOVE_BYTES and not weight.uniform and weight.key not in known
    ]
    check = "no large weight is unknown to the PyTorch model"
    if not strangers:
        return Finding(check=check, verdict=Verdict.PASS)
    return Finding(
        check=check,
        verdict=Verdict.WARN,
        measured=float(sum(weight.bytes for weight in strangers)),
        limit=0.0,
        unit="bytes of unknown weights",
        where=strangers[0].text(),
        cause="weights were changed, folded, or are a table that the graph could compute",
        action="Find out where they come from; suites/parity says whether they do harm.",
        details=tuple(weight.text() for weight in strangers[:12]),
    )
