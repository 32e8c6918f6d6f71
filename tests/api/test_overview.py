"""Overview over HTTP: all teams with their members in one response, and the archive."""

from datetime import datetime, timedelta
from typing import Any, cast

from agiraph.api.presenters import team_views
from agiraph.core.domain.ids import AgentId, PersonId, TeamId
from agiraph.core.domain.messages import Draft
from agiraph.core.domain.persons import OWNER
from agiraph.core.services.lifecycle import teams as verbs
from agiraph.core.services.mail import bus
from agiraph.core.services.members import roster
from agiraph.core.store import teams
from agiraph.core.store.lists import overview
from agiraph.core.store.tx import Tx
from agiraph.testing import call, says
from tests.api.serving import Served


class _Counted:
    """Counts the statements of a transaction."""

    def __init__(self, tx: Tx) -> None:
        self._tx = tx
        self.statements = 0

    def all(self, sql: str, **values: Any) -> list[Any]:
        self.statements += 1
        return self._tx.all(sql, **values)

    def one(self, sql: str, **values: Any) -> Any:
        self.statements += 1
        return self._tx.one(sql, **values)

    @property
    def now(self) -> datetime:
        return self._tx.now

    def emitted(self, team_id: TeamId) -> int:
        return self._tx.emitted(team_id)


async def _overview(served: Served, query: str = "") -> list[dict[str, Any]]:
    status, found = await served.ask("GET", f"/overview{query}")
    assert status == 200, found
    return found


async def test_the_overview_agrees_with_what_each_team_and_agent_says(served: Served) -> None:
    served.world.script("ada", says(call("ask_human", question="Which beans?")))
    asking = await served.world.found("Count the beans", name="asking")
    await served.world.settle()
    idle = await served.world.found("Rest", name="idle", start=False)

    def add(tx: Tx) -> None:
        ada = roster.hire(tx, idle.team.id, name="ada", role="counter", model="openai/ada")
        bus.send(tx, Draft(team_id=idle.team.id, sender=ada.id, recipient=OWNER, text="I am here."))

    await served.world.store.write(add)
    found = await _overview(served)

    assert [team["name"] for team in found] == ["idle", "asking"]
    for team in found:
        _, whole = await served.ask("GET", f"/teams/{team['id']}")
        _, agents = await served.ask("GET", f"/teams/{team['id']}/agents")
        same = ("name", "status", "trust", "coordinator_id", "created_at", "open_questions",
                "unread", "usd")  # fmt: skip
        assert {key: team[key] for key in same} == {key: whole[key] for key in same}
        assert team["members"] == [
            {key: agent[key] for key in ("id", "name", "role", "status", "unread")}
            | {"questions": int(agent["status"] == "waiting_for_you")}
            for agent in agents
        ]
    assert [m["status"] for team in found for m in team["members"]] == [
        "idle",
        "idle",
        "waiting_for_you",
    ]
    assert asking.team.id == found[1]["id"]


async def test_a_question_that_is_snoozed_or_for_another_person_is_not_counted(
    served: Served,
) -> None:
    served.world.script("ada", says(call("ask_human", question="Which beans?")))
    asking = await served.world.found("Count the beans", name="asking")
    await served.world.settle()

    async def counted(person: PersonId = OWNER) -> list[int]:
        [team] = await served.world.store.read(overview.read, person)
        [view] = await served.world.store.read(team_views, [asking.team], person)
        return [team.open_questions, view.open_questions, team.members[0].questions]

    assert [await counted(), await counted(PersonId("person_other"))] == [[1, 1, 1], [0, 0, 0]]
    _, inbox = await served.ask("GET", "/inbox")
    until = served.world.clock.now() + timedelta(hours=1)
    snooze = {"action": "snooze", "until": until.isoformat()}
    ids = [item["message"]["id"] for item in inbox["items"] if item["needs_answer"]]
    assert (await served.ask("POST", "/inbox/bulk", snooze | {"ids": ids}))[0] == 200
    assert await counted() == [0, 0, 0]
    served.world.clock.advance(hours=2)
    assert await counted() == [1, 1, 1]


async def test_a_team_whose_agents_did_something_or_wrote_last_comes_first(served: Served) -> None:
    old = await served.world.found("Old", name="old", start=False)
    served.world.clock.advance(minutes=5)
    await served.world.found("New", name="new", start=False)
    assert [team["name"] for team in await _overview(served)] == ["new", "old"]
    served.world.clock.advance(minutes=5)
    told = await served.world.store.write(_tell, old.team.id, old.coordinator.id)
    assert [team["name"] for team in await _overview(served)] == ["old", "new"]

    # What a person puts away or sets moves no team.
    await served.world.found("Newest", name="newest", start=False)
    before = await _overview(served)
    served.world.clock.advance(minutes=5)
    filed = {"ids": [told], "action": "archive"}
    _, outcome = await served.ask("POST", "/inbox/bulk", filed)
    assert [one["is_done"] for one in outcome["outcomes"]] == [True]
    until = (served.world.clock.now() + timedelta(hours=1)).isoformat()
    assert (await served.ask("PATCH", f"/teams/{old.team.id}", {"muted_until": until}))[0] == 200
    await served.world.store.write(verbs.pause, old.team.id)
    after = await _overview(served)
    assert [(team["name"], team["active_at"]) for team in after] == [
        (team["name"], team["active_at"]) for team in before
    ]


