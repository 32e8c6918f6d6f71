"""Fetching: what comes back, what is taken of it, and what is told when nothing comes."""

import asyncio
import resource
import zlib

import pytest

from agiraph.domain.errors import Refused
from agiraph.web.page import read
from tests.web.sites import bomb, fetcher, html, response, site, to, unused_port, zipped


async def test_a_page_comes_back_with_its_final_address() -> None:
    async with site(old=to("/new"), new=html("<h1>Hello</h1>")) as opened:
        got = await fetcher().fetch(opened.url("/old#part"))
    assert (got.url, got.media_type) == (opened.url("/new"), "text/html")
    assert b"Hello" in got.body


async def test_nothing_of_ours_is_sent_along(monkeypatch: pytest.MonkeyPatch) -> None:
    """No cookie is kept from one request to the next, and no proxy is asked."""
    monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{unused_port()}")
    monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{unused_port()}")
    first = response(status="302 Found", Location="/second", Set_Cookie="id=secret")
    async with site(first=first, second=html("there")) as opened:
        await fetcher().fetch(opened.url("/first"))
    assert len(opened.requests) == 2
    assert not any("cookie:" in request.lower() for request in opened.requests)
    assert not any("authorization:" in request.lower() for request in opened.requests)


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "raw"])
async def test_a_packed_page_is_unpacked(encoding: str) -> None:
    text = b"<p>hello</p>" * 1000
    bits = {"gzip": 31, "deflate": 15, "raw": -15}[encoding]
    packer = zlib.compressobj(9, zlib.DEFLATED, bits)
    packed = packer.compress(text) + packer.flush()
    name = "deflate" if encoding == "raw" else encoding
    async with site(page=response(packed, Content_Encoding=name)) as opened:
        got = await fetcher().fetch(opened.url("/page"))
    assert got.body == text


async def test_a_gzip_bomb_costs_neither_memory_nor_time() -> None:
    async with site(bomb=bomb(1024)) as opened:  # a gigabyte out of one megabyte
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        with pytest.raises(Refused, match="grows more than 100 times"):
            await fetcher().fetch(opened.url("/bomb"))
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown < 64 * 1024  # KiB


async def test_what_unpacks_to_more_than_we_take_is_cut() -> None:
    async with site(page=zipped(b"".join(b"%d " % n for n in range(400_000)))) as opened:
        got = await fetcher(decoded_bytes=2**20).fetch(opened.url("/page"))
    assert (len(got.body), got.is_cut) == (2**20, True)


async def test_a_body_without_end_is_given_up() -> None:
    async def endless(writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n")
        while True:
            writer.write(b"more and more\n" * 4096)
            await writer.drain()

    async with site(endless=endless) as opened:
        with pytest.raises(Refused, match="larger than 5 MB"):
            await fetcher().fetch(opened.url("/endless"))


async def test_a_body_that_comes_in_drops_runs_out_of_time() -> None:
    async def slow(writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n")
        await writer.drain()
        await asyncio.Event().wait()

    async with site(slow=slow) as opened:
        with pytest.raises(Refused, match="did not answer within"):
            await fetcher(timeout_s=0.2).fetch(opened.url("/slow"))


async def test_time_is_counted_over_all_redirects() -> None:
    async def stalls(writer: asyncio.StreamWriter) -> None:
        await asyncio.Event().wait()

    async with site(a=to("/b"), b=to("/c"), c=stalls) as opened:
        with pytest.raises(Refused, match="did not answer within"):
            await fetcher(timeout_s=0.2).fetch(opened.url("/a"))


@pytest.mark.parametrize("depth", [100, 1_000_000])
async def test_deep_json_is_only_text(depth: int) -> None:
    deep = b"[" * depth + b"]" * depth
    async with site(data=response(deep, kind="application/json")) as opened:
        page = await read(await fetcher().fetch(opened.url("/data")))
    assert page.text.startswith("[[[")


@pytest.mark.parametrize(
    ("kind", "says"),
    [
        ("application/pdf", "is a PDF"),
        ("image/png", "is image/png, which is not text"),
        ("application/zip", "which is not text"),
        ("application/octet-stream", "which is not text"),
    ],
)
async def test_what_is_no_text_is_refused_kindly(kind: str, says: str) -> None:
    async with site(file=response(b"%PDF", kind=kind)) as opened:
        with pytest.raises(Refused, match=says):
            await fetcher().fetch(opened.url("/file"))


@pytest.mark.parametrize(
    ("status", "says"),
    [
        ("403 Forbidden", "denies access"),
        ("404 Not Found", "There is no page"),
        ("429 Too Many Requests", "limits the number of requests"),
        ("500 Internal Server Error", "returned an error"),
    ],
)
async def test_an_error_of_the_site_is_told(status: str, says: str) -> None:
    async with site(page=response(b"no", status=status)) as opened:
        with pytest.raises(Refused, match=says):
            await fetcher().fetch(opened.url("/page"))


async def test_a_site_that_is_not_there_or_talks_nonsense_is_told() -> None:
    with pytest.raises(Refused, match="could not be opened"):
        await fetcher().fetch(f"http://127.0.0.1:{unused_port()}/")
    async with site(page=b"SSH-2.0-OpenSSH_9.6\r\n", big=b"HTTP/1.1 200 OK\r\nX: " + b"y" * 99_999):
        pass
    async with site(page=b"SSH-2.0-OpenSSH_9.6\r\n") as opened:
        with pytest.raises(Refused, match="could not be opened"):
            await fetcher().fetch(opened.url("/page"))


async def test_packing_we_did_not_ask_for_is_refused() -> None:
    async with site(page=response(b"x", Content_Encoding="br")) as opened:
        with pytest.raises(Refused, match="did not ask for"):
            await fetcher().fetch(opened.url("/page"))
