"""npm index: a registry for npm, yarn and pnpm, made from the one that npm is configured for."""

import asyncio
from typing import Any, cast
from urllib.parse import quote, unquote, urlsplit

import orjson

from agiraph.web.gate.exchange import Exchange
from agiraph.web.gate.package_names import Ecosystem
from agiraph.web.gate.packages import NO_SUCH_FILE, NO_SUCH_PACKAGE, NOT_CONFIGURED, Source
from agiraph.web.gate.rules import Denied

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
