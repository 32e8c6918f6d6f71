"""Operations: the client has a method for each operation of the API."""

import re
from datetime import UTC, datetime

import aiohttp
import pytest

from agiraph.client import Client
from agiraph.core.domain.errors import Declined
from agiraph.core.domain.work import Extension
from tests.api.document import document
from tests.api.serving import TOKEN, Served

ELSEWHERE: set[tuple[str, str]] = {
    ("DELETE", "/api/channels/{channel}"),
    ("DELETE", "/api/mcp-servers/{name}"),
    ("POST", "/api/channels"),
    ("POST", "/api/channels/draft"),
    ("POST", "/api/channels/{channel}/test"),
    ("POST", "/api/extensions/files"),
    ("POST", "/api/mcp-servers"),
    ("POST", "/api/mcp-servers/draft"),
    ("POST", "/api/mcp-servers/{name}/sign-in"),
}
"""Operations that programs do not need: a person reads in the web UI what they agree to."""


@pytest.mark.slow
async def test_the_client_has_a_method_for_every_api_operation(served: Served) -> None:
    asked: set[tuple[str, str]] = set()

    async def record(_: object, __: object, params: aiohttp.TraceRequestStartParams) -> None:
        asked.add((params.method, params.url.raw_path))

    trace = aiohttp.TraceConfig()
    trace.on_request_start.append(record)
    async with (
        aiohttp.ClientSession(trace_configs=[trace]) as session,
        Client(served.origin, TOKEN, session=session) as client,
    ):
        await _call_every_method(client)

    described = {
        (method.upper(), path)
        for path, methods in document()["paths"].items()
        for method in methods
    }
    missing = {
        (method, path)
        for method, path in described - ELSEWHERE
        if not any(m == method and _matches(path, seen) for m, seen in asked)
    }
    assert missing == set()


def _matches(template: str, path: str) -> bool:
    pattern = re.sub(r"\\\{path\\\}", ".+", re.escape(template))
    return re.fullmatch(re.sub(r"\\\{\w+\\\}", "[^/]+", pattern), path) is not None


