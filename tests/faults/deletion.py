"""Deletion: a sweep scenario in which a person deletes a team for good while it works."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from agiraph.core.domain.persons import OWNER
from agiraph.core.services.lifecycle import removal as verbs
from agiraph.core.store import access
from agiraph.models.base import Request
from agiraph.testing import Says, World, call, says
from agiraph.testing.scripted import ReactiveModel
from tests.faults.invariants import database
from tests.faults.scenarios import command, step

NAME = "Do the work"
KEPT = ("about", "audit", "channels", "daily_limits", "passes", "persons", "workers")
"""Tables whose rows belong to no team."""


async def deletion(home: Path) -> None:
    def react(request: Request) -> Says:
        match step(request):
            case 0:
                return says(
                    call("write_file", path="draft.md", content="half and whole"),
                    call("bash", command=command(home, "one")),
                )
            case 1:
                return says(call("bash", command=command(home, "two")))
            case _:
                return says(call("ask_human", question="which colour"))

    # Its calls are not in the ledger: what they cost is deleted with the team.
    world = World(home, easy_endings=True)
    world.model("ada", ReactiveModel("scripted/ada", react))
    await world.start()
    found = await world.teams()
    if not found and not await world.store.read(access.audit):
        found = [(await world.found(NAME)).team]
    await world.settle()
    if found:
        await _delete(world, found[0].id)
    await world.runtime.removal.idle()
    await world.stop()


async def _delete(world: World, team_id: str) -> None:
    await world.store.write(
        verbs.delete_team, team_id, name=NAME, stop=True, who="admin", person_id=OWNER
    )


def after_recovery(home: Path) -> Iterator[str]:
    """Nothing of the team is left but one entry of the audit."""
    with closing(database(home)) as db:
        names = [row[0] for row in db.execute("select name from sqlite_master where type='table'")]
        for name in names:
            if name in KEPT or name.startswith(("sqlite_", "passage_words_")):
                continue
            [count] = db.execute(f"select count(*) from {name}").fetchone()
            if count:
                yield f"{count} rows of {name} are left"
        entries = [row[0] for row in db.execute("select method from audit")]
        if entries != ["DELETE"]:
            yield f"the audit has {entries}"
    for folder in ("teams", "spool"):
        if left := sorted(path.name for path in (home / folder).glob("*")):
            yield f"{folder}/ still has {left}"
