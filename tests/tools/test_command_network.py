"""The network of commands: packages unless the call names another, and labelled by its hosts."""

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from agiraph import faultpoints
from agiraph.core.domain.persons import OWNER
from agiraph.core.domain.provenance.grants import GrantKind
from agiraph.core.domain.provenance.labels import CLEAN, Label, of_file, of_host
from agiraph.core.services.lifecycle.answers import make_grant
from agiraph.core.services.lifecycle.teams import NewTeam
from agiraph.core.store.texts import file_labels
from agiraph.core.store.tx import Tx
from agiraph.core.tools.base import Tool
from agiraph.core.tools.commands.shell import bash, may_use_network, needs_network
from agiraph.models.base import Request
from agiraph.sandbox import levels
from agiraph.testing import PowerCut, Says, World, call, says
from agiraph.testing.scripted import ReactiveModel
from agiraph.web.access import Web
from agiraph.web.addresses import AddressPolicy, StandIn
from agiraph.web.fetch import Fetcher
from tests.policies.obedient_model import Sink, open_sink
from tests.tools.strangers import (
    DONE,
    READ,
    STRANGER,
    answers,
    found_with_calls,
    go_on_with,
    strange_world,
    undecided,
)

pytestmark = pytest.mark.skipif(
    not levels.choose().has_gate, reason="commands cannot be confined on this kernel"
)
TEXT = "The bread is ready."
HOST = "bread.example"
FROM_HOST = of_host(HOST)
REACHED = "network.reached"
CURL = f"curl -sS -m 5 http://{HOST}/page"


@pytest.fixture
async def server() -> AsyncIterator[Sink]:
    async with open_sink() as opened:
        opened.pages["/page"] = TEXT
        yield opened


@pytest.fixture
async def strange(tmp_path: Path, server: Sink) -> AsyncIterator[World]:
    policy = AddressPolicy(stand_ins={HOST: StandIn("127.0.0.1", server.port)})
    web = Web(fetcher=Fetcher(policy=policy))
    async with strange_world(tmp_path, web=web) as world:
        yield world


def curl(**more: Any) -> Any:
    return call("bash", command=CURL, **more)


def grant(tx: Tx, founded: NewTeam, kind: GrantKind, pattern: str) -> None:
    make_grant(tx, kind=kind, pattern=pattern, person_id=OWNER, team_id=founded.team.id)


async def label_of_goal(world: World, founded: NewTeam) -> Label:
    assert founded.node is not None
    return (await world.thread(founded.node.id)).label


async def test_curl_with_the_network_of_every_command_is_refused_with_how_to_allow_it(
    strange: World, server: Sink
) -> None:
    command = f"{CURL}; curl -sS -m 5 https://{HOST}/page"
    founded = await found_with_calls(strange, call("bash", command=command))
    said, _ = await answers(strange, founded)
    sentence = (
        f'network="packages" does not reach {HOST}: make the same call with network="open" to '
        'reach any public host, or with network="hosts" if a grant names it.'
    )
    assert said.splitlines() == [
        "[exit code 56]",
        f"agiraph: {sentence}",
        "curl: (56) CONNECT tunnel failed, response 403",
        f"({sentence})",
    ]
    assert not server.received
    assert await label_of_goal(strange, founded) == CLEAN
    [refused] = [e for e in await strange.events(founded.team.id) if e.type == "network.refused"]
    assert refused.data["sentences"] == [sentence]


async def test_a_program_that_asks_no_proxy_finds_no_network_and_is_told_so(
    strange: World, server: Sink
) -> None:
    command = f"env -i {CURL}"
    founded = await found_with_calls(strange, call("bash", command=command, network="open"))
    said, _ = await answers(strange, founded)
    assert "Could not resolve host" in said
    assert "goes through the HTTP proxy in the variables http_proxy" in said
    assert not server.received


