"""Registries: those for npm, yarn, pnpm and cargo, made from the ones that this machine uses."""

import asyncio
from typing import Any, cast
from urllib.parse import quote, unquote, urlsplit

import orjson

from agiraph.sandbox.gate.exchange import Exchange
from agiraph.sandbox.gate.package_names import Ecosystem
from agiraph.sandbox.gate.packages import NO_SUCH_FILE, NO_SUCH_PACKAGE, NOT_CONFIGURED, Source
from agiraph.sandbox.gate.rules import Denied

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
