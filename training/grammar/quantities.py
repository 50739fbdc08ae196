"""Numbers of every written form, in English and Chinese at once.

Each maker takes a `random.Random` and returns `(english, chinese)`. The Chinese side has no spaces and half-width
digits; a figure that is written with digits keeps its digits, except where Chinese counts differently (万, 亿, the
parts of a date, the half of the day).
"""

from __future__ import annotations

from random import Random

import cn2an

Pair = tuple[str, str]

ENGLISH_MONTHS = "January February March April May June July August September October November December".split()
_ONES = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen"
).split()
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()
_ORDINALS = (
    "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth fourteenth fifteenth "
    "sixteenth seventeenth eighteenth nineteenth twentieth"
).split()


def english_words(number: int) -> str:
    """Spell a number from 0 to 9,999,999 in words: 142 is "one hundred and forty-two"."""
    if number < 20:
        return _ONES[number]
    if number < 100:
        return _TENS[number // 10 - 2] + (f"-{_ONES[number % 10]}" if number % 10 else "")
    if number < 1000:
        rest = f" and {english_words(number % 100)}" if number % 100 else ""
        return f"{_ONES[number // 100]} hundred{rest}"
    unit, name = (1000, "thousand") if number < 1_000_000 else (1_000_000, "million")
    rest = number % unit
    joint = " and " if 0 < rest < 100 else " "
    return f"{english_words(number // unit)} {name}" + (f"{joint}{english_words(rest)}" if rest else "")


def chinese_words(number: int) -> str:
    """Spell a number with Chinese numerals: 142 is 一百四十二, 12 is 十二."""
    words = cn2an.an2cn(str(number), "low")
    return words[1:] if words.startswith("一十") else words


def chinese_count(number: int) -> str:
    """Spell a number as it stands before a classifier: 2 is 两."""
    return "两" if number == 2 else chinese_words(number)


def _copied(text: str) -> Pair:
    return text, text


def integer(rng: Random) -> Pair:
    return _copied(str(rng.choice([rng.randint(0, 99), rng.randint(100, 999), rng.randint(1000, 9999)])))


def small(rng: Random) -> Pair:
    return _copied(str(rng.randint(2, 20)))


def identifier(rng: Random) -> Pair:
    return _copied(str(rng.randint(1, 300)))


def decimal(rng: Random) -> Pair:
    whole = rng.choice([rng.randint(0, 9), rng.randint(10, 99), rng.randint(100, 999)])
    digits = rng.choices([1, 2, 3], [6, 3, 1])[0]
    return _copied(f"{whole}.{''.join(rng.choice('0123456789') for _ in range(digits))}")


def thousands(rng: Random) -> Pair:
    return _copied(f"{rng.choice([rng.randint(1000, 99999), rng.randint(100_000, 99_999_999)]):,}")


def any_figure(rng: Random) -> Pair:
    return rng.choice([integer, integer, decimal, thousands])(rng)


def percent(rng: Random) -> Pair:
    figure = rng.choice([str(rng.randint(1, 100)), f"{rng.randint(0, 99)}.{rng.randint(1, 9)}"])
    return f"{figure}{rng.choice(['%', '%', ' percent', ' per cent'])}", f"{figure}%"


def figure_range(rng: Random) -> Pair:
    low = rng.randint(1, 90)
    high = low + rng.randint(1, 60)
    if rng.random() < 0.5:
        return f"{low} to {high}", f"{low}到{high}"
    return f"{low}-{high}", f"{low}-{high}"


_CURRENCIES = [("dollars", "美元", "$"), ("euros", "欧元", "€"), ("pounds", "英镑", "£"), ("yuan", "元", "")]


def money(rng: Random) -> Pair:
    name, chinese, sign = rng.choice(_CURRENCIES)
    figure = rng.choice(
        [str(rng.randint(2, 999)), f"{rng.randint(1000, 999_999):,}", f"{rng.randint(1, 999)}.{rng.randint(10, 99)}"]
    )
    english = f"{sign}{figure}" if sign and rng.random() < 0.6 else f"{figure} {name}"
    return english, f"{figure}{chinese}"


def date(rng: Random) -> Pair:
    year, month, day = rng.randint(1950, 2035), rng.randint(1, 12), rng.randint(1, 28)
    name = ENGLISH_MONTHS[month - 1]
    english = rng.choice([f"{name} {day}, {year}", f"{name} {day}, {year}", f"{day} {name} {year}"])
    return english, f"{year}年{month}月{day}日"


def day(rng: Random) -> Pair:
    month, number = rng.randint(1, 12), rng.randint(1, 28)
    name = ENGLISH_MONTHS[month - 1]
    return rng.choice([f"{name} {number}", f"{number} {name}"]), f"{month}月{number}日"


def year(rng: Random) -> Pair:
    return _copied(str(rng.randint(1900, 2040)))


def clock_time(rng: Random) -> Pair:
    hour, minute = rng.randint(1, 12), rng.choice([0, 5, 10, 15, 20, 25, 30, 35, 40, 45, 50, 55, rng.randint(1, 59)])
    form = rng.random()
    if form < 0.3:
        hour = rng.randint(0, 23)
        return _copied(f"{hour:02d}:{minute:02d}")
    if form < 0.5:
        return f"{hour} o'clock", f"{hour}点"
    afternoon = rng.random() < 0.5
    half, chinese = ("p.m.", "下午") if afternoon else ("a.m.", "上午")
    if hour == 12:
        chinese = "中午" if afternoon else "凌晨"
    if rng.random() < 0.3:
        half = half.replace(".", "")
    if minute == 0 or rng.random() < 0.2:
        return f"{hour} {half}", f"{chinese}{hour}点"
    return f"{hour}:{minute:02d} {half}", f"{chinese}{hour}:{minute:02d}"


def ordinal(rng: Random) -> Pair:
    number = rng.randint(1, 20)
    if rng.random() < 0.7:
        return _ORDINALS[number - 1], f"第{chinese_words(number)}"
    number = rng.randint(1, 99)
    suffix = "th" if 10 <= number % 100 <= 20 else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{suffix}", f"第{number}"


def word(rng: Random) -> Pair:
    number = rng.choice([rng.randint(3, 20), rng.randint(21, 99), rng.randint(1, 9) * 100, rng.randint(101, 999)])
    return english_words(number), chinese_words(number)


def count(rng: Random) -> Pair:
    number = rng.randint(2, 12)
    return english_words(number), chinese_count(number)


def big(rng: Random) -> Pair:
    """Millions and billions, which Chinese counts in 万 (10^4) and 亿 (10^8)."""
    name, power = rng.choice([("million", 6), ("million", 6), ("billion", 9), ("thousand", 3)])
    tenths = rng.choice([rng.randint(1, 99) * 10, rng.randint(11, 99), rng.randint(101, 999)])
    figure = f"{tenths // 10}" if tenths % 10 == 0 else f"{tenths // 10}.{tenths % 10}"
    value = tenths * 10 ** (power - 1)
    if power == 3:
        return f"{figure} {name}", str(value) if value < 10_000 else in_wan(value)
    return f"{figure} {name}", in_wan(value)


def in_wan(value: int) -> str:
    """A whole number in 亿 or 万, exactly: 3500000 is 350万, 12000 is 1.2万."""
    unit, name = (100_000_000, "亿") if value >= 100_000_000 else (10_000, "万")
    return f"{value / unit:.10f}".rstrip("0").rstrip(".") + name


def _measured(units: list[Pair]):
    def make(rng: Random) -> Pair:
        english, chinese = rng.choice(units)
        figure = rng.choice([small, small, integer, decimal, thousands])(rng)[0]
        if figure in ("0", "1"):
            figure = "2"
        return f"{figure} {english}", f"{figure}{chinese}"

    return make


_DURATIONS = [("minutes", "分钟"), ("hours", "小时"), ("seconds", "秒"), ("days", "天"), ("weeks", "周"),
              ("months", "个月"), ("years", "年")]  # fmt: skip
_LENGTHS = [("meters", "米"), ("millimeters", "毫米"), ("kilometers", "公里"), ("centimeters", "厘米"), ("mm", "毫米"),
            ("km", "公里"), ("cm", "厘米"), ("feet", "英尺"), ("inches", "英寸"), ("miles", "英里")]  # fmt: skip
_WEIGHTS = [("kilograms", "千克"), ("kg", "千克"), ("tons", "吨"), ("grams", "克"), ("pounds", "磅")]
_VOLUMES = [("liters", "升"), ("milliliters", "毫升"), ("cubic meters", "立方米")]
_TEMPERATURES = [("degrees", "度"), ("degrees Celsius", "摄氏度"), ("°C", "°C")]
_POWERS = [("bar", "巴"), ("volts", "伏"), ("amperes", "安"), ("watts", "瓦"), ("kilowatts", "千瓦"), ("kW", "千瓦"),
           ("hertz", "赫兹"), ("newton meters", "牛米"), ("rpm", "转/分"), ("kilometers per hour", "公里/小时"),
           ("megabytes", "MB"), ("MB", "MB"), ("GB", "GB"), ("pixels", "像素")]  # fmt: skip


def duration(rng: Random) -> Pair:
    if rng.random() < 0.08:
        return rng.choice([("half an hour", "半小时"), ("an hour", "一小时"), ("one day", "一天"), ("a week", "一周"),
                           ("one minute", "一分钟"), ("a month", "一个月"), ("a year", "一年"),
                           ("an hour and a half", "一个半小时")])  # fmt: skip
    english, chinese = rng.choice(_DURATIONS)
    if rng.random() < 0.2:
        number = rng.randint(2, 12)
        return f"{english_words(number)} {english}", f"{chinese_count(number)}{chinese}"
    figure = small(rng)[0] if rng.random() < 0.7 else str(rng.randint(21, 120))
    return f"{figure} {english}", f"{figure}{chinese}"


length = _measured(_LENGTHS)
weight = _measured(_WEIGHTS)
volume = _measured(_VOLUMES)
_power = _measured(_POWERS)


def temperature(rng: Random) -> Pair:
    english, chinese = rng.choice(_TEMPERATURES)
    figure = rng.choice([str(rng.randint(2, 300)), f"{rng.randint(2, 300)}.{rng.randint(0, 9)}"])
    return f"{figure} {english}" if english != "°C" else f"{figure} °C", f"{figure}{chinese}"


def cold_temperature(rng: Random) -> Pair:
    figure = rng.randint(2, 40)
    form = rng.randrange(3)
    if form == 0:
        return f"minus {figure} degrees", f"零下{figure}度"
    if form == 1:
        return f"-{figure} degrees", f"零下{figure}度"
    return f"{figure} degrees below zero", f"零下{figure}度"


def negative(rng: Random) -> Pair:
    figure = any_figure(rng)[0]
    return (f"-{figure}" if rng.random() < 0.6 else f"minus {figure}"), f"-{figure}"


def quantity(rng: Random) -> Pair:
    return rng.choice([duration, length, weight, volume, _power, _power, temperature])(rng)


_FRACTIONS = [("half", "一半"), ("one third", "三分之一"), ("two thirds", "三分之二"), ("a quarter", "四分之一"),
              ("three quarters", "四分之三"), ("one fifth", "五分之一"), ("two fifths", "五分之二"),
              ("three fifths", "五分之三"), ("four fifths", "五分之四"), ("one tenth", "十分之一"),
              ("a third", "三分之一"), ("one quarter", "四分之一"), ("one eighth", "八分之一")]  # fmt: skip


def fraction(rng: Random) -> Pair:
    return rng.choice(_FRACTIONS)


def _digits(rng: Random, length_: int) -> str:
    return "".join(rng.choice("0123456789") for _ in range(length_))


def phone(rng: Random) -> Pair:
    return _copied(
        rng.choice(
            [
                f"555-{_digits(rng, 4)}",
                f"0{_digits(rng, 2)}-{_digits(rng, 8)}",
                f"1{_digits(rng, 10)}",
                f"{_digits(rng, 3)}-{_digits(rng, 3)}-{_digits(rng, 4)}",
                f"+{rng.randint(1, 99)} {_digits(rng, 3)} {_digits(rng, 6)}",
            ]
        )
    )


def version(rng: Random) -> Pair:
    parts = [str(rng.randint(0, 24)) for _ in range(rng.choice([2, 2, 3]))]
    return _copied(".".join(parts))


def ratio(rng: Random) -> Pair:
    return _copied(f"{rng.randint(1, 20)}:{rng.randint(1, 20)}")


def page(rng: Random) -> Pair:
    return _copied(str(rng.randint(1, 480)))


QUANTITIES = {
    "int": integer, "small": small, "id": identifier, "decimal": decimal, "thousands": thousands, "figure": any_figure,
    "percent": percent, "range": figure_range, "money": money, "date": date, "day": day, "year": year,
    "time": clock_time, "ordinal": ordinal, "word": word, "count": count, "big": big, "qty": quantity,
    "duration": duration, "length": length, "weight": weight, "volume": volume, "temp": temperature,
    "coldtemp": cold_temperature, "negative": negative, "fraction": fraction, "phone": phone, "version": version,
    "ratio": ratio, "page": page,
}  # fmt: skip
"""Slot kinds of numbers: kind -> maker."""
