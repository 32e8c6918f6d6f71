"""Logs: one line for each record, with the ids of its request and node, without secrets."""

import io
import logging
import os
import pty
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import aiohttp
import orjson
import pytest

from agiraph import config, logs, redaction
from agiraph.core.domain.errors import Misconfigured
from tests.api.serving import Served, serving
from tests.cli.shell import Shell

log = logging.getLogger("agiraph.tested")


@pytest.fixture(autouse=True)
def restore_loggers() -> Iterator[None]:
    """Put back the handlers and levels: loggers are shared by the whole process."""
    root, ours = logging.getLogger(), logging.getLogger("agiraph")
    kept = (list(root.handlers), root.level, ours.level)
    yield
    root.handlers, root.level = kept[0], kept[1]
    ours.setLevel(kept[2])


@pytest.fixture
def lines() -> io.StringIO:
    stream = io.StringIO()
    logs.begin("debug", stream=stream)
    return stream


def read(stream: io.StringIO) -> list[dict[str, Any]]:
    return [orjson.loads(line) for line in stream.getvalue().splitlines()]


def test_a_record_is_one_json_line_with_the_ids_of_its_context(
    lines: io.StringIO,
) -> None:
    with logs.traced(team="team_x", node=None), logs.traced(request="r1"):
        log.warning('two\nlines and "quotes" %s', {"a": 1}, extra={"facts": {"status": 200}})
    log.info("outside")
    first, second = read(lines)
    assert {name: first[name] for name in first if name != "at"} == {
        "level": "warning",
        "logger": "agiraph.tested",
        "message": "two\nlines and \"quotes\" {'a': 1}",
        "team": "team_x",
        "request": "r1",
        "status": 200,
    }
    assert set(second) == {"at", "level", "logger", "message"}


def test_an_exception_is_logged_with_its_traceback_in_one_line(lines: io.StringIO) -> None:
    try:
        raise ValueError("first\nsecond")
    except ValueError:
        log.exception("it broke")
    [record] = read(lines)
    assert record["error"].endswith("ValueError: first\nsecond")
    assert "Traceback" in record["error"]


def test_a_record_with_a_lone_surrogate_or_a_very_long_error_is_written(
    lines: io.StringIO,
) -> None:
    """JSON cannot encode a lone surrogate, and an error may quote a whole file."""
    try:
        raise ValueError("begin \ud800 " + "x" * 1_000_000 + " end")
    except ValueError:
        log.exception("half a pair: \udfff")
    [record] = read(lines)
    assert record["message"] == "half a pair: \\udfff"
    assert record["error"].endswith(" end")
    assert "begin \\ud800" in record["error"]
    assert len(record["error"]) < logs.RECORD_CHARACTERS + 100


@pytest.mark.usefixtures("no_secrets")
def test_no_secret_is_logged(lines: io.StringIO) -> None:
    redaction.keep({"OPENAI_API_KEY": "sk-very-secret-indeed"})
    log.warning("asked with %s", "sk-very-secret-indeed")
    assert "very-secret" not in lines.getvalue()
    assert read(lines)[0]["message"] == "asked with [hidden]"


def test_at_a_terminal_a_record_is_one_plain_line_that_cannot_be_forged() -> None:
    ours, theirs = pty.openpty()
    with os.fdopen(theirs, "w") as stream:
        logs.begin(stream=stream)
        log.info("too much for a person")
        with logs.traced(node="node_1"):
            log.warning("said: %s", "x\n12:00:00 warning forged \x1b[2J")
        stream.flush()
        said = os.read(ours, 4096).decode().replace("\r\n", "\n")
    os.close(ours)
    assert said.count("\n") == 1
    assert said[8:] == " warning said: x\\n12:00:00 warning forged �[2J  node=node_1\n"


def test_an_unknown_log_level_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Misconfigured, match="AGIRAPH_LOG 'loud' is not known; use debug or info"):
        config.load({"AGIRAPH_HOME": str(tmp_path), "AGIRAPH_LOG": "loud"})
    loaded = config.load({"AGIRAPH_HOME": str(tmp_path), "AGIRAPH_LOG": "DEBUG"})
    assert loaded.log == "debug"
    assert loaded.shown["AGIRAPH_LOG"].origin == "environment"


@pytest.fixture
async def served(tmp_path: Path) -> Any:
    async with serving(tmp_path / "home") as opened:
        yield opened


@pytest.mark.parametrize(
    ("sent", "is_kept"),
    [("abc-1", True), ("x" * 128, True), ("x" * 129, False), ("a b", False), ("", False)],
)
async def test_a_request_has_an_id_that_the_client_may_choose(
    served: Served, lines: io.StringIO, sent: str, is_kept: bool
) -> None:
    headers = {"Authorization": "Bearer a-token-of-32-characters-for-test", "X-Request-Id": sent}
    async with served.http.get(f"{served.origin}/api/teams?limit=7", headers=headers) as response:
        got = response.headers["X-Request-Id"]
    assert (got == sent, bool(got)) == (is_kept, True)
    [noted] = [record for record in read(lines) if record["message"] == "request"]
    told = {name: noted[name] for name in ("request", "method", "path", "status", "caller")}
    assert told == {
        "request": got,
        "method": "GET",
        "path": "/api/teams",
        "status": 200,
        "caller": "admin",
    }


async def test_an_unauthorized_request_cannot_choose_its_id_or_fill_the_log(
    served: Served, lines: io.StringIO
) -> None:
    headers = {"X-Request-Id": "mine"}
    async with served.http.get(f"{served.origin}/api/teams", headers=headers) as response:
        assert (response.status, "X-Request-Id" in response.headers) == (401, False)
    assert lines.getvalue() == ""


@pytest.mark.slow
async def test_a_server_without_a_terminal_logs_json_with_request_and_node_ids(
    tmp_path: Path,
) -> None:
    token = "a-token-of-32-characters-for-test"
    agiraph = Shell(tmp_path / "home", {"AGIRAPH_PORT": "0", "AGIRAPH_TOKEN": token})
    async with agiraph.start("up") as process:
        await process.says("is up at")
        origin = process.seen.split("is up at ")[1].split()[0]
        headers = {"Authorization": f"Bearer {token}", "X-Request-Id": "mine-1"}
        async with aiohttp.ClientSession(headers=headers) as http:
            async with http.post(f"{origin}/api/teams", json={"goal": "Try"}) as response:
                team = await response.json()
            await process.says('"started to work"')
        process.signal(signal.SIGTERM)
        ended = await process.ends()
    records = [orjson.loads(line) for line in ended.out.splitlines() if line.startswith("{")]
    asked = next(record for record in records if record["message"] == "request")
    worked = next(record for record in records if record["message"] == "started to work")
    assert (ended.code, asked["request"], asked["status"]) == (0, "mine-1", 201)
    assert (worked["team"], worked["agent"]) == (team["id"], team["coordinator_id"])
    assert worked["node"].startswith("node_")
    assert worked["thread"].startswith("t_")
    assert token not in ended.out
