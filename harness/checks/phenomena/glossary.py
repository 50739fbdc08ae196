"""The names whose Chinese forms are known: a table of our own, countries and languages from babel, a user's file."""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass
from pathlib import Path

from harness.contract.errors import InputError

BUILT_IN = Path(__file__).with_name("glossary.tsv")
_ACTION = "Write English, a tab and the accepted forms separated by |; see docs/phenomena.md."
# A country's or a language's single sign counts only in company: 中国, 中文, 访华, 中美.
_SHORT = frozenset("美英法德日俄韩印欧澳中华汉意港台沪粤川亚非加朝葡")
_SHORT_AFTER = "(?=[国语文式籍产方企裔军商菜餐货资元人罗鲜萄大度洲盟字医服美英法德日俄韩印欧澳中])"
_SHORT_BEFORE = "(?<=[中美英法德日俄韩印欧澳赴访驻对在旅反亲来去抵离东南西北全])"


@dataclass(frozen=True)
class Name:
    """One name.

    Attributes:
        english: as it stands in the source, one word or several.
        forms: what it may be in the translation, beside the English itself; empty where it is never judged.
        word: whether it is an ordinary word as well.
    """

    english: str
    forms: tuple[str, ...]
    word: bool = False

    @functools.cached_property
    def pattern(self) -> re.Pattern[str]:
        """What finds the name in a translation."""
        parts = [re.escape(self.english).replace("\\ ", r"\s?")]
        for form in self.forms:
            short = form in _SHORT
            parts.append(f"{form}{_SHORT_AFTER}|{_SHORT_BEFORE}{form}" if short else re.escape(form))
        return re.compile("|".join(parts), re.IGNORECASE)


class Glossary:
    """Names by their first English word."""

    def __init__(self, names: dict[str, Name]) -> None:
        self.names = names
        self.by_first: dict[str, list[Name]] = {}
        for name in sorted(names.values(), key=lambda name: -len(name.english)):
            self.by_first.setdefault(_first_word(name.english), []).append(name)

    @functools.cached_property
    def forms(self) -> re.Pattern[str]:
        """What finds any name's form of two signs or more in a translation."""
        names = [name for name in self.names.values() if not (name.word or name.english.isupper())]
        names = [name for name in names if name.english not in name.forms]  # PowerPoint: 幻灯片 are slides as well
        forms = {form for name in names for form in name.forms if len(form) > 1}
        return re.compile("|".join(map(re.escape, sorted(forms, key=len, reverse=True))))

    def with_file(self, path: Path) -> Glossary:
        """Add a user's names; one that is there already gets the new forms as well.

        Raises:
            InputError: the file cannot be read, or a line is bad; the place is ``file:line``.
        """
        names = dict(self.names)
        for name in read_names(path):
            known = names.get(name.english)
            forms = name.forms + tuple(form for form in known.forms if form not in name.forms) if known else name.forms
            names[name.english] = Name(name.english, forms if name.forms else (), name.word)
        return Glossary(names)


def _first_word(english: str) -> str:
    return re.split(r"[ '’-]|\.(?= )", english)[0]  # Xi'an begins with Xi, St. Louis with St


def read_names(path: Path) -> list[Name]:
    """Read a table of names: English, forms separated by ``|``, optionally ``word``. ``#`` starts a comment.

    Raises:
        InputError: the file cannot be read, or a line is bad; the place is ``file:line``.
    """
    try:
        lines = path.read_bytes().split(b"\n")
    except OSError as error:
        raise InputError(what=f"cannot be read ({error.strerror})", where=path, action=_ACTION) from None
    names = []
    for number, raw in enumerate(lines, 1):
        try:
            line = raw.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r")
        except UnicodeDecodeError:
            raise InputError(what="not UTF-8", where=f"{path}:{number}", action=_ACTION) from None
        if line.strip() and not line.startswith("#"):
            names.append(_name(line, f"{path}:{number}"))
    return names


def _name(line: str, where: str) -> Name:
    english, *rest = (part.strip() for part in line.split("\t"))
    forms = tuple(form.strip() for form in rest[0].split("|")) if rest else ()
    if not english or not forms or not all(forms) or len(rest) > 2 or rest[1:] not in ([], ["word"], [""]):
        raise InputError(what="not a name and its forms", where=where, action=_ACTION)
    return Name(english, () if forms == ("*",) else forms, rest[1:] == ["word"])


@functools.lru_cache(maxsize=1)
def built_in() -> Glossary:
    """The glossary that comes with the harness."""
    names = {name.english: name for name in read_names(BUILT_IN)}
    for name in _from_babel():
        names.setdefault(name.english, name)
    return Glossary(names)


def _from_babel() -> list[Name]:
    """Countries and languages with a code of two letters; the rest of CLDR's names are rare or ordinary words."""
    from babel import Locale  # not at import: reading the locale data takes 50 ms

    english, chinese = Locale("en"), Locale("zh")
    names = []
    for code, name in english.territories.items():
        if len(code) == 2 and code in chinese.territories and re.fullmatch(r"[A-Z][A-Za-z ]+", name):
            names.append(Name(name, (chinese.territories[code],)))
    for code, name in english.languages.items():
        if len(code) == 2 and code in chinese.languages and re.fullmatch(r"[A-Z][a-z]{4,}", name):
            form = chinese.languages[code]
            stem = form.removesuffix("语").removesuffix("文")
            names.append(Name(name, tuple(dict.fromkeys((form, stem)))))
    return names
