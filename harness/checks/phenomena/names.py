"""Names: those of the glossary in one of their forms, codes, acronyms and file names as they are."""

from __future__ import annotations

import re
from collections.abc import Iterator

from harness.checks.phenomena.calendar_words import has_weekday, weekday_slots
from harness.checks.phenomena.chinese_numbers import chinese_numbers
from harness.checks.phenomena.chinese_persons import chinese_person_slots, persons, surnames
from harness.checks.phenomena.english_numbers import english_numbers
from harness.checks.phenomena.glossary import Glossary, Name
from harness.checks.phenomena.mentions import MONTH
from harness.checks.phenomena.transliteration import SIGNS, sounds_like
from harness.checks.phenomena.units import TABLES
from harness.checks.phenomena.verdict import Slot, Verdict

_CAPITAL = re.compile(r"(?<![\w.])[A-ZÀ-Ý][\w]*(?:\.(?=[A-Z]\.)[A-Z])*(?:\.(?<=[A-Z]\.[A-Z]\.))?")
_EXTENSIONS = (
    "txt|pdf|docx?|xlsx?|pptx?|csv|tsv|json|ya?ml|xml|html?|css|js|ts|py|java|cpp|hpp|rs|go|sh|bat|exe|dll|so|zip|"
    "tar|gz|rar|"
    "png|jpe?g|gif|svg|bmp|mp[34]|wav|avi|mov|onnx|ini|cfg|conf|log|md|rst|sql|db|iso|img|bin|dat|bak|tmp|toml|"
    "lock|odt|ods"
)
_COPIED = re.compile(
    rf"(?P<file>(?<![\w/.-])[\w-]+(?:\.[\w-]+)*\.(?:{_EXTENSIONS})(?![\w.]*\w))"
    r"|(?P<path>(?<![\w/.<])/(?:[\w.-]+/)+[\w.-]*\w|\b[A-Z]:\\[\w\\.-]*\w)"
    r"|(?P<option>(?<![\w-])--[a-z][\w-]+)"
    r"|(?P<snake>\b[A-Za-z]+(?:_[A-Za-z0-9]+)+\b)"
    r"|(?P<code>(?<![\w./-])(?=[A-Za-z0-9./-]*\d)(?=[A-Za-z0-9./-]*[A-Z])[A-Za-z0-9]+(?:[-./][A-Za-z0-9]+)*(?![\w]))"
    r"|(?P<acronym>(?<![\w./-])(?:[A-Z]{2,6}|[A-Z]&[A-Z])(?=s?(?![\w&])))"
    r"|(?P<camel>\b(?!Mc|Mac|De|Le|La|Di|Du|Van|O')(?:[a-z]+[A-Z]\w*|[A-Z][a-z]+(?:[A-Z][a-z]+)+[A-Z]?)\b)"
)
_NOT_A_CODE = re.compile(
    rf"\d+(?:[.,]\d+)*-?(?:{TABLES.english_pattern}|st|nd|rd|th|s|[kKMBmb]|bn|am|pm|AM|PM|x)?(?:/\w+)?|"
    rf"\d+(?:[./:-]\d+)*|[A-Z]?\d{{0,2}}%"
    r"|\d+-[A-Za-z]+(?:-[a-z]+)*|[a-z]{2,}-\d+|\d+[A-Z][a-z]{2,}|\d+°[CF]"
)
# Short codes that have a name in Chinese: 第三季度, 三维, 第五代.
_NAMED_CODE = re.compile(
    r"[QHG]\d{1,2}|[vV]\d[\d.]*|\d[DGK]|WW[12I]+|COVID-19|CO2|H2O|O2|N2|B2B|B2C|P2P|Y2K|A4|F1|24/7|4WD"
)
_SHOUTED = {
    "NOT",
    "AND",
    "OR",
    "WARNING",
    "CAUTION",
    "NOTE",
    "ALL",
    "STOP",
    "ON",
    "OFF",
    "IMPORTANT",
    "DANGER",
    "NEVER",
    "ONLY",
    "YES",
    "NO",
    "MUST",
    "PLEASE",
    "DO",
    "IF",
    "IS",
    "IN",
    "TO",
    "THE",
    "OF",
    "BY",
    "MY",
    "WHY",
    "DRY",
    "FLY",
    "CTRL",
    "ALT",
    "ESC",
    "TRY",
    "CRY",
    "SHY",
    "SKY",
    "LTD",
    "MR",
    "MRS",
    "MS",
    "DR",
    "ST",
    "VS",
    "TBD",
    "HMM",
    "SHH",
    "PS",
    "NB",
}
_TITLE = r"(?:Mr|Mrs|Ms|Dr|Prof)\.?|Miss|Professor|Doctor|Sir"
_TITLED = re.compile(rf"\b(?:{_TITLE})\s([A-Z][a-z]{{3,}})\b")
_WESTERN = re.compile(r"(?i)(?!sh|ch|ts|ng|zh|n[bcdfghjklmpqrstvwxz]|ky|ry)[bcdfghjklmpqrstvwxz]{2}")
_VERB = re.compile(
    r"\s(?:is|was|has|had|will|can|could|would|should|said|says|told|bought|went|came|sent|wrote|gave|took|"
    r"and\s[A-Z]|[a-z]{2,}ed|"
    r"(?!has)[a-z]{3,}s|[A-Z][a-z]+)\b|'s\b|,"
)
# Lower-case words that a model takes for a country or a language.
# Words that are a name with another initial, and the name's usual form.
_NAMES_READ = {"turkey": "土耳其", "turkeys": "土耳其", "china": "中国", "polish": "波兰", "chile": "智利",
                      "will": "威尔", "bill": "比尔", "frank": "弗兰克", "nice": "尼斯", "rose": "罗丝", "ford": "福特",
                      "reading": "雷丁", "grant": "格兰特", "jack": "杰克", "apple": "苹果公司",
                      "who": "世卫组织", "us": "美国"}  # fmt: skip
