"""Fetching pages: redirects, compression, limits, timeouts and errors."""

import asyncio
import gzip
import resource
import zlib

import pytest

from agiraph.core.domain.errors import Refused
from tests.web.reading import read
from tests.web.sites import bomb, fetcher, html, redirect_to, response, site, unused_port, zipped
from tests.wording import Wording, refusals_of


async def test_a_page_is_returned_with_its_final_address() -> None:
    async with site(old=redirect_to("/new"), new=html("<h1>Hello</h1>")) as opened:
        got = await fetcher().fetch(opened.url("/old#part"))
    assert (got.url, got.media_type) == (opened.url("/new"), "text/html")
    assert b"Hello" in got.body


async def test_no_cookies_credentials_or_proxies_are_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """No cookie is kept between requests, and the proxies of the environment are ignored."""
    monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{unused_port()}")
    monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{unused_port()}")
    first = response(status="302 Found", Location="/second", Set_Cookie="id=secret")
    async with site(first=first, second=html("there")) as opened:
        await fetcher().fetch(opened.url("/first"))
    assert len(opened.requests) == 2
    assert not any("cookie:" in request.lower() for request in opened.requests)
    assert not any("authorization:" in request.lower() for request in opened.requests)


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "raw"])
async def test_a_compressed_page_is_decompressed(encoding: str) -> None:
    text = b"<p>hello</p>" * 1000
    bits = {"gzip": 31, "deflate": 15, "raw": -15}[encoding]
    packer = zlib.compressobj(9, zlib.DEFLATED, bits)
    packed = packer.compress(text) + packer.flush()
    name = "deflate" if encoding == "raw" else encoding
    async with site(page=response(packed, Content_Encoding=name)) as opened:
        got = await fetcher().fetch(opened.url("/page"))
    assert got.body == text


@pytest.mark.slow
async def test_a_gzip_bomb_is_refused_without_using_memory() -> None:
    async with site(bomb=bomb(256)) as opened:  # 256 KB that decompress to 256 MB
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        with pytest.raises(Refused, match="grows more than 100 times"):
            await fetcher().fetch(opened.url("/bomb"))
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown < 64 * 1024  # KiB


async def test_what_follows_the_end_of_compressed_data_is_left() -> None:
    words = b"tea " * 200_000
    body = gzip.compress(words) + gzip.compress(bytes(2**20)) * 50
    async with site(page=response(body, kind="text/plain", Content_Encoding="gzip")) as opened:
        fetched = await fetcher(ratio=2000).fetch(opened.url("/page"))
    assert fetched.body == words


@pytest.mark.slow
async def test_a_page_that_decompresses_to_too_much_is_cut() -> None:
    async with site(page=zipped(b"".join(b"%d " % n for n in range(400_000)))) as opened:
        got = await fetcher(decoded_bytes=2**20).fetch(opened.url("/page"))
    assert (len(got.body), got.is_cut) == (2**20, True)


async def test_an_endless_body_is_refused() -> None:
    async def endless(writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n")
        while True:
            writer.write(b"more and more\n" * 4096)
            await writer.drain()

    async with site(endless=endless) as opened:
        with pytest.raises(Refused, match="larger than 5 MiB"):
            await fetcher().fetch(opened.url("/endless"))


async def test_a_body_that_stalls_runs_into_the_timeout() -> None:
    async def slow(writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n")
        await writer.drain()
        await asyncio.Event().wait()

    async with site(slow=slow) as opened:
        with pytest.raises(Refused, match="did not answer within"):
            await fetcher(timeout_s=0.2).fetch(opened.url("/slow"))


async def test_the_timeout_covers_all_redirects() -> None:
    async def stalls(writer: asyncio.StreamWriter) -> None:
        await asyncio.Event().wait()

    async with site(a=redirect_to("/b"), b=redirect_to("/c"), c=stalls) as opened:
        with pytest.raises(Refused, match="did not answer within"):
            await fetcher(timeout_s=0.2).fetch(opened.url("/a"))


@pytest.mark.parametrize("depth", [100, 1_000_000])
async def test_deeply_nested_json_is_returned_as_text(depth: int) -> None:
    deep = b"[" * depth + b"]" * depth
    async with site(data=response(deep, kind="application/json")) as opened:
        page = await read(await fetcher().fetch(opened.url("/data")))
    assert page.text.startswith("[[[")


NO_TEXT = ("image/png", "application/zip", "application/octet-stream")
STATUSES = ("403 Forbidden", "404 Not Found", "429 Too Many Requests", "500 Internal Server Error")


async def test_a_response_that_is_not_text_or_has_an_error_status_is_refused(
    wording: Wording,
) -> None:
    async def fetch(answer: bytes) -> None:
        async with site(page=answer) as opened:
            await fetcher().fetch(opened.url("/page"))

    kinds = [response(b"%PDF", kind=kind) for kind in NO_TEXT]
    errors = [response(b"no", status=status) for status in STATUSES]
    wording(await refusals_of([*kinds, *errors], fetch))


async def test_an_unreachable_site_or_invalid_http_is_reported() -> None:
    with pytest.raises(Refused, match="could not be opened"):
        await fetcher().fetch(f"http://127.0.0.1:{unused_port()}/")
    async with site(page=b"SSH-2.0-OpenSSH_9.6\r\n", big=b"HTTP/1.1 200 OK\r\nX: " + b"y" * 99_999):
        pass
    async with site(page=b"SSH-2.0-OpenSSH_9.6\r\n") as opened:
        with pytest.raises(Refused, match="could not be opened"):
            await fetcher().fetch(opened.url("/page"))


async def test_an_unrequested_content_encoding_is_refused() -> None:
    async with site(page=response(b"x", Content_Encoding="br")) as opened:
        with pytest.raises(Refused, match="did not ask for"):
            await fetcher().fetch(opened.url("/page"))