def _tell(tx: Tx, team_id: TeamId, sender: AgentId) -> str:
    to = {"sender": sender, "recipient": OWNER}
    return bus.send(tx, Draft(team_id=team_id, text="Done.", kind="report", **to)).id


async def test_the_number_of_statements_does_not_grow_with_teams_and_members(
    served: Served,
) -> None:
    def count(tx: Tx) -> tuple[int, int]:
        counted = [_Counted(tx), _Counted(tx)]
        overview.read(cast(Tx, counted[0]), OWNER)
        listed = cast(Tx, counted[1])
        team_views(listed, teams.page(listed), OWNER)
        return counted[0].statements, counted[1].statements

    await served.world.found("One", name="one", start=False)
    one = await served.world.store.read(count)
    for n in range(3):
        await served.world.found("More", name=f"more {n}", start=False)
    assert await served.world.store.read(count) == one
    _, listed = await served.ask("GET", "/teams")
    each = [(await served.ask("GET", f"/teams/{team['id']}"))[1] for team in listed]
    assert (listed, [team["name"] for team in listed]) == (
        each,
        ["one", "more 0", "more 1", "more 2"],
    )


async def test_an_archived_team_leaves_the_list_and_can_be_restored(served: Served) -> None:
    served.world.script("ada", says(call("finish", summary="done")))
    done = await served.world.found("Count the beans", name="done")
    await served.world.settle()
    stopped = await served.world.found("Wait", name="stopped", start=False)
    for team in (done.team.id, stopped.team.id):
        assert (await served.ask("DELETE", f"/teams/{team}"))[0] == 204
        served.world.clock.advance(minutes=1)
    assert await _overview(served) == []
    assert [t["name"] for t in await _overview(served, "?archived=true")] == ["stopped", "done"]

    for team, status in ((done.team.id, "completed"), (stopped.team.id, "stopped")):
        code, restored = await served.ask("POST", f"/teams/{team}/restore")
        assert (code, restored["status"]) == (200, status)
        assert (await served.ask("POST", f"/teams/{team}/restore"))[1]["status"] == status
    assert {t["name"] for t in await _overview(served)} == {"done", "stopped"}
    _, events = await served.ask("GET", f"/teams/{done.team.id}/events")
    assert [event["type"] for event in events][-2:] == ["team.archived", "team.restored"]


async def test_a_team_says_when_its_goal_ended_and_no_more_once_it_goes_on(
    served: Served,
) -> None:
    world = served.world
    world.script("ada", says(call("finish", summary="done")), says(call("finish", summary="more")))
    founded = await world.found("Count the beans")
    assert [team["ended_at"] for team in await _overview(served)] == [None]
    await world.settle()
    [goal] = await world.board(founded.team.id)
    world.clock.advance(hours=1)
    [team] = await _overview(served)
    assert (team["state"], datetime.fromisoformat(team["ended_at"])) == ("done", goal.ended_at)

    # A new goal has not ended, whatever became of the one before it.
    again = await served.ask("POST", f"/teams/{founded.team.id}/goal", {"goal": "Count the peas"})
    assert again[0] == 201
    assert [team["ended_at"] for team in await _overview(served)] == [None]


async def test_what_was_scheduled_for_a_completed_team_is_scheduled_again(served: Served) -> None:
    served.world.script("ada", says(call("finish", summary="done")))
    founded = await served.world.found("Count the beans")
    await served.world.settle()
    team = founded.team.id
    daily = {"type": "scheduled", "config": {"cron": "0 9 * * *", "zone": "UTC"}}
    status, made = await served.ask("POST", f"/teams/{team}/triggers", daily)
    assert status == 201, made
    reminders: list[dict[str, Any]] = []
    for seconds in (1800, 7200):
        later = {"type": "delayed", "config": {"delay_seconds": seconds}}
        status, reminder = await served.ask("POST", f"/teams/{team}/triggers", later)
        assert status == 201, reminder
        reminders.append(reminder)
    await served.ask("DELETE", f"/teams/{team}")
    served.world.clock.advance(hours=1)
    await served.ask("POST", f"/teams/{team}/restore")

    _, triggers = await served.ask("GET", f"/teams/{team}/triggers")

    states = {one["id"]: one["status"] for one in triggers}
    assert states.pop(made["id"]) == "active"
    # A reminder comes at its first moment, unless that has passed in the archive.
    assert [states.pop(one["id"]) for one in reminders] == ["expired", "active"]
    due = {one["id"]: one["due_at"] for one in triggers}
    assert due[reminders[1]["id"]] == reminders[1]["due_at"]
    assert set(states.values()) <= {"expired"}  # the heartbeat ended with the goal


async def test_some_teams_are_read_by_themselves(served: Served) -> None:
    made = [(await served.world.found("Rest", name=f"n{n}", start=False)).team for n in range(4)]
    whole = await _overview(served)
    some = await _overview(served, f"?team={made[0].id}&team={made[2].id}&team=team_none")
    assert some == [team for team in whole if team["name"] in ("n0", "n2")]
    await served.ask("DELETE", f"/teams/{made[0].id}")
    assert await _overview(served, f"?team={made[0].id}") == []
