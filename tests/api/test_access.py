"""Tokens, sign-in links, rate limit, audit log, and the addresses that the server listens on."""

import asyncio
import contextlib
import logging
import sys
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple

import aiohttp
import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.typing import Subprotocol

from agiraph import config, serving
from agiraph.api.deps import Timeouts
from agiraph.core.domain.errors import Misconfigured
from agiraph.core.domain.persons import OWNER
from agiraph.core.domain.provenance.access import SCOPES, Scope, covers
from agiraph.core.services import access
from agiraph.core.store.access import PASSES
from agiraph.core.store.tx import Tx
from agiraph.location import Address
from tests.api.document import document
from tests.api.serving import Served
from tests.api.serving import serving as served_api


def operations() -> list[tuple[str, str, Scope]]:
    """Return method, path and scope of each operation that needs a scope."""
    return [
        (method.upper(), path, operation["x-scope"])
        for path, operations in document()["paths"].items()
        for method, operation in operations.items()
        if "x-scope" in operation
    ]


async def issued(served: Served, scope: Any = "read", **more: Any) -> access.Issued:
    return await served.world.store.write(
        access.issue, OWNER, kind="token", name=f"a {scope} token", scope=scope, **more
    )


@pytest.mark.slow
async def test_every_operation_refuses_a_token_of_a_lesser_scope(served: Served) -> None:
    secrets: dict[Scope, str] = {scope: (await issued(served, scope)).secret for scope in SCOPES}
    for method, path, wanted in operations():
        concrete = path.removeprefix("/api").replace("{", "").replace("}", "")
        for scope, secret in secrets.items():
            body = None if method in ("GET", "DELETE") else {}
            status, answer = await served.ask(
                method, concrete, body, Authorization=f"Bearer {secret}"
            )
            is_refused = status == 403 and answer["title"] == "Scope too small"
            assert is_refused is not covers(scope, wanted), (method, path, scope, status)
    assert {wanted for _, _, wanted in operations()} == set(SCOPES)


async def test_a_team_named_like_an_operation_still_needs_the_scope_to_archive_it(
    served: Served,
) -> None:
    served.world.script("ada")
    talker = (await issued(served, "talk")).secret
    for name in ("send", "answer", "read", "broadcast"):
        await served.ask("POST", "/teams", {"goal": "g", "name": name, "start": False})
        status, _ = await served.ask("DELETE", f"/teams/{name}", Authorization=f"Bearer {talker}")
        assert status == 403


async def test_a_token_is_created_listed_used_and_revoked(served: Served) -> None:
    status, made = await served.ask("POST", "/tokens", {"name": "nightly", "scope": "read"})
    assert status == 201
    bearer = {"Authorization": f"Bearer {made['secret']}"}
    assert (await served.ask("GET", "/teams", **bearer))[0] == 200
    status, listed = await served.ask("GET", "/tokens")
    assert [token["name"] for token in listed] == ["nightly"]
    assert "secret" not in listed[0]
    assert await served.ask("DELETE", f"/tokens/{made['id']}") == (204, "")
    assert (await served.ask("GET", "/teams", **bearer))[0] == 401
    assert (await served.ask("GET", "/tokens"))[1] == []


async def test_an_expired_token_is_refused(served: Served) -> None:
    _, made = await served.ask("POST", "/tokens", {"name": "short", "scope": "read", "days": 1})
    bearer = {"Authorization": f"Bearer {made['secret']}"}
    assert (await served.ask("GET", "/teams", **bearer))[0] == 200
    served.world.clock.advance(days=1)
    assert (await served.ask("GET", "/teams", **bearer))[0] == 401


async def test_a_websocket_is_closed_when_its_token_is_revoked(tmp_path: Path) -> None:
    async with served_api(tmp_path / "home", timeouts=Timeouts(token_check_s=0.01)) as served:
        lasting, ending = await issued(served), await issued(served)
        async with (
            served.follow(token=lasting.secret) as stays,
            served.follow(token=ending.secret) as goes,
        ):
            for line in (stays, goes):
                await line.send('{"op": "subscribe", "cursors": {}}')
                assert '"hello"' in str(await line.recv())
            await served.ask("DELETE", f"/tokens/{ending.token.id}")
            with pytest.raises(ConnectionClosed) as closed:
                await goes.recv()
            assert closed.value.rcvd is not None
            assert closed.value.rcvd.code == 4401
            await stays.close()
            assert stays.close_code == 1000


