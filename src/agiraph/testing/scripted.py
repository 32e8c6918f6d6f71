"""Scripted models: models in the same process whose replies a test decides."""

import asyncio
from collections.abc import Callable
from dataclasses import field, replace

from agiraph.core.domain.chat import ProviderData, ToolCall, Turn
from agiraph.core.domain.value import dataclass
from agiraph.core.domain.work import Effort, Usage
from agiraph.core.runtime.replies.reply import DECISION
from agiraph.faultpoints import fault
from agiraph.models.base import OnDelta, Reply, Request
from agiraph.testing.script import Says

SENT_BACK = ("[Not accepted]", "[Not ended]")
"""How the answer to an ending call begins that did not end the node."""


class PowerCut(BaseException):
    """Simulates a crash inside a model call. A BaseException, so that no handler cleans up."""


class ScriptExhausted(AssertionError):
    """The model was called more often than the test has written replies for."""


Line = Says | BaseException | Callable[[Request], "Says | BaseException"]
"""One reply of a script: a reply, an error to raise, or a function of the request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One request to a scripted model, as it was at that time."""

    system: str
    turns: tuple[Turn, ...]
    tools: tuple[str, ...]
    """The names of the tools that the model might have called."""
    effort: Effort | None = None


@dataclass(slots=True)
class ScriptedModel:
    """A model that plays a list of replies, and records its requests.

    A model that insists makes a call again, alone, that would have ended the node and was sent
    back. The request that is answered so uses up no line and is not recorded.
    """

    name: str
    lines: list[Line]
    requests: list[Asked] = field(default_factory=list[Asked])
    gate: asyncio.Event | None = None
    """If set, every reply waits for this event, so that a test can act in the meantime."""
    insists: bool = False
    """Whether it repeats an ending call that was sent back; if not, the next line is its reply."""
    decision: str = "I do not know."
    """Its answer to the question what a person's message asks for, which it is asked if its reply
    made no call that says so."""

    async def reply(self, request: Request, on_delta: OnDelta | None = None) -> Reply:
        if self.insists and (refused := _sent_back(request)) is not None:
            return Reply(text="", calls=(replace(refused, id=""),), usage=Usage(input_tokens=100))
        if _is_asked_what(request):
            return Reply(text=self.decision, usage=Usage(input_tokens=100))
        self.requests.append(
            Asked(
                system=request.transcript.system,
                turns=tuple(request.transcript.spoken()),
                tools=tuple([t.name for t in request.tools]) if request.may_call else (),
                effort=request.effort,
            )
        )
        # Recorded first, so that a test which holds the gate closed can already read the request.
        if self.gate is not None:
            await self.gate.wait()
        if not self.lines:
            raise ScriptExhausted(f"{self.name} has no reply for request {len(self.requests)}.")
        line = self.lines.pop(0)
        said = line if isinstance(line, (Says, BaseException)) else line(request)
        if isinstance(said, BaseException):
            raise said
        if on_delta is not None and said.text:
            on_delta(said.text)
        return as_reply(said)

    @property
    def heard(self) -> str:
        """The text of the last turn that the model was shown."""
        return self.requests[-1].turns[-1].text


def _is_asked_what(request: Request) -> bool:
    """Whether the runtime asks what a person's message asks for."""
    said = [turn for turn in request.transcript.turns if turn.role != "intent"]
    return bool(said) and said[-1].ref == DECISION


def _sent_back(request: Request) -> ToolCall | None:
    """Return the ending call of the last reply that was refused, if there is one."""
    reply = request.transcript.last_reply
    if reply is None or not request.may_call:
        return None
    answers = {turn.ref: turn.text for turn in request.transcript.turns if turn.role == "tool"}
    refused = (call for call in reply.calls if answers.get(call.id, "").startswith(SENT_BACK))
    return next(refused, None)


@dataclass(slots=True)
class ReactiveModel:
    """A model whose reply is a function of the request, so that it continues after any crash."""

    name: str
    react: Callable[[Request], Says]

    async def reply(self, request: Request, on_delta: OnDelta | None = None) -> Reply:
        fault("fx:before:llm")
        said = self.react(request)
        fault("fx:after:llm")
        if on_delta is not None and said.text:
            on_delta(said.text)
        return as_reply(said)


def as_reply(said: Says) -> Reply:
    """Return a scripted reply in the form that providers return."""
    return Reply(
        text=said.text,
        is_cut=said.finish == "length",
        provider_data=ProviderData(thinking=said.thinking),
        calls=tuple(
            ToolCall(id=c.id or "", name=c.name, arguments=c.arguments, malformed=c.raw)
            for c in said.calls
        ),
        usage=Usage(
            input_tokens=said.input_tokens,
            output_tokens=said.output_tokens,
            cached_tokens=said.cached_tokens,
        ),
    )
