"""Requests: idempotency keys, ETags, lists in pages, and bodies that are too large or malformed."""

import asyncio
import gzip
import io
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import orjson
import pytest
from pydantic import TypeAdapter

from agiraph.core.domain.costs import CostSum, TeamCosts, add_up, joined
from agiraph.core.domain.messages import Draft
from agiraph.core.domain.persons import OWNER
from agiraph.core.services.lifecycle.teams import NewTeam
from agiraph.core.services.mail import bus
from agiraph.core.store import messages
from agiraph.testing import call, says
from tests.api.serving import TOKEN, Served, serving
from tests.wording import Wording

MIB = 2**20


@pytest.fixture
async def on_each(tmp_path: Path, database_url: str) -> AsyncIterator[Served]:
    """A served world, once on each database."""
    async with serving(tmp_path / "home", database_url=database_url) as opened:
        opened.world.script("ada")
        yield opened


async def found(served: Served, **more: Any) -> NewTeam:
    served.world.script("ada")
    return await served.world.found("Count", start=False, **more)


CREATING = [
    ("/teams", {"goal": "g", "start": False}, {"goal": "other", "start": False}),
    ("/agents/{agent}/send", {"message": "hi", "mode": "nudge"}, {"message": "ho"}),
    ("/teams/{team}/broadcast", {"message": "hi"}, {"message": "ho"}),
    ("/agents/{agent}/memories", {"content": "Likes tea."}, {"content": "Likes coffee."}),
    (
        "/agents/{agent}/insights",
        {"type": "fact", "content": "a"},
        {"type": "fact", "content": "b"},
    ),
    (
        "/teams/{team}/triggers",
        {"type": "webhook", "config": {}},
        {"type": "webhook", "config": {}, "payload": {"task": "x"}},
    ),
]


@pytest.mark.parametrize(("path", "body", "other"), CREATING, ids=[c[0] for c in CREATING])
async def test_a_request_with_the_same_idempotency_key_acts_once(
    path: str, body: dict[str, Any], other: dict[str, Any], on_each: Served
) -> None:
    founded = await found(on_each)
    path = path.format(team=founded.team.id, agent=founded.coordinator.id)
    key = {"Idempotency_Key": "once"}
    await on_each.ask("POST", f"/teams/{founded.team.id}/pause")
    answers = await asyncio.gather(*(on_each.ask("POST", path, body, **key) for _ in range(6)))
    assert {status for status, _ in answers} <= {201, 202}
    assert all(answer == answers[0] for answer in answers)
    before = await on_each.world.events(founded.team.id)
    assert await on_each.ask("POST", path, body, **key) == answers[0]
    assert (await on_each.ask("POST", path, other, **key))[0] == 409
    assert (await on_each.ask("POST", "/teams", {"goal": "x"}, **key))[0] == 409
    assert await on_each.world.events(founded.team.id) == before
    assert (await on_each.ask("POST", path, other, Idempotency_Key="twice"))[0] in (201, 202)


async def test_idempotency_keys_belong_to_their_caller_and_have_a_maximum_length(
    on_each: Served,
) -> None:
    body = {"goal": "g", "start": False}
    _, token = await on_each.ask("POST", "/tokens", {"name": "n", "scope": "operate"})
    mine = await on_each.ask("POST", "/teams", body, Idempotency_Key="k")
    bearer = {"Authorization": f"Bearer {token['secret']}"}
    theirs = await on_each.ask("POST", "/teams", body, Idempotency_Key="k", **bearer)
    assert mine[1]["id"] != theirs[1]["id"]
    assert (await on_each.ask("POST", "/teams", body, Idempotency_Key="k" * 201))[0] == 422
    assert (await on_each.ask("POST", "/teams", body, Idempotency_Key="k" * 200))[0] == 201


async def test_a_message_with_a_client_id_is_stored_once(on_each: Served) -> None:
    founded = await found(on_each)
    path, body = f"/agents/{founded.coordinator.id}/send", {"message": "hi", "client_id": "c1"}
    answers = await asyncio.gather(*(on_each.ask("POST", path, body) for _ in range(6)))
    assert {(status, answer["id"]) for status, answer in answers} == {(202, answers[0][1]["id"])}
    _, said = await on_each.ask("GET", f"/agents/{founded.coordinator.id}/conversation")
    assert [m["text"] for m in said if m["sender"] == "human"] == ["hi"]
    status, _ = await on_each.ask("POST", path, {"message": "other words", "client_id": "c1"})
    assert status == 409


