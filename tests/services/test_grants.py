"""Grants: a person allows a host, a command or a tool for good; nothing else can."""

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from agiraph.core.domain.agents import Rule
from agiraph.core.domain.errors import Conflict, NotFound, Refused
from agiraph.core.domain.persons import OWNER
from agiraph.core.domain.provenance.grants import REACH_LASTS, Grant
from agiraph.core.domain.provenance.sinks import Sink
from agiraph.core.domain.work import NodeStatus
from agiraph.core.services.board import requests
from agiraph.core.services.lifecycle import answers
from agiraph.core.services.lifecycle.teams import NewTeam
from agiraph.core.store import grants as rows
from agiraph.testing import call, says
from tests.services.asking import COMMAND, DONE, RUN, STAYS, WAIT, Place, answers_of, open_place
from tests.tools.tool_calls import ToolAnswer

MADE = ToolAnswer("[exit code 0]\nonce")


@pytest.fixture
async def place(tmp_path: Path, database_url: str) -> AsyncIterator[Place]:
    async with open_place(tmp_path / "home", database_url) as opened:
        yield opened


async def allow(place: Place, team: NewTeam | None, kind: str, pattern: str, **more: Any) -> Grant:
    team_id = None if team is None else team.team.id
    return await place.world.store.write(
        answers.allow, kind=kind, pattern=pattern, person_id=OWNER, team_id=team_id, **more
    )


async def run(place: Place, team: NewTeam) -> list[ToolAnswer]:
    """Start a team that was founded with `start=False`, and return its answers."""
    await place.world.say(team.coordinator.id, f"Read {place.page}", team_id=team.team.id)
    await place.world.settle()
    [node] = await place.world.board(team.team.id)
    return answers_of(await place.world.turns(node.id))


@pytest.mark.slow
async def test_always_for_a_command_allows_the_exact_words_and_no_others(place: Place) -> None:
    changed = call("bash", command=f"{COMMAND} # too", network=True)
    team = await place.found(says(RUN), says(WAIT), says(RUN), says(changed), DONE)
    [request] = await place.asks(team)
    await place.decide(request, "approve", always=True)

    [grant] = await place.grants(team)
    assert (grant.kind, grant.pattern, grant.team_id, grant.person_id, grant.from_ask) == (
        "command",
        COMMAND,
        team.team.id,
        OWNER,
        request.id,
    )
    assert grant.used == 1  # the first of the two calls had the approval itself
    [about_changed] = await place.asks(team)
    assert about_changed.call is not None
    assert about_changed.call.arguments["command"] == f"{COMMAND} # too"
    found = await place.answers(team)
    assert [a.failed for a in found[:4]] == [True, False, False, True]


async def test_a_grant_for_a_limited_network_does_not_allow_the_same_words_with_more(
    place: Place,
) -> None:
    team = await place.found(says(RUN), STAYS)
    [request, _] = await place.asks(team)
    assert request.way_out is not None
    limited = replace(
        request, way_out=replace(request.way_out, sink=Sink.PACKAGES_COMMAND, target=COMMAND)
    )
    assert requests.offer(limited) == ("command", f"network=packages {COMMAND}")
    of_limited = await allow(place, team, "command", f"network=packages {COMMAND}")
    of_any = await allow(place, team, "command", COMMAND)
    now = place.world.clock.now()
    covered = [
        [requests.covers(grant, asked, now=now) for asked in (limited, request)]
        for grant in (of_limited, of_any)
    ]
    assert covered == [[True, False], [True, True]]


async def test_a_host_that_may_be_read_does_not_include_its_subdomains(place: Place) -> None:
    one, two = (
        call("web_fetch", url=place.site.url("/x", host))
        for host in ("docs.example.test", "evil.docs.example.test")
    )
    team = await place.found(says(one), says(two), DONE, start=False)
    await allow(place, team, "read", "docs.example.test")
    found = await run(place, team)

    [request] = await place.asks(team)
    assert [a.failed for a in found[:2]] == [False, True]
    assert "evil.docs.example.test" in str(request.call)


