"""Database checks: the size and integrity of the database, and work in it that stands still."""

from agiraph.doctor import model_checks
from agiraph.doctor.checkup import Checkup
from agiraph.doctor.sizes import size as size_text
from agiraph.domain.costs import day_text
from agiraph.services import health as work_health
from agiraph.services.lifecycle import overspending, teams
from agiraph.store import health as database_health
from agiraph.store.database import Store

LARGE_DATABASE = 8 * 2**30


async def check(checkup: Checkup, store: Store) -> None:
    """Check the rows of all teams, the money of today and the models of all agents."""
    running = checkup.is_running
    size = await store.read(database_health.bytes_used)
    checkup.fine(
        "database", f"It can be reached, its schema is up to date, and it takes {size_text(size)}."
    )
    if size > LARGE_DATABASE:
        checkup.problem("size", "The database is large: archive teams that are done.")
    damage = [*await store.read(database_health.damage), *await store.read(database_health.gaps)]
    checkup.list(
        "integrity",
        damage,
        good="The data is undamaged.",
        bad="faults: restore a backup (`agiraph restore`).",
        one_bad="fault: restore a backup (`agiraph restore`).",
    )
    await _note_stop(checkup, store)
    stuck = await store.read(work_health.stuck, is_running=running)
    checkup.list(
        "work", stuck, good="Nothing is stuck.", bad="are stuck.", one_bad="is stuck.", can_fix=True
    )
    undecided = await store.read(work_health.needing_a_person)
    checkup.list(
        "decisions", undecided, good="None.", bad="need a person.", one_bad="needs a person."
    )
    if not running and (left := await store.read(database_health.left_running)):
        checkup.note("cut off", f"Interrupted tasks that continue at the next start: {len(left)}.")
    undelivered = await store.read(work_health.undelivered, is_running=running)
    checkup.list("messages", undelivered, good="All arrived.", bad="did not arrive.", can_fix=True)
    late = await store.read(work_health.overdue)
    if late and not running:
        checkup.note("triggers", f"Triggers that are due and fire at the next start: {len(late)}.")
    else:
        checkup.list("triggers", late, good="None is late.", bad="are late.", one_bad="is late.")
    await model_checks.check_threads(checkup, await store.read(database_health.open_threads))
    today = await store.read(overspending.costs_of_day, checkup.settings.usd_per_day)
    if today.is_reached:
        checkup.note("money", f"{day_text(today)}.")
    else:
        checkup.fine("money", f"{day_text(today)}.")
    await model_checks.check(checkup, list(await store.read(database_health.models)))


async def _note_stop(checkup: Checkup, store: Store) -> None:
    if stop := await store.read(teams.found_stop):
        checkup.note(
            "stopped",
            f"All work is stopped since {stop.at:%Y-%m-%d %H:%M} UTC. To let it go on: agiraph "
            "resume --all",
        )
