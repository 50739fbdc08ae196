"""Chinese persons in pinyin: Wang Wei is 王伟 or 汪伟, since pinyin does not tell the signs; 王强 is somebody else."""

from __future__ import annotations

import re
from collections.abc import Container, Iterator
from functools import lru_cache
from pathlib import Path

from harness.checks.phenomena.verdict import Slot

_FOLDER = Path(__file__).parent
# The commonest family names by their pinyin without tones, and every common sign of that sound.
_FAMILIES = dict(
    line.split("\t") for line in (_FOLDER / "pinyin_families.tsv").read_text(encoding="utf-8").splitlines()[1:]
)
_INITIAL = "(?:[bpmfdtnlgkhjqxrzcsyw]|zh|ch|sh)?"
_FINAL = (
    "(?:a|o|e|ai|ei|ao|ou|an|en|ang|eng|ong|i|ia|ie|iao|iu|ian|in|iang|ing|iong|u|ua|uo|uai|ui|uan|un|uang|ue|er|"
    "v|ü|üe)"
)
_SYLLABLE = f"{_INITIAL}{_FINAL}"
_TOKEN = rf"(?=[A-Z])(?i:{_SYLLABLE})(?:[-'’]?(?i:{_SYLLABLE}))?"
_PERSON = re.compile(rf"(?<![\w-])({_TOKEN}) ({_TOKEN}(?: (?=[A-Z])(?i:{_SYLLABLE}))?)(?![\w-]| [A-Z])")
_TITLE = "(?:Mr|Mrs|Ms|Miss|Dr|Prof|Professor|Doctor|Teacher|Comrade|Director)"
_ALONE = re.compile(rf"\b{_TITLE}\.? ({_TOKEN})(?![\w-]| [A-Z])")
_CAPITALS = re.compile("[A-Z][a-zü'’-]+ [A-Z][a-zü]")
# English words that look like pinyin: two of them in a row are no name ("He Can").
_ENGLISH = frozenset(
    re.findall(
        r"\w+",
        "he she me we you long song fan can men pan ran sun tan wan hang gang bang dan den pen pin bin ban die lie "
        "tie pie be woman women hen sang rang tang dance range change dare page cage",
    )
)


@lru_cache(maxsize=1)
def _signs() -> dict[str, str]:
    """Signs by syllable."""
    lines = (_FOLDER / "pinyin.tsv").read_text(encoding="utf-8").splitlines()
    return dict(line.split("\t") for line in lines if not line.startswith("#"))


def persons(source: str) -> list[re.Match[str]]:
    """Names in pinyin, with the family name first or last."""
    if not _CAPITALS.search(source):
        return []
    found = []
    for match in _PERSON.finditer(source):
        words = {match[1].lower(), match[2].lower()}
        family = {match[1], match[2]} & _FAMILIES.keys() and not words <= _ENGLISH
        if family and _spelled(match[1]) and _spelled(match[2]):
            found.append(match)
    return found


def surnames(source: str) -> list[str]:
    """Family names in pinyin behind a title."""
    return [match[1] for match in _ALONE.finditer(source) if match[1] in _FAMILIES]


def chinese_person_slots(source: str, translation: str, known: Container[str] = ()) -> Iterator[Slot]:
    """Persons of whom the translation has neither the pinyin nor signs of that sound.

    Args:
        source: English text.
        translation: Chinese text.
        known: names of the glossary, which are judged by their forms instead.
    """
    folded = translation.casefold()
    for match in persons(source):
        if match[0] in known or match[0].casefold() in folded or _said(match[1], match[2], translation):
            continue
        yield Slot(match[0], None, f"{match[0]} is missing or another person")
    for name in surnames(source):
        if name in known or name.casefold() in folded or re.search(_any_sign(name.lower(), name), translation):
            continue
        yield Slot(name, None, f"{name} is missing or another person")


def _said(first: str, second: str, translation: str) -> bool:
    """Whether both parts follow each other in signs of their sound, in either order, or a given name of two signs."""
    for one, other in ((first, second), (second, first)):
        if one not in _FAMILIES:
            continue
        for family in _spelled(one):
            for given in _spelled(other):
                if re.search(f"{family}[·•]?{given}", translation):
                    return True
    return any(
        re.search(f"(?<![{_family_signs()}]){given}", translation) for given in _spelled(second) if given.count("[") > 1
    )


@lru_cache(maxsize=1)
def _family_signs() -> str:
    return "".join(_FAMILIES.values())


def _spelled(name: str) -> list[str]:
    """Regular expressions for a name of one or two syllables; Xian is 先 or 西安. None for what is no pinyin."""
    text = re.sub("[-' ’]", "", name).lower().replace("ü", "v")
    found = [_any_sign(text, name)] if text in _signs() else []
    for i in range(1, len(text)):
        if text[:i] in _signs() and text[i:] in _signs():
            found.append(_any_sign(text[:i]) + _any_sign(text[i:]))
    return found


def _any_sign(syllable: str, family: str = "") -> str:
    return f"[{_signs().get(syllable.replace('ü', 'v'), '')}{_FAMILIES.get(family, '')}]"
