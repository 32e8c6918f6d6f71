"""Sharing: links by which a report is read without signing in, and what such a reader can see."""

import json
import logging
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import timedelta
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from agiraph.api.access_control import wanted_scope
from agiraph.core.domain.persons import OWNER
from agiraph.core.domain.records.doubts import Doubt
from agiraph.core.services import access
from agiraph.core.store import events
from agiraph.core.store.access import AUDIT
from agiraph.core.store.nodes import NODES
from agiraph.core.store.tx import Tx
from agiraph.features.sharing import page, routes, rows, verbs
from agiraph.testing import World, call, says
from tests.api.serving import Served, serving
from tests.research.kit import FACTS, QUESTION, TALL, Cast, reads, scene
from tests.web_ui.payloads import PAYLOADS

pytestmark = pytest.mark.needs("sharing", "research")

HOST = "team.example"
REPORT = (
    "## Prices\n\nApples cost [2 euros](https://apples.example/).\n\n| fruit | euros |\n|---|---|\n"
    "| apple | 2 |\n\n![a chart](chart.png) [the table](data/table.csv), dear [1], `[1]` or [3]"
)

TAGS = (
    "head body main header article section footer h1 h2 h3 h4 h5 h6 p div span a em strong s sup"
    " ul ol li blockquote pre code hr br table thead tbody tr th td"
)
ATTRIBUTES = "class dir rel aria-label tabindex role value id start"


