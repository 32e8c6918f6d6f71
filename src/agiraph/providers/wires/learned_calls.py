"""Learned calls: notices a model whose server sends its calls as text, and reads them from then on.

A reply that consists of whole calls in a trained form is a hint. One small call of our own, with a
tool of our own, proves it: if the model answers in the same form, the form is used for this server
and model for the life of the process. Nothing is learned from a form that is broken or quoted.
"""

import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from agiraph.domain.chat import ToolCall, ToolSpec, Transcript, Turn
from agiraph.domain.errors import ModelError, ModelGarbled
from agiraph.domain.ids import ThreadId
from agiraph.domain.time import SystemClock
from agiraph.domain.work import Usage
from agiraph.providers.base import OnDelta, Reply, Request, lost_usage
from agiraph.providers.options import TrainedForm
from agiraph.providers.wires.chat_forms import CALLS_PROBED, call_form_mark, learned_call_form
from agiraph.providers.wires.remote_model import RemoteModel
from agiraph.providers.wires.trained_calls import TrainedCallsModel, calls_in, with_calls

log: logging.Logger = logging.getLogger("agiraph.providers")

MAX_OUTPUT_TOKENS = 256
QUESTION = "What is the weather in Paris now? Use the tool get_weather if you have it."
WEATHER = ToolSpec(
    name="get_weather",
    description="Return the weather in a city now. Call it whenever somebody asks for the weather.",
    schema={
        "type": "object",
        "properties": {"city": {"type": "string", "description": "The name of the city."}},
        "required": ["city"],
    },
)
_FORMS: tuple[TrainedForm, ...] = ("hermes", "mistral", "qwen", "llama")
"""The narrower forms first: Qwen's contains Hermes' as well."""


@dataclass(frozen=True, slots=True)
class LearnedCallsModel:
    """A model on a server of which nobody has said how its calls are read."""

    inner: RemoteModel

    @property
    def name(self) -> str:
        return self.inner.name

    async def reply(self, request: Request, on_delta: OnDelta | None = None) -> Reply:
        if (form := learned_call_form(self.inner.learned)) is not None:
            return await TrainedCallsModel(self.inner, form).reply(request, on_delta)
        reply = await self.inner.reply(request, on_delta)
        form = None if CALLS_PROBED in self.inner.learned else certain_form(reply, request)
        if form is None:
            return reply
        is_proven, spent = await self._probe(form, request)
        read = with_calls(reply, request, form) if is_proven else None
        return replace(read or reply, usage=reply.usage + spent)

    async def _probe(self, form: TrainedForm, request: Request) -> tuple[bool, Usage]:
        """Ask the model for a call of our own. Returns whether it wrote the call in this form,
        which is then learned, and what that cost."""
        asked = probe_request(QUESTION, tools=(WEATHER,), like=request)
        try:
            reply = await self.inner.reply(asked)
        except ModelError as error:  # the reply at hand is good without an answer to this
            return False, lost_usage(error) if isinstance(error, ModelGarbled) else Usage()
        is_proven = certain_form(reply, asked) == form
        self.inner.learned.add(call_form_mark(form) if is_proven else CALLS_PROBED)
        if is_proven:
            log.warning(
                "The server of %s sends the model's calls as text in the form %r: no tool parser "
                "is set there. They are read as calls from now on. To choose it for every start, "
                'set calls = "%s" in [models."%s"] of agiraph.toml.',
                self.name,
                form,
                form,
                self.name,
            )
        return is_proven, reply.usage


def certain_form(reply: Reply, request: Request) -> TrainedForm | None:
    """Return the form of the calls that a reply ends with, if all of them are whole; else None.

    Whole are calls of tools of this request, with all required arguments and no unknown ones. No
    call stands in what the model was shown.
    """
    may_call = bool(request.tools) and request.may_call and request.schema is None
    is_plain = bool(reply.calls or reply.is_cut or reply.provider_data.refusal)
    if not may_call or is_plain:
        return None
    specs = {spec.name: spec.schema for spec in request.tools}
    for form in _FORMS:
        found = calls_in(reply.text, form)
        # Words behind a call would show that the model did not wait for an answer.
        if found is None or not reply.text.lstrip().startswith(found.text):
            continue
        if all(_is_whole(call, specs) for call in found.calls):
            return form if with_calls(reply, request, form) is not None else None
    return None


def probe_request(
    text: str,
    *,
    tools: tuple[ToolSpec, ...] = (),
    schema: dict[str, Any] | None = None,
    like: Request | None = None,
) -> Request:
    """Return a short request of our own, in the name of the team that another one is from."""
    turn = Turn(
        thread_id=ThreadId("t_probe"),
        seq=1,
        node_id=None,
        role="user",
        text=text,
        at=SystemClock().now(),
    )
    return Request(
        transcript=Transcript([turn]),
        tools=tools,
        schema=schema,
        max_output_tokens=MAX_OUTPUT_TOKENS,
        team="" if like is None else like.team,
        longest_wait_s=None if like is None else like.longest_wait_s,
    )


def _is_whole(call: ToolCall, specs: Mapping[str, dict[str, Any]]) -> bool:
    schema = specs.get(call.name)
    if schema is None or call.malformed is not None:
        return False
    given = call.arguments.keys()
    return set(schema.get("required", ())) <= given <= set(schema.get("properties", {}))