async def test_a_websocket_with_a_wrong_token_is_refused_with_403(served: Served) -> None:
    with pytest.raises(InvalidStatus) as refused:
        async with served.follow(token="wrong"):
            pass
    assert refused.value.response.status_code == 403


async def open_link(
    served: Served, code: str, accept: str = "*/*", site: str = "none"
) -> aiohttp.ClientResponse:
    address = f"{served.origin}/signin?code={code}"
    headers = {"Accept": accept, "Sec-Fetch-Site": site, "Sec-Fetch-Mode": "navigate"}
    async with served.http.get(address, headers=headers, allow_redirects=False) as response:
        await response.read()
        return response


class Session(NamedTuple):
    """What a browser has after it has opened a sign-in link."""

    cookie: dict[str, str]
    key: str

    @property
    def headers(self) -> dict[str, str]:
        return {**self.cookie, "X-Agiraph-Key": self.key}


async def signed_in(served: Served) -> Session:
    issued = await served.world.store.write(access.issue_link, OWNER)
    visit = await open_link(served, issued.secret)
    cookie = visit.cookies["agiraph_session"].value
    key = visit.headers["Location"].removeprefix("/#key=")
    return Session({"Cookie": f"agiraph_session={cookie}"}, key)


async def answered(
    served: Served, path: str, headers: dict[str, str]
) -> tuple[aiohttp.ClientResponse, str]:
    """Return the response to a GET with these headers alone, and its text."""
    address = f"{served.origin}{path}"
    async with served.http.get(address, headers=headers, allow_redirects=False) as response:
        return response, await response.text(errors="replace")


async def status_of(served: Served, headers: dict[str, str], path: str = "/api/teams") -> int:
    return (await answered(served, path, headers))[0].status


async def test_a_sign_in_link_creates_one_session_and_works_once(served: Served) -> None:
    _, link = await served.ask("POST", "/tokens/link")
    code = link["path"].partition("=")[2]
    first = await open_link(served, code)
    cookie = first.cookies["agiraph_session"]
    path, _, key = first.headers["Location"].partition("#key=")
    assert (first.status, path) == (303, "/")
    assert min(len(cookie.value), len(key)) >= 20
    assert (cookie["httponly"], cookie["samesite"], cookie["path"]) == (True, "strict", "/")
    assert first.headers["Referrer-Policy"] == "no-referrer"
    session = {"Cookie": f"agiraph_session={cookie.value}", "X-Agiraph-Key": key}
    async with served.http.get(f"{served.origin}/api/tokens", headers=session) as response:
        own = [token["kind"] for token in await response.json() if token["is_own"]]
    _, listed = await served.ask("GET", "/tokens")
    assert (own, [token for token in listed if token["is_own"]]) == (["session"], [])
    for used in (code, "unknown", ""):
        program = await open_link(served, used)
        browser = await open_link(served, used, "text/html,*/*")
        from_mail = await open_link(served, used, "text/html,*/*", "cross-site")
        assert program.status == 422
        assert (browser.status, browser.headers["Location"]) == (303, "/#used-link")
        assert from_mail.headers["Refresh"] == "0; url=/#used-link"
        for answer in (program, browser, from_mail):
            assert "agiraph_session" not in answer.cookies


