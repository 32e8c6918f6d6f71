"""Tracing: runs, model calls and tool calls as OpenTelemetry spans, by the GenAI conventions.

Off unless asked for: then nothing here is imported and nothing wrapped. Spans say who did what, how
long it took and what it cost, never what was said.
"""

import asyncio
import contextlib
import threading
from collections.abc import Generator, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from agiraph.domain.agents import Agent
from agiraph.domain.chat import Lease, ToolCall
from agiraph.domain.errors import Misconfigured
from agiraph.domain.outcomes import Answer, Done, Outcome, Pending
from agiraph.domain.work import WorkNode
from agiraph.providers.base import Model, OnDelta, Reply, Request
from agiraph.run_context import RunContext
from agiraph.runtime.calls import ToolCaller

if TYPE_CHECKING:
    from opentelemetry.sdk.trace.export import SpanExporter
    from opentelemetry.trace import Span

HEADERS = "OTEL_EXPORTER_OTLP_HEADERS"
CLOSING_SECONDS = 2.0
"""How long the last spans may take on their way out; a collector that is gone keeps nobody."""
_PROVIDERS = {"gemini": "gcp.gemini"}
"""Names the conventions have for those that we call otherwise."""


def opened(traces: str, environ: Mapping[str, str]) -> "Tracing | None":
    """What the settings ask for; nothing, by default."""
    if not traces:
        return None
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    except ImportError as error:
        raise Misconfigured(
            f"AGIRAPH_TRACES={traces} needs packages that are not here: "
            "pip install 'agiraph[otel]', or unset it."
        ) from error
    # The endpoint and the rest it finds in the environment; headers may hold a key, and are hidden.
    return Tracing(OTLPSpanExporter(headers=_headers(environ.get(HEADERS, ""))))


def _headers(text: str) -> dict[str, str]:
    pairs = (pair.partition("=") for pair in text.split(",") if "=" in pair)
    return {name.strip().lower(): unquote(value.strip()) for name, _, value in pairs}


class Tracing:
    def __init__(self, exporter: "SpanExporter") -> None:
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
        from opentelemetry.trace import SpanKind, StatusCode

        about = {"service.name": "agiraph", "service.version": version("agiraph")}
        # Not at exit: a collector that does not answer would keep the process from ending.
        self._provider = TracerProvider(resource=Resource.create(about), shutdown_on_exit=False)
        self._provider.add_span_processor(BatchSpanProcessor(exporter))
        self._tracer = self._provider.get_tracer("agiraph", version("agiraph"))
        self._kinds = SpanKind
        self._failed = StatusCode.ERROR

    async def close(self) -> None:
        """Send what is left, for a moment."""
        loop, done = asyncio.get_running_loop(), asyncio.Event()

        def shut_down() -> None:
            self._provider.shutdown()
            with contextlib.suppress(RuntimeError):  # nobody waits any more
                loop.call_soon_threadsafe(done.set)

        # A thread of its own that the process need not wait for.
        threading.Thread(target=shut_down, name="agiraph-traces", daemon=True).start()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(CLOSING_SECONDS):
                await done.wait()

    @contextlib.contextmanager
    def span(self, name: str, kind: str = "INTERNAL", **about: Any) -> "Generator[Span]":
        """A span that tells of an error by its kind alone: its words may quote what was said."""
        attributes = {key.replace("__", "."): value for key, value in about.items() if value}
        with self._tracer.start_as_current_span(
            name,
            kind=self._kinds[kind],
            attributes=attributes,
            record_exception=False,
            set_status_on_exception=False,
        ) as span:
            try:
                yield span
            except BaseException as error:
                span.set_attribute("error.type", type(error).__name__)
                span.set_status(self._failed)
                raise

    @contextlib.contextmanager
    def run(self, agent: Agent, node: WorkNode, lease: Lease) -> "Generator[Span]":
        """One run of an agent at its node."""
        with self.span(
            f"invoke_agent {agent.name}",
            gen_ai__operation__name="invoke_agent",
            gen_ai__agent__id=agent.id,
            gen_ai__agent__name=agent.name,
            gen_ai__conversation__id=lease.thread_id,
            gen_ai__request__model=agent.model,
            gen_ai__provider__name=_provider(agent.model),
            agiraph__team__id=lease.team_id,
            agiraph__node__id=node.id,
            agiraph__lane=node.lane,
        ) as span:
            yield span

    def ended(self, span: "Span", outcome: Outcome) -> None:
        span.set_attribute("agiraph.outcome", type(outcome).__name__.lower())


@dataclass(frozen=True, slots=True, kw_only=True)
class TracedModel:
    """A model whose every call is a span."""

    model: Model
    tracing: Tracing
    thread_id: str

    @property
    def name(self) -> str:
        return self.model.name

    async def reply(self, request: Request, on_delta: OnDelta | None = None) -> Reply:
        name = self.model.name
        with self.tracing.span(
            f"chat {_model(name)}",
            "CLIENT",
            gen_ai__operation__name="chat",
            gen_ai__provider__name=_provider(name),
            gen_ai__request__model=_model(name),
            gen_ai__request__max_tokens=request.max_output_tokens,
            gen_ai__output__type="json" if request.schema else "text",
            gen_ai__conversation__id=self.thread_id,
        ) as span:
            reply = await self.model.reply(request, on_delta)
            usage = reply.usage
            span.set_attributes(
                {
                    "gen_ai.response.model": _model(reply.model or name),
                    "gen_ai.response.finish_reasons": ["tool_calls" if reply.calls else "stop"],
                    "gen_ai.usage.input_tokens": usage.input_tokens,
                    "gen_ai.usage.output_tokens": usage.output_tokens,
                    "gen_ai.usage.cache_read.input_tokens": usage.cached_tokens,
                    "agiraph.usage.usd": usage.usd or 0.0,
                }
            )
            return reply


@dataclass(frozen=True, slots=True, kw_only=True)
class TracedCaller(ToolCaller):
    """Makes every tool call a span."""

    tracing: Tracing

    async def answer(self, ctx: RunContext, call: ToolCall) -> Answer:
        with self.tracing.span(
            f"execute_tool {call.name}",
            gen_ai__operation__name="execute_tool",
            gen_ai__tool__name=call.name,
            gen_ai__tool__type="function",
            gen_ai__tool__call__id=call.id,
            gen_ai__conversation__id=ctx.lease.thread_id,
        ) as span:
            answer = await ToolCaller.answer(self, ctx, call)
            match answer:
                case Done(failed=True):
                    span.set_attribute("error.type", "refused")
                case Pending():
                    span.set_attribute("agiraph.waiting_on", answer.waiting_on.partition(":")[0])
                case _:
                    pass
            return answer


def _provider(name: str) -> str:
    provider = name.removeprefix("text/").partition("/")[0]
    return _PROVIDERS.get(provider, provider)


def _model(name: str) -> str:
    _, _, model = name.removeprefix("text/").partition("/")
    return model or name
