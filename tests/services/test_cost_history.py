"""Cost history: what was spent day by day, by team, agent, model or purpose, and today's pace."""

from datetime import UTC, datetime
from typing import Any

from agiraph.core.domain.agents import Agent
from agiraph.core.domain.costs import CostsBy, DayPart
from agiraph.core.domain.ids import NodeId
from agiraph.core.services.lifecycle import overspending
from agiraph.core.store.spend import DAILY_LIMITS, SPEND, DailyLimit, Spend, day_of
from agiraph.core.store.tx import Tx
from agiraph.testing import World

SIX = datetime(2030, 5, 6, 6, 0, tzinfo=UTC)


def pay(tx: Tx, agent: Agent, usd: float, **more: Any) -> None:
    made: dict[str, Any] = {
        "node_id": NodeId(f"node_{usd}"), "agent_id": agent.id, "purpose": "work",
        "model": "openai/a", "day": day_of(tx.now), "team_id": agent.team_id, "calls": 1,
        "lost": 0, "input_tokens": 90, "output_tokens": 10, "cached_tokens": 0,
        "cache_write_tokens": 0, "thinking_tokens": 0, "usd": usd, "unpriced": 0, "estimated": 0,
        "outermost_id": NodeId(f"node_{usd}"),
    }  # fmt: skip
    SPEND.insert(tx, Spend(**made | more))


async def seed(world: World) -> tuple[Agent, Agent]:
    world.clock.advance(seconds=(SIX - world.clock.now()).total_seconds())
    beans = (await world.found("Count", name="Beans", start=False)).coordinator
    tea = (await world.found("Drink", name="Tea", start=False)).coordinator

    def add(tx: Tx) -> None:
        pay(tx, beans, 1.0, day="2030-05-04")
        pay(tx, beans, 2.0, day="2030-05-06", model="openai/b", calls=2)
        pay(tx, beans, 0.25, day="2030-05-06", purpose="search")
        pay(tx, tea, 0.5, day="2030-05-06", purpose="reply", unpriced=1)
        pay(tx, tea, 8.0, day="2030-01-01")
        DAILY_LIMITS.insert(tx, DailyLimit(day="2030-05-05", deleted_usd=4.0))

    await world.store.write(add)
    return beans, tea


async def parts(world: World, by: CostsBy, **more: Any) -> list[tuple[str, str, float, int]]:
    found = await world.store.read(overspending.history, by, None, days=30, **more)
    assert (found.by, found.first_day) == (by, "2030-04-07")
    return [(part.day, part.name, part.usd, part.calls) for part in found.parts]


async def test_costs_are_split_by_day_and_team_agent_model_or_purpose(world: World) -> None:
    beans, tea = await seed(world)
    assert await parts(world, "team") == [
        ("2030-05-04", "Beans", 1.0, 1),
        ("2030-05-05", "", 4.0, 0),
        # A search is no call of a model.
        ("2030-05-06", "Beans", 2.25, 2),
        ("2030-05-06", "Tea", 0.5, 1),
    ]
    assert await parts(world, "model", team_id=beans.team_id) == [
        ("2030-05-04", "openai/a", 1.0, 1),
        ("2030-05-06", "openai/a", 0.25, 0),
        ("2030-05-06", "openai/b", 2.0, 2),
    ]
    assert await parts(world, "purpose", team_id=tea.team_id) == [("2030-05-06", "reply", 0.5, 1)]
    assert await parts(world, "agent", team_id=tea.team_id) == [("2030-05-06", tea.name, 0.5, 1)]


async def test_parts_and_days_are_summed(world: World) -> None:
    beans, tea = await seed(world)
    found = await world.store.read(overspending.history, "team", None, days=30)
    assert [(part.name, part.usd, part.unpriced) for part in found.by_part()] == [
        ("teams that were deleted", 4.0, 0),
        ("Beans", 3.25, 0),
        ("Tea", 0.5, 1),
    ]
    assert [(part.name, part.usd) for part in found.by_day()] == [
        ("2030-05-04", 1.0),
        ("2030-05-05", 4.0),
        ("2030-05-06", 2.75),
    ]
    assert found.by_part()[2] == DayPart(
        day="", key=tea.team_id, name="Tea", calls=1, tokens=100, usd=0.5, unpriced=1
    )
    assert beans.team_id in {part.key for part in found.parts}


async def test_the_pace_of_the_day_says_what_it_will_cost(world: World) -> None:
    await seed(world)
    today = await world.store.read(overspending.costs_of_day, 20.0)
    # A quarter of the day is over.
    assert (today.usd, today.forecast_usd, today.limit_usd) == (2.75, 11.0, 20.0)
    world.clock.advance(hours=18, minutes=30)
    young = await world.store.read(overspending.costs_of_day, 20.0)
    assert (young.day, young.usd, young.forecast_usd) == ("2030-05-07", 0, None)
