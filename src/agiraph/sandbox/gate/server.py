"""Gate: the only way of a confined command to the network, an HTTP server on its own loopback.

The command has a network namespace of its own. The listener in it was handed to the runtime, which
serves it here: package indexes and git for reading (`/pypi`, `/npm`, `/cargo`, `/git`), and a proxy
for the hosts that the rules name. What a program does without the proxy finds no route.
"""

import asyncio
import contextlib
import logging
import socket
import ssl
from collections.abc import Awaitable, Callable
from typing import Any, cast
from urllib.parse import quote, unquote, urlsplit

import orjson

from agiraph.core.domain.errors import AgiraphError
from agiraph.core.domain.text.conversion import Converter
from agiraph.core.domain.value import dataclass
from agiraph.sandbox.gate import forwarding, git_reading
from agiraph.sandbox.gate.exchange import TEXT, Exchange, Limits, Meter
from agiraph.sandbox.gate.http_messages import (
    CHUNK_BYTES,
    MAX_HEAD_BYTES,
    Malformed,
    Request,
    answer,
    read_request,
)
from agiraph.sandbox.gate.indexes import PackageIndexes
from agiraph.sandbox.gate.package_names import Ecosystem
from agiraph.sandbox.gate.packages import (
    NO_SUCH_FILE,
    NO_SUCH_PACKAGE,
    NOT_CONFIGURED,
    Index,
    Source,
)
from agiraph.sandbox.gate.python_index import PythonIndex
from agiraph.sandbox.gate.rules import Denied, Endpoint, Rules, endpoint_of
from agiraph.sandbox.gate.upstream import Upstream
from agiraph.web.addresses import AddressPolicy

SHORT = "application/vnd.npm.install-v1+json"
_DEPENDENCIES = ("dependencies", "optionalDependencies", "peerDependencies")


class NpmIndex:
    """Answers `NAME` with the description of a package, `NAME/-/FILE` with a file of it."""

    ecosystem: Ecosystem = "npm"

    def __init__(self, source: Source, base: str) -> None:
        self._source = source
        self._base = base
        self._files: dict[str, dict[str, str]] = {}

    async def answer(self, exchange: Exchange, path: str) -> None:
        name, dash, file = unquote(path.strip("/")).partition("/-/")
        if not dash:
            is_short = SHORT in exchange.request.headers.get("accept", "")
            described = await self._describe(name, SHORT if is_short else "application/json")
            return await exchange.send(200, orjson.dumps(described), "application/json")
        if name not in self._files:
            await self._describe(name, SHORT)
        if (url := self._files[name].get(file)) is None:
            raise Denied(NO_SUCH_FILE, status=404)
        return await self._source.send_file(exchange, url)

    async def _describe(self, name: str, accept: str) -> dict[str, Any]:
        """Return the registry's description of a package, with files at the gate's address."""
        await self._source.check_name("npm", name)
        registry = await self._source.indexes.npm_registry()
        if not registry:
            raise Denied(NOT_CONFIGURED.format(kind="npm"), status=404)
        registry = self._source.upstream.trust(registry).rstrip("/")
        found = await self._source.read(f"{registry}/{quote(name, safe='@')}", accept=accept)
        if found is None:
            raise Denied(NO_SUCH_PACKAGE.format(name=name), status=404)
        return await asyncio.to_thread(self._read, name, found[0])

    def _read(self, name: str, page: bytes) -> dict[str, Any]:
        described = cast(dict[str, Any], orjson.loads(page))
        files = self._files.setdefault(name, {})
        needed: set[str] = set()
        for version in cast(dict[str, dict[str, Any]], described.get("versions", {})).values():
            dist = cast(dict[str, Any], version.get("dist", {}))
            url = str(dist.get("tarball", ""))
            if urlsplit(url).scheme not in ("http", "https"):
                continue
            file = unquote(urlsplit(url).path.rpartition("/")[2])
            files[file] = url
            dist["tarball"] = f"{self._base}/{name}/-/{quote(file)}"
            for kind in _DEPENDENCIES:
                needed |= _names(version.get(kind))
        self._source.names.learn("npm", needed)
        return described


