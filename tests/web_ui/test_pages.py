"""WebUiMiddleware: serves the built files, with strict headers, and nothing else."""

import gzip
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from starlette.responses import PlainTextResponse
from starlette.types import Receive, Scope, Send

from agiraph.api.middleware import CONTENT_POLICY
from agiraph.api.web_ui import POLICY, WebUiMiddleware
from tests.api.serving import Served, serving

INDEX = "<!doctype html><title>agiraph</title>"
SCRIPT = "console.log('here')\n" * 50


class HttpResponse(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes


async def fake_api(scope: Scope, receive: Receive, send: Send) -> None:
    """The application behind the middleware."""
    await PlainTextResponse("the API")(scope, receive, send)


async def get(app: WebUiMiddleware, path: str, method: str = "GET", **headers: str) -> HttpResponse:
    sent: list[Any] = []
    raw = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    scope = {"type": "http", "method": method, "path": path, "headers": raw, "query_string": b""}

    async def receive() -> Any:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Any) -> None:
        sent.append(message)

    await app(scope, receive, send)
    found = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
    return HttpResponse(sent[0]["status"], found, b"".join(m.get("body", b"") for m in sent[1:]))


@pytest.fixture
def pages(tmp_path: Path) -> WebUiMiddleware:
    (tmp_path / "outside.txt").write_text("a secret")
    built = tmp_path / "built"
    (built / "assets").mkdir(parents=True)
    (built / "index.html").write_text(INDEX)
    (built / "assets" / "index-abc.js").write_text(SCRIPT)
    return WebUiMiddleware(fake_api, built)


@pytest.mark.parametrize("path", ["/", "/inbox", "/t/team_1/a/agent_1", "/index.html", "/apiary"])
async def test_every_path_serves_the_page_without_caching(
    pages: WebUiMiddleware, path: str
) -> None:
    got = await get(pages, path)

    assert (got.status, got.body.decode()) == (200, INDEX)
    assert got.headers["cache-control"] == "no-cache"
    assert got.headers["content-security-policy"] == POLICY
    assert got.headers["x-content-type-options"] == "nosniff"
    assert got.headers["x-frame-options"] == "DENY"


def test_the_content_security_policy_allows_only_own_resources() -> None:
    rules = {name: rest for name, _, rest in (rule.partition(" ") for rule in POLICY.split("; "))}

    assert rules["script-src"] == rules["connect-src"] == rules["font-src"] == "'self'"
    assert rules["default-src"] == rules["style-src-attr"] == rules["form-action"] == "'none'"
    assert rules["img-src"] == "'self' data: blob:"
    assert rules["frame-ancestors"] == rules["base-uri"] == rules["object-src"] == "'none'"
    assert rules["require-trusted-types-for"] == "'script'"
    assert "http" not in POLICY


async def test_a_hashed_file_is_cached_for_ever(pages: WebUiMiddleware) -> None:
    got = await get(pages, "/assets/index-abc.js")

    assert (got.status, got.body.decode()) == (200, SCRIPT)
    assert got.headers["cache-control"] == "public, max-age=31536000, immutable"
    assert got.headers["content-type"] == "text/javascript; charset=utf-8"


async def test_a_file_is_compressed_if_the_client_accepts_gzip(pages: WebUiMiddleware) -> None:
    got = await get(pages, "/assets/index-abc.js", accept_encoding="br, gzip")

    assert got.headers["content-encoding"] == "gzip"
    assert gzip.decompress(got.body).decode() == SCRIPT
    assert len(got.body) < len(SCRIPT) / 5


async def test_a_file_of_another_build_is_404_and_not_the_page(pages: WebUiMiddleware) -> None:
    got = await get(pages, "/assets/index-old.js")

    assert (got.status, got.headers["content-type"]) == (404, "application/problem+json")


@pytest.mark.parametrize(
    "path",
    ["/../outside.txt", "/assets/../../outside.txt", "//outside.txt", "/assets/%2e%2e/outside.txt"],
)
async def test_no_path_leads_out_of_the_built_files(pages: WebUiMiddleware, path: str) -> None:
    assert b"a secret" not in (await get(pages, path)).body


@pytest.mark.parametrize(
    ("path", "method"), [("/api/teams", "GET"), ("/api", "GET"), ("/inbox", "POST")]
)
async def test_api_paths_and_other_methods_go_to_the_api(
    pages: WebUiMiddleware, path: str, method: str
) -> None:
    assert (await get(pages, path, method)).body == b"the API"


async def test_without_built_files_the_page_says_what_to_do(tmp_path: Path) -> None:
    got = await get(WebUiMiddleware(fake_api, tmp_path / "nothing"), "/")

    assert got.status == 200
    assert b"make web" in got.body


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[Served]:
    async with serving(tmp_path / "home") as opened:
        yield opened


async def test_the_page_needs_no_sign_in_but_the_api_does(served: Served) -> None:
    async with served.http.get(f"{served.origin}/t/somewhere") as page:
        assert (page.status, page.content_type) == (200, "text/html")
    async with served.http.get(f"{served.origin}/api/teams") as data:
        assert data.status == 401


async def test_the_page_is_refused_under_another_host_name(served: Served) -> None:
    async with served.http.get(f"{served.origin}/", headers={"Host": "evil.invalid"}) as page:
        assert page.status == 403


NOT_THE_PAGE = [
    ("/api/teams", 401),
    ("/api/healthz", 200),
    ("/api/nothing", 401),
    ("/assets/nothing.js", 404),
]


async def test_responses_that_are_not_the_page_are_sandboxed(served: Served) -> None:
    for path, status in NOT_THE_PAGE:
        async with served.http.get(f"{served.origin}{path}") as got:
            assert got.status == status
            assert got.headers["Content-Security-Policy"] == CONTENT_POLICY
            assert got.headers["X-Content-Type-Options"] == "nosniff"
            assert got.headers["Cross-Origin-Resource-Policy"] == "same-origin"


async def test_a_refusal_of_access_control_is_sandboxed(served: Served) -> None:
    async with served.http.get(served.origin, headers={"Host": "evil.invalid"}) as got:
        assert (got.status, got.headers["Content-Security-Policy"]) == (403, CONTENT_POLICY)
