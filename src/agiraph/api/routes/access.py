"""Access routes: sign-in, tokens, the audit log, and the caller's own record."""

from datetime import timedelta
from typing import Annotated, Self
from urllib.parse import urlsplit

from pydantic import AwareDatetime, Field, model_validator
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from agiraph.api.access_control import COOKIE
from agiraph.api.deps import (
    After,
    ApiDep,
    CallerDep,
    Depends,
    HttpsOrigin,
    Limit,
    Moment,
    PersonDep,
    Query,
    is_loopback,
)
from agiraph.api.routing import Body, Router
from agiraph.api.server_views import IssuedToken, LinkUseView, LinkView, PersonView, TokenView
from agiraph.core.domain.errors import Refused
from agiraph.core.domain.provenance.access import AuditEntry, Scope
from agiraph.core.services import access
from agiraph.core.services.mail import absence
from agiraph.core.store import access as rows
from agiraph.core.store import channels
from agiraph.core.store.access import AuditFilter
from agiraph.core.store.teams import PERSONS
from agiraph.core.store.tx import Tx

router: Router = Router("access")
signin: Router = Router(prefix="")

AWAY = (
    "Until when you are away, with an offset; null: you are back. Nothing is sent to your channels "
    "meanwhile. Questions wait in the inbox, and those with a time limit are given up after it."
)
ZONE = (
    "Your time zone, such as Europe/Berlin: times without an offset are read in it, and agents are "
    "told times in it. Empty: not known, which counts as UTC."
)

MOST_MINUTES = int(access.LINK_LIFE.total_seconds()) // 60
"""How long a sign-in link works at most."""


class NewToken(Body, example={"name": "nightly report", "scope": "read"}):
    name: str = Field(min_length=1, max_length=100, examples=["nightly report"])
    scope: Scope = "read"
    days: int | None = Field(default=None, ge=1, le=3650, description="How many days it is valid.")


class PersonChanges(Body, strict=False, example={"away_until": "2030-05-20T09:00:00+02:00"}):
    """What a person says about themselves."""

    away_until: Annotated[AwareDatetime | None, Field(description=AWAY)] = None
    zone: Annotated[str | None, Field(max_length=100, description=ZONE)] = None

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        if not self.model_fields_set:
            raise ValueError("set `away_until` or `zone`")
        return self


def _audit_filter(
    who: Annotated[str, Query(max_length=200, description="A part of the token's name.")] = "",
    path: Annotated[str, Query(max_length=400, description="The beginning of the path.")] = "",
    since: Annotated[Moment | None, Query()] = None,
    until: Annotated[Moment | None, Query()] = None,
) -> AuditFilter:
    return AuditFilter(who=who, path=path, since=since, until=until)


AuditQuery = Annotated[AuditFilter, Depends(_audit_filter)]


@router.write("POST", "/tokens", status=201)
def create_token(tx: Tx, body: NewToken, caller: CallerDep) -> IssuedToken:
    """Create a token with a scope for a program."""
    life = None if body.days is None else timedelta(days=body.days)
    issued = access.issue(
        tx, caller.person.id, kind="token", name=body.name, scope=body.scope, life=life
    )
    return IssuedToken.of(issued.token, is_own=False, secret=issued.secret)


@router.read("/tokens")
def list_tokens(tx: Tx, caller: CallerDep) -> list[TokenView]:
    """List the tokens and sessions that are valid now."""
    return [TokenView.of(one, is_own=one.id == caller.token_id) for one in rows.in_force(tx)]


@router.write("DELETE", "/tokens/{token}", 404, status=204)
def revoke_token(tx: Tx, token: str) -> None:
    """Revoke a token. Open WebSockets of its owner are closed within seconds."""
    access.revoke(tx, token)