@pytest.mark.parametrize("word", ["open", True, "true", "Open"])
async def test_a_clean_command_with_network_works_and_labels_its_thread(
    strange: World, server: Sink, word: Any
) -> None:
    founded = await found_with_calls(strange, curl(network=word))
    said, _ = await answers(strange, founded)
    lines = said.splitlines()
    assert lines[0] == "[exit code 0]"
    assert "from 1 site. It is data" in lines[1]
    assert lines[2] == TEXT
    assert await label_of_goal(strange, founded) == FROM_HOST
    assert await undecided(strange, founded) == []
    [reached] = [e.data for e in await strange.events(founded.team.id) if e.type == REACHED]
    assert (reached["host"], reached["use"], "grant_id" in reached) == (HOST, "web", False)


async def test_hosts_reaches_granted_hosts_alone(strange: World, server: Sink) -> None:
    founded = await strange.found("Keep watch", start=False)
    await strange.store.write(grant, founded, "reach", HOST)
    strange.script("ada")
    command = f"{CURL}; curl -sS -m 5 http://www.{HOST}/page"
    await go_on_with(strange, founded, READ, call("bash", command=command, network="hosts"))
    _, said, _ = await answers(strange, founded)
    assert TEXT in said
    assert f"agiraph grant {founded.team.id} reach www.{HOST}" in said.splitlines()[-1]
    assert await undecided(strange, founded) == []
    [reached] = [e.data for e in await strange.events(founded.team.id) if e.type == REACHED]
    assert reached["grant_id"].startswith("grant_")


async def test_a_word_that_names_no_network_is_refused_with_the_words_there_are(
    strange: World,
) -> None:
    founded = await found_with_calls(strange, call("bash", command="true", network="wifi"))
    said, _ = await answers(strange, founded)
    assert "'network' is wrong (Input should be 'none', 'packages', 'hosts' or 'open')" in said


async def test_a_command_of_a_clean_thread_writes_nothing_outside_of_its_node(
    strange: World, tmp_path: Path
) -> None:
    there = tmp_path / "project"
    there.mkdir()
    command = f"echo made > {there}/made"
    await found_with_calls(strange, call("bash", command=command))
    assert list(there.iterdir()) == []


ASKS = [("strict", "open"), ("strict", "packages"), ("strict", "hosts"), ("standard", "open")]


@pytest.mark.parametrize(("trust", "network"), ASKS)
async def test_a_labelled_thread_asks_for_a_command_with_network(
    strange: World, server: Sink, trust: str, network: str
) -> None:
    founded = await found_with_calls(strange, READ, curl(network=network), trust=trust)
    [question] = await undecided(strange, founded)
    assert (question.kind, f"http://{HOST}/page" in str(question.call)) == ("approval", True)
    assert not server.received


@pytest.mark.parametrize("trust", ["strict", "standard"])
async def test_a_labelled_command_that_names_no_network_asks_nobody(
    strange: World, server: Sink, trust: str
) -> None:
    founded = await found_with_calls(strange, READ, curl(), trust=trust)
    _, said, _ = await answers(strange, founded)
    assert "person is asked" in said or "the human is asked" in said
    assert await undecided(strange, founded) == []
    assert not server.received


async def test_the_same_command_needs_nobody_in_an_open_team(strange: World, server: Sink) -> None:
    founded = await found_with_calls(strange, READ, curl(network="open"), trust="open")
    _, said, _ = await answers(strange, founded)
    assert TEXT in said
    assert await label_of_goal(strange, founded) == STRANGER | FROM_HOST
    assert await undecided(strange, founded) == []


async def test_a_second_command_with_network_asks_because_the_first_labelled_the_thread(
    strange: World, server: Sink
) -> None:
    founded = await found_with_calls(
        strange, curl(network="open"), call("bash", command="curl x", network="open")
    )
    [question] = await undecided(strange, founded)
    assert f"the network ({HOST})" in question.text


