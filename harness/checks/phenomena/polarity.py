"""Words that come in opposites, and predicates: correct and incorrect, lock and unlock, start and not start.

A concept's polarity is the sign of the word that stands for it times the signs of what negates it directly. Where a
concept of `polarity.tsv` occurs exactly once on each side, both polarities must agree: "incorrect" is 不正确 or 错误,
and "not impossible" is 可能; 正确 and 不可能 would say the opposite. Other wordings, and words under a negation that
may belong to another word, say nothing and are left alone.

In the table English words stand with a space between them; `start~` stands for all its regular forms.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from harness.checks.phenomena.negation_words import chinese, english
from harness.checks.phenomena.verdict import Slot

_TABLE = Path(__file__).with_name("polarity.tsv")
_TOKEN = re.compile(r"[a-z]+(?:-[a-z]+)*(?:['’][a-z]+)?", re.IGNORECASE)
# What may stand between a negation and the word that it negates: "is not yet completely safe".
_BETWEEN = re.compile(
    r"\s*(?:(?:be|been|being|is|was|are|were|has|have|had|do|does|did|will|can|could|may|should|must|yet|completely|"
    r"very|entirely|fully|always|really|considered|quite|at|all|a|an|any|the|to|ever|also|still|currently|longer)\s+)*",
    re.IGNORECASE,
)
_ENGLISH_BORDER = re.compile(
    r"[,;:.!?()\"“”]|\b(?:but|because|if|when|whenever|before|after|so|while|although|though|since|unless|until|till|"
    r"that|which|who|whose|where|than|as)\b",
    re.IGNORECASE,
)
_CHINESE_BORDER = re.compile("[,，。；：！？;:!?、()（）“”\"\\s]|但|而(?!是|非)|因为|所以|如果|时(?!间|常|候)|后|并且")
# Negates the word behind it if nothing but an auxiliary stands between.
_SIGN = re.compile("不|没有|没|未|非|无法|无|请勿|切勿|勿|别|莫|禁止|严禁|拒绝|停止|避免|防止|难以|未能|没能|谢绝|从不|从未")
_CHAIN = re.compile(
    f"(?:(?:{_SIGN.pattern})(?:是|太|很|大|再|会|要|够|怎么|必|可以|可|那么|完全|总|都|能够|能|被|得以|得|须|应该|应|该|想|敢|肯|"
    "愿意|愿|曾|有|去|来|用|需要|需|必须|允许|准|许|进行|一个|个|任何|什么|多少|明显|直接|立即|已知|已经|已|为|一定)*)+$"
)
# In the clause of a word, a sign that its polarity cannot be told by these rules.
_VAGUE = re.compile(
    "才|方可|方能|方才|除非|只有|哪|岂|怎|何必|何曾|难道|忘|以免|免得|几乎|很少|极少|难|缺|失|反对|否|谁|尚待|有待|不得不|不能不|无不|"
    "未必|不见得|不可不|少不了|非.+不"
)
_OPERATOR = re.compile(
    r"\b(?:unable|fail\w*|refus\w+|stop\w*|avoid\w*|prevent\w*|instead|rather|too|lack\w*|den(?:y|ies|ied)|forg[eo]t\w*|"
    r"hardly|barely|scarcely|few|little|seldom|rarely|only|almost|nearly|until|till|unless|neither|nor|hesitat\w*|"
    r"prohibit\w*|forbid\w*|banned|impossible|unlikely|cease\w*|keep\w*|kept|how|reluctant|free|out|off|excep\w+)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Concept:
    """A pair of opposites, or a predicate, on both sides."""

    words: dict[str, int]
    chinese: tuple[tuple[re.Pattern[str], int], ...]
    unless: re.Pattern[str] | None


def _forms(word: str) -> list[str]:
    """Return the word, or all regular forms of a word with a tilde."""
    if not word.endswith("~"):
        return [word]
    base = word[:-1]
    if base.endswith("e"):
        return [base, f"{base}s", f"{base}d", f"{base[:-1]}ing"]
    if base.endswith("y") and base[-2] not in "aeou":
        return [base, f"{base[:-1]}ies", f"{base[:-1]}ied", f"{base}ing"]
    doubled = base + base[-1]
    forms = [base, f"{base}s", f"{base}es", f"{base}ed", f"{base}ing", f"{doubled}ed", f"{doubled}ing"]
    return forms


@lru_cache(maxsize=1)
def _concepts() -> tuple[Concept, ...]:
    with _TABLE.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t", restval="", quoting=csv.QUOTE_NONE))
    signs = (("en_positive", "zh_positive", 1), ("en_negative", "zh_negative", -1))
    return tuple(
        Concept(
            {form: sign for key, _, sign in signs for word in row[key].split() for form in _forms(word)},
            # The negative first: 看不见 before 见.
            tuple((re.compile(row[key]), sign) for _, key, sign in reversed(signs) if row[key]),
            re.compile(row["unless"], re.IGNORECASE) if row["unless"] else None,
        )
        for row in rows
    )


@lru_cache(maxsize=1)
def _by_word() -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for i, concept in enumerate(_concepts()):
        for word in concept.words:
            found.setdefault(word, []).append(i)
    return found


def reversed_concept_slots(source: str, plain: str, translation: str, masked: str) -> Iterator[Slot]:
    """A slot for every concept that the translation says the other way round.

    Args:
        source: English text.
        plain: the same without idioms that only look negative.
        translation: Chinese text.
        masked: the same without words that only look negative.
    """
    index = _by_word()
    found: dict[int, list[re.Match[str]]] = {}
    for match in _TOKEN.finditer(source):
        for i in index.get(match[0].lower(), ()):
            found.setdefault(i, []).append(match)
    for i, matches in found.items():
        concept = _concepts()[i]
        if len(matches) > 1 or (concept.unless and concept.unless.search(source)):
            continue
        wanted = _english_polarity(concept, matches[0], plain)
        word, sign = _chinese_polarity(concept, translation, masked) if wanted else (None, 0)
        if sign and sign != wanted:
            yield Slot(matches[0][0], word, "says the opposite")


def _english_polarity(concept: Concept, match: re.Match[str], plain: str) -> int:
    """Polarity of a concept where it stands in the source; 0 where a negation may belong to another word."""
    sign = concept.words[match[0].lower()]
    start = max((border.end() for border in _ENGLISH_BORDER.finditer(plain, 0, match.start())), default=0)
    border = _ENGLISH_BORDER.search(plain, match.end())
    before, after = plain[start : match.start()], plain[match.end() : border.start() if border else len(plain)]
    if plain[match.start() : match.end()] != match[0]:
        # Part of an idiom with its negation: "not uncommon" is common.
        return -sign if sign < 0 else 0
    if _OPERATOR.search(before) or _OPERATOR.search(after) or english("negation").search(after):
        return 0
    negations = list(english("negation").finditer(before))
    if not negations:
        return sign
    direct = len(negations) == 1 and _BETWEEN.fullmatch(before, negations[0].end())
    return -sign if direct else 0


def _chinese_polarity(concept: Concept, translation: str, masked: str) -> tuple[str | None, int]:
    """The one occurrence of a concept in the translation and its polarity; 0 where that is not certain."""
    found: list[tuple[int, int, int]] = []
    for pattern, sign in concept.chinese:
        for match in pattern.finditer(translation):
            if not any(start < match.end() and match.start() < end for start, end, _ in found):
                found.append((match.start(), match.end(), sign))
    if len(found) != 1:
        return None, 0
    start, end, sign = found[0]
    left = max((border.end() for border in _CHINESE_BORDER.finditer(translation, 0, start)), default=0)
    border = _CHINESE_BORDER.search(translation, end)
    right = border.start() if border else len(translation)
    if _VAGUE.search(translation, left, start) or chinese("sign").search(masked, end, right):
        return None, 0
    if not chinese("sign").search(masked, left, start) and not _SIGN.search(masked, left, start):
        return translation[start:end], sign
    if chain := _CHAIN.search(masked, left, start):
        count = len(_SIGN.findall(chain[0]))
        if count == len(_SIGN.findall(masked, left, start)):
            return translation[chain.start() : end], -sign if count % 2 else sign
    return None, 0
