"""Sentences composed of parts: subject, verb, object, time and place, mood, polarity, subordinate clauses.

Patterns in files are what people write in these domains; this module adds the combinations no list holds. A sentence's
`frame` (which parts it was composed of) decides whether training may see it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from training.grammar.copied import code
from training.grammar.lexicon import Word, lexicon
from training.grammar.people import held_out_name, person
from training.grammar.quantities import QUANTITIES
from training.grammar.templates import Sentence, Slot, is_drawn, tidy_english


@dataclass(frozen=True)
class Phrase:
    """A piece of sentence in both languages. `person` is "i", "we" (plural or you) or "he" (third singular)."""

    english: str
    chinese: str
    frame: str
    slots: tuple[Slot, ...] = ()
    person: str = "he"


@dataclass(frozen=True)
class Mood:
    """How a verb stands in its clause: `english(subject, forms)` and the Chinese before and after the verb."""

    name: str
    english: Callable[[Phrase, dict[str, str]], str]
    before: str
    after: str = ""
    negative: bool = False
    tense: str = "any"


def _be(subject: Phrase, past: bool = False) -> str:
    if past:
        return "were" if subject.person == "we" else "was"
    return {"i": "am", "we": "are", "he": "is"}[subject.person]


def _does(subject: Phrase) -> str:
    return "does" if subject.person == "he" else "do"


def _has(subject: Phrase) -> str:
    return "has" if subject.person == "he" else "have"


def _present(subject: Phrase, forms: dict[str, str]) -> str:
    return forms["s"] if subject.person == "he" else forms[""]


def _modal(text: str) -> Callable[[Phrase, dict[str, str]], str]:
    return lambda _, forms: f"{text} {forms['']}"


def _has_to(subject: Phrase, forms: dict[str, str]) -> str:
    return f"{_has(subject)} to {forms['']}"


def _wants(negative: bool) -> Callable[[Phrase, dict[str, str]], str]:
    def english(subject: Phrase, forms: dict[str, str]) -> str:
        if negative:
            return f"{_does(subject)} not want to {forms['']}"
        return f"{'wants' if subject.person == 'he' else 'want'} to {forms['']}"

    return english


MOODS = (
    Mood("past", lambda s, f: f["past"], "", "了", tense="past"),
    Mood("past-not", lambda s, f: f"did not {f['']}", "没有", "", True, "past"),
    Mood("past-nt", lambda s, f: f"didn't {f['']}", "没有", "", True, "past"),
    Mood("never-past", lambda s, f: f"{_has(s)} never {f['pp']}", "从来没有", "过", True, "none"),
    Mood("habit", _present, "", "", tense="often"),
    Mood("habit-not", lambda s, f: f"{_does(s)} not {f['']}", "不", "", True, "often"),
    Mood("habit-nt", lambda s, f: f"{_does(s)}n't {f['']}", "不", "", True, "often"),
    Mood("habit-never", lambda s, f: f"never {_present(s, f)}", "从不", "", True, "none"),
    Mood("habit-always", lambda s, f: f"always {_present(s, f)}", "总是", "", tense="none"),
    Mood("will", _modal("will"), "会", tense="future"),
    Mood("will-not", _modal("will not"), "不会", "", True, "future"),
    Mood("wont", _modal("won't"), "不会", "", True, "future"),
    Mood("going-to", lambda s, f: f"{_be(s)} going to {f['']}", "打算", tense="future"),
    Mood("not-going-to", lambda s, f: f"{_be(s)} not going to {f['']}", "不打算", "", True, "future"),
    Mood("must", _modal("must"), "必须", tense="future"),
    Mood("has-to", _has_to, "必须", tense="future"),
    Mood("must-not", _modal("must not"), "不得", "", True, "future"),
    Mood("need-not", lambda s, f: f"{_does(s)} not need to {f['']}", "不需要", "", True, "future"),
    Mood("need", lambda s, f: f"{'needs' if s.person == 'he' else 'need'} to {f['']}", "需要", tense="future"),
    Mood("should", _modal("should"), "应该", tense="future"),
    Mood("should-not", _modal("should not"), "不应该", "", True, "future"),
    Mood("can", _modal("can"), "可以", tense="future"),
    Mood("cannot", _modal("cannot"), "不能", "", True, "future"),
    Mood("cant", _modal("can't"), "不能", "", True, "future"),
    Mood("could-not", _modal("could not"), "没能", "", True, "past"),
    Mood("want", _wants(False), "想", tense="future"),
    Mood("want-not", _wants(True), "不想", "", True, "future"),
    Mood("perfect", lambda s, f: f"{_has(s)} already {f['pp']}", "已经", "了", tense="none"),
    Mood("perfect-not", lambda s, f: f"{_has(s)} not {f['pp']}", "还没有", "", True, "none"),
    Mood("progressive", lambda s, f: f"{_be(s)} {f['ing']}", "正在", tense="now"),
    Mood("progressive-not", lambda s, f: f"{_be(s)} not {f['ing']}", "没有在", "", True, "now"),
    Mood("no-longer", lambda s, f: f"no longer {_present(s, f)}", "不再", "", True, "none"),
    Mood("refuse", lambda s, f: f"refused to {f['']}", "拒绝", "", False, "past"),
    Mood("forgot", lambda s, f: f"forgot to {f['']}", "忘了", "", False, "past"),
)
_NOTHING = Phrase("", "", "")
_OBJECTS = {
    "act": ("part", "part", "device", "tool"),
    "paper": ("document",),
    "trade": ("product",),
    "handle": ("object",),
}
_PRONOUNS = (
    Phrase("I", "我", "pron", person="i"), Phrase("you", "你", "pron", person="we"), Phrase("he", "他", "pron"),
    Phrase("she", "她", "pron"), Phrase("we", "我们", "pron", person="we"),
    Phrase("they", "他们", "pron", person="we"),
)  # fmt: skip
_OWNERS = (("my", "我的"), ("your", "你的"), ("his", "他的"), ("her", "她的"), ("our", "我们的"), ("their", "他们的"))


def _pick(rng: Random, kind: str) -> Word:
    return rng.choice(lexicon()[kind])


def _number(rng: Random, kind: str) -> tuple[str, str, Slot]:
    english, chinese = QUANTITIES[kind](rng)
    return english, chinese, Slot(kind, "number", english, chinese)


class Composer:
    """Composes sentences from one random source; with `held_out_names`, persons are held-out full names."""

    def __init__(self, rng: Random, held_out_names: bool = False) -> None:
        self.rng = rng
        self._held_out_names = held_out_names

    def subject(self) -> Phrase:
        rng, draw = self.rng, self.rng.random()
        if draw < 0.45:
            word = (held_out_name if self._held_out_names else person)(rng)
            slot = Slot("person", "name", word.english[""], word.chinese[""])
            return Phrase(word.english[""], word.chinese[""], "person", (slot,))
        if draw < 0.65:
            return rng.choice(_PRONOUNS)
        if draw < 0.85:
            role = _pick(rng, "role")
            return Phrase(f"the {role.english['']}", role.chinese[""], "role")
        relative = _pick(rng, "relative")
        return Phrase(relative.english[""], relative.chinese[""], "relative")

    def thing(self, kind: str) -> Phrase:
        """A noun phrase of this kind of noun."""
        rng, noun = self.rng, _pick(self.rng, kind)
        english, chinese = noun.english, noun.chinese
        form = rng.choices(["the", "a", "id", "count", "figure", "own", "adj", "this", "code"],
                           [30, 12, 8, 10, 8, 10, 12, 6, 4])[0]  # fmt: skip
        if form == "a":
            return Phrase(english["a"], f"一{chinese['cl']}{chinese['']}", form)
        if form == "id":
            figure, _, slot = _number(rng, "id")
            return Phrase(f"{english['']} {figure}", f"{figure}号{chinese['']}", form, (slot,))
        if form in ("count", "figure"):
            en, zh, slot = _number(rng, "count" if form == "count" else "small")
            return Phrase(f"{en} {english['pl']}", f"{zh}{chinese['cl']}{chinese['']}", form, (slot,))
        if form == "own":
            owner, chinese_owner = rng.choice(_OWNERS)
            return Phrase(f"{owner} {english['']}", chinese_owner + chinese[""], form)
        if form == "adj":
            adjective = _pick(rng, "state" if kind in ("part", "device", "tool") else "quality")
            return Phrase(f"the {adjective.english['']} {english['']}", adjective.chinese["attr"] + chinese[""], form)
        if form == "this":
            return Phrase(f"this {english['']}", f"这{chinese['cl']}{chinese['']}", form)
        if form == "code":
            text = code(rng)[0]
            slot = Slot("code", "copied", text, text)
            return Phrase(f"{english['']} {text}", f"{chinese['']}{text}", form, (slot,))
        return Phrase(f"the {english['']}", chinese[""], "the")

    def predicate(self) -> tuple[Word, Phrase]:
        """A verb and its object; the object of an intransitive activity is empty."""
        kind = self.rng.choices(["act", "paper", "trade", "handle", "activity"], [35, 15, 12, 20, 18])[0]
        verb = _pick(self.rng, kind)
        if kind == "activity":
            return verb, Phrase("", "", "activity")
        return verb, self.thing(self.rng.choice(_OBJECTS[kind]))

    def time(self, tense: str) -> Phrase:
        """When: a phrase that suits the tense, or nothing."""
        rng = self.rng
        if tense == "none" or rng.random() < 0.45:
            return _NOTHING
        if tense == "now":
            return Phrase("now", "现在", "now")
        if tense == "often":
            word = _pick(rng, "often")
            return Phrase(word.english[""], word.chinese[""], "often")
        kind = rng.choices(["word", "date", "day", "time", "weekday"], [50, 14, 14, 14, 8])[0]
        if kind == "word":
            word = _pick(rng, "past" if tense == "past" else "future")
            return Phrase(word.english[""], word.chinese[""], kind)
        if kind == "weekday":
            word = _pick(rng, "weekday")
            slot = Slot("weekday", "name", word.english[""], word.chinese[""])
            return Phrase(f"on {word.english['']}", f"在{word.chinese['']}", kind, (slot,))
        english, chinese, slot = _number(rng, kind)
        preposition = "at" if kind == "time" else "on"
        return Phrase(f"{preposition} {english}", f"在{chinese}", kind, (slot,))

    def place(self) -> Phrase:
        rng, draw = self.rng, self.rng.random()
        if draw < 0.7:
            return _NOTHING
        if draw < 0.8:
            city = _pick(rng, "city")
            slot = Slot("city", "name", city.english[""], city.chinese[""])
            return Phrase(f"in {city.english['']}", f"在{city.chinese['']}", "city", (slot,))
        kind, preposition = ("room", "in") if draw < 0.9 else ("building", "at")
        word = _pick(rng, kind)
        return Phrase(f"{preposition} the {word.english['']}", f"在{word.chinese['']}", kind)

    def clause(self, simple: bool = False) -> tuple[Phrase, bool]:
        """A statement without its full stop, and whether it is negative."""
        subject, (verb, thing) = self.subject(), self.predicate()
        mood = self.rng.choice(MOODS)
        time = _NOTHING if simple else self.time(mood.tense)
        place = _NOTHING if simple or thing.frame == "activity" else self.place()
        said = mood.english(subject, verb.english)
        english = _join(subject.english, said, thing.english, place.english, time.english)
        adverbs = time.chinese + place.chinese
        if adverbs and mood.before in ("从不", "总是", "不再", "已经"):
            chinese = f"{subject.chinese}{mood.before}{adverbs}{verb.chinese['']}{mood.after}{thing.chinese}"
        else:
            chinese = subject.chinese + adverbs + _verb_phrase(mood, verb, thing)
        parts = (subject, thing, place, time)
        frame = "/".join([mood.name, *(part.frame for part in parts)])
        return Phrase(english, chinese, frame, tuple(s for p in parts for s in p.slots)), mood.negative

    def statement(self) -> Sentence:
        phrase, negative = self.clause()
        return _sentence(phrase, "。", negative)

    def imperative(self) -> Sentence:
        rng, (verb, thing) = self.rng, self.predicate()
        opening, chinese, negative = rng.choice(
            [("", "", False), ("please", "请", False), ("do not", "请勿", True), ("don't", "不要", True),
             ("never", "切勿", True), ("always", "务必", False), ("let us", "让我们", False),
             ("you must not", "你不得", True), ("remember to", "记得", False), ("do not forget to", "不要忘记", True)]
        )  # fmt: skip
        english = _join(opening, verb.english[""], thing.english)
        time = self.time("future") if rng.random() < 0.4 else _NOTHING
        english = _join(english, time.english)
        text = f"{chinese}{time.chinese}{verb.chinese['']}{thing.chinese}"
        frame = f"imperative/{opening}/{thing.frame}/{time.frame}"
        return _sentence(Phrase(english, text, frame, thing.slots + time.slots), "。", negative)

    def passive(self) -> Sentence:
        rng, subject = self.rng, self.subject()
        kind = rng.choice(["act", "paper", "trade"])
        verb, noun = _pick(rng, kind), _pick(rng, rng.choice(_OBJECTS[kind]))
        be, chinese, negative = rng.choice(
            [("was", "被", False), ("was not", "没有被", True), ("will be", "将被", False),
             ("will not be", "不会被", True), ("has been", "已被", False), ("has not been", "还没有被", True)]
        )  # fmt: skip
        by = {"I": "me", "he": "him", "she": "her", "we": "us", "they": "them"}.get(subject.english, subject.english)
        agent = rng.random() < 0.6
        english = _join(f"the {noun.english['']}", be, verb.english["pp"], f"by {by}" if agent else "")
        text = f"{noun.chinese['']}{chinese}{subject.chinese if agent else ''}{verb.chinese['']}"
        text += "了" if be == "was" else ""
        frame = f"passive/{be}/{subject.frame if agent else ''}"
        return _sentence(Phrase(english, text, frame, subject.slots if agent else ()), "。", negative)

    def question(self) -> Sentence:
        rng, subject, (verb, thing) = self.rng, self.subject(), self.predicate()
        times = {
            "future": self.time("future") if rng.random() < 0.4 else _NOTHING,
            "past": self.time("past") if rng.random() < 0.4 else _NOTHING,
            "": _NOTHING,
        }
        name, english, chinese, tense = rng.choice(_QUESTIONS)
        when = times[tense]
        parts = {"s": subject, "o": thing, "t": when}
        words = {"v": verb.english[""], "past": verb.english["past"], "do": _does(subject)}
        english = english.format(**words, **{label: part.english for label, part in parts.items()})
        chinese = chinese.format(v=verb.chinese[""], **{label: part.chinese for label, part in parts.items()})
        slots = (() if name.startswith("who") else subject.slots) + thing.slots + when.slots
        frame = f"question/{name}/{subject.frame}/{thing.frame}/{when.frame}"
        english = _join(*english.split(), when.english)
        return _sentence(Phrase(english, chinese, frame, slots), "？", name in ("didnt", "why-not"))

    def complex(self) -> Sentence:
        """Two clauses joined by a conjunction."""
        (first, first_negative), (second, second_negative) = self.clause(), self.clause(simple=True)
        name, english, chinese = self.rng.choice(_CONJUNCTIONS)
        both = "{b}" in english
        phrase = Phrase(
            english.format(a=first.english, b=second.english),
            chinese.format(a=first.chinese, b=second.chinese),
            f"{name}/{first.frame.split('/')[0]}/{second.frame}",
            first.slots + (second.slots if both else ()),
        )
        return _sentence(phrase, "。", first_negative or (both and second_negative))

    def describe(self) -> Sentence:
        """Something is, or is not, in a state; somebody has a feeling."""
        rng = self.rng
        if rng.random() < 0.3:
            subject, adjective = self.subject(), _pick(rng, "feeling")
        else:
            kind, adjectives = rng.choice(
                [
                    ("part", "state"),
                    ("device", "state"),
                    ("object", "quality"),
                    ("food", "quality"),
                    ("room", "quality"),
                ]
            )
            noun, adjective = _pick(rng, kind), _pick(rng, adjectives)
            figure, _, slot = _number(rng, "id")
            subject = rng.choice(
                [Phrase(f"the {noun.english['']}", noun.chinese[""], kind),
                 Phrase(f"this {noun.english['']}", f"这{noun.chinese['cl']}{noun.chinese['']}", kind),
                 Phrase(f"{noun.english['']} {figure}", f"{figure}号{noun.chinese['']}", kind, (slot,))]
            )  # fmt: skip
        past, negative = rng.random() < 0.25, rng.random() < 0.45
        be, short = _be(subject, past), rng.random() < 0.4
        verb = f"{be}n't" if negative and short and be != "am" else f"{be} not" if negative else be
        form = adjective.chinese["neg"] if negative else adjective.chinese[""]
        adverb = rng.choice(["", "", "", "now", "still"]) if not past else ""
        said = {"": "", "now": "现在", "still": "仍然"}[adverb]
        english = _join(subject.english, verb, "still" if adverb == "still" else "", adjective.english[""],
                        "now" if adverb == "now" else "")  # fmt: skip
        if past:
            said = "当时"
        frame = f"describe/{subject.frame}/{be}/{negative}/{adverb}"
        return _sentence(Phrase(english, f"{subject.chinese}{said}{form}", frame, subject.slots), "。", negative)

    def compose(self) -> Sentence:
        """One sentence of any of the forms above."""
        make = self.rng.choices(
            [self.statement, self.imperative, self.passive, self.question, self.complex, self.describe],
            [30, 14, 8, 18, 18, 12],
        )[0]
        return make()


_QUESTIONS = (
    ("did", "did {s} {v} {o}", "{s}{t}{v}了{o}吗", "past"),
    ("didnt", "didn't {s} {v} {o}", "{s}{t}没有{v}{o}吗", "past"),
    ("will", "will {s} {v} {o}", "{s}{t}会{v}{o}吗", "future"),
    ("can", "can {s} {v} {o}", "{s}{t}可以{v}{o}吗", "future"),
    ("should", "should {s} {v} {o}", "{s}{t}应该{v}{o}吗", "future"),
    ("do", "{do} {s} want to {v} {o}", "{s}{t}想{v}{o}吗", "future"),
    ("why-did", "why did {s} {v} {o}", "{s}{t}为什么{v}了{o}", "past"),
    ("why-not", "why did {s} not {v} {o}", "{s}{t}为什么没有{v}{o}", "past"),
    ("when-did", "when did {s} {v} {o}", "{s}什么时候{v}了{o}", ""),
    ("when-will", "when will {s} {v} {o}", "{s}什么时候会{v}{o}", ""),
    ("where", "where will {s} {v} {o}", "{s}{t}会在哪里{v}{o}", "future"),
    ("how", "how can {s} {v} {o}", "{s}怎样才能{v}{o}", ""),
    ("who", "who {past} {o}", "谁{t}{v}了{o}", "past"),
    ("who-will", "who will {v} {o}", "谁{t}会{v}{o}", "future"),
)
_CONJUNCTIONS = (
    ("if", "if {b}, {a}", "如果{b}，{a}"),
    ("if-after", "{a} if {b}", "如果{b}，{a}"),
    ("because", "{a} because {b}", "{a}，因为{b}"),
    ("although", "although {b}, {a}", "虽然{b}，但{a}"),
    ("and", "{a}, and {b}", "{a}，{b}"),
    ("but", "{a}, but {b}", "{a}，但{b}"),
    ("said", "{b}, and {a}", "{b}，{a}"),
    ("when", "when {b}, {a}", "当{b}时，{a}"),
    ("think", "I think that {a}", "我认为{a}"),
    ("know", "I know that {a}", "我知道{a}"),
    ("hope", "we hope that {a}", "我们希望{a}"),
    ("told", "they said that {a}", "他们说{a}"),
    ("unless", "unless {b}, {a}", "除非{b}，否则{a}"),
)


def _join(*parts: str) -> str:
    return " ".join(part for part in parts if part)


def _verb_phrase(mood: Mood, verb: Word, thing: Phrase) -> str:
    return f"{mood.before}{verb.chinese['']}{mood.after}{thing.chinese}"


def _sentence(phrase: Phrase, stop: str, negative: bool) -> Sentence:
    mark = "?" if stop == "？" else "."
    english = phrase.english
    tags = ("neg",) if negative else ()
    return Sentence(tidy_english(english + mark), phrase.chinese + stop, tags, phrase.slots, f"clause:{phrase.frame}")


def held_out(sentence: Sentence) -> bool:
    """Whether a composed sentence's frame is kept out of training: one in twelve, by a hash of the frame."""
    return is_drawn(sentence.template, one_in=12)
