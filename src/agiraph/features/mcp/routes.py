"""MCP server routes: the MCP servers of this installation, and a person's consent to them."""

import asyncio
from collections.abc import Generator
from contextlib import contextmanager
from functools import partial
from typing import Any

from pydantic import Field

from agiraph.api.deps import Api, ApiDep, CallerDep, check_owner
from agiraph.api.feature_views.mcp import (
    McpDraftView,
    McpServerDetails,
    McpServerView,
    McpSignInView,
    McpToolView,
)
from agiraph.api.problems import documented
from agiraph.api.routing import Body, Router
from agiraph.core.domain.errors import Conflict, NotFound, Refused
from agiraph.core.domain.text.visible import visible
from agiraph.features.mcp import entries
from agiraph.features.mcp.connection import ServerFailed, SignInWanted
from agiraph.features.mcp.pins import Pins, ServerStatus, reached_lines
from agiraph.features.mcp.servers import McpServers
from agiraph.features.mcp.settings import McpServer, Network, secrets_of
from agiraph.features.mcp.toolbox import McpTools
from agiraph.redaction import redact

router: Router = Router("extensions")
MOST_SAID = 1000


class ConfirmRequest(Body, example={"sha256": "0" * 64}):
    """Names what the person has seen."""

    sha256: str = Field(pattern="^[0-9a-f]{64}$")


class McpServerDraft(Body, example={"name": "weather", "command": "python3 /path/weather.py"}):
    """An MCP server: its command or its address, and what it and agents may do."""

    name: str = Field(max_length=100)
    command: str = Field(
        default="",
        max_length=4000,
        description="A program with its arguments, as in a shell; nothing is expanded.",
    )
    url: str = Field(default="", max_length=2000)
    env: dict[str, str] = Field(
        default_factory=dict, description="Variables of the program. ${NAME} stands for a secret."
    )
    headers: dict[str, str] = Field(
        default_factory=dict, description="Headers of each request. ${NAME} stands for a secret."
    )
    network: Network | None = Field(
        default=None,
        description="What the program may reach; null: packages for npx and uvx, else none.",
    )
    hosts: list[str] = Field(default_factory=list, description="Hosts that it may reach.")
    folders: list[str] = Field(default_factory=list, description="PATH, PATH:ro or PATH:rw.")
    tools: list[str] = Field(default_factory=list, description="Patterns; none: all tools.")
    reads: list[str] = Field(default_factory=list, description="Tools that change nothing.")
    changes: list[str] = Field(
        default_factory=list,
        description="Tools that change something but send nothing to others.",
    )
    teams: list[str] = Field(default_factory=list, description="Names or ids; none: all teams.")


class NewMcpServer(
    McpServerDraft,
    example={"name": "weather", "command": "python3 /path/weather.py", "sha256": "0" * 64},
):
    """An MCP server, as a person was shown it."""

    sha256: str = Field(pattern="^[0-9a-f]{64}$")


@router.get("/mcp-servers")
async def list_mcp_servers(api: ApiDep) -> list[McpServerView]:
    """List the MCP servers that `agiraph.toml` and `.mcp.json` files name. None is started."""
    servers = _servers(api)
    found = [] if servers is None else [servers.status(name) for name in servers.servers]
    return [McpServerView.of(one.server, **_fields(api, one)) for one in found]


@router.post("/mcp-servers/draft", responses=documented(409))
async def draft_mcp_server(body: McpServerDraft, api: ApiDep, caller: CallerDep) -> McpDraftView:
    """Show what would be started or contacted. Nothing is, and nothing is stored. Needs `admin`."""
    check_owner(caller, "To add an MCP server")
    table, server = await _drafted(api, body)
    return McpDraftView(
        name=server.name,
        reached=_reached(server),
        secrets=secrets_of(server),
        notes=[visible(note, keep="") for note in entries.notes_on(server)],
        consent=entries.CONSENT,
        question=entries.START,
        sha256=entries.shown_hash(server.name, table),
    )


@router.post("/mcp-servers", status_code=201, responses=documented(409))
async def add_mcp_server(body: NewMcpServer, api: ApiDep, caller: CallerDep) -> McpServerDetails:
    """Start the MCP server that a person was shown, and if it answers, add it to `agiraph.toml`.

    Needs the scope `admin`. Its tools are off until `confirm` accepts them. One that wants a
    sign-in is added, too.
    """
    check_owner(caller, "To add an MCP server")
    table, server = await _drafted(api, body)
    if entries.shown_hash(server.name, table) != body.sha256:
        raise Conflict(f"The MCP server {server.name!r} has changed since you looked; look again.")
    with _telling_why():
        write = partial(entries.write, api.home, server.name, table)
        return _details(api, await _known(api).add(server, write))


@router.delete("/mcp-servers/{name}", status_code=204, responses=documented(404))
async def remove_mcp_server(name: str, api: ApiDep, caller: CallerDep) -> None:
    """Take an MCP server out of `agiraph.toml`, end it, and forget its tools. Needs `admin`."""
    check_owner(caller, "To remove an MCP server")
    servers = _of(api, name)
    entries.remove(api.home, name, servers.servers[name])
    await servers.drop(name)


