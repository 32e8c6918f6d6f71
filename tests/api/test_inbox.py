"""The inbox over HTTP."""

from datetime import datetime, timedelta

import pytest

from agiraph.core.domain.messages import Draft
from agiraph.core.domain.persons import OWNER
from agiraph.core.domain.provenance.labels import of_page
from agiraph.core.services.board import planning
from agiraph.core.services.mail import bus
from agiraph.testing import call, says
from tests.api.serving import Served
from tests.runtime.reflecting_model import ReflectingModel, briefing, create_node


async def test_the_rating_of_a_briefing_is_shown_in_inbox_and_conversation(served: Served) -> None:
    served.world.script("ada")
    founded = await served.world.found("Watch", start=False)
    sent = await served.world.store.write(
        bus.send,
        Draft(
            team_id=founded.team.id,
            sender=founded.coordinator.id,
            recipient=OWNER,
            text="Rates rose.",
            kind="briefing",
        ),
    )

    async def rating() -> str | None:
        _, page = await served.ask("GET", "/inbox")
        [item] = page["items"]
        _, said = await served.ask("GET", f"/agents/{founded.coordinator.id}/conversation")
        assert [message["rating"] for message in said] == [item["message"]["rating"]]
        return item["message"]["rating"]

    assert await rating() is None
    status, rated = await served.ask("POST", f"/inbox/{sent.id}/rate", {"thumb": "up"})
    assert (status, rated["message"]["rating"]) == (200, "up")
    assert await rating() == "up"
    await served.ask("POST", f"/inbox/{sent.id}/rate", {"thumb": "down"})
    assert await rating() == "down"


@pytest.mark.parametrize(
    ("given", "short"),
    [
        ("The bank raised rates.", "The bank raised rates."),
        ("", "Rates rose by 1 %. " * 31 + "Rates rose"),
    ],
)
async def test_briefings_go_to_inbox_summary_and_conversation_full(
    served: Served, given: str, short: str
) -> None:
    whole = ("Rates rose by 1 %. " * 100).strip()
    verdict = briefing("Rates rose", whole, summary=given)
    served.world.model("ada", ReflectingModel(verdict=[verdict]))
    founded = await served.world.found("Watch", learns=True, start=False, mode="infinite")
    await create_node(served.world, founded.team.id, founded.coordinator.id)
    await served.world.settle()

    _, page = await served.ask("GET", "/inbox")
    [item] = page["items"]
    assert (item["message"]["kind"], item["message"]["title"]) == ("briefing", "Rates rose")
    assert item["message"]["text"].removesuffix("…").strip() == short
    assert len(item["message"]["text"]) <= 600
    _, one = await served.ask("GET", f"/inbox/{item['message']['id']}")
    assert one["message"]["text"] == item["message"]["text"]
    _, [said] = await served.ask("GET", f"/agents/{founded.coordinator.id}/conversation")
    assert (said["id"], said["text"]) == (item["message"]["id"], whole)


async def test_messages_and_results_name_the_sources_of_their_words(served: Served) -> None:
    served.world.script("ada", says(call("finish", summary="Tea costs 3 pounds.")))
    founded = await served.world.found("Watch", start=False)
    ada = founded.coordinator
    await served.world.store.write(
        lambda tx: planning.create(
            tx,
            team_id=founded.team.id,
            task="What does tea cost?",
            source="user",
            assignee_id=ada.id,
            label=of_page("https://example.org/tea"),
        )
    )
    await served.world.settle()
    _, page = await served.ask("GET", "/inbox")
    [item] = page["items"]
    assert item["message"]["sources"] == ["page:example.org"]
    _, board = await served.ask("GET", f"/teams/{founded.team.id}/board")
    assert [node["sources"] for node in board] == [["page:example.org"]]
    _, said = await served.ask("GET", f"/agents/{ada.id}/conversation")
    assert [message["sources"] for message in said] == [["page:example.org"]]


async def test_many_items_are_filed_in_one_request_with_an_outcome_for_each(served: Served) -> None:
    served.world.script("ada")
    founded = await served.world.found("Watch", start=False)
    team_id, ada = founded.team.id, founded.coordinator.id
    kinds = ("report", "question")
    sent = [
        await served.world.store.write(
            bus.send,
            Draft(team_id=team_id, sender=ada, recipient=OWNER, text=kind, kind=kind),
        )
        for kind in kinds
    ]
    report, question = (message.id for message in sent)

    body = {"action": "archive", "ids": [report, question, "msg_none"]}
    status, filed = await served.ask("POST", "/inbox/bulk", body)

    assert (status, [(one["id"], one["is_done"]) for one in filed["outcomes"]]) == (
        200,
        [(report, True), (question, False), ("msg_none", False)],
    )
    _, page = await served.ask("GET", f"/inbox?box=archived&team={team_id}&kind=report")
    assert [item["message"]["id"] for item in page["items"]] == [report]
    until = served.world.clock.now() + timedelta(hours=1)
    body = {"action": "snooze", "ids": [question], "until": until.isoformat()}
    assert (await served.ask("POST", "/inbox/bulk", body))[0] == 200
    _, page = await served.ask("GET", "/inbox?box=snoozed")
    assert [item["snoozed_until"] for item in page["items"]] == [
        until.isoformat().replace("+00:00", "Z")
    ]
    status, problem = await served.ask("POST", "/inbox/bulk", {"action": "snooze", "ids": ["a"]})
    assert (status, "send it with `snooze` only" in problem["detail"]) == (422, True)
    assert (await served.ask("POST", "/inbox/bulk", {"action": "archive", "ids": []}))[0] == 422
    assert (await served.ask("GET", "/inbox?box=attic"))[0] == 422


