"""Dependencies: what FastAPI passes to every route."""

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Concatenate, TypeVar

import orjson
from fastapi import Depends, Header, Query, Request
from fastapi.encoders import jsonable_encoder
from fastapi.responses import Response
from pydantic import AwareDatetime, BeforeValidator
from starlette.requests import HTTPConnection

from agiraph.api.access_control import AccessControl, Caller
from agiraph.api.live import Hub
from agiraph.core.domain.agents import Specialist, Team
from agiraph.core.domain.errors import OutOfScope
from agiraph.core.domain.ids import PersonId
from agiraph.core.domain.provenance.access import CLIENT_HEADER, covers
from agiraph.core.domain.provenance.labels import CLEAN, Label, of_client
from agiraph.core.domain.records.findings import Finding
from agiraph.core.domain.text.previews import PromptText
from agiraph.core.domain.times.time import Clock, SystemClock
from agiraph.core.home.layout import Home
from agiraph.core.home.named_secrets import NamedSecrets
from agiraph.core.services import access
from agiraph.core.store.database import Store
from agiraph.core.store.tx import Tx
from agiraph.models.catalogue import Catalogue
from agiraph.models.facts.prices import Prices
from agiraph.models.registry import Keys, Registry
from agiraph.sandbox.levels import NOT_CONFINED, Confinement

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeouts:
    """Time limits of an open WebSocket."""

    ping_s: float = 15.0
    """Between two pings on a connection that sends nothing else."""
    token_check_s: float = 5.0
    """Between two checks whether the client's token is still valid."""
    send_s: float = 10.0
    """For a client to accept one frame."""


def _no_models() -> Catalogue:
    clock = SystemClock()
    return Catalogue(Registry(Keys(), clock), Prices(), clock)


async def _no_checks() -> list[Finding]:
    return []


async def _any_tools(names: Sequence[str], *, team: str) -> None:
    return None


@dataclass(slots=True, kw_only=True)
class Api:
    """What the routes work with. They write rows; the runtime reacts to the commits.

    Only `model` changes while the server runs.
    """

    store: Store
    home: Home
    clock: Clock
    access: AccessControl
    hub: Hub = field(default_factory=Hub)
    parts: dict[type, Any] = field(default_factory=dict[type, Any])
    """What features keep while the runtime is open (`Runtime.parts`), and for their routes while
    the server runs (`part`), by type."""
    model: str = "demo"
    """The model of teams that do not name one."""
    is_model_set: bool = False
    """Whether the environment or agiraph.toml names the default model."""
    check_model: Callable[[str], object] = lambda name: None
    """Raises an error if a model name cannot be used."""
    check_tools: Callable[..., Awaitable[None]] = _any_tools
    """Raises an error if a tool does not exist that the new `team` of this name is to have."""
    models: Catalogue = field(default_factory=_no_models)
    """What is known of the models, and calls to them that test one."""
    is_priced: Callable[[str], bool] = lambda name: True
    """Whether the price of a model is known; without one, a goal gets a limit on tokens."""
    folders: Mapping[str, str] = field(default_factory=dict[str, str])
    """Folders that a team can be given by name, from the settings."""
    usd_per_day: float | None = None
    """The most dollars that all teams may spend in a day; None: no limit."""
    reply_model: str = ""
    """The model that writes replies to people; empty: each agent's own model."""
    side_calls: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(4))
    """How many titles and the like a model writes for chat clients at the same time."""
    url: str = ""
    """The address of this server for people, for links in texts."""
    preview: Callable[[Team, Specialist, str], Awaitable[PromptText]] | None = None
    """Returns what a specialist of a team would be shown for a task; None: nobody can tell."""
    secrets: NamedSecrets = field(default_factory=NamedSecrets)
    """The secrets that the settings name."""
    examine: Callable[[], Awaitable[list[Finding]]] = _no_checks
    """Makes all health checks, as `agiraph doctor` does."""
    build: str = "dev"
    failing: Callable[[], list[str]] = lambda: []
    """Returns a sentence for each background task of this process that is failing now."""
    confinement: Confinement = NOT_CONFINED
    """How the commands of agents are confined on this machine."""
    timeouts: Timeouts = Timeouts()

    def part(self, kind: type[T]) -> T:
        """Return what a feature keeps for its routes; the first call makes it."""
        if kind not in self.parts:
            self.parts[kind] = kind()
        return self.parts[kind]


