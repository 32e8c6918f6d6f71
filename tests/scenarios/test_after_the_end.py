"""After the end: what a person stopped rests, and questions close with their work."""

from pathlib import Path
from typing import Any

import pytest

from agiraph.core.domain.agents import Rule
from agiraph.testing import call, says
from tests.api.serving import Served, serving
from tests.services.stages import pass_time

ASKS = says(call("ask_human", question="Which colour?"))
WANTS = says(call("bash", command="echo paint"))
WRITES = says(call("write_file", path="scratch/fence.md", content="Two coats."))
ENDS = says(call("finish", summary="The fence is painted."))
GIVE, LEAVE = "Give it to coordinator as new work", "Do nothing"


async def get(served: Served, path: str) -> Any:
    status, body = await served.ask("GET", path)
    assert status == 200, body
    return body


async def asked_and_ended(served: Served, how: str, *, rules: tuple[Rule, ...] = ()) -> str:
    """Let a goal ask something and end; return the team's id. Afterwards the goal's agent works on
    whatever it is given."""
    served.world.script("ada", WANTS if rules else ASKS, WRITES, ENDS, WRITES, ENDS)
    founded = await served.world.found("Paint the fence", permissions=rules)
    await served.world.settle()
    [item] = (await get(served, "/inbox"))["items"]
    assert (item["state"], item["needs_answer"]) == ("unread", True)
    if how == "cancelled":
        assert founded.node is not None
        assert (await served.ask("POST", f"/nodes/{founded.node.id}/cancel"))[0] == 204
    elif how == "stopped":
        assert (await served.ask("POST", f"/teams/{founded.team.id}/stop"))[0] == 200
    else:
        await served.world.chat(founded.coordinator.id, "Just finish.", nudge=True)
    await served.world.settle()
    status = "completed" if how == "completed" else "cancelled"
    assert await tasks(served, founded.team.id) == [("Paint the fence", status)]
    return founded.team.id


async def tasks(served: Served, team: str) -> list[tuple[str, str]]:
    board = await get(served, f"/teams/{team}/board")
    return [(node["title"], node["status"]) for node in board]


async def open_items(served: Served) -> list[dict[str, Any]]:
    return [item for item in (await get(served, "/inbox"))["items"] if item["needs_answer"]]


async def answer(served: Served, item: dict[str, Any], **said: str) -> int:
    status, _ = await served.ask("POST", f"/inbox/{item['message']['id']}/answer", said)
    await served.world.settle()
    return status


@pytest.mark.parametrize("how", ["cancelled", "stopped", "completed"])
async def test_a_question_closes_with_its_work_and_a_late_answer_starts_nothing_by_itself(
    how: str, tmp_path: Path, database_url: str
) -> None:
    async with serving(tmp_path, database_url=database_url) as served:
        team = await asked_and_ended(served, how)
        before = await tasks(served, team)
        [question] = [
            i for i in (await get(served, "/inbox"))["items"] if i["message"]["kind"] == "question"
        ]
        assert (question["state"], await open_items(served)) == ("closed", [])

        assert await answer(served, question, text="Blue, like the sea.") == 200

        assert await tasks(served, team) == before
        [offer] = await open_items(served)
        assert offer["message"]["options"] == [GIVE, LEAVE]
        for words in ("has ended", "Which colour?", "Blue, like the sea."):
            assert words in offer["message"]["text"]
        assert await answer(served, offer, text="Well, perhaps.") == 422
        assert await answer(served, offer, text=GIVE) == 200
        [*_, made] = await get(served, f"/teams/{team}/board")
        assert made["task"].endswith("(answering 'Which colour?') Blue, like the sea.")
        assert (made["status"], made["result"]) == ("completed", "The fence is painted.")
        assert await open_items(served) == []


async def test_a_nudge_to_a_stopped_team_is_worked_on(tmp_path: Path, database_url: str) -> None:
    async with serving(tmp_path, database_url=database_url) as served:
        team = await asked_and_ended(served, "stopped")
        [agent] = await get(served, f"/teams/{team}/agents")
        said = {"message": "Oil the gate.", "mode": "nudge"}
        assert (await served.ask("POST", f"/agents/{agent['id']}/send", said))[0] == 202
        await served.world.settle()
        assert (await tasks(served, team))[1:] == [("Message from human", "completed")]


