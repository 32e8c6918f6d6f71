"""Reply checks: compare what a reply to a person says with what was done and seen in it.

Each objection is made once. A model that repeats its words is not asked for ever: what is wrong in
them is then said to the person by the runtime.
"""

from agiraph.domain.chat import ToolCall, Transcript, Turn
from agiraph.domain.claims import claims_to_have_stopped, unfounded
from agiraph.domain.promising import promises_by_a_time
from agiraph.domain.tools import ToolProperties
from agiraph.run_context import RunContext
from agiraph.services.lifecycle.journal import SystemNote
from agiraph.tools import scheduling
from agiraph.tools.foreground import FOREGROUND, stop_work

PROMISE_IT = (
    "[Runtime] You named a time for something you will do, and nothing reminds you of it. Call "
    f"{scheduling.promise.name} with that time and write your answer again; or write the answer "
    "without the time."
)
NOT_STOPPED = (
    "[Runtime] You say that work was stopped, and nothing was. Call stop_work with its id and "
    "write your answer again; or say that it runs on."
)
UNFOUNDED = (
    "[Runtime] This stands nowhere in what you have seen: {what}. Look it up (look_into, "
    "read_report, search) and write your answer again, or leave it out and say that you do not "
    "know."
)
RUNS_ON = "(Correction by agiraph: this reply has stopped no work.)"


def objections(ctx: RunContext, reply: Turn) -> list[SystemNote]:
    """Return what the model is told about its reply before it is asked again; each note once."""
    if not reply.text.strip():
        return []
    notes: list[SystemNote] = []
    if promises_by_a_time(reply.text) and not _was_called(ctx.transcript, scheduling.promise.name):
        notes.append(SystemNote("promise", PROMISE_IT))
    if is_false_stop(ctx.transcript, reply.text):
        notes.append(SystemNote("stopped", NOT_STOPPED))
    if what := unfounded(reply.text, _seen(ctx.transcript)):
        notes.append(SystemNote("unfounded", UNFOUNDED.format(what=", ".join(what[:5]))))
    return [note for note in notes if not ctx.transcript.has(note.ref)][:1]


def is_false_stop(transcript: Transcript, text: str) -> bool:
    """Whether a text says that work was stopped, although no call of the reply stopped any."""
    asked = "\n".join(turn.text for turn in transcript.turns if turn.ref == "assignment")
    if not claims_to_have_stopped(text, asked=asked):
        return False
    return not _was_called(transcript, stop_work.name)


def consulted(transcript: Transcript) -> tuple[str, ...]:
    """Return what the reply has read, as calls with their first argument."""
    failed = failed_calls(transcript)
    calls = [call for turn in transcript.turns for call in turn.calls if call.id not in failed]
    named = [
        f"{call.name}({str(next(iter(call.arguments.values()), ''))[:80]})"
        for call in calls
        if reads(call)
    ]
    return tuple(dict.fromkeys(named))


def reads(call: ToolCall) -> bool:
    """Whether the model has to read the answer of a call before it writes to the person."""
    found = properties(call)
    return found.looks_up or found.reads_file


def properties(call: ToolCall) -> ToolProperties:
    tool = FOREGROUND.get(call.name)
    return ToolProperties() if tool is None else tool.properties


def failed_calls(transcript: Transcript) -> set[str | None]:
    return {t.ref for t in transcript.turns if t.role == "tool" and t.failed}


def _was_called(transcript: Transcript, name: str) -> bool:
    failed = failed_calls(transcript)
    calls = (call for turn in transcript.turns for call in turn.calls)
    return any(call.name == name and call.id not in failed for call in calls)


def _seen(transcript: Transcript) -> str:
    """Return all that the model was shown, without what it said itself."""
    return "\n".join(turn.text for turn in transcript.turns if turn.role != "assistant")
