"""Demo: a scripted model. It needs no key, calls no server, and says that it is not an AI."""

import re
from collections.abc import Sequence
from dataclasses import field

from agiraph.core.domain.chat import ToolCall, Turn
from agiraph.core.domain.text.fence import without_marks
from agiraph.core.domain.times.time import Clock, SystemClock
from agiraph.core.domain.value import dataclass
from agiraph.core.domain.work import Usage
from agiraph.models.base import OnDelta, Reply, Request

GOAL = (
    "Show me how a team works: plan a weekend trip.\nHire a teammate for the packing list, ask me "
    "where to go, and write trip.md."
)
SCRIPTED = (
    "I am a scripted demo, not an AI: the story is fixed, and only your answer changes what I "
    "write."
)
QUESTION = (
    "Where should the weekend trip go?\n\nChoose one, or write a place of your own. While you "
    "think, the team waits at no cost. Robin, whom I have hired, wrote the packing list: the board "
    "shows both tasks."
)
LINE = "`trip.md` says where the trip goes."
_CHECK = "head -1 trip.md"
_OPENING = "Show me how a team works: plan a weekend trip"
"""How a goal starts that is answered with the story: a person may change what follows."""
_TEAMMATE = "robin"
_PACKING = "Write `packing.md`: what two people pack for a weekend away."
_PACKING_LIST = """# Packing list

- clothes for two days, and something warm
- a rain jacket
- toothbrush and towel
- chargers
- a book
"""
_PLANS = {
    "The sea": ("Walk along the beach, and eat fish at the harbour", "Swim, or watch the waves"),
    "The mountains": ("Take the first cable car, and walk down", "Climb the small summit, slowly"),
    "A city": ("See one museum, and eat at the market", "Get lost in the old town"),
}
_PLACE_CHARACTERS = 80
_IN_CONVERSATION = "Not answered yet; they said: "
_NO_ANSWER = re.compile(r"\AThe human[^\n]* has not answered within .*", re.DOTALL)


def next_step(task: str, turns: Sequence[Turn], names: set[str]) -> tuple[str, ToolCall] | None:
    """Return the text and call of the story's next step; None if the task is not of the story.

    As many steps are done as calls have an answer; the last one is repeated if it was refused.
    """
    answers = {turn.ref: turn.text for turn in turns if turn.role == "tool"}
    if _PACKING in task and "publish" in names:
        steps = _teammate()
    elif _OPENING in task and "finish" in names:
        steps = _coordinator(turns, answers)
    else:
        return None
    said, _call = steps[min(len(answers), len(steps) - 1)]
    return (said if answers else f"{SCRIPTED} {said}"), _call


def _teammate() -> list[tuple[str, ToolCall]]:
    summary = "`packing.md` lists what two people pack for a weekend away."
    return [
        ("I write the list.", _call("write_file", path="packing.md", content=_PACKING_LIST)),
        (summary, _call("publish", summary=summary, reached="yes", evidence=[])),
    ]


def _coordinator(
    turns: Sequence[Turn], answers: dict[str | None, str]
) -> list[tuple[str, ToolCall]]:
    asked = (_call.id for turn in turns for _call in turn.calls if _call.name == "ask_human")
    place = _place(answers.get(next(asked, None), ""))
    task = _call(
        "assign_task", agent=_TEAMMATE, description="Write the packing list", task=_PACKING,
        output="`packing.md`, a list of at most ten lines",
    )  # fmt: skip
    summary = _report(place)
    return [
        ("What done means comes first.", _call("set_acceptance", lines=[LINE], kinds=["ran"])),
        ("I hire a teammate.", _call("spawn_worker", name=_TEAMMATE)),
        ("The teammate writes the packing list.", task),
        ("Only you can decide this.", _call("ask_human", question=QUESTION, options=[*_PLANS])),
        (f"You chose “{place}”. I write the plan.",
         _call("write_file", path="trip.md", content=_plan(place))),
        ("I check that it is there.", _call("bash", command=_CHECK)),
        (summary, _call("finish", summary=summary, reached="yes", evidence=[f"ran:{_CHECK}"])),
    ]  # fmt: skip


def _place(answer: str) -> str:
    """Return the place that a person named: one of the options, or the first line they wrote.

    They may have answered in the conversation instead of the inbox, or not at all in the time that
    the team waits.
    """
    said = without_marks(_NO_ANSWER.sub("", answer.strip()).removeprefix(_IN_CONVERSATION))
    words = " ".join(next(iter(said.strip().splitlines()), "").split())
    known = next((place for place in _PLANS if place.lower() == words.lower().rstrip(".!")), None)
    return known or words[:_PLACE_CHARACTERS] or "a place that you did not name"


def _plan(place: str) -> str:
    own = (f"Arrive in “{place}”, and look around", "Do what you like best there")
    saturday, sunday = _PLANS.get(place, own)
    known = "" if place in _PLANS else (
        "\nThat was not one of my three options. A scripted demo knows nothing about it; a model "
        "would plan it for you.\n"
    )  # fmt: skip
    return (
        f"# A weekend trip: {place}\n\nYou answered: “{place}”.\n{known}\n"
        f"- **Saturday**: {saturday}.\n- **Sunday**: {sunday}, and travel home.\n\n"
        "What to pack is in `packing.md`, which Robin wrote.\n"
    )


def _report(place: str) -> str:
    return (
        f"You answered “{place}”: the trip is planned.\n\n`trip.md` has the weekend, and "
        "`packing.md`, by Robin, what to pack. Look at **Board** for the two tasks, **Results** "
        "for the files and **Timeline** for who did what when.\n\n"
        "This was a scripted demo, not an AI. To let an AI work on your goal, set up a model on "
        "the **Models** page (open it from Settings)."
    )


