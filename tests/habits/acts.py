"""Acts: rude replies to a person as what they do, in every state and with any words around it."""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Literal, NamedTuple

from agiraph.testing import Call, call


class Sentences(NamedTuple):
    """What a person and a model say in one language."""

    request: str
    more: str
    bare: str
    """A whole message: a word, or the number of an option."""
    fitting: str
    stopped: str
    tomorrow: str
    nothing: str


LANGUAGES = {
    "English": Sentences(
        "Please make it shorter", "and use euros", "Yes", "I have your message.",
        "I have stopped it.", "I'll do it tomorrow.", "There is nothing to do.",
    ),
    "German": Sentences(
        "Mach es bitte kürzer", "und nimm Euro", "2", "Ich habe deine Nachricht.",
        "Ich habe es angehalten.", "Das mache ich morgen.", "Da ist nichts zu tun.",
    ),
    "French": Sentences(
        "Raccourcis-le, s'il te plaît", "et prends des euros", "Oui", "J'ai votre message.",
        "Je l'ai arrêté.", "Je le ferai demain.", "Il n'y a rien à faire.",
    ),
    "Spanish": Sentences(
        "Hazlo más corto, por favor", "y usa euros", "Sí", "Tengo tu mensaje.",
        "Lo he detenido.", "Lo haré mañana.", "No hay nada que hacer.",
    ),
    "Chinese": Sentences(
        "请把它改短一点", "用欧元", "好的", "收到你的消息。",
        "我已经停下来了。", "我明天做。", "没有什么要做的。",
    ),
    "Arabic": Sentences(
        "اجعله أقصر من فضلك", "واستخدم اليورو", "نعم", "وصلتني رسالتك.", "لقد أوقفته.",
        "سأفعل ذلك غدًا.", "لا يوجد ما يجب فعله.",
    ),
    "Hindi": Sentences(
        "कृपया इसे छोटा करें", "और यूरो का प्रयोग करें", "2", "आपका संदेश मिल गया।", "मैंने इसे रोक दिया है।",
        "मैं इसे कल करूँगा।", "करने को कुछ नहीं है।",
    ),
    "Japanese": Sentences(
        "もっと短くしてください", "ユーロを使って", "はい", "メッセージを受け取りました。",
        "止めました。", "明日やります。", "することはありません。",
    ),
    "Russian": Sentences(
        "Сделай покороче", "и в евро", "Да", "Я получил сообщение.", "Я остановил это.",
        "Сделаю завтра.", "Делать нечего.",
    ),
    "Portuguese": Sentences(
        "Encurte isso, por favor", "e use euros", "1.", "Recebi a sua mensagem.",
        "Eu parei isso.", "Farei isso amanhã.", "Não há nada a fazer.",
    ),
}  # fmt: skip

Wording = Literal["fitting", "stopped", "tomorrow", "nothing", ""]
WORDINGS: tuple[Wording, ...] = ("fitting", "stopped", "tomorrow", "nothing", "")
"""What the reply says beside its calls: most contradict what it does; empty: no words."""


class State(StrEnum):
    """How things stand when the person writes."""

    IDLE = "no work"
    RUNS = "own work runs"
    ENDS = "own work ends before the reply"
    UNREAD = "own work has not read an earlier message"
    CHILD = "own work waits for a teammate"
    ASKS = "own work has asked the person"
    ASKS_TWICE = "own work has asked two questions"
    TWO_ASK = "own work has asked, then a teammate"
    BOB_ASKS = "a teammate has asked"
    BOB_RUNS = "a teammate works"
    APPROVAL = "own work waits for approval"
    ENDED = "work has ended"
    COMPLETED = "the team is completed"
    STOPPED = "the person has stopped the team, which had asked"
    PAUSED = "the team is paused"


