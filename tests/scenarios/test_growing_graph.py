"""Growing graph: nodes are created during the work, when results and suggestions call for them."""

import asyncio
import re

from agiraph.core.domain.events import Event
from agiraph.core.domain.work import ANSWER, NodeStatus, StopReason
from agiraph.core.services.members import roster
from agiraph.models.base import Request
from agiraph.testing import Says, World, call, says
from tests.doubts import doubts_of
from tests.fences import opened
from tests.runtime.waiting import until
from tests.scenarios.endings import ACCEPTS, defines, finishes
from tests.scenarios.thread_queries import created_nodes, event_number, new_texts
from tests.services.stages import accepts

GOAL = "Is a small electric bus worth buying for our village?"
AREAS = ["batteries", "motors", "charging"]
FOUND = f"There are three sub-areas: {', '.join(AREAS)}."
DONE = "it says whether to buy one, and why"
HINT = "We should also look at subsidies: half of the price may be paid by the state."


def explores(request: Request) -> Says:
    """Create one node for each sub-area that the first result names."""
    [_, result] = new_texts(request)
    [listed] = re.findall(r"three sub-areas: (.*)\.", result)
    areas = listed.split(", ")
    return says(
        *(
            call(
                "create_work_node", title=f"Look into {a}", task=a, assigned_to=f"new:scripted/{a}"
            )
            for a in areas
        )
    )


def publishes(name: str, text: str) -> list[Says]:
    return [
        says(call("write_file", path=f"{name}.md", content=text)),
        says(call("publish", summary=text)),
    ]


def creations(events: list[Event]) -> list[str]:
    return [e.data["title"] for e in events if e.type == "node.created"]