def _call(tool: str, /, **arguments: object) -> ToolCall:
    return ToolCall(id="", name=tool, arguments=arguments)


_NOTE = """# A note from the demo

This file was written by agiraph's scripted demo. No AI was asked: the words were fixed in
advance. What is real is everything around them: the journal that makes each step survive a
crash, the file you are reading, the command that is run next, and the way it is published.

The goal was: {goal}
"""
_TALK_TO_AN_AI = (
    "To talk to an AI, set up a model: in the web UI under Models, or with AGIRAPH_MODEL."
)
_TO_A_REQUEST = (
    "I am a scripted demo, not an AI, and say this to every request. What you wrote is kept: work "
    "that is under way hears it; else it becomes work, the same three steps as for every goal. "
    f"{_TALK_TO_AN_AI}"
)
_TO_A_STATUS_QUESTION = (
    "I am a scripted demo, not an AI, and cannot say how things stand. The board shows it. Your "
    f"question starts no work. {_TALK_TO_AN_AI}"
)
_SCRIPTED = "I am a scripted demo, not an AI: I do the same few things for every goal."
_LINES = ("`note.md` has words.", "The command `uname -s` ran.")
_COMMAND = "date -u '+%Y-%m-%d %H:%M UTC' && uname -s && wc -w < note.md"


_PAUSE_WORDS = 28
"""How long it thinks before a reply, measured in words that it could say meanwhile."""
_STORY_WORDS = 425
"""The words of the story, with its pauses: the coordinator waits for the teammate."""


@dataclass(frozen=True, slots=True)
class DemoModel:
    """Says what done means, writes a file, runs a command and finishes, whatever the goal is.

    One goal is different: it gets the story of `next_step`, which also hires and asks.
    """

    name: str = "demo"
    story_s: float = 0.0
    """About how long the story takes, apart from the time that it waits for the person; the work
    on other goals takes half of it. 0: every reply comes at once."""
    clock: Clock = field(default_factory=SystemClock, compare=False)

    async def reply(self, request: Request, on_delta: OnDelta | None = None) -> Reply:
        names = {tool.name for tool in request.tools} if request.may_call else set[str]()
        if "no_work_needed" in names:
            text, call = _talk(request)  # only a conversation offers this tool
        else:
            text, call = self._step(request, names)
        if on_delta is not None:
            await self._say(text, on_delta)
        words = sum(len(t.text.split()) for t in request.transcript.turns)
        calls = () if call is None else (call,)
        return Reply(
            text=text, calls=calls, usage=Usage(input_tokens=words, output_tokens=40, usd=0.0)
        )

    async def _say(self, text: str, on_delta: OnDelta) -> None:
        """Say a text word by word, as fast as a person reads it. What nobody watches comes at
        once."""
        word_s = self.story_s / _STORY_WORDS
        if not word_s:
            return on_delta(text)
        await self.clock.sleep(_PAUSE_WORDS * word_s)
        for word in re.findall(r"\S+\s*", text):
            await self.clock.sleep(word_s)
            on_delta(word)

    def _step(self, request: Request, names: set[str]) -> tuple[str, ToolCall | None]:
        """Return the text and call of the next step: as many are done as calls have an answer."""
        results = [without_marks(t.text) for t in request.transcript.turns if t.role == "tool"]
        goal = without_marks(next((t.text for t in request.transcript.spoken()), ""))
        if (told := next_step(goal, request.transcript.turns, names)) is not None:
            return told
        note = {"path": "note.md", "content": _NOTE.format(goal=goal.strip())}
        steps = [
            (
                "What done means comes first.",
                _call("set_acceptance", lines=list(_LINES), kinds=["ran", "ran"]),
            ),
            ("Then a file.", _call("write_file", **note)),
            ("Then a command.", _call("bash", command=_COMMAND)),
        ]
        steps = [(said, call) for said, call in steps if call.name in names]
        if len(results) < len(steps):
            said, call = steps[len(results)]
            return (said if results else f"{_SCRIPTED} {said}"), call
        if not steps:
            return self._end(names, f"{_SCRIPTED} Without tools I can do none of them.", "")
        summary = (
            "The scripted demo wrote note.md, ran a command and published both steps' result. "
            f"The command said:\n{results[-1].strip()}\n"
            "To let an AI work on your goal, set up a model: in the web UI under Models, or "
            "with AGIRAPH_MODEL."
        )
        return self._end(names, summary, results[0])

    def _end(self, names: set[str], summary: str, lines: str) -> tuple[str, ToolCall | None]:
        """Return the call that ends the node, with evidence for each line; none without tools."""
        ending = next((name for name in ("finish", "publish") if name in names), None)
        if ending is None:
            return summary, None
        evidence = [_evidence(line) for line in _lines_in(lines)]
        return summary, _call(ending, summary=summary, reached="yes", evidence=evidence)


def _talk(request: Request) -> tuple[str, ToolCall | None]:
    """Return what the demo says to a person. The call makes sure that its words are true."""
    asked = without_marks(next((t.text for t in request.transcript.spoken()), ""))
    if asked.rstrip().endswith(("?", "\uff1f", "\u061f")):
        return _TO_A_STATUS_QUESTION, _call("no_work_needed")
    return _TO_A_REQUEST, None


def _lines_in(answer: str) -> list[str]:
    """Return the acceptance lines in the answer of `set_acceptance`, with those of a person."""
    return [line for line in answer.splitlines() if re.match(r"\d+\. ", line)]


def _evidence(line: str) -> str:
    if _LINES[0] in line:
        return "ran:wc -w < note.md"
    if _LINES[1] in line:
        return "ran:uname -s"
    return "The scripted demo cannot read this line and did nothing about it."
