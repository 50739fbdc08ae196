"""Markup: placeholders, tags, URLs, addresses and code come through as they are."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from harness.checks.phenomena.verdict import Slot, Verdict

# What a path in prose begins with: /var/log, ~/notes, ./run.sh, C:\data; "and/or", 3/4 and km/h are none.
_PATH = (
    r"(?<![A-Za-z0-9_/.<:~-])(?:~|\.{1,2})?/(?:[A-Za-z0-9_.-]+/)+(?:[A-Za-z0-9_.-]*[A-Za-z0-9_])?"
    r"|(?<![A-Za-z0-9_])(?:~|\.{1,2})/[A-Za-z0-9_.-]*[A-Za-z0-9_]"
    r"|(?<![A-Za-z0-9_])[A-Z]:\\[A-Za-z0-9_\\.-]*[A-Za-z0-9_]"
)
# ASCII throughout: a Chinese sign next to a placeholder is no part of it.
_TOKEN = re.compile(
    "|".join(
        [
            r"(?P<url>(?:https?|ftp|file|ssh|git|mailto|tel):/{0,2}[!-~]*[A-Za-z0-9/=_&#-]|\bwww\.[!-~]*[A-Za-z0-9/])",
            r"(?P<mail>[A-Za-z0-9_.+-]+@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+)",
            r"(?P<code>`{1,3}[^`'\n]+`{1,3})",
            r"(?P<icu>\{\s?\w+\s?,\s?(?:plural|select|selectordinal)\s?,)",
            r"(?P<double>\{\{\{?\s?[\w.|$# /-]+\s?\}?\}\}|[$#%@]\{[\w.:-]+\}|<%=?\s?[\w.@]+\s?%>|\[%\s?[\w.]+\s?%\])",
            r"(?P<brace>\{[\w.:!,%#+-]*\}|\{\s?\w+\s?,\s?(?:number|date|time|spellout|ordinal|duration)\b[^{}]*\})",
            r"(?P<named>%\([A-Za-z_]\w*\)[#0+-]*\d*(?:\.\d+)?[sdifrxegu])",
            r"(?P<printf>(?<![\d%])%(?:\d+\$)?[#0+-]*(?:\d+|\*)?(?:\.(?:\d+|\*))?(?:hh|ll|"
            r"[hlzjtqL])?[sdifuxXgGeEcpaAo@](?![A-Za-z])"
            r"|(?<![\d%])%(?:\d+\$)?l?[sdiu](?![A-Za-z]{2})|%\d{1,2}(?![\d%.])|%%)",
            r"(?P<tag></?(?:[A-Za-z][A-Za-z0-9:-]*|\d{1,2}(?=/?>))(?:\s[^<>]*?)?/?>|<!--.*?-->)",
            r"(?P<entity>&(?:#\d+|#x[0-9A-Fa-f]+|[A-Za-z]{2,8}\d?);)",
            r"(?P<variable>(?<![A-Za-z0-9_$])\$[A-Za-z_]{2}\w*|%[A-Z][A-Z_0-9]+%|__[A-Za-z0-9_]+?__|@@\w+@@|"
            r"\[\[\w+\]\]|(?<![\w:]):[a-z]+_[a-z_]+\b)",
            r"(?P<handle>(?<![\w@./])@[A-Za-z]\w+|(?<![\w#&/])#[A-Za-z]\w+)",
            rf"(?P<path>{_PATH})",
            r"(?P<escape>\\[nt](?![a-z]))",
            r"(?P<bold>\*\*(?=\S)|(?<=\S)\*\*)",
        ]
    ),
    re.ASCII,
)
_SIGNS = re.compile(r"[<>{}%&$@#`\\*]|/\w|[~.]/|:[a-z]+_|\[\[|tel:|://|www\.|__|mailto:|\[\[")
_WORDS = re.compile(r"\s(?:title|alt|placeholder|aria-label|label|content|summary)=(?:\"[^\"]*\"|'[^']*')")
_PLACEHOLDERS = ("brace", "double", "named", "printf", "variable", "icu")
_EDGE = re.compile(r"\n|\\[nt]|<br")
_HAN = re.compile("[\u4e00-\u9fff]")
# Tags that stand for something to fill in, <file>, may be translated; those of HTML and the like may not.
_HTML = {
    "a",
    "abbr",
    "b",
    "big",
    "blockquote",
    "body",
    "br",
    "button",
    "code",
    "col",
    "dd",
    "div",
    "dl",
    "dt",
    "em",
    "font",
    "footer",
    "form",
    "g",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "head",
    "header",
    "hr",
    "html",
    "i",
    "img",
    "input",
    "ins",
    "kbd",
    "label",
    "li",
    "link",
    "nav",
    "ol",
    "option",
    "p",
    "pre",
    "q",
    "s",
    "section",
    "select",
    "small",
    "span",
    "strong",
    "sub",
    "sup",
    "table",
    "tbody",
    "td",
    "th",
    "thead",
    "tr",
    "tt",
    "u",
    "ul",
    "x",
    "ph",
    "bpt",
    "ept",
    "it",
    "mark",
    "video",
    "xliff:g",
    "bold",
    "italic",
    "ref",
}
_COMMAND = re.compile(
    r"(?:apt|brew|cargo|cat|cd|chmod|cp|curl|docker|git|go|kubectl|ls|make|mkdir|mv|node|npm|npx|pip|python3?|rm|ssh|sudo|"
    r"systemctl|tar|wget|yarn|true|false|null|none|self|select|import|def|return)\b",
    re.IGNORECASE,
)
_CODE_TO_KEEP = re.compile(r"[\d_=()/<>|$.-]|[a-z][A-Z]")


def blanked(text: str) -> str:
    """The text with its markup replaced by blanks, so that no other check reads numbers or names into it."""
    if not _SIGNS.search(text):
        return text
    return _TOKEN.sub(lambda match: " " * len(match[0]), text)


def check_markup(source: str, translation: str) -> Verdict:
    """Judge the markup of a translation."""
    if not _SIGNS.search(source) and not _SIGNS.search(translation):
        return Verdict.of((), applies=False)
    left, right = list(_tokens(source)), list(_tokens(translation))
    if any(kind == "printf" and "$" in written for kind, written in left + right):
        left, right = _numbered(left), _numbered(right)
    slots = [*_missing(left, right, translation), *_added(left, right, source, translation)]
    slots = slots or _misplaced(left, right) or _emptied(source, translation)
    return Verdict.of(slots, applies=bool(left or right))


_EMPTY = re.compile(r"<([A-Za-z][A-Za-z0-9]*|\d{1,2})(?:\s[^<>]*)?>\s*</\1>")


def _emptied(source: str, translation: str) -> list[Slot]:
    """Find a pair of tags whose words stand outside: <b></b>保存."""
    match = _EMPTY.search(translation)
    return [Slot("", match[0], "the tags enclose nothing")] if match and not _EMPTY.search(source) else []


def _tokens(text: str) -> Iterator[tuple[str, str]]:
    """Kind and normal form of every piece of markup."""
    for match in _TOKEN.finditer(text):
        kind, written = match.lastgroup, match[0]
        if kind == "tag":
            name = re.match(r"</?([A-Za-z0-9:-]+)", written)
            if name is None:
                continue
            written = re.sub(r"\s+", " ", _WORDS.sub("", written)).replace(" /", "/").replace(" >", ">")
            if name[1].lower() in ("br", "hr", "img", "input"):
                written = written.replace("/>", ">")
            written = written.replace(name[1], name[1].lower(), 1).replace("'", '"')
        yield kind, re.sub(r"\s", "", written) if kind in ("double", "icu") else written


def _numbered(tokens: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Number the placeholders of printf that have no number, so that %s can be compared with %1$s."""
    found, number = [], 0
    for kind, written in tokens:
        if kind == "printf" and written != "%%":
            number += 1
            written = written if "$" in written else f"%{number}${written[1:]}"
        found.append((kind, written))
    return found


