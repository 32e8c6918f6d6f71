"""Python index: a simple index for pip and uv, made from the indexes that pip is configured for."""

import asyncio
from pathlib import Path
from urllib.parse import quote, urlsplit

from agiraph.web.gate import python_pages
from agiraph.web.gate.exchange import Exchange
from agiraph.web.gate.package_names import Ecosystem, normalized
from agiraph.web.gate.packages import (
    NO_SUCH_FILE,
    NO_SUCH_PACKAGE,
    NOT_CONFIGURED,
    Source,
)
from agiraph.web.gate.python_pages import IndexedFile
from agiraph.web.gate.rules import Denied

SIMPLE, FILES = "simple", "files"
METADATA = ".metadata"


class PythonIndex:
    """Answers `simple/NAME/` with a page, and `files/NAME/FILE` with a file of that page."""

    ecosystem: Ecosystem = "python"

    def __init__(self, source: Source, base: str) -> None:
        self._source = source
        self._base = base
        self._pages: dict[str, dict[str, IndexedFile]] = {}
        self._described: set[str] = set()
        """Files whose dependencies are known from their metadata."""

    async def answer(self, exchange: Exchange, path: str) -> None:
        match path.strip("/").split("/"):
            case ["simple", name]:
                files = await self._files(name)
                project = normalized("python", name)
                folder = f"{self._base}/{FILES}/{project}/"
                page = python_pages.write_page(project, files.values(), folder)
                await exchange.send(200, page, "text/html; charset=utf-8")
            case ["files", name, file]:
                await self._send_file(exchange, name, file)
            case _:
                raise Denied(NO_SUCH_FILE, status=404)

    async def _files(self, name: str) -> dict[str, IndexedFile]:
        """Return the files of a project by name, from all indexes; the first one counts."""
        await self._source.check_name("python", name)
        project = normalized("python", name)
        if project in self._pages:
            return self._pages[project]
        sources = await self._source.indexes.python_sources()
        if not sources.indexes and not sources.links:
            raise Denied(NOT_CONFIGURED.format(kind="Python"), status=404)
        found: dict[str, IndexedFile] = {}
        failed: Denied | None = None
        for url in (*sources.indexes, *sources.links):
            try:
                listed = await self._listed(url, project, is_flat=url in sources.links)
            except Denied as denied:
                failed = denied  # another index may have it
                continue
            for file in listed:
                found.setdefault(file.name, file)
        if not found:
            raise failed or Denied(NO_SUCH_PACKAGE.format(name=project), status=404)
        self._pages[project] = found
        return found

    async def _listed(self, url: str, project: str, *, is_flat: bool) -> list[IndexedFile]:
        if is_flat and "://" not in url:
            files = await asyncio.to_thread(_folder_files, Path(url).expanduser())
            return python_pages.of_project(files, project)
        url = self._source.upstream.trust(url)
        page = url if is_flat else f"{url.rstrip('/')}/{quote(project)}/"
        found = await self._source.read(page, accept=python_pages.ACCEPT)
        files = (
            [] if found is None else await asyncio.to_thread(python_pages.read_page, *found, page)
        )
        if urlsplit(page).scheme != "file":  # a page of the network names no file of this machine
            files = [file for file in files if urlsplit(file.url).scheme in ("http", "https")]
        return python_pages.of_project(files, project) if is_flat else files

    async def _send_file(self, exchange: Exchange, name: str, wanted: str) -> None:
        files = await self._files(name)
        listed = wanted.removesuffix(METADATA)
        file = files.get(listed)
        if file is None or (listed != wanted and not file.has_metadata):
            raise Denied(NO_SUCH_FILE, status=404)
        if listed != wanted:
            return await self._send_metadata(exchange, file)

        async def learn(content: Path) -> None:
            found = await python_pages.dependencies_of_file(
                file.name, content, self._source.converter
            )
            self._source.names.learn("python", found)

        inspect = None if file.name in self._described else learn
        return await self._source.send_file(exchange, file.url, inspect=inspect)

    async def _send_metadata(self, exchange: Exchange, file: IndexedFile) -> None:
        found = await self._source.read(file.url + METADATA, accept="*/*")
        if found is None:
            raise Denied(NO_SUCH_FILE, status=404)
        needed = python_pages.dependencies(found[0].decode(errors="replace"))
        self._source.names.learn("python", needed)
        self._described.add(file.name)
        await exchange.send(200, found[0], "application/octet-stream")


def _folder_files(folder: Path) -> list[IndexedFile]:
    if not folder.is_dir():
        return []
    page = "".join(f'<a href="{quote(path.name)}"></a>' for path in sorted(folder.iterdir()))
    return python_pages.read_page(page.encode(), "text/html", f"{folder.absolute().as_uri()}/")
