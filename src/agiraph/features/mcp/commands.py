"""`agiraph mcp`: use MCP servers in teams, let MCP clients use agiraph; and what doctor says."""

import sys
import time
from collections.abc import AsyncGenerator, Awaitable, Iterable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import click

from agiraph import config, location
from agiraph.cli.session import Columns, Told, command, plain_console, printing, table
from agiraph.core.domain.errors import AgiraphError, NotFound
from agiraph.core.domain.text.plurals import counted
from agiraph.core.domain.text.visible import visible
from agiraph.core.home.layout import Home
from agiraph.doctor.checkup import Checkup
from agiraph.features.mcp import entries, launching, pins
from agiraph.features.mcp.connection import ServerFailed
from agiraph.features.mcp.pins import PinnedTool, Pins, ServerStatus, reached_lines, status_of
from agiraph.features.mcp.servers import McpServers
from agiraph.features.mcp.settings import McpServer, servers_of
from agiraph.redaction import environment, redact
from agiraph.sandbox.levels import CommandRules
from agiraph.sandbox.sandbox import database_files


@click.group()
def mcp() -> None:
    """Use MCP servers in teams, and let MCP clients use agiraph."""


@mcp.command(context_settings={"ignore_unknown_options": False})
@click.argument("name")
@click.argument("how", nargs=-1, required=True, metavar="URL | -- COMMAND [ARGUMENT]...")
@click.option(
    "--env", "envs", multiple=True, metavar="NAME=VALUE", help="A variable of its program."
)
@click.option(
    "--header",
    "headers",
    multiple=True,
    metavar="NAME=VALUE",
    help="A header of each request to its URL.",
)
@click.option(
    "--network",
    type=click.Choice(["none", "packages", "hosts", "open"]),
    help="What its program may reach. Default: packages for npx and uvx, else none.",
)
@click.option("--host", "hosts", multiple=True, help="A host that its program may reach.")
@click.option(
    "--folder",
    "folders",
    multiple=True,
    metavar="PATH[:ro|rw]",
    help="A folder that its program sees.",
)
@click.option("--tool", "tools", multiple=True, help="A tool that agents may call, or a pattern.")
@click.option("--reads", multiple=True, metavar="TOOL", help="A tool that changes nothing.")
@click.option(
    "--changes",
    multiple=True,
    metavar="TOOL",
    help="A tool that changes something but sends nothing to others.",
)
@click.option("--team", "teams", multiple=True, help="A team that may use it; default: all.")
@command
async def add(name: str, how: tuple[str, ...], **given: Any) -> None:
    """Add an MCP server under a NAME, start it once and show its tools.

    This is your consent to start it. In a team that has read untrusted text, you are asked before
    each call, unless you say with --reads or --changes what its tools do.
    """
    settings = config.load(environment())
    entries.check_new(name, servers_of(settings))
    variables, headers = (_pairs(given.pop(f"{key}s"), f"--{key}") for key in ("env", "header"))
    table = entries.table_of(how, variables, headers, given)
    home = Home.open(settings.home)
    pins.remove(home.folder, name)  # of a server that had this name before
    entries.write(home, name, table)
    click.echo(f"Written to {home.config_path}.")
    for path in launching.unseen_paths(servers_of(config.load(environment()))[name]):
        click.echo(f"Its program does not see {path!r}: give it with --folder {path}:ro or :rw.")
    try:
        async with opened(config.load(environment()), name) as (home, servers):
            found, _ = await _looked(servers, name)
            _show_tools(servers.servers[name], found.usable.values(), is_whole=True)
            # What is pending was not shown; `agiraph mcp confirm` shows it.
            pins.save(home.folder, name, replace(found, is_seen=True))
    except ServerFailed as error:
        raise ServerFailed(
            f"{error} It is in agiraph.toml now: try it again with `agiraph mcp test {name}`, or "
            f"take it out with `agiraph mcp remove {name}`."
        ) from error
    click.echo("A running server of agiraph takes it up at its next start.")


def _pairs(given: Iterable[str], option: str) -> dict[str, str]:
    parts = [text.partition("=") for text in given]
    if wrong := [text for text in given if "=" not in text]:
        raise click.UsageError(f"{option} {wrong[0]!r}: write NAME=VALUE.")
    return {name: value for name, _, value in parts}


