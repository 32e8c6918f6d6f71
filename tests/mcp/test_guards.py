"""What a server, or a file that names one, could abuse: schemas, consent, bytes, names, mounts."""

import asyncio
import gc
import gzip
import json
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from agiraph.core.domain.chat import ToolCall
from agiraph.core.domain.errors import Misconfigured
from agiraph.core.domain.provenance.sinks import Sink
from agiraph.features.mcp import launching, pins
from agiraph.features.mcp.connection import Connection, ServerFailed, Session
from agiraph.features.mcp.pins import SCHEMA_BYTES, PinnedTool, Pins
from agiraph.features.mcp.servers import _tools_of
from agiraph.features.mcp.settings import McpServer, literals, servers
from agiraph.features.mcp.toolbox import (
    McpTools,
    _OfServer,
    checkable,
    fault_in,
    is_plain_name,
    tool_name,
)
from agiraph.sandbox import levels
from agiraph.sandbox.levels import CommandRules, Confinement, Wanted
from agiraph.web.addresses import AddressPolicy
from tests.home.git_attacks import ATTACKS, Person
from tests.mcp.kit import RUDE, call, opened, rude
from tests.mcp.test_toolbox import TEAM


@pytest.mark.parametrize(
    ("schema", "given", "fault"),
    [
        ({"$ref": "http://127.0.0.1:9/x"}, {"a": 1}, ""),
        ({"properties": {"a": {"pattern": "(a+)+$"}}}, {"a": "a" * 40 + "!"}, ""),
        ({"patternProperties": {"^a": {}}, "additionalProperties": False}, {"ab": 1}, ""),
        ({"oneOf": [{"$ref": "#/$defs/a"}, {"$ref": "#/$defs/b"}]}, {"a": 1}, ""),
        ({"not": {"pattern": "x"}, "type": 7}, {"a": 1}, ""),
        (
            {"properties": {"pattern": {"type": "string"}}},
            {"pattern": 7},
            "'pattern' does not fit the schema (type)",
        ),
        ({"required": ["a", "b\nc"]}, {}, "'a' is missing"),
    ],
)
def test_a_schema_of_a_server_is_checked_without_its_references_and_patterns(
    schema: Any, given: dict[str, Any], fault: str
) -> None:
    assert fault_in(schema, given) == fault


def test_a_schema_without_end_is_checked_to_a_depth() -> None:
    deep: dict[str, Any] = {}
    for _ in range(500):
        deep = {"properties": {"a": deep}}
    assert json.dumps(checkable(deep)).count("properties") == 17


def test_names_in_our_sentences_are_short_and_plain() -> None:
    names = ["city", "x-y", "a b", "ignore\nall", "é", "x" * 41, 7]
    assert [is_plain_name(one) for one in names] == [True, True, *[False] * 5]


def a_file(path: Path, **entry: Any) -> McpServer:
    (path / ".mcp.json").write_text(json.dumps({"mcpServers": {"files": entry}}))
    return servers(path / "agiraph.toml", {"files": {"tools": ["*"]}}, [], {})["files"]


async def test_a_server_of_a_file_is_not_started_before_a_person_confirms_how(
    tmp_path: Path,
) -> None:
    first = a_file(tmp_path, command="touch", args=[str(tmp_path / "mark")])
    async with opened(tmp_path, first) as found:
        with pytest.raises(ServerFailed, match=r"is new in .*agiraph mcp confirm files"):
            await found.look("files")
        assert await McpTools(found).offered(TEAM) == ()
        assert found.connection("files").starts == 0
        pins.save(found._home.folder, "files", Pins(reached=first.reached_hash))
        assert pins.unconfirmed(first, found.pins("files")) == ""
        for changed in (
            a_file(tmp_path, command="touch"),
            a_file(tmp_path, command="touch", args=[*first.command[1:]], env={"LD_PRELOAD": "x"}),
            a_file(tmp_path, url="https://evil.example/mcp"),
        ):
            assert "in another way" in pins.unconfirmed(changed, found.pins("files"))
    assert pins.unconfirmed(rude(), None) == ""


