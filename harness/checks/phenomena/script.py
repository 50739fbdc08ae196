"""Script: Simplified Chinese, without unknown pieces, broken characters or other scripts."""

from __future__ import annotations

import functools
import re

from harness.checks.phenomena.verdict import Slot, Verdict

# Traditional by OpenCC, and in use in Simplified as well: 乾坤, 瞭望, 慰藉, 象徵 is not.
_BOTH = set("乾瞭藉著於后里系台吒昇甯濛蘋鍾摺噁餘徵馀钜祕覆讚")
_UNKNOWN = re.compile(
    r"⁇|\ufffd|<unk>|\[UNK\]|<pad>|</s>|<s>|▁|<0x[0-9A-F]{2}>|\bunk\b|@@(?=\s)|##(?=\w)|锟斤拷|烫烫烫|Ã.|â€.|ï¼.|"
    r"[\u00e0-\u00ef][\u0080-\u00bf\u2018-\u201e\u2020-\u2026\u0152-\u0178].{0,3}[\u00e0-\u00ef]"
)
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ue000-\uf8ff]")
_OTHER = re.compile(
    "[\u3041-\u3096\u30a1-\u30fa\u30fc-\u30ff\u0400-\u04ff\uac00-\ud7af\u1100-\u11ff\u0e00-\u0e7f\u0600-\u06ff\u0590-\u05ff\u0900-\u097f]+"
)
_LETTER = re.compile("[A-Za-z\u3041-\u30ff\u3400-\u9fff\u0400-\u04ff\uac00-\ud7af]")
# A word that Chinese would write with signs: no code, address, acronym or placeholder.
_SIGNS_DUE = re.compile(r"(?<![\w./@:{$%-])[A-Za-z]?[a-z]{2,}(?![\w/@:}-]|\.\w)")


@functools.lru_cache(maxsize=1)
def _traditional() -> re.Pattern[str]:
    """Signs that OpenCC writes otherwise in Simplified Chinese, except those that Simplified uses too."""
    from opencc import OpenCC  # not at import: opening its dictionaries takes time that a mere import need not spend

    signs = [chr(code) for code in range(0x4E00, 0x9FA6)]
    simple = OpenCC("t2s").convert("\n".join(signs)).split("\n")
    found = {sign for sign, other in zip(signs, simple) if sign != other} - _BOTH | {"於"}
    return re.compile(f"[{''.join(sorted(found))}]+")


def check_script(source: str, translation: str) -> Verdict:
    """Judge the script of a translation; what the source has itself is never a fault."""
    slots = []
    for pattern, problem in (
        (_UNKNOWN, "an unknown or broken piece"),
        (_CONTROL, "a control character"),
        (_traditional(), "Traditional Chinese"),
        (_OTHER, "another script"),
    ):
        found = [match[0] for match in pattern.finditer(translation) if match[0] not in source]
        if found:
            slots.append(Slot("", " ".join(dict.fromkeys(found)), problem))
    same = source.strip() == translation.strip()
    return Verdict.of(slots, applies=bool(_LETTER.search(translation)) and not (same and not _SIGNS_DUE.search(source)))
