"""Weekdays and months by name, which are names and numbers at once."""

from __future__ import annotations

import re
from collections.abc import Iterator

from harness.checks.phenomena.verdict import Slot

_DAYS = {"Monday": "一", "Tuesday": "二", "Wednesday": "三", "Thursday": "四", "Friday": "五", "Saturday": "六",
         "Sunday": "日天"}  # fmt: skip
_DAY = re.compile(rf"\b({'|'.join(_DAYS)})s?\b")
_WEEK = "(?:星期|周|礼拜|[至到和或及、~～—-])"
_ANY_DAY = re.compile("(?:星期|周|礼拜)[一二三四五六日天末]")
_WEEKEND = re.compile("周末|双休|工作日|平日")


_SHORT = re.compile(r"\b(Mon|Tue|Wed|Thu|Fri|Sat|Sun)(?=\.|\s?[-–—]\s?(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)\b)")
_RANGE = re.compile(r"\b(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)\.?\s?[-–—]\s?(Mon|Tue|Wed|Thu|Fri|Sat|Sun)\b")


def _named(source: str) -> list[str]:
    """Weekdays of a text; short forms only where a full stop or another day shows that they are some."""
    short = {name[:3]: name for name in _DAYS}
    return _DAY.findall(source) + [short[day] for day in _SHORT.findall(source) + _RANGE.findall(source)]


def weekday_slots(source: str, translation: str) -> Iterator[Slot]:
    """Weekdays of the source that the translation has not; "Monday to Friday" may be 工作日."""
    for name in dict.fromkeys(_named(source)):
        signs = _DAYS[name]
        if (
            re.search(f"{_WEEK}[{signs}]", translation)
            or name.lower() in translation.lower()
            or _WEEKEND.search(translation)
        ):
            continue
        other = _ANY_DAY.search(translation)
        yield Slot(name, other[0] if other else None, "another weekday" if other else f"{name} is missing")


def has_weekday(source: str) -> bool:
    """Whether the source names a weekday."""
    return bool(_named(source))