def _soft(kind: str, written: str) -> bool:
    """Whether a token may be translated: <file>, `some words`, #topic."""
    if kind == "tag":
        name = re.match(r"</?([A-Za-z0-9:-]+)", written)
        fixed = "=" in written or written.startswith("</") or written[1:2].isdigit()
        return not fixed and name is not None and name[1] not in _HTML
    if kind == "code":
        return not (_CODE_TO_KEEP.search(written.strip("`")) or _COMMAND.match(written.strip("`")))
    return kind in ("bold", "handle", "escape")


def _missing(left: list[tuple[str, str]], right: list[tuple[str, str]], translation: str) -> Iterator[Slot]:
    for (kind, written), count in (Counter(left) - Counter(right)).items():
        if written in translation and kind in ("url", "mail", "handle", "code") and (kind, written) not in right:
            continue
        if kind == "url" and re.search(re.escape(written) + r"(?![\w/=&?-])", translation):
            continue
        if kind == "escape" and not _EDGE.search(translation):
            yield Slot(written, None, f"{written} is missing")
            continue
        if _soft(kind, written) and (_HAN.search(translation) if kind != "tag" else _translated_tag(translation)):
            continue
        if kind == "entity" and _spoken(written, translation):
            continue
        if kind == "entity" and count and _resolved(written) in translation:
            yield Slot(written, _resolved(written), "the entity was resolved")
            continue
        like = next((other for k, other in right if k == kind and (k, other) not in left), None)
        times = f" {count} times" if count > 1 else ""
        yield Slot(written, like, f"{written} became {like}" if like else f"{written} is missing{times}")


