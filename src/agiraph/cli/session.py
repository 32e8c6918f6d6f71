"""Session: a command's connection to the server of a home or to its database, and its output."""

import asyncio
import gc
import re
from collections.abc import (
    AsyncGenerator,
    Callable,
    Coroutine,
    Generator,
    Iterable,
    Mapping,
    Sequence,
)
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

import click
import orjson
import uvloop
from click.shell_completion import get_completion_class
from pydantic import BaseModel
from rich.console import Console, RenderableType
from rich.markup import escape
from rich.table import Column, Table
from rich.text import Text
from yarl import URL

from agiraph import location
from agiraph.client import Client
from agiraph.client.connection import Response
from agiraph.core.domain.errors import (
    Declined,
    HomeInUse,
    Misconfigured,
    NotFound,
    Refused,
    Unreachable,
)
from agiraph.core.domain.features import installed
from agiraph.core.domain.times.time import SystemClock
from agiraph.core.home.layout import Home, known_token
from agiraph.core.home.lock import HomeLock
from agiraph.location import Location
from agiraph.redaction import environment, keep

if TYPE_CHECKING:  # most commands only talk to a server
    from agiraph.core.store.database import Store

R = TypeVar("R")
T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any] | click.Command)
Told = tuple[Any, str | RenderableType | Callable[[], None]]
"""What a command returns: a value for programs, and for people words or what prints them."""
Columns = Sequence[tuple[str | Column, Callable[[T], str | Text]]]
"""The columns of a table: the heading of each, and what stands below it for a thing."""
CONNECTION_LOST = "[yellow]…[/] the connection to the server was lost; connecting again"
# Agents quote web pages. An escape sequence in one could overwrite on the screen what a person is
# about to approve, or make the terminal type text into the shell.
_STEERING = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
"""Characters that control a terminal: control characters except tab and newline, and bidi marks."""
_ROUTERS = (
    "teams:router", "agents:router", "board:router", "board:cost_router", "inbox:router",
    "inbox:grant_router", "triggers:router",
)  # fmt: skip
"""The routers that commands use without a server."""

# Running a command


def tune() -> None:
    """Run the garbage collector less often: transcripts stay in memory and make few cycles."""
    # The default of 700 objects would walk long transcripts many times a second without finding
    # anything.
    gc.set_threshold(50_000, 20, 100)


def command(act: Callable[..., Coroutine[Any, Any, R]]) -> Callable[..., R]:
    """Make a click callback of a coroutine function."""

    @wraps(act)
    def run(*args: Any, **kwargs: Any) -> R:
        tune()
        try:
            with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
                return runner.run(act(*args, **kwargs))
        finally:
            gc.freeze()  # the process exits: skip the last garbage collection, which takes long

    return run


def json_option(function: F) -> F:
    """Give a command the option `--json`."""
    add = click.option("--json", "json_", is_flag=True, help="Print JSON for programs.")
    return add(function)


def printing(act: Callable[..., Coroutine[Any, Any, Told]]) -> Callable[..., None]:
    """Make a click callback that prints what a coroutine function returns: the words for people, or
    with the option `--json` the value for programs."""
    answer = command(act)

    @json_option
    @wraps(act)
    def run(*args: Any, json_: bool, **kwargs: Any) -> None:
        value, words = answer(*args, **kwargs)
        if json_:
            click.echo(as_json(value))
        elif callable(words):
            words()
        elif isinstance(words, str):
            click.echo(words)
        else:
            Console(emoji=False).print(words)

    return run


def group(listing: Callable[..., None]) -> Callable[[Callable[[], None]], click.Group]:
    """Make a group of commands that lists its things if it is called without a command."""

    def make(declared: Callable[[], None]) -> click.Group:
        @click.group(declared.__name__, help=declared.__doc__, invoke_without_command=True)
        @json_option
        @click.pass_context
        def run(context: click.Context, json_: bool) -> None:
            if context.invoked_subcommand is None:
                listing(json_=json_)

        return run

    return make