async def test_an_unchanged_team_is_answered_with_304(served: Served) -> None:
    founded = await found(served)
    address = f"{served.origin}/api/teams/{founded.team.id}"
    bearer = {"Authorization": f"Bearer {TOKEN}"}
    async with served.http.get(address, headers=bearer) as response:
        tag = response.headers["ETag"]
    for known, status in ((tag, 304), (f'"x", W/{tag}', 304), ('"x"', 200)):
        headers = bearer | {"If-None-Match": known}
        async with served.http.get(address, headers=headers) as response:
            body = await response.read()
            assert (response.status, response.headers["ETag"], bool(body)) == (
                status,
                tag,
                status == 200,
            )
    await served.ask("POST", f"/teams/{founded.team.id}/pause")
    async with served.http.get(address, headers=bearer | {"If-None-Match": tag}) as response:
        assert response.status == 200


@pytest.mark.parametrize("accepted", ["gzip, br", "identity"])
async def test_long_json_is_compressed_for_those_who_accept_it(
    accepted: str, served: Served
) -> None:
    goal = "Compare the prices of apples. " * 300
    served.world.script("ada")
    founded = await served.world.found(goal, start=False)
    address = f"{served.origin}/api/teams/{founded.team.id}"
    asked = {"Authorization": f"Bearer {TOKEN}", "Accept-Encoding": accepted}
    async with (
        aiohttp.ClientSession(auto_decompress=False) as http,
        http.get(address, headers=asked) as response,
    ):
        body = await response.read()
        how = response.headers.get("Content-Encoding")
        tag = response.headers["ETag"]
        assert response.headers["Vary"] == "Accept-Encoding"
        assert response.content_length == len(body)
    assert how == ("gzip" if accepted.startswith("gzip") else None)
    assert orjson.loads(gzip.decompress(body) if how else body)["goal"] == goal.strip()
    assert (len(body) < len(goal) / 10) == (how == "gzip")
    async with served.http.get(address, headers=asked | {"If-None-Match": tag}) as response:
        assert response.status == 304


async def pages(served: Served, path: str, limit: int, key: str = "id") -> list[Any]:
    """Read a whole list page by page; return the key of each item."""
    got: list[Any] = []
    while True:
        after = f"&after={got[-1]}" if got else ""
        status, page = await served.ask("GET", f"{path}?limit={limit}{after}")
        assert status == 200
        assert len(page) <= limit
        got += [item[key] for item in page]
        if not page:
            return got


@pytest.mark.slow
async def test_pages_of_a_list_have_every_item_once(on_each: Served) -> None:
    ada = on_each.world.script(
        "ada",
        says(call("create_work_node", task="one")),
        *(says(call("checkpoint", summary=f"step {n}")) for n in range(4)),
        says(call("finish", summary="done")),
    )
    founded = await on_each.world.found("Count")
    await on_each.world.settle()
    assert ada
    for number in range(6):
        await on_each.ask("POST", "/teams", {"goal": f"g{number}", "start": False})
    team = founded.team.id
    [node] = [n for n in await on_each.world.board(team) if n.parent_id is None]
    thread = await on_each.world.thread(node.id)
    lists = {
        "/teams": "id",
        f"/teams/{team}/board": "id",
        f"/teams/{team}/events": "seq",
        f"/agents/{founded.coordinator.id}/threads": "id",
        f"/threads/{thread.id}": "seq",
        "/audit": "id",
    }
    for path, key in lists.items():
        _, whole = await on_each.ask("GET", f"{path}?limit=500")
        expected = [item[key] for item in whole]
        assert len(expected) == len(set(expected)) >= 1
        for limit in (1, 2, 3, 500):
            assert await pages(on_each, path, limit, key) == expected, (path, limit)
        for bad in ("limit=0", "limit=501", "limit=x"):
            assert (await on_each.ask("GET", f"{path}?{bad}"))[0] == 422


async def test_pages_of_costs_have_every_node_once_and_the_first_has_the_sums(
    on_each: Served,
) -> None:
    on_each.world.script(
        "ada",
        *(says(call("create_work_node", task=f"Count shelf {n}")) for n in range(4)),
        says(call("finish", summary="done")),
    )
    founded = await on_each.world.found("Count")
    await on_each.world.settle()
    path = f"/teams/{founded.team.id}/cost"
    _, whole = await on_each.ask("GET", path)
    assert founded.node is not None
    read = TypeAdapter(TeamCosts).validate_python
    runs = read(whole).runs
    goal = next(bill for bill in runs if bill.node_id == founded.node.id)
    assert [bill.title for bill in goal.below] == [f"Count shelf {n}" for n in range(4)]
    assert add_up(bill.total for bill in runs) == CostSum(**whole["total"])
    assert (whole["total"]["calls"] > 0, whole["next"]) == (True, None)

    for limit in (1, 2, 5):
        _, page = await on_each.ask("GET", f"{path}?limit={limit}")
        assert {**page, "runs": whole["runs"], "next": None} == whole
        pages = [page]
        while page["next"] is not None:
            _, page = await on_each.ask("GET", f"{path}?limit={limit}&after={page['next']}")
            assert (page["total"]["calls"], page["by_agent"], page["budget"]) == (0, {}, None)
            pages.append(page)
        assert joined(map(read, pages)) == read(whole), limit


