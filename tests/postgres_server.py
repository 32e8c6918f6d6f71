"""PostgreSQL server: one for each process of tests, with an empty database for each test."""

import asyncio
import contextlib
import os
import random
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psycopg

from agiraph.core.store.engine.pgqueuer_queue import install
from agiraph.core.store.engine.postgres import upgrade

KEPT = 8
"""How many databases are kept: no test uses more than a few."""
ROOM = 2 * 2**30
PORTS = range(15_000, 30_000)
"""Below the ephemeral ports: no other program is given the port of a server that is stopped."""


def free_port() -> int:
    for port in random.SystemRandom().sample(PORTS, len(PORTS)):
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
    raise AssertionError(f"no port is free in {PORTS}")


def roomy_memory() -> Path | None:
    """Return /dev/shm if it has room: each test creates folders and a database, which is some
    hundred files on PostgreSQL."""
    memory = Path("/dev/shm")
    return memory if memory.is_dir() and shutil.disk_usage(memory).free > ROOM else None


@contextlib.contextmanager
def data_folder() -> Iterator[Path]:
    """Make a folder for the files of a server, in memory if it has room; remove it at the end."""
    data = Path(tempfile.mkdtemp(prefix="agiraph-pg-", dir=roomy_memory()))
    if os.geteuid() == 0:
        shutil.chown(data, "postgres", "postgres")
    try:
        yield data
    finally:
        shutil.rmtree(data, ignore_errors=True)


class Server:
    """A PostgreSQL server on a loopback port, with its files in this folder."""

    def __init__(self, data: Path) -> None:
        self.data = data
        self.port = free_port()
        self._databases = 0

    def _run(self, program: str, *arguments: str) -> None:
        found = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{program}"))
        path = str(found[-1]) if found else program
        as_user = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"]
        command = [*(as_user if os.geteuid() == 0 else []), path, *arguments]
        done = subprocess.run(command, capture_output=True, text=True, cwd="/", check=False)
        assert done.returncode == 0, done.stdout + done.stderr

    def start(self) -> None:
        options = (
            f"-p {self.port} -h 127.0.0.1 -k {self.data}"
            " -c fsync=off -c max_connections=200 -c shared_buffers=32MB"
            " -c autovacuum=off"
        )
        log = str(self.data / "log")
        self._run("pg_ctl", "-D", str(self.data / "db"), "-l", log, "-w", "-o", options, "start")

    def stop(self, how: str = "immediate") -> None:
        self._run("pg_ctl", "-D", str(self.data / "db"), "-w", "-m", how, "stop")

    def create(self) -> None:
        """Create the server's files and the database that all others are copied from; start it."""
        arguments = ("-A", "trust", "-U", "agiraph", "--no-sync", "-E", "UTF8")
        self._run("initdb", "-D", str(self.data / "db"), *arguments)
        self.start()
        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            connection.execute("create database agiraph_template")
        template = self.url("agiraph_template")
        upgrade(template)
        asyncio.run(install(template))

    def copy_from(self, data: Path) -> None:
        """Start with the files of another server, which does not run."""
        subprocess.run(["cp", "-a", str(data / "db"), str(self.data / "db")], check=True)
        self.start()

    def url(self, database: str) -> str:
        return f"postgresql://agiraph@127.0.0.1:{self.port}/{database}?sslmode=disable"

    def fresh(self) -> str:
        """Create a database with the current schema and return its URL."""
        self._databases += 1
        name, old = f"t{self._databases}", f"t{self._databases - KEPT}"
        make = f"create database {name} template agiraph_template strategy file_copy"
        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            if self._databases > KEPT:
                connection.execute(f"drop database {old} with (force)".encode())
            connection.execute(make.encode())
        return self.url(name)


@contextlib.contextmanager
def prepared_files() -> Iterator[Path]:
    """Make a folder with the files of a new server that was stopped, for servers to copy."""
    with data_folder() as data:
        server = Server(data)
        server.create()
        server.stop("fast")
        yield data


@contextlib.contextmanager
def running(copied: Path | None) -> Iterator[Server]:
    """Run a server during the block, with a copy of prepared files if there are any."""
    with data_folder() as data:
        server = Server(data)
        try:
            if copied is None:
                server.create()
            else:
                server.copy_from(copied)
            yield server
        finally:
            with contextlib.suppress(AssertionError):
                server.stop()