_READ_AS_NAMES = re.compile(rf"\b(?:{'|'.join(_NAMES_READ)})\b")
# Sentences that begin with one of these begin with no name.
_PLAIN_START = re.compile(
    r"(?:The|An?|We|I|You|He|She|They|It|This|That|These|Those|My|Our|Your|His|Her|Their|Its|Please|In|On|At|If|When|"
    r"There|No|All|Some|Every|Each|What|Who|Where|Why|How|Do|Does|Did|Is|Are|Was|Were|Can|Could|Would|Should|After|"
    r"Before|Many|Most|Both|Only|One|Two|Three)\b"
)
# A capital inside a sentence. "I" and what begins a quotation are no names.
_CAPITAL_INSIDE = re.compile(r"(?<=[^.!?:\s\"“”‘(>-] )(?!I\b|I['’])[A-Z][\w]+")
# Names of two signs that are no part of an ordinary phrase, as 大连 is of 强大连接.
_CERTAIN = frozenset(
    re.findall(
        r"\w+",
        "美国 法国 德国 英国 韩国 泰国 印度 越南 瑞士 瑞典 波兰 荷兰 挪威 芬兰 希腊 埃及 "
        "伊朗 古巴 秘鲁 巴西 北京 上海 广州 深圳 伦敦 巴黎 柏林 纽约 罗马 米兰 雅典 香港 "
        "台北 南京 武汉 悉尼 莫斯科 首尔 谷歌 微软 波音 空客 丰田 华为 索尼 腾讯 约翰 玛丽 "
        "彼得 汤姆 杰克 安娜 琼斯 莎拉 爱丽丝 托马斯 日本 ",
    )
)
# What a person does or is, behind a name that begins a sentence and could be a verb or a thing.
_PERSON_ACTS = re.compile(
    r"(?:\s(?:is|was|has|had|said|says|will|told|bought|went|works|lives|likes|wants|thinks|knows|loves|needs|runs|goes|"
    r"comes|came|makes|made|takes|took|gets|got|asks|tells|plays|drives|sings|teaches|studies|speaks|spoke|writes|wrote|"
    r"does|did|gave|gives|left|met|sent|saw|found|won|lost|sold|called|phoned|arrived|agreed|smiled|laughed|cried|slept|stayed|died|waited|and\s(?!I\b)[A-Z][a-z]+|"
    r"[a-z]+ed\s(?:the|an?|his|her|my|our|their|its|this|that|to|in|at|by|us|me|him|it|for|on|up|down))\b|'s\s)"
)
_PLACES = frozenset("宫国城洲山河海京")  # signs that end a name: 卢浮宫博物馆
# Names that are a feeling, a season or a stone more often than a person at the beginning of a sentence.
_THINGS = frozenset(("Hope", "Joy", "Faith", "Grace", "Dawn", "Summer", "Angel", "Penny", "Ruby", "Ivy"))
_PERSON_SPEAKS = re.compile(
    r"\s(?:said|says|told|asked|asks|works|lives|called|wrote|went|came|bought|likes|wants|knows|thinks|"
    r"and\s(?!I\b)[A-Z][a-z]+|(?:is|was)\s(?:my|his|her|our|their|\w+ing|late|here|away))\b"
)
_MAKERS = frozenset(("Ford", "Jaguar", "Sharp", "Caterpillar"))
_LATIN = re.compile(r"(?<![A-Za-z0-9_./-])[A-Z][A-Za-z]{2,}(?![A-Za-z0-9_./-])")
# Latin words that Chinese uses of its own accord.
_OWN_LATIN = frozenset(
    "app wifi ppt ktv vip ceo cfo cto dvd usb led gps nba gdp dna atm sim pos pdf excel sms url".split()  # noqa: SIM905
)
_CALENDAR = re.compile("(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day|Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec")
_HAN = re.compile("[\u4e00-\u9fff]")


