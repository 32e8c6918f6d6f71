"""Asking: a sweep scenario in which a labelled thread writes files, asks and goes on, and a person
allows the call for good and then takes that back."""

from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path

from agiraph.core.domain.outcomes import Answer, Done
from agiraph.core.domain.persons import OWNER
from agiraph.core.domain.provenance.labels import of_page
from agiraph.core.run_context import RunContext
from agiraph.core.services.lifecycle import answers
from agiraph.core.store.grants import GRANTS
from agiraph.core.tools.base import tool
from agiraph.models.base import Request
from agiraph.testing import Says, World, call, says
from tests.faults.invariants import FOREIGN, Ledger, database
from tests.faults.scenarios import command, counting_model, found_team_once, step


@tool(effect="repeatable", outside="nothing")
async def read_page(ctx: RunContext) -> Answer:
    """Read what a stranger wrote."""
    return Done(FOREIGN, label=of_page("https://example.com"))


def _react(home: Path, request: Request) -> Says:
    run = call("bash", command=command(home, "asked"), network="open")
    match step(request):
        case 0:
            return says(call("read_page"))
        case 1:
            return says(run)
        case 2:
            return says(call("write_file", path="PLAN.md", content=FOREIGN))
        case 3:
            return says(call("memory_write", path="2026-01-05.md", content=FOREIGN))
        case 4:  # a model that asks again waits
            return says(run)
        case _:
            return says(call("finish", summary="done"))


async def asking(home: Path) -> None:
    Ledger(home).note("life")
    world = World(home, easy_endings=True, tools=(read_page,))
    world.model("ada", counting_model(home, partial(_react, home)))
    await world.start()
    await found_team_once(world)
    await world.settle()
    [team] = await world.teams()
    if not await world.store.read(GRANTS.select, "id is not null"):
        await world.store.write(
            answers.allow,
            kind="command",
            pattern=command(home, "asked"),
            person_id=OWNER,
            team_id=team.id,
        )
    await world.settle()
    for grant in await world.store.read(GRANTS.select, "revoked_at is null"):
        await world.store.write(answers.revoke_grant, grant.id)
    await world.stop()


def after_recovery(home: Path) -> Iterator[str]:
    """The person was asked once, and what they allowed once is taken back."""
    with closing(database(home)) as db:
        [asked] = db.execute("select count(*) from messages where kind = 'approval'").fetchone()
        if asked != 1:
            yield f"the person was asked {asked} times"
        in_force = [row[0] for row in db.execute("select revoked_at is null from grants")]
        if in_force != [0]:
            yield f"of the grants {in_force} are in force"
