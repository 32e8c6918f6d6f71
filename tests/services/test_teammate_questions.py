"""A question to a teammate parks its node until the answer, or until none can come."""

import pytest

from agiraph.core.domain.agents import Agent
from agiraph.core.domain.messages import MAX_HOPS, Draft
from agiraph.core.domain.work import NodeStatus, WorkNode
from agiraph.core.services.lifecycle import endings
from agiraph.core.services.lifecycle.teams import NewTeam
from agiraph.core.services.mail import bus
from agiraph.core.services.members import roster
from agiraph.core.store.messages import MESSAGES
from agiraph.testing import Call, World, call, says
from agiraph.testing.scripted import Line, ScriptedModel
from tests.fences import opened
from tests.services.teams import add_child, found_waiting_team

S = NodeStatus
HOLD = says(call("ask_human", question="May I go on?"))
PUBLISH = says(call("publish", summary="done"))
WORDS = says("I wait for tester's answer.")


def ask(to: str = "tester", content: str = "Which port?") -> Call:
    return call("send_message", to=to, content=content, kind="question")


def tell(to: str, content: str) -> Call:
    return call("send_message", to=to, content=content)


class Team:
    """A coordinator that waits for the person, a coder and a tester, each with a task."""

    def __init__(self, world: World, founded: NewTeam) -> None:
        self.world = world
        self.founded = founded
        self.models: dict[str, ScriptedModel] = {}
        self.agents: dict[str, Agent] = {}
        self.nodes: dict[str, WorkNode] = {}

    async def add(self, name: str, *lines: Line, has_task: bool = True) -> None:
        self.models[name] = self.world.script(name, *lines)
        self.agents[name] = await self.world.store.write(
            roster.hire, self.founded.team.id, name=name, role="worker", model=f"scripted/{name}"
        )
        if has_task:
            node = await add_child(self.world, self.founded, f"{name}'s part", to=self.agents[name])
            await self.world.settle()
            self.nodes[name] = await self.world.node(node)

    async def settle(self) -> None:
        await self.world.settle()
        for name, node in self.nodes.items():
            self.nodes[name] = await self.world.node(node.id)

    async def allow(self, name: str) -> None:
        """Answer the question that keeps this agent from going on."""
        asked = await self.world.questions(self.founded.team.id)
        [question] = [q for q in asked if q.sender == self.agents[name].id]
        await self.world.answer(question, "Yes.")
        await self.settle()

    def last(self, name: str, request: int = -1) -> str:
        """Return the last turn that a model was shown."""
        return opened(self.models[name].requests[request].turns[-1].text)

    async def titles(self) -> list[str]:
        return [n.title for n in await self.world.board(self.founded.team.id)]


@pytest.fixture
async def team(world: World) -> Team:
    founded, _ = await found_waiting_team(world)
    return Team(world, founded)


async def test_the_answer_of_a_teammate_at_work_ends_the_wait(team: Team) -> None:
    answers = says(tell("coder", "Port 80."))
    await team.add("tester", HOLD, answers, HOLD, PUBLISH)
    await team.add("coder", says(ask()), PUBLISH)
    await team.settle()

    assert team.nodes["coder"].status is S.COMPLETED
    assert team.last("coder") == "[Message from tester (answer)] Port 80."
    heard = [opened(turn.text) for turn in team.models["tester"].requests[1].turns[-2:]]
    assert heard[0].startswith("Not answered yet; there is a message of a teammate for you")
    assert heard[1] == (
        "[Message from coder (question)] Which port?\n"
        "coder waits for your answer: send it as a message to coder."
    )
    assert team.last("tester", 2) == "Sent to coder. It is the answer to their question."
    assert await team.titles() == ["Get to work on the goal", "tester's part", "coder's part"]