def check_names(source: str, translation: str, glossary: Glossary) -> Verdict:
    """Judge the names of a translation; markup has been blanked in both texts."""
    found = _Names(source, translation, glossary)
    slots = [*found.glossary_slots(), *found.titled_slots(), *found.copied_slots()]
    slots += weekday_slots(source, translation)
    slots += found.month_slots()
    slots += chinese_person_slots(source, translation, glossary.names)
    slots += found.replaced_slots()
    if not slots:
        slots = [*found.invented_slots()]
    chinese = bool(persons(source) or surnames(source))
    return Verdict.of(slots, applies=found.applies or has_weekday(source) or chinese)


class _Names:
    """One pair under judgement."""

    def __init__(self, source: str, translation: str, glossary: Glossary) -> None:
        self.source, self.translation, self.glossary = source, translation, glossary
        self.folded = re.sub(r"[-\s]", "", translation).casefold()
        self.applies = self.copied = False
        self.known = list(self._find())
        words = re.findall(r"[A-Za-z]{4,}", source)
        self.title_case = len(words) > 3 and sum(word[0].isupper() for word in words) > 0.6 * len(words)

    def _find(self) -> Iterator[tuple[Name, int]]:
        """Names of the glossary in the source, the longest first, and where they stand."""
        end = 0
        chinese = [person.span() for person in persons(self.source) if person[0] not in self.glossary.names]
        for match in _CAPITAL.finditer(self.source):
            if match.start() < end or any(start <= match.start() < stop for start, stop in chinese):
                continue  # Juan is no Spaniard in Du Juan
            for name in self.glossary.by_first.get(match[0], ()):
                stop = match.start() + len(name.english)
                if self.source.startswith(name.english, match.start()) and not _continues(self.source, stop):
                    end = stop
                    yield name, match.start()
                    break

    def glossary_slots(self) -> Iterator[Slot]:
        """Names of the glossary without any of their forms in the translation."""
        for name, start in {pair[0].english: pair for pair in self.known}.values():
            if not name.forms:
                continue
            if name.word and not self._is_name(name, start):
                continue
            self.applies = True
            if name.pattern.search(self.translation):
                continue
            other = self._other_name()
            if other is None and sounds_like(name.english, self._unaccounted(name)):
                continue
            yield Slot(name.english, other, f"{name.english} became {other}" if other else f"{name.english} is missing")

    def invented_slots(self) -> Iterator[Slot]:
        """Names in the translation of a source without any: a word read as a country, a person out of nowhere."""
        for word in dict.fromkeys(_READ_AS_NAMES.findall(self.source)):
            name = _NAMES_READ[word]
            forms = (form for known, _ in self.known for form in known.forms)
            if name in self.translation and word.capitalize() not in self.source and not any(name in f for f in forms):
                yield Slot(word, name, f"the word {word} was read as a name")
        if self.known or self.copied or not _PLAIN_START.match(self.source) or _CAPITAL_INSIDE.search(self.source):
            return
        other = self._other_name()
        if other and (len(other) > 2 or other in _CERTAIN) and not self._lower_case():
            yield Slot("", other, f"{other} is not in the source")

    def _lower_case(self) -> bool:
        """Whether the source writes a name without its capital: a french teacher."""
        for word in set(re.findall(r"[a-z]{4,}", self.source)):
            if any(not name.word for name in self.glossary.by_first.get(word.capitalize(), ())):
                return True
        return False

    def replaced_slots(self) -> Iterator[Slot]:
        """Words in capitals that a foreign word has replaced: Safari became Chrome."""
        if self.title_case:
            return
        new = [
            word
            for word in _LATIN.findall(self.translation)
            if word.casefold() not in self.source.casefold() and word.casefold() not in _OWN_LATIN
        ]
        known = " ".join(name.english for name, _ in self.known)
        for match in _CAPITAL_INSIDE.finditer(self.source):
            word = match[0].strip()
            if word.casefold() in self.translation.casefold():
                self.applies = True
            elif not new or word in known or len(word) < 3 or _CALENDAR.match(word):
                continue
            elif not sounds_like(word, self.translation):
                yield Slot(word, new[0], f"{word} became {new[0]}")

    def _unaccounted(self, name: Name) -> str:
        """The translation without the forms of the source's other names."""
        text = self.translation
        for other, _ in self.known:
            if other.english != name.english:
                text = other.pattern.sub("\0", text)
        return text

    def _is_name(self, name: Name, start: int) -> bool:
        """Whether a word that is a name as well is one here: by its capital inside a sentence, or by what follows."""
        if re.search(rf"\b(?:{_TITLE})\s$", self.source[:start]):
            return True
        if self.title_case or (len(name.english) < 4 and name.english.isupper()):
            return False
        before, after = self.source[:start].rstrip(), self.source[start + len(name.english) :]
        if not before or before[-1] in '.!?:"“(':
            if name.english == "Reading":
                return False
            if name.english in _THINGS:
                return bool(_PERSON_SPEAKS.match(after))
            return bool(_PERSON_ACTS.match(after))
        if name.english in ("May", "Summer"):  # inside a sentence the month and the season
            return bool(re.search(r"\b[A-Z][a-z]+ and$|\b(?:with|dear|Dear|aunt|Aunt|named|called|ask|tell)$", before))
        if name.english in _MAKERS and re.search(r"\b(?:an?|his|her|my|their|our|your|the|old|new|used)$", before):
            return True
        if re.search(r"\b(?:the|a|an|this|click|press|select|choose|open)$", before, re.IGNORECASE):
            return False
        capital = re.search(r"([A-Z][a-z]+)\.?$", before)
        if capital and capital[1] not in self.glossary.names and not re.search(rf"(?:{_TITLE})$", before):
            return False  # Byte Order Mark
        return (
            not re.match(r"\s?[\"”>]|\s[A-Z]|\s(?:button|key|menu|tab|mode|phone|store)", after) or capital is not None
        )

    def _other_name(self) -> str | None:
        """A name in the translation that no name of the source accounts for."""
        for match in self.glossary.forms.finditer(self.translation):
            before, after = (
                self.translation[match.start() - 1 : match.start()],
                self.translation[match.end() : match.end() + 1],
            )
            if match[0][-1] not in _PLACES and (before in SIGNS or after in SIGNS - {"尔"}):
                continue
            if match[0] == "中国" and before == "其":  # 其中，国…
                continue
            if not any(
                match[0] in name.forms or any(form in match[0] or match[0] in form for form in name.forms)
                for name, _ in self.known
            ):
                return match[0]
        return None

    def titled_slots(self) -> Iterator[Slot]:
        """Unknown names behind a title that are neither copied nor transcribed.

        Only names with clusters of consonants are judged: Chinese and Japanese names have signs of their own.
        """
        self.applies |= bool(re.search(rf"\b(?:{_TITLE})\s[A-Z][A-Za-z'’]+", self.source))
        for name in dict.fromkeys(_TITLED.findall(self.source)):
            if name in self.glossary.names or not _WESTERN.search(name):
                continue
            self.applies = True
            if name.casefold() not in self.folded and not sounds_like(name, self.translation):
                yield Slot(name, None, f"{name} is missing")

    def copied_slots(self) -> Iterator[Slot]:
        """Codes, acronyms, file names and identifiers that the translation has not."""
        letters = re.sub("[^A-Za-z]", "", self.source)
        if len(letters) > 8 and letters.isupper():
            return
        known = {name.english for name, _ in self.known}
        for match in _COPIED.finditer(self.source):
            kind, written = match.lastgroup, match[0]
            if written in known or (kind == "code" and _NOT_A_CODE.fullmatch(written)):
                continue
            if not self._has_to_stay(kind, written):
                self.applies |= kind == "acronym" and written not in _SHOUTED and written in self.translation
                continue
            self.applies = self.copied = True
            if re.sub(r"[-\s]", "", written).casefold() not in self.folded:
                other = self._other_code(kind)
                problem = f"{written} became {other}" if other else f"{written} is missing"
                yield Slot(written, other, problem)

    def _has_to_stay(self, kind: str, written: str) -> bool:
        if kind == "code":
            return not _NAMED_CODE.fullmatch(written)
        if kind == "acronym":
            if written in _SHOUTED:
                return False
            return not re.search("[AEIOUY]", written) or (
                bool(self._other_code(kind)) and written not in self.translation
            )
        if kind == "camel":
            return (
                len(written) > 2 and bool(_HAN.search(self.translation)) and not sounds_like(written, self.translation)
            )
        return True

    def _other_code(self, kind: str) -> str | None:
        """Something of the same kind in the translation that the source has not."""
        for match in _COPIED.finditer(re.sub("[\u3000-\uffef]", " ", self.translation)):
            if match.lastgroup == kind and match[0].casefold() not in self.source.casefold():
                return match[0]
        return None

    def month_slots(self) -> Iterator[Slot]:
        """Months of the source that the translation has not."""
        if not _CALENDAR.search(self.source):
            return
        months = [
            mention for mention in english_numbers(self.source) if mention.kind == MONTH and mention.text[:1].isalpha()
        ]
        months = [mention for mention in months if not re.search(r"\d", mention.text) and mention.strict]
        if not months:
            return
        self.applies = True
        have = {mention.values[0] for mention in chinese_numbers(self.translation) if mention.kind == MONTH}
        for mention in months:
            if mention.values[0] not in have and mention.text.casefold() not in self.folded:
                yield Slot(mention.text, None, f"{mention.text} is missing or another month")


def _continues(text: str, position: int) -> bool:
    """Whether a word goes on at a position."""
    return text[position : position + 1].isalnum()
