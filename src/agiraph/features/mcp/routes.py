"""MCP server routes: the MCP servers of this installation, and a person's consent to them."""

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

from pydantic import Field

from agiraph.api.deps import Api, ApiDep, CallerDep, check_owner
from agiraph.api.feature_views.mcp import McpServerDetails, McpServerView, McpToolView
from agiraph.api.problems import documented
from agiraph.api.routing import Body, Router
from agiraph.core.domain.errors import NotFound, Refused
from agiraph.core.domain.text.visible import visible
from agiraph.features.mcp.connection import ServerFailed
from agiraph.features.mcp.pins import Pins, ServerStatus, reached_lines
from agiraph.features.mcp.servers import McpServers
from agiraph.features.mcp.settings import McpServer
from agiraph.features.mcp.toolbox import McpTools
from agiraph.redaction import redact

router: Router = Router("extensions")
MOST_SAID = 1000


class ConfirmRequest(Body, example={"sha256": "0" * 64}):
    """Names what the person has seen."""

    sha256: str = Field(pattern="^[0-9a-f]{64}$")


@router.get("/mcp-servers")
async def list_mcp_servers(api: ApiDep) -> list[McpServerView]:
    """List the MCP servers that `agiraph.toml` and `.mcp.json` files name. None is started."""
    servers = _servers(api)
    found = [] if servers is None else [servers.status(name) for name in servers.servers]
    return [McpServerView.of(one.server, **_fields(one)) for one in found]


@router.get("/mcp-servers/{name}", responses=documented(404))
async def read_mcp_server(name: str, api: ApiDep, caller: CallerDep) -> McpServerDetails:
    """Return the command or address and the tools of an MCP server, for a person to review.

    Needs the scope `admin`.
    """
    check_owner(caller, "To see how an MCP server is reached")
    return _details(_of(api, name).status(name))


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
        return _details(await servers.confirm(name, sha256=body.sha256))


@router.post("/mcp-servers/{name}/ask", responses=documented(404))
async def ask_mcp_server(name: str, api: ApiDep, caller: CallerDep) -> McpServerDetails:
    """Start an MCP server and ask for its tools. Needs the scope `admin`."""
    check_owner(caller, "To start an MCP server")
    servers = _of(api, name)
    with _telling_why():
        await servers.look(name)
    return _details(servers.status(name))


def _servers(api: Api) -> McpServers | None:
    """Return the servers of this installation; None where no runtime has opened them."""
    tools: McpTools | None = api.parts.get(McpTools)
    return None if tools is None else tools.servers


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


def _fields(one: ServerStatus) -> dict[str, Any]:
    return {
        "reached_by": redact(one.server.description),
        "state": one.state,
        "summary": redact(one.summary),
        "tools": one.usable,
    }


def _details(one: ServerStatus) -> McpServerDetails:
    known = one.known or Pins()
    tools = [_tool(one.server, known, name) for name in sorted({*known.tools, *known.pending})]
    return McpServerDetails.of(
        one.server,
        **_fields(one),
        reached=[visible(redact(line), keep="") for line in reached_lines(one.server)],
        shown_tools=sorted(tools, key=lambda tool: tool.state == "on"),
        sha256=one.sha256,
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