async def test_a_question_starts_work_of_an_idle_teammate_and_its_result_is_the_answer(
    team: Team,
) -> None:
    await team.add("tester", says(call("publish", summary="It is 80.")), has_task=False)
    await team.add("coder", says(ask()), PUBLISH)
    await team.settle()

    assert team.nodes["coder"].status is S.COMPLETED
    assert "It is 80." in team.last("coder")
    assert "gave no answer" not in team.last("coder")
    sent = await team.world.store.read(MESSAGES.select, "kind in ('result', 'failure')")
    assert [m.sender for m in sent if m.recipient == team.agents["coder"].id] == []


async def test_words_while_a_question_is_open_park_at_no_cost(team: Team) -> None:
    """A person's message ends the wait; the coder waits again in words for the same answer."""
    await team.add("tester", HOLD, HOLD, says(tell("coder", "Port 80.")), PUBLISH)
    await team.add("coder", says(ask()), WORDS, PUBLISH)
    await team.world.say(team.agents["coder"].id, "How is it?", team_id=team.founded.team.id)
    await team.settle()
    assert len(team.models["coder"].requests) == 2
    assert team.nodes["coder"].waiting_reason == "your question 'Which port?'"

    await team.allow("tester")
    assert team.nodes["coder"].status is S.COMPLETED
    assert team.last("coder") == "[Message from tester (answer)] Port 80."


async def test_the_same_question_asked_again_waits_for_the_same_answer(team: Team) -> None:
    await team.add("tester", HOLD, HOLD, says(tell("coder", "Port 80.")), PUBLISH)
    await team.add("coder", says(ask()), says(ask(content="Which  port?")), PUBLISH)
    await team.world.say(team.agents["coder"].id, "How is it?", team_id=team.founded.team.id)
    await team.settle()
    await team.allow("tester")

    assert team.nodes["coder"].status is S.COMPLETED
    asked = await team.world.store.read(MESSAGES.select, "kind = 'question' and text like 'Which%'")
    assert [m.text for m in asked] == ["Which port?"]


@pytest.mark.parametrize("end", ["publish", "cancel"])
async def test_one_who_ends_without_an_answer_releases_the_asker(team: Team, end: str) -> None:
    await team.add("tester", HOLD, HOLD, PUBLISH)
    await team.add("coder", says(ask()), PUBLISH)
    if end == "publish":
        await team.allow("tester")
    else:
        await team.world.store.write(endings.cancel, team.nodes["tester"].id)
    await team.settle()

    assert team.nodes["coder"].status is S.COMPLETED
    assert team.last("coder").startswith("[Runtime] tester gave no answer to your question")


async def test_a_question_that_could_start_no_work_releases_the_asker(team: Team) -> None:
    """The one who was asked is cancelled before it hears a question at the end of a long chain."""
    await team.add("tester", HOLD)
    await team.add("coder", HOLD, says(ask()), PUBLISH)
    last = await team.world.store.write(
        bus.send,
        Draft(
            team_id=team.founded.team.id,
            sender=team.agents["tester"].id,
            recipient=team.agents["coder"].id,
            text="Thanks.",
            hops=MAX_HOPS - 1,
        ),
    )
    assert last.hops == MAX_HOPS - 1
    team.models["tester"].lines.append(HOLD)
    await team.allow("coder")
    [asked] = [q for q in await team.world.store.read(MESSAGES.select, "text = 'Which port?'")]
    assert asked.hops == MAX_HOPS
    await team.world.store.write(endings.cancel, team.nodes["tester"].id)
    await team.settle()

    assert team.nodes["coder"].status is S.COMPLETED
    assert "gave no answer" in team.last("coder")


async def test_a_late_answer_starts_no_work(team: Team) -> None:
    """The coder was called away and has submitted; the answer stays for its next work."""
    answers = says(tell("coder", "Port 80."))
    await team.add("tester", HOLD, HOLD, answers, PUBLISH)
    await team.add("coder", says(ask()), PUBLISH, PUBLISH)
    coder = team.agents["coder"].id
    await team.world.say(coder, "Submit what you have.", team_id=team.founded.team.id)
    await team.settle()
    assert team.nodes["coder"].status is S.COMPLETED
    before = await team.titles()

    await team.allow("tester")
    assert await team.titles() == before
    late = await team.world.store.read(MESSAGES.select, "text = 'Port 80.'")
    assert [(m.kind, m.recipient, m.seen_at) for m in late] == [("answer", coder, None)]
    await team.world.say(coder, "One more thing.", team_id=team.founded.team.id)
    await team.settle()
    heard = [opened(t.text) for t in team.models["coder"].requests[-1].turns]
    assert "[Message from tester (answer)] Port 80." in heard