async def test_neither_the_cookie_nor_the_key_of_a_session_is_worth_anything_alone(
    served: Served,
) -> None:
    session, other = await signed_in(served), await signed_in(served)
    assert await status_of(served, session.headers) == 200
    for part in (
        session.cookie,
        {"X-Agiraph-Key": session.key},
        {**session.cookie, "X-Agiraph-Key": ""},
        {**session.cookie, "X-Agiraph-Key": other.key},
        {"Authorization": f"Bearer {session.cookie['Cookie'].partition('=')[2]}"},
        {"Authorization": f"Bearer {session.key}"},
        {**session.headers, "Authorization": "Bearer wrong"},
    ):
        assert await status_of(served, part) == 401, part
    assert await status_of(served, {}, f"/api/teams?key={session.key}") == 401


async def test_a_session_from_before_the_key_is_refused_however_its_secret_is_sent(
    served: Served,
) -> None:
    secret = "the-whole-secret-of-a-session-in-an-old-cookie"

    def store_old_session(tx: Tx) -> None:
        issued = access.issue(tx, OWNER, kind="session", name="browser", scope="admin")
        PASSES.update(tx, issued.token.id, digest=access.digest(secret))

    await served.world.store.write(store_old_session)
    for sent in (
        {"Cookie": f"agiraph_session={secret}"},
        {"Cookie": f"agiraph_session={secret[:20]}", "X-Agiraph-Key": secret[20:]},
        {"Authorization": f"Bearer {secret}"},
    ):
        assert await status_of(served, sent) == 401, sent


async def test_a_page_sends_the_key_of_its_websocket_as_a_subprotocol_that_is_not_echoed(
    tmp_path: Path,
) -> None:
    async with served_api(tmp_path / "home", timeouts=Timeouts(token_check_s=0.01)) as served:
        session = await signed_in(served)
        address = f"ws://127.0.0.1:{served.port}/api/events"
        offered = [Subprotocol(f"agiraph.key.{session.key}"), Subprotocol("agiraph")]
        with pytest.raises(InvalidStatus):
            async with connect(address, additional_headers=session.cookie):
                pass
        with pytest.raises(InvalidStatus):
            async with connect(address, subprotocols=offered):
                pass
        async with connect(
            address, additional_headers=session.cookie, subprotocols=offered
        ) as line:
            assert line.subprotocol == "agiraph"
            await line.send('{"op": "subscribe", "cursors": {}}')
            assert '"hello"' in str(await line.recv())
            # It is the session's own WebSocket, and ends with the session.
            _, listed = await served.ask("GET", "/tokens")
            [token] = [token for token in listed if token["kind"] == "session"]
            await served.ask("DELETE", f"/tokens/{token['id']}")
            with pytest.raises(ConnectionClosed) as closed:
                await line.recv()
            assert closed.value.rcvd is not None
            assert closed.value.rcvd.code == 4401


async def test_a_link_sends_the_key_in_its_address_and_no_answer_repeats_it(
    served: Served, caplog: pytest.LogCaptureFixture
) -> None:
    served.world.script("ada")
    caplog.set_level(logging.INFO)
    session = await signed_in(served)
    _, team = await served.ask("POST", "/teams", {"goal": "g", "start": False})
    base = f"/api/teams/{team['id']}"
    for path, status in (
        (f"{base}/export?key={session.key}", 200),
        (f"{base}/archive?path=memory&key={session.key}", 422),
        (f"{base}/files?v=1&key={session.key}&x=2", 200),
        (f"{base}/events?after=x&key={session.key}", 422),
        (f"/api/teams/?key={session.key}", 307),
        (f"/api/nothing?key={session.key}", 404),
    ):
        response, text = await answered(served, path, session.cookie)
        assert response.status == status, (path, text[:500])
        assert session.key not in f"{text}{response.headers}", path
        assert await status_of(served, {}, path) == 401
    assert session.key not in caplog.text


async def test_the_rate_limit_and_the_audit_know_a_session_by_its_token(served: Served) -> None:
    session = await signed_in(served)
    body = {"name": "nightly", "scope": "read"}
    address = f"{served.origin}/api/tokens"
    async with served.http.post(address, json=body, headers=session.headers) as made:
        assert made.status == 201
    _, audit = await served.ask("GET", "/audit")
    _, listed = await served.ask("GET", "/tokens")
    [token] = [token for token in listed if token["kind"] == "session"]
    assert audit[0]["who"] == f"browser ({token['id']})"
    assert session.key not in str(audit)
    served.api.access.burst, served.api.access.rate = 2.0, 0.001
    statuses = [await status_of(served, session.headers) for _ in range(3)]
    assert statuses == [200, 200, 429]
    assert await status_of(served, (await signed_in(served)).headers) == 200


