"""Sandbox: decides which files of the home a command sees and which limits apply.

A command sees the files that its agent's file tools may read, and may write to its own node's
folder. The rest of the home is hidden: token, database, settings, specialists, other teams.
"""

import logging
import marshal
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

from agiraph.home import confinement
from agiraph.home.layout import Home
from agiraph.home.node_folder import PUBLISHED, REFS, SCRATCH, SPEC
from agiraph.home.scopes import Area, Scope

log: logging.Logger = logging.getLogger("agiraph.commands")

MOST_PUBLISHED = 200
"""The most `published` folders that a command sees: its references, then the newest."""
GATE_PORT = 3128
"""The port of the network gate on the loopback of a command's own network namespace."""
MOST_HIDDEN = 200
"""The most paths that are covered one by one: each is a mount, which takes time at the start."""

NOT_CONFINED = (
    "Commands cannot be confined on this machine ({why}): every command can read the token and the "
    "database of agiraph, and has all your permissions. Allow user namespaces, or run agiraph in a "
    "container or as a user of its own."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Limits for all processes of one command together; `file_mib` applies to each file."""

    processes: int = 512
    memory_mib: int = 8192
    file_mib: int = 4096
    free_disk_mib: int = 256
    """MiB that must stay free on the disks of its folder and of /tmp."""


DEFAULT_LIMITS = Limits()


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """The paths that a command sees; none of them contains a symbolic link."""

    home: Path
    readable: tuple[Path, ...] = ()
    writable: tuple[Path, ...] = ()
    """An inner folder overrides an outer one, in either list."""
    hidden: tuple[Path, ...] = ()
    """Files and folders below `readable` that appear empty."""
    masked: tuple[Path, ...] = ()
    """Files outside the home that appear empty: the database, if it lies elsewhere."""
    offline: bool = False
    """Whether it has no network and may write only to `writable` and its own /tmp."""
    network: bool = True
    """Whether it has the machine's own network, unless it is offline or has a gate."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandRules:
    """Rules for every command of this runtime."""

    limits: Limits = Limits()
    masked: tuple[Path, ...] = ()


def database_files(url: str) -> tuple[Path, ...]:
    """Return the files of an SQLite database; none for PostgreSQL."""
    if not url.startswith("sqlite:///"):
        return ()
    path = Path(url.removeprefix("sqlite:///")).expanduser().resolve()
    return tuple(path.with_name(path.name + end) for end in ("", "-wal", "-shm", "-journal"))


def view_of(
    home: Home,
    scope: Scope,
    *,
    masked: Iterable[Path] = (),
    refs: Iterable[str] = (),
    outputs: Iterable[Path] = (),
    offline: bool = False,
    network: bool = True,
    hidden: Iterable[str] = (),
) -> View:
    """Return what a command of this scope's node sees; `outputs` are files of earlier commands.

    `hidden` are paths in the team's folder that it may read otherwise.
    """
    root = home.path.resolve()
    team = root / "teams" / scope.team.id
    node = team / "nodes" / scope.node
    notes = {
        Area.SOUL: ("SOUL.md", "GOAL.md"),
        Area.PLAN: ("PLAN.md",),
        Area.TEAM_MEMORY: ("MEMORY.md", "memory"),
        Area.OWN_DESK: (f"agents/{scope.agent}",),
    }
    readable = [
        team / name for place, names in notes.items() if scope.reads(place) for name in names
    ]
    covered = [team / path for path in hidden]
    if scope.reads(Area.OTHER_NODE) and len(covered) <= MOST_HIDDEN:
        readable.append(team / "nodes")
    elif scope.reads(Area.PUBLISHED):
        readable += _published(team / "nodes", refs, without=covered)
    if len(covered) > MOST_HIDDEN:  # then other nodes are shown one by one, and no notes
        readable = [path for path in readable if path.parent.parent == team / "nodes"]
        covered = []
    if scope.reviewed is not None:
        readable.append(team / "nodes" / scope.reviewed)
    # Spec, references and results are read-only inside of the writable folder: a command must not
    # change what it was asked to do, nor what was published.
    own = [node] if offline else [node / name for name in (SPEC, REFS, PUBLISHED)]
    return View(
        home=root,
        readable=(*readable, *own, *(root / path.relative_to(home.path) for path in outputs)),
        writable=(node / SCRATCH,) if offline else (node,),
        hidden=tuple(covered),
        masked=tuple(path for path in masked if not path.is_relative_to(root)),
        offline=offline,
        network=network and not offline,
    )


def _published(nodes: Path, refs: Iterable[str], *, without: Sequence[Path]) -> list[Path]:
    left_out = {path.name for path in without if path.parent == nodes}
    referred = {name for ref in refs for name in ref.split("/")[1:2]}
    # Ids begin with their time, so the newest nodes come first. Every folder shown is a mount,
    # which takes time at the start of each command.
    names = sorted({entry.name for entry in nodes.iterdir()} - left_out, reverse=True)
    found = [nodes / name / PUBLISHED for name in sorted(names, key=lambda n: n not in referred)]
    return [path for path in found if path.is_dir()][:MOST_PUBLISHED]


def encode(view: View | None, limits: Limits, *, has_gate: bool = False) -> str:
    """Encode view and limits for the supervisor's command line.

    A confined command with a gate has a network namespace of its own, and a listener in it.
    """
    seen = None
    if view is not None:
        seen = {
            "home": str(view.home),
            "readable": [str(path) for path in view.readable],
            "writable": [str(path) for path in view.writable],
            "hidden": [str(path) for path in view.hidden],
            "masked": [str(path) for path in view.masked],
            "offline": view.offline,
            "network": view.network and not view.offline and not has_gate,
            "gate": GATE_PORT if has_gate else 0,
        }
    # marshal is built into the interpreter, while `json` takes long to import. The supervisor runs
    # on the same interpreter, so the format always matches.
    return marshal.dumps({"limits": asdict(limits), "view": seen}).hex()


def is_possible() -> bool:
    """Whether commands can be confined on this machine."""
    return why_not() is None


def has_gate() -> bool:
    """Whether commands have a network namespace of their own, so that a gate can serve them."""
    return is_possible()


@cache
def why_not() -> str | None:
    """Return why commands cannot be confined on this machine; None if they can. Tested once."""
    with tempfile.TemporaryDirectory() as folder:
        script = [sys.executable, "-I", "-S", confinement.__file__, folder]
        done = subprocess.run(script, capture_output=True, text=True, check=False, env={})
    if done.returncode == 0:
        return None
    lines = done.stderr.strip().splitlines()
    return lines[-1] if lines else "the home could not be hidden"


@cache
def warn_if_impossible() -> None:
    """Log a warning, once, if commands cannot be confined."""
    if (why := why_not()) is not None:
        log.warning("%s", NOT_CONFINED.format(why=why))
