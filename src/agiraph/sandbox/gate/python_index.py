"""Python index: a simple index for pip and uv, made from the indexes that pip is configured for."""

import asyncio
import html
import re
from collections.abc import Iterable, Mapping
from dataclasses import field
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, cast
from urllib.parse import quote, unquote, urljoin, urlsplit

import orjson

from agiraph.core.domain.text.conversion import Converter
from agiraph.core.domain.value import dataclass
from agiraph.sandbox.gate.exchange import Exchange
from agiraph.sandbox.gate.package_names import Ecosystem, names_in, normalized
from agiraph.sandbox.gate.packages import (
    NO_SUCH_FILE,
    NO_SUCH_PACKAGE,
    NOT_CONFIGURED,
    Source,
)
from agiraph.sandbox.gate.rules import Denied

FILES = "files"
METADATA = ".metadata"
ACCEPT = "application/vnd.pypi.simple.v1+json, text/html;q=0.5"
_REQUIRES = re.compile(r"^Requires-Dist:\s*([A-Za-z0-9][A-Za-z0-9._-]*)", re.MULTILINE)
_FILE = re.compile(r"[A-Za-z0-9][\w.+!-]{0,250}\.(?:whl|tar\.gz|zip|tar\.bz2)")
_ARCHIVE = Path(__file__).with_name("package_archive.py")
_ARCHIVE_S = 15
_UNPACKED_BYTES = 4 * 2**20
"""Of all files of an archive that name what it needs."""
_PRINTED_BYTES = 6 * _UNPACKED_BYTES
"""A character may be written in six in JSON."""
_PASSED_ON = ("data-requires-python", "data-yanked", "data-dist-info-metadata",
              "data-core-metadata")  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexedFile:
    """A file that an index page lists."""

    name: str
    url: str
    digest: str = ""
    """The page's hash of the file, such as `sha256=…`."""
    attributes: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def has_metadata(self) -> bool:
        """Whether the index has the metadata of a wheel in a file beside it (PEP 658)."""
        said = self.attributes.get("data-core-metadata")
        return said not in (None, "", "false")


def read_page(body: bytes, media_type: str, base: str) -> list[IndexedFile]:
    """Return the files of an index page, in either form of the simple index."""
    if media_type.endswith("+json"):
        return _read_json(orjson.loads(body), base)
    reader = _Anchors(base)
    reader.feed(body.decode(errors="replace"))
    found = (_indexed(urljoin(reader.base, href), given) for href, given in reader.anchors)
    return [file for file in found if file is not None]


def _indexed(url: str, attributes: Mapping[str, str]) -> IndexedFile | None:
    address, _, digest = url.partition("#")
    name = unquote(urlsplit(address).path.rpartition("/")[2])
    if not _FILE.fullmatch(name):
        return None
    kept = {key: attributes[key] for key in _PASSED_ON if key in attributes}
    if "data-dist-info-metadata" in kept:  # its former name
        kept.setdefault("data-core-metadata", kept.pop("data-dist-info-metadata"))
    return IndexedFile(name=name, url=address, digest=digest, attributes=kept)


def _read_json(page: Any, base: str) -> list[IndexedFile]:
    files: list[IndexedFile] = []
    for entry in cast(list[dict[str, Any]], page.get("files", [])):
        attributes: dict[str, str] = {}
        if entry.get("requires-python"):
            attributes["data-requires-python"] = str(entry["requires-python"])
        if yanked := entry.get("yanked"):
            attributes["data-yanked"] = yanked if isinstance(yanked, str) else ""
        if entry.get("core-metadata", entry.get("dist-info-metadata")):
            attributes["data-core-metadata"] = "true"
        hashes = cast(dict[str, str], entry.get("hashes") or {})
        digest = f"sha256={hashes['sha256']}" if "sha256" in hashes else ""
        url = urljoin(base, str(entry.get("url", "")))
        if (file := _indexed(f"{url}#{digest}", attributes)) is not None:
            files.append(file)
    return files