class Ref(StrEnum):
    """What an argument names. The run knows the id; what a state lacks is an id of nothing."""

    OWN = "own work"
    BOB = "a teammate's name"
    BOBS = "a teammate's work"
    OTHERS = "another team's work"
    FIRST = "own first question"
    LAST = "own last question"
    BOB_ASKED = "a teammate's question"
    CARD = "a request for approval"
    OTHER_ASKED = "another team's question"
    MEMORY = "a memory"
    INSIGHT = "an insight"
    MADE_UP = "a made-up id"
    REQUEST = "the first part of the message"
    MORE = "the second part of the message"
    WHOLE = "all of the message"
    ALIEN = "words that nobody said"


Messages = Literal["one", "one bare word", "one long", "two at once", "another meanwhile"]
MESSAGES: tuple[Messages, ...] = (
    "one",
    "one bare word",
    "two at once",
    "one",
    "another meanwhile",
    "one long",
    "one",
)

Part = dict[str, Any]
Decision = tuple[Part, ...] | str
"""The answer to the question what the message asks for: its parts, or a text that is no answer."""
ERROR = "(error)"
"""Stands for an error of the model server."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Act:
    """What a reply does: calls, and what it answers if none of them has decided."""

    calls: tuple[Call, ...] = ()
    decision: Decision | None = None
    """None: some runs give one of `FALLBACKS`, others another."""
    repeats: bool = False
    """Whether a refused call is made again and again; if not, words follow a refusal."""
    fails: bool = False
    """Whether the model server has an error instead of the reply."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One run: a state, the messages of the person, and the reply to them."""

    state: State
    act: str
    wording: Wording
    language: str
    messages: Messages
    decision: Decision

    def __str__(self) -> str:
        words = self.wording or "no words"
        return f"{self.state} | {self.act} | {words} | {self.language} | {self.messages}"


def part(what: str, id: str = "", words: str = "") -> Part:
    return {"what": what, "id": id, "words": words}


FALLBACKS: tuple[Decision, ...] = ((part("chat"),), (part("new_work"),), "I have said it already.")

_WORK = (Ref.OWN, Ref.BOB, Ref.BOBS, Ref.OTHERS, Ref.MADE_UP, "")
_QUESTIONS = (Ref.FIRST, Ref.LAST, Ref.BOB_ASKED, Ref.CARD, Ref.OTHER_ASKED, Ref.MADE_UP, "")
_WORDS = (Ref.REQUEST, Ref.WHOLE, Ref.ALIEN, "")
_NO_WORK = call("no_work_needed")
_REMEMBER = call("remember", content="They like it short.")
_PROMISE = call("promise", what="Make it shorter", when="in 2 hours")
_OWN_TASK = "Rewrite the text with fewer words."


def _calls() -> Iterator[Call]:
    """Return calls that decide something, with right and with wrong arguments."""
    yield from (call("tell", node_id=id) for id in _WORK)
    yield from (call("tell", node_id=id, words=w) for id in (Ref.OWN, Ref.BOB) for w in _WORDS)
    yield from (call("tell"), call("tell", node_id=7), call("tell", node_id=["bob"]))
    yield from (call("stop_work", node_id=id) for id in _WORK)
    yield from (call("stop_work"), call("stop_work", node_id=7))
    yield from (call("answer", question_id=id) for id in _QUESTIONS)
    yield from (call("answer", question_id=id, words=Ref.REQUEST) for id in _QUESTIONS)
    yield from (call("answer"), call("answer", question_id=7), call("answer", words=Ref.ALIEN))
    yield call("answer", question_id=Ref.OWN)
    yield from (call("start_work", task=task) for task in (_OWN_TASK, Ref.WHOLE, Ref.REQUEST, ""))
    yield from (call("start_work"), call("start_work", task=7))
    for id in (Ref.OWN, Ref.BOB, Ref.BOBS, Ref.OTHERS, Ref.MADE_UP):
        yield call("start_work", continues=id)
    yield call("start_work", task=_OWN_TASK, continues=Ref.BOB)
    yield from (_NO_WORK, call("no_work_needed", reason="Nothing to do."))
    yield call("research_start", goal="What does https://example.com say?")
    yield call("research_start", goal="What is known?")
    yield call("research_start")


