"""File versions: keeps what the files held that persons and agents change, so that no text is lost.

The versions of a file lie in the team's folder, below history/versions/, where no agent and no
command can read them. The name of a version says when it was written, and by whom.

The files of a team that outlive a node are sorted by who has to agree to their words. A thread that
holds untrusted text may write most of them; their label goes with them. What every later thread
reads as the team's own word needs a person.
"""

import hashlib
import re
from contextlib import suppress
from datetime import UTC, datetime
from enum import StrEnum

from agiraph.core.domain.agents import Trust
from agiraph.core.domain.errors import NotFound, Refused
from agiraph.core.domain.value import dataclass
from agiraph.core.home.layout import UPLOADS
from agiraph.core.home.safe_folder import Folder, split
from agiraph.core.home.scopes import Area, ScopedPath

ARCHIVE, EARLIER, INDEX, SUMMARY = "archive", "earlier-", "index.md", "MEMORY.md"
UNVERIFIED = "unverified"
"""The folder in memory/ with the notes that nobody has confirmed."""
LONGEST = 64 * 1024
"""Bytes of one note."""
LONGEST_SUMMARY = 16 * 1024
"""Bytes of MEMORY.md, which goes into every prompt."""
NO_SECRETS = (
    "That holds what looks like a key or a password, which is never kept: it would stand in later "
    "prompts. Say where it is kept or what it is for, without the secret itself."
)
DAY: re.Pattern[str] = re.compile(r"(\d{4}-\d\d-\d\d)\.md")
_OWN_NAMES = ("IDENTITY.md", "MEMORY.md", "NOTEBOOK.md", "memory", "pages", "results")


class Kind(StrEnum):
    """How a labelled thread may write a file."""

    WORKING = "working"  # PLAN.md, NOTEBOOK.md, a log, a file on the desk: written, with its label
    NOTE = "note"  # knowledge/, experiences/: written to memory/unverified/
    MEMORY = "memory"  # MEMORY.md: new lines are written, with their label
    LASTING = "lasting"  # preferences/, IDENTITY.md: a person decides
    RUNTIME = "runtime"  # index.md and archive/: only the runtime writes it


def kind_of_note(name: str) -> Kind:
    """Return the kind of a note; `name` is `MEMORY.md` or a path below memory/."""
    if name == SUMMARY:
        return Kind.MEMORY
    first, _, rest = name.partition("/")
    # Compared without case: on some file systems these are names of the same file.
    match first.casefold():
        case "memory.md" | "preferences":
            return Kind.LASTING
        case "index.md" if not rest:
            return Kind.RUNTIME
        case "archive":
            return Kind.RUNTIME
        case _ if DAY.fullmatch(name) or not name.casefold().endswith(".md"):
            return Kind.WORKING  # of other files no prompt and no index shows anything
        case _:
            return Kind.NOTE


def kind_of(spot: ScopedPath, *, leads: bool) -> Kind:
    """Return the kind of a file outside of scratch/. `leads`: the coordinator's notes are those of
    the team, any other agent's are on its desk."""
    match spot.area, spot.rest:
        case Area.TEAM_MEMORY, rest:
            return kind_of_note("/".join(rest))
        case Area.OWN_DESK, (first,) if first.casefold() == "identity.md":
            return Kind.LASTING
        case Area.OWN_DESK, (first,) if first.casefold() == SUMMARY.casefold():
            return Kind.MEMORY
        case Area.OWN_DESK, (first, *rest) if first.casefold() == "memory" and not leads:
            return kind_of_note("/".join(rest))
        case _:
            return Kind.WORKING


def waits_for_person(kind: Kind, trust: Trust) -> bool:
    """Whether the words of a labelled thread for such a file wait until a person confirms them."""
    return (kind is Kind.LASTING and trust != "open") or (kind is Kind.MEMORY and trust == "strict")


def full_path(spot: ScopedPath) -> str:
    """Return the path in the team's folder, by which a label is kept."""
    return "/".join(name for name in (spot.folder, *spot.rest) if name)


def check_name(spot: ScopedPath) -> None:
    """Raise `Refused` for a name that is another spelling of one of the agent's own files.

    On a file system that ignores case both names are one file, but each would have its own label.
    """
    first = spot.rest[0] if spot.rest else ""
    known = {name.casefold(): name for name in _OWN_NAMES}.get(first.casefold(), first)
    if spot.area is Area.OWN_DESK and first != known:
        raise Refused(f"{full_path(spot)!r} differs from {known!r} only by case; write {known!r}.")


