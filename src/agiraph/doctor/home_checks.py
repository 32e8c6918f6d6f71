"""Home checks: permissions, disk space, the output of commands, and how commands are confined."""

from agiraph.doctor.checkup import Checkup
from agiraph.doctor.sizes import size
from agiraph.home import health as home_health
from agiraph.home.layout import Home
from agiraph.home.levels import Confinement

GIB = 2**30
LEAST_FREE = GIB // 2
LARGE_SPOOL = 2 * GIB
AT_WORK = "at work"
"""The name of the finding that another process uses the home."""


def check(checkup: Checkup, home: Home) -> None:
    """Check the files of a home. While a server runs on it, its commands are not looked at."""
    checkup.list(
        "permissions",
        [str(found) for found in home_health.loose_permissions(home.path)],
        good="Only you can read the home and its token.",
        bad="of the home's files and folders can be read by others.",
        can_fix=True,
    )
    free = home_health.free_bytes(home.path)
    if free < LEAST_FREE:
        checkup.problem("disk", f"Only {size(free)} are free: free some space, or work will stop.")
    else:
        checkup.fine("disk", f"{size(free)} are free.")
    spool = home_health.spool_bytes(home.path)
    if spool > LARGE_SPOOL:
        checkup.problem(
            "spool", f"The output of commands takes {size(spool)}: see {home.path}/spool."
        )
    else:
        checkup.fine("spool", f"The output of commands takes {size(spool)}.")
    if checkup.is_running:
        return checkup.note(AT_WORK, f"{checkup.runner} is running; nothing was changed.")
    left = [spool.name for spool in home_health.orphaned_commands(home.path)]
    checkup.list(
        "processes",
        [f"A process of {name} is running." for name in left],
        good="No command outlived its agent.",
        bad="of the commands outlived their agent.",
        one_bad="of the commands outlived its agent.",
        can_fix=True,
    )
    checkup.list(
        "unfinished copies",
        home_health.unfinished_publications(home),
        good="None.",
        bad="left by a crash.",
        can_fix=True,
    )
    return None


def check_sandbox(checkup: Checkup, found: Confinement) -> None:
    """Say how commands of agents are confined, and what they can do in spite of it."""
    open_ways = [f"not enforced: {way}" for way in found.not_held]
    if found.is_confined:
        checkup.fine("sandbox", found.describe(), *found.reasons, *open_ways)
    else:
        checkup.problem("sandbox", found.describe(), *open_ways)
