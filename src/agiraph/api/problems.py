"""Problems: every error as a document that says what went wrong and what to do (RFC 9457)."""

import logging
from collections.abc import Callable
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from pydantic import BaseModel, ConfigDict, Field
from starlette.exceptions import HTTPException

from agiraph.domain.errors import (
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

log = logging.getLogger("agiraph.api")

MEDIA_TYPE = "application/problem+json"
_STATUS: tuple[tuple[type[AgiraphError], int, str], ...] = (
    (NotFound, 404, "Not found"),
    (OutOfScope, 403, "Out of bounds"),
    (Conflict, 409, "Conflict"),
    (IllegalMove, 409, "Not possible now"),
    (Refused, 422, "Refused"),
    (Misconfigured, 422, "Not set up for this"),
    (StoreFull, 507, "No room left"),
    (StoreGone, 503, "The database file is gone"),
    (StoreUnavailable, 503, "The database cannot be reached"),
    (StoreDamaged, 503, "The database is damaged"),
    (NotReady, 503, "Background work fails"),
)


class Fault(BaseModel):
    """One thing wrong with a request."""

    where: str = Field(examples=["body.goal"])
    what: str = Field(examples=["Field required"])


class Problem(BaseModel):
    """What went wrong, and what to do about it."""

    model_config = ConfigDict(
        json_schema_extra={
            "example": {
                "type": "about:blank",
                "title": "Not found",
                "status": 404,
                "detail": "There is no team 'team_x'. `agiraph teams` lists them.",
            }
        }
    )

    type: str = "about:blank"
    title: str
    status: int
    detail: str = ""
    faults: list[Fault] = Field(default_factory=list[Fault])


def answer(
    status: int,
    title: str,
    detail: str = "",
    *,
    faults: list[Fault] | None = None,
    headers: dict[str, str] | None = None,
) -> Response:
    problem = Problem(title=title, status=status, detail=detail, faults=faults or [])
    return Response(
        problem.model_dump_json(exclude_defaults=False),
        status,
        media_type=MEDIA_TYPE,
        headers=headers,
    )


def of(error: AgiraphError) -> Response:
    """The document for one of our own errors."""
    for kind, status, title in _STATUS:
        if isinstance(error, kind):
            headers = {"Retry-After": "2"} if status == 503 else None
            return answer(status, title, str(error), headers=headers)
    log.error("an error nobody foresaw: %r", error)
    return answer(500, "Our mistake", "Something went wrong here; it is in the server's log.")


def documented(*statuses: int, everywhere: bool = True) -> dict[int | str, dict[str, Any]]:
    """How an operation may fail, for its description; with what may happen everywhere."""
    schema = {"$ref": "#/components/schemas/Problem"}
    return {
        status: {"description": WORDS[status], "content": {MEDIA_TYPE: {"schema": schema}}}
        for status in (*statuses, *((401, 403, 422, 429, 503) if everywhere else ()))
    }


WORDS = {
    200: "What was asked for",
    201: "It was made; this is it",
    202: "It is stored, and will be acted on",
    204: "It is done",
    400: "The request cannot be read",
    401: "No token, or a wrong one",
    403: "The token does not reach this far, or the request comes from elsewhere",
    404: "There is no such thing",
    409: "It was decided before, or is not possible now",
    413: "Too large",
    415: "Not JSON",
    422: "The request is understood and refused; the detail says what to do",
    429: "Too many requests; wait as long as Retry-After says",
    503: "The database cannot be reached for now",
}


def install(app: FastAPI, *, allowed: Callable[[str], list[str]]) -> None:
    """Let every error of this application become a problem document."""

    def ours(request: Request, error: Exception) -> Response:
        assert isinstance(error, AgiraphError)
        return of(error)

    def invalid(request: Request, error: Exception) -> Response:
        assert isinstance(error, RequestValidationError)
        faults = [
            Fault(where=".".join(map(str, fault["loc"])), what=str(fault["msg"]))
            for fault in error.errors()
        ]
        said = "; ".join(f"{fault.where}: {fault.what}" for fault in faults)
        return answer(422, "The request does not fit", said, faults=faults)

    def http(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        headers = dict(error.headers or {})
        detail = ""
        if error.status_code == 405:
            # Of several routes at one path, the framework names the methods of the first alone.
            methods = ", ".join(allowed(request.url.path))
            headers["Allow"], detail = methods, f"This path takes {methods}."
        if error.status_code == 404:
            detail = "There is nothing at this path; /api/openapi.json says what there is."
        return answer(error.status_code, str(error.detail), detail, headers=headers)

    def broken(request: Request, error: Exception) -> Response:
        log.error("%s %s broke", request.method, request.url.path, exc_info=error)
        return answer(500, "Our mistake", "Something went wrong here; it is in the server's log.")

    app.add_exception_handler(AgiraphError, ours)
    app.add_exception_handler(RequestValidationError, invalid)
    app.add_exception_handler(HTTPException, http)
    app.add_exception_handler(Exception, broken)
