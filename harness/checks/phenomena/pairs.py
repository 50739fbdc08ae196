"""All phenomena of one pair of texts."""

from __future__ import annotations

from harness.checks.phenomena.completeness import check_completeness
from harness.checks.phenomena.glossary import Glossary, built_in
from harness.checks.phenomena.markup import blanked, check_markup
from harness.checks.phenomena.names import check_names
from harness.checks.phenomena.negation import check_negation
from harness.checks.phenomena.numbers import check_numbers
from harness.checks.phenomena.script import check_script
from harness.checks.phenomena.verdict import FAULT, NOT_APPLICABLE, Verdict

PHENOMENA = ("numbers", "names", "negation", "markup", "completeness", "script")
# Full-width digits, letters and signs are those of ASCII to every check but that of the markup, where {0} is no ｛0｝.
_HALF_WIDTH = {code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F)} | {0x3000: 0x20, 0x2212: 0x2D}


def check_pair(source: str, translation: str, glossary: Glossary | None = None) -> dict[str, Verdict]:
    """Judge every phenomenon of a translation from English into Simplified Chinese.

    Args:
        source: English text.
        translation: Chinese text.
        glossary: names and their forms; the built-in one without any.

    Returns:
        One verdict per name in ``PHENOMENA``.
    """
    glossary = built_in() if glossary is None else glossary
    left, right = blanked(source).translate(_HALF_WIDTH), blanked(translation).translate(_HALF_WIDTH)
    complete = check_completeness(left if left.strip() else source, right if right.strip() else translation)
    verdicts = {"markup": check_markup(source, translation), "completeness": complete,
                "script": check_script(source, translation)}  # fmt: skip
    if complete.verdict == FAULT and complete.slots[0].translation is None:
        # An empty translation lacks everything; that is said once.
        verdicts.update({name: Verdict(NOT_APPLICABLE) for name in PHENOMENA if name != "completeness"})
    else:
        verdicts["numbers"] = check_numbers(left, right)
        verdicts["names"] = check_names(left, right, glossary)
        verdicts["negation"] = check_negation(left, right)
    return {name: verdicts[name] for name in PHENOMENA}