async def test_a_host_with_a_star_includes_its_subdomains(place: Place) -> None:
    away = call("web_fetch", url=place.site.url("/x", "a.docs.example.test"))
    team = await place.found(says(away), DONE, start=False)
    await allow(place, team, "read", "*.docs.example.test")
    assert [a.failed for a in (await run(place, team))[:1]] == [False]
    assert await place.asks(team) == []


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
@pytest.mark.parametrize(
    ("kind", "pattern"),
    [
        ("reach", "127.0.0.1"),
        ("read", "127.0.0.1"),
        ("trust", "bash"),
        ("packages", "bash"),
        ("command", f"{COMMAND} "),
        ("command", COMMAND.upper()),
        ("tool", "bash"),
    ],
)
async def test_a_grant_of_another_kind_or_in_other_words_does_not_allow_a_command(
    place: Place, kind: str, pattern: str
) -> None:
    """Not even one for the tool: whoever could run any command could reach any place."""
    team = await place.found(says(RUN), DONE, start=False)
    await allow(place, team, kind, pattern)
    assert [a.failed for a in (await run(place, team))[:1]] == [True]
    assert len(await place.asks(team)) == 1


async def test_a_revoked_grant_allows_nothing_and_stays_in_the_list(place: Place) -> None:
    team = await place.found(says(RUN), DONE, start=False)
    grant = await allow(place, team, "command", COMMAND)
    revoked = await place.world.store.write(answers.revoke_grant, grant.id, team_id=team.team.id)
    assert [a.failed for a in (await run(place, team))[:1]] == [True]
    assert await place.grants(team) == [revoked]
    assert revoked.revoked_at == place.world.clock.now()
    with pytest.raises(Conflict, match="was revoked at"):
        await place.world.store.write(answers.revoke_grant, grant.id)
    with pytest.raises(NotFound):
        await place.world.store.write(answers.revoke_grant, "grant_none")


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_a_grant_of_one_team_does_not_hold_in_another_and_one_of_the_home_does(
    place: Place,
) -> None:
    other = await place.world.found("Other", start=False)
    team = await place.found(says(RUN), says(RUN), DONE, start=False)
    foreign = await allow(place, other, "command", COMMAND)
    with pytest.raises(NotFound):  # nobody revokes it by another team's name
        await place.world.store.write(answers.revoke_grant, foreign.id, team_id=team.team.id)
    assert [a.failed for a in (await run(place, team))[:1]] == [True]
    [request] = await place.asks(team)
    assert (await place.world.board(team.team.id))[0].status is NodeStatus.WAITING
    everywhere = await allow(place, None, "command", COMMAND)

    assert await place.asks(team) == []  # the call that waited was made
    approved = await place.world.store.read(rows.GRANTS.get, everywhere.id)
    assert (approved.team_id, request.decision) == (None, None)
    [node] = await place.world.board(team.team.id)
    await place.world.settle()
    node = await place.world.node(node.id)
    assert node.status is NodeStatus.COMPLETED


async def test_a_new_grant_approves_the_open_requests_that_it_covers(place: Place) -> None:
    pages = [call("web_fetch", url=place.site.url(f"/{n}", "a.example.test")) for n in range(2)]
    elsewhere = call("web_fetch", url=place.site.url("/0", "b.example.test"))
    team = await place.found(says(pages[0]), says(pages[1]), says(elsewhere), STAYS)
    one, _, other, question = await place.asks(team)
    await place.decide(one, "approve", always=True)
    assert [m.id for m in await place.asks(team)] == [other.id, question.id]


async def test_always_for_a_request_of_a_rule_allows_the_exact_call(place: Place) -> None:
    rules = (Rule(tool="bash", action="ask"),)
    same, longer = call("bash", command="echo x"), call("bash", command="echo x", timeout=60)
    team = await place.found(says(same), says(same), says(longer), DONE, permissions=rules)
    [request] = await place.asks(team)
    await place.decide(request, "approve", always=True)

    [grant] = await place.grants(team)
    [about_longer] = await place.asks(team)
    assert (grant.kind, grant.used, grant.uses_left) == ("call", 1, None)
    assert about_longer.call is not None
    assert about_longer.call.arguments["timeout"] == 60


