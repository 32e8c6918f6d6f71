"""Routing: routers, their routes, the base of requests, and routes that are verbs of the store.

What a route takes and returns is looked at when its first request comes: to do so for all routes
would take longer than the start of the rest of the server. FastAPI only writes the schema.
"""

import inspect
import json
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping, Sequence
from dataclasses import field
from functools import cache, cached_property
from typing import Annotated, Any, ClassVar, Concatenate, ParamSpec, TypedDict, TypeVar

from pydantic import BaseModel, ConfigDict, TypeAdapter
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, HTTPConnection, Request
from starlette.responses import Response
from starlette.routing import (
    BaseRoute,
    Match,
    compile_path,
    get_route_path,  # pyright: ignore[reportPrivateImportUsage]
    request_response,
    websocket_session,
)
from starlette.types import Receive, Scope, Send
from starlette.websockets import WebSocket
from typing_extensions import Unpack

from agiraph.api.deps import ABSENT, Binding, Depends, Idempotent
from agiraph.api.problems import FieldError, InvalidRequest, documented
from agiraph.core.domain.features import found_at
from agiraph.core.domain.text.json_text import clean
from agiraph.core.domain.value import dataclass
from agiraph.core.store.tx import Tx

P = ParamSpec("P")
R = TypeVar("R")
F = TypeVar("F", bound=Callable[..., Awaitable[Any]])
Verb = Callable[Concatenate[Tx, P], R]
InStore = Callable[..., Coroutine[Any, Any, Any]]
Responses = dict[int | str, dict[str, Any]]
_ROUTE = "agiraph.route"
"""Key in a request's scope of the route that fits it."""
_INVALID = 1008
"""The code with which a WebSocket is closed whose address is wrong (RFC 6455)."""


class Body(BaseModel):
    # No docstring: the schema would show it of each request without one.
    model_config: ClassVar[ConfigDict] = ConfigDict(extra="forbid", strict=True, defer_build=True)

    def __init_subclass__(
        cls, example: Mapping[str, Any] | None = None, **config: Unpack[ConfigDict]
    ) -> None:
        super().__init_subclass__(**config)
        if example is not None:
            cls.model_config["json_schema_extra"] = {"example": dict(example)}


@cache
def _compiled(path: str) -> Any:
    return compile_path(path)[0]


@dataclass(kw_only=True, eq=False)
class Route(BaseRoute):
    """A function that answers the requests to a path."""

    path: str
    act: Callable[..., Awaitable[Any]]
    methods: frozenset[str] = frozenset()
    """Empty: it serves WebSockets."""
    tag: str = ""
    status_code: int | None = None
    responses: Responses = field(default_factory=Responses)
    response_model: Any = None
    """What the schema says that it returns; None: the annotation says it."""
    response_class: type[Response] | None = None
    is_listed: bool = True
    """Whether the schema has it."""

    @cached_property
    def parameters(self) -> frozenset[str]:
        """The names of the parts of the path."""
        return frozenset(_compiled(self.path).groupindex)

    @cached_property
    def _begin(self) -> str:
        return self.path.partition("{")[0]

    @cached_property
    def _binding(self) -> Binding:
        return Binding(self.act, self.parameters)

    @cached_property
    def _adapter(self) -> TypeAdapter[Any] | None:
        """What writes the responses; None: there is no content, or the route does it itself."""
        kind: Any = inspect.signature(self.act).return_annotation
        is_response = inspect.isclass(kind) and issubclass(kind, Response)
        return None if kind is None or is_response else TypeAdapter(kind)

    def parts_of(self, path: str) -> dict[str, str] | None:
        """Return the parts that the route's path names; None: it is another path."""
        found = _compiled(self.path).match(path) if path.startswith(self._begin) else None
        return None if found is None else found.groupdict()

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        is_other_type = (scope["type"] == "http") != bool(self.methods)
        if is_other_type or (found := self.parts_of(get_route_path(scope))) is None:
            return Match.NONE, {}
        params = {**scope.get("path_params", {}), **found}
        is_full = not self.methods or scope["method"] in self.methods
        own = {"endpoint": self.act, "path_params": params}
        return Match.FULL if is_full else Match.PARTIAL, own

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        if not self.methods:
            await websocket_session(self._serve)(scope, receive, send)
        elif scope["method"] not in self.methods:
            raise HTTPException(405)
        else:
            await request_response(self._answer)(scope, receive, send)

    async def _answer(self, request: Request) -> Response:
        faults: list[FieldError] = []
        body = (await _read_body(request),) if self._binding.takes_body else ()
        given = self._binding.arguments(request, faults, *body)
        if faults:
            raise InvalidRequest(faults)
        made = await self.act(**given)
        if isinstance(made, Response):
            return made
        status = self.status_code or 200
        if self._adapter is None:
            return Response(None, status, media_type="application/json")
        valid = self._adapter.validate_python(made, from_attributes=True)
        if self.response_class is not None:
            return self.response_class(self._adapter.dump_python(valid, mode="json"), status)
        written = self._adapter.dump_json(valid, by_alias=True)
        return Response(written, status, media_type="application/json")

    async def _serve(self, socket: WebSocket) -> None:
        faults: list[FieldError] = []
        given = self._binding.arguments(socket, faults)
        if faults:
            return await socket.close(_INVALID)
        await self.act(**given)


