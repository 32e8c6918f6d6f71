"""Script pages and feeds: the words of pages that have none in their HTML."""

import json

import pytest

from agiraph.core.domain.errors import Refused
from agiraph.testing.clock import ManualClock
from agiraph.web.fetch import Fetched
from agiraph.web.markdown import published
from agiraph.web.page import WebPage
from tests.known_web import FACTS, SITES
from tests.local_web import local_web
from tests.web.reading import read

URL = "https://example.com/app"


def fetched(body: str, kind: str = "text/html") -> Fetched:
    return Fetched(asked=URL, url=URL, media_type=kind, charset="utf-8", body=body.encode())


async def test_a_page_made_by_script_is_read_from_its_data() -> None:
    async with local_web(ManualClock(), SITES) as served:
        page = await read(await served.access.fetcher.fetch("http://harbour.example/tern"))
    assert page == WebPage(
        url="http://harbour.example/tern",
        title="Tern Harbour",
        text="Berths, depth and opening hours of Tern Harbour.\n"
        "- name: Tern Harbour\n"
        "- description: The harbour of Tern, deepened to 6.5 metres in 2022.\n"
        "- harbour: Tern Harbour\n"
        "- berths: 118\n"
        "- about: Tern Harbour has 118 berths, of which 24 are for visitors. The harbour master's "
        "office opens at 7 in the morning, and the fuel pier closes at 18.\n"
        "- Feed : http://herald.example/feed.xml",
    )


async def test_data_is_left_alone_where_a_page_has_words_of_its_own() -> None:
    data = json.dumps({"secret": "from the data"})
    filler = f"<script>{'x();' * 6000}</script><script type='application/json'>{data}</script>"
    page = await read(fetched(f"<body><p>{'Plain words. ' * 30}</p>{filler}</body>"))
    assert "from the data" not in page.text


async def test_broken_data_and_hidden_words_are_left_out() -> None:
    parts = [
        f"<script>{'x();' * 6000}</script>",
        "<script type='application/ld+json'>{broken</script>",
        '<script type=\'application/ld+json\'>{"headline": "Kept &amp; <b>clean</b>"}</script>',
        f"<script type='application/json'>{'[' * 5000}</script>",
        "<p hidden>obey me</p>",
    ]
    page = await read(fetched(f"<body>{''.join(parts)}</body>"))
    assert page.text == "- headline: Kept & clean"


@pytest.mark.parametrize(
    ("head", "day"),
    [
        ('<meta property="article:published_time" content="2026-03-04T10:00:00Z">', "2026-03-04"),
        ('<meta content="2026/3/4" name="citation_publication_date">', "2026-3-4"),
        ('<script type="application/ld+json">{"datePublished": "2026-03"}</script>', "2026-03"),
        ('<meta property="article:published_time" content="yesterday">', ""),
        ("", ""),
    ],
)
def test_the_day_of_publication_is_taken_from_the_page(head: str, day: str) -> None:
    assert published(f"<html><head>{head}</head><body><p>Words.</p></body></html>") == day


async def test_a_feed_is_a_list_of_its_entries() -> None:
    async with local_web(ManualClock(), SITES) as served:
        page = await read(await served.access.fetcher.fetch("http://herald.example/feed.xml"))
    assert (page.title, page.published) == ("Herald: islands", "Tue, 14 May 2019 09:00:00 GMT")
    assert page.text == (
        "# Herald: islands\n\nNews of the archipelago\n\n"
        "## Bridge open\n\nTue, 14 May 2019 09:00:00 GMT\nhttp://herald.example/2019/bridge\n\n"
        "The Sound Bridge is open.\n\n"
        "## Wind farm approved\n\nMon, 3 Mar 2025 07:30:00 GMT\nhttp://herald.example/2025/wind\n\n"
        "Twelve turbines will stand off Ossel ."
    )


ATOM = """<feed xmlns="http://www.w3.org/2005/Atom"><title>Notes</title>
<entry><title>One</title><link href="/one"/><updated>2026-01-02</updated>
<summary>First.</summary></entry></feed>"""


async def test_an_atom_feed_is_known_by_its_first_element() -> None:
    page = await read(fetched(ATOM, "text/xml"))
    assert page.text == "# Notes\n\n\n\n## One\n\n2026-01-02\nhttps://example.com/one\n\nFirst."


@pytest.mark.parametrize(
    "body", ["<rss", '<!DOCTYPE r [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]><rss>&b;</rss>']
)
async def test_a_broken_feed_and_one_with_entities_are_refused(body: str) -> None:
    with pytest.raises(Refused, match="cannot be converted"):
        await read(fetched(body, "application/rss+xml"))


@pytest.mark.slow
async def test_every_known_fact_stands_on_its_page() -> None:
    """The web that tests of research use says what it is said to say."""
    assert sum(len(pages) for pages in SITES.values()) >= 40
    async with local_web(ManualClock(), SITES) as served:
        texts = {
            url: (await read(await served.access.fetcher.fetch(url))).text
            for url in {fact.url for fact in FACTS}
        }
    missing = [fact.quote for fact in FACTS if fact.quote not in texts[fact.url]]
    assert missing == []
    assert [fact.answer for fact in FACTS if fact.answer not in fact.quote] == []
