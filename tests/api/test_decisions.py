"""Grants and the digest over HTTP, and who may use them."""

from typing import Any

import pytest

from agiraph.core.domain.chat import ToolCall
from agiraph.core.domain.messages import Draft, Message
from agiraph.core.domain.persons import OWNER
from agiraph.core.domain.provenance.access import Scope
from agiraph.core.domain.provenance.grants import REACH_LASTS
from agiraph.core.domain.provenance.labels import of_page
from agiraph.core.domain.provenance.sinks import Sink, WayOut
from agiraph.core.services import access
from agiraph.core.services.board import requests
from agiraph.core.services.lifecycle.teams import NewTeam
from agiraph.core.services.mail import bus
from agiraph.core.store import messages
from agiraph.features.knowledge.verbs import items
from agiraph.testing import call, says
from tests.api.serving import Served

COMMAND = "curl https://git.example.test"


@pytest.fixture
async def team(served: Served) -> NewTeam:
    served.world.script("ada")
    return await served.world.found("Watch", start=False)


async def ask(served: Served, team: NewTeam) -> Message:
    """Store a request for a command, as an agent that went on has sent it."""
    call = ToolCall(id="c1", name="bash", arguments={"command": COMMAND, "network": "open"})
    way_out = WayOut(sink=Sink.NETWORK_COMMAND, target=COMMAND, why="it would reach the network")
    return await served.world.store.write(
        bus.send,
        Draft(
            team_id=team.team.id,
            sender=team.coordinator.id,
            recipient=OWNER,
            kind="approval",
            text="May I call bash?",
            options=("approve", "deny"),
            topic="call",
            fingerprint=requests.fingerprint(call),
            call=call,
            way_out=way_out,
        ),
    )


async def learn(served: Served, team: NewTeam) -> str:
    kept = await served.world.store.write(
        items.learn,
        team.coordinator,
        "fact",
        "Bread is made of flour. " * 12,
        author=team.coordinator.id,
        label=of_page("https://bread.example.test"),
    )
    return kept.id


async def token(served: Served, scope: Scope) -> dict[str, Any]:
    issued = await served.world.store.write(
        access.issue, OWNER, kind="token", name=scope, scope=scope, life=None
    )
    return {"Authorization": f"Bearer {issued.secret}"}


async def test_a_grant_is_made_listed_and_revoked(served: Served, team: NewTeam) -> None:
    path = f"/teams/{team.team.id}/grants"
    status, made = await served.ask("POST", path, {"kind": "reach", "pattern": "git.example.test"})
    until = (served.world.clock.now() + REACH_LASTS).isoformat().replace("+00:00", "Z")
    assert (status, made["until"], made["is_in_force"]) == (201, until, True)
    assert (made["person_id"], made["team_id"], made["used"]) == (OWNER, team.team.id, 0)
    assert await served.ask("GET", path) == (200, [made])
    status, ended = await served.ask("DELETE", f"{path}/{made['id']}")
    assert (status, ended["is_in_force"], ended["revoked_at"] is None) == (200, False, False)
    assert await served.ask("GET", path) == (200, [ended])
    assert (await served.ask("DELETE", f"{path}/{made['id']}"))[0] == 409
    assert (await served.ask("DELETE", f"{path}/grant_none"))[0] == 404
    status, refused = await served.ask("POST", path, {"kind": "read", "pattern": "https://a.b/c"})
    assert (status, "write it alone" in refused["detail"]) == (422, True)
    assert (await served.ask("POST", path, {"kind": "call", "pattern": "0" * 32}))[0] == 422


async def test_an_approval_with_always_makes_the_grant_that_it_offers(
    served: Served, team: NewTeam
) -> None:
    request = await ask(served, team)
    _, item = await served.ask("GET", f"/inbox/{request.id}")
    assert item["always"] == {"kind": "command", "pattern": COMMAND}
    body = {"decision": "approve", "always": True}
    status, answered = await served.ask("POST", f"/inbox/{request.id}/answer", body)
    assert (status, answered["message"]["decision"], answered["always"]) == (200, "approve", None)
    _, [grant] = await served.ask("GET", f"/teams/{team.team.id}/grants")
    assert (grant["kind"], grant["pattern"], grant["from_ask"]) == ("command", COMMAND, request.id)


@pytest.mark.parametrize("scope", ["talk", "operate"])
async def test_only_the_owners_token_allows_something_for_good(
    served: Served, team: NewTeam, scope: Scope
) -> None:
    request = await ask(served, team)
    bearer = await token(served, scope)
    tries = [
        ("POST", f"/teams/{team.team.id}/grants", {"kind": "tool", "pattern": "web_search"}),
        ("POST", f"/inbox/{request.id}/answer", {"decision": "approve", "always": True}),
        ("POST", "/inbox/digest", {"always": [request.id]}),
        ("DELETE", f"/teams/{team.team.id}/grants/grant_x", None),
    ]
    for method, path, body in tries:
        status, _ = await served.ask(method, path, body, **bearer)
        assert (status, path) == (403, path)
    assert await served.ask("GET", f"/teams/{team.team.id}/grants", **bearer) == (200, [])
    status, _ = await served.ask("POST", f"/inbox/{request.id}/answer", tries[1][2], **bearer)
    _, item = await served.ask("GET", f"/inbox/{request.id}")
    assert (status, item["state"]) == (403, "unread")


