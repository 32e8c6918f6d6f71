"""Cancelling: an agent can cancel the work that it delegated."""

import re

from agiraph.core.domain.work import Budget, NodeStatus
from agiraph.models.base import Request
from agiraph.testing import Says, World, call, says
from agiraph.testing.scripted import ScriptedModel

WAITS = says(call("ask_human", question="Which one?"))


def last_tool_answers(model: ScriptedModel) -> list[str]:
    return [t.text for t in model.requests[-1].turns if t.role == "tool"]


async def test_cancelling_a_task_cancels_its_children_and_withdraws_their_questions(
    world: World,
) -> None:
    def cancel_twice(request: Request) -> Says:
        turns = request.transcript.turns
        [given] = [m[1] for t in turns if (m := re.search(r"background as (node_\w+)", t.text))]
        return says(
            call("cancel_work_node", node_id=given, reason="too slow"),
            call("cancel_work_node", node_id=given, reason="again"),
            call("check_board"),
        )

    gate = says(call("ask_human", question="Shall I take it back?"))
    ada = world.script(
        "ada",
        says(call("assign_task", agent="new:scripted/bob", task="Do it", description="a task",
                  run_in_background=True)),
        gate,
        cancel_twice,
        says(call("finish", summary="done")),
    )  # fmt: skip
    world.script(
        "bob",
        says(call("assign_task", agent="new:scripted/cyd", task="A part", description="a part")),
    )
    world.script("cyd", WAITS)
    founded = await world.found("Try")
    await world.settle()
    questions = {q.text: q for q in await world.questions(founded.team.id)}
    assert set(questions) == {"Which one?", "Shall I take it back?"}
    await world.answer(questions["Shall I take it back?"], "Yes.")
    await world.settle()

    nodes = {node.title: node for node in await world.board(founded.team.id)}
    assert [nodes[title].status for title in ("a task", "a part")] == [NodeStatus.CANCELLED] * 2
    assert await world.questions(founded.team.id) == []
    said = last_tool_answers(ada)
    assert said[2:4] == [
        f"Cancelled {nodes['a task'].id} and all below it.",
        f"{nodes['a task'].id} is cancelled already.",
    ]
    assert f"{nodes['a part'].id} [cancelled]" in said[4]


async def test_an_agent_can_cancel_only_what_it_delegated(world: World) -> None:
    def delegate(request: Request) -> Says:
        other = next(t.text for t in request.transcript.turns if t.text.startswith("Created"))
        task = f"other {other.split()[1].strip(',')}"
        return says(call("assign_task", agent="new:scripted/bob", task=task, description="a task"))

    def attempt(request: Request) -> Says:
        task = request.transcript.turns[1].text
        own, other = (re.findall(rf"{word} (node_\w+)", task)[0] for word in ("Id:", "other"))
        return says(*(call("cancel_work_node", node_id=n, reason="x") for n in (own, other)))

    world.script(
        "ada",
        says(call("create_work_node", task="Other", title="other", assigned_to="new:scripted/cyd")),
        delegate,
        says(call("finish", summary="done")),
    )
    bob = world.script("bob", attempt, says(call("publish", summary="tried")))
    world.script("cyd", WAITS)
    await world.found("Try")
    await world.settle()

    assert last_tool_answers(bob) == [
        "That is your own work: submit what you have instead.",
        "You may cancel what you gave away yourself; ask the coordinator.",
    ]


async def test_work_started_by_a_message_is_paid_by_the_senders_node(world: World) -> None:
    """A message must not be a way around a budget."""
    world.script(
        "ada",
        says(call("spawn_worker", name="bob", model="scripted/bob")),
        says(call("send_message", to="bob", content="Do a lot, please.")),
        says(call("ask_human", question="Well?")),
    )
    world.script("bob", *(says(call("checkpoint", summary=f"step {n}")) for n in range(9)))
    founded = await world.found("Try", budget=Budget(model_calls=6))
    await world.settle()

    errand = next(n for n in await world.board(founded.team.id) if n.title.startswith("Message"))
    assert (errand.status, errand.stop_reason) == (NodeStatus.PARTIAL, "calls_spent")
    assert founded.node is not None
    assert (errand.parent_id, errand.payer_id) == (None, founded.node.id)
