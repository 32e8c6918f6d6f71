"""Routing: routers, the base of requests, and routes that are verbs of the store.

FastAPI's `include_router` would build each route a second time for every application, which takes
longer than the start of the rest of the server. So the application adds the routes of each router.
"""

import inspect
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Annotated, Any, ClassVar, Concatenate, ParamSpec, TypeVar

from fastapi import APIRouter, Depends, Request, Response
from fastapi.routing import APIRoute
from pydantic import BaseModel, ConfigDict
from starlette.requests import HTTPConnection
from typing_extensions import Unpack

from agiraph.api.deps import Idempotent
from agiraph.api.problems import documented
from agiraph.core.domain.text.json_text import clean
from agiraph.core.store.tx import Tx

P = ParamSpec("P")
R = TypeVar("R")
Verb = Callable[Concatenate[Tx, P], R]
InStore = Callable[..., Coroutine[Any, Any, Any]]


class Body(BaseModel):
    # No docstring: the schema would show it of each request without one.
    model_config: ClassVar[ConfigDict] = ConfigDict(extra="forbid", strict=True)

    def __init_subclass__(
        cls, example: Mapping[str, Any] | None = None, **config: Unpack[ConfigDict]
    ) -> None:
        super().__init_subclass__(**config)
        if example is not None:
            cls.model_config["json_schema_extra"] = {"example": dict(example)}


class _CleanRequest(Request):
    async def json(self) -> Any:
        return clean(await super().json())


class _Route(APIRoute):
    """A route that reads half a character (a lone surrogate) in a JSON body as U+FFFD."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def handle_clean(request: Request) -> Response:
            return await handle(_CleanRequest(request.scope, request.receive))

        return handle_clean


def _reading(connection: HTTPConnection) -> InStore:
    return connection.app.state.api.store.read


def _writing(connection: HTTPConnection) -> InStore:
    return connection.app.state.api.store.write_first


Reading = Annotated[InStore, Depends(_reading)]
Writing = Annotated[InStore, Depends(_writing)]


class Router(APIRouter):
    """Paths below /api that are listed under one tag in the schema.

    A function under `read`, `write` or `write_once` is a verb of the store: it gets a transaction,
    and then what FastAPI reads from the request. `errors` are the statuses of its refusals.
    """

    def __init__(self, tag: str) -> None:
        super().__init__(
            prefix="/api",
            tags=[tag],
            generate_unique_id_function=_operation_id,
            route_class=_Route,
        )

    def read(
        self, path: str, *errors: int, method: str = "GET"
    ) -> Callable[[Verb[P, R]], Verb[P, R]]:
        """Run the function in a transaction that reads."""
        return self._add(method, path, errors, Reading)

    def write(
        self, method: str, path: str, *errors: int, status: int = 200
    ) -> Callable[[Verb[P, R]], Verb[P, R]]:
        """Run the function in a transaction that writes."""
        return self._add(method, path, errors, Writing, status)

    def write_once(
        self, path: str, *errors: int, status: int = 200
    ) -> Callable[[Verb[P, R]], Verb[P, R]]:
        """Run the function once, however often a request comes with the same Idempotency-Key."""
        return self._add("POST", path, errors, Idempotent, status)

    def _add(
        self, method: str, path: str, errors: Sequence[int], store: Any, status: int = 200
    ) -> Callable[[Verb[P, R]], Verb[P, R]]:
        def add(verb: Verb[P, R]) -> Verb[P, R]:
            self.add_api_route(
                path,
                _as_route(verb, store, status),
                methods=[method],
                status_code=status,
                responses=documented(*errors),
            )
            return verb

        return add


def _as_route(verb: Callable[..., Any], store: Any, status: int) -> Callable[..., Any]:
    """Return what FastAPI calls: it takes what the verb takes after its transaction, and the
    store."""
    once = {"status": status} if store is Idempotent else {}

    async def route(in_store: InStore, **given: Any) -> Any:
        done = await in_store(verb, **once, **given)
        return Response(status_code=status) if done is None else done

    signature = inspect.signature(verb)
    taken = [p.replace(kind=p.KEYWORD_ONLY) for p in [*signature.parameters.values()][1:]]
    last = inspect.Parameter("in_store", inspect.Parameter.KEYWORD_ONLY, annotation=store)
    route.__signature__ = signature.replace(parameters=[*taken, last])  # type: ignore[attr-defined]
    route.__name__, route.__doc__ = verb.__name__, verb.__doc__
    return route


def _operation_id(route: APIRoute) -> str:
    return route.name
