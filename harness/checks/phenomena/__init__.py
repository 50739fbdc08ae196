"""Phenomena: what a translation must not lose, checked on any pair of an English source and its Chinese translation.

Usable alone: ``check_pair`` needs babel and OpenCC, no model, no torch and no onnxruntime.
"""

from harness.checks.phenomena.glossary import Glossary, built_in
from harness.checks.phenomena.pairs import PHENOMENA, check_pair
from harness.checks.phenomena.verdict import FAULT, NOT_APPLICABLE, OK, Slot, Verdict

__all__ = ["FAULT", "NOT_APPLICABLE", "OK", "PHENOMENA", "Glossary", "Slot", "Verdict", "built_in", "check_pair"]
