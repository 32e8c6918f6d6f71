"""Compaction: requests keep their prefix between two summaries; an overflow is survived."""

import re
from itertools import pairwise
from pathlib import Path

import pytest

from agiraph.domain.work import Budget, NodeStatus
from agiraph.providers.facts.prices import Prices, Terms
from agiraph.providers.registry import Account, Keys
from agiraph.runtime import compaction
from agiraph.store import spend
from agiraph.testing import ModelServer, World, call, says
from agiraph.testing.model_server import Step, context_overflow
from agiraph.testing.script import Seen

WINDOW = 6_000


def note_taker(turns: int):
    """Write one note per turn; answer the two questions that compaction asks."""

    def script(seen: Seen) -> Step:
        tokens = {"input_tokens": len(seen.raw) // 4}
        last = seen.messages[-1].text
        if "will soon be replaced by a summary" in last:
            return says(call("write_file", path="notes.md", content="as far as I got"), **tokens)
        if "Write the summary" in last:
            return says("I took notes and will take more.", **tokens)
        if seen.index >= turns:
            return says(call("finish", summary="enough"), **tokens)
        return says(call("checkpoint", summary=f"note {seen.index} " + "x" * 800), **tokens)

    return script


@pytest.mark.slow
async def test_the_request_prefix_is_stable_before_and_after_a_summary(
    tmp_path: Path, database_url: str
) -> None:
    async with ModelServer(note_taker(50)) as server:
        keys = Keys({"openai": Account(key="k", base_url=server.openai_url)})
        prices = Prices({"openai/test": Terms(window=WINDOW)})
        async with World(
            tmp_path / "home",
            database_url=database_url,
            keys=keys,
            prices=prices,
            easy_endings=True,
        ) as world:
            founded = await world.found("Take notes", model="openai/test", budget=Budget(turns=90))
            await world.settle()
            [goal] = await world.board(founded.team.id)
            cuts = [t.seq for t in await world.turns(goal.id) if t.is_summary]
            bill = await world.store.read(spend.of_team, founded.team.id)
        sent = [seen.raw for seen in server.requests]

    assert (goal.status, goal.result) == (NodeStatus.COMPLETED, "enough")
    assert server.refused == []
    # The request for a summary has no tools. Between two summaries each request extends the last.
    worked = [raw for raw in sent if b'"tools"' in raw]
    breaks = sum(not later.startswith(earlier[:-2]) for earlier, later in pairwise(worked))
    assert (len(cuts) >= 2, breaks) == (True, len(cuts))
    opening = worked[0][: worked[0].index(b'"messages":[')]
    assert all(raw.startswith(opening) for raw in worked)
    assert {(line.purpose, line.calls) for line in bill} == {
        ("work", len(sent) - 2 * len(cuts)),
        ("compaction", 2 * len(cuts)),
    }


async def test_a_context_overflow_shortens_the_thread_and_the_work_continues(
    tmp_path: Path, database_url: str
) -> None:
    script = [
        says(call("write_file", path="a.md", content="x" * 2000)),
        says(call("read_file", path="a.md")),
        context_overflow(),
        says(call("finish", summary="done all the same")),
    ]
    async with ModelServer(script) as server:
        keys = Keys({"openai": Account(key="k", base_url=server.openai_url)})
        async with World(
            tmp_path / "home", database_url=database_url, keys=keys, easy_endings=True
        ) as world:
            founded = await world.found("Read", model="openai/test")
            await world.settle()
            [goal] = await world.board(founded.team.id)
        [shown] = server.requests[-1].messages
    assert (goal.status, goal.result) == (NodeStatus.COMPLETED, "done all the same")
    assert "write_file(a.md) → Wrote a.md (2000 bytes)." in shown.text
    assert "- a.md (2000 bytes)" in shown.text


async def test_a_second_overflow_parks_with_a_question_and_the_answer_continues_the_work(
    tmp_path: Path, database_url: str
) -> None:
    script = [
        says(call("write_file", path="a.md", content="x")),
        context_overflow(),
        context_overflow(),
        says(call("finish", summary="fits now")),
    ]
    async with ModelServer(script) as server:
        keys = Keys({"openai": Account(key="k", base_url=server.openai_url)})
        async with World(
            tmp_path / "home", database_url=database_url, keys=keys, easy_endings=True
        ) as world:
            founded = await world.found("Read", model="openai/test")
            await world.settle()
            [goal] = await world.board(founded.team.id)
            [question] = await world.questions(founded.team.id)
            assert goal.status is NodeStatus.WAITING
            assert question.text.startswith("I cannot go on: ")
            await world.answer(question, "Try again, the window is larger now.")
            await world.settle()
            [goal] = await world.board(founded.team.id)
    assert (goal.status, goal.result) == (NodeStatus.COMPLETED, "fits now")


def test_a_long_text_keeps_its_beginning_and_its_end_in_proportion() -> None:
    assert compaction.shortened("short", 100) == "short"
    text = "a" * 600 + "b" * 600
    assert compaction.shortened(text, 300) == (
        "a" * 200 + "\n… (900 characters left out) …\n" + "b" * 100
    )


@pytest.mark.slow
async def test_a_small_window_is_shortened_to_fit_and_does_not_thrash(tmp_path: Path) -> None:
    async with ModelServer(note_taker(40)) as server:
        keys = Keys({"openai": Account(key="k", base_url=server.openai_url)})
        prices = Prices({"openai/test": Terms(window=8_192)})
        async with World(tmp_path / "home", keys=keys, prices=prices, easy_endings=True) as world:
            founded = await world.found("Take notes", model="openai/test", budget=Budget(turns=90))
            await world.settle()
            [goal] = await world.board(founded.team.id)
            turns = await world.turns(goal.id)
    cuts = sum(turn.is_summary for turn in turns)
    assert (goal.status, goal.result) == (NodeStatus.COMPLETED, "enough")
    assert all(len(seen.raw) // 4 < 8_192 for seen in server.requests)
    # More than half of the calls are work: each cut costs two.
    assert 1 <= cuts <= len(server.requests) // 5


async def test_a_prompt_that_fills_the_window_stops_the_work_with_both_sizes(
    tmp_path: Path,
) -> None:
    def script(seen: Seen) -> Step:
        return says(call("checkpoint", summary="a note"), input_tokens=3_500)

    async with ModelServer(script) as server:
        keys = Keys({"openai": Account(key="k", base_url=server.openai_url)})
        prices = Prices({"openai/test": Terms(window=4_096)})
        async with World(tmp_path / "home", keys=keys, prices=prices, easy_endings=True) as world:
            founded = await world.found("Take notes", model="openai/test", budget=Budget(turns=90))
            await world.settle()
            [goal] = await world.board(founded.team.id)
            [question] = await world.questions(founded.team.id)
    assert goal.status is NodeStatus.WAITING
    assert re.match(
        r"I cannot go on: The context window of the model \(4,096 tokens\) is too small for this "
        r"work: the instructions and tools alone take 3,[45]\d\d tokens of it\. ",
        question.text,
    )
    assert len(server.requests) == 1