class RoutesAt(BaseRoute):
    """The routes of the routers at these places, as `module:name`. They are imported one after the
    other, until a route fits the request."""

    def __init__(self, *places: str) -> None:
        self._left: deque[str] = deque(places)
        self._found: list[Route] = []

    def each(self) -> Iterator[Route]:
        """Yield all routes in the order of the places."""
        number = 0
        while number < len(self._found) or self._left:
            if number == len(self._found):
                self._found += found_at(self._left.popleft()).routes
            else:
                yield self._found[number]
                number += 1

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        best = Match.NONE
        own: Scope = {}
        for route in self.each():
            match, told = route.matches(scope)
            is_open = ":path}" in route.path
            if match.value > best.value or (match is Match.FULL and not is_open):
                best, own = match, {**told, _ROUTE: route}
            # One that takes the rest of a path hides no other.
            if match is Match.FULL and not is_open:
                break
        return best, own

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        await scope[_ROUTE].handle(scope, receive, send)


async def _read_body(request: Request) -> Any:
    """Return the JSON of a body. Half a character (a lone surrogate) is read as U+FFFD."""
    try:
        body = await request.body()
        return clean(json.loads(body)) if body else ABSENT
    except json.JSONDecodeError as error:
        fault = FieldError(where=f"body.{error.pos}", what="JSON decode error")
        raise InvalidRequest([fault]) from error
    except (ValueError, RecursionError, ClientDisconnect) as error:
        raise HTTPException(400, "There was an error parsing the body") from error


def _reading(connection: HTTPConnection) -> InStore:
    return connection.app.state.api.store.read


def _writing(connection: HTTPConnection) -> InStore:
    return connection.app.state.api.store.write_first


Reading = Annotated[InStore, Depends(_reading)]
Writing = Annotated[InStore, Depends(_writing)]


class RouteOptions(TypedDict, total=False):
    """What a route may be declared with."""

    status_code: int
    responses: Responses
    response_model: Any
    response_class: type[Response]


class Router:
    """Paths below a prefix that are listed under one tag in the schema; without a tag, not at all.

    A function under `read`, `write` or `write_once` is a verb of the store: it gets a transaction,
    and then what is read from the request. `errors` are the statuses of its refusals.
    """

    def __init__(self, tag: str = "", *, prefix: str = "/api") -> None:
        self.routes: list[Route] = []
        self._tag = tag
        self._prefix = prefix

    def get(self, path: str, **options: Unpack[RouteOptions]) -> Callable[[F], F]:
        return self.add(path, "GET", **options)

    def post(self, path: str, **options: Unpack[RouteOptions]) -> Callable[[F], F]:
        return self.add(path, "POST", **options)

    def put(self, path: str, **options: Unpack[RouteOptions]) -> Callable[[F], F]:
        return self.add(path, "PUT", **options)

    def patch(self, path: str, **options: Unpack[RouteOptions]) -> Callable[[F], F]:
        return self.add(path, "PATCH", **options)

    def delete(self, path: str, **options: Unpack[RouteOptions]) -> Callable[[F], F]:
        return self.add(path, "DELETE", **options)

    def websocket(self, path: str) -> Callable[[F], F]:
        return self.add(path)

    def add(self, path: str, *methods: str, **options: Unpack[RouteOptions]) -> Callable[[F], F]:
        """Let a function answer requests with these methods; without any, WebSockets."""

        def add(act: F) -> F:
            self.routes.append(
                Route(
                    path=self._prefix + path,
                    act=act,
                    methods=frozenset(methods),
                    tag=self._tag,
                    is_listed=bool(self._tag and methods),
                    **options,
                )
            )
            return act

        return add

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
            route = _as_route(verb, store, status)
            self.add(path, method, status_code=status, responses=documented(*errors))(route)
            return verb

        return add


def _as_route(verb: Callable[..., Any], store: Any, status: int) -> Callable[..., Awaitable[Any]]:
    """Return what a route calls: it takes what the verb takes after its transaction, and the
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
