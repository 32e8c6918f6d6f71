"""Connection: requests to one server, retried where that is safe.

When the connection breaks, requests that only read and requests with an Idempotency-Key are
retried. Others are retried only if the server certainly did not execute them.
"""

import asyncio
import inspect
import secrets
import ssl
from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from datetime import datetime
from functools import cache, wraps
from importlib import import_module
from string import Formatter
from typing import TYPE_CHECKING, Any, NamedTuple, Self, TypeVar, cast, get_type_hints
from urllib.parse import quote

import orjson
from pydantic import TypeAdapter
from yarl import URL

from agiraph.core.domain.errors import Declined, Unreachable
from agiraph.core.domain.provenance.access import CLIENT_HEADER
from agiraph.core.home.layout import known_token
from agiraph.location import Location

if TYPE_CHECKING:  # it takes long to import, and is used only once there is somebody to talk to
    from aiohttp import ClientSession

T = TypeVar("T")
Operation = TypeVar("Operation", bound=Callable[..., Awaitable[Any]])
PATIENCE_SECONDS = 15.0
"""How long to retry when a server that has answered before is gone, as during a restart."""
ANSWER_SECONDS = 60.0
PAGE = 500
_FIRST_WAIT, _LONGEST_WAIT = 0.1, 2.0
_RETRY_LATER = frozenset({429, 503})
"""Refused before anything was executed: retried after the time in Retry-After."""


