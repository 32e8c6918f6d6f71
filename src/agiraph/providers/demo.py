"""Demo: a scripted model. It needs no key, calls no server, and says that it is not an AI."""

from dataclasses import dataclass

from agiraph.domain.chat import ToolCall
from agiraph.domain.work import Usage
from agiraph.providers.base import OnDelta, Reply, Request

_NOTE = """# A note from the demo

This file was written by agiraph's scripted demo. No AI was asked: the words were fixed in
advance. What is real is everything around them: the journal that makes each step survive a
crash, the file you are reading, the command that is run next, and the way it is published.

The goal was: {goal}
"""
_CONVERSATION_REPLY = (
    "I am a scripted demo, not an AI, and say this to everything. What you wrote is kept, and "
    "becomes work: the same three steps as for every goal. Set a model to be answered for real."
)
_COMMAND = "date -u '+%Y-%m-%d %H:%M UTC' && uname -s && wc -w < note.md"


@dataclass(frozen=True, slots=True)
class DemoModel:
    """Writes a file, runs a command and finishes: the same three steps for every goal."""

    name: str = "demo"

    async def reply(self, request: Request, on_delta: OnDelta | None = None) -> Reply:
        results = [t for t in request.transcript.turns if t.role == "tool"]
        assignment = next((t.text for t in request.transcript.spoken()), "")
        text, call = self._step(len(results), assignment, results[-1].text if results else "")
        names = {tool.name for tool in request.tools} if request.may_call else set[str]()
        if "no_work_needed" in names:
            text, call = _CONVERSATION_REPLY, None  # only a conversation offers this tool
        if call is not None and call.name not in names:
            ending = "finish" if "finish" in names else "publish"
            call = ToolCall(id="", name=ending, arguments={"summary": text}) if names else None
        if on_delta is not None:
            on_delta(text)
        words = sum(len(t.text.split()) for t in request.transcript.turns)
        calls = () if call is None else (call,)
        return Reply(
            text=text, calls=calls, usage=Usage(input_tokens=words, output_tokens=40, usd=0.0)
        )

    def _step(self, done: int, goal: str, last_result: str) -> tuple[str, ToolCall | None]:
        """Return the text and call of the next step; `done` counts the finished steps."""
        if done == 0:
            note = {"path": "note.md", "content": _NOTE.format(goal=goal.strip())}
            return (
                "I am a scripted demo, not an AI: I do the same three things for every goal. "
                "First, a file.",
                ToolCall(id="", name="write_file", arguments=note),
            )
        if done == 1:
            return "Second, a command.", ToolCall(
                id="", name="bash", arguments={"command": _COMMAND}
            )
        summary = (
            "The scripted demo wrote note.md, ran a command and published both steps' result. "
            f"The command said:\n{last_result.strip()}\n"
            "To have a goal worked on for real, set a model: see AGIRAPH_MODEL in the README."
        )
        return summary, ToolCall(id="", name="finish", arguments={"summary": summary})