def is_unverified(path: str) -> bool:
    """Whether a path in the team's folder is that of an unverified note, or of what one held."""
    parts = path.casefold().split("/")
    if parts[:1] == ["agents"]:
        parts = parts[2:]
    return parts[:2] == ["memory", UNVERIFIED] or (
        parts[:2] == ["memory", ARCHIVE] and parts[-1].startswith(f"{EARLIER}{UNVERIFIED}--")
    )


MOST = 100
"""Versions of one file that are kept."""
MOST_BYTES = 12 * 2**20
"""A larger content is not kept as a version."""
_FOLDER = "history/versions"
_NAME = re.compile(r"(\d{17})-([0-9a-f]{32})-(c|l)-([\w.-]{0,60})")
_TEAM_FILES = ("SOUL.md", "GOAL.md", "PLAN.md", "MEMORY.md")
_AGENT_FILES = ("IDENTITY.md", "MEMORY.md", "NOTEBOOK.md")
EDITABLE = (
    "A person can change SOUL.md, GOAL.md, PLAN.md, MEMORY.md, notes in memory/, the agents' own "
    f"notes, and uploaded texts in {UPLOADS}/. Everything else is a record of the team's work."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """An earlier or the present content of a file."""

    id: str
    at: datetime
    author: str
    """Who wrote it: `human`, the name of an agent, `agiraph` if it came with the team, or empty if
    that is not known."""
    size: int
    is_labelled: bool
    """Whether the file held words from outside the team then."""


def is_editable(path: str) -> bool:
    """Whether a person may change this file of a team. The index of the notes and their archive are
    written by the runtime; unverified notes are confirmed or rejected."""
    match path.split("/"):
        case [name]:
            return name in _TEAM_FILES
        case ["agents", _, name]:
            return name in _AGENT_FILES
        case ["memory", *note] | ["agents", _, "memory", *note]:
            first, last = note[0], note[-1]
            return first not in (INDEX, ARCHIVE, UNVERIFIED) and last.endswith(".md")
        case [top, _] if top == UPLOADS:
            return True
        case _:
            return False


def is_kept(path: str) -> bool:
    """Whether versions of this file are kept. A log only grows, so its last version has all."""
    return is_editable(path) and not DAY.fullmatch(path.rpartition("/")[2])


def keep(team: Folder, path: str, data: bytes, *, author: str, is_labelled: bool) -> None:
    """Keep what a file holds, unless it is that of the last version. The oldest ones go."""
    if len(data) > MOST_BYTES or not is_kept(path) or (entry := team.find(path)) is None:
        return
    digest = hashlib.sha256(data).hexdigest()[:32]
    known = versions(team, path)
    # A crash of an earlier release may have left an empty file under the name of the content.
    if known and known[0].id.split("-")[1] == digest and known[0].size == len(data):
        return
    # After the last version, even if the clock was set back since.
    newest = int(known[0].id.split("-")[0]) + 1 if known else 0
    micros = max(int(entry.modified.timestamp() * 1_000_000), newest)
    by = re.sub(r"[^\w.-]", "_", author)[:60]
    name = f"{micros:017d}-{digest}-{'l' if is_labelled else 'c'}-{by}"
    team.write(f"{_place(path)}/{name}", data)
    for old in known[MOST - 1 :]:
        with suppress(NotFound):
            team.remove(f"{_place(path)}/{old.id}")


def versions(team: Folder, path: str) -> list[Version]:
    """Return what a file has held, newest first; its present content may not be among it."""
    try:
        entries = team.list(_place(path))
    except NotFound:
        return []
    found: list[Version] = []
    for entry in reversed(entries):
        if (name := _NAME.fullmatch(entry.name)) is None:
            continue
        micros, _, label, author = name.groups()
        at = datetime.fromtimestamp(int(micros) / 1_000_000, UTC)
        found.append(
            Version(id=entry.name, at=at, author=author, size=entry.size, is_labelled=label == "l")
        )
    return found


def read(team: Folder, path: str, version: str) -> bytes:
    """Return the content of a version; raise `NotFound` if there is none, or half of one."""
    known = _NAME.fullmatch(version)
    missing = NotFound("version", version, known="The list of versions names those that are kept.")
    if known is None:
        raise missing
    try:
        data = team.read(f"{_place(path)}/{version}", limit=MOST_BYTES)
    except Refused:
        raise missing from None
    # A power cut may have left a part of it.
    if hashlib.sha256(data).hexdigest()[:32] != known.group(2):
        raise missing
    return data


def _place(path: str) -> str:
    """Return the folder of a file's versions; a hash, so that no file can lie in its way."""
    names = "/".join(split(path))
    return f"{_FOLDER}/{hashlib.sha256(names.encode()).hexdigest()[:40]}"