def _api(connection: HTTPConnection) -> Api:
    return connection.app.state.api


def _caller(connection: HTTPConnection) -> Caller:
    return connection.state.caller


def _person(connection: HTTPConnection) -> PersonId:
    return _caller(connection).person.id


ApiDep = Annotated[Api, Depends(_api)]
CallerDep = Annotated[Caller, Depends(_caller)]
PersonDep = Annotated[PersonId, Depends(_person)]
"""The person in whose name the caller acts."""


def _said_by(connection: HTTPConnection) -> Label:
    """Return the label of the words in a request: of the program that wrote them for a person, if
    the request names one, or if its token can only talk."""
    named, caller = connection.headers.get(CLIENT_HEADER, ""), _caller(connection)
    is_client = bool(named) or not covers(caller.scope, "operate")
    return of_client(caller.client(named)) if is_client else CLEAN


SaidByDep = Annotated[Label, Depends(_said_by)]


def _only_iso(given: object) -> object:
    """Refuse numbers, which Pydantic would take for seconds since 1970."""
    if isinstance(given, str) and not _ISO_DATE.match(given):
        raise ValueError("give a date and a time with a zone, such as 2026-11-17T09:00:00Z")
    return given


_ISO_DATE = re.compile(r"\d{4}-\d\d-\d\dT")
Moment = Annotated[AwareDatetime, BeforeValidator(_only_iso)]
"""A time with a zone, as ISO 8601 writes it."""
After = Annotated[str, Query(description="The last id of the previous page.", max_length=200)]
Limit = Annotated[int, Query(ge=1, le=500, description="The most entries to return.")]


def check_owner(caller: Caller, what: str = "To allow calls for good") -> None:
    """Raise `OutOfScope` unless the caller's token may do what only the owner decides."""
    if not covers(caller.scope, "admin"):
        raise OutOfScope(
            f"{what} needs the scope 'admin'; the token has {caller.scope!r}. Use the owner's "
            "token."
        )


class _Idempotent:
    """Runs a request once, however often it is sent with the same Idempotency-Key."""

    def __init__(
        self,
        request: Request,
        api: ApiDep,
        caller: CallerDep,
        idempotency_key: Annotated[
            str | None,
            Header(
                description="Send the same key again after a lost response: nothing is done twice.",
                max_length=access.MAX_KEY_CHARS,
            ),
        ] = None,
    ) -> None:
        self._request = request
        self._api = api
        self._who = caller.name
        self._key = idempotency_key

    async def __call__(
        self, verb: Callable[Concatenate[Tx, ...], Any], *, status: int, **given: Any
    ) -> Response:
        """Run the verb with what is given and return its value as the response.

        With a key, verb and response are stored in one transaction: a crash between them cannot
        make a repeated request run twice.
        """
        if self._key is None:
            made = await self._api.store.write_first(verb, **given)
            return _json(status, orjson.dumps(jsonable_encoder(made)))
        # The key alone is not enough: a client that reuses a key for another request gets 409
        # instead of the wrong response.
        asked = f"{self._request.method} {self._request.url.path}\n".encode()
        asked += await self._request.body()

        def act(tx: Tx) -> Any:
            return jsonable_encoder(verb(tx, **given))

        status, body = await self._api.store.write_first(
            access.run_once, who=self._who, key=self._key, request=asked, status=status, act=act
        )
        return _json(status, body)


def _json(status: int, body: bytes) -> Response:
    return Response(body, status, media_type="application/json")


Idempotent = Annotated[_Idempotent, Depends(_Idempotent)]