async def _looked(servers: McpServers, name: str) -> tuple[Pins, float]:
    """Start the server; return its tools and how long it took to ask. If it fails, print its own
    error."""
    begun = time.monotonic()
    return await _saying_why(servers.look(name)), time.monotonic() - begun


async def _saying_why(look: Awaitable[Pins]) -> Pins:
    try:
        return await look
    except ServerFailed as error:
        if error.said:
            click.echo(visible(redact(error.said)), err=True)
        raise


def _show_tools(server: McpServer, tools: Iterable[PinnedTool], *, is_whole: bool = False) -> None:
    """Print the tools: their summaries, or all that a model reads of them."""
    found = list(tools)
    for tool in found:
        says = "; it says that it only reads" if tool.says_it_reads else ""
        click.echo(f"  {visible(tool.name, keep='')} ({server.reach_of(tool.name)}{says})")
        if is_whole:
            _show_words(tool, "   ")
        else:
            click.echo(f"    {visible(tool.summary, keep='')}")
    click.echo(f"{server.name}: {counted(len(found), 'tool')}.")


@mcp.command("list")
@printing
async def list_() -> Told:
    """List the MCP servers, and which of their tools wait for your confirmation."""
    settings = config.load(environment())
    home = Home.open(settings.home)
    found = [status_of(home.folder, server) for server in servers_of(settings).values()]
    values = [_as_value(one) for one in found]
    if not found:
        return values, "There are no MCP servers. Add one: agiraph mcp add NAME -- COMMAND"
    return values, lambda: plain_console().print(table(found, _SERVERS))


def _state(one: ServerStatus) -> str:
    name = one.server.name
    return {
        "faulty": "cannot be used",
        "off": f"needs review: agiraph mcp confirm {name}",
        "unknown": f"not asked yet: agiraph mcp test {name}",
        "changed": f"changed: agiraph mcp confirm {name}",
        "on": "ready",
    }[one.state]


_SERVERS: Columns[ServerStatus] = (
    ("name", lambda one: one.server.name),
    ("reached by", lambda one: visible(redact(one.server.description))),
    ("tools", lambda one: "" if one.known is None else str(len(one.known.usable))),
    ("state", _state),
)


def _as_value(one: ServerStatus) -> dict[str, Any]:
    server, known = one.server, one.known
    return {
        "name": server.name,
        "reached_by": redact(server.description),
        "from": server.origin,
        "state": _state(one),
        "tools": {} if known is None else {n: server.reach_of(n) for n in known.usable},
        "to_confirm": [] if known is None else known.changes,
    }


@mcp.command()
@click.argument("name")
@command
async def test(name: str) -> None:
    """Start the server NAME, ask for its tools, and end it."""
    async with opened(config.load(environment()), name) as (_, servers):
        found, seconds = await _looked(servers, name)
        _show_tools(servers.servers[name], found.usable.values())
    click.echo(f"It answered within {seconds:.1f} s.")
    if found.changes:
        click.echo(pins.news(name, found))
        sys.exit(1)


@mcp.command()
@click.argument("name")
@click.argument("tools", nargs=-1)
@click.option("--yes", is_flag=True, help="Do not ask.")
@command
async def confirm(name: str, tools: tuple[str, ...], yes: bool) -> None:
    """Look at what the server NAME changed, and accept it: all of it, or some TOOLS."""
    settings = config.load(environment())
    async with opened(settings, name) as (home, servers):
        known, server = pins.load(home.folder, name), servers.servers[name]
        if why := pins.unconfirmed(server, known):
            click.echo(f"{name} {why.partition('. ')[0]}:")
            for line in reached_lines(server):  # as its file says it
                click.echo(f"  {visible(line, keep='')}")
            if not yes and not click.confirm(entries.START):
                return click.echo("Nothing was accepted.")
            pins.save(home.folder, name, replace(known or Pins(), reached=server.reached_hash))
            known = None
        known = known or (await _looked(servers, name))[0]
    if not known.is_seen and known.tools:
        _show_tools(server, known.tools.values(), is_whole=True)
    wanted = list(tools) or known.changes
    for tool in wanted:
        _show_change(known, tool)
    if not wanted and known.is_seen:
        return click.echo(f"{name}: nothing has changed.")
    if not yes and not click.confirm(entries.ACCEPT):
        return click.echo("Nothing was accepted.")
    pins.save(home.folder, name, known.confirmed(tools or None))
    click.echo("Accepted. Running work uses it at its next turn.")


