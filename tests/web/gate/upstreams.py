"""Upstreams: package indexes and a git server on loopback that record what they are asked."""

import asyncio
import base64
import contextlib
import hashlib
import io
import json
import os
import tarfile
import zipfile
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from aiohttp import web

from agiraph.sandbox.gate.indexes import PackageIndexes, PythonSources


def wheel(name: str, needs: Sequence[str] = (), says: str = "hello") -> bytes:
    """Return a wheel of version 1.0 with one module that prints something."""
    module = name.replace("-", "_")
    info = f"{module}-1.0.dist-info"
    requires = "".join(f"Requires-Dist: {needed}\n" for needed in needs)
    files = {
        f"{module}.py": f"print({says!r})\n",
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n{requires}",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    files[f"{info}/RECORD"] = "".join(f"{path},,\n" for path in [*files, f"{info}/RECORD"])
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        for path, text in files.items():
            archive.writestr(path, text)
    return made.getvalue()


def tarball(name: str) -> bytes:
    """Return the archive of an npm package of version 1.0.0."""
    text = json.dumps({"name": name, "version": "1.0.0"}).encode()
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w:gz") as archive:
        entry = tarfile.TarInfo("package/package.json")
        entry.size = len(text)
        archive.addfile(entry, io.BytesIO(text))
    return made.getvalue()


@dataclass
class Upstream:
    """A server with indexes at /simple, /npm and /cargo, git repositories, and other paths."""

    python: dict[str, bytes] = field(default_factory=dict[str, bytes])
    """Wheels by the name of their project."""
    listed: dict[str, str] = field(default_factory=dict[str, str])
    """The links on the page of a project that has other files than a wheel."""
    npm: dict[str, tuple[bytes, dict[str, str]]] = field(
        default_factory=dict[str, tuple[bytes, dict[str, str]]]
    )
    """Archive and dependencies by name."""
    pages: dict[str, bytes] = field(default_factory=dict[str, bytes])
    kinds: dict[str, str] = field(default_factory=dict[str, str])
    """Media types of pages that stand in for a page of an index."""
    repositories: Path | None = None
    asked: list[str] = field(default_factory=list[str])
    headers: list[dict[str, str]] = field(default_factory=list[dict[str, str]])
    port: int = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def indexes(self) -> PackageIndexes:
        return PackageIndexes(
            python=PythonSources(indexes=(f"{self.url}/simple",)),
            npm=f"{self.url}/npm/",
            cargo=f"sparse+{self.url}/cargo/",
        )

    async def answer(self, request: web.Request) -> web.StreamResponse:
        self.asked.append(f"{request.method} {request.path_qs}")
        self.headers.append({name.lower(): value for name, value in request.headers.items()})
        parts = request.path.strip("/").split("/")
        if kind := self.kinds.get(request.path):
            return web.Response(body=self.pages[request.path], content_type=kind)
        if parts[0] == "simple":
            return self._simple(parts[1])
        if parts[0] == "files":
            return web.Response(body=self.python[parts[1]])
        if parts[0] == "npm":
            return self._npm("/".join(parts[1:]))
        if request.path in self.pages:
            return web.Response(body=self.pages[request.path])
        return await self._git(request)

    def _simple(self, name: str) -> web.Response:
        if name in self.listed:
            return web.Response(text=self.listed[name], content_type="text/html")
        if name not in self.python:
            return web.Response(status=404)
        digest = hashlib.sha256(self.python[name]).hexdigest()
        file = f"{name.replace('-', '_')}-1.0-py3-none-any.whl"
        link = f'<a href="../../files/{name}/{file}#sha256={digest}">{file}</a>'
        return web.Response(text=link, content_type="text/html")

    def _npm(self, path: str) -> web.Response:
        name, _, file = path.partition("/-/")
        if name not in self.npm:
            return web.Response(status=404)
        content, needs = self.npm[name]
        if file:
            return web.Response(body=content)
        integrity = "sha512-" + base64.b64encode(hashlib.sha512(content).digest()).decode()
        address = f"{self.url}/npm/{name}/-/{name.rpartition('/')[2]}-1.0.0.tgz"
        version = {
            "name": name,
            "version": "1.0.0",
            "dependencies": needs,
            "dist": {"tarball": address, "integrity": integrity},
        }
        told = {"name": name, "dist-tags": {"latest": "1.0.0"}, "versions": {"1.0.0": version}}
        return web.json_response(told)

    async def _git(self, request: web.Request) -> web.Response:
        if self.repositories is None:
            return web.Response(status=404)
        given = {
            "GIT_PROJECT_ROOT": str(self.repositories),
            "GIT_HTTP_EXPORT_ALL": "1",
            "PATH_INFO": request.path,
            "QUERY_STRING": request.query_string,
            "REQUEST_METHOD": request.method,
            "CONTENT_TYPE": request.headers.get("Content-Type", ""),
            "HTTP_CONTENT_ENCODING": "",  # the server of these tests has unpacked the body
            "GIT_PROTOCOL": request.headers.get("Git-Protocol", ""),
            "REMOTE_USER": "anybody",
            "REMOTE_ADDR": "127.0.0.1",
        }
        options = ["-c", "safe.directory=*", "-c", "http.receivepack=true"]
        served = await asyncio.create_subprocess_exec(
            *("git", *options, "http-backend"),
            env={**os.environ, **given},
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
        )
        out, _ = await served.communicate(await request.read())
        head, _, body = out.partition(b"\r\n\r\n")
        headers = dict(line.split(": ", 1) for line in head.decode().split("\r\n") if line)
        status = int(headers.pop("Status", "200").split()[0])
        return web.Response(status=status, headers=headers, body=body)


@contextlib.asynccontextmanager
async def open_upstream() -> AsyncIterator[Upstream]:
    opened = Upstream()
    app = web.Application(client_max_size=2**26)
    app.router.add_route("*", "/{path:.*}", opened.answer)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    opened.port = int(runner.addresses[0][1])
    try:
        yield opened
    finally:
        await runner.cleanup()
