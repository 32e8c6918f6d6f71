"""Schema: the OpenAPI document of the API.

`python -m agiraph.api.schema` prints it.
"""

import inspect
import sys
import warnings
from collections.abc import Callable, Iterable
from functools import cache
from typing import Annotated, Any, cast, get_args, get_origin

import fastapi
import orjson
from fastapi.datastructures import Default
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute
from pydantic.warnings import UnsupportedFieldAttributeWarning
from starlette.responses import JSONResponse

from agiraph.api import event_models
from agiraph.api.access_control import (
    COOKIE,
    KEY_HEADER,
    KEY_PARAMETER,
    KEY_SUBPROTOCOL,
    OPEN,
    SUBPROTOCOL,
    wanted_scope,
)
from agiraph.api.app import ROUTES
from agiraph.api.deps import Depends, Header, Path, Query
from agiraph.api.problems import MEDIA_TYPE, WORDS, Problem, documented
from agiraph.api.routing import Route

_REFS = "#/components/schemas/{model}"
_ABOUT = f"""\
Teams of agents: give them goals, watch them, talk to them, stop them.

**Authentication.** Send `Authorization: Bearer TOKEN`. A token has a scope: `read`, `talk`,
`operate` or `admin`; `x-scope` of an operation names the scope it needs. A page in a
browser sends the cookie `{COOKIE}` and the header `{KEY_HEADER}` instead, the two parts of the
secret that a sign-in link gives it; each is worth nothing alone. The key may also be the parameter
`{KEY_PARAMETER}` of a GET, or the subprotocol `{KEY_SUBPROTOCOL}KEY` of a WebSocket.

**Errors** are problem documents (RFC 9457) of the type `{MEDIA_TYPE}`; `detail` says what to do.

**Creating** accepts an `Idempotency-Key`: the same key with the same request returns the same
response and does nothing twice; with another request it gets 409.

**Lists** accept `after`, the last id you have, and `limit`. JSON responses to GET have an `ETag`.

**Live events.** `WS /api/teams/{{team}}/events?after=SEQ` replays the events after that number and
then sends new ones. `WS /api/events` does the same for all teams: send a `SubscribeFrame` first.
The server sends `Frame`s. The token may also be sent as the subprotocol `{SUBPROTOCOL}TOKEN`. The
server closes a slow client with 4008: connect again with the last number you got. 4401 means that
the token is no longer valid.
"""
_TAGS = {
    "teams": "Create, redirect, pause and stop teams.",
    "agents": "Members of a team, messages to them, their threads.",
    "board": "Nodes and stages.",
    "inbox": "Questions, approvals and reports for the person.",
    "grants": "What persons have allowed for longer than one call.",
    "knowledge": "What agents know about the person and their subject.",
    "triggers": "Schedules, events and webhooks that wake agents.",
    "costs": "What the work has cost.",
    "models": "Models, what they can do, and a test of one.",
    "files": "The files in a team's folder.",
    "events": "Numbered events of a team.",
    "channels": "Channels to the person, and the pairing of a phone or mailbox.",
    "access": "Tokens, sign-in links and the audit log.",
    "health": "Liveness and readiness. No token is needed.",
}


@cache
def document() -> dict[str, Any]:
    """Return the document, which nobody may change. It takes a second to make."""
    return describe(sorted(ROUTES.each(), key=lambda route: ":path}" in route.path))


def describe(routes: Iterable[Route]) -> dict[str, Any]:
    """Return the document of these routes; add to each operation what applies to all of them."""
    with warnings.catch_warnings():
        # FastAPI gives bodies an alias, and keeps pydantic from saying that this has no effect; but
        # bodies are built later, which is here.
        warnings.simplefilter("ignore", UnsupportedFieldAttributeWarning)
        made = get_openapi(
            title="agiraph",
            version="1",
            description=_ABOUT,
            routes=[_of_fastapi(route) for route in routes if route.is_listed],
            tags=[{"name": name, "description": about} for name, about in _TAGS.items()],
            separate_input_output_schemas=False,
        )
    components = cast(dict[str, Any], made.setdefault("components", {}))
    schemas = components.setdefault("schemas", {})
    schemas |= event_models.schemas(_REFS)
    problem = Problem.model_json_schema(ref_template=_REFS)
    schemas |= problem.pop("$defs", {})
    schemas["Problem"] = problem
    components["securitySchemes"] = {
        "token": {"type": "http", "scheme": "bearer"},
        "session": {"type": "apiKey", "in": "cookie", "name": COOKIE},
        "key": {"type": "apiKey", "in": "header", "name": KEY_HEADER},
    }
    for path, operations in made["paths"].items():
        for method, operation in operations.items():
            _complete(operation, method.upper(), path)
    return made


def _of_fastapi(route: Route) -> APIRoute:
    """Return the route as FastAPI describes it."""
    return APIRoute(
        route.path,
        _marked(route.act),
        methods=set(route.methods),
        status_code=route.status_code,
        responses=route.responses,
        response_model=route.response_model or Default(None),
        response_class=route.response_class or Default(JSONResponse),
        tags=[route.tag],
        generate_unique_id_function=lambda made: made.name,
    )


def _marked(act: Callable[..., Any]) -> Callable[..., Any]:
    """Return a stand-in for a function, with FastAPI's marks in place of our own."""

    def stand_in() -> None: ...

    signature = inspect.signature(act)
    parameters = [
        parameter.replace(annotation=_annotation(parameter.annotation))
        for parameter in signature.parameters.values()
    ]
    stand_in.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    stand_in.__name__, stand_in.__doc__ = act.__name__, act.__doc__
    return stand_in


def _annotation(kind: Any) -> Any:
    if get_origin(kind) is not Annotated:
        return kind
    kind, *marks = get_args(kind)
    for mark in marks:
        kind = Annotated[kind, _mark(mark)]
    return kind


def _mark(mark: object) -> object:
    match mark:
        case Depends(make):
            return fastapi.Depends(_marked(make))
        case Header(facts=facts):
            return fastapi.Header(**facts)
        case Path(facts=facts):
            return fastapi.Path(**facts)
        case Query(facts=facts):
            return fastapi.Query(**facts)
        case _:
            return mark


def _complete(operation: dict[str, Any], method: str, path: str) -> None:
    answers = operation["responses"]
    takes_body = "requestBody" in operation or path.startswith("/api/hooks/")
    statuses = {400, 403, 503} | ({413, 415} if method not in ("GET", "HEAD") else set[int]())
    if path.startswith(OPEN):
        operation["security"] = []
    else:
        operation["security"] = [{"token": []}, {"session": [], "key": []}]
        operation["x-scope"] = wanted_scope(method, path)
        statuses |= {401, 429}
    if takes_body or operation.get("parameters"):
        statuses.add(422)
    for status, said in documented(*sorted(statuses), everywhere=False).items():
        answers.setdefault(str(status), said)
    for status in answers:
        if int(status) < 400 and answers[status]["description"] == "Successful Response":
            answers[status]["description"] = WORDS[int(status)]
    operation["responses"] = dict(sorted(answers.items()))


def main() -> None:
    sys.stdout.buffer.write(orjson.dumps(document(), option=orjson.OPT_INDENT_2) + b"\n")


if __name__ == "__main__":
    main()
