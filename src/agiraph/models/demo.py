"""Demo: a scripted model. It needs no key, calls no server, and says that it is not an AI."""

import re
from dataclasses import dataclass

from agiraph.core.domain.chat import ToolCall
from agiraph.core.domain.text.fence import without_marks
from agiraph.core.domain.work import Usage
from agiraph.models import demo_story
from agiraph.models.base import OnDelta, Reply, Request

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


@dataclass(frozen=True, slots=True)
class DemoModel:
    """Says what done means, writes a file, runs a command and finishes, whatever the goal is.

    One goal is different: it gets the story of `demo_story`, which also hires and asks.
    """

    name: str = "demo"

    async def reply(self, request: Request, on_delta: OnDelta | None = None) -> Reply:
        names = {tool.name for tool in request.tools} if request.may_call else set[str]()
        if "no_work_needed" in names:
            text, call = _talk(request)  # only a conversation offers this tool
        else:
            text, call = self._step(request, names)
        if on_delta is not None:
            on_delta(text)
        words = sum(len(t.text.split()) for t in request.transcript.turns)
        calls = () if call is None else (call,)
        return Reply(
            text=text, calls=calls, usage=Usage(input_tokens=words, output_tokens=40, usd=0.0)
        )

    def _step(self, request: Request, names: set[str]) -> tuple[str, ToolCall | None]:
        """Return the text and call of the next step: as many are done as calls have an answer."""
        results = [without_marks(t.text) for t in request.transcript.turns if t.role == "tool"]
        goal = without_marks(next((t.text for t in request.transcript.spoken()), ""))
        if (told := demo_story.next_step(goal, request.transcript.turns, names)) is not None:
            return told
        note = {"path": "note.md", "content": _NOTE.format(goal=goal.strip())}
        steps = [
            (
                "What done means comes first.",
                demo_story.call("set_acceptance", lines=list(_LINES), kinds=["ran", "ran"]),
            ),
            ("Then a file.", demo_story.call("write_file", **note)),
            ("Then a command.", demo_story.call("bash", command=_COMMAND)),
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
        return summary, demo_story.call(ending, summary=summary, reached="yes", evidence=evidence)


def _talk(request: Request) -> tuple[str, ToolCall | None]:
    """Return what the demo says to a person. The call makes sure that its words are true."""
    asked = without_marks(next((t.text for t in request.transcript.spoken()), ""))
    if asked.rstrip().endswith(("?", "\uff1f", "\u061f")):
        return _TO_A_STATUS_QUESTION, demo_story.call("no_work_needed")
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
