"""Communication: messages to people and teammates, and questions that wait for answers."""

from agiraph.core.domain.agents import Agent
from agiraph.core.domain.ids import SYSTEM, AgentId, TeamId
from agiraph.core.domain.messages import Draft
from agiraph.core.domain.persons import OWNER
from agiraph.core.domain.work import NodeStatus
from agiraph.core.services.mail import bus
from agiraph.core.services.members import roster
from agiraph.core.store import messages
from agiraph.testing import Says, World, call, says
from tests.fences import opened
from tests.thinking import ThinkingModel
from tests.tools.tool_calls import ToolAnswer, refused, run_calls


async def hire(world: World, team_id: TeamId, name: str) -> Agent:
    return await world.store.write(
        roster.hire, team_id, name=name, role="worker", model=f"scripted/{name}"
    )


async def test_a_message_to_the_human_is_in_the_conversation(world: World) -> None:
    goal, told = await run_calls(
        world,
        call("send_message", to="human", content="I have begun."),
        call("send_message", to=" Human ", content="Almost done."),
    )

    agent = AgentId(goal.assignee_id or "")
    said = await world.store.read(messages.conversation, goal.team_id, agent, OWNER)
    assert told == [ToolAnswer("Sent to human."), ToolAnswer("Sent to  Human .")]
    assert [(m.sender, m.recipient, m.kind, m.text, m.node_id) for m in said] == [
        (agent, OWNER, "message", "I have begun.", goal.id),
        (agent, OWNER, "message", "Almost done.", goal.id),
        (agent, OWNER, "result", "done", goal.id),
    ]


async def test_a_message_to_an_idle_teammate_becomes_work(world: World) -> None:
    ada = world.script(
        "ada",
        says(
            call("send_message", to="BOB", content="Count, please."),
            call("ask_human", question="How far?"),
        ),
        says(call("finish", summary="counted")),
    )
    bob = world.script("bob", says(call("publish", summary="One, two, three.")))
    founded = await world.found("Let Bob count", start=False)
    await hire(world, founded.team.id, "bob")
    await world.say(founded.coordinator.id, "Begin.", team_id=founded.team.id)
    await world.settle()
    [question] = await world.questions(founded.team.id)
    await world.answer(question, "To three.")
    await world.settle()

    _, counting = await world.board(founded.team.id)
    assert opened(bob.heard) == "[Message from coordinator] Count, please."
    assert ada.heard.startswith("[Task] bob has finished a task of yours.")
    assert opened(ada.heard).endswith(" One, two, three.")
    assert (counting.status, counting.title, counting.source, counting.result) == (
        NodeStatus.COMPLETED,
        "Message from coordinator",
        "delegation",
        "One, two, three.",
    )


async def test_a_message_that_cannot_be_sent_is_refused_with_the_possible_recipients(
    world: World,
) -> None:
    world.script(
        "ada",
        says(
            call("send_message", to="carol", content="Hello?"),
            call("send_message", to="coordinator", content="Note to self."),
            call("send_message", to="human", content=""),
            call("send_message", to="human", content="   "),
            call("send_message", to="human", content="x" * 20_001),
            call("send_message", to="human"),
        ),
        says(call("finish", summary="done")),
    )
    founded = await world.found("Talk", start=False)
    await hire(world, founded.team.id, "bob")
    await world.say(founded.coordinator.id, "Go.", team_id=founded.team.id)
    await world.settle()

    [node] = await world.board(founded.team.id)
    answers = [t.text for t in await world.turns(node.id) if t.role == "tool"]
    usage = "It takes: to, content, kind (optional)."
    # A call with long arguments is told, too, how to write a long text.
    assert [answer.split("\n")[0] for answer in answers[:6]] == [
        "There is no teammate 'carol'. On this team: coordinator, bob; and 'human'.",
        "That is you. Use a note or a checkpoint to remember something.",
        f"send_message: 'content' is wrong (String should have at least 1 character). {usage}",
        "An empty message says nothing; write what you want to say.",
        f"send_message: 'content' is wrong (String should have at most 20000 characters). {usage}",
        f"send_message: 'content' is missing. {usage}",
    ]


async def test_check_messages_delivers_each_message_once(world: World) -> None:
    async def while_mail_comes() -> Says:
        to = {"team_id": founded.team.id, "sender": SYSTEM, "recipient": founded.coordinator.id}
        await world.store.write(bus.send, Draft(text="First.", **to))
        await world.store.write(bus.send, Draft(text="Second.", **to))
        return says(call("check_messages"), call("check_messages"))

    done = says(call("finish", summary="done"))
    world.model("ada", ThinkingModel("scripted/ada", [while_mail_comes, done]))
    founded = await world.found("Look for mail")
    await world.settle()

    [node] = await world.board(founded.team.id)
    heard = [t.text for t in await world.turns(node.id) if t.role in ("tool", "user")]
    assert heard == [
        "Look for mail",
        "[Message from system] First.\n[Message from system] Second.",
        "No new messages.",
        "Published: no files.",
    ]


async def test_the_answer_of_a_person_is_the_answer_of_the_ask_human_call(world: World) -> None:
    ada = world.script(
        "ada",
        says(call("ask_human", question="Red or blue?", options=["red", "blue"])),
        says(call("finish", summary="painted")),
    )
    founded = await world.found("Paint")
    await world.settle()

    [node] = await world.board(founded.team.id)
    [asked] = await world.questions(founded.team.id)
    assert (node.status, node.waiting_reason) == (
        NodeStatus.WAITING,
        "asked the human: Red or blue?",
    )
    assert (asked.text, asked.options, asked.kind) == ("Red or blue?", ("red", "blue"), "question")

    await world.answer(asked, "Green.")
    await world.settle()
    assert ada.heard == "Green."
    assert await world.questions(founded.team.id) == []


async def test_an_empty_question_is_refused(world: World) -> None:
    _, told = await run_calls(
        world,
        call("ask_human", question=""),
        call("ask_human", question="  "),
        call("ask_human", question="Which?", options="red"),
        call("ask_human"),
    )

    usage = (
        "It takes: question, options (optional), default (optional), timeout_minutes (optional)."
    )
    assert told == [
        refused(
            f"ask_human: 'question' is wrong (String should have at least 1 character). {usage}"
        ),
        refused("An empty message says nothing; write what you want to say."),
        refused(f"ask_human: 'options' is wrong (Input should be a valid list). {usage}"),
        refused(f"ask_human: 'question' is missing. {usage}"),
    ]