@click.command()
@click.argument("shell", type=click.Choice(("bash", "zsh", "fish")))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print the script that lets a SHELL complete commands and options.

    \b
    bash:  agiraph completion bash > ~/.local/share/bash-completion/completions/agiraph
    zsh:   agiraph completion zsh > ~/.zfunc/_agiraph
    fish:  agiraph completion fish > ~/.config/fish/completions/agiraph.fish
    """
    kind = get_completion_class(shell)
    assert kind is not None
    click.echo(kind(context.find_root().command, {}, "agiraph", "_AGIRAPH_COMPLETE").source())


# Connecting


@asynccontextmanager
async def opened(*, to_write: bool = False) -> AsyncGenerator[tuple[Location, "Store"]]:
    """Open the database of this home.

    With `to_write`, take the home's lock: a server that runs would not notice the change.
    """
    from agiraph.core.store.engine.connect import (
        open_store,  # imported here: most commands do not need it
    )

    where = location.find(environment())
    embedded = where.database_url.startswith("sqlite:")
    home = Home.open(where.home)
    lock: HomeLock | None = home.lock() if to_write and embedded else None
    store = await open_store(where.database_url, SystemClock())
    try:
        yield where, store
    finally:
        await store.close()
        if lock is not None:
            lock.release()


@asynccontextmanager
async def connected() -> AsyncGenerator[Client]:
    """Connect to the server of this home; raise `Unreachable` if none runs."""
    where = location.find(environment())
    async with Client.of(where) as client:
        try:
            await _check(client)
        except Unreachable as error:
            if holder := _holder(where):
                raise Unreachable(
                    f"{holder} No server answers at {client.url}: if it is `agiraph up`, set "
                    "AGIRAPH_HOST and AGIRAPH_PORT as they are set there; if not, end it first."
                ) from error
            raise
        except Declined as error:
            if error.status != 401:
                raise
            raise Misconfigured(
                f"The server at {client.url} rejects the token of {str(where.home)!r}: it "
                "may serve another home. Set AGIRAPH_HOME or AGIRAPH_PORT, or AGIRAPH_TOKEN."
            ) from error
        yield client


async def _check(client: Client) -> None:
    """Check that this home's server answers. That of another home rejects the token."""
    # A refused connection needs no HTTP client, whose import takes longer than a list of teams.
    if not client.has_token or not await _listens(URL(client.url)):
        raise client.unreachable()
    await client.check()


async def _listens(url: URL) -> bool:
    """Tell whether anything accepts connections at this address."""
    try:
        _, writer = await asyncio.open_connection(url.host, url.port)
    except OSError:
        return False
    writer.close()
    return True


def _holder(where: Location) -> str:
    """Return a sentence that names the process that holds the home's lock; empty if none does."""
    if not where.home.is_dir() or not where.database_url.startswith("sqlite:"):
        return ""
    try:
        Home.open(where.home).lock().release()
    except HomeInUse as error:
        return str(error).partition(". ")[0] + "."
    return ""


@asynccontextmanager
async def source(*, to_write: bool = False) -> AsyncGenerator[Client]:
    """Connect to the server of this home; if none runs, open the database."""
    async with AsyncExitStack() as stack:
        try:
            client = await stack.enter_async_context(Client.of(location.find(environment())))
            await _check(client)
        except (Unreachable, Declined):
            where, store = await stack.enter_async_context(opened(to_write=to_write))
            client = Local(store, Home.open(where.home))
        yield client


