"""Schema: everything the API can be asked and answers, as one OpenAPI document.

`python -m agiraph.api.schema` prints it.
"""

import sys
from typing import Any, cast

import orjson
from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from agiraph.api import frames
from agiraph.api.gate import COOKIE, OPEN, SUBPROTOCOL, wanted_scope
from agiraph.api.problems import MEDIA_TYPE, WORDS, Problem, documented

_REFS = "#/components/schemas/{model}"
_ABOUT = f"""\
Teams of agents: give them goals, watch them, talk to them, stop them.

**Who you are.** Send `Authorization: Bearer TOKEN`. A token has a scope, `read`, `talk`, `operate`
or `admin`; each operation says under `x-scope` what it takes. A browser has the cookie `{COOKIE}`
instead, which it gets for a sign-in link.

**Errors** are problem documents (RFC 9457) of the type `{MEDIA_TYPE}`; `detail` says what to do.

**Creating** takes an `Idempotency-Key`: the same key with the same request gives the same answer
and does nothing twice; with another request it is refused with 409.

**Lists** take `after`, the last id you have, and `limit`. What is read as JSON has an `ETag`.

**Live.** `WS /api/teams/{{team}}/events?after=SEQ` replays what came after that number, and goes
on. `WS /api/events` does so for all teams: say a `Subscribe` first. The server says `Frame`s. A
token may also be offered as the subprotocol `{SUBPROTOCOL}TOKEN`. Whoever falls behind is closed
with 4008 and comes again with the last number it got; 4401: the token is no longer good.
"""
_TAGS = {
    "teams": "Founding, redirecting, pausing and stopping teams.",
    "agents": "Who is on a team, and talking to them.",
    "board": "The work: nodes and stages.",
    "inbox": "What agents put before the person.",
    "knowledge": "What agents know of the person and of their subject.",
    "triggers": "Why agents wake by themselves.",
    "costs": "What it has come to.",
    "files": "What lies in a team's folder.",
    "events": "What happened, numbered.",
    "access": "Tokens, sign-in links, and the audit.",
    "health": "Whether the server lives and works. Open to anybody who reaches it.",
}


def describe(app: FastAPI) -> dict[str, Any]:
    """The document, with what holds for every operation written to each."""
    made = get_openapi(
        title=app.title,
        version=app.version,
        description=_ABOUT,
        routes=app.routes,
        tags=[{"name": name, "description": about} for name, about in _TAGS.items()],
        separate_input_output_schemas=False,
    )
    components = cast(dict[str, Any], made.setdefault("components", {}))
    schemas = components.setdefault("schemas", {})
    schemas |= frames.schemas(_REFS)
    problem = Problem.model_json_schema(ref_template=_REFS)
    schemas |= problem.pop("$defs", {})
    schemas["Problem"] = problem
    components["securitySchemes"] = {
        "token": {"type": "http", "scheme": "bearer"},
        "session": {"type": "apiKey", "in": "cookie", "name": COOKIE},
    }
    for path, operations in made["paths"].items():
        for method, operation in operations.items():
            _complete(operation, method.upper(), path)
    return made


def _complete(operation: dict[str, Any], method: str, path: str) -> None:
    answers = operation["responses"]
    takes_body = "requestBody" in operation or path.startswith("/api/hooks/")
    statuses = {400, 403, 503} | ({413, 415} if method not in ("GET", "HEAD") else set[int]())
    if path.startswith(OPEN):
        operation["security"] = []
    else:
        operation["security"] = [{"token": []}, {"session": []}]
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
    from agiraph.api.app import routes  # which uses this module

    document = routes().openapi()
    sys.stdout.buffer.write(orjson.dumps(document, option=orjson.OPT_INDENT_2) + b"\n")


if __name__ == "__main__":
    main()
