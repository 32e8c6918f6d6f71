"""MCP servers: all servers of this installation, with their connections and accepted tools."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import orjson

from agiraph.core.domain.errors import AgiraphError, Conflict, NotFound, Refused
from agiraph.core.domain.text.visible import visible
from agiraph.core.home.layout import Home
from agiraph.core.home.named_secrets import NamedSecrets
from agiraph.features.mcp import launching, pins
from agiraph.features.mcp.connection import (
    LED_INSIDE,
    Connection,
    ServerFailed,
    Session,
    SignInWanted,
    Tidy,
    could_not_start,
    words_of,
)
from agiraph.features.mcp.pins import (
    MOST_TOOLS,
    SCHEMA_BYTES,
    PinnedTool,
    Pins,
    ServerStatus,
    status_of,
)
from agiraph.features.mcp.settings import McpServer, expanded
from agiraph.sandbox import piped_commands
from agiraph.sandbox.levels import CommandRules
from agiraph.sandbox.piped_commands import Launch
from agiraph.web.access import Web

if TYPE_CHECKING:
    import httpx2

    from mcp import Client

log: logging.Logger = logging.getLogger("agiraph.mcp")
MOST_NAME = 128
SIGN_IN_S = 600.0
"""How long a person may take to sign in."""
MOST_NAMED = 3
"""Tools that a line of the log names."""


class McpServers:
    """The MCP servers that the settings name. A server is started by its first use."""

    def __init__(
        self,
        servers: Mapping[str, McpServer],
        home: Home,
        rules: CommandRules,
        web: Web,
        secrets: NamedSecrets,
    ) -> None:
        self.servers: dict[str, McpServer] = dict(servers)
        self._home = home
        self.secrets = secrets
        self._rules = rules
        self._web = web
        self.signing_in: httpx2.Auth | None = None
        """The OAuth sign-in that is under way: it opens the person's browser and waits for it."""
        self._connections: dict[str, Connection] = {}
        self._known: dict[str, tuple[int, Pins | None]] = {}
        self._looking: asyncio.Task[None] | None = None
        self._adding: set[str] = set()
        self._sign_ins: dict[str, asyncio.Task[Pins]] = {}

    def start(self) -> None:
        """Ask each server whose tools are not known yet for its tools, in the background."""
        if not self.servers:
            return
        self._looking = asyncio.create_task(self._look(), name="MCP servers")

    async def close(self) -> None:
        """End all servers."""
        tasks = [one for one in (self._looking, *self._sign_ins.values()) if one is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.gather(*(one.close() for one in self._connections.values()))

    def pins(self, name: str) -> Pins | None:
        """Return the accepted tools of a server; None if they are not known yet."""
        stamp = pins.stamp(self._home.path, name)
        known = self._known.get(name)
        if known is None or known[0] != stamp:
            known = self._known[name] = (stamp, pins.load(self._home.folder, name))
        return known[1]

    def connection(self, name: str) -> Connection:
        """Return the connection to a server, without starting the server."""
        if name not in self._connections:
            self._check(name)
            made = Connection(self.servers[name], partial(self._open, self.servers[name]))
            made.on_start = partial(self._compare, name)
            made.refusal = partial(self._refusal, name)
            self._connections[name] = made
        return self._connections[name]

    async def look(self, name: str) -> Pins:
        """Start the server if needed, ask for its tools, and return the pins with the changes
        found."""
        connection = self.connection(name)

        async def ask(client: "Client") -> list[PinnedTool]:
            return await _tools_of(name, client)

        return self._keep(name, await connection.use(ask))

    def status(self, name: str) -> ServerStatus:
        """Return the state of a server, without starting it."""
        self._check(name)
        return status_of(self._home.folder, self.servers[name])

    def _check(self, name: str) -> None:
        if name not in self.servers:
            raise NotFound("MCP server", name, known="`agiraph mcp list` shows all.")

    def failure(self, name: str) -> ServerFailed | None:
        """Return why the last use of a server failed in this process; None: it did not."""
        return self._connections[name].failure if name in self._connections else None

    def is_running(self, name: str) -> bool:
        return name in self._connections and self._connections[name].is_running

    async def confirm(self, name: str, *, sha256: str) -> ServerStatus:
        """Accept what a person was shown under this hash, and return the new state.

        Of a server that no person has confirmed yet this is how it is reached: it is started and
        asked for its tools, which another call accepts.
        """
        shown = self.status(name)
        if shown.sha256 != sha256:
            raise Conflict(f"The MCP server {name!r} has changed since you looked; look again.")
        known = shown.known or Pins()
        if shown.state == "off":
            reached = replace(known, reached=shown.server.reached_hash)
            pins.save(self._home.folder, name, reached)
            await self.look(name)
        elif shown.state in ("on", "changed"):
            pins.save(self._home.folder, name, known.confirmed())
        else:
            raise Refused(f"The MCP server {name!r} has nothing to confirm: {shown.summary}.")
        return self.status(name)

    async def add(self, server: McpServer, write: Callable[[], None]) -> ServerStatus:
        """Start a new server, ask for its tools, and write it down; if it fails, nothing of it
        stays. Its tools are off until a person has seen them and accepts them.

        A server that wants a sign-in is written down, too: the person signs in next.
        """
        name, folder = server.name, self._home.folder
        if name in self._adding or name in self.servers:
            raise Conflict(f"There is an MCP server {name!r} already.")
        self._adding.add(name)
        trial = self._alone(server)
        try:
            # What nobody has asked yet has nothing that was accepted unseen.
            pins.save(folder, name, Pins())
            with contextlib.suppress(SignInWanted):
                await trial.look(name)
            write()
        except BaseException:
            pins.remove(folder, name)
            raise
        finally:
            self._adding.discard(name)
            await trial.close()
        self.servers[name] = server
        self.connection(name).failure = trial.connection(name).failure
        return self.status(name)

    async def drop(self, name: str) -> None:
        """End a server that was taken out of the settings, and offer its tools no more."""
        self.servers.pop(name, None)
        self._known.pop(name, None)
        if (signing_in := self._sign_ins.pop(name, None)) is not None:
            signing_in.cancel()
        if (connection := self._connections.pop(name, None)) is not None:
            await connection.close()

    async def sign_in(self, name: str, show: Callable[[str], None]) -> Pins:
        """Sign in to a server: `show` gets the address that a person opens in a browser of this
        machine. Return the server's tools."""
        from agiraph.features.mcp import sign_in  # imports the SDK, which takes a second

        server = replace(self.servers[name], start_s=SIGN_IN_S, timeout_s=SIGN_IN_S)
        if server.kind == "stdio":
            raise Refused(
                f"{name!r} is a program, so agiraph does not sign in to it. If it needs a key, "
                "give it in its settings."
            )
        alone = self._alone(server)
        try:
            async with sign_in.signing_in(self._home, server, show) as auth:
                alone.signing_in = auth
                return await alone.look(name)
        finally:
            await alone.close()

    async def begin_sign_in(self, name: str) -> str:
        """Begin a sign-in, in place of one that is under way, and return the address that a person
        opens; empty if the server wants none. It ends when they come back, or after a while."""
        self.status(name)
        shown: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        if (before := self._sign_ins.pop(name, None)) is not None:
            before.cancel()
        task = self._sign_ins[name] = asyncio.create_task(
            self.sign_in(name, lambda url: None if shown.done() else shown.set_result(url))
        )
        task.add_done_callback(partial(self._signed_in, name))
        await asyncio.wait({task, shown}, return_when=asyncio.FIRST_COMPLETED)
        if task.cancelled():
            raise Conflict("Another sign-in to this server was begun meanwhile.")
        if not shown.done():
            await task
        return shown.result() if shown.done() else ""

    def _signed_in(self, name: str, task: asyncio.Task[Pins]) -> None:
        """Use the new token with the next call, or keep why there is none."""
        if task.cancelled() or self._sign_ins.get(name) is not task:
            return
        del self._sign_ins[name]
        error = task.exception()
        self._connections.pop(name, None)
        if isinstance(error, ServerFailed):
            self.connection(name).failure = error
        elif error is not None:
            log.warning("sign-in to MCP server %r: %s", name, error)

    def _alone(self, server: McpServer) -> "McpServers":
        """Return one server alone, to try it beside those that agents use."""
        return McpServers({server.name: server}, self._home, self._rules, self._web, self.secrets)

    def _refusal(self, name: str) -> str:
        return pins.unconfirmed(self.servers[name], self.pins(name))

    async def _look(self) -> None:
        await asyncio.to_thread(piped_commands.remove_spools, self._home)
        for name, server in [*self.servers.items()]:
            try:
                if server.fault or self.pins(name) is not None:
                    continue
                await self.look(name)
            except AgiraphError as error:
                log.warning("%s", error)
            if (connection := self._connections.get(name)) is not None:
                await connection.close()

    async def _compare(self, name: str, session: Session) -> None:
        """Compare the server's tools with the accepted ones. Runs at each start, before the first
        call."""
        self._keep(name, await _tools_of(name, session.client))

    def _keep(self, name: str, found: list[PinnedTool]) -> Pins:
        before = self.pins(name)
        if before is None:
            # The person's consent to the server is consent to what it offers at first.
            after = Pins(tools={tool.name: tool for tool in found})
        else:
            after = before.compared(found)
        if after != before:
            pins.save(self._home.folder, name, after)
        return after

    @asynccontextmanager
    async def _open(self, server: McpServer) -> AsyncGenerator[Session]:
        """Open a session with a server; the SDK is imported here."""
        from mcp.types import Implementation

        from agiraph.features.mcp import transport
        from mcp import Client

        server, link = expanded(server, self.secrets), transport.Link()
        tidy: Tidy | None = None
        async with contextlib.AsyncExitStack() as stack:
            if server.kind == "stdio":
                launch, tidy = await self._launch(server, stack)
                streams = transport.piped(self._home, launch, link)
            else:
                policy = self._web.fetcher.policy
                streams = transport.over_http(server, link, policy, self._auth(server))
            client = Client(
                cast(Any, streams),
                client_info=Implementation(name="agiraph", version="1"),
                cache=None,
            )
            try:
                await stack.enter_async_context(client)
            except Exception as error:
                said = link.said() or words_of(error)
                if link.led_inside:
                    why = f"The MCP server {server.name!r} {LED_INSIDE}"
                    raise ServerFailed(why, said=said) from error
                if link.wants_sign_in:
                    raise SignInWanted(server.name, said=said) from error
                raise could_not_start(server, said=said) from error
            # The SDK validates each result against the output schema that the server sent. That
            # schema may hold a regular expression that runs for ever, and a result that does not
            # fit raises an error that would end the session for all agents. So it is off.
            setattr(client.session, "validate_tool_result", _unchecked)  # noqa: B010
            yield Session(client, link, tidy)

    async def _launch(
        self, server: McpServer, stack: contextlib.AsyncExitStack
    ) -> tuple[Launch, Tidy | None]:
        """Return how a program is started, and what is done after each of its calls. At the end of
        the stack its gate is closed, and what it left in given folders is made good."""
        gate = launching.gate_of(server, self._web, self._rules)
        if gate is not None:
            stack.push_async_callback(gate.close)
        guarded = launching.guarded(self._home, server)
        guards = await asyncio.to_thread(stack.enter_context, guarded)
        tidy: Tidy | None = None
        if guards:
            tidy = _in_thread(launching.switch_off, guards)
            stack.push_async_callback(tidy)
        launch = await asyncio.to_thread(
            launching.launch, self._home, server, self._rules, gate, guards
        )
        return launch, tidy

    def _auth(self, server: McpServer) -> "httpx2.Auth | None":
        """Return what authenticates requests to a server: the sign-in that is under way, else
        stored tokens."""
        from agiraph.features.mcp import sign_in

        return self.signing_in or sign_in.stored(self._home, server)


async def _unchecked(name: str, result: object) -> None:
    """Accept an answer, whatever the server's schema says of it."""


async def _tools_of(server: str, client: "Client") -> list[PinnedTool]:
    """Return the server's tools. A tool with too long a name or schema is left out."""
    if client.server_capabilities.tools is None:
        return []
    found: list[PinnedTool] = []
    left_out: list[str] = []
    cursor: str | None = None
    while len(found) < MOST_TOOLS:
        page = await client.list_tools(cursor=cursor)
        for tool in page.tools[: MOST_TOOLS - len(found)]:
            schema = cast(Mapping[str, Any], tool.input_schema)
            if excess := _excess(tool.name, schema):
                left_out.append(f"{visible(tool.name[:MOST_NAME], keep='')!r}: its {excess}")
                continue
            says = tool.annotations is not None and bool(tool.annotations.read_only_hint)
            found.append(
                PinnedTool.of(tool.name, tool.description or "", schema, says_it_reads=says)
            )
        if not page.tools or (cursor := page.next_cursor) is None:
            break
        if len(left_out) > MOST_TOOLS:
            break  # pages without end of tools that nobody can use
    if left_out:
        # One line, however many tools: a server must not fill the log.
        first = "; ".join(left_out[:MOST_NAMED])
        log.warning("MCP server %r: %d tools left out. %s.", server, len(left_out), first)
    return found


def _excess(name: str, schema: Mapping[str, Any]) -> str:
    """Return which limit a tool exceeds; empty if it exceeds none."""
    if len(name) > MOST_NAME:
        return f"name is longer than {MOST_NAME} characters"
    if len(orjson.dumps(schema)) > SCHEMA_BYTES:
        return f"schema is longer than {SCHEMA_BYTES // 1024} KiB"
    return ""


def _in_thread(tidy: Callable[..., object], *given: object) -> Tidy:
    async def run() -> None:
        await asyncio.to_thread(tidy, *given)

    return run