class Local(Client):
    """A client without a server: the API's routes answer in this process, on the database itself.
    The next server continues the work that a person decides on here."""

    def __init__(self, store: "Store", home: Home, **more: Any) -> None:
        super().__init__("http://here", "", patience=0.0)
        self._app = _routes(store, home, more)
        self._store = store

    async def _exchange(
        self, method: str, url: URL, headers: Mapping[str, str], data: bytes | None
    ) -> Response:
        from agiraph.api.access_control import Caller
        from agiraph.core.store import teams

        if url.path == "/api/cost":  # other settings may be wrong while a person only reads
            from agiraph import config

            self._app.state.api.usd_per_day = config.load(environment()).usd_per_day
        owner = await self._store.read(teams.owner)
        answer: list[dict[str, Any]] = []

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": data or b"", "more_body": False}

        async def send(message: dict[str, Any]) -> None:
            answer.append(message)

        scope = {
            "type": "http",
            "method": method,
            "path": url.path,
            "raw_path": url.raw_path.encode(),
            "query_string": url.raw_query_string.encode(),
            "headers": [(name.lower().encode(), text.encode()) for name, text in headers.items()],
            "state": {"caller": Caller("admin", owner)},
        }
        await self._app(scope, receive, send)
        body = b"".join(part.get("body", b"") for part in answer[1:])
        return Response(answer[0]["status"], "", {}, body)


def _routes(store: "Store", home: Home, more: Mapping[str, Any]) -> Any:
    """Return an application with the routes that read a home, and those that decide for a
    person."""
    from starlette.applications import Starlette

    from agiraph.api import problems
    from agiraph.api.access_control import AccessControl
    from agiraph.api.deps import Api
    from agiraph.api.routing import RoutesAt

    access = AccessControl(store=store, token=lambda: "", hosts=frozenset())
    places = [f"agiraph.api.routes.{name}" for name in _ROUTERS]
    for feature in (each for each in installed() if each.serves_commands):
        places += feature.routers
    app = Starlette(routes=[RoutesAt(*places)])
    problems.install(app, allowed=lambda path: [])
    app.state.api = Api(store=store, home=home, clock=store.clock, access=access, **more)
    return app


def remember_secrets(home: Path, database_url: str) -> None:
    """Redact the home's token and the database's password too, besides the environment's keys."""
    password = urlsplit(database_url).password if "://" in database_url else None
    keep({"token": known_token(home), "the database's password": password or ""})


@contextmanager
def naming(what: str, name: str, known: str) -> Generator[None]:
    """Say of what does not exist what it is for a person, and what lists the things that do."""
    try:
        yield
    except Refused as error:
        is_missing = isinstance(error, Declined) and error.status == 404
        if not (is_missing or isinstance(error, NotFound)):
            raise
        raise NotFound(what, name, known=known) from error


# Printing


def clean(text: str) -> str:
    """Return text of agents with the characters replaced that control a terminal."""
    return _STEERING.sub("\N{REPLACEMENT CHARACTER}", text)


def shown(text: str) -> str:
    """Return text of agents, cleaned and escaped, for a line with rich markup."""
    return escape(clean(text))


def plain_console() -> Console:
    """Return a console whose lines are as long as they are written."""
    return Console(highlight=False, emoji=False, soft_wrap=True)


def table(
    things: Iterable[T], columns: Columns[T], style: Callable[[T], str] = lambda _: ""
) -> Table:
    """Return a table with a row for each thing. A column whose heading ends with `!` is never
    wrapped."""
    made = Table(box=None)
    for heading, _ in columns:
        if isinstance(heading, str):
            made.add_column(heading.removesuffix("!"), no_wrap=heading.endswith("!"))
        else:
            made.columns.append(heading.copy())
    for thing in things:
        made.add_row(*(cell(thing) for _, cell in columns), style=style(thing))
    return made


def listing(
    things: Sequence[T], columns: Columns[T], none: str, style: Callable[[T], str] = lambda _: ""
) -> Told:
    """Return what a command tells that lists things: a table, or a sentence if there are none."""
    return things, table(things, columns, style) if things else none


def as_json(value: Any) -> str:
    return orjson.dumps(value, option=orjson.OPT_INDENT_2, default=_plain).decode()


def _plain(value: Any) -> Any:
    return value.model_dump() if isinstance(value, BaseModel) else str(value)
