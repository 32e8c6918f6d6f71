"""Start of a process: it waits until PostgreSQL accepts connections, or says why it cannot."""

import asyncio
import signal
from collections.abc import Iterator

import psycopg
import pytest

from tests.cli.shell import Shell
from tests.postgres_server import Server

WAITS = "opening the database failed"


@pytest.fixture
def stopped_postgres(postgres: Server) -> Iterator[Server]:
    """A PostgreSQL server that is stopped during the test."""
    postgres.stop("fast")
    yield postgres
    if not (postgres.data / "db" / "postmaster.pid").exists():
        postgres.start()


def as_limited_user(url: str, server: Server) -> str:
    """Create a user who may not connect; return the database URL with this user."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("drop role if exists guest")
        connection.execute("create role guest login connection limit 0")
        for what in ("tables", "sequences"):
            connection.execute(f"grant all on all {what} in schema public to guest".encode())
    return url.replace("agiraph@", "guest@")


@pytest.mark.parametrize("command", ["work", "serve", "up"])
async def test_a_process_waits_for_postgresql_to_start(
    agiraph: Shell, postgres: Server, command: str
) -> None:
    url = postgres.fresh()
    agiraph.environment |= {"AGIRAPH_DATABASE_URL": url, "AGIRAPH_PORT": "0"}
    postgres.stop("fast")
    try:
        async with agiraph.start(command) as process:
            await process.says(WAITS)
            await asyncio.to_thread(postgres.start)
            await process.says("At work." if command == "work" else "agiraph is up at")
            process.signal(signal.SIGTERM)
            ended = await process.ends()
    finally:
        if not (postgres.data / "db" / "postmaster.pid").exists():
            postgres.start()
    assert (ended.code, process.has_said(WAITS)) == (0, 1)
    assert process.has_said("opening the database works again; it had failed") == 1


async def test_a_process_that_waits_for_its_database_can_be_stopped(
    agiraph: Shell, stopped_postgres: Server
) -> None:
    agiraph.environment["AGIRAPH_DATABASE_URL"] = stopped_postgres.url("t1")
    async with agiraph.start("work") as process:
        await process.says(WAITS)
        process.signal(signal.SIGTERM)
        ended = await process.ends()
    assert ended.code == 0
    assert "Stopped before the database could be reached." in ended.out


async def test_a_process_waits_while_postgresql_has_too_many_connections(
    agiraph: Shell, postgres: Server
) -> None:
    url = postgres.fresh()
    agiraph.environment["AGIRAPH_DATABASE_URL"] = as_limited_user(url, postgres)
    async with agiraph.start("work") as process:
        await process.says("too many connections")
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("alter role guest connection limit -1")
        await process.says("At work.")
        process.signal(signal.SIGTERM)
        ended = await process.ends()
    assert (ended.code, process.has_said(WAITS)) == (0, 1)


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (("agiraph@", "nobody@"), 'role "nobody" does not exist'),
        (("/t", "/no_"), "does not exist"),
    ],
    ids=["user", "database"],
)
async def test_a_wrong_user_or_database_ends_the_process_at_once(
    agiraph: Shell, postgres: Server, wrong: tuple[str, str], says: str
) -> None:
    agiraph.environment["AGIRAPH_DATABASE_URL"] = postgres.fresh().replace(*wrong)
    ended = await agiraph("work")
    assert (ended.code, WAITS in ended.err) == (1, False)
    assert says in ended.err
    assert "Check user, password, host and database in AGIRAPH_DATABASE_URL." in ended.err


async def test_a_database_that_needs_an_upgrade_ends_the_process_at_once(
    agiraph: Shell, postgres: Server
) -> None:
    url = postgres.fresh()
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("delete from schema_version where version > 1")
    agiraph.environment["AGIRAPH_DATABASE_URL"] = url
    ended = await agiraph("work")
    assert (ended.code, WAITS in ended.err) == (1, False)
    assert "run `agiraph db upgrade`" in ended.err
