"""Kept files: sorts the files of a team that outlive a node by who has to agree to their words.

A thread that holds untrusted text may write most files; their label goes with them. What every
later thread reads as the team's own word needs a person.
"""

import re
from enum import StrEnum

from agiraph.core.domain.agents import Trust
from agiraph.core.domain.errors import Refused
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
