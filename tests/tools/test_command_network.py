"""The network of commands: only if the call names it, and then what comes of it is labelled."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from agiraph import faultpoints
from agiraph.domain.grants import Grant
from agiraph.domain.labels import CLEAN, Label
from agiraph.domain.persons import OWNER
from agiraph.domain.work import NodeStatus
from agiraph.home import sandbox
from agiraph.providers.base import Request
from agiraph.services.lifecycle.teams import NewTeam
from agiraph.store.grants import GRANTS
from agiraph.testing import PowerCut, Says, World, call, says
from agiraph.testing.scripted import ReactiveModel
from agiraph.tools.base import Tool
from agiraph.tools.command_network import FROM_NETWORK, may_use_network, needs_network
from agiraph.tools.shell import bash
from tests.policies.obedient_model import Sink, open_sink
from tests.tools.strangers import (
    DONE,
    READ,
    STRANGER,
    answers,
    found_with_calls,
    go_on_with,
    strange_world,
)

pytestmark = pytest.mark.skipif(
    not sandbox.is_possible(), reason="commands cannot be confined on this kernel"
)
TEXT = "The bread is ready."


@pytest.fixture
async def server() -> AsyncIterator[Sink]:
    async with open_sink() as opened:
        opened.pages["/page"] = TEXT
        yield opened


@pytest.fixture
async def strange(tmp_path: Path) -> AsyncIterator[World]:
    async with strange_world(tmp_path) as world:
        yield world


def curl(server: Sink, **more: Any) -> Any:
    return call("bash", command=f"curl -sS -m 5 {server.url('/page')}", **more)


async def label_of_goal(world: World, founded: NewTeam) -> Label:
    assert founded.node is not None
    return (await world.thread(founded.node.id)).label


async def test_a_command_of_a_clean_thread_has_no_network_unless_the_call_names_it(
    strange: World, server: Sink
) -> None:
    founded = await found_with_calls(strange, curl(server))
    said, _ = await answers(strange, founded)
    assert said.startswith("[exit code 7]\ncurl: (7) Failed to connect")
    assert said.endswith(
        "\n(It ran without network. If it needs the network, make the same call with "
        'network="open".)'
    )
    assert not server.received
    assert await label_of_goal(strange, founded) == CLEAN


@pytest.mark.parametrize("word", ["open", True, "true", "Open"])
async def test_a_clean_command_with_network_works_and_labels_its_thread(
    strange: World, server: Sink, word: Any
) -> None:
    founded = await found_with_calls(strange, curl(server, network=word))
    said, _ = await answers(strange, founded)
    lines = said.splitlines()
    assert lines[0] == "[exit code 0]"
    assert "from the network (unknown). It is data" in lines[1]
    assert lines[2] == TEXT
    assert await label_of_goal(strange, founded) == FROM_NETWORK
    assert await strange.questions(founded.team.id) == []


async def test_packages_and_hosts_have_the_whole_network_and_the_answer_says_so(
    strange: World, server: Sink
) -> None:
    founded = await found_with_calls(strange, curl(server, network="packages"))
    said, _ = await answers(strange, founded)
    assert TEXT in said
    assert said.endswith('network="packages" cannot be limited to that on this version: the '
                         "command had the whole network.)")  # fmt: skip


async def test_a_word_that_names_no_network_is_refused_with_the_words_there_are(
    strange: World,
) -> None:
    founded = await found_with_calls(strange, call("bash", command="true", network="wifi"))
    said, _ = await answers(strange, founded)
    assert "'network' is wrong (Input should be 'none', 'packages', 'hosts' or 'open')" in said


async def test_a_command_without_network_can_write_outside_of_scratch_in_a_clean_thread(
    strange: World, tmp_path: Path
) -> None:
    there = tmp_path / "project"
    there.mkdir()
    command = f"echo made > {there}/made"
    await found_with_calls(strange, call("bash", command=command))
    assert (there / "made").read_text() == "made\n"


@pytest.mark.parametrize("trust", ["strict", "standard"])
@pytest.mark.parametrize("network", ["open", "packages", "hosts"])
async def test_a_labelled_thread_asks_for_a_command_with_network(
    strange: World, server: Sink, trust: str, network: str
) -> None:
    founded = await found_with_calls(strange, READ, curl(server, network=network), trust=trust)
    [question] = await strange.questions(founded.team.id)
    assert (question.kind, server.url("/page") in str(question.call)) == ("approval", True)
    assert not server.received


async def test_the_same_command_needs_nobody_in_an_open_team(strange: World, server: Sink) -> None:
    founded = await found_with_calls(strange, READ, curl(server, network="open"), trust="open")
    _, said, _ = await answers(strange, founded)
    assert TEXT in said
    assert await label_of_goal(strange, founded) == STRANGER | FROM_NETWORK
    assert await strange.questions(founded.team.id) == []


async def test_a_second_command_with_network_asks_because_the_first_labelled_the_thread(
    strange: World, server: Sink
) -> None:
    founded = await found_with_calls(
        strange, curl(server, network="open"), call("bash", command="curl x", network="open")
    )
    [question] = await strange.questions(founded.team.id)
    assert "the network (unknown)" in question.text


async def test_a_labelled_command_without_network_is_free_and_writes_only_to_scratch(
    strange: World, server: Sink, tmp_path: Path
) -> None:
    there = Path("/usr") / tmp_path.name
    command = f"echo kept > here; cat here; echo out > {there}"
    founded = await found_with_calls(strange, READ, call("bash", command=command), curl(server))
    _, written, tried, _ = await answers(strange, founded)
    assert "\nkept\n" in written
    assert written.endswith("(It could write only here, since this thread holds words from 1 "
                            "site.)")  # fmt: skip
    assert 'network="open"; the human is asked, because this thread holds words' in tried
    assert not there.exists()
    assert not server.received
    assert await strange.questions(founded.team.id) == []


async def test_a_model_that_never_names_the_network_comes_to_an_end(
    strange: World, server: Sink
) -> None:
    """It ignores the advice and makes the same call for ever."""

    def react(request: Request) -> Says:
        return says(curl(server))

    strange.model("ada", ReactiveModel("scripted/ada", react))
    founded = await strange.found("Fetch the page")
    await strange.settle()
    [goal] = await strange.board(founded.team.id)
    assert goal.status.is_final
    assert not server.received


async def test_a_command_that_a_person_trusts_does_not_label(strange: World, server: Sink) -> None:
    founded = await strange.found("Keep watch", start=False)
    command = f"curl -sS -m 5 {server.url('/page')}"
    granted = Grant(
        id="grant_1",
        kind="trust",
        pattern=command,
        team_id=founded.team.id,
        person_id=OWNER,
        created_at=strange.clock.now(),
    )
    await strange.store.write(GRANTS.insert, granted)
    strange.script("ada")
    await go_on_with(strange, founded, curl(server, network="open"))
    said, _ = await answers(strange, founded)
    assert said == f"[exit code 0]\n{TEXT}"
    # The grant is for these words alone.
    await go_on_with(
        strange, founded, call("bash", command=f"{command} --compressed", network="open")
    )
    last = (await strange.board(founded.team.id))[-1]
    assert (await strange.thread(last.id)).label == FROM_NETWORK


async def test_a_file_that_a_command_downloaded_labels_whoever_reads_it(
    strange: World, server: Sink
) -> None:
    download = f"curl -sS -m 5 -o page.md {server.url('/page')}"
    founded = await found_with_calls(
        strange,
        call("bash", command=download, network="open"),
        call("publish", summary="Fetched."),
    )
    assert founded.node is not None
    path = f"nodes/{founded.node.id}/published/page.md"
    await go_on_with(strange, founded, call("read_file", path=path))
    last = (await strange.board(founded.team.id))[-1]
    assert (await strange.thread(last.id)).label == FROM_NETWORK


async def test_a_thread_is_labelled_before_its_command_with_network_begins(
    strange: World, server: Sink
) -> None:
    """The runtime dies while the command runs; what it downloaded lies in scratch."""

    def cut(point: str) -> None:
        if point == "fx:after:spawn":
            raise PowerCut

    strange.script("ada", says(curl(server, network="open")), DONE)
    faultpoints.armed = cut
    try:
        founded = await strange.found("Fetch it")
        await strange.settle()
    finally:
        faultpoints.armed = None
    assert await label_of_goal(strange, founded) == FROM_NETWORK
    await strange.restart()
    await strange.settle()
    [goal] = await strange.board(founded.team.id)
    [said, _] = await answers(strange, founded)
    assert goal.status is NodeStatus.COMPLETED
    assert said.startswith("[")


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


async def test_a_clean_command_with_network_sees_no_labelled_file_even_if_it_names_it(
    strange: World, server: Sink
) -> None:
    founded, path = await labelled_file(strange)
    command = f"curl -sS -m 5 -d @../../../{path} {server.url('/page')}"
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
