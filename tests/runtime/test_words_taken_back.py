"""Words taken back: what a person stops or undoes while work that heard of it goes on."""

from agiraph.core.domain.work import NodeStatus
from agiraph.core.services.lifecycle import routing
from agiraph.core.services.lifecycle.teams import NewTeam
from agiraph.testing import World, call, says
from tests.runtime.test_decided_messages import busy_team, reply_to, stated, world
from tests.runtime.test_reply_and_work import FINISH, NO_WORK, heard
from tests.runtime.waiting import Gate, until

__all__ = ["world"]


async def test_a_stop_leaves_what_was_said_after_it_to_its_own_reply(world: World) -> None:
    stop = call("stop_work", node_id="coordinator")
    mouth = world.script("mouth", says("I stop it.", stop), says("In red.", call("start_work")))
    talk = mouth.gate = Gate()
    founded, _, gate = await busy_team(world, FINISH, FINISH)
    await world.chat(founded.coordinator.id, "Stop.")
    await talk.reached()
    await world.chat(founded.coordinator.id, "No, paint it in red.")
    talk.set()
    # The work may end by itself before it hears of the stop.
    await until(world, lambda: _has_stopped(world, founded))
    gate.set()
    await world.settle()
    replies = [m for m in await world.conversation(founded.coordinator) if m.acts]
    assert [stated(reply) for reply in replies] == [
        [("stopped", "Paint the fence", "")],
        [("started", "No, paint it in red.", "")],
    ]
    statuses = [n.status for n in await world.board(founded.team.id)]
    assert statuses == [NodeStatus.CANCELLED, NodeStatus.COMPLETED]


async def _has_stopped(world: World, founded: NewTeam) -> bool:
    return any(message.acts for message in await world.conversation(founded.coordinator))


async def test_words_for_work_that_the_same_reply_stops_are_dropped_with_it(world: World) -> None:
    tell, stop = (call(name, node_id="coordinator") for name in ("tell", "stop_work"))
    world.script("mouth", says("Both.", tell, stop))
    founded, work, gate = await busy_team(world, FINISH, FINISH)
    reply = await reply_to(world, founded, "Nimm Rot statt Blau.")
    gate.set()
    await world.settle()
    assert stated(reply) == [("stopped", "Paint the fence", "“Nimm Rot statt Blau.”")]
    assert [n.status for n in await world.board(founded.team.id)] == [NodeStatus.CANCELLED]
    await world.store.write(routing.undo, reply.id, 0)
    await world.settle()
    assert [n.status for n in await world.board(founded.team.id)] == [NodeStatus.COMPLETED]
    assert "Nimm Rot statt Blau." in heard(work.requests[-1])


async def test_work_does_not_end_before_it_has_read_that_words_are_taken_back(world: World) -> None:
    world.script("mouth", says("Passed on.", call("tell", node_id="coordinator")))
    looks, red, blue = call("bash", command="true"), "Painted red.", "Painted blue, as before."
    ends = [says(call("finish", summary=summary)) for summary in (red, blue)]
    founded, work, gate = await busy_team(world, says(looks), *ends)
    reply = await reply_to(world, founded, "Use red.")
    work.gate = last = Gate()
    gate.set()
    await last.reached()
    await world.store.write(routing.undo, reply.id, 0)
    last.set()
    await world.settle()
    assert "The person takes back what reached you from them: 'Use red.'" in heard(
        work.requests[-1]
    )
    assert [n.result for n in await world.board(founded.team.id)] == [blue]


async def test_work_does_not_end_with_an_answer_that_was_taken_back(world: World) -> None:
    world.script("mouth", says("It goes well.", call("answer")))
    asks = says(call("ask_human", question="Which year?"))
    work = world.script("ada", asks, says(call("finish", summary="The history of 1999.")), asks)
    founded = await world.found("Write the history")
    await world.settle()
    work.gate = last = Gate()
    reply = await reply_to(world, founded, "How is it going?")
    await last.reached()
    await world.store.write(routing.undo, reply.id, 0)
    last.set()
    await world.settle()
    assert "'How is it going?' was not meant for it" in heard(work.requests[-1])
    assert [q.text for q in await world.questions(founded.team.id)] == ["Which year?"]
    assert [n.status for n in await world.board(founded.team.id)] == [NodeStatus.WAITING]


async def test_nobody_is_told_what_is_being_stopped(world: World) -> None:
    tell, stop = (call(name, node_id="coordinator") for name in ("tell", "stop_work"))
    mouth = world.script("mouth", says("Both.", stop, tell), says("Stopped.", NO_WORK))
    founded, _, gate = await busy_team(world, FINISH)
    reply = await reply_to(world, founded, "Paint the gate.")
    gate.set()
    await world.settle()
    assert ", so nobody there would hear it" in heard(mouth.requests[-1])
    assert [kind for kind, _, _ in stated(reply)] == ["stopped"]
