"""Packages and git in the sandbox: real pip, npm and git install and clone through the gate."""

import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from agiraph.core.domain.persons import OWNER
from agiraph.core.domain.provenance.grants import GrantKind
from agiraph.core.domain.provenance.labels import Label
from agiraph.core.services.lifecycle.answers import make_grant
from agiraph.core.services.lifecycle.teams import NewTeam
from agiraph.core.store.tx import Tx
from agiraph.sandbox import levels, sandbox
from agiraph.sandbox.gate.environment import cargo_settings
from agiraph.testing import Call, World, call
from agiraph.web.access import Web
from agiraph.web.addresses import AddressPolicy, StandIn
from agiraph.web.fetch import Fetcher
from tests.tools.strangers import READ, STRANGER, answers, go_on_with, strange_world
from tests.web.gate.upstreams import Upstream, open_upstream, tarball, wheel

pytestmark = pytest.mark.skipif(
    not levels.choose().has_gate, reason="commands have no network namespace of their own here"
)
HOST = "git.example"
ASK = f"curl -sSf http://127.0.0.1:{sandbox.GATE_PORT}/pypi/simple/{{}}/"
PIP = f"{sys.executable} -m pip install -q --no-cache-dir --target lib"
INSTALL = f"{PIP} tea-timer && PYTHONPATH=lib {sys.executable} -c 'import tea_timer, cup_holder'"
MANIFEST = '{"dependencies": {"tea-js": "^1.0.0"}}'
NPM = "npm install --silent --cache ./cache && ls node_modules node_modules/@cups"
CLONE = f"git clone -q http://{HOST}/p.git && cat p/README.md"
PUSH = f"{CLONE}; cd p && git push http://{HOST}/p.git HEAD:other"
REACHED = "network.reached"


@pytest.fixture
async def upstream(tmp_path: Path) -> AsyncIterator[Upstream]:
    async with open_upstream() as opened:
        opened.python |= {
            "tea-timer": wheel("tea-timer", needs=["cup-holder"], says="the tea is ready"),
            "cup-holder": wheel("cup-holder", says="it holds"),
        }
        opened.npm |= {
            "tea-js": (tarball("tea-js"), {"@cups/one": "^1.0.0"}),
            "@cups/one": (tarball("@cups/one"), {}),
        }
        opened.repositories = _repository(tmp_path / "repositories")
        yield opened


def _repository(folder: Path) -> Path:
    work = folder / "work"
    work.mkdir(parents=True)
    (work / "README.md").write_text("how to make tea\n")
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@example.com", "-C", str(work)]
    for step in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "Begin"]):
        subprocess.run([*git, *step], check=True)
    subprocess.run(["git", "clone", "-q", "--bare", str(work), str(folder / "p.git")], check=True)
    return folder


@pytest.fixture
async def strange(tmp_path: Path, upstream: Upstream) -> AsyncIterator[World]:
    policy = AddressPolicy(stand_ins={HOST: StandIn("127.0.0.1", upstream.port)})
    web = Web(fetcher=Fetcher(policy=policy), indexes=upstream.indexes)
    async with strange_world(tmp_path, web=web) as world:
        yield world


def grant(tx: Tx, founded: NewTeam, kind: GrantKind, pattern: str) -> None:
    make_grant(tx, kind=kind, pattern=pattern, person_id=OWNER, team_id=founded.team.id)


async def found(world: World, goal: str, *calls: Call) -> NewTeam:
    """Found a team that may read git from the host, and whose coordinator makes these calls."""
    founded = await world.found(goal, start=False)
    await world.store.write(grant, founded, "read", HOST)
    world.script("ada")
    await go_on_with(world, founded, *calls)
    return founded


async def test_a_clean_thread_installs_and_clones_and_asks_nobody(
    strange: World, upstream: Upstream
) -> None:
    founded = await found(
        strange,
        "Make tea",
        call("write_file", path="package.json", content=MANIFEST),
        call("bash", command=INSTALL),
        call("bash", command=NPM),  # labelled by the first one: the manifest declares the package
        call("bash", command=CLONE),
    )
    _, pip, npm, clone, _ = await answers(strange, founded)
    assert [said.startswith("[exit code 0") for said in (pip, npm, clone)] == [True] * 3
    assert ("the tea is ready" in pip, "one" in npm, "how to make tea" in clone) == (True,) * 3
    assert "It is data" in pip.splitlines()[1]
    assert await strange.questions(founded.team.id) == []
    last = (await strange.board(founded.team.id))[-1]
    assert (await strange.thread(last.id)).label == Label(
        ("network:127.0.0.1", f"network:{HOST}"),
    )
    events = [e.data for e in await strange.events(founded.team.id) if e.type == REACHED]
    assert [(event["host"], event["use"]) for event in events] == [
        ("127.0.0.1", "packages"),
        ("127.0.0.1", "packages"),
        (HOST, "git"),
    ]
    assert "grant_id" in events[2]


async def test_a_labelled_thread_installs_what_was_declared_before_and_nothing_else(
    strange: World, upstream: Upstream
) -> None:
    upstream.python["secret-4711"] = wheel("secret-4711")
    founded = await found(
        strange,
        "Make tea. The password is secret-4711.",
        call("write_file", path="requirements.txt", content="tea-timer>=1\n"),
        READ,
        call("bash", command=f"echo secret-4711 > setup.cfg; {ASK.format('tea-timer')}"),
        call("bash", command=ASK.format("secret-4711")),
    )
    _, _, named, leak, _ = await answers(strange, founded)
    assert "tea_timer-1.0-py3-none-any.whl" in named
    assert leak.startswith("[exit code 22]")
    assert f"agiraph grant {founded.team.id} packages secret-4711" in leak.splitlines()[-1]
    assert not [asked for asked in upstream.asked if "4711" in asked]
    assert await strange.questions(founded.team.id) == []
    last = (await strange.board(founded.team.id))[-1]
    assert (await strange.thread(last.id)).label == STRANGER | Label(("network:127.0.0.1",))


async def test_nothing_is_pushed(strange: World, upstream: Upstream) -> None:
    founded = await found(strange, "Clone it", call("bash", command=PUSH))
    said, _ = await answers(strange, founded)
    assert "how to make tea" in said
    assert "git can only read here" in said.splitlines()[-1]
    assert not [asked for asked in upstream.asked if "receive" in asked]


async def test_cargo_is_told_of_the_gate_by_a_file(strange: World) -> None:
    command = "cat ~/.cargo/config.toml && : cargo build"
    founded = await found(strange, "Build it", call("bash", command=command))
    said, _ = await answers(strange, founded)
    assert said == f"[exit code 0]\n{cargo_settings(sandbox.GATE_PORT)}".rstrip()