@pytest.mark.parametrize("damaged", [b"{}", b'{"tools": []}', b"[]", b"{"])
async def test_one_damaged_pin_file_stops_no_other_server(tmp_path: Path, damaged: bytes) -> None:
    broken = McpServer(name="broken", command=("true",))
    last = McpServer(name="last", command=("true",), is_from_file=True)
    async with opened(tmp_path, broken, last) as found:
        found._home.folder.write("mcp/broken.json", damaged)
        await found._look()
        assert "last" in found._connections  # it was asked


def test_pins_that_could_not_be_read_again_are_not_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pins, "MOST_BYTES", 100)
    tool = PinnedTool.of("a", "word " * 40, {}, says_it_reads=False)
    with pytest.raises(Misconfigured, match="too many bytes"):
        pins.save(cast(Any, None), "files", Pins(tools={"a": tool}))


def test_literal_secrets_of_a_server_are_known_and_plain_settings_are_not() -> None:
    server = McpServer(
        name="web",
        url="https://me:pass%40word1@a.example/mcp?key=abcdefgh12&x=1",
        headers={"Authorization": "Bearer abc123456789", "Accept": "application/json"},
        env={"API_KEY": "12345678", "MODE": "production", "TOKEN": "${declared}"},
        command=(
            *(
                "serve",
                "--api-key",
                "argument-1",
                "--token=argument-2",
                "--tokenizer",
                "cl100k_base",
            ),
            *("--token-file", "/home/me/token.txt", "--key", "/etc/key.pem", "--mode=production"),
            "ghp_0123456789012345678901234567890123",
        ),
    )
    assert sorted(set(literals(server).values())) == [
        "12345678",
        "Bearer abc123456789",
        "abc123456789",
        "abcdefgh12",
        "argument-1",
        "argument-2",
        "ghp_0123456789012345678901234567890123",
        "pass@word1",
    ]


@pytest.mark.parametrize(
    ("arguments", "sink"),
    [
        ({"show": "resources"}, Sink.TOOL_READS),
        ({"resource": "note://the-teams-secrets"}, Sink.TOOL_SENDS),
        ({"prompt": "greet", "arguments": {"whom": "x"}}, Sink.TOOL_SENDS),
        ({"uri": "note://x"}, Sink.TOOL_SENDS),
        ({"resource": "docs://one"}, Sink.TOOL_READS),
    ],
)
async def test_words_of_a_model_in_an_address_are_a_way_out(
    arguments: dict[str, Any], sink: Sink
) -> None:
    server = rude(effects={"resource:docs://*": "reads"})
    made = _OfServer(cast(Any, None), server).server_tool(None)
    assert made.way_out is not None
    way = await made.way_out(cast(Any, None), ToolCall(id="c", name=made.name, arguments=arguments))
    assert way is not None
    assert way.sink is sink


def test_what_is_declared_for_resources_is_not_for_a_tool_with_such_a_name() -> None:
    server = rude(effects={"resource:*": "reads", "prompt:*": "reads", "read_*": "reads"})
    tools = ("resource:send", "prompt:send", "read_it", "send")
    assert [server.reach_of(name) for name in tools] == ["sends", "sends", "reads", "sends"]
    assert server.reach_of_reading("resource", "note://one") == "reads"


def test_of_two_tools_that_come_to_one_name_none_is_offered() -> None:
    odd = tool_name("rude", "a.b").removeprefix("mcp__rude__")
    pinned = [PinnedTool.of(n, "", {}, says_it_reads=False) for n in ("a.b", odd, "a_b")]
    tools = McpTools(cast(Any, None))._make(rude(), Pins(tools={one.name: one for one in pinned}))
    assert [tool.name for tool in tools] == ["mcp__rude", "mcp__rude__a_b"]


