"""Spent day: a sweep scenario in which the daily limit is reached, and a person allows more."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from agiraph.models.base import Request
from agiraph.models.facts.prices import Priced, Prices, Terms
from agiraph.testing import Says, World, call, says
from tests.faults.invariants import Ledger, database
from tests.faults.scenarios import answer_all, counting_model, found_team_once, step

LIMIT_USD = 1.0
TERMS = Terms(input_usd=0.001, output_usd=20_000.0)  # a reply of 20 tokens costs 40 cents
PRICES = Prices({"scripted/ada": TERMS, "own": TERMS})
STEPS = 4


def _react(request: Request) -> Says:
    if step(request) < STEPS:
        return says(call("write_file", path=f"{step(request)}.md", content="x"))
    return says(call("finish", summary="done"))


async def spent_day(home: Path) -> None:
    Ledger(home).note("life")
    world = World(home, easy_endings=True, prices=PRICES, usd_per_day=LIMIT_USD)
    world.model("ada", Priced(model=counting_model(home, _react), prices=PRICES))
    await world.start()
    await found_team_once(world)
    await world.settle()
    for _ in range(2):
        await answer_all(world)
        await world.settle()
    await world.stop()


def after_recovery(home: Path) -> Iterator[str]:
    """The person was asked once, and what they allowed counts once."""
    with closing(database(home)) as db:
        [asked] = db.execute("select count(*) from messages where kind = 'approval'").fetchone()
        if asked != 1:
            yield f"the limit was asked about {asked} times"
        allowed = [row[0] for row in db.execute("select allowed_usd from daily_limits")]
        if allowed != [LIMIT_USD]:
            yield f"{allowed} were allowed"
