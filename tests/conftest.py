"""Fixtures of all tests: a PostgreSQL server, a world on each database; options and summaries."""

import contextlib
import gc
import os
import random
import signal
import socket
from collections.abc import AsyncIterator, Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from agiraph import redaction
from agiraph.testing import World
from agiraph.testing.world import preload, prepare_database
from tests import databases, needed_features, parts
from tests import time_box as boxes
from tests.api.document import document
from tests.cli import forked
from tests.policies.attacks import summary as attack_summary
from tests.postgres_server import Server, free_port, prepared_files, roomy_memory, running
from tests.time_box import TimeBox

SWEEP = "sweep"
"""The name of the report property that holds a line for the summary."""
GARBAGE = (10_000, 20, 20)
"""When garbage is collected. With Python's own numbers it takes a tenth of the tests' time."""
PREPARED = pytest.StashKey[Path]()
"""The files of a PostgreSQL server that the servers of all processes copy."""
pytest_plugins = ["tests.workers", "tests.wording"]
# Without a time limit for each example: a busy machine may stand still for seconds.
settings.register_profile("agiraph", deadline=None)
settings.load_profile("agiraph")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--long", action="store_true", help="also run what takes minutes to hours")
    minutes = "how long the long tests may take together (%(default)s)"
    parser.addoption("--minutes", type=float, default=boxes.MINUTES, help=minutes)
    quick = "only the tests that need no PostgreSQL, browser, kill or whole scenario"
    parser.addoption("--quick", action="store_true", help=quick)
    lean = "without the tests on PostgreSQL that tests/databases.py leaves to `make both`"
    parser.addoption("--lean", action="store_true", help=lean)
    without = "leave out what needs this feature of the product (tests/needed_features.py)"
    parser.addoption("--without", default="", metavar="FEATURE", help=without)
    seed = "seed of the random kills and inputs; by default a new one for each run"
    parser.addoption("--seed", type=int, default=None, help=seed)


def pytest_configure() -> None:
    """Put the folders of tests into memory if it has room: to a disk, each commit waits."""
    if (memory := roomy_memory()) is not None:
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(memory))
    # A shell starts what runs in the background without it, and its children inherit that: tests
    # that interrupt a command would wait for ever.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    # Thousands of tests are collected, and none of them is garbage.
    gc.disable()


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> None:
    """Prepare what the processes of this run share; from now on collect garbage, but neither among
    the collected tests nor every moment."""
    if session.config.getoption("--workers") and not session.config.option.collectonly:
        _prepare_workers(session.config)
    gc.freeze()
    gc.set_threshold(*GARBAGE)
    gc.enable()


def _prepare_workers(config: pytest.Config) -> None:
    """Do once what each process would do before its first test of a kind."""
    if not config.getoption("--quick"):
        files = contextlib.ExitStack()
        config.stash[PREPARED] = files.enter_context(prepared_files())
        config.add_cleanup(files.close)
    forked.forker_socket()
    preload(forked.place_of_homes())
    document()


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Do not collect files of which no test will run. None: let pytest decide."""
    quick, long = config.getoption("--quick"), config.getoption("--long")
    without, is_test = config.getoption("--without"), collection_path.match("test_*.py")
    if without and is_test and without in needed_features.imported(collection_path):
        return True
    return parts.is_ignored(collection_path, quick=bool(quick), long=bool(long)) or None


@pytest.hookimpl(tryfirst=True)
def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Make no test on PostgreSQL where this run leaves out all of them: to make one takes time."""
    test, config = metafunc.definition, metafunc.config
    chosen = (mark for mark in test.iter_markers("parametrize") if "database_url" in mark.args[0])
    if "database_url" not in metafunc.fixturenames or any(chosen):
        return
    on_none = config.getoption("--lean") and databases.is_never_on_postgres(test.path)
    if config.getoption("--quick") or on_none:
        # As a mark, which takes the place of the values that the fixture has for every test.
        on_sqlite = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
        test.add_marker(on_sqlite, append=False)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect the long tests, which `make faults` runs, and start the slowest tests first."""
    long = {item for item in items if item.get_closest_marker("long")}
    for item in long:
        boxes.set_timeout(item)
    if config.getoption("--long"):
        items.sort(key=boxes.start_order)
        return
    left_out = long
    if without := config.getoption("--without"):
        left_out |= {item for item in items if needed_features.needs(item, without)}
    if config.getoption("--quick"):
        left_out |= {item for item in items if not parts.is_quick(item)}
    if config.getoption("--lean"):
        left_out |= {item for item in items if databases.left_out(item)}
    config.hook.pytest_deselected(items=list(left_out))
    items[:] = sorted(
        (item for item in items if item not in left_out),
        key=lambda item: not parts.is_among_slowest(item.path),
    )


LONGEST_SECTION = 100_000
"""Characters of a test's log or output that its report carries."""


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Shorten the output and log of a test, and escape lone surrogates.

    Worker processes send their reports as UTF-8: one that cannot be encoded ends the whole run.
    """
    report = yield
    report.sections = [
        (name, text[-LONGEST_SECTION:].encode(errors="backslashreplace").decode())
        for name, text in report.sections
    ]
    return report


class SweepLog:
    """Lines for the summary at the end, also from tests in other processes."""

    def __init__(self, properties: list[tuple[str, object]]) -> None:
        self._properties = properties

    def append(self, line: str) -> None:
        self._properties.append((SWEEP, line))


@pytest.fixture
def sweep_log(request: pytest.FixtureRequest) -> SweepLog:
    """Collect lines for the summary, such as the number of kills and their duration."""
    return SweepLog(request.node.user_properties)


@pytest.fixture
def time_box(request: pytest.FixtureRequest) -> TimeBox:
    """The time that this long test may use."""
    return TimeBox(boxes.seconds_of(request.node))


@pytest.fixture
def no_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a test redact only what it keeps itself, and forget that at its end."""
    monkeypatch.setattr(redaction, "_values", {})
    monkeypatch.setattr(redaction, "_needles", [])
    monkeypatch.setattr(redaction, "_lasting", set[str]())