async def test_of_eight_browsers_that_race_for_a_sign_in_link_one_gets_a_session(
    served: Served,
) -> None:
    issued = await served.world.store.write(access.issue_link, OWNER)
    visits = await asyncio.gather(*(open_link(served, issued.secret) for _ in range(8)))
    assert sorted(v.status < 400 for v in visits) == [False] * 7 + [True]


async def test_a_link_for_another_device_tells_who_signed_in_with_it(served: Served) -> None:
    access_control = served.api.access
    access_control.is_secure, access_control.proxy = True, "https://team.example"
    _, link = await served.ask("POST", "/tokens/link?minutes=5")
    lives = served.world.clock.now() + timedelta(minutes=5)
    assert link["expires_at"].startswith(f"{lives:%Y-%m-%dT%H:%M:%S}")
    assert link["url"] == f"https://team.example{link['path']}"
    status, use = await served.ask("GET", f"/tokens/links/{link['id']}")
    assert (status, use["used_at"], use["session"]) == (200, None, None)

    phone = {"User-Agent": "Mozilla/5.0 (Linux; Android 14) Chrome/140 Mobile Safari/537.36"}
    opened, _ = await answered(served, link["path"], {**phone, "Accept": "text/html"})
    assert opened.headers["Location"].startswith("/#key=")
    _, use = await served.ask("GET", f"/tokens/links/{link['id']}")
    session = use["session"]
    told = {name: session[name] for name in ("kind", "name", "scope", "is_own")}
    assert told == {"kind": "session", "name": "phone", "scope": "admin", "is_own": False}
    assert use["used_at"] is not None
    _, listed = await served.ask("GET", "/tokens")
    assert session["id"] in [one["id"] for one in listed]

    assert (await served.ask("DELETE", f"/tokens/{session['id']}"))[0] == 204
    _, use = await served.ask("GET", f"/tokens/links/{link['id']}")
    assert (use["session"], use["used_at"] is None) == (None, False)
    assert (await served.ask("GET", f"/tokens/links/{session['id']}"))[0] == 404
    assert (await served.ask("POST", "/tokens/link?minutes=16"))[0] == 422


async def test_a_link_for_another_device_has_no_address_that_only_this_machine_reaches(
    served: Served,
) -> None:
    for is_secure, proxy in ((False, ""), (True, "https://localhost:8443"), (True, "")):
        served.api.access.is_secure, served.api.access.proxy = is_secure, proxy
        _, link = await served.ask("POST", "/tokens/link", X_Forwarded_Proto="https")
        assert link["url"] == ""


async def test_an_expired_or_unknown_sign_in_link_is_refused(served: Served) -> None:
    issued = await served.world.store.write(access.issue_link, OWNER)
    served.world.clock.advance(minutes=15)
    assert (await open_link(served, issued.secret)).status >= 400
    assert (await open_link(served, "made-up")).status >= 400


async def test_a_changed_token_file_takes_effect_with_the_next_request(tmp_path: Path) -> None:
    settings = config.load({"AGIRAPH_HOME": str(tmp_path / "home"), "AGIRAPH_PORT": "0"})
    async with (
        serving.serve(settings, asyncio.Event(), works=False) as opened,
        aiohttp.ClientSession() as http,
    ):
        path = opened.runtime.home.token_path
        old, new = path.read_text().strip(), "another-token-of-enough-characters"

        async def status(token: str) -> int:
            headers = {"Authorization": f"Bearer {token}"}
            address = f"http://127.0.0.1:{opened.port}/api/teams"
            async with http.get(address, headers=headers) as response:
                return response.status

        assert path.stat().st_mode & 0o777 == 0o600
        assert (await status(old), await status(new)) == (200, 401)
        path.write_text(new + "\n")
        assert (await status(old), await status(new)) == (401, 200)
        path.write_text("")
        assert (await status(old), await status(new), await status("")) == (401, 401, 401)


