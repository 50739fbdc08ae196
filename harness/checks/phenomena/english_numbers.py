"""Numbers in English text: digits and words, dates, clock times, codes, units.

text2num was tried and refused: it rewrites the text without saying where a number stood, reads "nineteen eighty-four"
as 19 and 84 and "two thirds" as "two 3rds", and knows neither dozens, dates nor units.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence

from harness.checks.phenomena.mentions import (
    CLOCK,
    CODE,
    MONTH,
    VAGUE,
    Mention,
    date_parts,
    iso_date,
    joined,
    mention_of,
    slashed_date,
)
from harness.checks.phenomena.units import PERCENT, SIGN, TABLES, Unit, english_units, sign_units

_ONES = {
    word: i
    for i, word in enumerate(
        [
            "zero",
            "one",
            "two",
            "three",
            "four",
            "five",
            "six",
            "seven",
            "eight",
            "nine",
            "ten",
            "eleven",
            "twelve",
            "thirteen",
            "fourteen",
            "fifteen",
            "sixteen",
            "seventeen",
            "eighteen",
            "nineteen",
        ]
    )
}
_TENS = {
    word: 10 * i
    for i, word in enumerate(["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"], 2)
}
_ORDINALS = {
    word: i
    for i, word in enumerate(
        [
            "first",
            "second",
            "third",
            "fourth",
            "fifth",
            "sixth",
            "seventh",
            "eighth",
            "ninth",
            "tenth",
            "eleventh",
            "twelfth",
            "thirteenth",
            "fourteenth",
            "fifteenth",
            "sixteenth",
            "seventeenth",
            "eighteenth",
            "nineteenth",
        ],
        1,
    )
}
_ORDINALS.update({word[:-1] + "ieth": value for word, value in _TENS.items()}, hundredth=100, thousandth=1000)
_SCALES = {"hundred": 1e2, "thousand": 1e3, "million": 1e6, "billion": 1e9, "trillion": 1e12, "dozen": 12.0}
_SHORT_SCALES = {"k": 1e3, "K": 1e3, "m": 1e6, "M": 1e6, "mn": 1e6, "b": 1e9, "B": 1e9, "bn": 1e9, "tn": 1e12}
_PARTS = {
    "half": 2,
    "halves": 2,
    "third": 3,
    "quarter": 4,
    "fourth": 4,
    "fifth": 5,
    "sixth": 6,
    "seventh": 7,
    "eighth": 8,
    "ninth": 9,
    "tenth": 10,
    "hundredth": 100,
    "thousandth": 1000,
}
_SIGNS_OF_PARTS = {"½": 0.5, "¼": 0.25, "¾": 0.75, "⅓": 1 / 3, "⅔": 2 / 3, "⅛": 0.125, "⅕": 0.2}
_MONTHS = {
    name: i
    for i, name in enumerate(["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"], 1)
}
# Words that come in numbers too small to hold a unit against.
_AMBIGUOUS_UNITS = {
    "bar",
    "bars",
    "degree",
    "degrees",
    "feet",
    "foot",
    "yard",
    "yards",
    "quarter",
    "quarters",
    "won",
    "bit",
    "bits",
    "cal",
    "mi",
    "cc",
    "°",
    '"',
    "”",
    "decade",
    "decades",
    "buck",
    "bucks",
}

_MONTH = (
    r"(?:January|February|March|April|May|June|July|August|September|October|November|December"
    r"|(?:Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sept?|Oct|Nov|Dec)\b\.?)"
)
_SMALL = "|".join([*_ONES, *_TENS])
_WORD = rf"(?:{'|'.join(sorted([*_ONES, *_TENS, *_SCALES], key=len, reverse=True))})"
_FIGURE = r"(?:\d{1,3}(?:[,\u00a0\u202f]\d{3})+(?!\d)(?:\.\d+)?|\d+(?:\.\d+)?|(?<![\w.])\.\d+)"
_HALF_DAY = r"(?:[ap]\.\s?m\.|[ap]m\b|[AP]\.\s?M\.|[AP]M\b)"
_HOUR = rf"(?:\d{{1,2}}|(?i:{'|'.join(list(_ONES)[1:13])}))"
_PART_OF_DAY = r"(?:\s(?:in\sthe|this|that|every)\s(?P<{0}>morning|afternoon|evening)|\s(?:at\s)(?P<{0}n>night))?"
_FEW = "|".join(list(_ONES)[1:13])
_PARTS_WORD = rf"(?:{'|'.join(sorted(_PARTS, key=len, reverse=True))})s?"

_TOKEN = re.compile(
    "|".join(
        [
            r"(?P<iso>(?<![\w.-])\d{4}(?P<sep>[-/.])\d{1,2}(?P=sep)\d{1,2}(?![\w-]|\.\d))",
            r"(?P<slashed>(?<![\w./-])\d{1,2}(?:/\d{1,2}/(?:\d{4}|\d{2})|\.\d{1,2}\.\d{4})(?![\w/-]|\.\d))",
            rf"(?P<mdy>\b{_MONTH}\s(?:the\s)?\d{{1,2}}(?:st|nd|rd|th)?(?![\d:%]|\.\d|"
            rf"\s?{_HALF_DAY})(?:,?\s\d{{4}}\b)?)",
            rf"(?P<dmy>(?<![\w.:])\d{{1,2}}(?:st|nd|rd|th)?[\s-](?:of\s)?{_MONTH}(?:[,\s-]\s?\d{{4}}\b)?)",
            rf"(?P<my>\b{_MONTH},?\s(?:of\s)?\d{{4}}\b)",
            rf"(?P<bare>\b{_MONTH}(?![\w-]))",
            rf"(?P<past>\b(?:(?i:half)\s(?i:past)\s{_HOUR}\b|(?i:an?\s)?(?i:quarter)\s(?i:past|to)\s{_HOUR}\b"
            rf"|(?:\d{{1,2}}\s(?i:minutes\s(?:past|to)|past)|(?i:five|ten|"
            rf"twenty(?:[- ]five)?)\s(?i:minutes\s)?(?i:past|to))\s{_HOUR}\b)(?P<pasthalf>\s?{_HALF_DAY})?"
            + _PART_OF_DAY.format("pastpart")
            + ")",
            r"(?P<clock>(?<![\w.:])(?:\d{1,2}:\d{2}(?::\d{2})?(?![\d:])|\d{1,2}\.\d{2}(?=\s?[ap]\.?m\b))"
            rf"(?P<clockhalf>\s?{_HALF_DAY})?" + _PART_OF_DAY.format("clockpart") + ")",
            rf"(?P<oclock>(?<![\w.:-]){_HOUR}(?:\s?o['’]clock\b|(?=\s?{_HALF_DAY}|\s(?:in\sthe\s(?:morning|afternoon|evening)|at\snight)\b))(?P<oclockhalf>\s?{_HALF_DAY})?"
            + _PART_OF_DAY.format("oclockpart")
            + ")",
            r"(?P<noon>\b(?i:noon|midday|midnight)\b)",
            r"(?P<dotted>(?<![\w.])v?\d+(?:\.\d+){2,}(?![\w]))",
            r"(?P<phone>(?<![\w.+])(?:\+\d{1,3}[\s-]?(?:\(\d+\)[\s-]?)?\d{2,11}(?:[\s-]\d{2,8}){0,4}"
            r"|\(\d{2,5}\)\s?\d{3,8}(?:[\s-]\d{2,8}){0,2}|0\d{1,4}-\d{5,8}|\d{3}-\d{4}|\d{3}-\d{3,4}-\d{4}"
            r"|\d{3}\s\d{4}\s\d{4}|\d{2,6}(?:-\d{2,6}){2,})(?![\w-]|,\d))",
            r"(?P<decade>(?<![\w.])['’]?(?:1[0-9]|20)?\d0['’]?s\b|\b(?i:twent|thirt|fort|fift|sixt|sevent|eight|ninet)ies\b)",
            r"(?P<fraction>(?<![\w./:])(?:(?P<whole>\d+)[\s-])?(?P<over>\d+)[/⁄](?P<under>\d+)(?![\w/])|\d*[½¼¾⅓⅔⅛⅕])",
            r"(?P<code>(?<![\w.])(?:[A-Za-z]+[-_]?\d|[A-Z]\.\d|\d+[-_]?(?:[A-Z]+\d|[A-Z]{1,3}-\d)|"
            r"\d+[A-Z](?:[A-Z0-9]*\d|\b(?=[^a-z]))|0[xX][0-9A-Fa-f])"
            r"[A-Za-z0-9]*(?:[-_./][A-Za-z0-9]*\d[A-Za-z0-9]*)*)",
            # both ends of "from 2 to 4 p.m." are clock times
            rf"(?P<opening>(?<![\w.:/-])\d{{1,2}}(?=\s?(?:to|until|till|and|[-–—])\s?\d{{1,2}}(?::\d\d)?\s?{_HALF_DAY}))",
            r"(?P<even>\b(?:50\s?[-/–]\s?50|(?i:fifty-fifty))\b)",
            rf"(?P<fold>\b(?i:(?P<foldvalue>{_SMALL}|\d+)-?fold)\b)",
            r"(?P<height>(?<![\w.])(?P<feet>\d)['’′]\s?(?P<inches>\d{1,2})(?:[\"”″]|''|’’))",
            rf"(?P<mixed>\b(?:(?P<mixedhead>(?i:{_SMALL})|\d+)|(?i:an?))\s(?i:and\s(?:an?\s|one[\s-])?(?P<mixedpart>half|quarter|third))"
            r"\s(?P<mixedscale>hundred|thousand|million|billion|trillion)\b)",
            rf"(?P<share>\b(?i:(?P<sharetop>{_FEW}|\d{{1,3}}))\s(?i:out\sof|in)\s(?i:every\s)?(?i:(?P<sharebottom>{_FEW}|twenty|"
            rf"fifty|(?:a\s|one\s)?hundred|(?:a\s|one\s)?thousand|\d{{1,3}}|1,?000))\b(?![,.:%/-]\d)(?!\s?(?:{TABLES.english_pattern}|{_HALF_DAY})))",
            r"(?P<roman>\bWW(?P<romanwar>II|I|[12])\b|(?:(?P<romanhead>\b(?:World\sWar|(?i:chapter|part|phase|stage|type|"
            r"class|volume|book|act|scene|section|article|appendix|level|grade|group|category|annex|factor|table|figure))\s)"
            r"(?P<romanany>[IVX]+)|(?P<romanname>(?<=[a-zé]\s))(?P<romanlong>X{0,3}(?:IX|IV|VI{1,3}|I{2,3})|X{1,2}V|XX|XI{1,3}))(?![\w'’-]|\.\w))",
            rf"(?P<figure>(?P<sign>(?:(?<![\w.)\]%])[-−–]\s?|\b(?i:minus|negative)\s)?)(?P<money>{SIGN}\s?)?(?P<minus>(?<=[$€£¥])[-−])?"
            rf"(?P<digits>{_FIGURE})(?P<suffix>st\b|nd\b|rd\b|th\b)?"
            r"(?P<scale>[\s-]?(?:hundred|thousand|million|billion|trillion|dozen)\b|(?:k|K|m|M|mn|b|B|bn|tn)\b)?)",
            r"(?P<each>\b(?i:an?|one|each|per|every)\s(?P<eachhalf>half[\s-]?)?(?P<eachunit>hour|minute|second|day|"
            r"week|fortnight|month|year|decade|century)\b"
            r"(?:\sand\sa\s(?P<eachextra>half|quarter))?)",
            rf"(?P<parts>\b(?i:(?P<count>an?|one|two|three|four|five|six|seven|eight|"
            rf"nine)[\s-](?P<part>{_PARTS_WORD}))\b"
            r"(?!-hand|\s(?:time|floor|day|attempt|person|party)s?\b))",
            r"(?P<half>\b(?i:half)(?:\s(?i:an?|the|of))\b|\b(?i:half)(?=-(?i:hour|year|day|mile|price|million|dozen))"
            r"|\b(?i:half)(?![\s-](?i:brother|sister|hearted|baked|past|moon|time|way)|\w))",
            r"(?P<several>\b(?i:several|a\sfew|a\scouple\sof)\s(?P<severalscale>(?i:dozen|hundred|thousand|million|billion))\b)",
            rf"(?P<words>(?<!\d-)\b(?:(?i:minus|negative)\s)?(?:(?i:an?)\s(?=(?i:hundred|thousand|million|billion|trillion|"
            rf"dozen)\b))?(?i:{_WORD})"
            rf"(?:(?:\s|-|\sand\s|\spoint\s)(?i:{_WORD}|oh)\b)*(?:[\s-](?i:{'|'.join(_ORDINALS)})\b)?)(?![\w])",
            rf"(?P<ordinal>\b(?i:{'|'.join(_ORDINALS)})\b)",
            r"(?P<vague>\b(?:(?i:tens|dozens|hundreds)\sof\s)?(?i:dozens|hundreds|thousands|millions|billions|"
            r"trillions)\b|\b(?i:tens\sof|scores\sof)\b)",
        ]
    )
)
_ANYTHING = re.compile(
    rf"\d|fold\b|[½¼¾⅓⅔⅛⅕]|\b(?:{_WORD}|{'|'.join(_ORDINALS)}|half|quarters?|thirds|noon|midday|midnight|"
    rf"(?:twent|thirt|fort|fift|sixt|sevent|eight|ninet)ies|tens|scores|half|"
    rf"(?-i:WWI|[IVX]{{2,6}}\b|[a-z]\s[VX]\b|(?:War|Chapter|Part|Phase|Stage|Type|Class|Volume|Act|Section|Article|Level)\sI\b)|"
    rf"hour|minute|day|week|fortnight|month|year|decade|century|"
    rf"dozens|hundreds|thousands|[mb]illions|{_MONTH.lower()})\b",
    re.IGNORECASE,
)
_UNIT = re.compile(rf"[\s-]?({TABLES.english_pattern})")
_LEAD = 30  # how far before its first digit or number word a number can begin: "Model-A12", "World War II"
_BELOW_ZERO = re.compile(r"[\s-]?(?:°\s?C|°\s?F|degrees?(?:\s\w+)?|°)?\s(?:below\s(?:zero|freezing)|under\szero)\b")
_AND_A_HALF = re.compile(r"\sand\s(?:a\s(half|quarter)|(three)\squarters)\b")
_CONNECTS = re.compile(r"\s?(?:[-–—~/x×]|to|and|or|by|through|,)\s?")
_ADDS = re.compile(r",?\s?(?:and\s)?")
_BEFORE_CLOCK = re.compile(r"\b(?:at|by|until|till|before|after|is|it's|was|around|since)\s$", re.IGNORECASE)
_VERSION_BEFORE = re.compile(
    r"\b(?:version|release|firmware|build|v\.?|python|ubuntu|android|i?os|macos|java|php|ruby|django|kubernetes|mysql|"
    r"postgresql|cuda|gcc|debian|qt|node(?:\.js)?|chrome|firefox)\s$",
    re.IGNORECASE,
)
_COLLECTIVE = {
    "tens": 10,
    "scores": 10,
    "dozens": 10,
    "hundreds": 1e2,
    "thousands": 1e3,
    "millions": 1e6,
    "billions": 1e9,
    "trillions": 1e12,
}
# What "second" counts rather than repeats: the second button, the second-largest city.
_SECOND_OF_SEVERAL = re.compile(
    r"(?:[\s-](?:largest|biggest|tallest|longest|highest|oldest|best|most|fastest|deepest|busiest|richest|smallest|lowest|"
    r"youngest|worst)|\s(?:floor|button|chapter|page|step|line|row|column|day|week|month|year|quarter|prize|place|"
    r"edition|generation|version|round|stage|phase|child|son|daughter|door|room|street|season|episode|volume|question|"
    r"option|section|paragraph|item|century|semester|switch|valve|pump|engine|cylinder|lever|key|screw|drawer|shelf))\b"
)
_VERB_BEFORE_MONTH = re.compile(
    r"\b(?:in|by|of|since|until|till|during|from|last|next|this|every|early|late|mid|before|after|to|and|or|for)"
    r"[\s-]$",
    re.IGNORECASE,
)


@functools.lru_cache(maxsize=4)
def english_numbers(text: str) -> Sequence[Mention]:
    """Every number of an English text, in order; codes are kept whole. Kept for the next check of the same pair."""
    found: list[Mention] = []
    position = 0
    while (hint := _ANYTHING.search(text, position)) and (
        match := _TOKEN.search(text, max(position, hint.start() - _LEAD))
    ):
        group = match.lastgroup if match.lastgroup in _READERS else _group(match)
        mentions = _READERS[group](match, text)
        found += mentions
        position = max(mentions[-1].end if mentions else match.end(), match.end())
    return tuple(joined(text, found, _is_connection, _is_addition))


def _group(match: re.Match[str]) -> str:
    return next(name for name in _READERS if match[name] is not None)


def _is_connection(gap: str) -> bool:
    return bool(_CONNECTS.fullmatch(gap))


def _is_addition(gap: str) -> bool:
    return bool(_ADDS.fullmatch(gap))


def _each(match: re.Match[str], text: str) -> list[Mention]:
    """Read "an hour", "a year and a half": one of something, which the translation may say or leave out."""
    value = (0.5 if match["eachhalf"] else 1.0) + {"half": 0.5, "quarter": 0.25}.get(match["eachextra"], 0.0)
    return [mention_of(match, values=(value,), units=english_units(match["eachunit"]), strict=value != 1.0)]


def _named(match: re.Match[str], text: str) -> list[Mention]:
    """Read a date with the month's name."""
    month = _MONTHS[re.search(_MONTH, match[0])[0][:3].lower()]
    figures = [int(figure) for figure in re.findall(r"\d+", match[0])]
    year = next((figure for figure in figures if figure > 31), None)
    days = tuple(figure for figure in figures if figure <= 31)
    return date_parts(match, year, (month,), days)


