"""Two researchers, hired one after the other: the second begins with what the first has learned."""

import json
import re

from agiraph.features.knowledge.model import of_specialist
from agiraph.models.base import Request
from agiraph.testing import Says, World, call, says
from agiraph.testing.scripted import ReactiveModel
from tests.known import insights

LEARNED = "The city publishes how many people take a bus or tram on the second Tuesday of a month"
QUESTION = r"Find out how many people take the \w+"


def _asks(request: Request) -> str:
    """Return the name of the question that the runtime asks; empty in work."""
    *_, last = request.transcript.spoken()
    return (last.ref or "").partition(":")[0]


def leads(request: Request) -> Says:
    """Hire a researcher for the question of the person, and report what it has found."""
    if _asks(request) in ("harvest", "briefing"):
        return says(json.dumps({"insights": [], "score": 0, "title": "", "text": ""}))
    told = "\n".join(turn.text for turn in request.transcript.spoken())
    if "40,000 a day" in told:
        return says(call("finish", summary="40,000 a day."))
    [task, *_] = re.findall(QUESTION, told) or ["Find out how many people take the ferry"]
    agent = "new:researcher:scripted/rob"
    return says(call("assign_task", agent=agent, task=task, description="Count"))


async def test_the_second_researcher_begins_with_what_the_first_one_learned(world: World) -> None:
    works: list[str] = []

    def researches(request: Request) -> Says:
        if _asks(request) == "harvest":
            kept = {"type": "fact", "content": LEARNED, "confidence": 0.8, "work": 1}
            kept |= {"action": "add", "id": ""}
            return says(json.dumps({"insights": [kept] if len(works) == 1 else []}))
        if not any(turn.role == "assistant" for turn in request.transcript.turns):
            works.append(request.transcript.system)
        return says(call("publish", summary="Counted: 40,000 a day."))

    world.model("ada", ReactiveModel("scripted/ada", leads))
    world.model("rob", ReactiveModel("scripted/rob", researches))
    founded = await world.found("Know how people travel", learns=True, start=False, mode="infinite")
    for means in ("bus", "tram"):
        question = f"Find out how many people take the {means}"
        await world.say(founded.coordinator.id, question, team_id=founded.team.id)
        await world.settle()

    first, second = works
    assert LEARNED not in first
    assert LEARNED in second
    _, first_one, _ = await world.members(founded.team.id)
    [learned] = await insights(world, first_one.id)
    assert (learned.owner, learned.uses) == (of_specialist("researcher"), 1)
    assert learned.agent_id == first_one.id
    assert first_one.retired_at is not None