@router.post("/mcp-servers/{name}/sign-in", responses=documented(404))
async def sign_in_to_mcp_server(name: str, api: ApiDep, caller: CallerDep) -> McpSignInView:
    """Begin to sign in to an MCP server (OAuth). Needs the scope `admin`.

    The person opens the address in a browser on the machine of the server, which then has the
    token.
    """
    check_owner(caller, "To sign in to an MCP server")
    with _telling_why():
        return McpSignInView(url=await _of(api, name).begin_sign_in(name))


@router.get("/mcp-servers/{name}", responses=documented(404))
async def read_mcp_server(name: str, api: ApiDep, caller: CallerDep) -> McpServerDetails:
    """Return the command or address and the tools of an MCP server, for a person to review.

    Needs the scope `admin`.
    """
    check_owner(caller, "To see how an MCP server is reached")
    return _details(api, _of(api, name).status(name))


@router.post("/mcp-servers/{name}/confirm", responses=documented(404, 409))
async def confirm_mcp_server(
    name: str, body: ConfirmRequest, api: ApiDep, caller: CallerDep
) -> McpServerDetails:
    """Accept what was shown of an MCP server. Needs the scope `admin`.

    If its state is `off`, this accepts how it is reached: it is started and asked for its tools.
    They are off until a second request accepts them.
    """
    check_owner(caller, "To confirm an MCP server")
    servers = _of(api, name)
    with _telling_why():
        return _details(api, await servers.confirm(name, sha256=body.sha256))


@router.post("/mcp-servers/{name}/ask", responses=documented(404))
async def ask_mcp_server(name: str, api: ApiDep, caller: CallerDep) -> McpServerDetails:
    """Start an MCP server and ask for its tools. Needs the scope `admin`."""
    check_owner(caller, "To start an MCP server")
    servers = _of(api, name)
    with _telling_why():
        await servers.look(name)
    return _details(api, servers.status(name))


def _servers(api: Api) -> McpServers | None:
    """Return the servers of this installation; None where no runtime has opened them."""
    tools: McpTools | None = api.parts.get(McpTools)
    return None if tools is None else tools.servers


def _known(api: Api) -> McpServers:
    servers = _servers(api)
    if servers is None:
        raise Refused("This process of agiraph uses no MCP servers.")
    return servers


async def _drafted(api: Api, body: McpServerDraft) -> tuple[dict[str, Any], McpServer]:
    """Return the table of a new server, and the server as it would be; raise `Refused` if it cannot
    be."""
    servers = _known(api)
    entries.check_new(body.name, servers.servers)
    if bool(body.command.strip()) == bool(body.url.strip()):
        raise Refused("Give either a command or an address.")
    how = entries.words_of(body.command)
    if url := body.url.strip():
        how = entries.address_of(url)
    table = entries.table_of(how, body.env, body.headers, body.model_dump())
    draft = partial(entries.draft, api.home, body.name, table, servers.secrets)
    return table, await asyncio.to_thread(draft)


def _of(api: Api, name: str) -> McpServers:
    """Return the servers; raise `NotFound` if there is none with this name."""
    servers = _servers(api)
    if servers is None or name not in servers.servers:
        raise NotFound("MCP server", name, known="`agiraph mcp list` shows all.")
    return servers


@contextmanager
def _telling_why() -> Generator[None]:
    """Add what a server that failed has said itself: its owner sees it, a model never does."""
    try:
        yield
    except ServerFailed as error:
        if not error.said:
            raise
        raise Refused(f"{error} It said: {visible(redact(error.said))[:MOST_SAID]}") from error


def _reached(server: McpServer) -> list[str]:
    return [visible(redact(line), keep="") for line in reached_lines(server)]


def _fields(api: Api, one: ServerStatus) -> dict[str, Any]:
    servers, name = _known(api), one.server.name
    failure = servers.failure(name)
    return {
        "is_running": servers.is_running(name),
        "needs_sign_in": isinstance(failure, SignInWanted),
        "problem": "" if failure is None else redact(str(failure)),
        "can_remove": entries.is_in_settings(api.home, one.server),
        "reached_by": redact(one.server.description),
        "state": one.state,
        "summary": redact(one.summary),
        "tools": one.usable,
    }


def _details(api: Api, one: ServerStatus) -> McpServerDetails:
    known = one.known or Pins()
    tools = [_tool(one.server, known, name) for name in sorted({*known.tools, *known.pending})]
    return McpServerDetails.of(
        one.server,
        **_fields(api, one),
        reached=_reached(one.server),
        shown_tools=sorted(tools, key=lambda tool: tool.state == "on"),
        sha256=one.sha256,
        question={"off": entries.START, "changed": entries.ACCEPT}.get(one.state, ""),
    )


def _tool(server: McpServer, known: Pins, name: str) -> McpToolView:
    """Return a tool as a model reads it, and as it was when a person accepted it."""
    old, new = known.tools.get(name), known.pending.get(name)
    state = "gone" if name in known.gone else "on" if new is None else "changed" if old else "new"
    description, arguments = (new or known.tools[name]).words
    old_description, old_arguments = old.words if new and old else ("", "")
    return McpToolView(
        name=visible(name, keep=""),
        state=state,
        touches=server.reach_of(name),
        description=description,
        arguments=arguments,
        old_description=old_description,
        old_arguments=old_arguments,
    )
