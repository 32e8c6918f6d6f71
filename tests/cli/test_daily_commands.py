"""Commands of daily use on one item, task, agent or team: their effects and their output."""

import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from agiraph.cli.talk import Activity
from agiraph.client import Client
from agiraph.core.domain.messages import Draft
from agiraph.core.domain.persons import OWNER
from agiraph.core.domain.provenance.labels import SEARCH, of_page
from agiraph.core.domain.work import NodeStatus
from agiraph.core.services.lifecycle.teams import NewTeam
from agiraph.core.services.mail import bus
from agiraph.features.knowledge.verbs import items
from agiraph.testing import World, call, says
from tests.api.serving import TOKEN, Served, serving
from tests.cli.shell import Ended, Shell
from tests.services.stages import pass_time
from tests.services.triggers import DONE, OK, create_trigger, found_idle_team

ASK = says(call("ask_human", question="Red or blue?", options=["red", "blue"]))


class Place:
    """A server, and the commands of a person who works with it."""

    def __init__(self, served: Served, shell: Shell) -> None:
        self.served, self.world, self._shell = served, served.world, shell
        shell.environment |= {"AGIRAPH_PORT": str(served.port), "AGIRAPH_TOKEN": TOKEN}

    async def run(self, *words: str) -> Ended:
        return await self._shell(*words)

    async def out(self, *words: str) -> str:
        """Run a command that succeeds; return what it prints."""
        ended = await self.run(*words)
        assert (ended.code, ended.err) == (0, ""), ended
        return ended.out

    async def json(self, *words: str) -> Any:
        return orjson.loads(await self.out(*words, "--json"))

    async def send(self, founded: NewTeam, text: str, **more: Any) -> str:
        """Send the person a message of the coordinator; return its id."""
        of = {"team_id": founded.team.id, "sender": founded.coordinator.id, "recipient": OWNER}
        return (await self.world.store.write(bus.send, Draft(text=text, **of, **more))).id


@pytest.fixture
async def place(tmp_path: Path) -> AsyncIterator[Place]:
    async with serving(tmp_path / "served") as served:
        yield Place(served, Shell(tmp_path / "home"))


async def test_one_item_of_the_inbox_is_read_whole(place: Place) -> None:
    place.world.script("ada", ASK)
    founded = await place.world.found("Paint it", name="paint")
    await place.world.settle()
    long = "First line.\n\n" + "word " * 300
    report = await place.send(founded, long, kind="report", title="Reminder")

    shown = await place.out("inbox", report)
    assert "coordinator · report · 2026-01-05 09:00 UTC\nReminder\nFirst line." in shown
    assert shown.count("word") == 300
    [question, listed] = await place.json("inbox")
    assert (listed["id"], listed["state"], question["state"]) == (report, "read", "unread")
    asked = await place.out("inbox", question["id"])
    assert "Red or blue?\n1. red\n2. blue" in asked
    assert f'agiraph answer {question["id"]} "TEXT"' in asked
    assert (await place.json("inbox", question["id"]))["needs_answer"] is True

    missing = await place.run("inbox", "msg_x")
    assert missing.code == 1
    assert "There is no inbox item 'msg_x'. `agiraph inbox` lists them." in missing.err


async def test_the_inbox_says_what_a_result_is_about_and_whose_words_it_holds(place: Place) -> None:
    place.world.script("ada")
    founded = await place.world.found("Watch", name="watch", start=False)
    label = SEARCH | of_page("http://bank.example/hours")
    await place.send(founded, "done", kind="result", title="Call the bank", label=label)

    listed = re.sub(r"\s+", " ", await place.out("inbox"))
    told = "Call the bank done (holds words of a page of bank.example and a web search)"
    assert told in listed