def _other_calls() -> Iterator[Call]:
    """Return calls that leave open what becomes of the message."""
    yield from (_REMEMBER, call("remember"), call("remember", content=7))
    yield call("add_insight", type="fact", content="Texts are to be short.")
    yield from (call("forget", memory_id=id) for id in (Ref.MEMORY, Ref.INSIGHT, Ref.MADE_UP))
    yield from (call("remove_insight", insight_id=id) for id in (Ref.INSIGHT, Ref.MEMORY))
    yield from (_PROMISE, call("promise", what="x", when="when it suits"), call("promise"))
    yield from (call("TodoWrite", todos=["shorter"]), call("finish", summary="Done."))
    yield from (call("check_board"), call("look_into", what=Ref.BOB), call("search", query="euro"))
    yield Call("tell", raw='{"node_id": "bob"')


PAIRS: tuple[tuple[Call, ...], ...] = (
    (call("tell", node_id=Ref.BOB), call("start_work")),
    (call("tell", node_id=Ref.OWN), call("start_work", task=_OWN_TASK)),
    (call("tell", node_id=Ref.BOB, words=Ref.REQUEST), call("start_work", task=Ref.MORE)),
    (call("tell", node_id=Ref.BOB), call("tell", node_id=Ref.OWN)),
    (call("tell", node_id=Ref.BOB), _NO_WORK),
    (call("answer"), _NO_WORK),
    (call("answer"), call("answer")),
    (call("answer", question_id=Ref.FIRST), call("answer", question_id=Ref.LAST)),
    (call("answer", question_id=Ref.LAST), call("answer", question_id=Ref.BOB_ASKED)),
    (
        call("answer", question_id=Ref.FIRST, words=Ref.REQUEST),
        call("answer", question_id=Ref.LAST, words=Ref.MORE),
    ),
    (
        call("answer", question_id=Ref.LAST, words=Ref.REQUEST),
        call("answer", question_id=Ref.BOB_ASKED, words=Ref.REQUEST),
    ),
    (call("stop_work", node_id=Ref.OWN), call("answer")),
    (call("answer"), call("stop_work", node_id=Ref.OWN)),
    (call("stop_work", node_id=Ref.OWN), call("start_work")),
    (call("stop_work", node_id=Ref.OWN), _NO_WORK),
    (call("stop_work", node_id=Ref.OWN), call("stop_work", node_id=Ref.BOB)),
    (call("stop_work", node_id=Ref.OWN), call("stop_work", node_id=Ref.OWN)),
    (_NO_WORK, call("start_work")),
    (call("start_work"), _NO_WORK),
    (call("start_work"), call("start_work")),
    (call("start_work", task=Ref.REQUEST), call("start_work", task=Ref.MORE)),
    (call("start_work", task=_OWN_TASK), call("start_work", task=_OWN_TASK)),
    (_PROMISE, _NO_WORK),
    (_PROMISE, call("start_work")),
    (_PROMISE, _PROMISE),
    (_REMEMBER, _NO_WORK),
    (_REMEMBER, _REMEMBER, _NO_WORK),
    (_REMEMBER, call("answer"), call("tell", node_id=Ref.OWN), call("start_work")),
    (call("tell", node_id=Ref.MADE_UP), call("start_work")),
    (call("stop_work", node_id=Ref.MADE_UP), _NO_WORK),
)  # fmt: skip

