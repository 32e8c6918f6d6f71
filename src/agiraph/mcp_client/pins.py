"""Pins: the tools of an MCP server as they were when a person accepted them.

A server describes its own tools, and a model reads the description. So a tool whose name,
description or arguments have changed since is off until a person confirms the change. The pins of
a server are a file in the home, which no command can see.
"""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

import orjson

from agiraph.domain.errors import Misconfigured, NotFound
from agiraph.domain.fence import neutral
from agiraph.home.safe_folder import Folder
from agiraph.mcp_client.settings import McpServer

FOLDER = "mcp"
MOST_TOOLS = 256
MOST_BYTES = 32 * 2**20
DESCRIPTION_CHARACTERS = 4_000
SCHEMA_BYTES = 32 * 1024


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

    @classmethod
    def of(
        cls, name: str, description: str, schema: Mapping[str, Any], *, says_it_reads: bool
    ) -> "PinnedTool":
        """Return the tool with the hash of all that its server says about it."""
        said = [name, description, schema, says_it_reads]
        digest = hashlib.sha256(orjson.dumps(said, option=orjson.OPT_SORT_KEYS)).hexdigest()
        return cls(
            name=name,
            description=description[:DESCRIPTION_CHARACTERS],
            schema=schema,
            says_it_reads=says_it_reads,
            digest=digest,
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
    def usable(self) -> dict[str, PinnedTool]:
        """Return the tools that agents may call."""
        off = {*self.pending, *self.gone}
        return {name: tool for name, tool in self.tools.items() if name not in off}

    def compared(self, found: Iterable[PinnedTool]) -> "Pins":
        """Return the pins with the changes that this new list of the server's tools shows."""
        told = {tool.name: tool for tool in found}
        pending = {name: tool for name, tool in told.items() if self._is_news(tool)}
        gone = tuple(sorted(name for name in self.tools if name not in told))
        return replace(self, pending=pending, gone=gone)

    def _is_news(self, tool: PinnedTool) -> bool:
        known = self.tools.get(tool.name)
        return known is None or known.digest != tool.digest

    def confirmed(self, names: Iterable[str] | None = None) -> "Pins":
        """Return the pins with these changes accepted; without names, all of them."""
        wanted = {*self.pending, *self.gone} if names is None else {*names}
        if unknown := wanted - {*self.pending, *self.gone}:
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


def load(home: Folder, server: str) -> Pins | None:
    """Return the pins of a server; None if its tools are not known yet."""
    try:
        data = home.read(_path(server), limit=MOST_BYTES)
    except NotFound:
        return None
    try:
        return _decoded(orjson.loads(data))
    except (ValueError, KeyError, TypeError) as error:
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


def _decoded(stored: Any) -> Pins:
    def tools(key: str) -> dict[str, PinnedTool]:
        named = cast(dict[str, dict[str, Any]], stored[key])
        return {name: PinnedTool(**fields) for name, fields in named.items()}

    return Pins(
        tools=tools("tools"),
        pending=tools("pending"),
        gone=tuple(stored["gone"]),
        is_seen=bool(stored["is_seen"]),
        reached=str(stored.get("reached", "")),
    )
