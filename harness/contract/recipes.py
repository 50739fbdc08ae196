"""Quantization recipes: how a float32 set becomes an int8 or int4 one, as data.

The project's own are in ``exporters/recipes.json``; a team's file has the same form.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from harness.contract.errors import InputError
from harness.contract.layouts import ENCODER
from harness.contract.manifest import read_object
from harness.contract.runtimes import Runtime

SCHEMA = 1
FLOAT32 = "fp32"
DYNAMIC, STATIC, WEIGHTS = "dynamic", "static", "weights"
MATMUL, GATHER = "MatMul", "Gather"
# The product with 4-bit weights, an operator of onnxruntime's own.
NBITS = "MatMulNBits"
MINMAX, ENTROPY, PERCENTILE = "minmax", "entropy", "percentile"
# Method -> bits that it knows.
METHODS = {DYNAMIC: (8,), STATIC: (8,), WEIGHTS: (8, 4)}
CALIBRATIONS = (MINMAX, ENTROPY, PERCENTILE)
OPERATORS = (MATMUL, GATHER)
_SEE = "See exporters/recipes.json for the form."


@dataclass(frozen=True)
class Side:
    """What is done to the encoder, or to every decoder graph.

    Attributes:
        operators: ``MatMul`` for products with a weight, ``Gather`` for the lookup of token ids.
        per_channel: one scale per output column (per row of the embedding) in place of one per tensor.
        reduce_range: 7 bits for weights, so that pairs of u8 x s8 products fit into 16 bits on CPUs without VNNI.
        symmetric: weights without a zero point.
        exclude: patterns (``*``, ``?``) of node or weight names that stay in float.
    """

    operators: tuple[str, ...]
    per_channel: bool
    reduce_range: bool
    symmetric: bool
    exclude: tuple[str, ...]


@dataclass(frozen=True)
class Recipe:
    """One way to quantize.

    Attributes:
        name: also the precision's name.
        method: ``dynamic`` (activations are measured while running), ``static`` (QDQ, calibrated) or ``weights``.
        bits: of the weights of products; the embedding's are always 8.
        block_size: weights that share a scale, along the input of a product; 4 bits only.
        calibration: ``minmax``, ``entropy`` or ``percentile``; ``static`` only.
        percentile: share of magnitudes, in percent, that the range keeps; ``percentile`` only.
        encoder, decoder: what is done to which graph.
    """

    name: str
    method: str
    bits: int
    encoder: Side
    decoder: Side
    block_size: int | None = None
    calibration: str | None = None
    percentile: float | None = None

    def side(self, role: str) -> Side:
        """The part of the recipe that holds for a graph."""
        return self.encoder if role == ENCODER else self.decoder

    def weight_bits(self, role: str) -> int:
        """Bits that the weights of a graph's products really use."""
        return self.bits - (1 if self.bits == 8 and self.side(role).reduce_range else 0)

    def to_json(self) -> dict[str, Any]:
        """Return the recipe as JSON types, every field spelled out."""
        data = asdict(self)
        for side in ("encoder", "decoder"):
            data[side] = {key: list(v) if isinstance(v, tuple) else v for key, v in data[side].items()}
        return data

    @classmethod
    def from_json(cls, name: str, data: Any, *, where: object) -> Recipe:
        """Read one recipe; ``name`` may be repeated inside.

        Raises:
            InputError: a key is unknown or missing, or a value is impossible.
        """
        place = f"{where}, recipe {name}"
        data = {key: value for key, value in _keys(data, cls, {"name"}, place).items() if key != "name"}
        sides = {side: _side(data[side], f"{place}, {side}") for side in ("encoder", "decoder")}
        recipe = cls(name=name, **{**data, **sides})
        _check(recipe, place)
        return recipe


def _keys(data: Any, kind: type, free: set[str], place: str) -> dict[str, Any]:
    """Hold the keys of a JSON object against the fields of a dataclass."""
    if not isinstance(data, dict):
        raise InputError(what=f"an object is needed, this is {data!r}", where=place, action=_SEE)
    known = {item.name: item.default for item in fields(kind)}
    if unknown := sorted(set(data) - set(known)):
        raise InputError(
            what=f"unknown key {unknown[0]!r}", where=place, action=f"Known: {', '.join(sorted(set(known) - free))}."
        )
    needed = {name for name, default in known.items() if default is not None} - free
    if missing := sorted(needed - set(data)):
        raise InputError(what=f"key {missing[0]!r} is missing", where=place, action=_SEE)
    return data