def _bare(match: re.Match[str], text: str) -> list[Mention]:
    """Read a month without day or year; May and March are other words as well."""
    name = match[0].rstrip(".")
    certain = (len(name) > 4 and name not in ("March", "August")) or (
        name in ("May", "March", "August", "June", "July") and _VERB_BEFORE_MONTH.search(text, 0, match.start())
    )
    return [mention_of(match, values=(_MONTHS[name[:3].lower()],), kind=MONTH, strict=bool(certain))]


def _hour(text: str) -> int:
    return int(text) if text.isdigit() else _ONES[text.lower()]


def _moments(hour: int, minute: int, half: str | None) -> frozenset[int]:
    """Minutes since midnight that a clock time can mean; both halves of the day where none is given."""
    if hour > 12 or (hour == 0 and not half):
        return frozenset({(hour * 60 + minute) % 1440})
    morning, evening = hour % 12 * 60 + minute, (hour % 12 + 12) * 60 + minute
    if not half:
        return frozenset({morning % 1440, evening % 1440})
    return frozenset({(morning if half == "a" else evening) % 1440})


def _half(match: re.Match[str], group: str) -> str | None:
    if written := match[group + "half"]:
        return written.strip()[0].lower()
    if part := match[group + "part"]:
        return "a" if part == "morning" else "p"
    return None


