"""Problems: error responses as problem documents (RFC 9457)."""

import logging
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict, Field
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from agiraph.core.domain.errors import (
    AgiraphError,
    Conflict,
    IllegalMove,
    Misconfigured,
    NotFound,
    NotReady,
    OutOfScope,
    Refused,
    StoreDamaged,
    StoreFull,
    StoreGone,
    StoreUnavailable,
)
from agiraph.core.domain.features import error_form

log: logging.Logger = logging.getLogger("agiraph.api")

MEDIA_TYPE = "application/problem+json"
_STATUS: tuple[tuple[type[AgiraphError], int, str], ...] = (
    # The first match counts, so subclasses stand before their base: those above `Refused` are all
    # `Refused` too, and a full disk is a `StoreUnavailable`.
    (NotFound, 404, "Not found"),
    (OutOfScope, 403, "Outside the scope"),
    (Conflict, 409, "Conflict"),
    (IllegalMove, 409, "Not possible now"),
    (Refused, 422, "Refused"),
    (Misconfigured, 422, "Not configured"),
    (StoreFull, 507, "Disk full"),
    (StoreGone, 503, "The database file is gone"),
    (StoreUnavailable, 503, "The database cannot be reached"),
    (StoreDamaged, 503, "The database is damaged"),
    (NotReady, 503, "Background work fails"),
)


class FieldError(BaseModel):
    """One invalid field of a request."""

    where: str = Field(examples=["body.goal"])
    what: str = Field(examples=["Field required"])


class InvalidRequest(Exception):
    """Something in a request is missing or wrong."""

    def __init__(self, faults: Sequence[FieldError]) -> None:
        super().__init__(faults)
        self.faults: list[FieldError] = list(faults)


class Problem(BaseModel):
    """What went wrong, and what to do about it."""

    model_config: ClassVar[ConfigDict] = ConfigDict(
        defer_build=True,
        json_schema_extra={
            "example": {
                "type": "about:blank",
                "title": "Not found",
                "status": 404,
                "detail": "There is no team 'team_x'. `agiraph teams` lists them.",
            }
        },
    )

    type: str = "about:blank"
    title: str
    status: int
    detail: str = ""
    faults: list[FieldError] = Field(default_factory=list[FieldError])


def answer(
    status: int,
    title: str,
    detail: str = "",
    *,
    faults: list[FieldError] | None = None,
    headers: dict[str, str] | None = None,
) -> Response:
    problem = Problem(title=title, status=status, detail=detail, faults=faults or [])
    return Response(
        problem.model_dump_json(exclude_defaults=False),
        status,
        media_type=MEDIA_TYPE,
        headers=headers,
    )


def of(error: AgiraphError, path: str = "") -> Response:
    """Return the response for an `AgiraphError`."""
    for kind, status, title in _STATUS:
        if isinstance(error, kind):
            headers = {"Retry-After": "2"} if status == 503 else None
            return in_form(path, status, title, str(error), headers=headers)
    log.error("no HTTP status is defined for the error %r", error)
    return in_form(path, 500, "Internal error", "The server failed; its log has the details.")


def in_form(
    path: str, status: int, title: str, detail: str = "", *, headers: dict[str, str] | None = None
) -> Response:
    """Return an error in the form that clients of this path read: a feature's own, else a problem
    document."""
    if (own := error_form(path)) is not None:
        return own(status, detail or title, headers=headers)
    return answer(status, title, detail, headers=headers)


def documented(*statuses: int, everywhere: bool = True) -> dict[int | str, dict[str, Any]]:
    """Return the OpenAPI responses for these error statuses and those of every operation."""
    schema = {"$ref": "#/components/schemas/Problem"}
    return {
        status: {"description": WORDS[status], "content": {MEDIA_TYPE: {"schema": schema}}}
        for status in (*statuses, *((401, 403, 422, 429, 503) if everywhere else ()))
    }


WORDS = {
    200: "The requested data",
    201: "Created",
    202: "Stored; it is processed in the background",
    204: "Done",
    400: "The request is malformed",
    401: "The token is missing or invalid",
    403: "The token's scope is too small, or the request comes from another site",
    404: "Not found",
    409: "Already decided, or not possible in the current state",
    413: "Too large",
    415: "Not JSON",
    422: "The request is invalid or refused; `detail` says what to do",
    429: "Too many requests; wait for the time in Retry-After",
    503: "The database cannot be reached now",
}


def install(app: Starlette, *, allowed: Callable[[str], list[str]]) -> None:
    """Convert every error of this application to a problem document."""

    def ours(request: Request, error: Exception) -> Response:
        assert isinstance(error, AgiraphError)
        return of(error, request.url.path)

    def invalid(request: Request, error: Exception) -> Response:
        assert isinstance(error, InvalidRequest)
        said = "; ".join(f"{fault.where}: {fault.what}" for fault in error.faults)
        return answer(422, "Invalid request", said, faults=error.faults)

    def http(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        headers = dict(error.headers or {})
        detail = ""
        if error.status_code == 405:
            # With several routes at one path, Starlette names only the methods of the first.
            methods = ", ".join(allowed(request.url.path))
            headers["Allow"], detail = methods, f"This path takes {methods}."
        if error.status_code == 404:
            detail = "There is nothing at this path; /api/openapi.json lists all paths."
            if allowed(f"/api{request.url.path}"):
                detail = f"The paths of the API begin with /api: use '/api{request.url.path}'."
        title = str(error.detail)
        return in_form(request.url.path, error.status_code, title, detail, headers=headers)

    def broken(request: Request, error: Exception) -> Response:
        log.error("%s %s failed", request.method, request.url.path, exc_info=error)
        said = "The server failed; its log has the details."
        return in_form(request.url.path, 500, "Internal error", said)

    app.add_exception_handler(AgiraphError, ours)
    app.add_exception_handler(InvalidRequest, invalid)
    app.add_exception_handler(HTTPException, http)
    app.add_exception_handler(Exception, broken)