def _side(data: Any, place: str) -> Side:
    data = _keys(data, Side, set(), place)
    for name in ("per_channel", "reduce_range", "symmetric"):
        if not isinstance(data[name], bool):
            raise InputError(what=f"{name} is {data[name]!r}", where=place, action="Give true or false.")
    for name in ("operators", "exclude"):
        if not isinstance(data[name], list) or not all(isinstance(item, str) for item in data[name]):
            raise InputError(what=f"{name} is {data[name]!r}", where=place, action="Give a list of names.")
    if unknown := sorted(set(data["operators"]) - set(OPERATORS)):
        raise InputError(
            what=f"operator {unknown[0]!r} cannot be quantized", where=place, action=f"Known: {', '.join(OPERATORS)}."
        )
    return Side(**{**data, "operators": tuple(data["operators"]), "exclude": tuple(data["exclude"])})


def _check(recipe: Recipe, place: str) -> None:
    def refuse(what: str, action: str) -> None:
        raise InputError(what=what, where=place, action=action)

    if recipe.name == FLOAT32:
        refuse(f"{FLOAT32} is the name of no quantization", "Give the recipe another name.")
    if recipe.method not in METHODS:
        refuse(f"unknown method {recipe.method!r}", f"Known: {', '.join(METHODS)}.")
    if recipe.bits not in METHODS[recipe.method]:
        known = " or ".join(map(str, METHODS[recipe.method]))
        refuse(f"{recipe.bits!r} bits with method {recipe.method}", f"Give {known}.")
    block = recipe.block_size
    if (recipe.bits == 4) != (block is not None) or (block is not None and block not in (16, 32, 64, 128, 256)):
        refuse(f"block_size is {block!r} at {recipe.bits} bits", "4 bits need 16, 32, 64, 128 or 256; 8 bits none.")
    if (recipe.method == STATIC) != (recipe.calibration is not None):
        refuse(f"calibration is {recipe.calibration!r} with method {recipe.method}", "Only `static` calibrates.")
    if recipe.calibration not in (None, *CALIBRATIONS):
        refuse(f"unknown calibration {recipe.calibration!r}", f"Known: {', '.join(CALIBRATIONS)}.")
    percentile = recipe.percentile
    if (recipe.calibration == PERCENTILE) != (percentile is not None):
        refuse(f"percentile is {percentile!r} with calibration {recipe.calibration}", "`percentile` needs one.")
    if percentile is not None and not (isinstance(percentile, (int, float)) and 90 <= percentile <= 100):
        refuse(f"percentile is {percentile!r}", "Give 90 to 100.")


def read_recipes(path: Path) -> dict[str, Recipe]:
    """Read a recipe file: name -> recipe, in the file's order.

    Raises:
        InputError: not a recipe file of this schema, or a recipe is impossible.
    """
    data = read_object(path, action=_SEE)
    if unknown := sorted(set(data) - {"schema", "recipes"}):
        raise InputError(what=f"unknown key {unknown[0]!r}", where=path, action=_SEE)
    if data.get("schema") != SCHEMA or not isinstance(data.get("recipes"), dict):
        raise InputError(what=f"no recipes of schema {SCHEMA}", where=path, action=_SEE)
    return {name: Recipe.from_json(name, entry, where=path) for name, entry in data["recipes"].items()}


def find_recipe(name: str, path: Path) -> Recipe:
    """The recipe of a name.

    Raises:
        InputError: the file is no recipe file, or has none of that name.
    """
    recipes = read_recipes(path)
    if name not in recipes:
        raise InputError(what=f"no recipe {name!r}", where=path, action=f"Known: {', '.join((FLOAT32, *recipes))}.")
    return recipes[name]


def lacking(recipe: Recipe, installed: Runtime) -> str:
    """Why a runtime cannot run what a recipe makes; empty where it can."""
    if recipe.bits == 4 and installed.is_missing("com.microsoft", NBITS):
        return f"{recipe.name} needs com.microsoft.{NBITS}, which onnxruntime {installed.minor} does not have"
    return ""
