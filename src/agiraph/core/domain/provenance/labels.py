"""Labels: from which sources outside the team the words of an item come.

A web page, a search engine or the caller of a webhook may write instructions that a model then
follows. So turns, messages, tasks, memories, insights, notes and triggers carry a label
with the sources of their words. A result has the label of the thread that made it; a file that
outlives its node has a label of its own (`store.file_labels`). A thread's label is the union of the
labels of its turns. An item without sources is clean: the team or a
person of it wrote its words. A second page that says the same takes no source out of a label,
because an attacker has many sites.
"""

from collections.abc import Collection, Iterable
from functools import reduce
from urllib.parse import urlsplit

from agiraph.core.domain.text.plurals import counted
from agiraph.core.domain.value import dataclass

MOST_NAMED = 8
"""Sources that a label names; the others are counted."""
LONGEST = 200
FILE_NAME = 60
"""Characters of a file's name in a label."""
_NOUNS = {
    "page": "a page of {}",
    "file": "the file {}",
    "folder": "the folder {}",
    "client": "the client {}",
    "network": "the network ({})",
    "program": "the program {}",
    "mcp": "the MCP server {}",
}
_PLAIN = {
    "search": "a web search",
    "hook": "a webhook's caller",
    "page": "a saved page",
    "unknown": "an unknown source",
}


@dataclass(frozen=True, slots=True)
class Label:
    """The sources of an item's words. Falsy if nobody but the team and its persons wrote them."""

    sources: tuple[str, ...] = ()
    """The kind of each source, with its name if it has one: `search`, `page:docs.python.org`,
    `program:make`. In alphabetical order."""
    others: int = 0
    """How many further sources are only counted."""

    def __bool__(self) -> bool:
        return bool(self.sources)

    def __or__(self, other: "Label") -> "Label":
        """Join two labels: the item holds words of both."""
        if not other.sources or self == other:
            return self
        if not self.sources:
            return other
        union = sorted({*self.sources, *other.sources}, key=_rank)
        # The counted sources of both may be the same ones: the larger count is what is certain.
        others = max(self.others, other.others) + max(0, len(union) - MOST_NAMED)
        return Label(tuple(sorted(union[:MOST_NAMED])), others)

    def without(self, trusted: Collection[str]) -> "Label":
        """Return the label without the sources that a person trusts.

        A source that is counted without its name may be one that nobody trusts, so it stays.
        """
        kept = tuple(source for source in self.sources if source not in trusted)
        if kept == self.sources:
            return self
        return Label(kept or (("unknown",) if self.others else ()), self.others)

    def describe(self, known: Collection[str] | None = None) -> str:
        """Name the sources in words.

        For a prompt pass the hosts that a person or a setting has named as `known`: a stranger
        chooses the name of a host, so other hosts are only counted. Without it all are named.
        """
        named: list[str] = []
        sites = self.others
        for source in sorted(self.sources, key=_rank):
            kind, _, name = source.partition(":")
            is_site = kind in ("page", "network") and name != "unknown"
            if is_site and known is not None and name not in known:
                sites += 1
            else:
                named.append(_NOUNS[kind].format(name) if name else _PLAIN[kind])
        if sites:
            other = "other " if named else ""
            named.append(counted(sites, f"{other}site"))
        return " and ".join([", ".join(named[:-1]), named[-1]] if len(named) > 1 else named)

    def __str__(self) -> str:
        return self.describe()

    def to_list(self) -> list[str | int]:
        """Return the form that rows hold: the sources in order, then the count of others."""
        return [*self.sources, *([self.others] if self.others else [])]

    @classmethod
    def from_list(cls, stored: Iterable[object]) -> "Label":
        """Read the form that `to_list` returns; raise ValueError for anything else."""
        sources: list[str] = []
        others = 0
        for part in stored:
            match part:
                case str() if part.partition(":")[0] in _KINDS:
                    sources.append(part)
                case int() if part > 0:
                    others = part
                case _:
                    raise ValueError(f"{part!r} is not a source of words")
        return cls(tuple(sorted(sources)), others)


_KINDS = frozenset([*_NOUNS, *_PLAIN])
THIS_FOLDER = "folder:."
"""In the stored label of a file: the given folder that it lies in."""
CLEAN = Label()
SEARCH = Label(("search",))
HOOK = Label(("hook",))
UNKNOWN = Label(("unknown",))


def _rank(source: str) -> tuple[bool, str]:
    """Order sources so that strangers are named before programs."""
    return source.startswith("program:"), source


def of_page(url: str) -> Label:
    """Return the label of a page: its host, without the path, which could hold a message."""
    host = (urlsplit(url).hostname or "").rstrip(".")
    return Label((f"page:{host or 'unknown'}"[:LONGEST],))


def of_host(host: str) -> Label:
    """Return the label of what a command received from a host."""
    return Label((f"network:{host or 'unknown'}"[:LONGEST],))


def of_file(name: str) -> Label:
    """Return the label of an attached file: its name, in one line and without control characters,
    because the name stands in prompts."""
    plain = "".join(c for c in " ".join(name.split()) if c.isprintable())
    return Label((f"file:{plain[:FILE_NAME] or 'unnamed'}",))


def of_folder(name: str) -> Label:
    """Return the label of what lies in a folder that a person gave to the team."""
    return Label((f"folder:{name}",))


def in_folder(label: Label, name: str) -> Label:
    """Return a label as it is stored for a file of this given folder: another team may know the
    folder by another name."""
    own = f"folder:{name}"
    return Label(tuple(sorted(THIS_FOLDER if s == own else s for s in label.sources)), label.others)


def from_folder(label: Label, name: str, *, is_own: bool) -> Label:
    """Return the stored label of a file in a given folder as a team reads it that calls the folder
    `name`. Other folders of another team (not `is_own`) are unknown to it."""

    def read(source: str) -> str:
        if source == THIS_FOLDER:
            return f"folder:{name}"
        return "unknown" if source.startswith("folder:") and not is_own else source

    return Label(tuple(sorted({read(source) for source in label.sources})), label.others)


def of_client(name: str) -> Label:
    """Return the label of what a program said that talks to agents in a person's name."""
    plain = "".join(c for c in " ".join(name.split()) if c.isprintable())
    return Label((f"client:{plain[:FILE_NAME] or 'unnamed'}",))


def of_program(name: str) -> Label:
    return Label((f"program:{name}"[:LONGEST],))


def of_mcp(server: str) -> Label:
    """Return the label of what an MCP server says; a person chose its name."""
    return Label((f"mcp:{server}"[:LONGEST],))


def join(labels: Iterable[Label]) -> Label:
    return reduce(Label.__or__, labels, CLEAN)
