"""Connection: requests to one server, made again where that is safe.

What can be asked twice without harm is asked again when the line drops: what only looks, and what
carries an Idempotency-Key. The rest is asked again only if it surely was not carried out.
"""

import asyncio
import secrets
import ssl
from collections.abc import AsyncGenerator, Generator, Mapping
from contextlib import asynccontextmanager
from functools import cache
from typing import Any, Self, TypeVar
from urllib.parse import quote

import aiohttp
import orjson
from pydantic import TypeAdapter
from yarl import URL

from agiraph.domain.errors import Declined, Unreachable
from agiraph.home.layout import known_token
from agiraph.location import Place

T = TypeVar("T")
PATIENCE_SECONDS = 15.0
"""How long a server that was there before may be gone, as when it is started anew."""
ANSWER_SECONDS = 60.0
PAGE = 500
_FIRST_WAIT, _LONGEST_WAIT = 0.1, 2.0
_LATER = frozenset({429, 503})
"""Refused before anything was done: to be asked again when the server says."""


@cache
def _reader(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


def path_of(*parts: str) -> str:
    """A path whose parts may hold anything a person can call a team."""
    return "".join(f"/{quote(part, safe='')}" for part in parts)


class Connection:
    def __init__(
        self,
        url: str,
        token: str,
        *,
        patience: float = PATIENCE_SECONDS,
        trust: ssl.SSLContext | None = None,
        session: aiohttp.ClientSession | None = None,
    ) -> None:
        self.url = url.rstrip("/")
        self._token = token
        self._patience = patience
        self._trust = trust
        self._session = session
        self._owns_session = session is None
        self._has_met = False
        """Whether this server has answered before."""

    @classmethod
    def of(cls, place: Place, **more: Any) -> Self:
        """To the server of this home, whether it runs or not."""
        certificate = place.address.certificate
        if certificate is not None:
            more["trust"] = ssl.create_default_context(cafile=certificate)
        return cls(place.address.url, place.token or known_token(place.home), **more)

    async def __aenter__(self) -> Self:
        if self._session is None:
            self._session = aiohttp.ClientSession()
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._owns_session and self._session is not None:
            await self._session.close()
            self._session = None

    @property
    def http(self) -> aiohttp.ClientSession:
        if self._session is None:
            raise RuntimeError("Use the client in `async with Client(…) as client:`.")
        return self._session

    @property
    def has_token(self) -> bool:
        return bool(self._token)

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self._token}"}

    def unreachable(self) -> Unreachable:
        return Unreachable(f"No agiraph is running at {self.url}; start it with `agiraph up`.")

    async def get(self, kind: type[T] | Any, path: str, **query: Any) -> T:
        return self.read(kind, await self.ask("GET", path, query=query))

    async def pages(self, kind: type[T], path: str, **query: Any) -> list[T]:
        """All there is behind a list whose pages go on after an id."""
        found: list[T] = []
        after = ""
        while True:
            page: list[T] = await self.get(list[kind], path, after=after, limit=PAGE, **query)
            found += page
            if len(page) < PAGE:
                return found
            after = getattr(page[-1], "id")  # noqa: B009 - T is any view that has one

    async def make(self, kind: type[T] | Any, path: str, body: Any = None) -> T:
        """A POST that makes something, and makes it once however often it has to be sent."""
        key = secrets.token_urlsafe(18)
        return self.read(kind, await self.ask("POST", path, body=body, key=key))

    async def post(self, kind: type[T] | Any, path: str, body: Any = None) -> T:
        return self.read(kind, await self.ask("POST", path, body=body))

    def read(self, kind: Any, answer: bytes) -> Any:
        return _reader(kind).validate_json(answer)

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
        """The answer's body, or `Declined`, or `Unreachable`."""
        sent = {**self.headers, **(headers or {})}
        if body is not None:
            sent["Content-Type"] = "application/json"
        if key is not None:
            sent["Idempotency-Key"] = key
        data = None if body is None else orjson.dumps(body)
        is_safe = method in ("GET", "PUT") or key is not None
        url = URL(f"{self.url}/api{path}", encoded=True).update_query(_plain(query or {}))
        for wait in _waits(self._patience):
            try:
                async with self._opened(method, url, sent, data) as response:
                    answer = await response.read()
            except aiohttp.ClientConnectorError as error:
                if not self._has_met:
                    raise self.unreachable() from error
            except (aiohttp.ClientError, OSError) as error:
                if not is_safe:
                    raise Unreachable(
                        f"The line to {self.url} broke before it answered; what you asked for may "
                        "or may not have been done. Look before you ask again."
                    ) from error
            else:
                self._has_met = True
                if response.status not in _LATER:
                    return _checked(response, answer)
                wait = max(wait, _retry_after(response))
                if wait > self._patience:
                    return _checked(response, answer)
            await asyncio.sleep(wait)
        raise self.unreachable()

    @asynccontextmanager
    async def _opened(
        self, method: str, url: URL, headers: Mapping[str, str], data: bytes | None
    ) -> AsyncGenerator[aiohttp.ClientResponse]:
        async with self.http.request(
            method,
            url,
            headers=headers,
            data=data,
            ssl=self._trust or True,
            allow_redirects=False,
            timeout=aiohttp.ClientTimeout(total=ANSWER_SECONDS),
        ) as response:
            yield response

    async def check(self) -> None:
        """See that the server is there and takes the token."""
        await self.ask("GET", "/teams", query={"limit": 1})


def _waits(patience: float) -> Generator[float]:
    """How long to wait before each further try, as long as there is patience for one."""
    clock = asyncio.get_running_loop().time
    end, wait = clock() + patience, _FIRST_WAIT
    yield wait
    while clock() < end:
        wait = min(wait * 2, _LONGEST_WAIT)
        yield wait


def _plain(query: Mapping[str, Any]) -> dict[str, str]:
    """A query as text; what was not said is left out."""
    return {
        name: str(value).lower() if isinstance(value, bool) else str(value)
        for name, value in query.items()
        if value is not None and value != ""
    }


def _retry_after(response: aiohttp.ClientResponse) -> float:
    try:
        return float(response.headers.get("Retry-After", "0"))
    except ValueError:
        return 0.0


def _checked(response: aiohttp.ClientResponse, answer: bytes) -> bytes:
    if response.status < 300:
        return answer
    try:
        problem: dict[str, Any] = orjson.loads(answer)
        said = str(problem.get("detail") or problem["title"])
    except (orjson.JSONDecodeError, KeyError, AttributeError):
        said = f"The server answered {response.status} {response.reason}; is it an agiraph?"
    raise Declined(response.status, said)