async def test_two_who_ask_each_other_both_end(team: Team) -> None:
    await team.add(
        "tester", HOLD, says(ask("coder", "Which host?")), says(tell("coder", "80")), PUBLISH
    )
    await team.add("coder", says(ask()), PUBLISH)
    await team.settle()

    assert [node.status for node in team.nodes.values()] == [S.COMPLETED, S.COMPLETED]
    refused = team.models["tester"].requests[2].turns[-1]
    assert refused.failed
    assert refused.text.startswith("Not waiting yet: coder waits for your answer to msg_")
    assert team.last("coder") == "[Message from tester (answer)] 80"


async def test_what_was_not_asked_as_a_question_is_not_waited_for(team: Team) -> None:
    """Nothing reads the words of a message; the nudge says how to wait."""
    await team.add("tester", HOLD, HOLD)
    await team.add("coder", says(tell("tester", "Which port?")), WORDS, says(ask()), PUBLISH)
    assert team.last("coder", 2).endswith(
        "To wait for a teammate's answer, ask them with send_message, kind question."
    )
    assert team.nodes["coder"].waiting_reason == "asked tester: Which port?"


async def test_a_question_to_everyone_is_refused_and_one_to_the_human_waits(team: Team) -> None:
    await team.add("coder", says(ask("everyone")), says(ask("human")), PUBLISH)
    assert team.last("coder", 1) == (
        "A question goes to one teammate or the human: name whom you ask."
    )
    assert team.nodes["coder"].waiting_reason == "asked the human: Which port?"
    await team.allow("coder")
    assert team.nodes["coder"].status is S.COMPLETED


async def test_a_question_brings_back_one_who_has_left(team: Team) -> None:
    count = call("assign_task", agent="new:scripted/counter", task="Count", description="Count")
    count_again = says(call("publish", summary="At the lake."))
    counted = says(call("publish", summary="41 herons."))
    counter = team.world.script("counter", counted, count_again)
    told = says(tell("counter", "Thanks."))
    await team.add("coder", says(count), told, says(ask("Counter", "Where?")), PUBLISH)
    await team.settle()

    assert team.nodes["coder"].status is S.COMPLETED
    assert team.last("coder", 2).startswith("There is no teammate 'counter'.")
    assert "At the lake." in team.last("coder")
    made = [c.arguments for turn in counter.requests[-1].turns for c in turn.calls]
    assert {
        "summary": "41 herons.",
        "reached": "yes",
    } in made  # it goes on in the thread of its task
    members = await team.world.store.read(roster.members, team.founded.team.id, all=True)
    assert [m.doing for m in members if m.agent.name == "counter"] == ["left"]


async def test_information_costs_a_waiting_agent_no_call(team: Team) -> None:
    """Not even from a program, or if it ends in a question mark."""
    await team.add("tester", HOLD, PUBLISH)
    program = "cli:echo '@tester: Is it done?' >> _outbox.md; echo done > _result.md"
    gives = call("assign_task", agent=program, task="Say it", description="say")
    await team.add("coder", says(tell("tester", "FYI?"), tell("everyone", "FYI."), gives), PUBLISH)
    await team.settle()
    assert team.nodes["coder"].status is S.COMPLETED
    assert len(team.models["tester"].requests) == 1

    await team.allow("tester")
    heard = "\n".join(t.text for t in team.models["tester"].requests[1].turns)
    assert [heard.count(text) for text in ("FYI?", "FYI.", "Is it done?")] == [1, 1, 1]
