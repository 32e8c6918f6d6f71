"""Tracing: emits runs, model calls and tool calls as OpenTelemetry spans (GenAI conventions).

Tracing is off by default; then OpenTelemetry is not imported and nothing is wrapped. Spans hold
names, durations and costs, never the text of prompts, replies or tool calls.
"""

import asyncio
import contextlib
import threading
from collections.abc import Generator, Mapping
from importlib.metadata import version
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from agiraph.core.domain.agents import Agent
from agiraph.core.domain.chat import Lease, ToolCall
from agiraph.core.domain.errors import Misconfigured
from agiraph.core.domain.outcomes import Answer, Done, Outcome, Pending
from agiraph.core.domain.value import dataclass
from agiraph.core.domain.work import WorkNode
from agiraph.core.run_context import RunContext
from agiraph.core.runtime.calls import ToolCaller
from agiraph.models.base import Model, OnDelta, Reply, Request
from agiraph.models.vendors import telemetry_name

if TYPE_CHECKING:
    from opentelemetry.sdk.trace.export import SpanExporter
    from opentelemetry.trace import Span

HEADERS = "OTEL_EXPORTER_OTLP_HEADERS"
CLOSING_S = 2.0
"""How long a stop waits for the last spans: a collector that is down must not delay it."""


def open_tracing(traces: str, environ: Mapping[str, str]) -> "Tracing | None":
    """Return the tracing that the setting `traces` asks for; None by default."""
    if not traces:
        return None
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    except ImportError as error:
        raise Misconfigured(
            f"AGIRAPH_TRACES={traces} needs packages that are not here: "
            "pip install 'agiraph[otel]', or unset it."
        ) from error
    # The exporter reads its endpoint from the environment. Its headers may hold a key, which
    # `redaction` has removed from the environment, so they are passed here.
    return Tracing(OTLPSpanExporter(headers=_headers(environ.get(HEADERS, ""))))


def _headers(text: str) -> dict[str, str]:
    pairs = (pair.partition("=") for pair in text.split(",") if "=" in pair)
    return {name.strip().lower(): unquote(value.strip()) for name, _, value in pairs}


class Tracing:
    """A tracer whose spans go to one exporter, in batches."""

    def __init__(self, exporter: "SpanExporter") -> None:
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
        from opentelemetry.trace import SpanKind, StatusCode

        about = {"service.name": "agiraph", "service.version": version("agiraph")}
        # No shutdown at exit: a collector that does not answer would keep the process alive.
        self._provider = TracerProvider(resource=Resource.create(about), shutdown_on_exit=False)
        self._provider.add_span_processor(BatchSpanProcessor(exporter))
        self._tracer = self._provider.get_tracer("agiraph", version("agiraph"))
        self._kinds = SpanKind
        self._failed = StatusCode.ERROR

    async def close(self) -> None:
        """Send the remaining spans, for at most `CLOSING_S`."""
        loop, done = asyncio.get_running_loop(), asyncio.Event()

        def shut_down() -> None:
            self._provider.shutdown()
            with contextlib.suppress(RuntimeError):  # the event loop is closed already
                loop.call_soon_threadsafe(done.set)

        # A daemon thread, which the process does not wait for at its end.
        threading.Thread(target=shut_down, name="agiraph-traces", daemon=True).start()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(CLOSING_S):
                await done.wait()

    @contextlib.contextmanager
    def span(self, name: str, kind: str = "INTERNAL", **about: Any) -> "Generator[Span]":
        """Open a span. It records only the type of an error: the text may quote a prompt."""
        attributes = {key.replace("__", "."): value for key, value in about.items() if value}
        with self._tracer.start_as_current_span(
            name,
            kind=self._kinds[kind],
            attributes=attributes,
            # OpenTelemetry would add the error's text and traceback to the span.
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
        """Open a span for one run of a node."""
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

    def set_outcome(self, span: "Span", outcome: Outcome) -> None:
        """Add the kind of outcome to a run's span."""
        span.set_attribute("agiraph.outcome", type(outcome).__name__.lower())


@dataclass(frozen=True, slots=True, kw_only=True)
class TracedModel:
    """A model that emits a span for each call."""

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
    """A tool caller that emits a span for each call."""

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
                    span.set_attribute("agiraph.waiting_on", answer.waiting_on.kind)
                case _:
                    pass
            return answer


def _provider(name: str) -> str:
    return telemetry_name(name.removeprefix("text/").partition("/")[0])


def _model(name: str) -> str:
    _, _, model = name.removeprefix("text/").partition("/")
    return model or name
