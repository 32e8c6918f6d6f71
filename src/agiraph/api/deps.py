"""Dependencies: what a route is given, and how it is read from a request."""

import asyncio
import inspect
import ipaddress
import re
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from copy import deepcopy
from dataclasses import field
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    ClassVar,
    Concatenate,
    Generic,
    TypedDict,
    TypeVar,
    Unpack,
    cast,
    get_args,
    get_origin,
)

import orjson
from pydantic import AwareDatetime, BaseModel, BeforeValidator, Field, TypeAdapter, ValidationError
from starlette.requests import HTTPConnection, Request
from starlette.responses import Response

from agiraph.api.access_control import AccessControl, Caller
from agiraph.api.problems import FieldError
from agiraph.core.domain.agents import Specialist, Team
from agiraph.core.domain.errors import OutOfScope
from agiraph.core.domain.ids import PersonId
from agiraph.core.domain.provenance.access import CLIENT_HEADER, covers
from agiraph.core.domain.provenance.labels import CLEAN, Label, of_client
from agiraph.core.domain.records.findings import Finding
from agiraph.core.domain.text.previews import PromptText
from agiraph.core.domain.times.time import Clock, SystemClock
from agiraph.core.domain.value import dataclass
from agiraph.core.home.layout import Home
from agiraph.core.home.named_secrets import NamedSecrets
from agiraph.core.services import access
from agiraph.core.store.database import Store
from agiraph.core.store.tx import Tx

if TYPE_CHECKING:  # commands without a server load this module, and need none of these
    from agiraph.api.live import Hub
    from agiraph.models.catalogue import Catalogue
    from agiraph.sandbox.levels import Confinement

T = TypeVar("T")
ABSENT = object()
"""Stands for what a request does not have."""


class Facts(TypedDict, total=False):
    """What is required of a value from a request, and what the schema says of it."""

    alias: str
    description: str
    ge: float
    le: float
    min_length: int
    max_length: int
    examples: list[Any]


class Query:
    """Marks a parameter that is read from the query. One without a mark is, too, unless the path
    names it or its type is that of a body."""

    place: ClassVar[str] = "query"

    def __init__(self, **facts: Unpack[Facts]) -> None:
        self.facts: Facts = facts


class Path(Query):
    """Marks a part of the path of which something is required."""

    place = "path"


class Header(Query):
    """Marks a parameter that is read from a header."""

    place = "header"


@dataclass(frozen=True, slots=True)
class Depends:
    """Marks a parameter whose value a function makes, which is bound to the request itself."""

    make: Callable[..., Any]


@dataclass(slots=True, kw_only=True)
class _Argument:
    """A parameter that is read from a request."""

    place: str
    key: str
    kind: Any
    is_list: bool
    default: Any
    adapter: TypeAdapter[Any] | None = None

    def read(self, given: Any, faults: list[FieldError]) -> Any:
        """Return the valid value; add what is wrong with it to the faults."""
        where = self.place if self.place == "body" else f"{self.place}.{self.key}"
        if given is ABSENT:
            if self.default is inspect.Parameter.empty:
                faults.append(FieldError(where=where, what="Field required"))
            return deepcopy(self.default)
        if self.kind is str:
            return given
        if self.adapter is None:
            self.adapter = TypeAdapter(self.kind)
        try:
            return self.adapter.validate_python(given, from_attributes=True)
        except ValidationError as error:
            for fault in error.errors(include_url=False):
                place = ".".join(map(str, (where, *fault["loc"])))
                faults.append(FieldError(where=place, what=str(fault["msg"])))
            return None


class Binding:
    """How the parameters of a function are read from a request."""

    def __init__(self, act: Callable[..., Any], in_path: Collection[str]) -> None:
        self._act = act
        self._made: dict[str, Binding] = {}
        self._read: dict[str, _Argument] = {}
        self._connection = ""
        self.takes_body: bool = False
        for name, parameter in inspect.signature(act).parameters.items():
            self._add(name, parameter, in_path)

    def _add(self, name: str, parameter: inspect.Parameter, in_path: Collection[str]) -> None:
        kind: Any = parameter.annotation
        marks: Sequence[Any] = ()
        if get_origin(kind) is Annotated:
            kind, *marks = get_args(kind)
        if inspect.isclass(kind) and issubclass(kind, HTTPConnection):
            self._connection = name
            return
        # Also one that may lack: `list[str] | None`.
        is_list = any(get_origin(each) is list for each in (kind, *get_args(kind)))
        place, key = "path" if name in in_path else "query", name
        for mark in marks:
            if isinstance(mark, Depends):
                self._made[name] = Binding(mark.make, in_path)
                return
            if isinstance(mark, Query):
                place, facts = mark.place, Facts(**mark.facts)
                spelled = name.replace("_", "-") if place == "header" else name
                key = facts.pop("alias", spelled)
                kind = Annotated[kind, Field(**facts)] if facts else kind
            else:
                kind = Annotated[kind, mark]
        if inspect.isclass(kind) and issubclass(kind, BaseModel):
            place, self.takes_body = "body", True
        default = parameter.default
        self._read[name] = _Argument(
            place=place, key=key, kind=kind, is_list=is_list, default=default
        )

    def call(self, connection: HTTPConnection, faults: list[FieldError], body: object) -> Any:
        """Call the function with what the request gives it; None if that has faults."""
        given = self.arguments(connection, faults, body)
        return None if faults else self._act(**given)

    def arguments(
        self, connection: HTTPConnection, faults: list[FieldError], body: object = ABSENT
    ) -> dict[str, Any]:
        """Return the arguments for the function; add what is wrong with the request to the faults.

        What several functions read is reported in the order of their places, as FastAPI does.
        """
        given = {name: made.call(connection, faults, body) for name, made in self._made.items()}
        order = sorted(self._read.items(), key=lambda each: _PLACES.index(each[1].place))
        for name, one in order:
            given[name] = one.read(_given(connection, one, body), faults)
        if self._connection:
            given[self._connection] = connection
        return given