def _show_change(known: Pins, tool: str) -> None:
    old, new = known.tools.get(tool), known.pending.get(tool)
    what = "gone" if new is None else "changed" if old else "new"
    click.echo(f"{visible(tool, keep='')}: {what}")
    for mark, one in (("-", old), ("+", new)):
        if one is None or (new is None and mark == "+"):
            continue
        _show_words(one, f"  {mark}")


def _show_words(tool: PinnedTool, mark: str) -> None:
    """Print a tool's whole description and its arguments, as a model reads them."""
    description, arguments = tool.words
    for line in description.splitlines() or [""]:
        click.echo(f"{mark} {line}")
    click.echo(f"{mark} arguments: {arguments}")


@mcp.command()
@click.argument("name")
@command
async def login(name: str) -> None:
    """Sign in to the server NAME with a browser on this machine (OAuth)."""

    def show(url: str) -> None:
        click.echo(f"Open this address in a browser on this machine:\n{visible(url, keep='')}")

    async with opened(config.load(environment()), name) as (_, servers):
        found = await _saying_why(servers.sign_in(name, show))
    click.echo(f"Signed in. {name}: {counted(len(found.usable), 'tool')}.")


@mcp.command()
@click.option(
    "--http", "port", type=click.IntRange(1, 65535), metavar="PORT", help="Serve HTTP on this port."
)
@command
async def serve(port: int | None) -> None:
    """Let MCP clients use agiraph: create teams, talk to them, read their work.

    Over standard input and output with this home's token; with --http on a port of this machine,
    where each client sends a token of its own. Approvals are shown, but a person decides on them
    elsewhere.
    """
    from agiraph.features.mcp import server as mcp_server  # imports the SDK, which takes a second

    where = location.find(environment())
    await (mcp_server.serve_stdio(where) if port is None else mcp_server.serve_http(where, port))


@mcp.command()
@click.argument("name")
@command
async def remove(name: str) -> None:
    """Take the server NAME out of agiraph.toml, and forget its tools."""
    settings = config.load(environment())
    home = Home.open(settings.home)
    kept = entries.remove(home, name, servers_of(settings).get(name))
    also = "" if kept is None else f" What its program stored is still in {kept}."
    click.echo(f"Removed.{also}")


async def check(checkup: Checkup) -> None:
    """Say which servers can be used. With --online each of them is started and asked."""
    settings = checkup.settings
    named = servers_of(settings)
    if not named or not settings.home.exists():
        return
    home = Home.open(settings.home)
    for name, server in named.items():
        try:
            await _check_server(checkup, home, name, server)
        except AgiraphError as error:
            checkup.problem(f"mcp {name}", redact(str(error)))
    home.folder.close()


async def _check_server(checkup: Checkup, home: Home, name: str, server: McpServer) -> None:
    title = f"mcp {name}"
    if server.fault:
        return checkup.problem(title, f"{server.origin}: {server.description}.")
    known = pins.load(home.folder, name)
    if why := pins.unconfirmed(server, known):
        return checkup.note(title, f"It {why}")
    if checkup.online:
        async with opened(checkup.settings, name) as (_, servers):
            known = await servers.look(name)
    if known is None:
        return checkup.note(title, f"Its tools are not known yet: agiraph mcp test {name}")
    if known.changes:
        return checkup.note(title, pins.news(name, known))
    asked = "It answers" if checkup.online else "It is started when it is used"
    return checkup.fine(title, f"{asked}; {counted(len(known.usable), 'tool')}.")


@asynccontextmanager
async def opened(settings: config.Settings, name: str) -> AsyncGenerator[tuple[Home, McpServers]]:
    """Open the home for one server. The server is ended when the block ends."""
    named = servers_of(settings)
    if name not in named:
        raise NotFound("MCP server", name, known="`agiraph mcp list` shows all.")
    home = Home.open(settings.home)
    rules = CommandRules.of(
        settings.limits, database_files(settings.database_url), settings.sandbox_readable
    ).confined(settings.sandbox, home.path)
    servers = McpServers({name: named[name]}, home, rules, settings.web, settings.secrets)
    try:
        yield home, servers
    finally:
        await servers.close()