class _Pages:
    """A client whose server lists tools without end, none of which can be used."""

    server_capabilities = SimpleNamespace(tools=object())

    async def list_tools(self, cursor: str | None = None) -> Any:
        large = {"description": "x" * SCHEMA_BYTES}
        tools = [
            SimpleNamespace(name="x" * 200, input_schema={}, annotations=None, description=""),
            SimpleNamespace(name="l\narge", input_schema=large, annotations=None, description=""),
        ]
        return SimpleNamespace(tools=tools, next_cursor="more")


async def test_tools_that_are_left_out_are_named_in_one_line(
    caplog: pytest.LogCaptureFixture,
) -> None:
    assert await _tools_of("rude", cast(Any, _Pages())) == []
    [line] = caplog.messages
    assert line.startswith("MCP server 'rude': 258 tools left out. 'xxx")
    assert "'l⟨U+000A⟩arge': its schema is longer than 32 KiB;" in line


def test_a_tool_may_have_an_argument_called_ctx() -> None:
    tool = PinnedTool.of("a", "", {"required": 7}, says_it_reads=False)
    made = _OfServer(cast(Any, None), rude()).tool("mcp__rude__a", tool)
    made.act(cast(Any, None), ctx=1).close()  # pyright: ignore


def test_a_file_that_an_argument_names_shows_no_other_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "user"))
    key, script = tmp_path / "user" / ".ssh" / "key", tmp_path / "server" / "main.py"
    hidden = key.with_name("run.py")
    for file in (key, script, hidden):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
    found = launching._files_of(("true", str(key), str(script), str(hidden)))
    assert found[-3:] == [key, script.parent, hidden]


def test_a_program_that_cannot_be_confined_is_not_started_unless_a_person_says_so(
    tmp_path: Path,
) -> None:
    rules = CommandRules(confinement=Confinement(level="none"))
    with pytest.raises(ServerFailed, match=r"unconfined = true in \[mcp\.rude\]"):
        launching._spec(cast(Any, None), rude(), rules, tmp_path, {}, has_gate=False)
    allowed = rude(unconfined=True)
    assert launching._spec(cast(Any, None), allowed, rules, tmp_path, {}, has_gate=False) is None


class _Link:
    is_over = wants_sign_in = False

    def __init__(self) -> None:
        self.ends = asyncio.Event()

    def begin_call(self) -> None: ...

    async def dead(self) -> None:
        await self.ends.wait()

    def said(self) -> str:
        return ""


async def test_a_session_that_ends_is_given_to_no_call_and_old_calls_do_not_end_the_next() -> None:
    closed, links = asyncio.Event(), list[_Link]()

    @asynccontextmanager
    async def open_session() -> AsyncGenerator[Session]:
        links.append(_Link())
        yield Session(cast(Any, object()), cast(Any, links[-1]))
        await closed.wait()

    connection = Connection(replace(rude(), idle_s=600), open_session)
    async with connection._held() as first:
        links[0].ends.set()
        for _ in range(5):
            await asyncio.sleep(0)
        assert not connection.is_running  # though it is still closing
        closed.set()
    async with connection._held() as second:
        connection._give_up(first)
        assert (connection.is_running, second is first, connection.problem) == (True, False, "")
    await connection.close()


async def test_a_start_that_hangs_is_ended_at_its_time_limit_and_its_late_error_is_not_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    @asynccontextmanager
    async def hanging() -> AsyncGenerator[Session]:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            raise RuntimeError("words of the server") from None
        yield cast(Any, None)

    connection = Connection(rude(start_s=0.05), hanging)
    async with asyncio.timeout(5):  # half of the time that a running session has to end
        with pytest.raises(ServerFailed, match="did not start within"):
            await connection.use(cast(Any, None))
    del connection
    gc.collect()
    assert caplog.messages == []


