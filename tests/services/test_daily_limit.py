"""The home's daily limit: all paid work stops together, one request asks, and all goes on again."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from agiraph.core.domain.errors import AlreadyAnswered, Refused
from agiraph.core.domain.messages import Message
from agiraph.core.domain.persons import OWNER
from agiraph.core.domain.work import Budget, NodeStatus, Timer, WorkNode
from agiraph.core.services import health
from agiraph.core.services.lifecycle import overspending, removal, timers
from agiraph.core.services.lifecycle.teams import NewTeam
from agiraph.core.store import waits
from agiraph.core.store.lists import inbox_items
from agiraph.models.facts.prices import Priced, Prices, Terms
from agiraph.testing import Says, World, call, says
from agiraph.testing.clock import ManualClock
from agiraph.testing.scripted import Line, ScriptedModel
from tests.habits.kit import assign

DAY = "2026-01-05"
DOLLARS = Terms(input_usd=0.001, output_usd=20_000.0)  # a reply of 20 tokens costs 40 cents
PRICES = Prices({f"scripted/{name}": DOLLARS for name in ("ada", "bob", "cem")} | {"own": DOLLARS})
"""Of each reply, and (as `own`) what is reserved for the calls of scripted models."""
SQLITE = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)


def step(number: int) -> Says:
    return says(call("checkpoint", summary=f"step {number}"))


def work(steps: int) -> list[Line]:
    """Return a script that works so many turns and ends with one more."""
    return [*(step(number) for number in range(steps)), says(call("finish", summary="Done."))]


def script(world: World, name: str, *lines: Line, prices: Prices = PRICES) -> ScriptedModel:
    """Add a scripted model whose replies cost money."""
    model = ScriptedModel(f"scripted/{name}", list(lines), insists=True)
    world.model(name, Priced(model=model, prices=prices))
    return model


def limited(tmp_path: Path, database_url: str, usd: float | None = 1.0, **more: object) -> World:
    given = {"prices": PRICES, "usd_per_day": usd, "easy_endings": True, **more}
    return World(tmp_path / "home", database_url=database_url, **given)  # type: ignore[arg-type]


@pytest.fixture
async def world(tmp_path: Path, database_url: str) -> AsyncIterator[World]:
    """A home that may spend a dollar a day: two replies, and a third that reaches it."""
    async with limited(tmp_path, database_url) as opened:
        yield opened


async def goal(world: World, founded: NewTeam) -> WorkNode:
    assert founded.node is not None
    return await world.node(founded.node.id)


async def requests(world: World) -> list[Message]:
    return [message for message in await world.inbox() if message.kind == "approval"]


async def stopped(world: World, model: str = "ada") -> tuple[NewTeam, Message]:
    """Return a team that has reached the limit, and the request."""
    founded = await world.found("Work", model=f"scripted/{model}")
    await world.settle()
    [request] = await requests(world)
    return founded, request


async def test_work_parks_in_the_middle_and_one_request_says_who_spent_most(world: World) -> None:
    ada = script(world, "ada", *work(5))
    founded, request = await stopped(world)

    node = await goal(world, founded)
    assert (node.status, len(ada.requests)) == (NodeStatus.WAITING, 3)
    assert node.waiting_reason == overspending.DAY_REASON.format(most=1.0)
    assert (request.node_id, request.text) == (
        None,
        overspending.DAY_REQUEST.format(
            spent=1.2,
            most=1.0,
            reserved="",
            spenders=" Most of it by coordinator of 'Work' 1.20 USD.",
            offered=1.0,
        ),
    )
    assert await world.store.read(lambda tx: overspending.costs_of_day(tx, 1.0).is_reached)
    assert await world.store.read(lambda tx: health.stuck(tx, is_running=True)) == []
    assert await world.store.read(health.needing_a_person) == []


async def test_an_approval_lets_all_teams_go_on_at_once(world: World) -> None:
    ada, bob = script(world, "ada", *work(3)), script(world, "bob", *work(0))
    first, request = await stopped(world)
    second = await world.found("More work", model="scripted/bob")
    await world.settle()
    assert (len(ada.requests), len(bob.requests), len(await requests(world))) == (3, 0, 1)

    await world.answer(request, decision="approve")
    await world.settle()
    ended = [(await goal(world, founded)).status for founded in (first, second)]
    assert ended == [NodeStatus.COMPLETED, NodeStatus.COMPLETED]
    assert (len(ada.requests), len(bob.requests)) == (4, 1)
    [closed] = await requests(world)
    assert (closed.decision, closed.answered_at is not None) == ("approve", True)
    costs = await world.store.read(overspending.costs_of_day, 1.0)
    assert (costs.usd, costs.limit_usd, costs.allowed_usd) == (pytest.approx(2.0), 2.0, 1.0)


async def test_an_amount_is_allowed_as_it_is_written_and_reached_again(world: World) -> None:
    ada = script(world, "ada", *work(9))
    _, request = await stopped(world)
    await world.answer(request, "0.5 USD", decision="approve")
    await world.settle()

    assert len(ada.requests) == 4
    [_, again] = await requests(world)
    assert "1.60 USD of 1.50 USD are spent" in again.text


@SQLITE
async def test_an_amount_that_makes_no_sense_is_refused_and_changes_nothing(
    world: World,
) -> None:
    script(world, "ada", *work(5))
    founded, request = await stopped(world)
    for text in ("0", "-3", "2 or 3", "0.5, please", "9999999", "1.2.3"):
        with pytest.raises(Refused):
            await world.answer(request, text, decision="approve")
    with pytest.raises(Refused, match="approve or deny"):
        await world.answer(request, "what does this mean?")

    await world.settle()
    assert (await goal(world, founded)).status is NodeStatus.WAITING
    [still] = await requests(world)
    assert still.answered_at is None


@SQLITE
@pytest.mark.parametrize(
    ("text", "usd"), [("20", 20.0), ("$2.50", 2.5), ("1,000", 1000.0), ("2,5 USD", 2.5)]
)
async def test_an_amount_without_a_decision_approves_it(
    world: World, text: str, usd: float
) -> None:
    script(world, "ada", *work(3))
    _, request = await stopped(world)
    await world.answer(request, text)
    await world.settle()
    assert (await world.store.read(overspending.costs_of_day, 1.0)).allowed_usd == usd


async def test_a_denial_leaves_work_parked_until_midnight_and_asks_no_more(world: World) -> None:
    ada, bob = script(world, "ada", *work(3)), script(world, "bob", *work(0))
    first, request = await stopped(world)
    await world.answer(request, "No, 3 is enough.", decision="deny")
    second = await world.found("More work", model="scripted/bob")
    await world.settle()

    assert (len(ada.requests), len(bob.requests), len(await requests(world))) == (3, 0, 1)
    with pytest.raises(AlreadyAnswered):
        await world.answer(request, decision="approve")
    assert await world.store.read(health.needing_a_person) == []

    await world.pass_time(hours=15)  # it was nine in the morning
    ended = [(await goal(world, founded)).status for founded in (first, second)]
    assert ended == [NodeStatus.COMPLETED, NodeStatus.COMPLETED]
    assert len(await requests(world)) == 1


async def test_at_midnight_all_goes_on_and_the_request_is_closed(world: World) -> None:
    script(world, "ada", *work(3))
    founded = await world.found("Work", budget=Budget(seconds=3600))
    await world.settle()
    await world.pass_time(hours=14, minutes=59)
    assert (await goal(world, founded)).status is NodeStatus.WAITING

    await world.pass_time(minutes=1)
    node, [closed] = await goal(world, founded), await requests(world)
    # The night counts neither as an answer nor as time that the node has worked.
    assert (node.status, node.worked_seconds) == (NodeStatus.COMPLETED, 0.0)
    assert (closed.decision, closed.answered_at) == (None, datetime(2026, 1, 6, tzinfo=UTC))
    assert (await world.store.read(overspending.costs_of_day, 1.0)).usd == pytest.approx(0.4)


async def test_a_restart_while_parked_asks_nothing_again(world: World) -> None:
    ada = script(world, "ada", *work(3))
    founded, request = await stopped(world)
    for _ in range(2):
        await world.restart()
        await world.settle()
    assert (len(ada.requests), await requests(world)) == (3, [request])

    await world.answer(request, decision="approve")
    await world.restart()
    await world.settle()
    assert (await goal(world, founded)).status is NodeStatus.COMPLETED


@SQLITE
@pytest.mark.parametrize("raised", [5.0, None])
async def test_a_higher_limit_in_the_settings_frees_the_work_at_the_next_start(
    world: World, raised: float | None
) -> None:
    script(world, "ada", *work(3))
    founded, _ = await stopped(world)
    world.usd_per_day = raised
    await world.restart()
    await world.settle()
    [closed] = await requests(world)
    assert (await goal(world, founded)).status is NodeStatus.COMPLETED
    assert (closed.answered_at is not None, closed.decision) == (True, None)


async def test_a_person_who_chats_is_told_and_the_request_is_made(world: World) -> None:
    ada = script(world, "ada", *work(2))
    founded = await world.found("Work")
    await world.settle()
    await world.chat(founded.coordinator.id, "How is it going?")
    await world.settle()

    said = await world.conversation(founded.coordinator)
    assert said[-1].text == (
        "I have your message, but today's limit for model calls is reached, so I cannot think "
        "about it now. I go on as soon as you allow more (the request is in your inbox), or by "
        "myself at 00:00 UTC."
    )
    [request] = await requests(world)
    ada.lines += [says("I looked at it."), says(call("finish", summary="Answered."))]
    await world.answer(request, decision="approve")
    await world.settle()
    assert any("How is it going?" in turn.text for turn in ada.requests[-1].turns)


async def test_models_without_a_price_are_not_stopped(tmp_path: Path, database_url: str) -> None:
    # Without a listed price, `ada` is known to cost money by what its replies say.
    async with limited(tmp_path, database_url, prices=Prices()) as world:
        script(world, "ada", *work(5))
        free = world.script("free", *work(4))
        await stopped(world)
        founded = await world.found("Work for nothing", model="scripted/free")
        await world.settle()
        node = await goal(world, founded)
        assert (node.status, len(free.requests)) == (NodeStatus.COMPLETED, 5)


@SQLITE
async def test_without_a_limit_nothing_stops(tmp_path: Path, database_url: str) -> None:
    async with limited(tmp_path, database_url, None) as world:
        script(world, "ada", *work(9))
        founded = await world.found("Work")
        await world.settle()
        assert (await goal(world, founded)).status is NodeStatus.COMPLETED


@SQLITE
async def test_a_limit_of_zero_starts_no_paid_call(tmp_path: Path, database_url: str) -> None:
    async with limited(tmp_path, database_url, 0.0) as world:
        ada = script(world, "ada", *work(1))
        await stopped(world)
        assert ada.requests == []


async def test_money_for_a_call_under_way_counts_as_spent(
    tmp_path: Path, database_url: str
) -> None:
    terms = Terms(input_usd=1000.0, output_usd=0.0)
    dear = Prices(dict.fromkeys(("scripted/a", "scripted/b", "own"), terms))
    async with limited(tmp_path, database_url, prices=dear) as world:
        slow, other = (script(world, name, *work(0), prices=dear) for name in "ab")
        slow.gate = asyncio.Event()
        first = await world.found("Slow work", model="scripted/a")
        while not slow.requests:  # noqa: ASYNC110
            await asyncio.sleep(0)
        second = await world.found("Other work", model="scripted/b")
        while not await requests(world):  # noqa: ASYNC110
            await asyncio.sleep(0)
        assert (other.requests, (await goal(world, second)).status) == ([], NodeStatus.WAITING)
        [request] = await requests(world)
        assert "are reserved for calls under way" in request.text
        slow.gate.set()
        await world.settle()
        assert (await goal(world, first)).status is NodeStatus.COMPLETED


@SQLITE
async def test_a_cancelled_node_leaves_the_request_open_for_the_others(world: World) -> None:
    from agiraph.core.services.lifecycle import endings

    script(world, "ada", *work(3))
    script(world, "bob", *work(0))
    first, request = await stopped(world)
    second = await world.found("More work", model="scripted/bob")
    await world.settle()
    await world.store.write(endings.cancel, (await goal(world, first)).id)
    await world.settle()
    asked = inbox_items.InboxFilter(person_id=OWNER)
    waiting = await world.store.read(lambda tx: inbox_items.waiting_for_person(tx, asked, limit=9))
    assert waiting == [request]
    await world.answer(request, decision="approve")
    await world.settle()
    assert (await goal(world, second)).status is NodeStatus.COMPLETED


async def test_two_processes_that_reach_the_limit_together_ask_once(
    tmp_path: Path, postgres: object
) -> None:
    url = postgres.fresh()  # type: ignore[attr-defined]
    clock = ManualClock()
    async with (
        limited(tmp_path / "one", url, clock=clock) as one,
        limited(tmp_path / "two", url, clock=clock) as two,
    ):
        for world in (one, two):
            for name in ("ada", "bob", "cem"):
                script(world, name, *work(9))
        founded = [
            await one.found("Work", model=f"scripted/{name}") for name in ("ada", "bob", "cem")
        ]
        await asyncio.gather(one.settle(), two.settle())
        clock.advance(seconds=40)  # a process that knew of no other's costs has read them now
        await asyncio.gather(one.settle(), two.settle())
        assert [(await goal(one, each)).status for each in founded] == [NodeStatus.WAITING] * 3
        [request] = await requests(one)
        assert await one.store.read(waits.next_due) == datetime(2026, 1, 6, tzinfo=UTC)

        await two.answer(request, "100", decision="approve")
        await asyncio.gather(one.settle(), two.settle())
        assert [(await goal(one, each)).status for each in founded] == [NodeStatus.COMPLETED] * 3


@SQLITE
async def test_a_timer_that_fires_twice_does_nothing_the_second_time(world: World) -> None:
    script(world, "ada", *work(3))
    await stopped(world)
    await world.pass_time(days=1)
    assert await world.store.write(timers.fire_due, Timer("day", DAY)) == 0  # the row is gone
    await world.store.write(overspending.end_day, DAY)
    assert len(await requests(world)) == 1


async def test_another_team_asks_anew_when_the_team_that_asked_is_deleted(world: World) -> None:
    script(world, "ada", *work(5))
    bob = script(world, "bob", *work(0))
    founded, request = await stopped(world)
    other = await world.found("Other work", model="scripted/bob")
    await world.settle()
    assert await requests(world) == [request]

    whose = {"name": founded.team.name, "who": "admin", "person_id": OWNER}
    await world.store.write(removal.delete_team, founded.team.id, stop=True, **whose)
    await world.runtime.removal.idle()
    await world.settle()
    [anew] = await requests(world)
    assert (anew.team_id, (await goal(world, other)).status) == (other.team.id, NodeStatus.WAITING)
    assert await world.store.read(waits.is_set, Timer("day", DAY))
    await world.answer(anew.id, "", decision="approve")
    await world.settle()
    assert ((await goal(world, other)).status, len(bob.requests)) == (NodeStatus.COMPLETED, 1)


COSTLY = Terms(input_usd=0.001, output_usd=150_000.0)
FREE = Terms(input_usd=0.001, output_usd=0.001)
FAST = Prices({"scripted/ada": COSTLY, "own": FREE})
"""A reply of 20 tokens costs three dollars."""


async def test_a_goal_that_spends_very_fast_asks_once_and_then_waits(
    tmp_path: Path, database_url: str
) -> None:
    async with limited(tmp_path, database_url, 50.0, prices=FAST) as world:
        ada = script(world, "ada", *work(12), prices=FAST)
        founded = await world.found("Count")
        await world.settle()
        [asked] = await world.questions(founded.team.id)
        assert asked.text.startswith("This goal spends fast: $12.00 within the last 10 minutes")
        # It was asked at a fifth of the day's limit, and went on to a half of it.
        assert ((await goal(world, founded)).status, len(ada.requests)) == (NodeStatus.WAITING, 9)

        await world.restart()
        await world.settle()
        assert len(ada.requests) == 9
        await world.answer(asked, "", decision="approve")
        await world.settle()
        assert (await goal(world, founded)).status is NodeStatus.COMPLETED
        assert await world.questions(founded.team.id) == []


async def test_a_goal_that_spends_very_fast_is_stopped_if_the_person_says_no(
    tmp_path: Path, database_url: str
) -> None:
    async with limited(tmp_path, database_url, None, prices=FAST) as world:
        ada = script(world, "ada", *work(12), prices=FAST)
        founded = await world.found("Count", budget=Budget(usd=40.0))
        await world.settle()
        [asked] = await world.questions(founded.team.id)
        await world.answer(asked, "", decision="deny")
        await world.settle()
        assert (await goal(world, founded)).status is NodeStatus.CANCELLED
        assert len(ada.requests) == 7


async def test_workers_that_spend_very_fast_together_ask_once_for_their_goal(
    tmp_path: Path, database_url: str
) -> None:
    names = ("bob", "cem", "dan", "eve")
    prices = Prices({f"scripted/{name}": COSTLY for name in names} | {"own": FREE})
    async with limited(tmp_path, database_url, 50.0, prices=prices) as world:
        workers = [script(world, name, *work(8), prices=prices) for name in names]
        tasks = [assign(f"Count {name}", f"new:scripted/{name}") for name in names]
        script(world, "ada", says(*tasks), *work(0), prices=prices)
        founded = await world.found("Count", model="scripted/ada")
        await world.settle()
        [asked] = await world.questions(founded.team.id)
        spent = 3 * sum(len(worker.requests) for worker in workers)
        assert asked.text.startswith("This goal spends fast: $")
        assert 25 <= spent <= 25 + 3 * len(names), "from half of the limit on, all of them wait"
        await world.answer(asked, "", decision="deny")
        await world.settle()
        assert {node.status for node in await world.board(founded.team.id)} == {
            NodeStatus.CANCELLED
        }
        assert spent == 3 * sum(len(worker.requests) for worker in workers)


async def test_a_goal_that_spends_as_much_in_hours_asks_nobody(
    tmp_path: Path, database_url: str
) -> None:
    async with limited(tmp_path, database_url, 50.0, prices=FAST) as world:

        def slow(number: int) -> Line:
            def play(_: object) -> Says:
                world.clock.advance(minutes=4)
                return step(number)

            return play

        script(world, "ada", *map(slow, range(12)), *work(0), prices=FAST)
        founded = await world.found("Count")
        await world.settle()
        assert (await goal(world, founded)).status is NodeStatus.COMPLETED
        assert await world.questions(founded.team.id) == []