def _clock(match: re.Match[str], text: str) -> list[Mention]:
    hour, minute, *second = (int(part) for part in re.findall(r"\d+", match["clock"].split(" ")[0]))
    if minute > 59 or hour > 24 or second:
        values = [float(part) for part in re.findall(r"\d+", match[0])]
        return [mention_of(match, values=(value,), loose=True) for value in values]
    moments = _moments(hour, minute, _half(match, "clock"))
    return [mention_of(match, values=(hour, minute), kind=CLOCK, moments=moments)]


def _oclock(match: re.Match[str], text: str) -> list[Mention]:
    hour = _hour(re.match(_HOUR, match[0])[0])
    return [mention_of(match, values=(hour,), kind=CLOCK, moments=_moments(hour, 0, _half(match, "oclock")))]


def _past(match: re.Match[str], text: str) -> list[Mention]:
    words = re.sub(r"\s?" + _HALF_DAY + r"|\s(?:in the|this|that|every|at)\s\w+$", "", match[0]).lower().split()
    place = next(i for i, word in enumerate(words) if word in ("past", "to"))
    if words[place] == "to" and "quarter" not in words and not _BEFORE_CLOCK.search(text, 0, match.start()):
        low, high = _words(words[0])[0], float(_hour(words[place + 1]))
        return [mention_of(match, values=(value,), loose=True) for value in (low, high)]
    hour = _hour(words[place + 1])
    head = " ".join(words[:place]).removesuffix(" minutes")
    minutes = 30 if "half" in head else 15 if "quarter" in head else int(head) if head.isdigit() else _words(head)[0]
    total = hour * 60 + minutes if words[place] == "past" else hour * 60 - minutes
    half = _half(match, "past")
    hours, minute = divmod(int(total), 60)
    moments = _moments(hours if hours > 0 else 12, minute, half)
    return [mention_of(match, values=(hour, minutes), kind=CLOCK, moments=moments)]