def _names(dependencies: object) -> set[str]:
    """Return the packages of a table of dependencies, under their own names: a value such as
    `npm:string-width@4` stands for another package than its key says."""
    found: set[str] = set()
    if isinstance(dependencies, dict):
        for name, wanted in cast(dict[str, Any], dependencies).items():
            found.add(name)
            if isinstance(wanted, str) and wanted.startswith("npm:"):
                found.add(wanted.removeprefix("npm:").rpartition("@")[0])
    return found


class CargoIndex:
    """Answers `index/config.json`, `index/…/NAME` and `files/NAME/VERSION`."""

    ecosystem: Ecosystem = "cargo"

    def __init__(self, source: Source, base: str) -> None:
        self._source = source
        self._base = base
        self._versions: dict[str, dict[str, str]] = {}
        """The checksum of each listed version, by the name of the crate."""

    async def answer(self, exchange: Exchange, path: str) -> None:
        match path.strip("/").split("/"):
            case ["index", "config.json"]:
                settings = {"dl": f"{self._base}/files/{{crate}}/{{version}}"}
                await exchange.send(200, orjson.dumps(settings), "application/json")
            case ["index", *folders, name] if folders == prefix(name).split("/"):
                await exchange.send(200, await self._describe(name), "text/plain")
            case ["files", name, version]:
                await self._send_file(exchange, name, version)
            case _:
                raise Denied(NO_SUCH_FILE, status=404)

    async def _describe(self, name: str) -> bytes:
        """Return the lines of the index about a crate, one for each version."""
        await self._source.check_name("cargo", name)
        lower = name.lower()
        url = f"{await self._upstream()}/{prefix(lower)}/{quote(lower)}"
        found = await self._source.read(url, accept="*/*")
        if found is None:
            raise Denied(NO_SUCH_PACKAGE.format(name=name), status=404)
        await asyncio.to_thread(self._read, lower, found[0])
        return found[0]

    def _read(self, name: str, page: bytes) -> None:
        versions = self._versions.setdefault(name, {})
        needed: set[str] = set()
        for line in page.splitlines():
            entry = cast(dict[str, Any], orjson.loads(line)) if line.strip() else {}
            versions[str(entry.get("vers", ""))] = str(entry.get("cksum", ""))
            for needs in cast(list[dict[str, Any]], entry.get("deps", [])):
                needed.add(str(needs.get("package") or needs.get("name", "")))
        self._source.names.learn("cargo", needed)

    async def _send_file(self, exchange: Exchange, name: str, version: str) -> None:
        lower = name.lower()
        if lower not in self._versions:
            await self._describe(name)
        if (checksum := self._versions[lower].get(version)) is None:
            raise Denied(NO_SUCH_FILE, status=404)
        found = await self._source.read(f"{await self._upstream()}/config.json", accept="*/*")
        template = str(orjson.loads(found[0]).get("dl", "")) if found else ""
        await self._source.send_file(exchange, download_url(template, name, version, checksum))

    async def _upstream(self) -> str:
        index = await self._source.indexes.cargo_index()
        if not index:
            raise Denied(NOT_CONFIGURED.format(kind="cargo"), status=404)
        return self._source.upstream.trust(index.removeprefix("sparse+")).rstrip("/")


def prefix(name: str) -> str:
    """Return the folder of a crate in an index, by the length of its name."""
    if len(name) <= 2:
        return str(len(name))
    return f"3/{name[0]}" if len(name) == 3 else f"{name[:2]}/{name[2:4]}"


def download_url(template: str, name: str, version: str, checksum: str) -> str:
    """Return the address of a crate's file, by the `dl` of an index."""
    if "{" not in template:
        return f"{template}/{quote(name)}/{quote(version)}/download"
    values = {"crate": name, "version": version, "prefix": prefix(name)}
    values |= {"lowerprefix": prefix(name.lower()), "sha256-checksum": checksum}
    for key, value in values.items():
        template = template.replace(f"{{{key}}}", quote(value))
    return template


log: logging.Logger = logging.getLogger("agiraph.gate")

MOST_SENTENCES = 20
PREFIX = "agiraph: "
LINGER_S, LINGER_BYTES = 1.0, 2**20