async def test_a_thread_and_a_node_count_no_wait_as_time_at_work(served: Served) -> None:
    asks, ends = call("ask_human", question="Which?"), call("finish", summary="Done.")
    served.world.script("ada", says(asks), says(ends))
    _, team = await served.ask("POST", "/teams", {"goal": "Count", "review": "never"})
    await served.world.settle()
    served.world.clock.advance(seconds=37)
    _, page = await served.ask("GET", "/inbox")
    item = page["items"][0]["message"]["id"]
    await served.ask("POST", f"/inbox/{item}/answer", {"text": "This."})
    await served.world.settle()

    _, [node] = await served.ask("GET", f"/teams/{team['id']}/board")
    _, turns = await served.ask("GET", f"/threads/{node['thread_id']}")
    answered = next(turn for turn in turns if turn["role"] == "tool")
    assert (answered["waited_s"], node["worked_seconds"], node["running_since"]) == (
        37.0,
        0.0,
        None,
    )
    replies = [turn for turn in turns if turn["role"] == "assistant"]
    assert {turn["waited_s"] for turn in replies} == {0.0}
    assert all(turn["started_at"] == turn["at"] for turn in replies)
    # A later page begins with the turn that the caller has.
    _, rest = await served.ask("GET", f"/threads/{node['thread_id']}?after={answered['seq'] - 1}")
    assert rest == [turn for turn in turns if turn["seq"] >= answered["seq"]]


async def test_how_long_a_question_waits_is_shown_until_it_is_answered(served: Served) -> None:
    asks = call("ask_human", question="Red or blue?", default="blue", timeout_minutes=30)
    served.world.script("ada", says(asks), says(call("ask_human", question="And then?")))
    founded = await served.world.found("Paint")
    await served.world.settle()

    async def waits() -> list[str | None]:
        _, page = await served.ask("GET", "/inbox")
        return [item["message"]["waits_until"] for item in page["items"]]

    [question] = await served.world.questions(founded.team.id)
    [until] = await waits()
    assert until is not None
    waited = datetime.fromisoformat(until) - question.created_at
    assert abs(waited - timedelta(minutes=30)) < timedelta(seconds=5)
    await served.world.answer(question, "Red.")
    await served.world.settle()
    assert await waits() == [None, None]


async def test_rows_have_the_beginning_of_long_words_and_the_counts_of_the_inbox(
    served: Served,
) -> None:
    served.world.script("ada")
    founded = await served.world.found("Watch", name="Beans", start=False)
    about = {"team_id": founded.team.id, "sender": founded.coordinator.id, "recipient": OWNER}
    long = "Rates rose by 1 %. " * 100
    report = await served.world.store.write(
        bus.send, Draft(**about, text=long, title="Rates", kind="report")
    )
    question = await served.world.store.write(
        bus.send, Draft(**about, text="Which bank?", kind="question")
    )

    status, page = await served.ask("GET", "/inbox/rows")

    counts = {"unread": 2, "open": 1, "newest": question.id}
    assert (status, {key: page[key] for key in counts}) == (200, counts)
    rows = [(row["message"]["id"], row["needs_answer"], row["team_name"]) for row in page["items"]]
    assert rows == [(question.id, True, "Beans"), (report.id, False, "Beans")]
    short = page["items"][1]["message"]["text"]
    assert short == f"{long[: len(short) - 1]}…"
    assert len(short) <= 240
    assert await served.ask("GET", "/inbox/counts") == (200, counts)
    _, open_rows = await served.ask("GET", "/inbox/rows?open=true")
    assert [row["message"]["id"] for row in open_rows["items"]] == [question.id]
    _, two = await served.ask("GET", f"/inbox/rows?item={report.id}&item={question.id}&item=msg_1")
    assert [row["message"]["id"] for row in two["items"]] == [report.id, question.id]
    _, first = await served.ask("GET", "/inbox/rows?limit=1")
    _, second = await served.ask("GET", f"/inbox/rows?limit=1&after={first['cursor']}")
    assert [row["message"]["id"] for row in second["items"]] == [report.id]
    # The whole words are there for who opens the item.
    _, item = await served.ask("GET", f"/inbox/{report.id}")
    assert (item["message"]["text"], item["team_name"], item["has_doubts"]) == (
        long,
        "Beans",
        False,
    )
    many = "&".join(f"item=msg_{n}" for n in range(501))
    assert (await served.ask("GET", f"/inbox/rows?{many}"))[0] == 422
