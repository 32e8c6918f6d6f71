"""Pins: the tools of an MCP server as they were when a person accepted them, and its state.

A server describes its own tools, and a model reads the description. So a tool whose name,
description or arguments have changed since is off until a person confirms the change. The pins of
a server are a file in the home, which no command can see.
"""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import field, replace
from pathlib import Path
from typing import Any, Literal

import orjson

from agiraph.core.domain.errors import Misconfigured, NotFound
from agiraph.core.domain.messages import Notice
from agiraph.core.domain.text.fence import neutral
from agiraph.core.domain.text.plurals import counted
from agiraph.core.domain.text.visible import visible
from agiraph.core.domain.value import dataclass
from agiraph.core.home.safe_folder import Folder
from agiraph.features.mcp.settings import McpServer, digest_of

FOLDER = "mcp"
MOST_TOOLS = 256
MOST_BYTES = 32 * 2**20
DESCRIPTION_CHARACTERS = 4_000
SCHEMA_BYTES = 32 * 1024
MOST_NAMED = 8

State = Literal["off", "unknown", "on", "changed", "faulty"]
"""off: a file names it, and no person has confirmed it. unknown: it has not been asked for its
tools yet. changed: tools of it are off until a person confirms them. faulty: it cannot be used."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PinnedTool:
    """A tool as its server describes it."""

    name: str
    description: str = ""
    schema: Mapping[str, Any] = field(default_factory=dict[str, Any])
    says_it_reads: bool = False
    """The server says that the tool changes nothing. Shown to people; it decides nothing."""
    digest: str = ""

    @property
    def summary(self) -> str:
        """Return the first sentence of the description, for a list."""
        line = " ".join(neutral(self.description).split())
        first, dot, _ = line.partition(". ")
        return (first + dot.strip())[:160]

    @property
    def words(self) -> tuple[str, str]:
        """Return the description and the JSON schema as models read them, for people to see."""
        schema = orjson.dumps(dict(self.schema)).decode()
        return visible(self.description), visible(schema, keep="")

    @classmethod
    def of(
        cls, name: str, description: str, schema: Mapping[str, Any], *, says_it_reads: bool
    ) -> "PinnedTool":
        """Return the tool with the hash of all that its server says about it."""
        return cls(
            name=name,
            description=description[:DESCRIPTION_CHARACTERS],
            schema=schema,
            says_it_reads=says_it_reads,
            digest=digest_of([name, description, schema, says_it_reads]),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Pins:
    """The tools of a server that a person has accepted, and the server's changes since then."""

    tools: Mapping[str, PinnedTool] = field(default_factory=dict[str, PinnedTool])
    pending: Mapping[str, PinnedTool] = field(default_factory=dict[str, PinnedTool])
    """Tools that are new or have changed: they are off until a person confirms them."""
    gone: tuple[str, ...] = ()
    """Accepted tools that the server no longer listed when it was last asked."""
    is_seen: bool = False
    """Whether a person was shown these tools and accepted them. If not, the server's first list
    was accepted unseen."""
    reached: str = ""
    """The hash of how the server is reached (`McpServer.reached_hash`), as a person confirmed it;
    empty for a server of agiraph.toml."""

    @property
    def is_unasked(self) -> bool:
        """Whether nothing is known of the server but how it is reached."""
        return not (self.tools or self.pending or self.gone or self.is_seen)

    @property
    def changes(self) -> list[str]:
        """Return the names of the tools that a person has to confirm."""
        return sorted({*self.pending, *self.gone})

    @property
    def usable(self) -> dict[str, PinnedTool]:
        """Return the tools that agents may call."""
        off = self.changes
        return {name: tool for name, tool in self.tools.items() if name not in off}

    def compared(self, found: Iterable[PinnedTool]) -> "Pins":
        """Return the pins with the changes that this new list of the server's tools shows."""
        told = {tool.name: tool for tool in found}
        known = {name: tool.digest for name, tool in self.tools.items()}
        pending = {name: tool for name, tool in told.items() if known.get(name) != tool.digest}
        gone = tuple(sorted(name for name in self.tools if name not in told))
        return replace(self, pending=pending, gone=gone)

    def confirmed(self, names: Iterable[str] | None = None) -> "Pins":
        """Return the pins with these changes accepted; without names, all of them."""
        wanted = {*(self.changes if names is None else names)}
        if unknown := wanted.difference(self.changes):
            raise NotFound("changed tool", min(unknown), known="`agiraph mcp list` shows them.")
        tools = {name: tool for name, tool in self.tools.items() if name not in self.gone}
        accepted = {name: tool for name, tool in self.pending.items() if name in wanted}
        left = {name: tool for name, tool in self.pending.items() if name not in wanted}
        return replace(self, tools={**tools, **accepted}, pending=left, gone=(), is_seen=True)


def unconfirmed(server: McpServer, known: Pins | None) -> str:
    """Return why a server may not be started or contacted yet; empty if it may."""
    if not server.is_from_file or server.fault:
        return ""
    confirmed = "" if known is None else known.reached
    if confirmed == server.reached_hash:
        return ""
    what = (
        f"is reached in another way than you confirmed in {server.origin}"
        if confirmed
        else f"is new in {server.origin} and has not been confirmed"
    )
    return f"{what}. Look at it and accept it: agiraph mcp confirm {server.name}"