@cache
def _reader(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


class LateModule:
    """Takes the place of a module, and imports it when one of its names is first used."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        return getattr(import_module(self._name), name)


def path_of(*parts: str) -> str:
    """Return a path of quoted parts; a team's name may contain any character."""
    return "".join(f"/{quote(part, safe='')}" for part in parts)


class NotConnected(OSError):
    """No connection was made, so nothing was executed."""


class Response(NamedTuple):
    status: int
    reason: str
    headers: Mapping[str, str]
    body: bytes


class Connection:
    def __init__(
        self,
        url: str,
        token: str,
        *,
        patience: float = PATIENCE_SECONDS,
        trust: ssl.SSLContext | None = None,
        session: "ClientSession | None" = None,
        client: str = "",
    ) -> None:
        """`client` names the program that writes the words of requests for a person."""
        self.url: str = url.rstrip("/")
        self._token = token
        self._client = client
        self._patience = patience
        self._trust = trust
        self._session = session
        self._owns_session = session is None
        self._is_open = session is not None
        self._has_answered = False
        """Whether this server has answered before: then it is worth retrying."""

    @classmethod
    def of(cls, place: Location, **more: Any) -> Self:
        """Return a client for the server of this home, whether it runs or not."""
        certificate = place.address.certificate
        if certificate is not None:
            # The certificate may be self-signed. Only this one is trusted then, no public
            # authority.
            more["trust"] = ssl.create_default_context(cafile=certificate)
        return cls(place.address.url, place.token or known_token(place.home), **more)

    async def __aenter__(self) -> Self:
        self._is_open = True
        return self

    async def __aexit__(self, *_: object) -> None:
        if not self._owns_session:
            return
        self._is_open = False
        if self._session is not None:
            await self._session.close()
            self._session = None

    @property
    def http(self) -> "ClientSession":
        if not self._is_open:
            raise RuntimeError("Use the client in `async with Client(…) as client:`.")
        if self._session is None:
            from aiohttp import ClientSession

            self._session = ClientSession()
        return self._session

    @property
    def has_token(self) -> bool:
        return bool(self._token)

    @property
    def headers(self) -> dict[str, str]:
        named = {CLIENT_HEADER: self._client} if self._client else {}
        return {"Authorization": f"Bearer {self._token}"} | named

    def unreachable(self) -> Unreachable:
        return Unreachable(f"No agiraph is running at {self.url}; start it with `agiraph up`.")

    async def get(self, kind: type[T] | Any, path: str, **query: Any) -> T:
        return read(kind, await self.ask("GET", path, query=query))

    async def pages(self, kind: type[T], path: str, **query: Any) -> list[T]:
        """Return all entries of a list that is paged by id."""
        found: list[T] = []
        after = ""
        while True:
            page: list[T] = await self.get(list[kind], path, after=after, limit=PAGE, **query)
            found += page
            if len(page) < PAGE:
                return found
            after = getattr(page[-1], "id")  # noqa: B009 - T is any view that has one

    async def make(self, kind: type[T] | Any, path: str, body: Any) -> T:
        """Send a POST with an Idempotency-Key: it takes effect once, even if it is retried."""
        return read(kind, await self.ask("POST", path, body=body, key=secrets.token_urlsafe(18)))

    async def ask(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, Any] | None = None,
        body: Any = None,
        key: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> bytes:
        """Send a request and return the body of the response; raise `Declined` or `Unreachable`."""
        sent = {**self.headers, **(headers or {})}
        if body is not None:
            sent["Content-Type"] = "application/json"
        if key is not None:
            sent["Idempotency-Key"] = key
        data = None if body is None else orjson.dumps(body)
        # The server's PUT sets a value, so sending it twice changes nothing more.
        is_safe = method in ("GET", "PUT") or key is not None
        # `path_of` has quoted the parts. yarl would normalise the path: a team named ".." would
        # become another address.
        url = URL(f"{self.url}/api{path}", encoded=True).update_query(_query_text(query or {}))
        for wait in _waits(self._patience):
            try:
                response = await self._exchange(method, url, sent, data)
            except NotConnected as error:
                # No connection, so the request was not executed: any method may be retried, once it
                # is clear that there is a server at all.
                if not self._has_answered:
                    raise self.unreachable() from error
            except OSError as error:
                if not is_safe:
                    raise Unreachable(
                        f"The connection to {self.url} broke before the response; the request "
                        "may or may not have been executed. Check before you repeat it."
                    ) from error
            else:
                self._has_answered = True
                if response.status not in _RETRY_LATER:
                    return _checked(response)
                after = response.headers.get("Retry-After", "")
                wait = max(wait, float(after) if after.isdecimal() else 0.0)
                if wait > self._patience:
                    return _checked(response)
            await asyncio.sleep(wait)
        raise self.unreachable()

    async def _exchange(
        self, method: str, url: URL, headers: Mapping[str, str], data: bytes | None
    ) -> Response:
        from aiohttp import ClientConnectorError, ClientError, ClientTimeout

        asked = self.http.request(
            method,
            url,
            headers=headers,
            data=data,
            ssl=self._trust or True,
            # A redirect would send the token to another host.
            allow_redirects=False,
            timeout=ClientTimeout(total=ANSWER_SECONDS),
        )
        try:
            async with asked as answer:
                body = await answer.read()
                return Response(answer.status, answer.reason or "", answer.headers, body)
        except ClientConnectorError as error:
            raise NotConnected(str(error)) from error
        except ClientError as error:
            raise ConnectionError(str(error)) from error

    async def check(self) -> None:
        """Check that the server responds and accepts the token."""
        await self.ask("GET", "/teams", query={"limit": 1})


def _waits(patience: float) -> Generator[float]:
    """Yield the pause before each retry, doubling, until `patience` seconds have passed."""
    clock = asyncio.get_running_loop().time
    end, wait = clock() + patience, _FIRST_WAIT
    yield wait
    while clock() < end:
        wait = min(wait * 2, _LONGEST_WAIT)
        yield wait


def _query_text(query: Mapping[str, Any]) -> dict[str, str | list[str]]:
    """Return query values as text, without None and empty values; a list is sent as several."""

    def text(value: object) -> str:
        if isinstance(value, datetime):
            return value.isoformat()
        return str(value).lower() if isinstance(value, bool) else str(value)

    return {
        name: [text(one) for one in cast("Sequence[object]", value)]
        if isinstance(value, Sequence) and not isinstance(value, str)
        else text(value)
        for name, value in query.items()
        if value is not None and value != ""
    }


def _checked(response: Response) -> bytes:
    if response.status < 300:
        return response.body
    try:
        problem: dict[str, Any] = orjson.loads(response.body)
        said = str(problem.get("detail") or problem["title"])
    except (orjson.JSONDecodeError, KeyError, AttributeError):
        said = f"The server answered {response.status} {response.reason}; is it an agiraph server?"
    raise Declined(response.status, said)


def operation(
    method: str, path: str, *, once: bool = False, **renamed: str
) -> Callable[[Operation], Operation]:
    """Fill in a method of the client from its declaration.

    Arguments that the path names are parts of it; `{name:path}` is a path of several. The others
    are the query of a GET and the body of any other request, without those that were left out;
    `renamed` says what the API calls them. The annotation is what the response is read as. What is
    declared to happen `once` takes effect once, even if it is retried.
    """

    def fill(declared: Operation) -> Operation:
        @cache
        def shape() -> tuple[inspect.Signature, list[tuple[str, str | None, str | None]], Any]:
            """Return its signature, the pieces of the path, and what the response is read as."""
            pieces = [(before, name, kind) for before, name, kind, _ in Formatter().parse(path)]
            return inspect.signature(declared), pieces, get_type_hints(declared)["return"]

        @wraps(declared)
        async def call(self: Connection, *args: Any, **given: Any) -> Any:
            signature, pieces, kind = shape()
            in_path = {name for _, name, _ in pieces if name}
            bound = signature.bind(self, *args, **given)
            bound.apply_defaults()
            told: dict[str, Any] = {}
            parts: dict[str, str] = {}
            for parameter in list(signature.parameters.values())[1:]:
                name, value = parameter.name, bound.arguments[parameter.name]
                if name in in_path:
                    parts[name] = str(value)
                elif parameter.kind is parameter.VAR_KEYWORD:
                    told |= value
                elif value is not None or parameter.default is not None:
                    told[renamed.get(name, name)] = value
            address = "".join(
                before + (_placed(parts[name], spread) if name else "")
                for before, name, spread in pieces
            )
            is_alone = len(signature.parameters) == 1 + len(in_path)
            sent = {"query": told} if method == "GET" else {} if is_alone else {"body": told}
            key = secrets.token_urlsafe(18) if once else None
            answer = await self.ask(method, address.rstrip("/"), key=key, **sent)
            return read(kind, answer)

        return cast(Operation, call)

    return fill


def _placed(value: str, kind: str | None) -> str:
    """Return an argument as a part of an address, behind the slash that `path_of` writes."""
    return path_of(*filter(None, value.split("/")) if kind else (value,)).removeprefix("/")


def read(kind: Any, answer: bytes) -> Any:
    """Return a response as a value of this type; bytes and text as they are."""
    if kind in (None, type(None), bytes):
        return answer if kind is bytes else None
    return answer.decode() if kind is str else _reader(kind).validate_json(answer)
