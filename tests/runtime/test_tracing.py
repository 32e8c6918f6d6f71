"""Traces: runs, model calls and tool calls as spans of the GenAI conventions; nothing when off."""

import signal
import sys
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from agiraph.app import Runtime
from agiraph.core.domain.errors import Misconfigured, ModelError
from agiraph.core.domain.persons import OWNER
from agiraph.core.domain.times.time import SystemClock
from agiraph.core.domain.work import ANSWER
from agiraph.core.runtime import tracing
from agiraph.core.runtime.tracing import Tracing
from agiraph.core.services.lifecycle import teams
from agiraph.models.base import Model
from agiraph.models.registry import Keys
from agiraph.testing import call, says
from agiraph.testing.scripted import Line, ScriptedModel
from tests.cli.shell import Shell
from tests.up_process import up


async def run_traced(home: Path, *lines: Line) -> tuple[ReadableSpan, ...]:
    """Run one team; return its spans in the order they ended."""
    exporter = InMemorySpanExporter()
    traces = Tracing(exporter)
    model: Model = ScriptedModel("scripted/ada", list(lines), insists=True)
    runtime = await Runtime.open(
        home,
        database_url=f"sqlite:///{home / 'agiraph.db'}",
        keys=Keys(),
        clock=SystemClock(),
        own_models={"scripted": lambda name: model},
        tracing=traces,
    )
    await runtime.start()
    await runtime.store.write(
        teams.create,
        owner_id=OWNER,
        goal="Try it",
        model="scripted/ada",
        learns=False,
        heartbeat=None,
        acceptance=(ANSWER,),
        review="never",
    )
    await runtime.engine.idle()
    await runtime.close()
    # Read after closing: only closing exports the last spans.
    kept: list[ReadableSpan] = []
    await traces.close()
    kept += exporter.get_finished_spans()
    return tuple(kept)


def attributes_of(span: ReadableSpan) -> dict[str, Any]:
    return dict(span.attributes or {})


@pytest.mark.slow
async def test_model_calls_and_tool_calls_are_child_spans_of_their_run(
    tmp_path: Path,
) -> None:
    secret = "words of the model that stay where they are"
    first, tool, second, finish, run = await run_traced(
        tmp_path / "home",
        says(secret, call("write_file", path="a.md", content=secret)),
        says(call("finish", summary="It is in a.md.")),
    )
    assert [s.name for s in (first, tool, second, finish, run)] == [
        "chat ada",
        "execute_tool write_file",
        "chat ada",
        "execute_tool finish",
        "invoke_agent coordinator",
    ]
    assert run.parent is None
    assert {span.parent.span_id for span in (first, tool, second, finish) if span.parent} == {
        run.context.span_id if run.context else 0
    }
    about = attributes_of(run)
    ids = {name: about.pop(name) for name in list(about) if name.endswith(".id")}
    assert about == {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": "coordinator",
        "gen_ai.request.model": "scripted/ada",
        "gen_ai.provider.name": "scripted",
        "agiraph.lane": "work",
        "agiraph.outcome": "finished",
    }
    assert {name: value.partition("_")[0] for name, value in ids.items()} == {
        "gen_ai.agent.id": "agent",
        "gen_ai.conversation.id": "t",
        "agiraph.team.id": "team",
        "agiraph.node.id": "node",
    }
    assert first.kind.name == "CLIENT"
    assert attributes_of(first) == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "scripted",
        "gen_ai.request.model": "ada",
        "gen_ai.output.type": "text",
        "gen_ai.conversation.id": ids["gen_ai.conversation.id"],
        "gen_ai.response.model": "ada",
        "gen_ai.response.finish_reasons": ("tool_calls",),
        "gen_ai.usage.input_tokens": attributes_of(first)["gen_ai.usage.input_tokens"],
        "gen_ai.usage.output_tokens": attributes_of(first)["gen_ai.usage.output_tokens"],
        "gen_ai.usage.cache_read.input_tokens": 0,
        "agiraph.usage.usd": attributes_of(first)["agiraph.usage.usd"],
    }
    assert attributes_of(first)["gen_ai.usage.input_tokens"] > 0
    assert attributes_of(tool)["gen_ai.tool.name"] == "write_file"
    assert secret not in "".join(span.to_json() for span in (first, tool, second, finish, run))


async def test_a_span_has_the_type_of_an_error_and_not_its_message(tmp_path: Path) -> None:
    spans = await run_traced(tmp_path / "home", ModelError("the key sk-1 was not taken"))
    chat, run = spans
    assert attributes_of(chat)["error.type"] == "ModelError"
    assert (chat.status.status_code.name, list(chat.events)) == ("ERROR", [])
    assert attributes_of(run)["error.type"] == "ModelError"
    assert "sk-1" not in "".join(span.to_json() for span in spans)


@pytest.mark.slow
async def test_the_opentelemetry_sdk_is_not_loaded_unless_tracing_is_on(tmp_path: Path) -> None:
    assert tracing.open_tracing("", {}) is None
    loaded = Shell(tmp_path, function="tests.runtime.loaded_modules:main")
    assert (await loaded("opentelemetry.sdk")).out == "[]\n"
    assert "'agiraph.serving'" in (await loaded("agiraph.serving")).out


def test_a_missing_tracing_package_is_reported_with_the_install_command(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.exporter.otlp.proto.http.trace_exporter", None)
    with pytest.raises(Misconfigured, match=r"pip install 'agiraph\[otel\]'"):
        tracing.open_tracing("otlp", {})


async def test_spans_go_to_the_collector_and_with_the_headers_of_the_environment(
    tmp_path: Path,
) -> None:
    got: list[tuple[str, str | None, bool]] = []

    async def collect(request: web.Request) -> web.Response:
        body = await request.read()
        got.append((request.path, request.headers.get("x-team"), b"invoke_agent" in body))
        return web.Response(content_type="application/x-protobuf")

    app = web.Application()
    app.router.add_post("/v1/traces", collect)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    port = runner.addresses[0][1]
    agiraph = Shell(
        tmp_path / "home",
        {
            "AGIRAPH_TRACES": "otlp",
            "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{port}",
            "OTEL_EXPORTER_OTLP_HEADERS": "x-team=canary%20bird",
        },
    )
    try:
        async with up(agiraph) as running:
            team = await running.ask("POST", "/teams", {"goal": "Try", "learns": False})
            await running.wait_for_event(team["id"], "node.completed")
            running.process.signal(signal.SIGTERM)
            assert (await running.process.ends()).code == 0
        assert set(got) == {("/v1/traces", "canary bird", True)}
    finally:
        await runner.cleanup()
