"""Layout: the folders of a home: teams, agents' desks, nodes, spools."""

import errno
import hashlib
import os
import re
import secrets
import tempfile
from dataclasses import field
from pathlib import Path
from typing import Self

from agiraph.core.domain.agents import Team
from agiraph.core.domain.errors import Misconfigured, NotFound, OutOfScope, StoreFull
from agiraph.core.domain.ids import NodeId, TeamId
from agiraph.core.domain.value import dataclass
from agiraph.core.home.lock import HomeLock
from agiraph.core.home.node_folder import NodeFolder
from agiraph.core.home.safe_folder import PARTIAL, Folder, split

SOUL = """\
# Soul

You are a colleague who takes a goal, understands what it is for, and sees it through.

- Show where every result came from.
- Keep apart what you know, what you guess and what you do not know.
- Write things down so that someone else, or you in a month, can go on from there.
- Spend the human's attention and money as carefully as your own.
"""

DEFAULT_SOUL: str = SOUL.strip().removeprefix("# Soul").strip()
MOST_SOUL_BYTES = 400_000
MEMORY = "# Memory\n\nWhat is worth knowing in every conversation. Keep it short.\n"
PLAN = "# Plan\n\nNothing is planned yet.\n"
INDEX = """\
# Index

What is kept where, one line for each file.

- `knowledge/`: facts about the subject
- `experiences/`: what worked and what did not
- `preferences/`: how the human wants things done
"""
NOTEBOOK = "# Notebook\n"

UPLOADS = "user_uploads"
"""The folder with the files that a person uploaded; every agent of the team may read it."""

_PLAIN_ID = re.compile(r"[A-Za-z0-9_-]{1,128}")


def known_token(path: Path) -> str:
    """Return the token of the home at this path; empty if there is none yet."""
    try:
        return (path.expanduser() / "token").read_text().strip()
    except (FileNotFoundError, NotADirectoryError):
        return ""
    except OSError as error:
        raise Misconfigured(f"Cannot read the token of {str(path)!r}: {error.strerror}.") from error


@dataclass(frozen=True, slots=True, kw_only=True)
class Home:
    """`$AGIRAPH_HOME`: the folder with all persistent files."""

    path: Path
    folder: Folder
    _settled: set[TeamId] = field(
        default_factory=set[TeamId], init=False, repr=False, compare=False
    )
    """Teams whose folder is durable, as this process knows."""

    @classmethod
    def open(cls, path: Path) -> Self:
        """Open the home at this path; create it, private to its owner, if it is missing."""
        path = path.expanduser().absolute()
        try:
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
            return cls(path=path, folder=Folder.open(path))
        except OSError as error:
            raise _cannot_be_home(path, error) from error

    @property
    def config_path(self) -> Path:
        return self.path / "agiraph.toml"

    @property
    def token_path(self) -> Path:
        return self.path / "token"

    def lock(self) -> HomeLock:
        """Lock this home against other runtimes, or raise `HomeInUse`."""
        try:
            return HomeLock.take(self.path)
        except OSError as error:
            raise _cannot_be_home(self.path, error) from error

    def token(self) -> str:
        """Return the API's token; create it, readable only by the owner, on the first call."""
        if written := known_token(self.path):
            return written
        made = secrets.token_urlsafe(32)
        try:
            _put_if_missing(self.token_path, f"{made}\n".encode())
        except OSError as error:
            raise _cannot_be_home(self.path, error) from error
        # Read again: if two processes start at once, the one whose link came first decides.
        return known_token(self.path) or made

    def spool(self, call_id: str) -> Path:
        """Create and return the folder for the output of the command of a tool call.

        Model vendors choose the ids of calls: one that is not a plain file name is hashed.
        """
        name = spool_name(call_id)
        self.folder.sub(f"spool/{name}", create=True).close()
        return self.path / "spool" / name

    def node_path(self, team_id: TeamId, node_id: NodeId) -> Path:
        """Return the folder of a node as a path, for programs that cannot use a descriptor."""
        return self.path / "teams" / _name(team_id) / "nodes" / _name(node_id)

    def settle(self, team_id: TeamId, node_id: NodeId) -> None:
        """Make the node's folder durable, before work in it is acknowledged."""
        # Of a team that had a node before, the folders above are durable already.
        above = 1 if team_id in self._settled else None
        self.folder.sync_path(f"teams/{_name(team_id)}/nodes/{_name(node_id)}", above=above)
        self._settled.add(team_id)

    def team(self, team_id: TeamId) -> "TeamFolder":
        folder = self.folder.sub(f"teams/{_name(team_id)}", create=True)
        folder.name = ""  # paths in messages start here
        return TeamFolder(id=team_id, folder=folder)

    def soul(self, team_id: TeamId) -> str:
        """Return SOUL.md of a team without its heading; the default one if there is none yet."""
        found = self.team(team_id)
        with found.folder:
            return found.soul()


