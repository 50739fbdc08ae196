"""What a team tolerates: thresholds, and exceptions by sentence that end on a day."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

from harness.contract.limits import (
    CORPUS_RATIO,
    GOLDEN_CHRF,
    LENGTH_RATIO_WITHIN,
    NEWLY_BROKEN_CRITICAL,
    NEWLY_BROKEN_SHARE,
)


@dataclass(frozen=True)
class PolicyException:
    """A sentence that may be wrong for a while.

    Attributes:
        id: the sentence, in a golden or in a sentence file.
        reason: why it is tolerated.
        expires: last day on which it is.
        phenomenon: the only phenomenon it is tolerated for; empty for any.
    """

    id: str
    reason: str
    expires: date
    phenomenon: str = ""

    def covers(self, id: str, phenomenon: str, today: date) -> bool:
        """Whether a fault of this sentence is tolerated today."""
        return self.id == id and self.phenomenon in ("", phenomenon) and today <= self.expires

    def text(self) -> str:
        """The exception in one line."""
        return f"{self.id}{f' ({self.phenomenon})' if self.phenomenon else ''} until {self.expires}: {self.reason}"


@dataclass(frozen=True)
class Policy:
    """Thresholds of the quality and golden suites.

    Attributes:
        newly_broken: largest share of a phenomenon's applicable sentences that may break newly, 0 to 1.
        newly_broken_critical: how many sentences tagged critical may break newly, per phenomenon.
        corpus_ratio: smallest ratio of corpus scores to the column on the left.
        length_ratio_within: largest distance of the ratio of emitted tokens from 1.
        golden_chrf: smallest chrF, 0 to 100, of a translation that is none of the accepted ones.
        exceptions: tolerated sentences.
    """

    newly_broken: float = NEWLY_BROKEN_SHARE
    newly_broken_critical: int = NEWLY_BROKEN_CRITICAL
    corpus_ratio: float = CORPUS_RATIO
    length_ratio_within: float = LENGTH_RATIO_WITHIN
    golden_chrf: float = GOLDEN_CHRF
    exceptions: tuple[PolicyException, ...] = ()

    def exception_for(self, id: str, phenomena: Sequence[str], today: date) -> PolicyException | None:
        """The exception under which faults of all these phenomena are tolerated today, or None."""
        covering = [[e for e in self.exceptions if e.covers(id, phenomenon, today)] for phenomenon in phenomena]
        return covering[0][0] if covering and all(covering) else None
