"""Negation: there where the source has it, and only there.

Judged sentence by sentence where both texts have the same number of them, else as a whole. A sentence of the source is
negative, positive, or between the two ("few", "avoid", "only if"); what is between is never held against a translation.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator

from harness.checks.phenomena.completeness import chinese_sentences, sentences
from harness.checks.phenomena.constructions import broken_constructions
from harness.checks.phenomena.polarity import has_negative_concept, reversed_concept_slots
from harness.checks.phenomena.verdict import Slot, Verdict

_NEGATIVE = re.compile(
    r"(?<![-\w])(?:not|cannot|never|no(?!\.\s?\d)|none|nobody|nothing|nowhere|neither|nor|without|unable|hardly|"
    r"scarcely|barely|no-one|fail(?:s|ed|ing)?\sto|"
    r"(?:do|does|did|is|are|was|were|has|have|had|ca|wo|would|could|should|must|need|might|may|sha|ought|"
    r"dare)n['’]t|ain['’]t|"
    r"cant|dont|doesnt|didnt|isnt|wont)\b",
    re.IGNORECASE,
)
# Negations in form only, or such as Chinese says without one.
_EMPTY = re.compile(
    r"\bnot\s(?:only|just|merely|simply|until|to\smention|least|so\smuch\sas)\b|\bwhether\sor\snot\b|\bor\snot\b|"
    r"\bif\snot\b|\bno\s(?:later|earlier|"
    r"sooner|doubt|wonder|matter|fewer|less|more\sthan|longer\sthan|other\sthan|problem|way|kidding|longer|better|"
    r"one\selse|\d)\b|\bnothing\s(?:but|"
    r"more|less|else|beats)\b|\bnone\sother\b|\b(?:cannot|can['’]t|could(?:\snot|n['’]t))\s(?:help\s(?:but|\w+ing)|wait|but)\b|(?:\bnot|\bcannot|"
    r"n['’]t)\b[^.;]*\b(?:until|till)\b|\bcouldn['’]t\s(?:agree|be\s(?:more|better|"
    r"happier))\b|\bwhy\s(?:not|don['’]t)\b|\bnever\s?mind\b|\bno,|^no[.,!?]|\bnot\s(?:a|an)\s(?:bit|few|little)\b|"
    r"\bnot\sun(?:common|usual\w*|like\w*|reasonable|known|important|expected|aware|happy|familiar|necessary)\b|\bnot\s(?:in(?:valid|correct|complete|visible|frequent\w*|significant|considerable|sufficient)|impossible|improbable)\b|"
    r"\bnot\swithout\b|\bnever\sfails?\b|\bnot\sat\sall\b(?=[.!]?$)|\bha(?:ve|s|d)\sno\schoice\b|\bnot\sbad\b|\bnothing\s(?:is\s|was\s)?wrong\b|\blast\sbut\snot\b|"
    r"\bbelieve\sit\sor\snot\b|\bnothing\s(?:is\s)?"
    r"(?:un|im)\w+|\bnot\suncommon\b|\bnot\sfail\sto\b|\bwithout\s(?:fail|(?:a\s)?doubt|question|delay|exception)\b|"
    r"(?:is|are|was|were|do|does|did|has|have|can|could|would|should|wo|ca)n['’]t\s(?:it|he|she|they|you|we|I|this|"
    r"that|there)\b|"
    r"\bnever\s(?:better|again\?)|\bno\.\s?\d|\bin\sno\stime\b|\bno-?brainer\b|\bno\ssmall\b|\bnothing\sto\slose\b",
    re.IGNORECASE,
)
# Negative in meaning, so that Chinese may or may not say 不, 没 or 无.
_SOFT = re.compile(
    r"\b(?:far\sfrom|un(?!der|i|til|cle|less\b)\w{3,}|unless|until|till|in(?:active|valid|correct|complete|visible|"
    r"sufficient|secure|compatible|accurate|dependent\w*|consisten\w+|direct|definite\w*|finite|formal|accessible|"
    r"appropriate|ability|capable|convenien\w+|credibl\w+|dispensable|effective|efficient|evitabl\w+|experienced|"
    r"expensive|flexible|hibit\w*|human|justice|nocent|operable|put|soluble|stab\w+|tact|tolera\w+|variab\w+|"
    r"voluntar\w+|adequate|frequent\w*|numerable|sane|significant|sincere|animate)|im(?:possible|proper\w*|"
    r"perfect|mobile|mature|moral|patien\w+|measurabl\w+|balance\w*|mun\w+|polite|practical|permeable|mediate\w*|"
    r"precise|mutable)|il(?:legal\w*|legible|logical|literate|legitimate|l)|ir(?:regular\w*|relevant|responsible|"
    r"reversibl\w+|respective)|dis\w{3,}|non\w*|mis\w{3,}|anti\w*|de(?:activat\w+|ny|nie[sd]|nial|cline\w*|"
    r"prive\w*|lete\w*|tach\w*|stroy\w*|crease\w*|fault\w*|spite|ficit\w*|ficien\w+)|\w+less(?:ly)?|-free|free|"
    r"avoid\w*|prevent\w*|prohibit\w*|forbid\w*|forbade|ban(?:s|ned)?|refus\w+|reject\w*|fail\w*|lack\w*|"
    r"miss(?:es|ed|ing)?|absen\w+|stop\w*|cease\w*|except\w*|exclud\w+|besides|instead|rather|other\sthan|only|"
    r"few|little|less|least|rare\w*|seldom|before|away|off|out|lost|lose\w*|empty|wrong\w*|bad\w*|poor\w*|"
    r"difficult\w*|hard|worse|worst|short\w*|weak\w*|ill|sick|dead|die[sd]?|killed|broke\w*|break\w*|damage\w*|"
    r"fault\w*|error\w*|forgot\w*|forget\w*|ignor\w+|skip\w*|neglect\w*|regardless|hate\w*|doubt\w*|wonder\w*|"
    r"sorry|excuse|afraid|worr\w+|beware|careful|too|zero|nil|null|void|expire\w*|vacan\w+|blank|bare|ever|yet|"
    r"any|anything|anyone|anybody|block\w*|lest|refrain\w*|quit\w*|resist\w*|against|beyond|remain\w*|still|"
    r"continu\w+|otherwise|whether|if|or|secret\w*|hidden|strange\w*|busy|shy|stuck|reluctan\w+|hesita\w+|"
    r"exceed\w*|almost|nearly|enough|barrier\w*|cancel\w*|abort\w*|drop\w*|leave\w*|left|remov\w+|without|loses|"
    r"inevitabl\w+|nothing|inside\sout|late|later|run\sout|ran\sout|silen\w+|abnormal\w*|malform\w*|gone|pending|"
    r"opaque|insensitive|impossib\w+|suppress\w*|extraneous|excess\w*|lone\w*|restrict\w*|opposite|contrary|"
    r"oppos\w+|reduc\w+|suspend\w*|halt\w*|invisible|spare|tireless\w*|stainless|wireless|clos\w+|shut\w*)\b",
    re.IGNORECASE,
)
# A plain prohibition needs more than a word of the kind above.
_PROHIBITING = re.compile(
    r"\b(?:far\sfrom|avoid\w*|prevent\w*|prohibit\w*|forbid\w*|forbade|ban(?:s|ned)?|refus\w+|stop\w*|refrain\w*|illegal\w*|"
    r"unlawful|un(?:able|authori\w+|acceptable|til|less)|"
    r"impossible|fail\w*|keep\w*|beware|except\w*|only|lest|deny|denied|cease\w*|too|few|little|rare\w*|seldom|"
    r"free|instead|rather|otherwise|disallow\w*|disable\w*|"
    r"inhibit\w*|inability|incapable|block\w*|restrict\w*|quit|leave|hesitat\w*|miss|exceed\w*|away|off|out|"
    r"in(?:valid|accessible|operable|compatible)|lost|lack\w*|"
    r"un\w{4,}|limit\w*|maximum|at\smost|no)\b",
    re.IGNORECASE,
)
# Chinese words with a negative sign that do not negate.
_MASK = re.compile(
    "不锈|不丹|不仅|不但|不光(?![滑亮彩])|不只|不单|不管|不论|不过|不断|不久|不少|不错|不同|不如|不得不|不能不|不可不|"
    "不妨|不禁|不时|不惜|不愧|对不起|差不多|了不起|不动产|不等式|不慎|不幸(?!福)|不已|不停|不见得|"
    "不由|不知不觉|不外乎|不外|不止|不至于|不一会|不一样|不乏|不料|不顾|不失为|不满|不安(?![全装排])|不足|不便|"
    "不适|不良|不等|不定|不明|不变|不好意思|不客气|不经意|不约而同|不谋而合|忍不住|禁不住|说不定|"
    "要不是|要不然|要不|不然|不倒翁|不二|不可避免|不可或缺|不遗余力|不胜|不懈|不朽|不敢当|不曾想|来不及|未(?=克)|"
    "不(?=勒斯)|无线|无论|无非|无数|无疑|无人机|无人驾驶|无人值守|无人区|无花果|无限|无锡|无需|无穷|无比|无私|无敌|无辜|无奈|"
    "无缝|无形|无缘无故|无微不至|无偿|无机|无妨|无不|无关|无聊|无意|无尘|无菌|无损|无名|无声|无情|无烟|非常|非洲|"
    "非凡|非但|除非|是非|并非偶然|未来|未婚|未必|未免|没收|没落|淹没|沉没|埋没|出没|没准|"
    "差别|区别|分别|特别|级别|类别|性别|识别|辨别|告别|个别|别人|别的|别墅|别名|离别|鉴别|别处|别针|别样|国别|派别|"
    "别致|道别|送别|惜别|别称|别开生面|别具|是否|能否|可否|与否|否则|否决|"
    "莫斯科|莫名|莫里斯|莫扎特|莫妮卡|莫尼卡|莫桑比克|莫非|莫大|莫过于|阿莫|科莫|毋庸|毋宁|(.)不\\1|有没有|"
    "(.)没\\2|免费|免税|"
    "不超过|不到|不少于|不低于|不高于|不大于|不小于|不多于|不晚于|不迟于|不早于|不得超过|不得低于|不能超过|"
    "不要超过|缺一不可|必不可少|才|不见不散|不好意思|没关系|没事|没问题|没错|没什么|不用谢|不谢"
)
_STRICT = re.compile(
    "不|没|未|勿|别(?=[让把忘再管说去来想动碰打开关用做走看吃喝买卖在对给跟和随忙急怕着太这那提听叫])|甭|莫|毋|"
    "休想|严禁|禁止|谢绝|绝非|并非|无法|决非|[无非](?=[\u4e00-\u9fff])|没有|从未|毫无|否认|否"
)
_SOFT_TARGET = re.compile(
    "[不没无未非勿别禁免拒缺否莫甭毋失难绝弗]|除了|除外|以外|之外|之前|前|避免|防止|以免|忘|仅|罕|极少|很少|甚少|"
    "少|几乎|停止|放弃|取消|才|直到|只|独自|裸|空|光着|讨厌|反对|错"
)
_PROHIBITION = re.compile(
    "请勿|切勿|勿|不要|不得|不许|不准|严禁|禁止|不可以|不能|别(?=[让把再管说去来想动碰打开关用做走看吃])"
)
# An English word whose negation Chinese may say with its opposite.
_OPPOSITES = [
    (re.compile(rf"\b(?:{words})\b", re.IGNORECASE), re.compile(signs))
    for words, signs in (
        ("left|available|vacant", "客满|满员|售罄|卖完|卖光|一空"),
        ("free", "有人|占|忙|收费|付费"),
        ("open(?:ed)?", "关|闭|锁|封"),
        ("clos\\w+|shut", "开|敞"),
        ("on", "关|停|熄"),
        ("off", "开"),
        ("work\\w*|run\\w*|function\\w*|operat\\w+", "坏|停|故障|失灵|瘫"),
        ("far|away", "近|附近|旁"),
        ("eas\\w+|simple", "难"),
        ("difficult|hard|complicated", "易|简单|轻松"),
        ("remember|recall", "忘"),
        ("forget", "(?<!忘)记|务必"),
        ("hesitate", "随时|尽管|欢迎|放心|大胆"),
        ("like|love|enjoy", "讨厌|厌|反感"),
        ("cheap", "贵"),
        ("expensive", "便宜|廉"),
        ("many|much|often|common|frequent\\w*", "少|罕|偶"),
        ("empty", "有|满"),
        ("same|alike", "异|各"),
        ("alone", "一起|陪|同"),
        ("wait", "迫|急|马上"),
        ("long", "快|短|马上|即"),
        ("sure|certain", "疑|也许|可能"),
        ("true", "假|谎|错"),
        ("correct|right", "错|误"),
        ("well|good|great", "差|病|糟|坏|欠"),
        ("alive", "死"),
        ("stay|remain", "走|离"),
        ("heavy", "轻"),
        ("light", "重"),
        ("safe", "危|险"),
        ("clean", "脏"),
        ("full", "空|余"),
        ("late", "准时|早|按时|及时"),
        ("early", "晚|迟"),
        ("doubt", "肯定|一定|必|确"),
        ("agree", "反对"),
        ("allow\\w*|permit\\w*|let", "禁"),
        ("accept\\w*", "拒"),
        ("succeed\\w*", "败"),
        ("win|won", "输"),
        ("exist\\w*|present|there", "缺"),
        ("worry|afraid", "放心"),
        ("move|budge", "静|停|呆|待"),
        ("awake", "睡"),
        ("asleep", "醒"),
        ("big|large", "小"),
        ("small", "大"),
        ("strong", "弱"),
        ("busy", "空|闲"),
        ("old", "年轻|新"),
        ("young", "老"),
        ("tall|high", "矮|低"),
        ("low|short", "高|长"),
        ("fast|quick\\w*", "慢"),
        ("slow", "快"),
        ("warm|hot", "冷|凉"),
        ("cold", "热|暖"),
        ("wet", "干"),
        ("dry", "湿|潮"),
        ("wait|delay", "立即|马上|立刻"),
        ("look\\w*", "漏"),
        ("smoke|smoking", "戒"),
        ("guilty", "清白"),
        ("important", "次要"),
        ("matter", "无所谓"),
        ("guest|enough", "欠|太"),
        ("sleep", "失眠|醒|熬"),
        ("arrive\\w*|come|came", "缺席|尚|迟"),
        ("miss", "记得|抓住|务必"),
        ("lose", "保管|保"),
    )
]
# Negations in words that are masked elsewhere, and words that are negative without a negation.
_OTHERWISE = re.compile(
    "难以|难于|很难|拒绝|缺乏|缺少|缺|失败|避免|防止|免得|以免|除了|除外|以外|之外|"
    "几乎|很少|极少|甚少|罕|鲜|仅|谢绝|忘|绝|只有|只能|不足|不满|不安|不明|不便|不良|"
    "不同|不一样|不如|不错|不等|不定|不变|不适|来不及|无人|无关|无需|无限|无意|无名|"
    "无私|不得(?!不)|不能超过|不要超过|不少于|不超过|不到|不迟|不早|不晚|不低|不高|"
    "不大|不小|不多|不得不|不停|不断|不顾|不料|不慎|不幸|不满|没什么|没事|没错|没问题|"
    "没关系|无论|不管|不论|无疑|未必|未免|莫|免|讨厌|无|而非|有误|错误"
)
# Words with a negative sign that say nothing negative at all.
_NEUTRAL = re.compile(
    "不锈|不丹|不仅|不但|不光|不只|不单|不管|不论|不过|不断|不久|无线|无论|无数|无限|无锡|无人机|无花果|非常|非洲|非凡|非但|"
    "莫斯科|莫里斯|莫扎特|莫妮卡|莫尼卡|莫桑比克|免费|免税|免疫|未来|缺点|罕见病|保险"
)
_CLAUSE = re.compile(
    r"[,;:]|\b(?:because|if|when|before|after|but|so|which|who|until|while|although|since|unless|that)\b"
)


def check_negation(source: str, translation: str) -> Verdict:
    """Judge the negation of a translation; markup has been blanked in both texts."""
    left, right = sentences(source), chinese_sentences(translation)
    pairs = list(zip(left, right)) if len(left) == len(right) else [(source, translation)]
    slots = [slot for pair in pairs for slot in _judge(*pair)]
    applies = bool(_NEGATIVE.search(source) or slots or has_negative_concept(source))
    applies |= bool(_STRICT.search(_MASK.sub("", translation)))
    return Verdict.of(slots, applies=applies)


def _certain(source: str, translation: str) -> list[Slot]:
    """What a rule or an opposite says; nothing vaguer is asked then."""
    return [*broken_constructions("negation", source, translation), *reversed_concept_slots(source, translation)]


def _judge(source: str, translation: str) -> Iterator[Slot]:
    if certain := _certain(source, translation):
        yield from certain
        return
    masked = _MASK.sub("", translation)
    plain = _EMPTY.sub(" ", source)
    negations = _NEGATIVE.findall(plain)
    if negations:
        moved = list(_moved(plain, masked))
        yield from moved or _lost(source, plain, negations, translation, masked)
    elif plain == source:
        yield from _added(source, masked)


_ENGLISH_BORDER = re.compile(
    r"[,;:](?=\s)\s*(?:and|but|or|so|then)?\b|\s(?:and|but)\s(?=(?:does|do|did|is|are|was|were|has|have|will|can|cannot|I|he|"
    r"she|it|they|we|you)\b)|\s(?=(?:if|when|because|although|unless)\b)",
    re.IGNORECASE,
)
_CONDITION = re.compile("^(?:如果|如|若|假如|当|因为|由于|虽然|尽管|除非|一旦)|(?:时|时候|前|后|的话)$")
_SUBORDINATE = re.compile(r"\s*(?:if|when|because|although)\b", re.IGNORECASE)


def _moved(plain: str, masked: str) -> Iterator[Slot]:
    """Negations of one clause that stand in the other, where both texts have two clauses.

    English may say the condition last, Chinese says it first.
    """
    left = [clause for clause in _ENGLISH_BORDER.split(plain) if clause and clause.strip(" .!")]
    right = [clause for clause in re.split("[，；：,;]", masked) if clause.strip("。！ ")]
    if len(left) != 2 or len(right) != 2 or re.search(r"(?i)\bunless\b", plain):
        return
    if _SUBORDINATE.match(left[1]) and _CONDITION.search(right[0]):
        left.reverse()
    wanted = [bool(_NEGATIVE.search(clause)) for clause in left]
    found = [bool(_STRICT.search(clause)) for clause in right]
    if not (all(wanted) or wanted == found[::-1]) or wanted == found:
        return
    for english, chinese, negative, has in zip(left, right, wanted, found):
        if negative and not has and not _said_otherwise(english, chinese):
            yield Slot(_NEGATIVE.search(english)[0], None, f"the negation is not where it belongs: {chinese.strip()}")


def _lost(source: str, plain: str, negations: list[str], translation: str, masked: str) -> Iterator[Slot]:
    if re.search(r"\?\s*$", source) and re.search("[吗吧呢？?]", translation) and len(negations) == 1 and not masked:
        return
    if any(re.search(rf"(?i)\b{re.escape(word)}\b", translation) for word in negations):
        return  # kept in English: NOT NULL
    have = len(_STRICT.findall(masked))
    if have == 0 and not _said_otherwise(source, translation):
        yield Slot(negations[0], None, "the negation is lost")
    elif 0 < have < len(negations) and _in_two_clauses(plain) and not _said_otherwise(source, translation):
        enough = len(_SOFT_TARGET.findall(masked)) >= len(negations)
        if not enough:
            yield Slot(", ".join(negations), None, f"{len(negations)} negations became {have}")


def _said_otherwise(source: str, translation: str) -> bool:
    """Whether Chinese says the negation with another word: an opposite, 才, 难以, 除了."""
    translation = _NEUTRAL.sub("", translation)
    if _OTHERWISE.search(translation):
        return True
    translation = translation.replace("开关", "")
    return any(word.search(source) and sign.search(translation) for word, sign in _OPPOSITES)


def _in_two_clauses(text: str) -> bool:
    """Whether two negations have a clause's border between them, so that one 不 cannot do for both."""
    places = [match.start() for match in _NEGATIVE.finditer(text)]
    return any(_CLAUSE.search(text, start, end) for start, end in itertools.pairwise(places))


def _added(source: str, masked: str) -> Iterator[Slot]:
    if source.rstrip().endswith("?"):
        return
    if (prohibition := _PROHIBITION.search(masked)) and not _PROHIBITING.search(source):
        yield Slot("", prohibition[0], "a negation that the source has not")
    elif (found := re.search("不|没有|没|未|并非|无法", masked)) and not _SOFT.search(source):
        yield Slot("", masked[found.start() : found.start() + 4], "a negation that the source has not")
