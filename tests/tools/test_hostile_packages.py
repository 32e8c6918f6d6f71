"""Hostile packages: an archive that a command downloads is opened in a confined process alone."""

import asyncio
import io
import tarfile
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from agiraph.sandbox import levels, sandbox
from agiraph.sandbox.gate.package_names import PackageNames
from agiraph.sandbox.gate.rules import Rules
from agiraph.testing import World, call
from agiraph.web.access import Web
from tests.tools.hostile_packages import PAGES, SOURCES, WHEELS, page
from tests.tools.strangers import answers, go_on_with, strange_world
from tests.web.gate.gates import open_gate
from tests.web.gate.upstreams import Upstream, open_upstream

pytestmark = pytest.mark.skipif(
    not levels.choose().has_gate, reason="commands have no network namespace of their own here"
)
GATE = f"http://127.0.0.1:{sandbox.GATE_PORT}/pypi"
GATED = f"curl -sS -o page {GATE}/simple/tea/; "
MOST_GROWTH_MIB = 100


@pytest.fixture
async def upstream() -> AsyncIterator[Upstream]:
    async with open_upstream() as opened:
        yield opened


@pytest.fixture
async def world(tmp_path: Path, upstream: Upstream) -> AsyncIterator[World]:
    async with strange_world(tmp_path, web=Web(indexes=upstream.indexes)) as made:
        yield made


def peak_mib() -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) // 1024


def offer(upstream: Upstream, name: str, file: str, body: bytes) -> str:
    upstream.pages |= {f"/p/{file}": body}
    upstream.listed[name] = f'<a href="{upstream.url}/p/{file}">{file}</a>'
    return f"curl -sS -o got {GATE}/files/{name}/{file}; wc -c < got"


@pytest.mark.parametrize(
    ("end", "make"),
    [
        *(pytest.param(".tar.gz", make, id=name) for name, make in SOURCES.items()),
        *(pytest.param("-py3-none-any.whl", make, id=name) for name, make in WHEELS.items()),
    ],
)
async def test_a_package_that_grows_to_gigabytes_takes_none_of_the_runtimes_memory(
    world: World, upstream: Upstream, end: str, make: Callable[[], bytes]
) -> None:
    body = await asyncio.to_thread(make)
    command = offer(upstream, "tea", f"tea-1.0{end}", body)
    founded = await world.found("Make tea", start=False)
    Path("/proc/self/clear_refs").write_text("5")  # the kernel measures the peak anew
    before = peak_mib()
    world.script("ada")
    await go_on_with(world, founded, call("bash", command=f"{GATED}{command}"))
    said, _ = await answers(world, founded)
    assert peak_mib() - before < MOST_GROWTH_MIB
    # The file itself reaches the command, which has limits of its own.
    assert str(len(body)) in said.split()


ASKED = {"/simple/tea/": "/pypi/simple/tea/", "/cargo/3/t/tea": "/cargo/index/3/t/tea"}


async def served(upstream: Upstream, path: str, kind: str, body: bytes) -> tuple[int, bytes]:
    """Return what a command receives for the page of an index that the upstream serves."""
    upstream.pages[path], upstream.kinds[path] = body, kind
    rules = Rules(network="packages", names=PackageNames())
    async with open_gate(rules, indexes=upstream.indexes) as gate:
        return await gate.get(ASKED.get(path, path))


@pytest.mark.parametrize("name", PAGES)
async def test_a_page_of_an_index_with_millions_of_values_is_refused(
    upstream: Upstream, name: str
) -> None:
    path, kind, body = page(name)
    Path("/proc/self/clear_refs").write_text("5")
    before = peak_mib()
    status, said = await served(upstream, path, kind, body)
    assert peak_mib() - before < MOST_GROWTH_MIB
    assert (status, said) == (502, b"agiraph: The page of the index lists too much to be read.\n")


async def test_a_long_page_of_an_honest_index_is_read(upstream: Upstream) -> None:
    link = '<a href="https://files.example/packages/ab/cd/{0}#sha256=ab">{0}</a><br/>\n'
    body = "".join(link.format(f"tea-{n}.0.tar.gz") for n in range(20_000)).encode()
    status, listed = await served(upstream, "/simple/tea/", "text/html", body)
    assert (status, listed.count(b"<a ")) == (200, 20_000)


def source_archive(needs: str) -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w:gz") as archive:
        text = f"[build-system]\nrequires = ['{needs}']\n".encode()
        entry = tarfile.TarInfo("tea-1.0/pyproject.toml")
        entry.size = len(text)
        archive.addfile(entry, io.BytesIO(text))
        rest = tarfile.TarInfo("tea-1.0/data.bin")
        rest.size = 2**20
        archive.addfile(rest, io.BytesIO(bytes(rest.size)))
    return made.getvalue()


async def test_what_an_honest_source_archive_needs_to_be_built_may_be_asked_for(
    world: World, upstream: Upstream
) -> None:
    get = offer(upstream, "tea", "tea-1.0.tar.gz", source_archive("cup-maker-4711"))
    offer(upstream, "cup-maker-4711", "cup_maker_4711-1.0.zip", b"")
    offer(upstream, "spoon-4711", "spoon_4711-1.0.zip", b"")
    ask = f"curl -sS -o /dev/null -w '%{{http_code}}\\n' {GATE}/simple"
    command = f"{GATED}{get}; {ask}/cup-maker-4711/; {ask}/spoon-4711/"
    founded = await world.found("Make tea", start=False)
    world.script("ada")
    await go_on_with(world, founded, call("bash", command=command))
    said, _ = await answers(world, founded)
    assert [line for line in said.splitlines() if line in ("200", "403")] == ["200", "403"]


def test_only_backups_and_the_confined_script_open_archives() -> None:
    package = Path(levels.__file__).parents[1]
    opens = {
        str(path.relative_to(package))
        for path in package.rglob("*.py")
        for line in path.read_text().splitlines()
        if line in ("import zipfile", "import tarfile", "import bz2", "import lzma")
    }
    writes = {
        "features/backup/archive.py",
        "core/home/zip_stream.py",
        "features/backup/team_export.py",
    }
    assert opens - writes == {
        "sandbox/gate/package_archive.py",
        "features/backup/archive_reading.py",
    }
