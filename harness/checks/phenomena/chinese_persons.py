"""Chinese persons in pinyin: Wang Wei is 王伟 or 汪伟, since pinyin does not tell the signs; 李强 is somebody else."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from harness.checks.phenomena.verdict import Slot

# The hundred commonest family names of China by their pinyin (tones dropped), with every common sign of that sound.
_TABLE = Path(__file__).with_name("pinyin_families.tsv")
_SIGNS = dict(line.split("\t") for line in _TABLE.read_text(encoding="utf-8").splitlines()[1:])
_INITIAL = "(?:[bpmfdtnlgkhjqxrzcsyw]|zh|ch|sh)?"
_FINAL = (
    "(?:a|o|e|ai|ei|ao|ou|an|en|ang|eng|ong|i|ia|ie|iao|iu|ian|in|iang|ing|iong|u|ua|uo|uai|ui|uan|un|uang|ue|er|v)"
)
_SYLLABLE = f"{_INITIAL}{_FINAL}"
_PERSON = re.compile(
    rf"(?<![A-Za-z] )(?<![\w-])({'|'.join(_SIGNS)}) ((?=[A-Z])(?i:{_SYLLABLE})(?:[-' ]?(?i:{_SYLLABLE}))?)\b(?! [A-Z])"
)
_SENTENCE_START = re.compile(r"(?<![\w-])(He|Long|Fan|Fang|Song|Tan|Ye|Bai|You) ")


def persons(source: str) -> list[re.Match[str]]:
    """Names in pinyin, family name first; an English word that begins a sentence is none."""
    return [match for match in _PERSON.finditer(source) if not _SENTENCE_START.match(match[0])]


def chinese_person_slots(source: str, translation: str) -> Iterator[Slot]:
    """Persons of whom the translation has neither the pinyin nor a fitting family name with a given name."""
    for match in persons(source):
        if match[0].casefold() in translation.casefold():
            continue
        if not re.search(f"[{_SIGNS[match[1]]}][\u4e00-\u9fff]", translation):
            yield Slot(match[0], None, f"{match[0]} is missing or another person")
