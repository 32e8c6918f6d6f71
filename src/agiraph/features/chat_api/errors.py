"""Errors: refusals of `/v1` in the form that clients of OpenAI's API read."""

from typing import Any

import orjson
from starlette.responses import Response

_TYPES = {401: "invalid_request_error", 403: "permission_error", 429: "rate_limit_error"}
_CODES = {401: "invalid_api_key", 403: "insufficient_permissions", 429: "rate_limit_exceeded"}


class Unsupported(Exception):
    """A request asks for something that an agent does not do; `param` names the field."""

    def __init__(self, message: str, param: str, *, code: str = "unsupported_parameter") -> None:
        super().__init__(message)
        self.param = param
        self.code = code


def body(
    status: int, message: str, *, param: str | None = None, code: str | None = None
) -> dict[str, Any]:
    """Return an error body in the form of OpenAI's API."""
    kind = _TYPES.get(status, "server_error" if status >= 500 else "invalid_request_error")
    code = code or _CODES.get(status)
    return {"error": {"message": message, "type": kind, "param": param, "code": code}}


def answer(
    status: int,
    message: str,
    *,
    param: str | None = None,
    code: str | None = None,
    headers: dict[str, str] | None = None,
) -> Response:
    said = orjson.dumps(body(status, message, param=param, code=code))
    return Response(said, status, media_type="application/json", headers=headers)
