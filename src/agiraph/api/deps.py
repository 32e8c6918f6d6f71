"""Deps: what every route is handed."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated, Any

import orjson
from fastapi import Depends, Header, Query, Request
from fastapi.encoders import jsonable_encoder
from fastapi.responses import Response
from starlette.requests import HTTPConnection

from agiraph.api.gate import Caller, Door
from agiraph.api.live import Hub
from agiraph.domain.time import Clock
from agiraph.home.layout import Home
from agiraph.services import access
from agiraph.store.database import Store
from agiraph.store.tx import Tx


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """How long things may take on an open line, in seconds."""

    ping: float = 15.0
    look: float = 5.0
    """Between two looks at whether a client's pass still holds."""
    send: float = 10.0
    """For a client to take one frame."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Api:
    """What the routes work with. They write rows; what runs notices."""

    store: Store
    home: Home
    clock: Clock
    door: Door
    hub: Hub = field(default_factory=Hub)
    model: str = "demo"
    """For teams that name none."""
    check_model: Callable[[str], object] = lambda name: None
    """Raises what is wrong with a model's name, if anything is."""
    build: str = "dev"
    failing: Callable[[], list[str]] = lambda: []
    """A sentence for each background activity of this process that fails just now."""
    pace: Pace = Pace()


def _api(connection: HTTPConnection) -> Api:
    return connection.app.state.api


def _caller(connection: HTTPConnection) -> Caller:
    return connection.state.caller


TheApi = Annotated[Api, Depends(_api)]
TheCaller = Annotated[Caller, Depends(_caller)]
After = Annotated[str, Query(description="The last id of the page before.", max_length=200)]
Limit = Annotated[int, Query(ge=1, le=500, description="How many at most.")]


class _Once:
    """Does what a request asks once, however often it comes with the same Idempotency-Key."""

    def __init__(
        self,
        request: Request,
        api: TheApi,
        caller: TheCaller,
        idempotency_key: Annotated[
            str | None,
            Header(
                description="Send the same key again after a lost answer: nothing is done twice.",
                max_length=access.MAX_KEY_CHARS,
            ),
        ] = None,
    ) -> None:
        self._request = request
        self._api = api
        self._who = caller.name
        self._key = idempotency_key

    async def __call__(self, verb: Callable[[Tx], Any], *, status: int) -> Response:
        """Run the verb, whose value is the answer, in one transaction with the key."""
        if self._key is None:
            body = orjson.dumps(jsonable_encoder(await self._api.store.write(verb)))
            return _json(status, body)
        asked = f"{self._request.method} {self._request.url.path}\n".encode()
        asked += await self._request.body()

        def act(tx: Tx) -> Any:
            return jsonable_encoder(verb(tx))

        status, body = await self._api.store.write(
            access.run_once, who=self._who, key=self._key, request=asked, status=status, act=act
        )
        return _json(status, body)


def _json(status: int, body: bytes) -> Response:
    return Response(body, status, media_type="application/json")


Once = Annotated[_Once, Depends(_Once)]