async def test_a_briefing_is_rated(place: Place) -> None:
    place.world.script("ada")
    founded = await place.world.found("Watch", name="watch", start=False)
    briefing = await place.send(founded, "Rates rose.", kind="briefing", title="Rates")
    other = await place.send(founded, "Done.", kind="result")

    assert f"agiraph rate {briefing} up|down" in await place.out("inbox", briefing)
    assert await place.out("rate", briefing, "down") == "Rated. You will get fewer like it.\n"
    assert (await place.json("inbox", briefing))["rating"] == "down"
    refused = await place.run("rate", other, "up")
    assert (refused.code, "only briefings are rated" in refused.err) == (1, True)


async def test_one_task_is_cancelled_and_another_tried_again(place: Place) -> None:
    place.world.script("ada", says("Hm."), says("Hm."), says("Hm."), ASK, ASK)
    founded = await place.world.found("Paint it", name="paint")
    await place.world.settle()
    [goal] = await place.world.board(founded.team.id)
    assert goal.status is NodeStatus.FAILED

    again = await place.out("retry", goal.id)
    assert again.startswith("Started 'Paint it' again. Watch it with: agiraph tail team_")
    await place.world.settle()
    assert (await place.world.node(goal.id)).status is NodeStatus.WAITING
    said = await place.out("cancel", goal.id)
    assert said == f"Cancelled 'Paint it'. Start it again with: agiraph retry {goal.id}\n"
    assert (await place.world.node(goal.id)).status is NodeStatus.CANCELLED
    assert "by you" in await place.out("board", "paint")
    ended = await place.out("cancel", goal.id)
    assert ended.startswith("'Paint it' is cancelled already.")
    assert (await place.out("retry", goal.id)).startswith("Started 'Paint it' again.")
    await place.world.settle()
    refused = await place.run("retry", goal.id)
    assert refused.code == 1
    assert "'Paint it' is waiting: only work that was stopped, has failed or" in refused.err
    for command in ("cancel", "retry"):
        missing = await place.run(command, "node_x")
        assert missing.code == 1
        assert "There is no task 'node_x'. `agiraph board TEAM` lists them." in missing.err


async def test_a_refused_call_that_a_model_repeats_is_shown_once_in_a_chat(place: Place) -> None:
    refused = says(call("look_into", what="nobody"))
    answer = says("Nobody has that name.", call("no_work_needed", reason="a question"))
    place.world.script("ada", refused, refused, refused, answer)
    founded = await place.world.found("Watch", name="watch", start=False)
    await place.world.chat(founded.coordinator.id, "How is nobody?")
    await place.world.settle()

    async with Client(place.served.origin, TOKEN) as client:
        activity = Activity(client, await client.agent(founded.coordinator.id))
        events = await client.events(founded.team.id)
        shown = [line for event in events for line in await activity.lines(event)]
    assert sum(event.type == "turn.added" for event in events) == 4, events
    assert shown == ["  [dim]One moment: I look into nobody …[/]"]


async def test_memories_and_insights_are_listed(place: Place) -> None:
    place.world.script("ada")
    founded = await place.world.found("Watch", name="watch", start=False)
    agent = founded.coordinator.id
    assert await place.out("memories", "watch") == "It remembers nothing about you yet.\n"
    assert await place.out("insights", "watch") == "It has learned nothing yet.\n"
    await place.served.ask("POST", f"/agents/{agent}/memories", {"content": "Likes tea"})
    learned = {"type": "lesson", "content": "Check filings first"}
    await place.served.ask("POST", f"/agents/{agent}/insights", learned)

    assert re.search(r"memory .* active .* ?Likes tea", await place.out("memories", agent))
    listed = await place.out("insights", "coordinator", "--team", "watch")
    assert re.search(r"lesson .* active .* ?Check filings first", listed)
    assert [item["content"] for item in await place.json("memories", "watch")] == ["Likes tea"]
    assert await place.out("insights", "watch", "--query", "herons") == "Nothing fits.\n"