@pytest.fixture
def seed(request: pytest.FixtureRequest) -> int:
    """The seed of this test's random choices; `--seed` repeats those of an earlier run."""
    given = request.config.getoption("--seed")
    chosen = random.SystemRandom().randrange(1_000_000) if given is None else int(given)
    print(f"seed {chosen}: repeat with --seed={chosen}", flush=True)
    return chosen


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Write the kills and seconds of crash tests and long tests, the outcomes of attacks, then the
    seconds of each part."""
    _write_crashes(terminalreporter)
    attack_summary.write(terminalreporter)
    if not terminalreporter.config.getoption("--long"):  # which has no budget a part
        parts.write_times(terminalreporter)


def _write_crashes(terminalreporter: Any) -> None:
    by_test: dict[str, list[Any]] = {}
    for report in (r for found in terminalreporter.stats.values() for r in found):
        if getattr(report, "when", "") != "call" or not hasattr(report, "user_properties"):
            continue
        if "long" in report.keywords or any(name == SWEEP for name, _ in report.user_properties):
            by_test.setdefault(report.nodeid.partition("[")[0], []).append(report)
    if not by_test:
        return
    terminalreporter.section("crashes and long runs")
    for part, reports in by_test.items():
        seconds = sum(report.duration for report in reports)
        failed = sum(report.failed for report in reports)
        told = f"{seconds:7.1f} s  {len(reports)} tests, {failed} failed  {part}"
        terminalreporter.write_line(told)
        for name, line in (p for report in reports for p in report.user_properties):
            if name == SWEEP:
                terminalreporter.write_line(f"            {line}")


@contextlib.contextmanager
def reserved_port() -> Iterator[int]:
    """Yield a port that no other test takes, even while the server on it is down.

    A socket that is bound and does not listen keeps it; a server that reuses addresses can still
    listen there.
    """
    with socket.socket() as reservation:
        reservation.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        port = free_port()
        reservation.bind(("127.0.0.1", port))
        yield port


@pytest.fixture(scope="session")
def postgres(request: pytest.FixtureRequest) -> Iterator[Server]:
    with running(request.config.stash.get(PREPARED, None)) as server:
        yield server


@pytest.fixture(params=["sqlite", "postgres"])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of an empty database: the test runs once on SQLite and once on PostgreSQL."""
    if request.param == "sqlite":
        prepare_database(tmp_path / "agiraph.db")
        return f"sqlite:///{tmp_path / 'agiraph.db'}"
    return request.getfixturevalue("postgres").fresh()


@pytest.fixture
def easy_endings() -> bool:
    """Whether work in `world` ends more easily than in the product; scenarios override it."""
    return True


@pytest.fixture
async def world(tmp_path: Path, database_url: str, easy_endings: bool) -> AsyncIterator[World]:
    """A whole runtime: the test runs once on each database."""
    home = tmp_path / "home"
    async with World(home, database_url=database_url, easy_endings=easy_endings) as opened:
        yield opened