async def test_the_rate_limit_applies_to_each_caller(served: Served) -> None:
    served.api.access.burst, served.api.access.rate = 3.0, 0.001
    statuses = [(await served.ask("GET", "/teams"))[0] for _ in range(4)]
    assert statuses == [200, 200, 200, 429]
    other = {"Authorization": f"Bearer {(await issued(served)).secret}"}
    assert (await served.ask("GET", "/teams", **other))[0] == 200
    assert (await served.ask("GET", "/healthz"))[0] == 200


async def test_the_audit_log_says_who_sent_which_request_with_what_status(served: Served) -> None:
    served.world.script("ada")
    operator = await issued(served, "operate")
    bearer = {"Authorization": f"Bearer {operator.secret}"}
    _, team = await served.ask("POST", "/teams", {"goal": "g", "start": False}, **bearer)
    await served.ask("POST", "/teams", {"gaol": "g"})
    await served.ask("GET", "/teams")
    await served.ask("DELETE", f"/teams/{team['id']}")
    _, audit = await served.ask("GET", "/audit")
    assert [(d["who"], d["method"], d["path"], d["status"]) for d in audit] == [
        (f"a operate token ({operator.token.id})", "POST", "/api/teams", 201),
        ("admin", "POST", "/api/teams", 422),
        ("admin", "DELETE", f"/api/teams/{team['id']}", 204),
    ]
    assert operator.secret not in str(audit)


async def test_the_audit_names_a_request_that_failed_with_an_error_of_ours(served: Served) -> None:
    def damage(tx: Tx) -> None:
        tx.run("alter table teams rename to teams_before")

    served.world.script("ada")
    await served.world.store.write(damage)
    status, _ = await served.ask("POST", "/teams", {"goal": "g", "start": False})
    _, audit = await served.ask("GET", "/audit")
    assert status == 500
    assert [(d["method"], d["path"], d["status"]) for d in audit] == [("POST", "/api/teams", 500)]


BOUND: list[object] = []


@pytest.fixture
def bound_addresses() -> Iterator[list[object]]:
    """The addresses that sockets are bound to during the test, from an audit hook."""
    if not BOUND:
        BOUND.append(None)
        sys.addaudithook(lambda name, args: BOUND.append(args) if name == "socket.bind" else None)
    del BOUND[1:]
    yield BOUND
    del BOUND[1:]


@pytest.mark.parametrize(
    "host",
    [
        *("0.0.0.0", "::", "*", "192.168.1.2", "10.0.0.1", "169.254.1.1", "100.64.0.1", "fe80::1"),
        *("2001:db8::1", "example.org", "localhost.example.org", "127.0.0.1.example.org", "0"),
    ],
)
async def test_no_socket_is_bound_to_a_public_address_without_tls(
    host: str, tmp_path: Path, bound_addresses: list[object]
) -> None:
    environ = {"AGIRAPH_HOME": str(tmp_path), "AGIRAPH_HOST": host, "AGIRAPH_PORT": "0"}
    with pytest.raises(Misconfigured, match=r"certificate"):
        async with serving.serve(config.load(environ), asyncio.Event(), works=False):
            pass
    assert bound_addresses == [None]
    Address(host=host, proxy="https://agents.example.org").check()
    Address(host=host, certificate=tmp_path / "c", key=tmp_path / "k").check()


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "::1", "127.8.8.8"])
async def test_loopback_addresses_are_served_without_tls(
    host: str, tmp_path: Path, bound_addresses: list[object]
) -> None:
    environ = {"AGIRAPH_HOME": str(tmp_path), "AGIRAPH_HOST": host, "AGIRAPH_PORT": "0"}
    with contextlib.suppress(Misconfigured):  # a machine may have no IPv6
        async with serving.serve(config.load(environ), asyncio.Event(), works=False):
            pass
    assert len(bound_addresses) > 1