async def test_triggers_are_created_for_a_time_again_and_again_an_event_and_a_call(
    place: Place,
) -> None:
    place.world.script("ada")
    await place.world.found("Watch", name="watch", start=False)
    daily = ("schedule", "watch", "Look around", "--every", "day", "--zone", "Europe/Berlin")
    assert "first at 2026-01-06 09:00 Europe/Berlin." in await place.out(*daily)
    await place.out("schedule", "watch", "Drink water", "--at", "2030-05-20T09:00", "--remind")
    await place.out("schedule", "watch", "Look into it", "--event", "node.failed")
    hook = await place.out("schedule", "watch", "Look at the build", "--webhook")

    listed = await place.json("triggers", "watch")
    assert [(t["type"], t["action"], t["payload"]) for t in listed] == [
        ("scheduled", "wake_agent", {"task": "Look around"}),
        ("at_time", "send_message", {"to": OWNER, "content": "Drink water"}),
        ("on_event", "wake_agent", {"task": "Look into it"}),
        ("webhook", "wake_agent", {"task": "Look at the build"}),
    ]
    assert f"POST {place.served.origin}/api/hooks/{listed[-1]['id']}" in hook
    for when in ((), ("--at", "1 hour", "--every", "day")):
        wrong = await place.run("schedule", "watch", "Look around", *when)
        assert (wrong.code, "Say when, by one of" in wrong.err) == (2, True)
    wrong = await place.run("schedule", "watch", "Look around", "--every", "often")
    assert (wrong.code, "often" in wrong.err) == (1, True)


async def test_times_of_a_trigger_are_those_of_the_person(place: Place) -> None:
    place.world.script("ada")
    await place.world.found("Watch", name="watch", start=False)
    await place.out("zone", "America/New_York")
    once = ("schedule", "watch", "Drink water", "--remind", "--at", "2030-05-20T09:00")
    assert "first at 2030-05-20 09:00 America/New_York." in await place.out(*once)
    await place.out("schedule", "watch", "Look around", "--every", "Day")
    await place.out(*once, "--zone", "UTC")
    listed = await place.json("triggers", "watch")
    assert listed[0]["config"]["at"] == "2030-05-20T09:00:00-04:00"
    due = [t["due_at"][:16] for t in listed]
    assert due == ["2030-05-20T13:00", "2026-01-05T14:00", "2030-05-20T09:00"]
    shown = await place.out("triggers", "watch")
    assert re.search(r"2030-05-20 .*\n +09:00 EDT ", shown), shown


async def test_a_trigger_is_run_and_changed(place: Place) -> None:
    place.world.script("ada", DONE)
    await place.world.found("Watch", name="watch", start=False)
    await place.out("schedule", "watch", "Look around", "--every", "day", "--zone", "Europe/Berlin")
    [trigger] = await place.json("triggers", "watch")
    id = trigger["id"]
    assert f"{id} runs now as node_" in await place.out("triggers", "watch", "--run", id)
    await place.world.settle()
    edit = ("triggers", "watch", "--edit", id[-6:])
    said = await place.out(*edit, "--task", "Look closely", "--every", "0 7 * * *")
    assert said == f"{id} is changed; next at 2026-01-06 07:00 Europe/Berlin.\n"
    [after] = await place.json("triggers", "watch")
    config = {"cron": "0 7 * * *", "zone": "Europe/Berlin"}
    assert (after["payload"], after["config"]) == ({"task": "Look closely"}, config)
    assert (after["fired"], after["status"]) == (1, "active")
    for wrong, code, why in (
        (edit, 2, "--edit needs what changes"),
        (("triggers", "watch", "--run", id, "--cancel", id), 2, "Give one of"),
        ((*edit, "--event", "node.failed"), 1, "another kind of time"),
        (("triggers", "watch", "--edit", "trig_no", "--task", "x"), 1, "trig_no"),
    ):
        ended = await place.run(*wrong)
        assert (ended.code, why in ended.err) == (code, True), ended.err
    await place.out("triggers", "watch", "--cancel", id)
    ended = await place.run(*edit, "--task", "x")
    assert (ended.code, "make a new one" in ended.err) == (1, True), ended.err