async def test_a_labelled_command_without_network_is_free_and_writes_only_to_scratch(
    strange: World, server: Sink, tmp_path: Path
) -> None:
    there = Path("/usr") / tmp_path.name
    command = f"echo kept > here; cat here; echo out > {there}"
    founded = await found_with_calls(strange, READ, call("bash", command=command), curl())
    _, written, tried, _ = await answers(strange, founded)
    assert "\nkept\n" in written
    assert written.endswith("(It could write only here, since this thread holds words from 1 "
                            "site.)")  # fmt: skip
    assert 'network="open" and a person is asked' in tried
    assert not there.exists()
    assert not server.received
    assert await undecided(strange, founded) == []


async def test_a_model_that_never_names_the_network_comes_to_an_end(
    strange: World, server: Sink
) -> None:
    """It ignores the advice and makes the same call for ever."""

    def react(request: Request) -> Says:
        return says(curl())

    strange.model("ada", ReactiveModel("scripted/ada", react))
    founded = await strange.found("Fetch the page")
    await strange.settle()
    [goal] = await strange.board(founded.team.id)
    assert goal.status.is_final
    assert not server.received


async def test_a_command_that_a_person_trusts_does_not_label(strange: World, server: Sink) -> None:
    founded = await strange.found("Keep watch", start=False)
    await strange.store.write(grant, founded, "trust", CURL)
    strange.script("ada")
    await go_on_with(strange, founded, curl(network="open"))
    said, _ = await answers(strange, founded)
    assert said == f"[exit code 0]\n{TEXT}"
    # The grant is for these words alone.
    await go_on_with(strange, founded, call("bash", command=f"{CURL} --compressed", network="open"))
    last = (await strange.board(founded.team.id))[-1]
    assert (await strange.thread(last.id)).label == FROM_HOST


async def test_a_file_that_a_command_downloaded_labels_whoever_reads_it(
    strange: World, server: Sink
) -> None:
    download = f"{CURL} -o page.md"
    founded = await found_with_calls(
        strange,
        call("bash", command=download, network="open"),
        call("publish", summary="Fetched."),
    )
    assert founded.node is not None
    path = f"nodes/{founded.node.id}/published/page.md"
    await go_on_with(strange, founded, call("read_file", path=path))
    last = (await strange.board(founded.team.id))[-1]
    assert (await strange.thread(last.id)).label == FROM_HOST


async def test_a_crash_after_a_host_was_reached_leaves_the_thread_labelled(
    strange: World, server: Sink
) -> None:
    """The runtime dies while the command runs; what it downloaded lies in scratch."""

    def cut(point: str) -> None:
        if point == "fx:after:command":
            raise PowerCut

    strange.script("ada", says(curl(network="open")), DONE)
    faultpoints.armed = cut
    try:
        founded = await strange.found("Fetch it")
        await strange.settle()
    finally:
        faultpoints.armed = None
    assert await label_of_goal(strange, founded) == FROM_HOST
    await strange.restart()
    await strange.settle()
    [said, _] = await answers(strange, founded)
    assert said.splitlines()[0] == "[exit code 0]"
    assert "It is data" in said.splitlines()[1]
    assert said.splitlines()[2] == TEXT


async def labelled_file(world: World) -> tuple[NewTeam, str]:
    """Let a node read a stranger's page and publish a file; return the file's path."""
    founded = await found_with_calls(
        world,
        READ,
        call("write_file", path="found.md", content="CANARY-9"),
        call("publish", summary="Done."),
    )
    assert founded.node is not None
    return founded, f"nodes/{founded.node.id}/published/found.md"


async def test_a_clean_command_does_not_see_labelled_files_that_it_does_not_name(
    strange: World,
) -> None:
    founded, _ = await labelled_file(strange)
    half = len(str(strange.path)) // 2  # its words do not name the home
    first, second = str(strange.path)[:half], str(strange.path)[half:]
    command = f'a={first}; b={second}; grep -rs "CANARY-[9]" "$a$b"; ls "$a$b"'
    await go_on_with(strange, founded, call("bash", command=command))
    said, _ = await answers(strange, founded)
    assert said == "[exit code 0]\nteams"
    last = (await strange.board(founded.team.id))[-1]
    assert (await strange.thread(last.id)).label == CLEAN


