"""Calls that are read differently from how they were written keep a thread that all wires take."""

from dataclasses import replace
from typing import Any

from agiraph.core.domain.chat import Turn
from agiraph.core.tools.calls.call_reading import MOST_BYTES, read_calls
from agiraph.core.tools.toolsets import BUILT_IN
from agiraph.models.base import Request
from agiraph.testing import Call, ModelServer, call, says
from tests.conformance.conftest import PROVIDERS, Journal, ModelOn, Provider
from tests.conformance.threads import as_turn
from tests.providers.transcripts import thread, turn

TOOLS = tuple(BUILT_IN[name].spec for name in ("bash", "create_work_node", "read_file"))
LS = {"command": "ls"}
TWICE = r'"{\"command\": \"ls\"}"'
USES = [
    {"recipient_name": "functions.bash", "parameters": LS},
    {"recipient_name": "Read", "parameters": {"file_path": "a.md"}},
]
TOO_LONG = " ".join(str(n * n) for n in range(MOST_BYTES // 8))
BASH, READ = ("bash", LS), ("read_file", {"path": "a.md"})

WRITTEN: list[tuple[tuple[Call, ...], list[tuple[str, dict[str, Any]]]]] = [
    ((call("Bash", **LS),), [BASH]),
    ((call("functions.bash", **LS),), [BASH]),
    ((call("bash<|channel|>commentary", **LS),), [BASH]),
    ((call("multi_tool_use.parallel", tool_uses=USES),), [BASH, READ]),
    ((call("bash", **LS), call("multi_tool_use.parallel", tool_uses=USES),
      call("Read", path="a.md")), [BASH, BASH, READ, READ]),
    ((call("create_work_node", task="x", acceptance='["a"]'),),
     [("create_work_node", {"task": "x", "acceptance": ["a"]})]),
    ((Call("bash", raw=TWICE),), [BASH]),
    ((Call("Bash", raw=TWICE, id="a"), Call("Bash", raw=TWICE, id="b")), [BASH, BASH]),
    ((Call("read_file", raw="null"),), [("read_file", {})]),
    ((call("bash", command="ls", timeout=None),), [BASH]),
    ((call("bash", command=TOO_LONG),), []),
    ((call("teleport.to/Paris", x=1),), [("teleport.to/Paris", {"x": 1})]),
]  # fmt: skip


async def test_after_each_tolerated_call_the_next_request_is_valid(
    model_on: ModelOn, provider: Provider, journal: Journal
) -> None:
    replies = [replace(says("I look.", *calls), thinking="Hm.", chunk=999) for calls, _ in WRITTEN]
    async with ModelServer([*replies, says("Done."), says("Done.")]) as server:
        model = model_on(provider, server)
        transcript = thread(turn("system", "You are Ada."), turn("user", "Go.", ref="assignment"))
        for _, read in WRITTEN:
            reply = await model.reply(Request(transcript=transcript, tools=TOOLS))
            found = [one.call for one in read_calls(reply.calls, BUILT_IN)]
            assert not read or [(c.name, c.arguments) for c in found] == read
            made = replace(reply, calls=transcript.with_unique_ids(found))
            transcript.add(as_turn(made, model.name))
            transcript.add(*(turn("tool", "It gave this.", ref=c.id) for c in made.calls))
        await model.reply(Request(transcript=transcript, tools=TOOLS))
        # After a restart the bytes are the same, and any other wire takes the thread.
        stored = await journal.store_and_read(transcript.turns)
        await model.reply(Request(transcript=thread(*stored), tools=TOOLS))
        before, after = server.requests[-2:]

    assert server.refused == []
    assert before.raw == after.raw
    assert len(before.raw) < 30_000
    await _resume_elsewhere(model_on, stored)


async def _resume_elsewhere(model_on: ModelOn, turns: list[Turn]) -> None:
    for other in PROVIDERS[:3]:
        async with ModelServer([says("Done.")]) as server:
            request = Request(transcript=thread(*turns), tools=TOOLS)
            await model_on(other, server).reply(request)
        assert server.refused == []