async def _call_every_method(client: Client) -> None:
    """Call every method once. A refusal because an id does not exist is fine."""
    team = await client.create_team("Count", start=False)
    agent = team.coordinator_id
    assert agent is not None
    trigger = await client.create_trigger(team.id, "webhook")
    assert trigger.secret is not None
    insight = await client.add_insight(agent, "fact", "Beans are round.", confidence=0.5)
    memory = await client.add_memory(agent, "Likes beans.")
    await client.act_in_bulk("archive", ["msg_none"])
    token = await client.create_token("t", days=1)
    await client.change_team(team.id, name="Beans", review="never")
    said = await client.send(agent, "Hello", mode="nudge")
    assert said.text == "Hello"
    assert [each.id for each in await client.insights(agent, query="beans")] == [insight.id]
    assert [each.id for each in await client.memories(agent)] == [memory.id]
    assert [each.id for each in await client.agents(team.id, all=True)] == [agent]
    assert (await client.agent(agent)).name == "coordinator"
    change = (await client.changes(agent))[-1]
    refusals: list[str] = []
    for awaited in (
        client.alive(),
        client.status(),
        client.me(),
        client.set_away(None),
        client.ready(),
        client.metrics(),
        client.openapi(),
        client.teams(),
        client.team(team.id),
        client.events(team.id),
        client.timeline(team.id),
        client.board_at(team.id, seq=1),
        client.event_log(team.id, types=["node"]),
        client.set_goal(
            team.id,
            "Count twice",
            budget={"turns": 3},
            attachments=[{"name": "a.csv", "media_type": "text/csv", "data": "eSw3"}],
        ),
        client.pause(team.id),
        client.resume(team.id),
        client.broadcast(team.id, "Everyone!"),
        client.read_up_to(agent, 1),
        client.conversation(agent),
        client.undo_act("msg_x", 0),
        client.work_of_message("msg_x"),
        client.enter_secret("bank", "horse-battery"),
        client.threads(agent),
        client.thread("t_x"),
        client.window("t_x"),
        client.board(team.id),
        client.jobs(team.id),
        client.stages(team.id),
        client.node("node_x"),
        client.cancel_node("node_x"),
        client.retry_node("node_x"),
        client.extend_node("node_x", Extension(turns=1)),
        client.set_effort("low", node="node_x"),
        client.set_effort("low", agent=agent),
        client.cost(team.id),
        client.day_cost(),
        client.cost_history(),
        client.inbox(),
        client.inbox_rows(),
        client.inbox_counts(),
        client.item("msg_x"),
        client.mark_read("msg_x"),
        client.answer("msg_x", "yes"),
        client.rate("msg_x", "up"),
        client.grants(team.id),
        client.grant(team.id, "read", "docs.example.org"),
        client.revoke_grant(team.id, "grant_x"),
        client.digest(team.id, words=True),
        client.decide(team=team.id, confirm="all", as_of=datetime.now(UTC)),
        client.undo_change(change.id),
        client.forget_memory(agent, memory.id),
        client.remove_insight(agent, insight.id),
        client.unconfirmed(team.id),
        client.start_research(agent, "How do beans come?", max_pages=1),
        client.research(team.id),
        client.research_job("node_x"),
        client.shares("node_x"),
        client.share("node_x", days=1),
        client.revoke_share("node_x", "share_x"),
        client.link_use("pass_x"),
        client.search_memory(team.id, "beans"),
        client.page_text(team.id, "https://beans.example/"),
        client.search("beans"),
        client.confirm_knowledge("insight_x"),
        client.reject_knowledge("insight_x"),
        client.triggers(team.id),
        client.change_trigger(team.id, trigger.id, "paused"),
        client.run_trigger(team.id, trigger.id),
        client.firings(team.id, trigger.id),
        client.hit(trigger.id, trigger.secret, {"a": 1}, delivery="1"),
        client.cancel_trigger(team.id, trigger.id),
        client.list_files(team.id),
        client.read_file(team.id, "GOAL.md"),
        client.list_memory(team.id),
        client.read_memory(team.id, "index.md"),
        client.folder_changes(team.id),
        client.results(team.id),
        client.find_paths(team.id, ["GOAL.md", "b.md"]),
        client.download_archive(team.id),
        client.save_file(team.id, "PLAN.md", "x", expected="none"),
        client.file_versions(team.id, "PLAN.md"),
        client.read_file_version(team.id, "PLAN.md", "x"),
        client.restore_file_version(team.id, "PLAN.md", "x", expected="none"),
        client.upload_file(team.id, "x.txt", b"x"),
        client.read_copy(team.id, "change_x", "before"),
        client.undo(team.id),
        client.tokens(),
        client.create_link(),
        client.extensions(),
        client.enable_extension("tools/x.py", "0" * 64),
        client.disable_extension("tools/x.py"),
        client.skills(),
        client.enable_skill("skills/x", "0" * 64),
        client.disable_skill("skills/x"),
        client.skill_file("skills/x"),
        client.write_skill_file("skills/x", "---\ndescription: x\n---\nx"),
        client.specialists(),
        client.specialist("writer"),
        client.write_specialist("x", "---\ndescription: x\n---\nx"),
        client.try_specialist("x", team=team.id, task="Write"),
        client.delete_specialist("x"),
        client.team_settings(team.id),
        client.preview_permissions(team.id, [{"tool": "*", "action": "ask"}]),
        client.export_team(team.id),
        client.mcp_servers(),
        client.mcp_server("x"),
        client.confirm_mcp_server("x", "0" * 64),
        client.ask_mcp_server("x"),
        client.audit(),
        client.models(),
        client.test_model("demo"),
        client.revoke_token(token.id),
        client.channels(),
        client.pair_channel("phone"),
        client.unpair_channel("phone"),
        client.stop(team.id),
        client.archive(team.id),
        client.restore(team.id),
        client.overview(),
        client.stop_everything(),
        client.operations(),
        client.provider_status(),
        client.examine(),
        client.stop_all_work(),
        client.resume_all_work(),
        client.set_api_key("sk-proj-unknown", provider="ollama"),
        client.remove_api_key("ollama"),
        client.set_default_model("nobody/good"),
        client.extension_content("tools/x.py"),
        client.skill_content("skills/x"),
        client.delete_team(team.id, name="Beans", stop=True),
    ):
        try:
            await awaited
        except Declined as refused:
            refusals.append(str(refused))
    # Whatever the values are: the server must know each name, and miss none.
    assert [each for each in refusals if each.startswith(("body", "query", "path"))] == []