async def test_a_conversation_is_read_backwards_in_pages(on_each: Served) -> None:
    founded = await found(on_each)
    for number in range(7):
        await on_each.world.store.write(
            bus.send,
            Draft(
                team_id=founded.team.id,
                sender=founded.coordinator.id,
                recipient="human",
                text=str(number),
            ),
        )
    path, got, before = f"/agents/{founded.coordinator.id}/conversation", [], ""
    while True:
        _, page = await on_each.ask("GET", f"{path}?limit=3&before={before}")
        if not page:
            break
        got, before = [m["text"] for m in page] + got, page[0]["id"]
    assert got == [str(number) for number in range(7)]
    assert await on_each.world.store.read(
        messages.conversation, founded.team.id, founded.coordinator.id, OWNER
    )


ATTACHMENTS = [
    ({"name": "a.png", "media_type": "image/png", "data": "aGk="}, 202),
    ({"name": "a.png", "media_type": "image/png", "data": "not base64"}, 422),
    ({"name": "a.png", "media_type": "image/png", "data": "ä"}, 422),
    ({"name": "", "media_type": "image/png", "data": "aGk="}, 422),
    ({"name": "a", "media_type": "not a type", "data": "aGk="}, 422),
    ({"name": "a", "media_type": "image/png\r\nX: y", "data": "aGk="}, 422),
    ({"name": "n" * 201, "media_type": "image/png", "data": "aGk="}, 422),
    ({"name": "a", "media_type": "image/png"}, 422),
    ({"name": "a", "media_type": "image/png", "data": "A" * 14_000_004}, 422),
]


@pytest.mark.parametrize(("attachment", "status"), ATTACHMENTS, ids=range(len(ATTACHMENTS)))
async def test_an_attachment_needs_a_name_a_type_and_base64_data_within_the_limit(
    attachment: dict[str, str], status: int, served: Served
) -> None:
    founded = await found(served)
    path = f"/agents/{founded.coordinator.id}/send"
    body: dict[str, Any] = {"message": "look", "mode": "nudge", "attachments": [attachment]}
    assert await post(served, orjson.dumps(body), path) == status
    if status == 202:
        _, said = await served.ask("GET", f"/agents/{founded.coordinator.id}/conversation")
        assert said[-1]["attachments"] == [attachment]
        body["attachments"] *= 11
        assert await post(served, orjson.dumps(body), path) == 422


async def post(served: Served, body: Any, path: str = "/teams", **headers: str) -> int:
    """Send these bytes as a body; return the status."""
    sent = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json", **headers}
    address = f"{served.origin}/api{path}"
    data = io.BytesIO(body) if isinstance(body, bytes) else body
    async with served.http.post(address, data=data, headers=sent) as response:
        await response.read()
        return response.status


async def chunks(count: int, size: int = MIB) -> AsyncIterator[bytes]:
    yield b'{"goal": "'
    for _ in range(count):
        yield b"x" * size
    yield b'"}'


async def test_a_body_over_the_limit_is_refused_whole_or_chunked(served: Served) -> None:
    served.world.script("ada")
    assert await post(served, b'{"goal": "' + b"x" * (17 * MIB) + b'"}') == 413
    assert await post(served, chunks(17)) == 413
    # Within the limit for bodies, but too long for a goal.
    assert await post(served, chunks(1)) == 422
    assert await post(served, chunks(17), "/hooks/none", **{"X-Agiraph-Secret": "x"}) == 404
    assert (await served.ask("GET", "/teams")) == (200, [])


MALFORMED = [
    (b"[" * 100_000, 400),
    (b'{"goal":' * 50_000, 400),
    (b'{"goal": "x"', 422),
    (b"", 422),
    (b"null", 422),
    (b'{"goal": "\xff"}', 400),
    (b'{"goal": NaN}', 422),
    (b'{"goal": "x", "budget": {"usd": 1e999}}', 422),
    (b'{"goal": "x", "budget": {"tokens": 1' + b"0" * 5000 + b"}}", 400),
]