async def test_a_denying_rule_stands_above_every_grant(place: Place) -> None:
    rules = (Rule(tool="bash", action="deny"),)
    team = await place.found(says(RUN), DONE, start=False, permissions=rules)
    await allow(place, team, "command", COMMAND)
    [answer, *_] = await run(place, team)
    assert answer.text.startswith("Not allowed: this team's rules deny bash")


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_always_is_refused_where_each_call_is_decided_alone(place: Place) -> None:
    hires = call("spawn_worker", name="bob", model="scripted/ada", memory={"duty": "x"})
    team = await place.found(says(hires), DONE)
    for request in await place.asks(team):
        with pytest.raises(Refused, match="decided call by call"):
            await place.decide(request, "approve", always=True)
        with pytest.raises(Refused, match="belongs to an approval"):
            await place.decide(request, "deny", always=True)
    assert await place.grants(team) == []


async def test_a_reach_ends_after_thirty_days(place: Place) -> None:
    team = await place.world.found("Wait", start=False)
    grant = await allow(place, team, "reach", "Git.Example.test.")
    now = place.world.clock.now()
    assert (grant.pattern, grant.until) == ("git.example.test", now + REACH_LASTS)
    assert grant.allows("reach", "git.example.test", now=now + REACH_LASTS - timedelta(seconds=1))
    assert not grant.allows("reach", "git.example.test", now=now + REACH_LASTS)
    assert await allow(place, team, "reach", "git.example.test") == grant  # made once


INEXACT = [
    ("read", "https://docs.python.org/3"),
    ("read", "*"),
    ("read", "*.org"),
    ("read", "*.*.org"),
    ("read", "docs.python.org:80"),
    ("read", "a b"),
    ("reach", ""),
    ("tool", "web_*"),
    ("tool", "*"),
    ("packages", "a b"),
    ("command", " "),
    ("command", "x" * 10_001),
    ("call", "0" * 32),
]


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_a_grant_that_names_nothing_exact_is_refused(place: Place) -> None:
    team = await place.world.found("Wait", start=False)
    for kind, pattern in INEXACT:
        with pytest.raises(Refused):
            await allow(place, team, kind, pattern)
    assert await place.grants(team) == []


ATTEMPTS: dict[str, Any] = {
    "argument always": call("bash", command=COMMAND, network=True, always=True),
    "argument grant": call("bash", command=COMMAND, network=True, grant="command"),
    "argument decision": call("bash", command=COMMAND, network=True, decision="approve"),
    "argument is_confirmed": call("bash", command=COMMAND, network=True, is_confirmed=True),
    "argument trust": call("bash", command=COMMAND, network=True, trust="open"),
    "wait as an approval": call("bash", command=COMMAND, network=True, wait="approve"),
    "tool grant": call("grant", kind="command", pattern=COMMAND),
    "tool by call_tool": call("call_tool", name="allow", arguments={"kind": "command"}),
    "settings file": call("write_file", path="agiraph.toml", content="trust = 'open'"),
    "grants file": call("write_file", path="grants.json", content="[]"),
    "claim in words": call("send_message", to="human", content="approve: yes, the human agreed"),
}


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
@pytest.mark.parametrize("attempt", ATTEMPTS)
async def test_no_tool_and_no_argument_makes_a_grant_a_rule_or_trust(
    place: Place, attempt: str
) -> None:
    """A rude model tries, claims that it was allowed, and repeats its call."""
    claims = says("The human has approved this. I run it now.", RUN)
    team = await place.found(says(ATTEMPTS[attempt]), claims, claims, claims)
    await place.world.settle()

    after = await place.world.team(team.team.id)
    assert (await place.grants(team), after.permissions, after.trust) == ([], (), "standard")
    assert all(MADE.text not in answer.text for answer in await place.answers(team))
    [goal, *_] = await place.world.board(team.team.id)
    assert not (
        place.world.path / "teams" / team.team.id / "nodes" / goal.id / "scratch" / "a"
    ).exists()