@router.write("POST", "/tokens/link", status=201)
def create_link(
    tx: Tx,
    person: PersonDep,
    origin: HttpsOrigin,
    minutes: Annotated[int, Query(ge=1, le=MOST_MINUTES, description="How long it works.")] = (
        MOST_MINUTES
    ),
) -> LinkView:
    """Create a link that signs a browser in."""
    made, secret = access.issue_link(tx, person, life=timedelta(minutes=minutes))
    path = f"/signin?code={secret}"
    url = "" if not origin or is_loopback(urlsplit(origin).hostname) else f"{origin}{path}"
    return LinkView(id=made.id, path=path, url=url, expires_at=made.expires_at)


@router.read("/tokens/links/{link}", 404)
def read_link(tx: Tx, link: str, caller: CallerDep) -> LinkUseView:
    """Return whether a sign-in link of your own was used, and by which session."""
    found, session = access.use_of_link(tx, link, caller.person.id)
    signed_in = None if session is None or session.revoked_at else session
    return LinkUseView.of(
        found,
        session=signed_in and TokenView.of(signed_in, is_own=signed_in.id == caller.token_id),
    )


@router.read("/audit")
def read_audit(
    tx: Tx, only: AuditQuery, after: After = "", limit: Limit = 100, newest: bool = False
) -> list[AuditEntry]:
    """List who changed what, oldest first, or with `newest` the newest first."""
    return rows.audit(tx, after=after, limit=limit, is_newest_first=newest, only=only)


@signin.get("/signin")
async def sign_in(
    request: Request, api: ApiDep, code: Annotated[str, Query(max_length=200)] = ""
) -> Response:
    """Exchange a one-time link for a session: its cookie, and the key that the page keeps.

    A browser with a link that no longer works is led to the page: only the page knows whether
    this browser is signed in already, as only it has the key.
    """
    try:
        issued = await api.store.write_first(access.redeem, code, name=_kind_of_device(request))
    except Refused:
        if "text/html" not in request.headers.get("accept", "").lower():
            raise
        return _start("/#used-link", request)
    half = len(issued.secret) // 2
    response = _start(f"/#key={issued.secret[half:]}", request)
    response.set_cookie(
        COOKIE,
        issued.secret[:half],
        max_age=int(access.SESSION_LIFE.total_seconds()),
        # Scripts cannot read the cookie, and other sites' pages cannot make the browser send it.
        # Over plain http, which only loopback uses, some browsers would not store a Secure cookie.
        httponly=True,
        samesite="strict",
        secure=api.access.is_secure,
        path="/",
    )
    response.headers["Referrer-Policy"] = "no-referrer"
    return response


def _kind_of_device(request: Request) -> str:
    """Return the name of a session, by which its person knows it again."""
    # Browsers of phones say "Mobi" (developer.mozilla.org, Browser detection using the user agent).
    return "phone" if "Mobi" in request.headers.get("user-agent", "") else "browser"


def _start(address: str, request: Request) -> Response:
    """Return the response that leads a browser to this address.

    That removes the code from the address bar and the browser's history. What follows a # is not
    sent to any server; the page takes it out of the address.
    """
    if request.headers.get("sec-fetch-site") in (None, "none", "same-origin"):
        return RedirectResponse(address, status_code=303)
    # After a link in a mail, the browser reports a redirect as another site's too, which is
    # refused. An empty page of this server leads to the address as its own link does. It must not
    # be sandboxed: then it would be no page of this server.
    policy = "default-src 'none'; frame-ancestors 'none'"
    headers = {"Refresh": f"0; url={address}", "Content-Security-Policy": policy}
    return HTMLResponse("", headers=headers | {"Cache-Control": "no-store"})


@router.read("/persons/me")
def read_me(tx: Tx, person: PersonDep) -> PersonView:
    """Return the person whose token this is."""
    return PersonView.of(
        PERSONS.get(tx, person),
        away_until=absence.until(tx, person),
        channels=[each.name for each in channels.every(tx) if each.person_id == person],
    )


@router.write("PATCH", "/persons/me")
def change_me(tx: Tx, body: PersonChanges, person: PersonDep) -> PersonView:
    """Say that you are away, or back, or in which time zone you live."""
    if body.zone is not None:
        absence.live_in(tx, person, body.zone.strip())
    if "away_until" in body.model_fields_set:
        absence.leave(tx, person, body.away_until)
    return read_me(tx, person)