@dataclass(frozen=True, slots=True, kw_only=True)
class TeamFolder:
    id: TeamId
    folder: Folder

    def prepare(self, team: Team) -> None:
        """Create the files of a new team. GOAL.md follows the row; the team owns the others."""
        with self.folder.sub("memory", create=True) as memory:
            memory.make_folders("knowledge", "experiences", "preferences")
            memory.write_if_empty("index.md", _text(INDEX))
        self.folder.update("GOAL.md", goal_text(team))
        self.folder.write_if_empty("SOUL.md", soul_text(team.soul))
        self.folder.write_if_empty("MEMORY.md", _text(MEMORY))
        self.folder.write_if_empty("PLAN.md", _text(PLAN))

    def soul(self) -> str:
        """Return SOUL.md without its heading; the default one if there is none yet."""
        try:
            text = self.folder.read("SOUL.md", limit=MOST_SOUL_BYTES).decode(errors="replace")
        except NotFound:
            text = SOUL
        return text.strip().removeprefix("# Soul").strip()

    def write_soul(self, soul: str) -> None:
        """Replace SOUL.md; an empty text stands for the default one."""
        self.folder.write("SOUL.md", soul_text(soul))

    def agent(self, name: str, *, identity: str = "", notes: str = "") -> Folder:
        """Return an agent's private folder (its desk); create its first files."""
        desk = self.folder.sub(f"agents/{_name(name)}", create=True)
        who = f"\n{identity.strip()}\n" if identity.strip() else ""
        desk.write_if_empty("IDENTITY.md", _text(f"# {name}\n{who}"))
        desk.write_if_empty(
            "MEMORY.md", _text(f"{MEMORY}\n{notes.strip()}\n" if notes.strip() else MEMORY)
        )
        desk.write_if_empty("NOTEBOOK.md", _text(NOTEBOOK))
        return desk

    def node(self, node_id: NodeId) -> NodeFolder:
        folder = self.folder.sub(f"nodes/{_name(node_id)}", create=True)
        return NodeFolder(id=node_id, folder=folder)


def spool_name(call_id: str) -> str:
    """Return the name of the folder with the output of a call's command."""
    if _PLAIN_ID.fullmatch(call_id):
        return call_id
    # Also stable: after a crash the same call finds its spool, so the command is not run again.
    return hashlib.sha256(call_id.encode(errors="surrogatepass")).hexdigest()


def goal_text(team: Team) -> bytes:
    """Return the content of GOAL.md."""
    return _text(f"# Goal\n\n{team.goal.strip()}\n")


def soul_text(soul: str) -> bytes:
    """Return the content of SOUL.md; an empty soul stands for the default one."""
    return _text(f"# Soul\n\n{soul.strip()}\n" if soul.strip() else SOUL)


def _text(text: str) -> bytes:
    return text.encode(errors="replace")


def _name(name: str) -> str:
    """Return the name if it is a single path component; raise `OutOfScope` otherwise."""
    if split(name) != (name,):
        raise OutOfScope(f"{name!r} cannot name a folder; use letters, digits, '-' and '_'.")
    return name


def _put_if_missing(path: Path, data: bytes) -> None:
    """Create a file with this content unless a non-empty one exists; of two processes one wins.

    A hard link fails if the name exists, so it decides atomically. An empty file is the remains of
    an attempt on a full disk; it is replaced.
    """
    fd, name = tempfile.mkstemp(prefix=PARTIAL, dir=path.parent)
    partial = Path(name)
    try:
        with os.fdopen(fd, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        try:
            path.hardlink_to(partial)
        except FileExistsError:
            if path.stat().st_size == 0:
                partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def _cannot_be_home(path: Path, error: OSError) -> Misconfigured | StoreFull:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return StoreFull(f"No room left in {str(path)!r}: free some disk space.")
    return Misconfigured(
        f"{str(path)!r} cannot be the home: {error.strerror}. "
        "Set AGIRAPH_HOME to a folder that you may write to."
    )
