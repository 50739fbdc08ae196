"""Negation: there where the source has it, and only there.

Judged sentence by sentence where both texts have the same number of them, else as a whole. Three instruments, the more
certain one first: constructions with a rule of their own, predicates whose polarity both sides show (`polarity.py`),
and a count of the negations, clause by clause where the clauses agree. A word that is negative in meaning only ("few",
"avoid", "only if") allows a Chinese negation and never demands one. The words are in `negation.tsv`.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator

from harness.checks.phenomena.completeness import chinese_sentences, sentences
from harness.checks.phenomena.constructions import broken_constructions
from harness.checks.phenomena.negation_words import chinese, english, pairs, plain_chinese, plain_english
from harness.checks.phenomena.polarity import reversed_concept_slots
from harness.checks.phenomena.verdict import Slot, Verdict

_ENGLISH_CLAUSE = re.compile(
    r"[,;:](?=\s)\s*(?:and|but|or|so|then)?\b|\s(?:and|but)\s(?=(?:does|do|did|is|are|was|were|has|have|had|will|can|"
    r"cannot|could|should|must|not|never|no|i|he|she|it|they|we|you)\b)|\s(?=(?:if|when|because|although|unless)\b)",
    re.IGNORECASE,
)
_CHINESE_CLAUSE = re.compile("[，；：,;:]")
# A border that one 不 does not reach across.
_WALL = re.compile(
    r"[,;:]|\b(?:because|if|when|before|after|but|so|which|who|until|while|although|since|unless|that|and)\b", re.I
)
_SUBORDINATE = re.compile(
    r"\s*(?:if|when|whenever|because|although|though|since|unless|without|while|after|before|so|in\sorder|as|until|once|"
    r"in\scase|for|to)\b",
    re.IGNORECASE,
)
_CONDITION = re.compile("^(?:如果|如|若|假如|当|因为|由于|虽然|尽管|除非|一旦|为了|为)|(?:时|时候|前|后|的话)$")
_BUT_RATHER = re.compile("而不是|而非|，不是|，而是|，是")
_QUESTION = re.compile(r"\?[\s\"”')]*$")


def check_negation(source: str, translation: str) -> Verdict:
    """Judge the negation of a translation; markup has been blanked in both texts."""
    left, right = sentences(source), chinese_sentences(translation)
    parts = list(zip(left, right)) if len(left) == len(right) else [(source, translation)]
    slots = [slot for part in parts for slot in _judge(*part)]
    return Verdict.of(slots, applies=bool(slots) or _applies(source, translation))


def _applies(source: str, translation: str) -> bool:
    """Whether either side negates at all: "not only" and 不锈钢 do not."""
    if english("negation").search(_without_empty(source)) or english("negative").search(source):
        return True
    return bool(chinese("sign").search(plain_chinese(translation))) or "不得不" in translation


def _without_empty(source: str) -> str:
    """The source without forms that are not even negations in form to a reader: not only, whether or not."""
    return _EMPTY.sub(" ", source)


_EMPTY = re.compile(
    r"\bnot\s(?:only|just|merely|simply|solely)\b|\bno\smatter\b|\bor\snot\b|\bno\s(?:later|earlier|fewer|less|more)\sthan\b|"
    r"\bnevertheless\b|\bnonetheless\b|\blast\sbut\snot\sleast\b|\bno\.?\s\d",
    re.IGNORECASE,
)


def _judge(source: str, translation: str) -> Iterator[Slot]:
    plain, masked = plain_english(source), plain_chinese(translation)
    certain = [
        *broken_constructions("negation", source, translation),
        *reversed_concept_slots(source, plain, translation, masked),
    ]
    if certain:
        yield certain[0]
        return
    negations = english("negation").findall(plain)
    if negations:
        yield from list(_misplaced(plain, masked)) or _lost(plain, negations, translation, masked)
    elif plain == source:
        yield from _added(source, masked)


def _misplaced(plain: str, masked: str) -> Iterator[Slot]:
    """Negations that stand in another clause than they should, where both texts have as many clauses.

    English may say the condition last, Chinese says it first; both orders pass where nothing shows which it is.
    """
    left = [clause for clause in _ENGLISH_CLAUSE.split(plain) if re.search(r"\w", clause)]
    right = [clause for clause in _CHINESE_CLAUSE.split(masked) if re.search(r"\w", clause)]
    if len(left) != len(right) or not 2 <= len(left) <= 3 or _BUT_RATHER.search(masked):
        return
    orders = [left]
    if len(left) == 2 and (_SUBORDINATE.match(left[0]) or _SUBORDINATE.match(left[1])):
        marked = _CONDITION.search(right[0].strip())
        if _SUBORDINATE.match(left[1]):
            orders = [left[::-1]] if marked else [left, left[::-1]]
    if all(_differ(order, right) for order in orders):
        clause = next(clause for clause in left if english("negation").search(clause))
        yield Slot(english("negation").search(clause)[0], None, "the negation is not where it belongs")


def _differ(left: list[str], right: list[str]) -> bool:
    """Whether one clause has lost its negation and another one has got or kept too few to make up for it."""
    lost = added = False
    for ours, theirs in zip(left, right):
        has, sign = english("negation").search(ours), chinese("sign").search(theirs)
        if has and not sign:
            lost |= not _said_otherwise(ours, theirs)
        elif sign and not has:
            added |= not _allowed(ours, theirs)
    kept = sum(bool(chinese("sign").search(clause)) for clause in right)
    wanted = sum(bool(english("negation").search(clause)) for clause in left)
    return lost and (added or kept < wanted)


def _lost(plain: str, negations: list[str], translation: str, masked: str) -> Iterator[Slot]:
    have = len(chinese("sign").findall(masked))
    if have == 0 and not _said_otherwise(plain, translation):
        yield Slot(negations[0], None, "the negation is lost")
    elif 0 < have < len(negations) and _in_two_clauses(plain) and not _said_otherwise(plain, translation):
        yield Slot(", ".join(negations), None, f"{len(negations)} negations became {have}")


def _said_otherwise(source: str, translation: str) -> bool:
    """Whether Chinese says the negation with another word: an opposite, 才, 难以, 除了."""
    for explained, sign in pairs("otherwise"):
        if sign.search(translation) and not explained.search(source):
            return True
    return any(sign.search(translation) and word.search(source) for word, sign in pairs("opposite"))


def _in_two_clauses(text: str) -> bool:
    """Whether two negations have a clause's border between them, so that one 不 cannot do for both."""
    places = [match.start() for match in english("negation").finditer(text)]
    return any(_WALL.search(text, start, end) for start, end in itertools.pairwise(places))


def _added(source: str, masked: str) -> Iterator[Slot]:
    if _QUESTION.search(source):
        return
    if not _allowed(source, masked):
        found = chinese("sign").search(masked)
        if found:
            yield Slot("", masked[found.start() : found.end() + 3], "a negation that the source has not")


def _allowed(source: str, masked: str) -> bool:
    """Whether every Chinese negation has an English word that it may come from."""
    if not chinese("sign").search(masked) or english("lexical").search(source):
        return True
    rest = masked
    for word, sign in pairs("allows"):
        if sign.search(rest) and word.search(source):
            rest = sign.sub("", rest)
    return not chinese("sign").search(rest)