def _noon(match: re.Match[str], text: str) -> list[Mention]:
    moments = frozenset({0}) if match[0].lower() == "midnight" else frozenset({720})
    return [mention_of(match, values=(12, 0, 24), kind=CLOCK, moments=moments, strict=False)]


def _code(match: re.Match[str], text: str) -> list[Mention]:
    written = match[0]
    if prefix := re.match(r"[A-Za-z]?[a-z]{2,}-(?=\d)", written):  # mid-1990s, level-3: an ordinary number
        return english_numbers_at(text, match.start() + prefix.end())
    if measured := re.fullmatch(rf"({_FIGURE})({TABLES.english_pattern})", written):
        units = english_units(measured[2]) + (english_units("km") if measured[2] == "K" else ())  # a 10K race
        return [mention_of(match, values=(float(measured[1]),), units=units, loose=len(measured[2]) < 2)]
    return [mention_of(match, values=_digit_groups(written), kind=CODE)]


def english_numbers_at(text: str, position: int) -> list[Mention]:
    """The number that starts at a position, read as if nothing stood before it."""
    rest = _TOKEN.match(text[position:])
    if rest is None:
        return []
    group = rest.lastgroup if rest.lastgroup in _READERS else _group(rest)
    return [
        Mention(**{**vars(mention), "start": mention.start + position, "end": mention.end + position})
        for mention in _READERS[group](rest, text[position:])
    ]