async def test_a_malformed_body_is_refused(served: Served) -> None:
    served.world.script("ada")
    for body, status in MALFORMED:
        assert await post(served, body) == status, body[:20]
    assert (await served.ask("GET", "/teams")) == (200, [])


async def test_null_characters_never_cause_a_server_error(on_each: Served) -> None:
    founded = await found(on_each)
    agent, team = founded.coordinator.id, founded.team.id
    for path, body in (
        ("/teams", {"goal": "a\0b", "start": False, "name": "a\0b", "soul": "\0"}),
        (f"/agents/{agent}/send", {"message": "a\0b", "client_id": "\0", "mode": "nudge"}),
        (f"/agents/{agent}/memories", {"content": "a\0b"}),
        (f"/teams/{team}/triggers", {"type": "webhook", "payload": {"task": "a\0b"}}),
        ("/tokens", {"name": "a\0b"}),
        ("/inbox/a%00b/answer", {"text": "x"}),
    ):
        assert (await on_each.ask("POST", path, body))[0] in (201, 202, 404, 422), path
    for path in (
        "/teams/a%00b",
        "/nodes/%00",
        "/teams?after=%00",
        "/inbox?after=%00",
        "/audit?after=%00",
    ):
        assert (await on_each.ask("GET", path))[0] in (200, 404, 422), path
    assert (await on_each.ask("POST", "/teams", {"goal": "g"}, Idempotency_Key="ü"))[0] == 201


@pytest.mark.slow
async def test_a_compressed_body_is_refused(served: Served) -> None:
    bomb = gzip.compress(b" " * 50 * MIB)
    assert await post(served, bomb, **{"Content-Encoding": "gzip"}) == 415


async def test_slow_bodies_do_not_delay_other_requests(served: Served) -> None:
    served.world.script("ada")
    head = f"POST /api/teams HTTP/1.1\r\nHost: 127.0.0.1:{served.port}\r\n"
    head += f"Authorization: Bearer {TOKEN}\r\nContent-Type: application/json\r\n"
    slow = [await asyncio.open_connection("127.0.0.1", served.port) for _ in range(50)]
    for _, writer in slow:
        writer.write(f"{head}Content-Length: 30\r\n\r\n{{".encode())
        await writer.drain()
    statuses = [await post(served, b'{"goal": "g", "start": false}') for _ in range(10)]
    assert statuses == [201] * 10
    for _, writer in slow:
        writer.close()
        await writer.wait_closed()


FORGOTTEN = [
    "/teams",
    "/inbox",
    "/teams/x/board",
    "/nothing",
    "/",
]


@pytest.mark.parametrize("accepted", ["application/json", "application/problem+json, */*"])
async def test_a_program_that_forgets_api_is_told_the_right_path(
    served: Served, accepted: str, wording: Wording
) -> None:
    headers = {"Authorization": f"Bearer {TOKEN}", "Accept": accepted}
    told: dict[str, str] = {}
    for path in FORGOTTEN:
        async with served.http.get(served.origin + path, headers=headers) as response:
            told[path] = (await response.json(content_type=None))["detail"]
        assert (response.status, response.content_type) == (404, "application/problem+json")
    wording(told)


async def test_a_program_that_accepts_anything_is_told_the_path_of_the_api(served: Served) -> None:
    headers = {"Authorization": f"Bearer {TOKEN}", "Accept": "*/*"}
    for method in ("GET", "POST"):
        async with served.http.request(
            method, f"{served.origin}/teams", headers=headers, json={"goal": "x"}
        ) as response:
            problem = await response.json(content_type=None)
        assert (response.status, problem["detail"].endswith("use '/api/teams'.")) == (404, True)


async def test_a_browser_that_opens_a_page_gets_the_page(served: Served) -> None:
    accepted = "text/html,application/xhtml+xml,application/json;q=0.9,*/*;q=0.8"
    for path in ("/", "/inbox", "/nothing"):
        headers = {"Accept": accepted}
        async with served.http.get(served.origin + path, headers=headers) as response:
            assert (response.status, response.content_type) == (200, "text/html")


async def test_half_a_character_in_a_request_is_replaced(on_each: Served) -> None:
    founded = await found(on_each)
    raw = b'{"message": "a\\ud800b \\ud83d\\ude00", "mode": "nudge"}'
    url = f"{on_each.origin}/api/agents/{founded.coordinator.id}/send"
    headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"}
    async with on_each.http.post(url, data=raw, headers=headers) as answer:
        assert answer.status in (200, 201, 202), await answer.text()
    said = await on_each.world.store.read(messages.from_people, founded.team.id, limit=5)
    assert "a\ufffdb \U0001f600" in [m.text for m in said]
