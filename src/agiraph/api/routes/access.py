"""Access routes: sign-in, tokens and the audit log."""

from datetime import timedelta
from typing import Annotated, ClassVar

from fastapi import APIRouter, Depends, Query, Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse
from pydantic import BaseModel, ConfigDict, Field

from agiraph.api.access_control import COOKIE, Caller
from agiraph.api.deps import After, ApiDep, CallerDep, Limit, Moment, PersonDep
from agiraph.api.problems import documented
from agiraph.api.routers import api_router
from agiraph.api.views import IssuedToken, LinkView, TokenView
from agiraph.domain.access import AuditEntry, Scope, Token
from agiraph.services import access
from agiraph.store import access as rows
from agiraph.store.access import AuditFilter

router: APIRouter = api_router("access")
signin: APIRouter = APIRouter(include_in_schema=False)


class NewToken(BaseModel):
    model_config: ClassVar[ConfigDict] = ConfigDict(
        extra="forbid",
        strict=True,
        json_schema_extra={"example": {"name": "nightly report", "scope": "read"}},
    )

    name: str = Field(min_length=1, max_length=100, examples=["nightly report"])
    scope: Scope = "read"
    days: int | None = Field(default=None, ge=1, le=3650, description="How many days it is valid.")


def _audit_filter(
    who: Annotated[str, Query(max_length=200, description="A part of the token's name.")] = "",
    path: Annotated[str, Query(max_length=400, description="The beginning of the path.")] = "",
    since: Annotated[Moment | None, Query()] = None,
    until: Annotated[Moment | None, Query()] = None,
) -> AuditFilter:
    return AuditFilter(who=who, path=path, since=since, until=until)


AuditQuery = Annotated[AuditFilter, Depends(_audit_filter)]


def _view(granted: Token, caller: Caller) -> dict[str, object]:
    stored = {name: getattr(granted, name) for name in TokenView.model_fields if name != "is_own"}
    return {**stored, "is_own": granted.id == caller.token_id}


@router.post("/tokens", status_code=201, responses=documented())
async def create_token(body: NewToken, api: ApiDep, caller: CallerDep) -> IssuedToken:
    """Create a token with a scope for a program."""
    life = None if body.days is None else timedelta(days=body.days)
    issued = await api.store.write(
        access.issue, caller.person.id, kind="token", name=body.name, scope=body.scope, life=life
    )
    return IssuedToken.model_validate({**_view(issued.token, caller), "secret": issued.secret})


@router.get("/tokens", responses=documented())
async def list_tokens(api: ApiDep, caller: CallerDep) -> list[TokenView]:
    """List the tokens and sessions that are valid now."""
    return [
        TokenView.model_validate(_view(granted, caller))
        for granted in await api.store.read(rows.in_force)
    ]


@router.delete("/tokens/{token}", status_code=204, responses=documented(404))
async def revoke_token(token: str, api: ApiDep) -> Response:
    """Revoke a token. Open WebSockets of its owner are closed within seconds."""
    await api.store.write(access.revoke, token)
    return Response(status_code=204)


@router.post("/tokens/link", status_code=201, responses=documented())
async def create_link(api: ApiDep, person: PersonDep) -> LinkView:
    """Create a link that signs a browser in."""
    issued = await api.store.write(access.issue_link, person)
    return LinkView(path=f"/signin?code={issued.secret}", expires_at=issued.token.expires_at)


@router.get("/audit", responses=documented())
async def read_audit(
    api: ApiDep, only: AuditQuery, after: After = "", limit: Limit = 100, newest: bool = False
) -> list[AuditEntry]:
    """List who changed what, oldest first, or with `newest` the newest first."""
    return await api.store.read(
        rows.audit, after=after, limit=limit, is_newest_first=newest, only=only
    )


@signin.get("/signin")
async def sign_in(
    request: Request, api: ApiDep, code: Annotated[str, Query(max_length=200)]
) -> Response:
    """Exchange a one-time link for a session: its cookie, and the key that the page keeps."""
    issued = await api.store.write(access.redeem, code)
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