async def test_a_person_is_away_until_a_time_of_their_own_zone(place: Place) -> None:
    await place.out("zone", "Pacific/Auckland")
    said = await place.out("away", "--until", "2026-01-20T09:00")
    assert said.startswith("You are away until Tuesday, 20 January 2026 09:00:")
    assert (await place.json("away"))["away_until"][:16] == "2026-01-19T20:00"


async def test_firings_with_nothing_to_do_are_counted_in_the_list_of_triggers(
    place: Place,
) -> None:
    founded = await found_idle_team(place.world, OK, DONE, name="watch")
    await create_trigger(place.world, founded, "scheduled", {"cron": "0 * * * *"})
    for _ in range(2):
        await pass_time(place.world, 3600)
    cells = re.split(r"\s+", await place.out("triggers", "watch"))
    assert {"2", "(1", "with", "nothing", "to", "do)"} <= set(cells)


async def test_a_broadcast_reaches_every_agent_and_is_shown_once(place: Place) -> None:
    hire = call("spawn_worker", name="bob", model="scripted/bob")
    place.world.script("ada", says(hire), ASK, ASK)
    place.world.script("bob")
    await place.world.found("Paint it", name="paint")
    await place.world.settle()
    assert await place.out("broadcast", "paint", "Use less blue.") == "Sent to coordinator, bob.\n"
    shown = await place.out("tail", "paint", "--no-follow")
    assert shown.count("you Use less blue.") == 1


async def test_a_question_that_closed_with_its_work_is_no_answer_of_yours(place: Place) -> None:
    place.world.script("ada", ASK)
    await place.world.found("Paint it", name="paint")
    await place.world.settle()
    await place.out("stop", "paint")
    await place.world.settle()
    shown = await place.out("tail", "paint", "--no-follow")
    assert "\n? Closed: the work that asked has ended.\n" in shown
    assert "you Closed" not in shown


async def test_the_list_of_teams_says_in_one_word_how_each_stands(place: Place) -> None:
    place.world.script("ada", ASK, ASK, says(call("finish", summary="Painted.")))
    founded = await place.world.found("Paint it", name="paint")
    await place.world.settle()

    async def shown() -> tuple[str, bool, bool]:
        """Return the state in JSON, and whether the list and the status of the server say it."""
        [team] = await place.json("teams")
        word = team["state"].replace("_", " ").capitalize()
        status = await place.out("status")
        return team["state"], word in await place.out("teams"), f"  teams: 1 {word}\n" in status

    assert await shown() == ("needs_you", True, True)
    await place.out("pause", "paint")
    assert await shown() == ("paused", True, True)
    await place.out("resume", "paint")
    stopped = await place.out("stop", "paint")
    assert f"start it again with: agiraph resume {founded.team.id}" in stopped
    assert await shown() == ("stopped", True, True)
    await place.out("resume", "paint")
    await place.world.settle()
    [question] = await place.world.questions(founded.team.id)
    await place.out("answer", question.id, "blue")
    await place.world.settle()
    assert await shown() == ("done", True, True)


async def test_an_item_and_memories_are_read_without_a_server(tmp_path: Path) -> None:
    async with World(tmp_path / "home") as world:
        world.script("ada")
        founded = await world.found("Watch", name="watch", start=False)
        of = {"team_id": founded.team.id, "sender": founded.coordinator.id, "recipient": OWNER}
        said = await world.store.write(bus.send, Draft(text="Rates rose.", kind="report", **of))
        await world.store.write(items.remember, founded.coordinator, "Likes tea", author=OWNER)
    agiraph = Shell(tmp_path / "home")
    assert "Rates rose." in (await agiraph("inbox", said.id)).out
    assert orjson.loads((await agiraph("inbox", "--json")).out)[0]["state"] == "read"
    assert "Likes tea" in (await agiraph("memories", "watch")).out
    assert (await agiraph("insights", "watch")).out == "It has learned nothing yet.\n"