def _translated_tag(translation: str) -> bool:
    return bool(re.search("[<〈《＜][^<>]*[\u4e00-\u9fff][^<>]*[>〉》＞]", translation))


def _spoken(entity: str, translation: str) -> bool:
    """Whether an entity may be left out: &amp; said as 和, a space that does not break."""
    if entity == "&amp;":
        return "&" not in translation and bool(re.search("[和与及、]", translation))
    return entity in ("&nbsp;", "&ensp;", "&emsp;", "&thinsp;", "&shy;", "&zwnj;", "&#160;")


def _resolved(entity: str) -> str:
    return {"&amp;": "&", "&lt;": "<", "&gt;": ">", "&quot;": '"', "&apos;": "'"}.get(entity, entity)


def _added(left: list[tuple[str, str]], right: list[tuple[str, str]], source: str, translation: str) -> Iterator[Slot]:
    kinds = Counter(kind for kind, _ in Counter(left) - Counter(right))
    for (kind, written), _ in (Counter(right) - Counter(left)).items():
        if _soft(kind, written) or (written in source and kind not in _PLACEHOLDERS) or kinds[kind]:
            continue
        if (kind == "printf" and written == "%%") or (kind == "brace" and _HAN.search(written)):
            continue
        yield Slot("", written, f"{written} is not in the source")


def _misplaced(left: list[tuple[str, str]], right: list[tuple[str, str]]) -> list[Slot]:
    """Find what is complete and still wrong: types of %s and %d changed places, a tag closes before it opens."""
    one, other = (
        [w for k, w in side if k == "printf" and "$" not in w and w != "%%" and not w[1:].isdigit()]
        for side in (left, right)
    )
    if one != other:
        return [Slot(" ".join(one), " ".join(other), "placeholders without numbers have changed places")]
    if _nested(left) and not _nested(right):
        return [Slot(" ".join(w for k, w in left if k == "tag"), None, "the tags no longer enclose each other")]
    for kind, written in right:
        if kind == "tag" and re.fullmatch(r"</\w+>", written):
            opening = re.compile(rf"<{written[2:-1]}[\s>]")
            places = [i for i, (k, w) in enumerate(right) if k == "tag" and opening.match(w)]
            before = [i for i, (k, w) in enumerate(left) if k == "tag" and opening.match(w)]
            if (
                places
                and before
                and right.index((kind, written)) < places[0]
                and left.index((kind, written)) > before[0]
            ):
                return [Slot(written, written, "the tag closes before it opens")]
    return []


def _nested(tokens: list[tuple[str, str]]) -> bool:
    """Whether every tag that closes is the one that was opened last."""
    opened: list[str] = []
    for kind, written in tokens:
        if kind != "tag" or written.endswith("/>") or written.startswith("<!"):
            continue
        name = re.match(r"</?([A-Za-z0-9:-]+)", written)
        if name is None or name[1].lower() in ("br", "hr", "img", "input"):
            continue
        if not written.startswith("</"):
            opened.append(name[1])
        elif not opened or opened.pop() != name[1]:
            return False
    return not opened