DECISIONS: tuple[Decision, ...] = (
    (part("chat"),),
    *((part("about_work", id),) for id in _WORK),
    (part("about_work", Ref.OWN, Ref.REQUEST),),
    (part("about_work", Ref.BOB, Ref.ALIEN),),
    *((part("new_work", words=words),) for words in _WORDS),
    (part("new_work", Ref.BOB),),
    *((part("stop", id),) for id in _WORK),
    *((part("answer", id),) for id in _QUESTIONS),
    (part("answer", words=Ref.REQUEST),),
    (part("answer", words=Ref.ALIEN),),
    (part("answer"), part("answer")),
    (part("answer", Ref.FIRST), part("answer", Ref.LAST)),
    (part("answer", Ref.LAST), part("answer", Ref.BOB_ASKED)),
    (part("answer", Ref.FIRST, Ref.REQUEST), part("answer", Ref.LAST, Ref.MORE)),
    (part("answer"), part("chat")),
    (part("answer", words=Ref.REQUEST), part("new_work", words=Ref.MORE)),
    (part("about_work", Ref.BOB), part("new_work")),
    (part("about_work", Ref.OWN, Ref.REQUEST), part("new_work", words=Ref.MORE)),
    (part("about_work", Ref.MADE_UP), part("chat")),
    (part("stop", Ref.OWN), part("new_work")),
    (part("stop", Ref.OWN), part("answer")),
    (part("stop", Ref.MADE_UP), part("chat")),
    (part("chat"), part("new_work")),
    (part("new_work"), part("new_work")),
    (part("new_work", words=Ref.REQUEST), part("new_work", words=Ref.MORE)),
    (part("new_work"), part("stop", Ref.MADE_UP)),
    ({"what": "chat"},),
    ({"what": "stop", "id": 7, "words": None},),
    ({"what": "celebrate", "id": "", "words": ""},),
    (part("chat"), {"what": "celebrate"}),
    (),
    "",
    "It asks for nothing.",
    '{"parts": "chat"}',
    '{"parts": [{"what": ["chat"]}]}',
    '{"parts": ["chat"]}',
    "null",
    ERROR,
)  # fmt: skip


def _named() -> Iterator[tuple[str, Act]]:
    for made in _calls():
        yield _name(made), Act(calls=(made,))
    for made in _other_calls():
        yield _name(made), Act(calls=(made,))
    for pair in PAIRS:
        yield " + ".join(map(_name, pair)), Act(calls=pair)
    for decision in DECISIONS:
        yield f"no call, then {_said(decision)}", Act(decision=decision)
    for made in (call("tell", node_id=Ref.MADE_UP), call("answer", question_id=Ref.CARD), _PROMISE):
        yield f"{_name(made)}, again and again", Act(calls=(made,), repeats=True)
    yield "an error of the model server", Act(fails=True)


def _name(made: Call) -> str:
    given = made.raw or ", ".join(f"{k}={_shown(v)}" for k, v in made.arguments.items())
    return f"{made.name}({given})"


def _said(decision: Decision) -> str:
    if isinstance(decision, str):
        return repr(decision)
    said = (" ".join(_shown(value) for value in each.values() if value != "") for each in decision)
    return f"[{', '.join(said)}]"


def _shown(value: Any) -> str:
    return f"<{value}>" if isinstance(value, Ref) else str(value) if value != "" else "''"


ACTS: dict[str, Act] = dict(_named())


def runs(state: State, *, seed: int = 0) -> list[Run]:
    """Return each act with each wording in this state, in an order that the seed chooses; first
    each act once. Languages and messages take turns, so that all pairs occur."""
    found = list(_each(state))
    random.Random(f"{seed} {state}").shuffle(found)
    first = {run.act: run for run in reversed(found)}
    return [*first.values(), *(run for run in found if run is not first[run.act])]


def _each(state: State) -> Iterator[Run]:
    languages = [*LANGUAGES]
    place = [*State].index(state)
    for number, (name, act) in enumerate(ACTS.items()):
        for which, wording in enumerate(WORDINGS):
            turn = place + 3 * number + 7 * which
            yield Run(
                state=state,
                act=name,
                wording=wording,
                language=languages[turn % len(languages)],
                messages=MESSAGES[(turn // 2) % len(MESSAGES)],
                decision=FALLBACKS[turn % 3] if act.decision is None else act.decision,
            )
