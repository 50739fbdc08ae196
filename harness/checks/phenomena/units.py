"""Units of measurement and currency in English and Chinese, with their size in a base unit of their dimension.

``units.tsv`` has one unit a line: dimension, factor, offset, system, English words, symbols and Chinese words. Names
are separated by spaces; ``_`` is a space inside one. English words are regular expressions and ignore case, symbols
do not.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Unit:
    """One reading of a unit's name.

    Attributes:
        dimension: what it measures, e.g. ``length``; values of one dimension can be compared.
        factor: size in the dimension's base unit.
        offset: what is added after the factor, for temperatures.
        system: conversions between two systems are rounded by whoever converts.
    """

    dimension: str
    factor: float
    offset: float
    system: str

    def base(self, value: float) -> float:
        """Convert a value to the dimension's base unit."""
        return value * self.factor + self.offset


Units = tuple[Unit, ...]
MONEY = {"usd", "dollars", "eur", "gbp", "cny", "jpy", "krw", "inr", "rub", "chf"}
_SIGNS = {
    "$": ("usd", "dollars"),
    "€": ("eur",),
    "£": ("gbp",),
    "¥": ("cny", "jpy"),
    "￥": ("cny", "jpy"),
    "₩": ("krw",),
    "₹": ("inr",),
    "₽": ("rub",),
    "US$": ("usd",),
    "HK$": ("dollars",),
    "A$": ("dollars",),
    "C$": ("dollars",),
    "RMB": ("cny",),
    "CNY": ("cny",),
    "USD": ("usd",),
    "EUR": ("eur",),
    "GBP": ("gbp",),
    "JPY": ("jpy",),
}
PERCENT = Unit("ratio", 0.01, 0.0, "si")


class _Tables:
    """The units by name, and the regular expressions that find them."""

    def __init__(self, path: Path) -> None:
        self.words: list[tuple[re.Pattern[str], Unit]] = []
        self.symbols: dict[str, Units] = {}
        self.chinese: dict[str, Units] = {}
        words: list[str] = []
        for line in path.read_text(encoding="utf-8").splitlines():
            if line.startswith("#"):
                continue
            dimension, factor, offset, system, english, symbols, chinese = line.split("\t")
            unit = Unit(dimension, float(factor), float(offset), system)
            for word in _names(english):
                words.append(word)
                self.words.append((re.compile(word, re.IGNORECASE), unit))
            for table, names in ((self.symbols, symbols), (self.chinese, chinese)):
                for name in _names(names):
                    table[name] = (*table.get(name, ()), unit)
        words.sort(key=len, reverse=True)
        symbols = "|".join(re.escape(name) for name in sorted(self.symbols, key=len, reverse=True))
        self.english_pattern = rf"(?:(?i:{'|'.join(words)})(?![A-Za-z])|(?:{symbols})(?![A-Za-z0-9]))"
        names = sorted({*self.chinese, *self.symbols}, key=len, reverse=True)
        self.chinese_pattern = "(?:" + "|".join(re.escape(name) + _guard(name) for name in names) + ")"
        self.cache: dict[str, Units] = {}


def _names(text: str) -> list[str]:
    return [name.replace("_", " ") for name in text.split()]


def _guard(name: str) -> str:
    """What must not follow a name: letters after a symbol; signs that make a short Chinese name part of a word."""
    if name.isascii() or not "\u4e00" <= name[0] <= "\u9fff":
        return "(?![A-Za-z0-9])" if name[-1].isalnum() else ""
    return {
        "分": "(?![之组类批层别支种个])",
        "节": "(?![课点])",
        "位": "(?![客老先女员])",
        "周": "(?!围)",
        "成": "(?![功为套立分就长交果本熟都]|员(?!工))",
        "元": "(?![素件旦])",
        "块": "(?![板])",
        "米": "(?![饭粉])",
        "码": "(?![头])",
        "度": "(?!假)",
        "开": "(?![关始门])",
        "安": "(?![全装])",
        "转": "(?![换动移速到向])",
        "角": "(?![度色形])",
        "毛": "(?![病巾])",
        "卡": "(?![车片通])",
        "牛": "(?![奶肉])",
        "天": "(?![线花])",
        "年": "(?![级轻])",
        "匹": "(?![马配])",
        "升": "(?![级高降])",
        "克": "(?!服)",
        "瓦": "(?!片)",
        "欧": "(?!洲)",
        "里": "",
        "迈": "(?!向)",
        "巴": "(?!士)",
        "焦": "(?!点)",
    }.get(name, "")


TABLES = _Tables(Path(__file__).with_name("units.tsv"))
SIGN = "(?:" + "|".join(re.escape(sign) for sign in sorted(_SIGNS, key=len, reverse=True)) + ")"


def english_units(text: str) -> Units:
    """Every reading of an English unit, word or symbol."""
    text = re.sub(r"[\s-]+", " ", text)
    if text not in TABLES.cache:
        TABLES.cache[text] = TABLES.symbols.get(text) or tuple(
            dict.fromkeys(unit for pattern, unit in TABLES.words if pattern.fullmatch(text))
        )
    return TABLES.cache[text]


def chinese_units(text: str) -> Units:
    """Every reading of a unit in Chinese text, symbols included."""
    return TABLES.chinese.get(text) or TABLES.symbols.get(text, ())


def sign_units(sign: str) -> Units:
    """Every currency that a sign stands for."""
    return tuple(Unit(dimension, 1.0, 0.0, "si") for dimension in _SIGNS[sign])
