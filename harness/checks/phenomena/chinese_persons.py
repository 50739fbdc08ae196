"""Chinese persons in pinyin: Wang Wei is 王伟 or 汪伟, since pinyin does not tell the signs; 李强 is somebody else."""

from __future__ import annotations

import re
from collections.abc import Iterator

from harness.checks.phenomena.verdict import Slot

# The hundred commonest family names of China by their pinyin (tones dropped), with every common sign of that sound.
_SIGNS = {
    "Wang": "王汪", "Li": "李黎厉利栗郦", "Zhang": "张章", "Liu": "刘柳", "Chen": "陈谌", "Yang": "杨阳", "Zhao": "赵兆",
    "Huang": "黄", "Zhou": "周", "Wu": "吴武伍邬巫", "Xu": "徐许", "Sun": "孙", "Hu": "胡", "Zhu": "朱祝诸", "Gao": "高",
    "Lin": "林蔺", "He": "何贺和", "Guo": "郭", "Ma": "马", "Luo": "罗骆", "Liang": "梁", "Song": "宋", "Zheng": "郑",
    "Xie": "谢解", "Han": "韩", "Tang": "唐汤", "Feng": "冯封丰", "Yu": "于余俞喻虞郁", "Dong": "董", "Xiao": "肖萧",
    "Cheng": "程成", "Cao": "曹", "Yuan": "袁苑", "Deng": "邓", "Fu": "傅付符", "Shen": "沈申", "Zeng": "曾", "Peng": "彭",
    "Lu": "卢吕鲁陆路", "Lv": "吕", "Su": "苏", "Jiang": "蒋江姜", "Cai": "蔡", "Jia": "贾", "Ding": "丁", "Wei": "魏韦卫",
    "Xue": "薛", "Ye": "叶", "Yan": "阎严颜闫燕", "Pan": "潘", "Du": "杜", "Dai": "戴", "Xia": "夏", "Zhong": "钟仲",
    "Tian": "田", "Ren": "任", "Fan": "范樊", "Fang": "方房", "Shi": "石史施时", "Yao": "姚", "Tan": "谭谈", "Liao": "廖",
    "Zou": "邹", "Xiong": "熊", "Jin": "金靳", "Hao": "郝", "Kong": "孔", "Bai": "白柏", "Cui": "崔", "Kang": "康",
    "Mao": "毛", "Qiu": "邱丘", "Qin": "秦覃", "Gu": "顾谷", "Hou": "侯", "Shao": "邵", "Meng": "孟蒙", "Long": "龙",
    "Wan": "万", "Duan": "段", "Qian": "钱", "Yin": "尹殷", "Yi": "易", "Chang": "常", "Qiao": "乔", "Lai": "赖", "Gong": "龚宫",
    "Wen": "文温", "Pang": "庞", "Tao": "陶", "Hong": "洪", "Ni": "倪",
}  # fmt: skip
_INITIAL = "(?:[bpmfdtnlgkhjqxrzcsyw]|zh|ch|sh)?"
_FINAL = (
    "(?:a|o|e|ai|ei|ao|ou|an|en|ang|eng|ong|i|ia|ie|iao|iu|ian|in|iang|ing|iong|u|ua|uo|uai|ui|uan|un|uang|ue|er|v)"
)
_SYLLABLE = f"{_INITIAL}{_FINAL}"
_PERSON = re.compile(
    rf"(?<![A-Za-z] )(?<![\w-])({'|'.join(_SIGNS)}) ((?=[A-Z])(?i:{_SYLLABLE})(?:[-' ]?(?i:{_SYLLABLE}))?)\b(?! [A-Z])"
)
_SENTENCE_START = re.compile(r"(?<![\w-])(He|Long|Fan|Fang|Song|Tan|Ye|Bai|You) ")


def persons(source: str) -> list[re.Match[str]]:
    """Names in pinyin, family name first; an English word that begins a sentence is none."""
    return [match for match in _PERSON.finditer(source) if not _SENTENCE_START.match(match[0])]


def chinese_person_slots(source: str, translation: str) -> Iterator[Slot]:
    """Persons of whom the translation has neither the pinyin nor a fitting family name with a given name."""
    for match in persons(source):
        if match[0].casefold() in translation.casefold():
            continue
        if not re.search(f"[{_SIGNS[match[1]]}][\u4e00-\u9fff]", translation):
            yield Slot(match[0], None, f"{match[0]} is missing or another person")