_PLACES = ("path", "query", "header", "body")


def _given(connection: HTTPConnection, one: _Argument, body: object) -> Any:
    match one.place:
        case "body":
            return body
        case "path":
            return connection.path_params[one.key]
        case "header":
            return connection.headers.get(one.key, ABSENT)
        case _ if one.is_list:
            return connection.query_params.getlist(one.key) or ABSENT
        case _:
            return connection.query_params.get(one.key, ABSENT)


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeouts:
    """Time limits of an open WebSocket."""

    ping_s: float = 15.0
    """Between two pings on a connection that sends nothing else."""
    token_check_s: float = 5.0
    """Between two checks whether the client's token is still valid."""
    send_s: float = 10.0
    """For a client to accept one frame."""


def _no_models() -> "Catalogue":
    from agiraph.models.catalogue import Catalogue
    from agiraph.models.facts.prices import Prices
    from agiraph.models.registry import Keys, Registry

    clock = SystemClock()
    return Catalogue(Registry(Keys(), clock), Prices(), clock)


def _new_hub() -> "Hub":
    from agiraph.api.live import Hub

    return Hub()


def _not_confined() -> "Confinement":
    from agiraph.sandbox.levels import NOT_CONFINED

    return NOT_CONFINED


class _Default(Generic[T]):
    """A field whose default is made when it is first read, since its import takes long."""

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = f"_{name}"

    def __get__(self, api: object | None, owner: type) -> T:
        if api is None:  # a dataclass asks for the default
            return cast(T, self)
        kept = vars(api)
        if kept[self._name] is self:
            kept[self._name] = self._make()
        return kept[self._name]

    def __set__(self, api: object, value: T) -> None:
        vars(api)[self._name] = value


async def _no_checks() -> list[Finding]:
    return []


async def _any_tools(names: Sequence[str], *, team: str) -> None:
    return None


@dataclass(kw_only=True)
class Api:
    """What the routes work with. They write rows; the runtime reacts to the commits.

    Only `model` changes while the server runs.
    """

    store: Store
    home: Home
    clock: Clock
    access: AccessControl
    hub: _Default["Hub"] = _Default(_new_hub)
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
    models: _Default["Catalogue"] = _Default(_no_models)
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
    confinement: _Default["Confinement"] = _Default(_not_confined)
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


def is_loopback(host: str | None) -> bool:
    """Whether a host name or address is that of this machine alone."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host or "").is_loopback
    except ValueError:
        return False


def _https_origin(connection: HTTPConnection, api: ApiDep) -> str:
    is_https = api.access.is_secure and connection.url.scheme == "https"
    return api.access.proxy or (f"https://{connection.headers['host']}" if is_https else "")


HttpsOrigin = Annotated[str, Depends(_https_origin)]
"""The https address by which others reach this server; empty: there is none."""


def _came_over_https(connection: HTTPConnection, api: ApiDep) -> bool:
    # Behind a proxy, requests of this machine can still come to the server's own address.
    is_proxied = connection.headers["host"].lower() == api.access.proxy.lower()[len("https://") :]
    return api.access.is_secure and (connection.url.scheme == "https" or is_proxied)


CameOverHttps = Annotated[bool, Depends(_came_over_https)]
"""Whether a request was encrypted on its way to this server, or to its reverse proxy."""
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
            return _json(status, _dumped(made))
        # The key alone is not enough: a client that reuses a key for another request gets 409
        # instead of the wrong response.
        asked = f"{self._request.method} {self._request.url.path}\n".encode()
        asked += await self._request.body()

        def act(tx: Tx) -> Any:
            return orjson.loads(_dumped(verb(tx, **given)))

        status, body = await self._api.store.write_first(
            access.run_once, who=self._who, key=self._key, request=asked, status=status, act=act
        )
        return _json(status, body)


_ANYTHING: TypeAdapter[Any] = TypeAdapter(Any)


def _dumped(made: object) -> bytes:
    return orjson.dumps(made, default=lambda one: _ANYTHING.dump_python(one, mode="json"))


def _json(status: int, body: bytes) -> Response:
    return Response(body, status, media_type="application/json")


Idempotent = Annotated[_Idempotent, Depends(_Idempotent)]
