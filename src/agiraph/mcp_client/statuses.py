"""MCP statuses: the state of each server, and what a person is shown before they confirm it."""

import hashlib
from dataclasses import dataclass, replace
from typing import Literal

import orjson

from agiraph.domain.errors import Misconfigured
from agiraph.domain.plurals import counted
from agiraph.domain.tools import Reach
from agiraph.domain.visible import visible
from agiraph.home.safe_folder import Folder
from agiraph.mcp_client import pins
from agiraph.mcp_client.pins import PinnedTool, Pins
from agiraph.mcp_client.settings import McpServer
from agiraph.redaction import redact

State = Literal["off", "unknown", "on", "changed", "faulty"]
"""off: a file names it, and no person has confirmed it. unknown: it has not been asked for its
tools yet. changed: tools of it are off until a person confirms them. faulty: it cannot be used."""
ToolState = Literal["on", "new", "changed", "gone"]
"""new, changed: off until a person confirms it. gone: the server no longer lists it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolStatus:
    """One tool of a server, as a model reads it, and as it was when a person accepted it."""

    name: str
    state: ToolState
    touches: Reach
    description: str = ""
    arguments: str = ""
    """Its JSON schema."""
    old_description: str = ""
    old_arguments: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerStatus:
    """The state of one server."""

    server: McpServer
    known: Pins | None

    @property
    def state(self) -> State:
        if self.server.fault:
            return "faulty"
        if pins.unconfirmed(self.server, self.known):
            return "off"
        if self.known is None or self.known.is_unasked:
            return "unknown"
        return "changed" if self.known.pending or self.known.gone else "on"

    @property
    def summary(self) -> str:
        """Return in one sentence what a person must know of it."""
        match self.state:
            case "faulty":
                return self.server.description
            case "off":
                return f"It {pins.unconfirmed(self.server, self.known).partition('. ')[0]}."
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
    def reached(self) -> list[str]:
        """Return how the server is reached, line by line, with secrets replaced."""
        return [visible(redact(line), keep="") for line in reached_lines(self.server)]

    @property
    def tools(self) -> list[ToolStatus]:
        """Return each tool that the server has or had, those to be confirmed first."""
        known = self.known or Pins()
        names = sorted({*known.tools, *known.pending})
        found = [self._tool(name, known) for name in names]
        return sorted(found, key=lambda tool: tool.state == "on")

    def _tool(self, name: str, known: Pins) -> ToolStatus:
        old, new = known.tools.get(name), known.pending.get(name)
        state: ToolState = "on" if new is None else "changed" if old else "new"
        if new is None and name in known.gone:
            state = "gone"
        now = new or old
        before = old if new is not None else None
        return ToolStatus(
            name=visible(name, keep=""),
            state=state,
            touches=self.server.reach_of(name),
            description=_description(now),
            arguments=_arguments(now),
            old_description=_description(before),
            old_arguments=_arguments(before),
        )

    @property
    def sha256(self) -> str:
        """Return the hash of all that a person confirms: how the server is reached, if nobody has
        confirmed that, and its tools with their changes."""
        known = self.known or Pins()
        shown = [
            self.server.reached_hash if pins.unconfirmed(self.server, self.known) else "",
            {name: tool.digest for name, tool in known.tools.items()},
            {name: tool.digest for name, tool in known.pending.items()},
            sorted(known.gone),
        ]
        return hashlib.sha256(orjson.dumps(shown, option=orjson.OPT_SORT_KEYS)).hexdigest()


def status_of(home: Folder, server: McpServer) -> ServerStatus:
    """Return the state of a server from its pins in the home. Damaged pins make it faulty."""
    try:
        return ServerStatus(server=server, known=pins.load(home, server.name))
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


def _description(tool: PinnedTool | None) -> str:
    return "" if tool is None else visible(tool.description)


def _arguments(tool: PinnedTool | None) -> str:
    return "" if tool is None else visible(orjson.dumps(dict(tool.schema)).decode(), keep="")