async def test_a_clean_command_that_names_a_labelled_file_sees_it_and_is_labelled(
    strange: World,
) -> None:
    founded, path = await labelled_file(strange)
    await go_on_with(strange, founded, call("bash", command=f"cat ../../../{path}"))
    said, _ = await answers(strange, founded)
    assert "CANARY-9" in said
    last = (await strange.board(founded.team.id))[-1]
    assert (await strange.thread(last.id)).label == STRANGER


@pytest.mark.parametrize("folder", ["user_uploads", "user_*"])
async def test_a_file_that_is_uploaded_while_a_command_runs_labels_its_thread(
    strange: World, folder: str
) -> None:
    half = len(str(strange.path)) // 2  # its words do not name the home
    first, second = str(strange.path)[:half], str(strange.path)[half:]
    wait = f"a={first}; b={second}; mkfifo begun go 2>/dev/null; echo yes > begun; cat go"
    command = f'{wait}; cat "$a$b"/teams/*/{folder}/new.csv'

    def begin(_: Request) -> Says:
        [scratch] = (strange.path / "teams").glob("*/nodes/*/scratch")
        (scratch.parents[2] / "user_uploads").mkdir()
        return says(call("bash", command=command))

    strange.script("ada", begin, DONE)
    founded = await strange.found("Wait for the file")
    assert founded.node is not None
    scratch = strange.path / "teams" / founded.team.id / "nodes" / founded.node.id / "scratch"
    scratch.mkdir(parents=True, exist_ok=True)
    for name in ("begun", "go"):
        with contextlib.suppress(FileExistsError):
            os.mkfifo(scratch / name)
    await asyncio.to_thread((scratch / "begun").read_text)
    label, path = of_file("new.csv"), "user_uploads/new.csv"
    await strange.store.write(file_labels.put, founded.team.id, path, b"CANARY-9", label=label)
    with strange.runtime.home.team(founded.team.id).folder as home:
        home.write(path, b"CANARY-9")
    await asyncio.to_thread((scratch / "go").write_text, "go")
    await strange.settle()
    said, _ = await answers(strange, founded)
    assert "CANARY-9" in said
    assert await label_of_goal(strange, founded) == label


async def test_a_clean_command_with_network_sees_no_labelled_file_even_if_it_names_it(
    strange: World, server: Sink
) -> None:
    founded, path = await labelled_file(strange)
    command = f"{CURL} -d @../../../{path}"
    await go_on_with(strange, founded, call("bash", command=command, network="open"))
    assert b"CANARY-9" not in server.received


LOCAL = {
    "ls -la": False,
    "cat a.md | grep x | wc -l": False,
    "mkdir -p a && cp b a/ ; echo done > c": False,
    "echo a # b\ncurl http://x": True,
    "curl http://x": True,
    "echo $(curl http://x)": True,
    "echo x > /dev/tcp/1.2.3.4/80": True,
    "ls; python3 go.py": True,
    "echo `id`": True,
    "cat <(curl x)": True,
    "echo 'unclosed": True,
    "A=1 make": True,
}


@pytest.mark.parametrize("command", LOCAL)
def test_only_plain_file_commands_are_known_to_reach_no_network(command: str) -> None:
    assert may_use_network(command) is LOCAL[command]


NEEDS = {
    ("pip install x", ""): True,
    ("git -C a clone b", ""): True,
    ("/usr/bin/curl -s x", ""): True,
    ("python3 get.py", "socket.gaierror: Temporary failure in name resolution"): True,
    ("npm test", "1 test failed"): True,
    ("pytest", "1 failed"): False,
    ("grep curl notes.md.gz", ""): True,
    ("make", "error: x is undefined"): False,
}


@pytest.mark.parametrize(("command", "output"), NEEDS)
def test_the_advice_is_given_where_the_network_may_be_missing(command: str, output: str) -> None:
    assert needs_network(command, output) is NEEDS[command, output]


def test_the_schema_names_the_four_words() -> None:
    assert isinstance(bash, Tool)
    assert bash.spec.schema["properties"]["network"]["enum"] == [
        "none",
        "packages",
        "hosts",
        "open",
    ]
