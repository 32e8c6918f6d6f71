"""The statements and calls of an ordinary turn: each costs time in every turn of every team."""

from collections import Counter
from pathlib import Path

import pytest

from agiraph.core.store.engine.sqlite import SqliteStore
from agiraph.testing import World, call, says
from agiraph.testing.scripted import Line
from tests.house.measures import calls_of_a_turn, calls_of_work

MOST = {"checkpoint": 22, "write_file": 15, "two calls": 22}
"""Statements of one turn, with those that begin and commit transactions."""
MOST_CALLS = 570
"""Calls of Python functions in one turn, on all threads, with those of asyncio and the test kit."""
MOST_CALLS_OF_WORK = 5_100
"""Calls of Python functions from a new goal with two model calls to its end."""
SMALL = {"channels", "errands", "triggers", "d", "down", "ended", "payers", "t", "tree", "u", "up"}
"""Tables that may be read whole: they do not grow with the work, or a statement makes them."""
TURNS = 10


def lines(kind: str) -> list[Line]:
    """Return turns of one kind; no two of them are the same."""
    made = {
        "checkpoint": lambda n: [call("checkpoint", summary=f"step {n}")],
        "write_file": lambda n: [call("write_file", path=f"{n}.md", content=f"{n}\n")],
        "two calls": lambda n: [
            call("write_file", path=f"{n}.md", content=f"{n}\n"),
            call("read_file", path=f"{n}.md"),
        ],
    }[kind]
    return [says(*made(number)) for number in range(3 * TURNS)]


@pytest.mark.parametrize("kind", MOST)
async def test_an_ordinary_turn_needs_few_statements(tmp_path: Path, kind: str) -> None:
    world = World(tmp_path / "home", validates_events=False, easy_endings=True)
    ada = world.script("ada", *lines(kind), says(call("ask_human", question="Which?")))
    by_turn: list[Counter[str]] = []

    def count(statement: str) -> None:
        turn = len(ada.requests)
        while len(by_turn) <= turn:
            by_turn.append(Counter())
        by_turn[turn][" ".join(statement.split()[:3])] += 1

    async with world:
        store = world.store
        assert isinstance(store, SqliteStore)
        assert store._connection is not None
        store._connection.set_trace_callback(count)
        await world.found("Do the work")
        await world.settle()
        store._connection.set_trace_callback(None)
    # The first turns also read what a run keeps in memory afterwards.
    usual = sorted(turn.total() for turn in by_turn[TURNS : 2 * TURNS])
    assert usual[TURNS // 2] <= MOST[kind], by_turn[TURNS]


async def test_an_ordinary_turn_makes_few_calls(tmp_path: Path) -> None:
    world = World(tmp_path / "home", validates_events=False, easy_endings=True)
    calls = await calls_of_a_turn(world)
    await world.stop()
    assert calls <= MOST_CALLS


async def test_a_whole_piece_of_work_makes_few_calls(tmp_path: Path) -> None:
    world = World(tmp_path / "home", validates_events=False, easy_endings=True)
    calls = await calls_of_work(world)
    await world.stop()
    assert calls <= MOST_CALLS_OF_WORK


async def test_no_statement_of_an_agents_life_reads_a_whole_table(tmp_path: Path) -> None:
    world = World(tmp_path / "home", validates_events=False, easy_endings=True)
    give = call("create_work_node", task="Count the beans", assigned_to="new:scripted/bob")
    end = says(call("finish", summary="All is counted.", reached="yes"))
    world.script("ada", says(give), says("I wait."), end)
    world.script("bob", says(call("publish", summary="There are 7.", reached="yes")))
    made: set[str] = set()
    async with world:
        store = world.store
        assert isinstance(store, SqliteStore)
        store._connection.set_trace_callback(made.add)
        await world.found("Count")
        await world.settle()
        store._connection.set_trace_callback(None)
        whole: set[tuple[str, str]] = set()
        for statement in made:
            if statement.startswith(("select", "with", "update", "delete")):
                for *_, step in store._connection.execute(f"explain query plan {statement}"):
                    if step.startswith("SCAN ") and step.split()[1] not in SMALL:
                        whole.add((step, statement))
    assert whole == set()