@dataclass(frozen=True, slots=True)
class Reached:
    """A host that a command reached for the first time, and what for."""

    host: str
    use: str
    """packages, git or web."""


Note = Callable[[Reached], Awaitable[None]]
"""Records a host durably, before anything is sent there."""


class Gate:
    """Serves one command. `serve` takes the listener, `close` ends all connections."""

    def __init__(
        self,
        rules: Rules,
        *,
        policy: AddressPolicy,
        indexes: PackageIndexes,
        note: Note,
        converter: Converter,
        port: int,
        limits: Limits | None = None,
        certificates: ssl.SSLContext | None = None,
    ) -> None:
        self.rules = rules
        self.reached: dict[Reached, None] = {}
        self.refused: dict[str, Denied] = {}
        """What was refused, by its sentence, in order."""
        self.limits: Limits = limits or Limits()
        self.meter: Meter = Meter(self.limits.bytes)
        self._note = note
        self._noting = asyncio.Lock()
        self._upstream = Upstream(policy, rules.endpoints, certificates=certificates)
        # Connections to indexes are kept apart: an index may be inside your network, and have a
        # password of yours, neither of which a command may use in another way.
        self._index_upstream = Upstream(policy, certificates=certificates)
        source = Source(
            indexes,
            self._index_upstream,
            rules.names,
            self._reach,
            converter=converter,
            limits=self.limits,
            team=rules.team,
        )
        base = f"http://127.0.0.1:{port}"
        self._indexes: dict[str, Index] = {
            "pypi": PythonIndex(source, f"{base}/pypi"),
            "npm": NpmIndex(source, f"{base}/npm"),
            "cargo": CargoIndex(source, f"{base}/cargo"),
        }
        self._starting: asyncio.Task[asyncio.Server] | None = None
        self._connections: set[asyncio.Task[None]] = set()

    def serve(self, listener: socket.socket) -> None:
        """Accept connections on this listener, which the gate owns from now on."""
        listener.setblocking(False)
        started = asyncio.start_server(self._accept, sock=listener, limit=MAX_HEAD_BYTES)
        self._starting = asyncio.ensure_future(started)

    async def accept(self, listener: socket.socket) -> None:
        """Serve this listener until the task is cancelled."""
        self.serve(listener)
        try:
            await asyncio.Event().wait()
        finally:
            await self.close()

    async def close(self) -> None:
        """End all connections. What was reached and refused stays readable."""
        if self._starting is not None:
            (await self._starting).close()
        for connection in self._connections:
            connection.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)
        await self._upstream.close()
        await self._index_upstream.close()

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # A task of our own: asyncio's server logs an error for each of its tasks that is cancelled.
        task = asyncio.ensure_future(self._serve_connection(reader, writer))
        self._connections.add(task)
        task.add_done_callback(self._connections.discard)

    async def _serve_connection(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        try:
            if len(self._connections) > 2 * self.limits.connections:
                return writer.transport.abort()
            if len(self._connections) > self.limits.connections:
                said = f"{PREFIX}too many connections at a time; try again."
                writer.write(answer(503, said.encode(), TEXT))
            else:
                async with asyncio.timeout(self.limits.request_s):
                    await self._answer(reader, writer)
            await _linger(reader, writer)
        except (TimeoutError, ConnectionError):
            writer.transport.abort()
        finally:
            writer.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(self.limits.head_s):
                request = await read_request(reader)
        except Malformed as error:
            writer.write(answer(400, f"{PREFIX}{error}.".encode(), TEXT))
            return
        if request is None:
            return
        exchange = Exchange(request, reader, writer, limits=self.limits, meter=self.meter)
        try:
            await self._route(exchange)
        except Denied as denied:
            await self._deny(exchange, denied)
        except Malformed as error:
            await self._deny(exchange, Denied(f"The request is malformed: {error}.", status=400))
        except AgiraphError as error:
            log.warning("A request of a command could not be recorded: %s", error)
            await self._deny(exchange, Denied("The request could not be recorded.", status=502))
        except ValueError as error:  # an index that answers with something else than an index
            log.info("A package index could not be read: %s", error)
            await self._deny(exchange, Denied("The index's answer cannot be read.", status=502))
        await writer.drain()

    async def _deny(self, exchange: Exchange, denied: Denied) -> None:
        if len(self.refused) < MOST_SENTENCES:
            self.refused.setdefault(denied.sentence, denied)
        if exchange.has_answered:  # only a cut connection says that the answer is not whole
            exchange.writer.transport.abort()
            return
        body = f"{PREFIX}{denied.sentence}\n".encode()
        exchange.writer.write(answer(denied.status, body, TEXT, is_head=exchange.is_head))

    async def _route(self, exchange: Exchange) -> None:
        request = exchange.request
        if request.method == "CONNECT":
            endpoint = forwarding.authority(request.target)
            self.rules.check_host(endpoint.host, endpoint.port)
            await self._upstream.check(endpoint)
            await self._reach(endpoint.host, "web")
            await forwarding.tunnel(exchange, endpoint, self._upstream)
        elif request.target.startswith("/"):
            await self._route_own(exchange)
        else:
            await self._proxy(exchange)

    async def _proxy(self, exchange: Exchange) -> None:
        """Answer a request for a whole http address."""
        request = exchange.request
        endpoint = forwarding.proxied(request.target)
        if not self._may_talk(endpoint) and (git := git_reading.of_url(request)) is not None:
            self.rules.check_git(endpoint.host, endpoint.port, git.repository)
            await self._upstream.check(endpoint)
            await self._reach(endpoint.host, "git")
            return await git_reading.pass_on(exchange, git, self._upstream)
        self.rules.check_host(endpoint.host, endpoint.port)
        await self._upstream.check(endpoint)
        await self._reach(endpoint.host, "web")
        return await forwarding.forward(exchange, self._upstream, request.target)

    def _may_talk(self, endpoint: Endpoint) -> bool:
        try:
            self.rules.check_host(endpoint.host, endpoint.port)
        except Denied:
            return False
        return True

    async def _route_own(self, exchange: Exchange) -> None:
        """Answer a request to the gate itself."""
        request = exchange.request
        _, kind, rest = [*request.target.split("/", 2), "", ""][:3]
        if kind == "git":
            git = git_reading.of_path(request, rest)
            endpoint = endpoint_of(git.url)
            assert endpoint is not None
            self.rules.check_git(endpoint.host, endpoint.port, git.repository)
            await self._upstream.check(endpoint)
            await self._reach(endpoint.host, "git")
            return await git_reading.pass_on(exchange, git, self._upstream)
        if kind == forwarding.TO:
            return await self._route_to(exchange, rest)
        index = self._indexes.get(kind)
        if index is None:
            raise Denied("There is nothing at this address.", status=404)
        _check_reading(request)
        return await index.answer(exchange, rest)

    async def _route_to(self, exchange: Exchange, rest: str) -> None:
        """Answer a request to an endpoint of the settings, by its name below the gate's address."""
        url = forwarding.url_below(rest)
        endpoint = endpoint_of(url)
        if endpoint is None or endpoint not in self.rules.endpoints:
            raise Denied("There is nothing at this address.", status=404)
        await self._reach(endpoint.host, "web")
        await forwarding.forward(exchange, self._upstream, url)

    async def _reach(self, host: str, use: str) -> None:
        """Record a host before anything is sent there: a crash must not lose who was told."""
        reached = Reached(host, use)
        async with self._noting:
            if reached not in self.reached:
                await self._note(reached)
                self.reached[reached] = None


async def _linger(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Read what the client still sends: the kernel drops an answer if the connection is closed
    while there is something to read."""
    if writer.transport.is_closing():
        return
    left = LINGER_BYTES
    with contextlib.suppress(TimeoutError, OSError):  # the client may be gone
        writer.write_eof()
        async with asyncio.timeout(LINGER_S):
            while left > 0 and (piece := await reader.read(CHUNK_BYTES)):
                left -= len(piece)


def _check_reading(request: Request) -> None:
    if request.method not in ("GET", "HEAD") or request.has_body:
        raise Denied("Packages can only be read here: nothing is published or sent.")
    if "?" in request.target or "#" in request.target:
        raise Denied("An address of a package index has no query.", status=404)