def _digit_groups(text: str) -> tuple[float, ...]:
    return tuple(float(group) for group in re.findall(r"\d+", text))


def _whole_code(match: re.Match[str], text: str) -> list[Mention]:
    return [mention_of(match, values=_digit_groups(match[0]), kind=CODE)]


def _decade(match: re.Match[str], text: str) -> list[Mention]:
    """Read the 1990s, the sixties, "in her 30s": a decade of a century or of a life."""
    digits = re.sub(r"\D", "", match[0])
    value = float(digits) if digits else float(_TENS[match[0].lower().removesuffix("ies") + "y"])
    values = (value, value % 100, *((value // 100 + 1,) if value % 100 == 0 else ()))
    if value < 100:
        values += (1900 + value, 2000 + value, 1800 + value)
    return [mention_of(match, values=values, loose=True)]


def _opening(match: re.Match[str], text: str) -> list[Mention]:
    """Read the 2 of "from 2 to 4 p.m.", in either half of the day; 2 to 40 is no clock time."""
    hour = int(match[0])
    if not 1 <= hour <= 12:
        return [mention_of(match, values=(hour,), loose=True)]
    return [mention_of(match, values=(hour,), kind=CLOCK, moments=_moments(hour, 0, None))]


def _even(match: re.Match[str], text: str) -> list[Mention]:
    """Read 50-50, each one half."""
    return [mention_of(match, values=(0.5, 50.0), readings=((50.0, PERCENT),), loose=True, strict=False)]


def _fold(match: re.Match[str], text: str) -> list[Mention]:
    """Read "fivefold": to five times as much, or by four times."""
    written = match["foldvalue"]
    value = float(written) if written.isdigit() else _words(written)[0]
    return [mention_of(match, values=(value, value - 1), loose=True)]


def _height(match: re.Match[str], text: str) -> list[Mention]:
    """Read 6'2", feet and inches."""
    feet, inches = float(match["feet"]), float(match["inches"])
    parts = tuple(
        Mention(match.start(), match.end(), match[0], (value,), units=english_units(unit))
        for value, unit in ((feet, "feet"), (inches, "inches"))
    )
    readings = tuple((feet + inches / 12, unit) for unit in english_units("feet"))
    return [mention_of(match, readings=readings, parts=parts)]


def _spoken_time(match: re.Match[str], text: str) -> list[Mention]:
    """Read "at five thirty"; none where it is no clock time."""
    words = re.split(r"[\s-]+", match[0].lower())
    hour, minute = _ONES.get(words[0], 0), _words(" ".join(words[1:]))[0] if len(words) > 1 else 0
    if not (1 <= hour <= 12 and 10 <= minute <= 59 and _BEFORE_CLOCK.search(text, 0, match.start())):
        return []
    half = re.compile(rf"\s?{_HALF_DAY}").match(text, match.end())
    moments = _moments(hour, int(minute), half[0].strip()[0].lower() if half else None)
    return [mention_of(match, values=(hour, minute), kind=CLOCK, moments=moments)]


def _mixed(match: re.Match[str], text: str) -> list[Mention]:
    """Read "two and a half million"."""
    head = match["mixedhead"]
    whole = 1.0 if head is None else float(head) if head.isdigit() else _words(head)[0]
    value = (whole + 1 / _PARTS[match["mixedpart"].lower()]) * _SCALES[match["mixedscale"].lower()]
    return [_with_unit(mention_of(match, values=(value,)), text)]


def _share(match: re.Match[str], text: str) -> list[Mention]:
    """Read "nine out of ten": a share, or its two numbers where the translation counts both."""
    top, bottom = (
        float(written.replace(",", "")) if written[0].isdigit() else _words(written)[0]
        for written in (match["sharetop"], match["sharebottom"])
    )
    parts = tuple(
        Mention(match.start(), match.end(), written, (value,), strict=value > 1)
        for written, value in ((match["sharetop"], top), (match["sharebottom"], bottom))
    )
    if top >= bottom:
        return list(parts)
    share = top / bottom
    return [mention_of(match, values=(share,), readings=((share * 100, PERCENT),), loose=True, parts=parts)]


def _roman(match: re.Match[str], text: str) -> list[Mention]:
    """Read World War II, Henry VIII, Chapter IV; only the numeral itself is the mention."""
    group = next(name for name in ("romanwar", "romanany", "romanlong") if match[name] is not None)
    written = match[group]
    value = float(written) if written.isdigit() else float(roman_value(written))
    return [Mention(match.start(group), match.end(group), written, (value,), strict=value > 0)]


def roman_value(text: str) -> int:
    """Value of a Roman numeral up to 39."""
    signs = [{"I": 1, "V": 5, "X": 10}[sign] for sign in text]
    return sum(-a if a < b else a for a, b in zip(signs, [*signs[1:], 0]))


def _several(match: re.Match[str], text: str) -> list[Mention]:
    scale = match["severalscale"].lower()
    return [mention_of(match, values=(10.0 if scale == "dozen" else _SCALES[scale],), kind=VAGUE, strict=False)]


def _fraction(match: re.Match[str], text: str) -> list[Mention]:
    if match["over"] is None:
        sign = match[0][-1]
        value = _SIGNS_OF_PARTS[sign] + float(match[0][:-1] or 0)
    elif float(match["under"]) == 0:
        return []
    else:
        value = float(match["whole"] or 0) + float(match["over"]) / float(match["under"])
    mention = mention_of(match, values=(value,), readings=((value * 100, PERCENT),), loose=True)
    return [_with_unit(mention, text)]


def _scale(word: str) -> float:
    word = word.strip(" -")
    return _SCALES.get(word) or _SHORT_SCALES[word]


def _figure(match: re.Match[str], text: str) -> list[Mention]:
    digits = re.sub(r"[,\u00a0\u202f]", "", match["digits"])
    value = float(digits)
    if match["sign"] or match["minus"]:
        value = -value
    scale = match["scale"] or ""
    units: tuple[Unit, ...] = ()
    readings: tuple[tuple[float, Unit], ...] = ()
    if scale in ("k", "K", "m", "M", "b", "B") and not match["money"]:
        # 5m is five metres or five million, 5K five thousand or a code.
        metres = english_units("km") if scale in "kK" else ()  # a 10K race
        readings = tuple((value, unit) for unit in (*english_units(scale), *metres))
        values = (value * _scale(scale), value)
        return [mention_of(match, values=values, readings=readings, loose=True)]
    if scale:
        value *= _scale(scale)
    if match["money"]:
        units = sign_units(match["money"].strip())
    version = "." in digits and digits.endswith("0") and _VERSION_BEFORE.search(text, 0, match.start())
    if (len(digits) > 6 and digits.isdigit() and digits == match["digits"]) or re.match(r"0\d", digits) or version:
        return [mention_of(match, values=(value,), kind=CODE)]
    mention = mention_of(match, values=(value,), units=units, ordinal=bool(match["suffix"]))
    return [mention if units else _with_unit(mention, text)]


def _with_unit(mention: Mention, text: str) -> Mention:
    """Add "and a half" and the unit behind a number."""
    end, values = mention.end, mention.values
    if half := _AND_A_HALF.match(text, end):
        end = half.end()
        scale = re.search(r"(thousand|million|billion|trillion)$", mention.text)
        one = _SCALES[scale[1]] if scale else 1.0  # a million and a half
        values = tuple(value + one * {"half": 0.5, "quarter": 0.25}.get(half[1], 0.75) for value in values)
    units: tuple[Unit, ...] = ()
    loose = mention.loose
    if mention.values[0] > 0 and _BELOW_ZERO.match(text, end):
        values = tuple(-value for value in values)
    if match := _UNIT.match(text, end):
        units = english_units(match[1])
        loose = loose or match[1].lower() in _AMBIGUOUS_UNITS or (len(match[1]) == 1 and match[0] != match[1])
        if match[1].lower() == "second" and not match[0].startswith("-"):
            loose = True
        end = match.end()
    attributes = {"end": end, "text": text[mention.start : end], "values": values, "units": units, "loose": loose}
    return Mention(**{**vars(mention), **attributes})


def _words(text: str) -> tuple[float, ...]:
    """Values of a number in words; two for what reads as a year and as two numbers."""
    words = re.split(r"[\s-]+", text.lower())
    sign = -1.0 if words[0] in ("minus", "negative") else 1.0
    words = [word for word in words if word not in ("minus", "negative", "and", "a", "an")]
    if "point" in words:
        place = words.index("point")
        decimals = "".join(str(_ONES.get(word, 0)) for word in words[place + 1 :] if word in _ONES or word == "oh")
        whole = _words(" ".join(words[:place]))[0] if place else 0
        return (sign * float(f"{int(whole)}.{decimals or 0}"),)
    total = current = 0.0
    groups: list[float] = []
    for word in words:
        if word in _SCALES:
            if word in ("hundred", "dozen"):
                current = (current or 1) * _SCALES[word]
            else:
                total, current = total + (current or 1) * _SCALES[word], 0.0
            continue
        value = _ONES.get(word, _TENS.get(word, _ORDINALS.get(word, 0)))
        if (current % 100 >= 20 and current % 10 == 0 and value < 10) or current % 100 == 0:
            current += value
        else:  # nineteen eighty-four, twenty twenty-six
            groups.append(total + current)
            total, current = 0.0, float(value)
    groups.append(total + current)
    if len(groups) == 1:
        return (sign * groups[0],)
    if len(groups) == 2 and 10 <= groups[0] < 100 and 10 <= groups[1] < 100:
        return (groups[0] * 100 + groups[1],)
    return tuple(groups)


def _word_number(match: re.Match[str], text: str) -> list[Mention]:
    words = re.split(r"[\s-]+", match[0].lower())
    if len(words) > 2 and all((word in _ONES and _ONES[word] < 10) or word == "oh" for word in words):
        digits = "".join(str(_ONES.get(word, 0)) for word in words)
        return [Mention(match.start(), match.end(), digits, (float(digits),), CODE)]
    if clock := _spoken_time(match, text):
        return clock
    values = _words(match[0])
    ordinal = words[-1] in _ORDINALS
    if len(values) > 1:
        return [mention_of(match, values=(value,), loose=True) for value in values]
    strict = values[0] not in (0.0, 1.0, 2.0) or len(words) > 1
    mention = mention_of(match, values=values, ordinal=ordinal, strict=strict)
    mention = mention if ordinal else _with_unit(mention, text)
    exact = (mention.units and values[0] == 2.0) or mention.values != values  # two metres, one and a half
    if text.startswith((" times", " thanks"), match.end()) and words[0] in ("a", "an"):
        mention = Mention(**{**vars(mention), "strict": False})  # "thank you a thousand times"
    elif exact and not mention.strict:
        mention = Mention(**{**vars(mention), "strict": True})
    return [mention]


def _parts(match: re.Match[str], text: str) -> list[Mention]:
    count = {"a": 1, "an": 1}.get(match["count"].lower()) or _ONES[match["count"].lower()]
    part = match["part"].lower()
    under = _PARTS.get(part) or _PARTS[part.removesuffix("s")]
    plural = part.endswith("s")
    value = count / under
    if not plural and count > 1 and under > 2:  # "two third-party tools"
        return [mention_of(match, values=(float(count),)), mention_of(match, values=(float(under),), strict=False)]
    certain = plural or text.startswith(" of", match.end()) or "-" in match[0]
    mention = mention_of(
        match, values=(value,), readings=((value * 100, PERCENT),), loose=True, strict=under > 2 and certain
    )
    if hour := re.compile(r"\sof\san?\s(hour|mile|million)\b").match(text, match.end()):
        units = english_units(hour[1])
        extra = (value * 1e6,) if hour[1] == "million" else ()
        return [Mention(match.start(), hour.end(), text[match.start() : hour.end()], extra or (value,), units=units)]
    if under == 4:
        span = english_units("quarter")
        mention = Mention(**{**vars(mention), "readings": mention.readings + tuple((float(count), u) for u in span)})
    return [mention]


def _half_of(match: re.Match[str], text: str) -> list[Mention]:
    after = re.compile(r"[\s-]((?i:million|billion|thousand|hundred|dozen))\b").match(text, match.end())
    if after:
        value = 0.5 * _SCALES[after[1].lower()]
        return [Mention(match.start(), after.end(), text[match.start() : after.end()], (value,))]
    readings = ((50.0, PERCENT),)
    mention = _with_unit(mention_of(match, values=(0.5,), readings=readings, loose=True, strict=False), text)
    if mention.units:
        mention = Mention(**{**vars(mention), "strict": True, "readings": ()})
    return [mention]


def _ordinal(match: re.Match[str], text: str) -> list[Mention]:
    value = float(_ORDINALS[match[0].lower()])
    strict = value > 2 or (value == 2 and bool(_SECOND_OF_SEVERAL.match(text, match.end())))
    return [mention_of(match, values=(value,), ordinal=True, strict=strict)]


def _vague(match: re.Match[str], text: str) -> list[Mention]:
    magnitude = 1.0
    for word in match[0].lower().removesuffix(" of").split(" of "):
        magnitude *= _COLLECTIVE[word]
    return [mention_of(match, values=(magnitude,), kind=VAGUE, strict=False)]


_READERS = {
    "iso": iso_date,
    "slashed": slashed_date,
    "mdy": _named,
    "dmy": _named,
    "my": _named,
    "bare": _bare,
    "past": _past,
    "clock": _clock,
    "oclock": _oclock,
    "noon": _noon,
    "dotted": _whole_code,
    "phone": _whole_code,
    "decade": _decade,
    "opening": _opening,
    "mixed": _mixed,
    "even": _even,
    "fold": _fold,
    "height": _height,
    "share": _share,
    "roman": _roman,
    "several": _several,
    "fraction": _fraction,
    "code": _code,
    "figure": _figure,
    "each": _each,
    "parts": _parts,
    "half": _half_of,
    "words": _word_number,
    "ordinal": _ordinal,
    "vague": _vague,
}
