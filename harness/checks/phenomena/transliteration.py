"""Whether signs of a Chinese text can stand for the sound of a foreign name.

Only ever used to excuse: a name may be written with other signs than those a glossary lists.
"""

from __future__ import annotations

import re

# Signs that transcribe foreign names, by the consonant that they begin with. Signs that are common words are left out.
_SIGNS = {
    "P": "滨巴芭帕拔佩皮彼毕贝伯勃博布卜普珀庞潘邦班彭宾朋波坡派拜保鲍碧",
    "M": "马玛麦迈曼蒙孟梅米密莫默摩姆穆敏蜜慕茂",
    "F": "非法弗夫福佛菲费芬丰冯凡范富芙",
    "W": "文万王瓦维韦威沃伍渥温旺薇葳华惠",
    "T": "当道大他达戴黛德登邓丹杜敦顿董迪狄蒂丁鼎岱塔泰特坦汤唐陶滕缇汀廷托图屯桃铎",
    "N": "纳娜奈妮尼宁诺努纽农侬楠",
    "L": "理劳拉莱赖兰朗劳勒雷莉利丽黎李列林琳龙隆卢鲁罗洛露伦莲廉瑞芮荣茹若律",
    "K": "金卡凯坎康考科柯克肯库昆夸奎基吉加盖甘冈戈格根古圭郭葛贡喀",
    "H": "哈海汉豪霍赫亨洪侯胡华惠怀",
    "S": "逊萨赛桑索塞斯丝思司苏"
    "孙松森西希锡席夏辛欣休肖谢舍莎珊尚邵舒施诗史仕什扎泽曾兹齐奇乔切查柴昌琴钦珍詹哲朱茱卓佐"
    "贾杰简捷津晋基吉策茨崔蔡",
    "": "阿艾爱埃安奥欧伊英因印尤约雅亚娅扬叶耶恩",
    "l": "尔儿",
}
_CLASSES: dict[str, str] = {}
for _class, _signs in _SIGNS.items():
    for _sign in _signs:
        _CLASSES[_sign] = _CLASSES.get(_sign, "") + _class
SIGNS = frozenset(_CLASSES)
_RUN = re.compile(f"[{''.join(_CLASSES)}]{{2,}}")
_RULES = [
    (re.compile(pattern), classes)
    for pattern, classes in (
        (r"sch|sh|tch|ch|cz|zh|ts|tz|d+s|d+z", "S"),
        (r"l+(?![aeiouyl])", "l"),
        (r"ph", "F"),
        (r"th", "TS"),
        (r"ck|kh|q|k", "K"),
        (r"x", "KS"),
        (r"c(?=[eiy])", "S"),
        (r"c", "K"),
        (r"g(?=[eiy])", "KS"),
        (r"gh|g", "K"),
        (r"j", "S"),
        (r"[sz]+", "S"),
        (r"b+|p+", "P"),
        (r"d+|t+", "T"),
        (r"f+", "F"),
        (r"v|w(?=[aeiouy])", "WF"),
        (r"m+", "M"),
        (r"n+(?=[aeiouy])", "N"),
        (r"l+|r+(?=[aeiouy])", "L"),
        (r"h(?=[aeiouy])", "H"),
    )
]


def _skeleton(name: str) -> list[str]:
    """The consonants that a transcription has to render, each as the classes that may render it."""
    name, found, i = name.lower(), [], 0
    while i < len(name):
        for pattern, classes in _RULES:
            if match := pattern.match(name, i):
                found.append(classes)
                i = match.end()
                break
        else:
            i += 1
    return found


def sounds_like(name: str, text: str) -> bool:
    """Whether a run of signs in a Chinese text can transcribe a name of two consonants or more."""
    want = _skeleton(name)
    if len(want) - want.count("l") < 2 and len(want) < 3 and name[:1] not in "AEIOU":
        return False
    tolerance = 0 if len(want) < 4 else len(want) // 3
    for match in _RUN.finditer(text):
        have = [_CLASSES[sign] for sign in match[0]]
        for start in range(len(have)):
            for end in range(start + 1, min(len(have), start + len(want) + 3) + 1):
                if _distance(want, have[start:end]) <= tolerance:
                    return True
    return False


def _distance(want: list[str], have: list[str]) -> int:
    """Edit distance; signs without a consonant, and 尔 for an r or l, cost nothing."""
    row = [0]
    for consonant in want:
        row.append(row[-1] + (consonant != "l"))
    for classes in have:
        extra = 0 if classes in ("", "l") else 1
        new = [row[0] + extra]
        for i, consonant in enumerate(want):
            same = any(letter in consonant.upper() for letter in classes.upper())
            new.append(min(row[i] + (not same), row[i + 1] + extra, new[i] + (consonant != "l")))
        row = new
    return row[-1]