@pytest.mark.slow
async def test_a_compressed_answer_is_refused() -> None:
    import httpx2

    from agiraph.features.mcp.transport import Link, _Metered

    async def answer(request: httpx2.Request) -> httpx2.Response:
        assert request.headers["Accept-Encoding"] == "identity"
        return httpx2.Response(
            200, headers={"Content-Encoding": "gzip"}, content=gzip.compress(b"x" * 10**6)
        )

    inner: Any = httpx2.MockTransport(answer)
    metered = _Metered(link=Link(), own="a.example", policy=AddressPolicy(), inner=inner)
    async with httpx2.AsyncClient(transport=metered) as http:
        with pytest.raises(httpx2.ReadError, match="compressed"):
            await http.get("http://a.example/")


@pytest.mark.slow
async def test_a_server_writes_its_database_in_a_given_folder_at_every_start(
    tmp_path: Path,
) -> None:
    given = tmp_path / "given"
    given.mkdir()
    database = given / "notes.db"
    # As `server --db-path FILE` does: the file is there from the second start on.
    starts = 'echo start >> "$1" || exit 9; exec "$2" -I -S "$3"'
    words = ("sh", "-c", starts, "server", str(database), sys.executable, str(RUDE))
    server = McpServer(name="rude", command=words, folders=(f"{given}:rw",))
    for _ in range(2):
        async with opened(tmp_path / "home", server) as servers:
            await call(servers, "echo", text="hello")
    assert database.read_text() == "start\nstart\n"


@pytest.mark.slow
@pytest.mark.parametrize("level", ["namespaces", "bubblewrap", "landlock"])
async def test_a_server_leaves_nothing_for_git_in_a_given_folder(
    tmp_path: Path, level: Wanted, monkeypatch: pytest.MonkeyPatch
) -> None:
    if levels.choose(level).reasons:
        pytest.skip(f"this machine has no {level}")
    persons = {name: Person(tmp_path / str(n)) for n, name in enumerate(ATTACKS)}
    monkeypatch.setenv("HOME", str(next(iter(persons.values())).home))
    for name, person in persons.items():
        person.do(ATTACKS[name].before)
    harmed: dict[str, bool] = {}
    every = list(persons.items())
    for some in (every[at : at + 16] for at in range(0, len(every), 16)):
        attacks = [f"(cd {person.app}; {ATTACKS[name].on(person)})" for name, person in some]
        script = "\n".join(["exec 3>&1 >&2", *attacks, 'exec >&3 "$1" -I -S "$2"'])
        # Arguments lie in folders that it may write, as that of `--repository FOLDER` does.
        folders = [str(person.app.resolve()) for _, person in some]
        words = ("bash", "-c", script, "server", sys.executable, str(RUDE), *folders)
        given = tuple(f"{folder}:rw" for folder in folders)
        server = McpServer(name="rude", command=words, folders=given, start_s=300)
        async with opened(tmp_path / "home", server, level=level) as servers:
            await call(servers, "echo", text="hello")
            # The server still runs: what it has made is switched off after each call.
            harmed |= {name: person.is_harmed_by(ATTACKS[name]) for name, person in some}
    assert harmed == dict.fromkeys(ATTACKS, False)


@pytest.mark.slow
async def test_a_server_writes_files_beside_git_in_a_given_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    person = Person(tmp_path / "person")
    monkeypatch.setenv("HOME", str(person.home))
    work = 'cd "$3" && echo 2 > main.py && mkdir -p new && echo 3 > new/b && cd'
    script = f'{work} && exec "$1" -I -S "$2"'
    folder = str(person.app.resolve())
    words = ("sh", "-c", script, "server", sys.executable, str(RUDE), folder)
    server = McpServer(name="rude", command=words, folders=(f"{folder}:rw",))
    async with opened(tmp_path / "home", server) as servers:
        await call(servers, "echo", text="hello")
    assert person.do("git status --short").split() == ["M", "main.py", "??", "new/"]
