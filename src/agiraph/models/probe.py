"""Probe: a few short calls that show what a model really does: words, tools, schemas, caching."""

from collections.abc import Sequence
from typing import Any, Literal, get_args

from pydantic import TypeAdapter, ValidationError
from typing_extensions import TypedDict

from agiraph.core.domain.chat import ToolSpec, Transcript, Turn
from agiraph.core.domain.errors import Misconfigured, ModelError
from agiraph.core.domain.ids import ThreadId
from agiraph.core.domain.times.time import SystemClock
from agiraph.core.domain.value import dataclass
from agiraph.models.base import Model, Reply, Request, parts_of
from agiraph.models.catalogue import Catalogue
from agiraph.models.options import TrainedForm
from agiraph.models.wires.trained_calls import calls_in
from agiraph.redaction import redact

CheckName = Literal["words", "tool_call", "schema", "cache"]
Verdict = Literal["passed", "failed", "unknown"]
_MAX_OUTPUT_TOKENS = 256
_QUESTION = "What is the weather in Paris now? Use the tool get_weather if you have it."
_WEATHER = ToolSpec(
    name="get_weather",
    description="Return the weather in a city now. Call it whenever somebody asks for the weather.",
    schema={
        "type": "object",
        "properties": {"city": {"type": "string", "description": "The name of the city."}},
        "required": ["city"],
    },
)
_FILLER = "This line is only here to make the prompt long enough for a cache. " * 300
"""About 4,000 tokens: vendors cache nothing that is shorter than 1,024 to 4,096."""
_SMALL_FILLER = "This line is only here to make the prompt longer. " * 60
_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "people": {"type": "integer"}},
    "required": ["city", "people"],
    "additionalProperties": False,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """The result of one call."""

    name: CheckName
    verdict: Verdict
    what: str
    """What happened."""
    advice: str = ""
    """What to do; empty if nothing needs to be done."""


OTHERS: tuple[CheckName, ...] = ("tool_call", "schema", "cache")


async def probe(
    catalogue: Catalogue, name: str, others: Sequence[CheckName] = OTHERS
) -> list[Check]:
    """Return what the model does in one call for words and one for each of the others; without
    words no other call is made."""
    await catalogue.learn(name)
    try:
        model = catalogue.resolve(name, patient=False)
    except Misconfigured as error:
        return [Check(name="words", verdict="failed", what=str(error))]
    calls = _Calls(catalogue, name, model)
    first = await calls.check("words")
    if first.verdict == "failed":
        return [first]
    return [first, *[await calls.check(other) for other in others]]


@dataclass(slots=True)
class _Calls:
    catalogue: Catalogue
    name: str
    model: Model

    async def check(self, name: CheckName) -> Check:
        acts = {
            "words": self._words,
            "tool_call": self._tool_call,
            "schema": self._schema,
            "cache": self._cache,
        }
        try:
            return await acts[name]()
        except ModelError as error:
            advice = self.catalogue.diagnosis(self.name).advice(error)
            what = redact(str(error)).removesuffix(advice).strip()
            return Check(name=name, verdict="failed", what=what, advice=advice)

    async def _words(self) -> Check:
        reply = await self._ask(_QUESTION)
        if not reply.text.strip() and not reply.calls:
            return Check(name="words", verdict="failed", what="The reply was empty.")
        return Check(name="words", verdict="passed", what=f"It answers ({_counted(reply)}).")

    async def _tool_call(self) -> Check:
        reply = await self._ask(_QUESTION, tools=(_WEATHER,))
        if any(call.name == _WEATHER.name and call.malformed is None for call in reply.calls):
            return Check(name="tool_call", verdict="passed", what="It calls the tool it is shown.")
        what = "It was shown a tool and asked to use it, and answered in words."
        advice = self.catalogue.diagnosis(self.name).no_tools()
        forms: tuple[TrainedForm, ...] = get_args(TrainedForm)
        form = next((form for form in forms if calls_in(reply.text, form) is not None), None)
        if form is not None and not self.name.startswith("text/"):
            what = f"It wrote a call as text in the form {form!r}, which is not read as a call."
            advice = (
                "Set the tool parser of the server, or "
                f'calls = "{form}" in [models."{self.name}"] of agiraph.toml.'
            )
        return Check(name="tool_call", verdict="failed", what=what, advice=advice)

    async def _schema(self) -> Check:
        reply = await self._ask("Name the largest city of France.", schema=_SCHEMA)
        if is_fitting(reply.text):
            return Check(name="schema", verdict="passed", what="Its answer has the schema's form.")
        return Check(
            name="schema",
            verdict="failed",
            what="Its answer does not have the form of the schema that was sent.",
            advice="It works without: such answers are checked and asked for again.",
        )

    async def _cache(self) -> Check:
        provider = parts_of(self.name)[0]
        # Local servers cache every prompt, and a long one takes them long.
        is_own = self.catalogue.registry.is_own_server(provider)
        asked = f"{_SMALL_FILLER if is_own else _FILLER}\n{_QUESTION}"
        await self._ask(asked)
        reply = await self._ask(asked)
        if cached := reply.usage.cached_tokens:
            what = f"{cached:,} of {reply.usage.input_tokens:,} tokens came from the cache."
            return Check(name="cache", verdict="passed", what=what)
        what = "The same request twice reported nothing from a cache."
        return Check(name="cache", verdict="unknown", what=what)

    async def _ask(
        self,
        text: str,
        *,
        tools: tuple[ToolSpec, ...] = (),
        schema: dict[str, Any] | None = None,
    ) -> Reply:
        turn = Turn(
            thread_id=ThreadId("t_probe"),
            seq=1,
            node_id=None,
            role="user",
            text=text,
            at=SystemClock().now(),
        )
        request = Request(
            transcript=Transcript([turn]),
            tools=tools,
            schema=schema,
            max_output_tokens=_MAX_OUTPUT_TOKENS,
        )
        return await self.model.reply(request)


class _Answer(TypedDict):
    city: str
    people: int


_ANSWER = TypeAdapter(_Answer)


def is_fitting(text: str) -> bool:
    """Whether a text is the JSON object that the probe's schema asks for."""
    try:
        _ANSWER.validate_json(text, strict=True)
    except ValidationError:
        return False
    return True


def _counted(reply: Reply) -> str:
    return f"{reply.usage.input_tokens:,} tokens in, {reply.usage.output_tokens:,} out"
