"""Compaction: requests keep their prefix between two summaries; an overflow is survived."""

import re
from itertools import pairwise
from pathlib import Path

import pytest

from agiraph.core.domain.work import Budget, NodeStatus
from agiraph.core.runtime import compaction
from agiraph.models.facts.prices import Prices, Terms
from agiraph.models.registry import Account, Keys
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
            bill = await world.ledger(founded.team.id)
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


@pytest.mark.parametrize("tool", ["send_message", "write_file"])
async def test_long_arguments_are_sent_back_in_part_and_always_alike(
    tmp_path: Path, tool: str
) -> None:
    long = "".join(f"Verse {n * n}. " for n in range(14_000))
    # The first is refused, because a message may not be so long; the second is made.
    given = {"to": "human", "content": long} if tool == "send_message" else {}
    calls = call(tool, **(given or {"path": "tale.md", "content": long}))
    looks = [says(call("list_files", path=f"scratch/{n}"), input_tokens=9_000) for n in range(4)]
    async with ModelServer(
        [says(calls), *looks, *[says(call("finish", summary="ok"))] * 3]
    ) as server:
        keys = Keys({"openai": Account(key="k", base_url=server.openai_url)})
        async with World(tmp_path / "home", keys=keys, easy_endings=True) as world:
            founded = await world.found("Tell a tale", model="openai/test")
            await world.settle()
            [goal] = await world.board(founded.team.id)
            turns = await world.turns(goal.id)
    first, *later = (seen.raw for seen in server.requests)
    assert goal.status is NodeStatus.COMPLETED
    assert all(len(raw) < len(first) + 30_000 for raw in later)
    assert all(b.startswith(a[:-2]) for a, b in pairwise(later))
    # The thread keeps all of it, and a refusal says what to do instead.
    assert next(t for t in turns if t.calls).calls[0].arguments["content"] == long
    answer = next(t for t in turns if t.role == "tool")
    assert answer.failed is ("write long text to a file, in several calls" in answer.text)
    assert answer.failed is (tool == "send_message")


async def test_the_mark_of_a_cut_is_written_into_no_file(tmp_path: Path) -> None:
    tale = "".join(f"Verse {n * n}. " for n in range(3_000))

    def copies(seen: Seen) -> Step:
        sent = [c for m in seen.messages for c in m.calls]
        if len(sent) > 1:
            return says(call("finish", summary="ok"))
        name, content = ("copy.md", sent[0].arguments["content"]) if sent else ("tale.md", tale)
        return says(call("write_file", path=name, content=content))

    async with ModelServer(copies) as server:
        keys = Keys({"openai": Account(key="k", base_url=server.openai_url)})
        async with World(tmp_path / "home", keys=keys, easy_endings=True) as world:
            founded = await world.found("Tell a tale", model="openai/test")
            await world.settle()
            [goal] = await world.board(founded.team.id)
            answers = [t for t in await world.turns(goal.id) if t.role == "tool"]
            written = world.published(goal)
    assert [(t.failed, "read_file" in t.text) for t in answers[:2]] == [
        (False, False),
        (True, True),
    ]
    assert written == {"tale.md": tale}


async def test_no_request_exceeds_the_window_whatever_a_step_brings(tmp_path: Path) -> None:
    window = 16_000
    reads = says(
        *[call("bash", command=f"head -c 16000 /dev/zero | tr '\\0' {n}") for n in range(9)]
    )
    script = [reads, reads, *[says(call("finish", summary="ok"))] * 3]
    async with ModelServer(script) as server:
        keys = Keys({"openai": Account(key="k", base_url=server.openai_url)})
        prices = Prices({"openai/test": Terms(window=window)})
        async with World(tmp_path / "home", keys=keys, prices=prices, easy_endings=True) as world:
            founded = await world.found("Read", model="openai/test")
            await world.settle()
            [goal] = await world.board(founded.team.id)
    assert goal.status is NodeStatus.COMPLETED
    assert [len(seen.raw) // 4 for seen in server.requests if len(seen.raw) // 4 > window] == []


async def test_after_a_cut_the_persons_words_stand_in_order_and_none_is_the_summarys(
    tmp_path: Path,
) -> None:
    take_notes = note_taker(30)
    first = [
        says(call("set_acceptance", lines=["`horses.md` is there"], kinds=["file"])),
        says(call("ask_human", question="Which animal?")),
        says(call("ask_human", question="How many pages?")),
    ]

    def script(seen: Seen) -> Step:
        if "Write the summary" in seen.messages[-1].text:
            return says("They want to read about dogs.", input_tokens=len(seen.raw) // 4)
        return first.pop(0) if first else take_notes(seen)

    async with ModelServer(script) as server:
        keys = Keys({"openai": Account(key="k", base_url=server.openai_url)})
        prices = Prices({"openai/test": Terms(window=WINDOW)})
        async with World(tmp_path / "home", keys=keys, prices=prices, easy_endings=True) as world:
            founded = await world.found(
                "Write about an animal", model="openai/test", budget=Budget(turns=90)
            )
            await world.settle()
            for answer in ("Dogs.", "Two."):
                [asked] = await world.questions(founded.team.id)
                if answer == "Two.":
                    await world.chat(founded.coordinator.id, "No: horses.", nudge=True)
                else:
                    await world.answer(asked, answer)
                await world.settle()
            [goal] = await world.board(founded.team.id)
            cut = next(t.text for t in await world.turns(goal.id) if t.is_summary)

    assert cut.index("dogs") < cut.index("`horses.md` is there")
    said = cut[cut.index("What the human said to you") :]
    assert "(answering 'Which animal?') Dogs." in said
    assert said.index("Dogs.") < said.index("No: horses.")
    assert "The newest counts" in said
    assert "How many pages?" in cut
