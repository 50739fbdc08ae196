"""Numbers in Chinese text: digits and numerals, 万 and 亿, dates, clock times, codes, units.

cn2an was tried and refused: it wants one number and nothing else, knows neither 十几, 七八十 nor 半, and takes 12 µs a
number. jieba is not needed either: the few words that contain a numeral and are none are listed below, and loading its
dictionary takes longer than checking a thousand pairs.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Sequence

from harness.checks.phenomena.mentions import (
    CLOCK,
    CODE,
    DAY,
    MONTH,
    VAGUE,
    Mention,
    date_parts,
    iso_date,
    joined,
    mention_of,
    slashed_date,
)
from harness.checks.phenomena.units import PERCENT, SIGN, TABLES, chinese_units, sign_units

_DIGITS = {"零": 0, "〇": 0, "一": 1, "二": 2, "两": 2, "三": 3, "四": 4, "五": 5, "六": 6, "七": 7, "八": 8, "九": 9}
_SCALES = {"十": 10, "百": 100, "千": 1000, "万": 1e4, "亿": 1e8, "兆": 1e12, "打": 12}
# Words with a numeral that say nothing of a number, or nothing that has to stand in the source.
_NO_NUMBERS = (
    "(?<![点时差一二三四五六七八九])十分(?![钟之一二三四五六七八九\\d])|千万(?!元|美|人|吨|个|台|分|欧|英|日|"
    "公)(?<![数几上百一二两三四五六七八九十\\d].)|万一|万万|千斤顶|千方百计|"
    "百分比|百分率|百科|百货|百叶|百合|百度|百事|百分百|百分之百|百姓|(?<![十百千几数\\d.])万能|万用(?=表)|"
    "万向(?=[节轮联])|万维|万圣|万物|万事|万岁|万年历|亿万|"
    "三明治|三星|三菱|三亚|三角|三峡|三文鱼|三轮|三脚架|三通|三维|四川|四处|四肢|四面八方|四边形|四方|四季(?!度)|五金|"
    "五角|五指|六角|八角|九江|九龙|七夕|"
    "二维|二手|二氧|一氧|二极管|三极管|二进制|十进制|八进制|十六进制|二胡|十字|不三不四|五颜六色|乱七八糟|七上八下|"
    "三番|再三|两栖|两难|两者|两人(?!份)|两侧|两边|两端|两旁|两岸|两国|两地|两头|两面|两极|两用|星期[一二三四五六]|"
    "周[一二三四五六](?!个|天)|礼拜[一二三四五六]|"
    "成千上万|千千万万|千变万化|无[一二]|统一|唯一|第一时间|一些|丈二|大百|老百|"
    "双十一|五一|十一假|三八|初一|初二|初三|(?<!身)高[一二三](?!米)|张三|李四|王五|[一二三]线|三伏|半(?=导|径|决|"
    "球|岛|透|封|成品|自动|圆|固|长))"
).removesuffix(")")
_FIGURE = r"(?:\d{1,3}(?:,\d{3})+(?!\d)(?:\.\d+)?|\d+(?:\.\d+)?)"
_NUMERAL = "(?:[零〇一二两三四五六七八九十万亿]|百(?![帕])|千(?![克米瓦帕卡伏焦牛字赫欧兆比]))"
_PART_OF_DAY = (
    "(?:凌晨|清晨|清早|大清早|早上|早晨|今早|明早|上午|中午|正午|下午|午后|傍晚|晚上|晚间|"
    "夜里|夜间|深夜|午夜|半夜|今晚|明晚|昨晚|当晚|早|晚)"
)
_HOUR = r"(?:\d{1,2}|二十[一二三四]?|十[一二三四五六七八九]?|[零一二两三四五六七八九])"
_MINUTE = r"(?:\d{1,2}|[二三四五]?十[一二三四五六七八九]?|[零〇][一二三四五六七八九]|[一二三四五六七八九](?=分))"
_CLASSIFIERS = (
    "个|台|名|位|只|支|条|件|张|辆|本|份|次|人|种|类|项|批|层|楼|间|套|块|把|根|箱|盒|袋|瓶|杯|组|对|双|倍|页|章|"
    "节|段|行|列|步|版|号|款|所|家|座|栋|艘|架|头|匹|棵|"
    "颗|粒|片|门|扇|封|笔|场|轮|届|卷|卡|处|点|期|级|代|周|天|年|月|日|岁|度|口|遍|趟|道|面|幅|副|句|词|字|碗|桶|"
    "罐|包|顿|世|秒|分|小时|公|米|吨|升|元|美|英|欧|海|平|立|毫|厘"
)

_TOKEN = re.compile(
    "|".join(
        [
            r"(?P<iso>(?<![\w.-])\d{4}(?P<sep>[-/.])\d{1,2}(?P=sep)\d{1,2}(?![A-Za-z0-9-]|\.\d))",
            r"(?P<slashed>(?<![A-Za-z0-9./-])\d{1,2}(?:/\d{1,2}/(?:\d{4}|\d{2})|\.\d{1,2}\.\d{4})(?![A-Za-z0-9/-]|"
            r"\.\d))",
            rf"(?P<clock>(?P<part>{_PART_OF_DAY}的?\s?)?(?:"
            rf"(?<!\d:)(?<![\d.A-Za-z])\d{{1,2}}:\d{{2}}(?::\d{{2}})?(?![\d:])(?:\s?(?P<half>[aApP])\.?[mM]\.?)?"
            rf"|(?<![\d.])\d{{1,2}}\s?(?P<onlyhalf>[aApP])\.?[mM]\b\.?"
            rf"|差(?P<before>{_MINUTE}|一刻)分?钟?(?:到)?(?P<beforehour>{_HOUR})点钟?"
            rf"|(?<![\d.零一二三四五六七八九十百千万亿第])(?P<hour>{_HOUR})\s?(?:点钟|点整|点|"
            rf"时(?=[\d半整零〇一二三四五六七八九十前后起至到,，。、！？\-~—]|$|之|开|出))\s?"
            rf"(?:(?P<nominute>钟|整)|(?P<halfhour>半)|(?P<quarter>[一三])刻|"
            rf"过?(?P<minute>{_MINUTE})(?:分(?!之)钟?)?(?![\d点百千万%]|年|月|日|个)|差(?P<less>{_MINUTE}|"
            rf"一刻)分?)?(?![零〇一二三四五六七八九\d])))",
            r"(?P<noon>正午|中午|午夜|半夜|零点|子夜)",
            r"(?P<dotted>(?<![A-Za-z0-9.])[vV]?\d+(?:\.\d+){2,}(?![A-Za-z0-9]))",
            r"(?P<phone>(?<![A-Za-z0-9.+])(?:\+\d{1,3}[\s-]?(?:\(\d+\)[\s-]?)?\d{2,11}(?:[\s-]\d{2,8}){0,4}"
            r"|\(\d{2,5}\)\s?\d{3,8}(?:[\s-]\d{2,8}){0,2}|0\d{1,4}-\d{5,8}|\d{3}-\d{4}|\d{3}-\d{3,4}-\d{4}"
            r"|\d{3}\s\d{4}\s\d{4}|\d{2,6}(?:-\d{2,6}){2,})(?![A-Za-z0-9-]|,\d))",
            rf"(?P<partof>(?:(?P<whole>\d+|{_NUMERAL}+)又)?(?P<under>百|千|万|\d+|"
            rf"{_NUMERAL}+)分之(?P<over>{_FIGURE}|{_NUMERAL}+(?:点{_NUMERAL}+)?|半))",
            r"(?P<fraction>(?<!\d:)(?<![A-Za-z0-9./])(?:(?P<mixed>\d+)(?:[\s-]|又))?(?P<top>\d+)[/⁄](?P<bottom>\d+)(?![A-Za-z0-9/])|\d*[½¼¾⅓⅔⅛⅕])",
            r"(?P<code>(?<![A-Za-z0-9.])(?:[A-Za-z]+[-_]?\d|[A-Z]\.\d|\d+[-_]?(?:[A-Z]+\d|[A-Z]{1,3}-\d)|"
            r"\d+[A-Z](?:[A-Z0-9]*\d|(?![A-Za-z]))|0[xX][0-9A-Fa-f])"
            r"[A-Za-z0-9]*(?:[-_./][A-Za-z0-9]*\d[A-Za-z0-9]*)*)",
            r"(?P<holiday>元旦)",
            r"(?P<anniversary>(?<![\d·])\d{1,2}·\d{1,2}(?![\d·]))",
            r"(?P<quarters>[一两二三]刻钟)",
            r"(?P<war>[一二](?=战(?![区士术役斗略胜火])))",
            r"(?P<discount>打?(?P<tenths>\d(?:\.\d)?|[一二两三四五六七八九]{1,2})折(?![叠断扣磨射合线]))",
            r"(?P<date>(?:(?P<year>\d{2,4}|[零〇一二三四五六七八九]{2,4})年(?:的)?\s?)?(?P<month>\d{1,2}|"
            r"十[一二]?|[一二三四五六七八九元正])\s?月(?:份)?(?![饼球])(?:\s?(?P<day>\d{1,2}|三十一?|"
            r"二十[一二三四五六七八九]?|十[一二三四五六七八九]?|[一二三四五六七八九]|"
            r"初[一二三四五六七八九十])\s?[日号]?(?!\d|[个台点:：万千百分年]))?)",
            r"(?P<day_>(?P<dayvalue>\d{1,2}|三十一?|二十[一二三四五六七八九]?|十[一二三四五六七八九]?|"
            r"[一二三四五六七八九])\s?(?:日|号)(?![码元圆]))",
            rf"(?P<figure>(?P<nth>第\s?)?(?P<minus>(?:(?<![A-Za-z0-9)\]%年月日时])[-−–]\s?|负|零下))?(?P<money>{SIGN}\s?)?(?<![A-Za-wyzA-WYZ.\d])(?<![A-Za-z]-)(?P<digits>{_FIGURE})"
            r"\s?(?P<more>多|余|几|来)?(?P<scale>(?:千(?![克米瓦帕卡伏焦牛字赫欧兆比])|百(?![帕叶货])|十(?![分])|"
            r"万|亿|兆(?![帕瓦赫字比欧焦位])|打|k\b|K\b|M\b|bn\b|million|billion)*))",
            rf"(?P<words>(?P<wnth>第\s?)?(?P<wminus>负|零下)?(?P<vague>[数几上]|数以|"
            rf"好几)?(?P<numeral>(?:{_NUMERAL}|打(?![开电印扫击破断算包折的在算出到])|"
            rf"兆(?![帕瓦赫字比欧焦位]))+[几多余来]?(?:{_NUMERAL})*)(?:点(?P<point>[零〇一二三四五六七八九]+)(?P<pointscale>[百千万亿]*))?(?P<half_>个?半(?=小时|"
            rf"钟头|月|年|天|星期|世纪|[^导径决球岛透封成自圆固长]|$))?)",
            r"(?P<half1>一半|大半|过半|半(?![导径决球岛透封成自圆固长]))",
        ]
    )
)
_ANYTHING = re.compile(r"[\d元中正零〇一二两三四五六七八九十百千万亿半午夜½¼¾⅓⅔⅛⅕]")
_LEAD = 30  # how far before its first digit or numeral a number can begin
_NOT_A_NUMBER = re.compile(_NO_NUMBERS)
_UNIT = re.compile(rf"\s?[多余来几]?\s?个?\s?({TABLES.chinese_pattern})")
# Words that count as well as measure: 八块肥皂, 三位客人.
_AMBIGUOUS_UNITS = frozenset("块分位节码角毛开卡成桶匹度刀") | {"个季度"}
_REST = re.compile(
    r"[一二三四五六七八九]{1,2}(?![一二三四五六七八九十百千万个点米厘分毫])|\d{1,2}(?![\d.,%]|\s?[厘分毫米个])"
)
_COUNTED_HALF = re.compile(rf"\s?(?:{_CLASSIFIERS})半(?![导径决球岛透封成自圆固长个天年小])")
_STRICT_AFTER = re.compile(rf"[多余来几]?\s?(?:{_CLASSIFIERS})")
_LOWER_PART = re.compile(r"(\d{1,4})([百千万]+)(?![克米瓦帕])")
_CONNECTS = re.compile(r"\s?(?:[-–—~～/x×至到和或与、,]|乘以?|比)\s?")
_ADDS = re.compile(r"[零又\s]?")


@functools.lru_cache(maxsize=4)
def chinese_numbers(text: str) -> Sequence[Mention]:
    """Every number of a Chinese text, in order. Kept for the next check of the same pair."""
    if not _ANYTHING.search(text):
        return ()
    text = _NOT_A_NUMBER.sub(_blank, text)
    found: list[Mention] = []
    position = 0
    while (hint := _ANYTHING.search(text, position)) and (
        match := _TOKEN.search(text, max(position, hint.start() - _LEAD))
    ):
        mentions = _READERS[match.lastgroup](match, text)
        found += mentions
        position = max(mentions[-1].end if mentions else match.end(), match.end())
    return tuple(joined(text, found, _is_connection, _is_addition))


def _blank(match: re.Match[str]) -> str:
    return "\0" * len(match[0])


def _is_connection(gap: str) -> bool:
    return bool(_CONNECTS.fullmatch(gap))


def _is_addition(gap: str) -> bool:
    return bool(_ADDS.fullmatch(gap))


def idioms(text: str) -> Iterator[str]:
    """Words with a numeral that the numbers leave out, weekdays aside: 四季, 三角形."""
    return (match[0] for match in _NOT_A_NUMBER.finditer(text) if match[0][0] not in "星周礼")


def numeral_values(text: str) -> tuple[float, ...]:
    """Values of a numeral: one for most, two for 三四十; none for what is no number.

    Numerals without 十, 百 and so on are read digit by digit: 二〇二六.
    """
    text = text.rstrip("几多余来")
    if all(sign in _DIGITS for sign in text):
        if len(text) == 2 and _DIGITS[text[0]] > 0 and _DIGITS[text[1]] - _DIGITS[text[0]] in (1, 2):
            return (float(_DIGITS[text[0]] * 10 + _DIGITS[text[1]]), *(float(_DIGITS[sign]) for sign in text))
        return (float("".join(str(_DIGITS[sign]) for sign in text)),)
    if pair := re.fullmatch(r"(十?)([一二三四五六七八九])([二两三四五六七八九])([十百千万亿]*)", text):
        scale = 1.0
        for sign in pair[4]:
            scale *= _SCALES[sign]
        tens = 10 if pair[1] else 0
        return tuple((tens + _DIGITS[pair[i]]) * scale for i in (2, 3))
    return _place_values(text)


def _place_values(text: str) -> tuple[float, ...]:
    total = section = digit = 0.0
    last = 1.0
    for sign in text:
        if sign in _DIGITS:
            digit = digit * 10 + _DIGITS[sign]
            last = 1.0 if sign in "零〇" else last
        elif sign in "万亿兆":
            total = (total + section + digit or 1) * _SCALES[sign]
            section, digit, last = 0.0, 0.0, _SCALES[sign]
        else:
            section += (digit or 1) * _SCALES[sign]
            digit, last = 0.0, _SCALES[sign]
    value = total + section + digit
    if digit and last > 10 and text[-2] in _SCALES:  # 三百二 is 320, 一万二 is 12000
        return (total + section + digit * last / 10, value)
    return (value,)


def _value(text: str) -> float:
    return float(text) if text[0].isascii() else numeral_values(text)[0]


def _date(match: re.Match[str], text: str) -> list[Mention]:
    month = 1 if match["month"] in ("元", "正") else _value(match["month"])
    day = match["day"]
    return date_parts(
        match,
        _value(match["year"]) if match["year"] else None,
        (month,),
        (_value(day.removeprefix("初")),) if day else (),
    )


def _day(match: re.Match[str], text: str) -> list[Mention]:
    value = _value(match["dayvalue"])
    return [mention_of(match, values=(value,), kind=DAY, readings=tuple((value, u) for u in chinese_units("日")))]


def _minutes(text: str) -> int:
    return 15 if text == "一刻" else int(_value(text))


def _clock(match: re.Match[str], text: str) -> list[Mention]:
    half = (match["half"] or match["onlyhalf"] or "").lower()
    if match["before"]:
        hour, minute = _hour(match["beforehour"]), -_minutes(match["before"])
    elif match["hour"]:
        hour = _hour(match["hour"])
        minute = 30 if match["halfhour"] else 0
        if match["quarter"]:
            minute = 15 * int(_value(match["quarter"]))
        elif match["minute"]:
            minute = _minutes(match["minute"])
        elif match["less"]:
            minute = -_minutes(match["less"])
    else:
        hour, *rest = (int(part) for part in re.findall(r"\d+", match[0]))
        minute = rest[0] if rest else 0
        if minute > 59 or hour > 24 or len(rest) > 1:
            return [mention_of(match, values=(float(part),), loose=True) for part in (hour, *rest)]
    if hour == 12 and ":" in match[0] and not (match["part"] or half):  # 12:15 on a clock of 24 hours
        half = "p"
    moments = _moments(hour, minute, match["part"] or "", half)
    plain = match["hour"] and not (match["part"] or match["halfhour"] or match["minute"] or match["quarter"])
    values = (float(hour), float(minute)) if minute > 0 else (float(hour),)
    strict = not (plain and match["hour"] == "一")
    return [mention_of(match, values=values, kind=CLOCK, moments=moments, strict=strict)]


def _hour(text: str) -> int:
    return int(_value(text))


def _moments(hour: int, minute: int, part: str, half: str) -> frozenset[int]:
    """Minutes since midnight that a clock time can mean."""
    total = hour * 60 + minute
    if hour > 12 or (hour == 0 and not half):
        return frozenset({total % 1440})
    morning, evening = total % 720, total % 720 + 720
    if half:
        return frozenset({morning if half == "a" else evening})
    part = part.rstrip("的 ")
    if not part:
        return frozenset({morning, evening})
    if hour == 12 and "上" in part:  # clocks say so of midnight, people of noon
        return frozenset({morning, evening})
    if part in ("凌晨", "清晨", "清早", "大清早", "早上", "早晨", "今早", "明早", "上午", "早"):
        return frozenset({morning if hour < 12 or "凌" in part else evening})
    if part in ("中午", "正午"):
        return frozenset({evening if hour in (12, 1, 2) else morning})
    if part in ("下午", "午后", "傍晚"):
        return frozenset({evening})
    if hour == 12:  # 晚上12点
        return frozenset({morning})
    return frozenset({morning, evening} if hour < 5 else {evening})


def _noon(match: re.Match[str], text: str) -> list[Mention]:
    moments = {720} if match[0] in ("正午", "中午") else {0}
    return [mention_of(match, values=(), kind=CLOCK, moments=frozenset(moments), strict=False)]


def _whole_code(match: re.Match[str], text: str) -> list[Mention]:
    return [mention_of(match, values=tuple(float(group) for group in re.findall(r"\d+", match[0])), kind=CODE)]


def _code(match: re.Match[str], text: str) -> list[Mention]:
    if measured := re.fullmatch(rf"({_FIGURE})({TABLES.english_pattern})", match[0]):
        return [
            mention_of(
                match, values=(float(measured[1]),), units=chinese_units(measured[2]), loose=len(measured[2]) < 2
            )
        ]
    return _whole_code(match, text)


def _part_of(match: re.Match[str], text: str) -> list[Mention]:
    under = _value(match["under"])
    over = 0.5 if match["over"] == "半" else _decimal(match["over"])
    value = (_value(match["whole"]) if match["whole"] else 0.0) + over / (under or 1.0)
    return [_with_unit(mention_of(match, values=(value,), readings=((value * 100, PERCENT),)), text)]


def _decimal(text: str) -> float:
    if "点" in text:
        whole, point = text.split("点")
        return float(f"{int(_value(whole))}.{''.join(str(_DIGITS[sign]) for sign in point)}")
    return _value(text)


def _fraction(match: re.Match[str], text: str) -> list[Mention]:
    if match["top"] is None:
        signs = {"½": 0.5, "¼": 0.25, "¾": 0.75, "⅓": 1 / 3, "⅔": 2 / 3, "⅛": 0.125, "⅕": 0.2}
        value = signs[match[0][-1]] + float(match[0][:-1] or 0)
    elif float(match["bottom"]) == 0:
        return []
    else:
        value = float(match["mixed"] or 0) + float(match["top"]) / float(match["bottom"])
    return [_with_unit(mention_of(match, values=(value,), readings=((value * 100, PERCENT),)), text)]


def _scaled(value: float, scale: str) -> float:
    short = {"k": 1e3, "K": 1e3, "M": 1e6, "bn": 1e9, "million": 1e6, "billion": 1e9}
    if scale in short:
        return value * short[scale]
    for sign in scale:
        value *= _SCALES[sign]
    return value


def _figure(match: re.Match[str], text: str) -> list[Mention]:
    digits = match["digits"].replace(",", "")
    value = _scaled(float(digits), match["scale"])
    if match["minus"]:
        value = -value
    units = sign_units(match["money"].strip()) if match["money"] else ()
    end = match.end()
    while match["scale"] and (rest := _LOWER_PART.match(text, end)):  # 1亿2千万
        value, end = value + _scaled(float(rest[1]), rest[2]), rest.end()
    if end > match.end():
        return [_with_unit(Mention(match.start(), end, text[match.start() : end], (value,)), text)]
    if (len(digits) > 6 and digits.isdigit() and digits == match["digits"] and not match["scale"]) or re.match(
        r"0\d", digits
    ):
        return [mention_of(match, values=(value,), kind=CODE)]
    mention = mention_of(match, values=(value,), units=units, ordinal=bool(match["nth"]))
    return [mention if units and not match["scale"] else _with_unit(mention, text)]


def _decimals(digits: str) -> float:
    """Value of the figures behind 一米: 八 and 80 are 0.8, 六五 is 0.65."""
    figures = "".join(str(_DIGITS.get(sign, sign)) for sign in digits)
    return float(f"0.{figures}")


def _with_unit(mention: Mention, text: str) -> Mention:
    """Add the half and the unit behind a number: 两年半, 1个半小时, 8米."""
    end, values, units = mention.end, mention.values, mention.units
    if half := re.compile(r"个?半(?=小时|钟头|月|年|天|星期|世纪|[^导径决球岛透封成自圆固长]|$)").match(text, end):
        values = tuple(value + 0.5 for value in values)
        end = half.end()
    loose = mention.loose
    if match := _UNIT.match(text, end):
        units = units + chinese_units(match[1])
        loose = match[1] in _AMBIGUOUS_UNITS
        end = match.end()
        if half := re.compile(r"半(?![径导])").match(text, end):
            values = tuple(value + 0.5 for value in values)
            end = half.end()
        if match[1] in ("米", "块") and (rest := _REST.match(text, end)):  # 一米六五, 三块五
            values = tuple(value + _decimals(rest[0]) for value in values)
            end, loose = rest.end(), False
        if match[1] == "克" and text.startswith("拉", end):
            units = ()
    elif end == mention.end and (half := _COUNTED_HALF.match(text, end)):  # 一杯半
        values, end = tuple(value + 0.5 for value in values), half.end()
    attributes = {"end": end, "text": text[mention.start : end], "values": values, "units": units, "loose": loose}
    return Mention(**{**vars(mention), **attributes})


def _word_number(match: re.Match[str], text: str) -> list[Mention]:
    numeral = match["numeral"]
    if match["vague"] in ("数", "几", "数以", "好几") or (numeral[-1] == "几" and numeral != "几"):
        values = numeral_values(numeral)
        return [mention_of(match, values=values[:1], kind=VAGUE, strict=len(numeral) > 0 and values[0] >= 100)]
    if match["vague"] == "上":
        values = numeral_values(numeral)
        return [mention_of(match, values=values[:1], kind=VAGUE, strict=False)]
    if all(sign in _DIGITS for sign in numeral) and (len(numeral) > 4 or (len(numeral) > 2 and numeral[0] in "零〇")):
        digits = "".join(str(_DIGITS[sign]) for sign in numeral)
        return [Mention(match.start(), match.end(), digits, (float(digits),), CODE)]
    values = numeral_values(numeral)
    if match["point"]:
        point = "".join(str(_DIGITS[sign]) for sign in match["point"])
        values = (_scaled(float(f"{int(values[0])}.{point}"), match["pointscale"]),)
    if match["half_"]:
        values = tuple(value + 0.5 for value in values)
    if match["wminus"]:
        values = tuple(-value for value in values)
    ordinal = bool(match["wnth"])
    mention = mention_of(match, values=values, ordinal=ordinal)
    mention = _with_unit(mention, text)
    counted = ordinal or mention.units or mention.values != values or len(numeral) > 1
    counted = counted or _STRICT_AFTER.match(text, match.end())
    certain = counted and abs(values[0]) not in (0.0, 1.0, 100.0, 1000.0, 10000.0, 1e8)
    return [Mention(**{**vars(mention), "strict": bool(certain)})]


def _discount(match: re.Match[str], text: str) -> list[Mention]:
    """Read 八折, four fifths of the price: 20 percent off."""
    tenths = match["tenths"]
    rest = float(tenths) * 10 if tenths[0].isascii() else float("".join(str(_DIGITS[sign]) for sign in tenths))
    rest = rest * 10 if rest < 10 else rest
    return [mention_of(match, readings=((100 - rest, PERCENT), (rest, PERCENT)))]


def _holiday(match: re.Match[str], text: str) -> list[Mention]:
    first = (mention_of(match, values=(1,), kind=kind, strict=False) for kind in (MONTH, DAY))
    return list(first)


def _anniversary(match: re.Match[str], text: str) -> list[Mention]:
    """Read 9·11, a day known by its date."""
    month, day = match[0].split("·")
    return date_parts(match, None, (int(month),), (int(day),))


def _quarters(match: re.Match[str], text: str) -> list[Mention]:
    minutes = 15.0 * _DIGITS[match[0][0]]
    return [mention_of(match, readings=tuple((minutes, unit) for unit in chinese_units("分钟")))]


def _war(match: re.Match[str], text: str) -> list[Mention]:
    """Read 二战; 一战 is also to fight once."""
    value = float(_DIGITS[match[0]])
    return [mention_of(match, values=(value,), strict=value > 1)]


def _half_alone(match: re.Match[str], text: str) -> list[Mention]:
    after = re.compile(r"打|百万|千万").match(text, match.end())
    if after and match[0] == "半":
        value = {"打": 6.0, "百万": 5e5, "千万": 5e6}[after[0]]
        return [Mention(match.start(), after.end(), text[match.start() : after.end()], (value,))]
    mention = mention_of(match, values=(0.5,), readings=((50.0, PERCENT),), strict=False)
    if match[0] != "半":
        return [mention]
    mention = _with_unit(mention, text)
    if mention.text.endswith("月"):  # 半个月 is two weeks as well
        days = chinese_units("天")
        readings = (*mention.readings, *((count, unit) for count in (14.0, 15.0) for unit in days))
        mention = Mention(**{**vars(mention), "readings": readings})
    return [mention]


_READERS = {
    "iso": iso_date,
    "slashed": slashed_date,
    "clock": _clock,
    "noon": _noon,
    "dotted": _whole_code,
    "phone": _whole_code,
    "partof": _part_of,
    "fraction": _fraction,
    "code": _code,
    "discount": _discount,
    "holiday": _holiday,
    "anniversary": _anniversary,
    "quarters": _quarters,
    "war": _war,
    "date": _date,
    "day_": _day,
    "figure": _figure,
    "words": _word_number,
    "half1": _half_alone,
}
