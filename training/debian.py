"""English and Chinese help and interface texts from Debian packages, downloaded by name and unpacked, not installed."""

from __future__ import annotations

import gettext
import html
import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

PACKAGES = json.loads((Path(__file__).parent / "packages.json").read_text(encoding="utf-8"))
Pair = tuple[str, str]

_PARAGRAPH = re.compile(r'<(p|h\d|td|th|li|span)[^>]*\bid="([^"]+)"[^>]*>(.*?)</\1>', re.S)
_HAN = re.compile("[\u4e00-\u9fff]")
_TAG = re.compile(r"<[^>]+>")
_ENGLISH_MNEMONIC = re.compile(r"[&_~](?=\w)")
_CHINESE_MNEMONIC = re.compile(r"\s*[(（][&_~]?[A-Za-z0-9][)）]|[&~_](?=\w)")


def download(folder: Path) -> Path:
    """Download and unpack the packages below `folder`; returns the unpacked tree. Done before, it is not repeated.

    Raises:
        RuntimeError: apt-get or dpkg-deb is missing or fails.
    """
    tree = folder / "unpacked"
    debs = folder / "packages"
    debs.mkdir(parents=True, exist_ok=True)
    tree.mkdir(exist_ok=True)
    for name in PACKAGES["help"] + PACKAGES["catalogues"]:
        done = tree / f".{name}"
        if done.exists():
            continue
        print(f"  {name}", flush=True)
        if not list(debs.glob(f"{name}_*.deb")):
            _run(["apt-get", "-qq", "-o", "APT::Sandbox::User=root", "download", name], debs)
        _run(["dpkg-deb", "-x", str(next(debs.glob(f"{name}_*.deb"))), str(tree)], debs)
        done.touch()
    return tree


def _run(command: list[str], folder: Path) -> None:
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    except FileNotFoundError:
        raise RuntimeError(f"{command[0]} is not here: the help texts need a Debian or Ubuntu machine") from None
    if done.returncode:
        said = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise RuntimeError(f"{' '.join(command)} failed: {said} (try `apt-get update` first)")


def _clean(text: str) -> str:
    return re.sub(r"\s+", " ", html.unescape(_TAG.sub("", text))).strip()


_HAN_OR_MARK = "[\u4e00-\u9fff\u3000-\u303f\uff00-\uffef“”]"
_SPACE_BESIDE_HAN = re.compile(rf"(?<={_HAN_OR_MARK})\s+(?=\S)|(?<=\S)\s+(?={_HAN_OR_MARK})")
_HALF_WIDTH_MARK = re.compile(r"(?<=[\u4e00-\u9fff”）」])[,:;?!]|(?<=[\u4e00-\u9fff])\((?=[^()]*\))")
_FULL_WIDTH = str.maketrans(",:;?!()", "，：；？！（）")


def unified(chinese: str) -> str:
    """Chinese without spaces beside Han characters and with full-width punctuation after them.

    The texts come from many translators with many habits; a habit that cannot be predicted only teaches noise.
    """
    text = _HALF_WIDTH_MARK.sub(lambda match: match[0].translate(_FULL_WIDTH), _SPACE_BESIDE_HAN.sub("", chinese))
    return re.sub(r"（([^()（）]*)\)", r"（\1）", text)


def help_pairs(tree: Path) -> Iterator[Pair]:
    """Paragraphs of LibreOffice's help, paired by their id."""
    english = tree / "usr/share/libreoffice/help/en-US"
    for page in sorted(english.glob("text/**/*.html")):
        chinese_page = tree / "usr/share/libreoffice/help/zh-CN" / page.relative_to(english)
        if not chinese_page.exists():
            continue
        chinese = _paragraphs(chinese_page)
        for key, text in _paragraphs(page).items():
            if key in chinese:
                yield text, chinese[key]


def _paragraphs(page: Path) -> dict[str, str]:
    found = _PARAGRAPH.finditer(page.read_text(encoding="utf-8"))
    return {match[2]: _clean(match[3]) for match in found}


def catalogue_pairs(tree: Path) -> Iterator[Pair]:
    """Messages of every zh_CN catalogue, without keyboard mnemonics."""
    for path in sorted(tree.glob("**/zh_CN/**/*.mo")):
        with path.open("rb") as file:
            catalogue = gettext.GNUTranslations(file)._catalog
        for key, text in catalogue.items():
            if isinstance(key, str) and key:
                english = _ENGLISH_MNEMONIC.sub("", key.split("\x04", 1)[-1])
                yield _clean(english), _clean(_CHINESE_MNEMONIC.sub("", text))


def usable(pair: Pair) -> bool:
    """Whether a pair is a translation of one or a few sentences: Chinese on one side only, plausible lengths."""
    english, chinese = pair
    if not 1 < len(english) < 260 or not 0 < len(chinese) < 160:
        return False
    if not _HAN.search(chinese) or _HAN.search(english) or re.search(r"[%{}@\\]|https?:", english):
        return False
    return len(english.split()) < 8 or 0.15 < len(chinese) / len(english) < 1.2


def pairs(folder: Path) -> list[Pair]:
    """Every usable pair, English without repetition, in a fixed order."""
    tree = download(folder)
    found: dict[str, str] = {}
    for pair in [*help_pairs(tree), *catalogue_pairs(tree)]:
        if usable(pair):
            found.setdefault(pair[0], unified(pair[1]))
    return sorted(found.items())