@dataclass(frozen=True, slots=True)
class Shelf:
    """A server behind a reverse proxy, and work that has delivered a report."""

    served: Served
    node: str
    team: dict[str, Any]

    @property
    def path(self) -> str:
        return f"/nodes/{self.node}/shares"

    async def share(self, **body: Any) -> tuple[dict[str, Any], str]:
        """Make a link; return what the API says of it, and the path of its page."""
        status, made = await self.served.ask("POST", self.path, body)
        assert status == 201, made
        return made, made["url"].removeprefix(f"https://{HOST}")

    async def listed(self) -> list[dict[str, Any]]:
        return (await self.served.ask("GET", self.path))[1]["shares"]

    async def read(self, path: str, **headers: str) -> tuple[int, str, dict[str, str]]:
        """Open a page as a stranger's browser does, behind a link in a mail."""
        sent = {"Host": HOST, "Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}
        address = f"{self.served.origin}{path}"
        async with self.served.http.get(address, headers=sent | headers) as response:
            told = {name.lower(): value for name, value in response.headers.items()}
            return response.status, await response.text(), told

    async def steps(self) -> list[str]:
        """Return what the team's events say of links."""
        found = await self.served.world.store.read(events.after, self.team["id"], 0)
        return [one.data["step"] for one in found if one.type == "report.shared"]


FILES = {
    "data/table.csv": "fruit,price\napple,2\n",
    "sources.json": json.dumps(
        {
            "sources": [
                {
                    **{"number": 1, "title": "Apples <b>today</b>", "site": "apples.example"},
                    **{"url": "https://apples.example/today", "evidence": ["e1"]},
                },
                {
                    **{"number": 2, "title": "", "site": "pears.example"},
                    **{"url": "javascript:alert(1)", "evidence": ["e2", "e9"]},
                },
            ],
            "citations": [],
        }
    ),
    "evidence.jsonl": (
        '{"id": "e1", "quote": "An apple is <i>2 euros</i>."}\n'
        '{"id": "e2", "quote": "Pears are dear.", "checked": "unchecked"}\n'
    ),
}
"""What the work publishes; the last two as research does."""


@pytest.fixture
async def shelf(tmp_path: Path, database_url: str) -> AsyncIterator[Shelf]:
    opening = serving(tmp_path / "home", proxy=f"https://{HOST}", database_url=database_url)
    async with opening as served:
        write = [call("write_file", path=name, content=text) for name, text in FILES.items()]
        served.world.script("ada", says(*write), says(call("finish", summary=REPORT)))
        goal = {"goal": "Compare prices", "learns": False}
        _, team = await served.ask("POST", "/teams", goal)
        await served.world.settle()
        _, found = await served.ask("GET", f"/teams/{team['id']}/results")
        yield Shelf(served, found["results"][0]["node_id"], team)


class Parsed(HTMLParser):
    """What a browser would make of a page that could do harm."""

    def __init__(self) -> None:
        super().__init__()
        self.faults: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in TAGS.split():
            self.faults.append(tag)
        for name, value in attrs:
            is_safe = (value or "").startswith(("https://", "http://", "mailto:", "#source-"))
            if name not in ATTRIBUTES.split() and not (name == "href" and is_safe):
                self.faults.append(f"{tag} {name}={value}")


def changes(node: str, **fields: Any) -> Any:
    def change(tx: Tx) -> None:
        NODES.update(tx, node, **fields)

    return change


async def test_a_report_is_read_without_signing_in_and_nothing_else_is(shelf: Shelf) -> None:
    doubt = Doubt(kind="file", words="The price of pears was not found.")
    await shelf.served.world.store.write(changes(shelf.node, doubts=(doubt,)))
    made, path = await shelf.share()
    lives = shelf.served.world.clock.now() + timedelta(days=7)
    assert made["expires_at"].startswith(f"{lives:%Y-%m-%dT%H:%M}")
    status, shown, headers = await shelf.read(path)
    assert status == 200
    for part in (
        *("<h1 dir=auto>Compare prices</h1>", ">2 euros</a>", "<td>apple</td>"),
        *("[image, not included: a chart]", "<span>the table</span>"),
        *("1 point not confirmed", "The price of pears was not found."),
        *("Files that are not included", "data/table.csv"),
    ):
        assert part in shown, part
    assert shown.count("href=") == 3
    assert headers["cache-control"] == "no-store"
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["x-robots-tag"] == "noindex, nofollow, noarchive"
    policy = headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; style-src 'sha256-")
    assert not re.search("script-src|unsafe|sandbox allow-scripts", policy)
    assert "set-cookie" not in headers
    secret = path.removeprefix("/shared/")
    bearer = {"Authorization": f"Bearer {secret}"}
    assert await shelf.served.ask("GET", "/teams", **bearer) == (
        *(401,),
        (await shelf.served.ask("GET", "/teams", Authorization="Bearer x"))[1],
    )


async def test_a_mark_leads_to_the_quotations_of_its_source(shelf: Shelf) -> None:
    _, path = await shelf.share()
    shown = (await shelf.read(path))[1]
    mark = '<sup><a href="#source-1" aria-label="Source 1">1</a></sup>'
    assert f"dear {mark}, <code>[1]</code> or [3]" in shown
    apples, pears = shown.partition("<li value=1 id=source-1>")[2].split("<li value=2 id=source-2>")
    assert 'href="https://apples.example/today"' in apples
    assert ">Apples &lt;b&gt;today&lt;/b&gt;</a>" in apples
    assert "<blockquote dir=auto>An apple is &lt;i&gt;2 euros&lt;/i&gt;.</blockquote>" in apples
    assert "could not be checked" not in apples
    assert pears.startswith("pears.example <span")
    assert "<blockquote dir=auto>Pears are dear.</blockquote><p class=soft>This quotation" in pears
    assert "javascript" not in shown
    # Of files that are not as they were published, nothing is shown.
    home = shelf.served.world.path / "teams" / shelf.team["id"]
    (home / "nodes" / shelf.node / "published" / "evidence.jsonl").write_text("{}\n")
    shown = (await shelf.read(path))[1]
    assert ("Pears are dear" in shown, "#source-1" in shown, "dear [1]" in shown) == (
        *(False, False, True),
    )


async def test_links_that_do_not_work_get_one_answer(shelf: Shelf) -> None:
    """Unknown, revoked, too old, of a report that was changed, of a deleted team."""
    store, clock = shelf.served.world.store, shelf.served.world.clock

    async def answer(path: str) -> tuple[int, str, dict[str, str]]:
        status, said, headers = await shelf.read(path)
        left = {
            name: value for name, value in headers.items() if name not in ("date", "x-request-id")
        }
        return status, said, left

    unknown = await answer("/shared/made-up")
    assert (unknown[0], routes.GONE in unknown[1]) == (404, True)
    assert await answer("/shared/") == await answer("/shared/a/b") == unknown

    revoked, path = await shelf.share(days=30)
    assert (await shelf.read(path))[0] == 200
    assert await shelf.served.ask("DELETE", f"{shelf.path}/{revoked['id']}") == (204, "")
    assert await answer(path) == unknown

    _, path = await shelf.share(days=1)
    clock.advance(days=1)
    assert await answer(path) == unknown

    _, path = await shelf.share()
    await store.write(changes(shelf.node, result="Apples are free."))
    assert await answer(path) == unknown
    assert await shelf.listed() == []
    await store.write(changes(shelf.node, result=REPORT))
    assert (await shelf.read(path))[0] == 200

    body = {"name": shelf.team["name"]}
    gone = f"/teams/{shelf.team['id']}/delete"
    deleted, _ = await shelf.served.ask("POST", gone, body)
    assert deleted == 202
    assert await answer(path) == unknown


async def test_a_link_is_listed_and_counted_and_its_secret_is_stored_nowhere(
    shelf: Shelf, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    made, path = await shelf.share(days=1)
    for _ in range(3):
        assert (await shelf.read(path))[0] == 200
    await shelf.read("/shared/made-up")
    [listed] = await shelf.listed()
    assert (listed["id"], listed["opens"], listed["person_id"]) == (made["id"], 3, OWNER)
    await shelf.served.ask("DELETE", f"{shelf.path}/{made['id']}")
    await shelf.served.ask("DELETE", f"{shelf.path}/{made['id']}")
    assert await shelf.listed() == []
    assert await shelf.steps() == ["made", "opened", "revoked"]

    audit = await shelf.served.world.store.read(lambda tx: AUDIT.select(tx, "true order by id"))
    own = f"/api{shelf.path}/{made['id']}"
    assert [(one.method, one.path, one.status) for one in audit][1:] == [
        ("POST", f"/api{shelf.path}", 201),
        ("GET", own, 200),
        ("DELETE", own, 204),
        ("DELETE", own, 204),
    ]
    assert audit[2].who == f"Shared link ({made['id']})"

    secret = path.removeprefix("/shared/")
    stored = await shelf.served.world.store.read(
        lambda tx: [rows.SHARES.select(tx, "true"), AUDIT.select(tx, "true")]
    )
    told = await shelf.served.world.store.read(events.after, shelf.team["id"], 0)
    logged = [getattr(one, "facts", {}).get("path", "") for one in caplog.records]
    assert logged.count("/shared/") == 4
    for kept in (str(stored), str(told), caplog.text, str(logged)):
        assert secret not in kept
        assert "made-up" not in kept


async def test_without_https_no_link_is_made_and_none_shows_a_report(shelf: Shelf) -> None:
    _, path = await shelf.share()
    plain = await shelf.read(path, Host=f"127.0.0.1:{shelf.served.port}")
    assert (plain[0], "over https only" in plain[1], "Apples" in plain[1]) == (403, True, False)
    unknown = await shelf.read("/shared/made-up", Host=f"127.0.0.1:{shelf.served.port}")
    assert unknown[:2] == plain[:2]
    assert await shelf.steps() == ["made"]

    shelf.served.api.access.is_secure, shelf.served.api.access.proxy = False, ""
    status, said = await shelf.served.ask("POST", shelf.path, {})
    assert (status, said["detail"]) == (422, routes.WHY_OFF)
    listed = await shelf.served.ask("GET", shelf.path)
    assert (listed[1]["why_off"], len(listed[1]["shares"])) == (routes.WHY_OFF, 1)
    assert (await shelf.read(path))[0] == 403


async def test_wrong_requests_for_links_are_refused(shelf: Shelf) -> None:
    ask = shelf.served.ask
    assert (await ask("POST", shelf.path, {"days": 8}))[0] == 422
    assert (await ask("POST", "/nodes/none/shares", {}))[0] == 404
    assert (await ask("GET", "/nodes/none/shares"))[0] == 404
    made, path = await shelf.share()
    assert (await ask("DELETE", f"/nodes/none/shares/{made['id']}"))[0] == 404
    assert (await ask("DELETE", f"{shelf.path}/none"))[0] == 404
    store = shelf.served.world.store
    about = {"kind": "token", "name": "runs teams", "scope": "operate"}
    runs_teams = await store.write(access.issue, OWNER, **about)
    bearer = f"Bearer {runs_teams.secret}"
    assert (await ask("POST", shelf.path, {}, Authorization=bearer))[0] == 403
    assert (await ask("DELETE", f"{shelf.path}/{made['id']}", Authorization=bearer))[0] == 403
    assert wanted_scope("GET", f"/api{shelf.path}") == "read"
    assert (await shelf.read(path))[0] == 200
    await store.write(changes(shelf.node, result="x" * (verbs.LONGEST + 1)))
    assert (await ask("POST", shelf.path, {}))[0] == 422
    await store.write(changes(shelf.node, result=""))
    status, said = await ask("POST", shelf.path, {})
    assert (status, said["detail"]) == (
        422,
        "This work has delivered no report yet. Share it when it is done.",
    )


async def test_a_link_is_opened_as_often_as_people_do_and_not_more(shelf: Shelf) -> None:
    _, path = await shelf.share()
    answers = [(await shelf.read(path))[0] for _ in range(int(routes.OPENS_AT_ONCE) + 20)]
    assert answers[: int(routes.OPENS_AT_ONCE)] == [200] * int(routes.OPENS_AT_ONCE)
    assert 429 in answers


async def test_a_hostile_report_is_text(world: World) -> None:
    """Whatever it holds, the page has no script, loads nothing, and its links lead to the web."""
    world.script("ada", says(call("finish", summary="x")))
    team = await world.found("Grow beans.")
    await world.settle()
    [node, *_] = await world.board(team.team.id)
    for payload in PAYLOADS:
        text = payload.replace("RUN", "canary(1)").replace("AWAY", "https://away.invalid")
        await world.store.write(changes(node.id, result=f"{text}\n\n> {text}\n\n- [x]({text})"))
        made = await world.store.write(verbs.make, node.id, OWNER, life=timedelta(days=1))
        found = await world.store.read(rows.shown_by, made.secret)
        assert found is not None
        parsed = Parsed()
        parsed.feed(page.of_report(found, {}).partition("</style>")[2])
        assert parsed.faults == [], text


async def test_the_quotations_of_research_stand_below_its_report(
    tmp_path: Path, database_url: str
) -> None:
    cast = Cast(readers={QUESTION: reads(FACTS, ("It is 330 metres tall.", TALL))})
    async with scene(tmp_path, cast, database_url=database_url) as it:
        job = await it.start()
        made = await it.world.store.write(verbs.make, job.id, OWNER, life=timedelta(days=1))
        found = await it.world.store.read(rows.shown_by, made.secret)
        assert found is not None
        published = it.world.path / "teams" / job.team_id / "nodes" / job.id / "published"
        files = {name: (published / name).read_bytes() for name in page.QUOTATION_FILES}
        shown = page.of_report(found, files)
        assert '<sup><a href="#source-1" aria-label="Source 1">1</a></sup>' in shown
        assert f'<li value=1 id=source-1><a href="{FACTS}"' in shown
        assert f"<blockquote dir=auto>{TALL}</blockquote>" in shown
        assert "not included" not in shown