async def test_a_late_answer_of_which_nothing_shall_become_starts_nothing(
    tmp_path: Path, database_url: str
) -> None:
    async with serving(tmp_path, database_url=database_url) as served:
        team = await asked_and_ended(served, "completed")
        before = await tasks(served, team)
        [question] = [
            i for i in (await get(served, "/inbox"))["items"] if i["message"]["kind"] == "question"
        ]
        await answer(served, question, text="Blue.")
        [offer] = await open_items(served)
        assert await answer(served, offer, text=LEAVE) == 200
        assert (await tasks(served, team), await open_items(served)) == (before, [])
        said = await get(served, f"/agents/{offer['message']['sender']}/conversation")
        assert "Blue." in [m["text"] for m in said], "what they typed is kept"


@pytest.mark.parametrize("how", ["cancelled", "completed"])
@pytest.mark.parametrize(
    ("said", "status", "offers"),
    [
        ({"decision": "approve"}, 200, 1),
        ({"decision": "deny", "text": "Use chalk."}, 200, 1),
        ({"decision": "deny"}, 409, 0),
    ],
)
async def test_a_request_closes_with_its_work_and_a_late_decision_does_nothing(
    how: str,
    said: dict[str, str],
    status: int,
    offers: int,
    tmp_path: Path,
    database_url: str,
) -> None:
    async with serving(tmp_path, database_url=database_url) as served:
        rules = (Rule(tool="bash", action="ask"),)
        team = await asked_and_ended(served, how, rules=rules)
        before = await tasks(served, team)
        [request] = [
            i for i in (await get(served, "/inbox"))["items"] if i["message"]["kind"] == "approval"
        ]
        assert (request["state"], await open_items(served)) == ("closed", [])
        assert await answer(served, request, **said) == status
        assert (await tasks(served, team), len(await open_items(served))) == (before, offers)


NOT_ANY_MORE = "Cancel it, I do not need it any more."
BEATS = 3600


async def say(served: Served, agent: str, text: str) -> None:
    status, body = await served.ask("POST", f"/agents/{agent}/send", {"message": text})
    assert status == 202, body
    await served.world.settle()


async def by_type(served: Served, team: str) -> dict[str, tuple[str, str | None]]:
    """Return status and reason of each trigger of a team."""
    found = await get(served, f"/teams/{team}/triggers")
    return {one["type"]: (one["status"], one["ended"]) for one in found}


@pytest.mark.parametrize("how", ["said", "clicked"])
async def test_a_team_whose_goal_a_person_stopped_does_nothing_more_by_itself_until_a_new_goal(
    how: str, tmp_path: Path, database_url: str
) -> None:
    async with serving(tmp_path, database_url=database_url, reply_model="scripted/mouth") as served:
        world = served.world
        again = call("schedule", type="scheduled", config={"cron": "0 * * * *"}, action="Look.")
        ada = world.script("ada", says(again), ASKS, *[ENDS] * 5)
        world.script("mouth", says("Done.", call("stop_work", node_id="coordinator")))
        founded = await world.found("Watch the fence", mode="infinite", heartbeat=BEATS)
        team, agent = founded.team.id, founded.coordinator.id
        assert founded.node is not None
        mine = {
            "type": "delayed",
            "config": {"delay_seconds": 8 * BEATS},
            "payload": {"task": "Water the roses."},
        }
        status, body = await served.ask("POST", f"/teams/{team}/triggers", mine)
        assert status == 201, body
        await world.settle()
        if how == "said":
            await say(served, agent, NOT_ANY_MORE)
        else:
            await served.ask("POST", f"/nodes/{founded.node.id}/cancel")
            await world.settle()
        calls = len(ada.requests)

        for _ in range(5):
            await pass_time(world, BEATS + 1)
        assert len(ada.requests) == calls, "nobody works for the goal that was stopped"
        over = ("expired", "a person stopped the team's goal")
        assert await by_type(served, team) == {
            "heartbeat": over, "scheduled": over, "delayed": ("active", None)
        }  # fmt: skip
        for _ in range(6):
            await pass_time(world, BEATS + 1)
        assert len(ada.requests) == calls + 1, "what a person has set up is done"

        status, _ = await served.ask("POST", f"/teams/{team}/goal", {"goal": "Watch the gate"})
        assert status == 201
        await world.settle()
        assert (await by_type(served, team))["heartbeat"] == ("active", None)