async def test_nodes_are_created_as_results_and_suggestions_arrive(world: World) -> None:
    started, joined = asyncio.Event(), asyncio.Event()

    def takes_up_the_hint(request: Request) -> Says:
        interrupted, *heard = new_texts(request)
        assert interrupted.startswith("Interrupted, because there is a message for you")
        assert f"[Message from motors (suggestion)] {HINT}" in [opened(text) for text in heard]
        return says(
            "Good idea.",
            call(
                "create_work_node",
                title="Look into subsidies",
                task="subsidies",
                assigned_to="new:scripted/subsidies",
            ),
        )

    def synthesizes(request: Request) -> Says:
        refs = dict(zip([*AREAS, "subsidies"], created_nodes(request), strict=True))
        return says(
            call(
                "create_work_node",
                title="Synthesize all findings",
                task="Put them together.",
                refs=refs,
                assigned_to="new:scripted/synthesis",
            )
        )

    ada = world.script(
        "ada",
        says(
            defines(DONE),
            call(
                "assign_task",
                agent="new:scripted/first",
                task="Which questions are there?",
                description="Research the topic",
            ),
        ),
        explores,
        lambda request: says(call("start_stage", name="deeper", nodes=created_nodes(request))),
        takes_up_the_hint,
        lambda request: says(call("start_stage", name="deeper", nodes=created_nodes(request)[3:])),
        lambda request: says(
            accepts("Charging is thin; subsidies are a new angle.", created_nodes(request))
        ),
        synthesizes,
        lambda request: says(call("task_output", id=created_nodes(request)[-1], blocking=True)),
        finishes("Yes, with the subsidy.", "the synthesis of all findings"),
        ACCEPTS,
    )
    world.script("first", *publishes("areas", FOUND))
    world.script("batteries", *publishes("batteries", "They last ten years."))
    motors = world.script(
        "motors",
        says(call("suggest_next", suggestion=HINT)),
        *publishes("motors", "They are the cheap part."),
    )
    motors.gate = started
    charging = world.script("charging", *publishes("charging", "One plug will do."))
    charging.gate = joined  # keeps the stage running until the suggestion is taken up
    world.script("subsidies", *publishes("subsidies", "The state pays half."))
    synthesis = world.script(
        "synthesis",
        says(*(call("read_ref", ref_name=f"{a}/{a}.md") for a in [*AREAS, "subsidies"])),
        *publishes("answer", "Yes, with the subsidy."),
    )

    founded = await world.found(GOAL)

    async def in_stage(title: str) -> bool:
        nodes = await world.board(founded.team.id)
        return any(n.stage_id for n in nodes if n.title == title)

    await until(world, lambda: in_stage("Look into motors"))
    started.set()
    await until(world, lambda: in_stage("Look into subsidies"))
    joined.set()
    await world.settle()

    goal, *grown, review = await world.board(founded.team.id)
    assert doubts_of(goal) is None
    assert (review.parent_id, review.stop_reason) == (goal.id, StopReason.ACCEPTED)
    events = await world.events(founded.team.id)
    a, b, c, d, e, f = grown
    assert [n.title for n in grown] == creations(events)[1:-1]
    assert [n.title for n in grown] == [
        "Research the topic",
        *(f"Look into {area}" for area in AREAS),
        "Look into subsidies",
        "Synthesize all findings",
    ]
    assert {n.status for n in (goal, *grown)} == {NodeStatus.COMPLETED}
    assert {(n.parent_id, n.depth) for n in grown} == {(goal.id, 1)}
    assert [turn.text for turn in synthesis.requests[1].turns if turn.role == "tool"] == [
        "They last ten years.",
        "They are the cheap part.",
        "One plug will do.",
        "The state pays half.",
    ]
    assert any("'deeper' is over: its contract is met" in t.text for t in ada.requests[5].turns)

    # Each node comes after its cause: the first result, the suggestion, the assessment.
    made = {n.id: event_number(events, "node.created", node_id=n.id) for n in grown}
    ended = {n.id: event_number(events, "node.completed", node_id=n.id) for n in grown}
    hinted = event_number(events, "message.sent", kind="suggestion")
    launched = event_number(events, "stage.started")
    met = event_number(events, "stage.ended", status="met")
    reconvened = event_number(events, "stage.reconvened")
    assert [n.id for n in (a, b, c, d, e, f)] == sorted(made, key=lambda n: made[n])
    assert ended[a.id] < min(made[n.id] for n in (b, c, d))
    assert launched < hinted < made[e.id] < ended[d.id]
    assert max(ended[n.id] for n in (b, c, d, e)) < met < reconvened < made[f.id]
    assert ended[f.id] < event_number(events, "node.completed", node_id=goal.id)

    everyone = await world.store.read(roster.members, founded.team.id, all=True)
    assert [m.agent.name for m in everyone if m.doing != "left"] == ["coordinator"]


async def test_nodes_added_to_a_stage_that_has_just_ended_are_waited_for(world: World) -> None:
    """The stage has ended; starting it again with a new node waits for that node.

    The person asks for nothing but an answer.
    """

    def adds(title: str) -> Says:
        node = {"title": title, "task": title, "assigned_to": f"new:scripted/{title}"}
        return says(call("create_work_node", **node))

    ada = world.script(
        "ada",
        adds("motors"),
        lambda request: says(call("start_stage", name="deeper", nodes=created_nodes(request))),
        adds("subsidies"),
        lambda request: says(call("start_stage", name="deeper", nodes=created_nodes(request))),
        lambda request: says(accepts("Both are good.", created_nodes(request), decision="finish")),
        finishes("Yes: cheap, and half is paid."),
    )
    world.script("motors", *publishes("motors", "Cheap."))
    world.script("subsidies", *publishes("subsidies", "Half."))
    founded = await world.found(GOAL, acceptance=(ANSWER,))
    await world.settle()

    assert "'deeper' is over: its contract is met" in ada.requests[2].turns[-1].text
    over = ada.requests[4].turns[-1].text
    assert "'deeper' is over: its contract is met" in over
    assert "Cheap." in over
    assert "Half." in over
    events = await world.events(founded.team.id)
    assert [x.type for x in events if x.type.startswith("stage.")] == [
        "stage.started",
        "stage.ended",
        "stage.ended",
        "stage.reconvened",
    ]
    goal, *_ = await world.board(founded.team.id)
    assert (goal.status, doubts_of(goal)) == (NodeStatus.COMPLETED, None)