class _Anchors(HTMLParser):
    """Collects the links of a page with their attributes."""

    def __init__(self, base: str) -> None:
        super().__init__()
        self.base = base
        self.anchors: list[tuple[str, dict[str, str]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if tag == "base" and given.get("href"):
            self.base = urljoin(self.base, given["href"])
        elif tag == "a" and given.get("href"):
            self.anchors.append((given["href"], given))


def of_project(files: Iterable[IndexedFile], project: str) -> list[IndexedFile]:
    """Return those files of a flat list that belong to this project."""

    def belongs(name: str) -> bool:
        parts = name.split("-")
        heads = ("-".join(parts[:count]) for count in range(1, len(parts)))
        return any(normalized("python", head) == project for head in heads)

    return [file for file in files if belongs(file.name)]


def write_page(project: str, files: Iterable[IndexedFile], folder: str) -> bytes:
    """Return an index page whose links lead to `folder` of the gate and nowhere else."""
    lines = [f"<!DOCTYPE html><title>{html.escape(project)}</title>"]
    for file in files:
        digest = f"#{file.digest}" if re.fullmatch(r"\w+=[0-9a-fA-F]+", file.digest) else ""
        given = {"href": f"{folder}{file.name}{digest}", **file.attributes}
        shown = " ".join(f'{key}="{html.escape(value)}"' for key, value in given.items())
        lines.append(f"<a {shown}>{html.escape(file.name)}</a><br>")
    return "\n".join(lines).encode()


def dependencies(metadata: str) -> frozenset[str]:
    """Return the packages that the metadata of a package requires."""
    return frozenset(_REQUIRES.findall(metadata))


async def dependencies_of_file(name: str, file: Path, converter: Converter) -> frozenset[str]:
    """Return the packages that a wheel or a source archive requires to be installed or built.

    What cannot be read of the archive names nothing: the installer says what is wrong with it.
    """
    kind = "wheel" if name.endswith(".whl") else "source"
    found = await converter.convert(
        _ARCHIVE,
        (str(file), kind, str(_ARCHIVE_S), str(_UNPACKED_BYTES)),
        file,
        timeout_s=_ARCHIVE_S,
        most_bytes=_PRINTED_BYTES,
    )
    return await asyncio.to_thread(_named, found.output)


def _named(printed: bytes) -> frozenset[str]:
    """Return the packages that the printed files of an archive name; the last line may be cut."""
    names: set[str] = set()
    for line in printed.splitlines():
        try:
            file, text = orjson.loads(line)
        except ValueError:
            break
        is_metadata = file in ("METADATA", "PKG-INFO")
        names |= dependencies(text) if is_metadata else names_in(text)
    return frozenset(names)


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
                page = write_page(project, files.values(), folder)
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
            return of_project(files, project)
        url = self._source.upstream.trust(url)
        page = url if is_flat else f"{url.rstrip('/')}/{quote(project)}/"
        found = await self._source.read(page, accept=ACCEPT)
        files = [] if found is None else await asyncio.to_thread(read_page, *found, page)
        if urlsplit(page).scheme != "file":  # a page of the network names no file of this machine
            files = [file for file in files if urlsplit(file.url).scheme in ("http", "https")]
        return of_project(files, project) if is_flat else files

    async def _send_file(self, exchange: Exchange, name: str, wanted: str) -> None:
        files = await self._files(name)
        listed = wanted.removesuffix(METADATA)
        file = files.get(listed)
        if file is None or (listed != wanted and not file.has_metadata):
            raise Denied(NO_SUCH_FILE, status=404)
        if listed != wanted:
            return await self._send_metadata(exchange, file)

        async def learn(content: Path) -> None:
            found = await dependencies_of_file(file.name, content, self._source.converter)
            self._source.names.learn("python", found)

        inspect = None if file.name in self._described else learn
        return await self._source.send_file(exchange, file.url, inspect=inspect)

    async def _send_metadata(self, exchange: Exchange, file: IndexedFile) -> None:
        found = await self._source.read(file.url + METADATA, accept="*/*")
        if found is None:
            raise Denied(NO_SUCH_FILE, status=404)
        needed = dependencies(found[0].decode(errors="replace"))
        self._source.names.learn("python", needed)
        self._described.add(file.name)
        await exchange.send(200, found[0], "application/octet-stream")


def _folder_files(folder: Path) -> list[IndexedFile]:
    if not folder.is_dir():
        return []
    page = "".join(f'<a href="{quote(path.name)}"></a>' for path in sorted(folder.iterdir()))
    return read_page(page.encode(), "text/html", f"{folder.absolute().as_uri()}/")
