"""The settings that decide what a decoder emits, the same object on both sides of every comparison."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from harness.contract.errors import InputError

STOP_EOS = "eos"
STOP_FORCED_EOS = "forced_eos"
STOP_MAX_LENGTH = "max_length"

# What transformers changed in beam search over the years, named by what each generation of it does:
# - "sequence_length": hypotheses still open at max_length are normalised by their whole length, start token included,
#   finished ones by the generated length; "never" acts like True.
# - "generated_length": both by the generated length; "never" waits until no open beam can win by max_length.
# - "running_beams": as "generated_length", but the stop test compares with the best beam that goes on, not with the
#   best candidate (which may just have ended), and at max_length the best num_beams candidates compete as they are,
#   even where early_stopping would have been satisfied by those among them that end.
SEARCH_RULES = ("sequence_length", "generated_length", "running_beams")


@dataclass(frozen=True)
class GenerationSettings:
    """What ``generate()`` needs to know beside the model.

    Names and meanings are those of ``transformers.GenerationConfig``. ``max_length`` counts the start token.
    ``banned_token_ids`` are the one-token entries of ``bad_words_ids``. ``pad_removed_before_softmax`` says that the
    pad logit is set to minus infinity before the log-softmax of beam search, as transformers does for Marian up to
    4.3x (``adjust_logits_during_generation``); with ``renormalize_logits`` both orders give equal scores.
    ``search_rules`` is one of ``SEARCH_RULES``; greedy search does not depend on it.
    """

    decoder_start_token_id: int
    eos_token_id: int
    pad_token_id: int
    max_length: int
    num_beams: int = 1
    length_penalty: float = 1.0
    early_stopping: bool | str = False
    renormalize_logits: bool = False
    forced_bos_token_id: int | None = None
    forced_eos_token_id: int | None = None
    banned_token_ids: tuple[int, ...] = ()
    pad_removed_before_softmax: bool = False
    search_rules: str = "running_beams"

    def __post_init__(self) -> None:
        if not 1 <= self.num_beams <= 8:
            raise InputError(
                what=f"num_beams is {self.num_beams}, supported are 1 to 8",
                where="generation settings",
                action="Choose a number of beams between 1 and 8.",
            )
        if self.max_length < 2:
            raise InputError(
                what=f"max_length is {self.max_length}; it counts the start token, so nothing could be generated",
                where="generation settings",
                action="Set max_length to 2 or more.",
            )
        for name, supported in (("early_stopping", (False, True, "never")), ("search_rules", SEARCH_RULES)):
            if getattr(self, name) not in supported:
                raise InputError(
                    what=f"{name} is {getattr(self, name)!r}",
                    where="generation settings",
                    action=f"Choose one of {', '.join(map(repr, supported))}.",
                )

    def replace(self, **changes: Any) -> GenerationSettings:
        """Return a copy with some settings changed."""
        return dataclasses.replace(self, **changes)

    def to_json(self) -> dict[str, Any]:
        """Return the settings as JSON types."""
        return {**dataclasses.asdict(self), "banned_token_ids": list(self.banned_token_ids)}

    @classmethod
    def from_json(cls, data: dict[str, Any], *, where: object) -> GenerationSettings:
        """Read the settings back.

        Raises:
            InputError: a setting is missing or unknown.
        """
        known = {field.name for field in dataclasses.fields(cls)}
        required = {f.name for f in dataclasses.fields(cls) if f.default is dataclasses.MISSING}
        if wrong := sorted((set(data) - known) | (required - set(data))):
            raise InputError(
                what=f"generation settings missing or unknown: {', '.join(wrong)}",
                where=where,
                action="Write the file again with this version of the exporter.",
            )
        return cls(**{**data, "banned_token_ids": tuple(data.get("banned_token_ids", ()))})

    def differences(self, other: GenerationSettings) -> list[str]:
        """Name every setting that differs, with both values (fault D06)."""
        mine, theirs = self.to_json(), other.to_json()
        return [f"{key}: {mine[key]!r} against {theirs[key]!r}" for key in mine if mine[key] != theirs[key]]


@dataclass(frozen=True)
class Decoded:
    """One finished row.

    Attributes:
        token_ids: what the decoder holds at the end, start token first, end token included, padding removed.
        score: sum of log-probabilities for greedy; ``sum / generated_length ** length_penalty`` for beams.
        stop_reason: ``STOP_EOS``, ``STOP_FORCED_EOS`` or ``STOP_MAX_LENGTH``.
    """

    token_ids: tuple[int, ...]
    score: float
    stop_reason: str

    @property
    def generated(self) -> tuple[int, ...]:
        """The ids after the start token."""
        return self.token_ids[1:]


def stop_reason(token_ids: Sequence[int], settings: GenerationSettings) -> str:
    """Why a row ended there.

    Args:
        token_ids: the row, start token first, end token included, padding removed.
        settings: the settings it was decoded under. An end at ``max_length`` counts as forced where they force one:
            nobody can tell from outside whether the model wanted it too.
    """
    if token_ids[-1] != settings.eos_token_id:
        return STOP_MAX_LENGTH
    forced = settings.forced_eos_token_id == settings.eos_token_id and len(token_ids) == settings.max_length
    return STOP_FORCED_EOS if forced else STOP_EOS