async def test_the_digest_shows_words_on_demand_and_confirms_all_but_ways_out(
    served: Served, team: NewTeam
) -> None:
    assert await served.ask("GET", "/inbox/digest") == (200, [])
    request, fact = await ask(served, team), await learn(served, team)
    _, [found] = await served.ask("GET", f"/inbox/digest?team={team.team.id}")
    assert [(e["kind"], e["id"], e["is_cut"]) for e in found["entries"]] == [
        ("ask", request.id, False),
        ("unverified", fact, True),
    ]
    assert [(g["kind"], g["source"]) for g in found["groups"]] == [
        ("ask", ""),
        ("unverified", "a page of bread.example.test"),
    ]
    _, [whole] = await served.ask("GET", "/inbox/digest?words=true")
    assert whole["entries"][1]["text"] == ("Bread is made of flour. " * 12).strip()

    body = {"team": team.team.id, "confirm": "all", "as_of": found["as_of"]}
    assert await served.ask("POST", "/inbox/digest", body) == (200, {"ids": [fact]})
    status, refused = await served.ask("POST", "/inbox/digest", {"confirm": [request.id]})
    assert (status, "asks for a way out" in refused["detail"]) == (422, True)
    assert (await served.ask("POST", "/inbox/digest", {"reject": [request.id]}))[0] == 200
    assert await served.ask("GET", "/inbox/digest") == (200, [])


async def test_a_team_that_ended_is_in_the_digest_until_its_result_is_read(served: Served) -> None:
    served.world.script("ada", says(call("finish", summary="There are nine.")))
    counted = await served.world.found("Count the beans")
    await served.world.settle()
    _, [found] = await served.ask("GET", "/inbox/digest")
    ended = found["ended"]
    assert (found["team_id"], found["entries"]) == (counted.team.id, [])
    assert counted.node is not None
    assert ended["node_id"] == counted.node.id
    assert (ended["status"], ended["goal"]) == ("completed", "Count the beans")
    _, item = await served.ask("POST", f"/inbox/{ended['message_id']}/read")
    assert (item["message"]["kind"], item["message"]["text"]) == ("result", "There are nine.")
    assert await served.ask("GET", "/inbox/digest") == (200, [])


async def test_a_token_to_talk_answers_questions_and_decides_on_nothing(
    served: Served, team: NewTeam
) -> None:
    request, talker = await ask(served, team), await token(served, "talk")
    path = f"/inbox/{request.id}/answer"
    for decision in ("approve", "deny"):
        status, problem = await served.ask("POST", path, {"decision": decision}, **talker)
        assert (status, "needs the scope 'operate'" in problem["detail"]) == (403, True)
    _, item = await served.ask("GET", f"/inbox/{request.id}")
    assert item["message"]["decision"] is None
    question = await served.world.store.write(
        bus.send,
        Draft(
            team_id=team.team.id,
            sender=team.coordinator.id,
            recipient=OWNER,
            kind="question",
            text="Which colour?",
        ),
    )
    status, _ = await served.ask("POST", f"/inbox/{question.id}/answer", {"text": "red"}, **talker)
    assert status == 200
    status, _ = await served.ask(
        "POST", path, {"decision": "approve"}, **await token(served, "operate")
    )
    assert status == 200


@pytest.mark.parametrize(
    ("scope", "hosts"), [("talk", []), ("operate", ["a.test", "b.test", "c.test"])]
)
async def test_words_sent_with_a_token_that_can_only_talk_are_those_of_a_client(
    served: Served, team: NewTeam, scope: Scope, hosts: list[str]
) -> None:
    lead, bearer = team.coordinator.id, await token(served, scope)
    question = await served.world.store.write(
        bus.send,
        Draft(team_id=team.team.id, sender=lead, recipient=OWNER, kind="question", text="Where?"),
    )
    said = [
        (f"/agents/{lead}/send", {"message": "See https://a.test/x"}),
        (f"/teams/{team.team.id}/broadcast", {"message": "See https://b.test/x"}),
        (f"/inbox/{question.id}/answer", {"text": "See https://c.test/x"}),
    ]
    for path, body in said:
        status, _ = await served.ask("POST", path, body, **bearer)
        assert (status in (200, 202), path) == (True, path)
    _, found = await served.ask("GET", f"/teams/{team.team.id}/grants")
    assert sorted(grant["pattern"] for grant in found) == hosts
    heard = await served.world.store.read(messages.from_people, team.team.id, limit=9)
    assert {str(message.label) for message in heard} == {"" if hosts else "the client talk"}
