"""Seed scenario 5: an agent asks a person, waits, and continues with the answer."""

from pathlib import Path

from agiraph.core.domain.work import NodeStatus, StopReason
from agiraph.models.registry import Account, Keys
from agiraph.testing import ModelServer, World, call, says
from agiraph.testing.model_server import Seen, Step
from tests.doubts import doubts_of
from tests.scenarios.endings import ACCEPTS, OPENS, defines, finishes
from tests.scenarios.traces import exported, statuses

GOAL = "Set up a database for our project."
QUESTION = "Should I use PostgreSQL or SQLite? What's the use case?"
ANSWER = "PostgreSQL, it's for a production web app"
TODAY = "[Runtime] Time has passed since you began. Today is Thursday, 08 January 2026 (UTC)."
SETUP = 'engine = "PostgreSQL"\n'


def plays_the_administrator(seen: Seen) -> Step:
    if "give_verdict" in seen.tools:
        return OPENS if seen.messages[-1].role == "user" else ACCEPTS
    # After the days of waiting the model is also told the date, behind the answer.
    last = [message for message in seen.messages if message.role == "tool"]
    match seen.index:
        case 0:
            options = ["PostgreSQL", "SQLite"]
            return says(
                "One thing first.",
                defines("`database.toml` names the engine"),
                call("ask_human", question=QUESTION, options=options),
            )
        case 1:
            engine = "PostgreSQL" if last[-1].text.startswith("PostgreSQL") else "SQLite"
            setup = f"printf 'engine = \"%s\"\\n' {engine} > database.toml && cat database.toml"
            return says(call("bash", command=setup))
        case _:
            engine = last[-1].text.split('"')[1]
            return finishes(f"{engine} is set up (database.toml).", "file:database.toml")


async def test_the_answer_of_a_person_decides_how_the_work_continues(
    tmp_path: Path, database_url: str
) -> None:
    async with ModelServer(plays_the_administrator) as server:
        keys = Keys({"openai": Account(key="sk-test", base_url=server.openai_url)})
        async with World(tmp_path / "home", database_url=database_url, keys=keys) as world:
            founded = await world.found(GOAL, model="openai/test")
            await world.settle()

            [waiting] = await world.board(founded.team.id)
            [question] = await world.questions(founded.team.id)
            assert statuses(await world.events(founded.team.id))[-1] == "waiting"
            assert (waiting.status, waiting.waiting_reason) == (
                NodeStatus.WAITING,
                f"asked the human: {QUESTION}",
            )
            assert len(server.requests) == 1  # no model calls while it waits

            world.clock.advance(days=3)
            await world.restart()
            await world.answer(question, ANSWER)
            await world.settle()

            goal, review = await world.board(founded.team.id)
            events = await world.events(founded.team.id)
            published = world.published(goal)
            export = await exported(world, founded.team, tmp_path / "export")

    asked = [event.data for event in events if event.type == "question.asked"]
    answered = [event.data for event in events if event.type == "question.answered"]
    assert asked == [
        {
            "message_id": question.id,
            "kind": "question",
            "sender": founded.coordinator.id,
            "recipient": "human",
            "text": QUESTION,
            "node_id": goal.id,
        }
    ]
    assert [(a["message_id"], a["text"]) for a in answered] == [(question.id, ANSWER)]
    # It waits for the person, and then for the reviewer.
    waited = ("waiting", "working") * 2
    assert statuses(events, without=review) == ["idle", "working", *waited, "completed"]
    assert (goal.status, goal.stop_reason, goal.result, doubts_of(goal), goal.attempt) == (
        NodeStatus.COMPLETED,
        StopReason.FINISHED,
        "PostgreSQL is set up (database.toml).",
        None,
        1,
    )
    assert review.stop_reason is StopReason.ACCEPTED
    assert published == {"database.toml": SETUP}
    assert (server.refused, len(server.requests)) == ([], 5)

    assert export.said == [
        ("coordinator", "human", "question", QUESTION),
        ("human", "coordinator", "answer", ANSWER),
        ("coordinator", "human", "result", "PostgreSQL is set up (database.toml)."),
    ]
    assert export.conversation[1]["in_reply_to"] == export.conversation[0]["id"]
    assert export.trace(goal) == [
        ("user", GOAL),
        ("assistant", "One thing first."),
        ("tool", "Done means:\n1. `database.toml` names the engine [file:NAME]"),
        ("tool", ANSWER),
        ("user", TODAY),
        ("assistant", "bash"),
        ("tool", f"[exit code 0]\n{SETUP.rstrip()}"),
        ("assistant", "finish"),
        ("tool", "Published: database.toml."),
    ]
    assert (export.home / "nodes" / goal.id / "published" / "database.toml").read_text() == SETUP
