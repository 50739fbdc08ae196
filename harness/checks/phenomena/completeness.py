"""Completeness: nothing dropped, repeated, copied or invented."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from harness.checks.phenomena.chinese_numbers import chinese_numbers
from harness.checks.phenomena.english_numbers import english_numbers
from harness.checks.phenomena.verdict import Slot, Verdict

# Chinese signs per English word: sound translations have 1.2 to 2.5; these bounds are far outside.
_FEWEST, _MOST = 0.55, 6.0
_WORDS = re.compile(r"[A-Za-z]+(?:['’][a-z]+)?|\d[\d.,:]*")
# A word that is no code, address or figure.
_TRANSLATABLE = re.compile(r"(?<![\w./@:-])[A-Za-z]?[a-z]{2,}(?![\w/@:-]|\.\w)")
_MEANING = re.compile(r"\w")
_HAN = re.compile("[\u3400-\u9fff]")
_TARGET = re.compile("[\u3400-\u9fff]|[A-Za-z]+|\\d[\\d.,:]*")
_ABBREVIATION = re.compile(
    r"\b(?:Mr|Mrs|Ms|Dr|Prof|St|No|Nos|Inc|Ltd|Co|Corp|vs|etc|ca|e\.g|i\.e|approx|Fig|Jan|Feb|Mar|Apr|Jun|Jul|Aug|"
    r"Sept?|Oct|Nov|"
                           r"Dec|[ap]\.m|U\.S|[A-Z])\.(?=\s)", re.IGNORECASE)  # fmt: skip
_ENGLISH_END = re.compile(r"(?<=[.!?])[\"”')\]]*\s+(?=[\"“'(\[]?[A-Z0-9])|\n+")
_CHINESE_END = re.compile(r"(?<=[。！？!?；;])[”\"』」）)]*\s*|(?<=\.)\s+|\n+|…+")
_CLAUSE_END = re.compile("[，。！？!?；;：:、,.\n…—-]+")
_LOOP = re.compile(r"(?P<unit>[^\s\d.,\-_=*#~!！?？。，…·]{2,20}?)[，、,\s]?(?:(?P=unit)[，、,\s]?){2,}")
_SIGN_LOOP = re.compile(r"([\u3400-\u9fffA-Za-z])(?:[，、,\s]?\1){4,}")
_ECHO = re.compile(r"(?P<unit>[\u3400-\u9fff\w][^\n]{4,60}?)[，,、；;。.！!\s]*(?P=unit)")
_SOURCE_REPEATS = re.compile(r"\b(\w+)\b\W+\1\b|(.{6,}).{0,3}\2", re.IGNORECASE)
_FUNCTION_WORD = re.compile(
    r"\b(?:the|a|an|of|to|is|are|was|and|in|for|with|on|at|it|this|that|be|not|you|we|from|by|has|have|will)\b",
    re.IGNORECASE,
)
_ENGLISH_RUN = re.compile(r"[A-Za-z][A-Za-z'’]*(?:[ ,]+[A-Za-z0-9][A-Za-z'’0-9-]*){4,}")


def check_completeness(source: str, translation: str) -> Verdict:
    """Judge whether a translation is all of its source and nothing else; markup has been blanked in both texts."""
    if not _MEANING.search(source):
        invented = bool(_MEANING.search(translation)) and translation.strip() != source.strip()
        slots = [Slot("", translation, "text for a source without any")] if invented else []
        return Verdict.of(slots, applies=False)
    if source.strip() == translation.strip() and not _TRANSLATABLE.search(source):
        return Verdict.of((), applies=False)
    if not _MEANING.search(translation):
        return Verdict.of([Slot(source, None, "the translation is empty")], applies=True)
    slots = (
        [*_broken_off(source, translation)]
        or [*_copied(source, translation)]
        or [*_repeated(source, translation)]
        or [*_lengths(source, translation)]
    )
    return Verdict.of(slots, applies=True)


def sentences(text: str) -> list[str]:
    """Sentences of an English text."""
    text = _ABBREVIATION.sub(lambda match: match[0][:-1] + "\0", text)
    return [part for part in _ENGLISH_END.split(text) if _MEANING.search(part)]


def chinese_sentences(text: str) -> list[str]:
    """Sentences of a Chinese text."""
    return [part for part in _CHINESE_END.split(text) if _MEANING.search(part)]


_OPEN_END = re.compile("[、，,：:(（“「]\\s*$")


def _broken_off(source: str, translation: str) -> Iterator[Slot]:
    """Find an output that ends in the middle of a list, a sentence left in English, and a greeting that goes on."""
    if _OPEN_END.search(translation) and not re.search(r"[,:(“\"]\s*$", source):
        yield Slot(source, translation[-12:], "the translation breaks off")
        return
    parts = sentences(source) if _HAN.search(translation) else []
    for part in parts if len(parts) > 1 else []:
        if re.search(r"\b[a-z]+\b", part) and " " in part.strip() and part.strip() in translation:
            yield Slot(part, part, "not translated")
            return
    words, signs = len(_WORDS.findall(source)), len(_HAN.findall(translation))
    if words < 4 and signs > 6 * words + 12:
        yield Slot(source, translation, f"{signs} signs for {words} words: something was added")


def _copied(source: str, translation: str) -> Iterator[Slot]:
    """Find a translation, or a long part of it, that is still English."""
    words = list(re.findall(r"(?<![\w./@-])[a-z]{2,}(?![\w./@-])", source))
    if not _HAN.search(translation):
        same = re.sub(r"\W", "", source).casefold() == re.sub(r"\W", "", translation).casefold()
        if len(words) > 1 or (same and words and len(source.split()) > 1):
            yield Slot(source, translation, "the source was copied" if same else "not translated into Chinese")
        return
    folded = " ".join(source.split()).casefold()
    for match in _ENGLISH_RUN.finditer(translation):
        run = match[0].casefold()
        around = translation[max(0, match.start() - 1) : match.start()] + translation[match.end() : match.end() + 1]
        if len(_FUNCTION_WORD.findall(run)) > 1 and not re.search("[\"“”'‘’《(（「]", around):
            yield Slot(match[0], match[0], "not translated" if run in folded else "English text")
            return


def _repeated(source: str, translation: str) -> Iterator[Slot]:
    """Find sentences said twice and loops."""
    loop = _LOOP.search(translation) or _SIGN_LOOP.search(translation)
    if (
        loop
        and re.search(r"[^\W\d_]", loop[0])
        and loop[0].strip().casefold() not in source.casefold()
        and not _SOURCE_REPEATS.search(source)
        and not re.search(r"(\w)\1{3}", source)
    ):
        yield Slot("", loop[0], "a loop")
        return
    if echo := _echo(translation):
        if echo in source or _SOURCE_REPEATS.search(source):
            return
        yield Slot("", echo, "said twice")
        return
    parts = [re.sub(r"\W", "", part) for part in chinese_sentences(translation)]
    shortest = 2 if len(sentences(source)) == 1 else 3
    counts = Counter(part for part in parts if len(part) >= shortest)
    had = Counter(re.sub(r"\W", "", part).casefold() for part in sentences(source))
    for part, count in counts.items():
        if count > 1 and count > max(had.values(), default=1):
            yield Slot("", part, f"the sentence stands {count} times")
            return


def _echo(translation: str) -> str | None:
    """A stretch of five signs or more that is followed by itself."""
    if len(translation) < 10:
        return None
    for match in _ECHO.finditer(translation):
        if len(_HAN.findall(match["unit"])) > 4:
            return match["unit"]
    return None


def _lengths(source: str, translation: str) -> Iterator[Slot]:
    """Find what is too short or too long for its source, sentence by sentence where their number is the same."""
    left, right = sentences(source), chinese_sentences(translation)
    words, signs = len(_WORDS.findall(source)), len(_TARGET.findall(translation))
    if not words:
        return
    if len(left) > 1:
        yield from _dropped(left, right, words, signs, translation)
    if words >= 8 and signs < _FEWEST * words:
        yield Slot(source, translation, f"{signs} signs for {words} words: something was dropped")
    elif words >= 4 and signs > _MOST * words + 10:
        yield Slot(source, translation, f"{signs} signs for {words} words: something was added")
    elif len(right) > len(left) and _invented(left, right, words, signs):
        yield Slot("", right[-1], "a sentence too many")


def _dropped(left: list[str], right: list[str], words: int, signs: int, translation: str) -> Iterator[Slot]:
    clauses = [part for part in _CLAUSE_END.split(translation) if _MEANING.search(part)]
    missing = len(left) - len(right)
    if missing <= 0:
        return
    if words <= 6 and signs >= 2 * len(left):
        return  # slogans shrink: "Buy one. Get one free." is 买一送一
    longest = max(len(_WORDS.findall(part)) for part in left)
    shortest = min(len(_WORDS.findall(part)) for part in left)
    if (part := _without_its_numbers(left, translation)) and signs < 1.45 * words:
        yield Slot(part, None, "the sentence is missing")
        return
    # One sentence fewer: merged with a comma, or gone. Gone if no clauses are left to hold it or if
    # the whole is too short.
    scant = (1.0 if len(clauses) < len(left) else 0.7) * words
    if (len(clauses) < len(left) and signs < 1.45 * words) or (signs < scant and longest >= 4 and shortest >= 2):
        yield Slot(" ".join(left), translation, f"{len(left)} sentences became {len(right)}")


def _without_its_numbers(left: list[str], translation: str) -> str | None:
    """A sentence of the source all of whose numbers the translation lacks, while another has its own."""
    have = {value for mention in chinese_numbers(translation) for value in mention.values}
    for part in left:
        numbers = [
            mention for mention in english_numbers(part) if mention.strict and not mention.kind and mention.values
        ]
        if numbers and not any(have & set(mention.values) for mention in numbers):
            return part
    return None


def _invented(left: list[str], right: list[str], words: int, signs: int) -> bool:
    return len(right) - len(left) >= 1 and signs > 3.2 * words + 4 and len(right) >= 2 and words >= 2