def notice_of(server: str, known: Pins) -> Notice:
    """Return the report on what a server has changed. Its key is the change itself."""
    digests = sorted(tool.digest for tool in known.pending.values())
    change = hashlib.sha256("\n".join([server, *digests, *known.gone]).encode()).hexdigest()[:16]
    return Notice(
        key=f"mcp:{server}:{change}",
        title=f"The MCP server {server} has changed its tools",
        text=news(server, known),
    )


def news(server: str, known: Pins) -> str:
    """Return what changed and what to do, for a person."""
    changed = [name for name in known.pending if name in known.tools]
    new = [name for name in known.pending if name not in known.tools]
    parts = [
        f"{what}: {', '.join(repr(name) for name in names[:MOST_NAMED])}"
        f"{f' and {len(names) - MOST_NAMED} more' if len(names) > MOST_NAMED else ''}."
        for what, names in (("Changed", changed), ("New", new), ("Gone", [*known.gone]))
        if names
    ]
    return (
        f"{' '.join(parts)} They are off until you have looked at them: on the page Operations, or "
        f"with agiraph mcp confirm {server}"
    )


def load(home: Folder, server: str) -> Pins | None:
    """Return the pins of a server; None if its tools are not known yet."""
    try:
        stored: dict[str, Any] = orjson.loads(home.read(_path(server), limit=MOST_BYTES))
        tools, pending = (
            {name: PinnedTool(**fields) for name, fields in stored[key].items()}
            for key in ("tools", "pending")
        )
        return Pins(
            tools=tools,
            pending=pending,
            gone=tuple(stored["gone"]),
            is_seen=bool(stored["is_seen"]),
            reached=str(stored.get("reached", "")),
        )
    except NotFound:
        return None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise Misconfigured(
            f"{_path(server)} in the home is damaged. Remove it, and accept the tools again with "
            f"`agiraph mcp confirm {server}`."
        ) from error


def save(home: Folder, server: str, pins: Pins) -> None:
    """Store the pins of a server, in place of the old ones."""
    data = orjson.dumps(pins)
    if len(data) > MOST_BYTES:
        raise Misconfigured(f"The MCP server {server!r} describes its tools with too many bytes.")
    home.write(_path(server), data)


def remove(home: Folder, server: str) -> None:
    """Forget the tools of a server."""
    if home.exists(_path(server)):
        home.remove(_path(server))


def stamp(home: Path, server: str) -> int:
    """Return the modification time of a server's pins; 0 if there are none."""
    try:
        return (home / _path(server)).stat().st_mtime_ns
    except OSError:
        return 0


def _path(server: str) -> str:
    return f"{FOLDER}/{server}.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerStatus:
    """The state of one server."""

    server: McpServer
    known: Pins | None

    @property
    def state(self) -> State:
        if self.server.fault:
            return "faulty"
        if unconfirmed(self.server, self.known):
            return "off"
        if self.known is None or self.known.is_unasked:
            return "unknown"
        return "changed" if self.known.changes else "on"

    @property
    def summary(self) -> str:
        """Return in one sentence what a person must know of it."""
        match self.state:
            case "faulty":
                return self.server.description
            case "off":
                return f"It {unconfirmed(self.server, self.known).partition('. ')[0]}."
            case "unknown":
                return "not asked for its tools yet"
            case "changed":
                return "it has changed its tools; the changed ones are off until you confirm them"
            case "on":
                return counted(len(self.usable), "tool")

    @property
    def usable(self) -> list[str]:
        """Return the names of the tools that agents of some role may call."""
        if self.known is None or self.state in ("off", "faulty"):
            return []
        roles = tuple(self.server.roles) or ("",)
        allowed = self.server.allows
        return [n for n in self.known.usable if any(allowed(n, role) for role in roles)]

    @property
    def sha256(self) -> str:
        """Return the hash of all that a person confirms: how the server is reached, if nobody has
        confirmed that, and its tools with their changes."""
        known = self.known or Pins()
        shown = [
            self.server.reached_hash if unconfirmed(self.server, self.known) else "",
            {name: tool.digest for name, tool in known.tools.items()},
            {name: tool.digest for name, tool in known.pending.items()},
            sorted(known.gone),
        ]
        return digest_of(shown)


def status_of(home: Folder, server: McpServer) -> ServerStatus:
    """Return the state of a server from its pins in the home. Damaged pins make it faulty."""
    try:
        return ServerStatus(server=server, known=load(home, server.name))
    except Misconfigured as error:
        return ServerStatus(server=replace(server, fault=str(error)), known=None)


def reached_lines(server: McpServer) -> list[str]:
    """Return how a server is reached, line by line, as its file says it."""
    return [
        *(f"argument: {word}" for word in server.command),
        *(f"variable: {key}={value}" for key, value in server.env.items()),
        *([f"address: {server.url}"] if server.url else []),
        *(f"header: {key}: {value}" for key, value in server.headers.items()),
    ]
