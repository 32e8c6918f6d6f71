"""Sandbox mutants: each guard that is taken out lets an attack of the probes succeed."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Generator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.home.sandbox_probes import confined_run, matrix
from tests.home.sandbox_probes.confined_run import marked
from tests.tools.tool_calls import run_calls

from agiraph.core.domain.agents import GivenFolder
from agiraph.sandbox import levels, sandbox
from agiraph.sandbox.inside import seccomp, supervisor
from agiraph.testing import World, call

pytestmark = pytest.mark.skipif(
    not levels.choose().has_gate, reason="this machine has no namespaces"
)
ALLOW_ALL = bytes.fromhex("060000000000ff7f")
FILTERS = {
    "there is no filter": ("program", lambda **_: ALLOW_ALL, "net: vsock"),
    "setuid bits are not looked at": ("_deny_set_id", lambda _: None, "priv: setuid file by open"),
    "a mode at creation is not looked at": (
        "_deny_set_id_at_creation",
        lambda *_: None,
        "priv: setuid file by open",
    ),
    "clone3 is allowed": (
        "_CHECKED",
        {**seccomp._CHECKED, "clone3": 999},
        "priv: userns by clone3",
    ),
}
SOURCES = {
    "there is no IPC namespace": (
        "confinement.py",
        " | kernel.CLONE_NEWIPC",
        "",
        "ipc: sysv shm",
    ),
    "the kernel's settings are writable": (
        "confinement.py",
        "    root_folder.freeze_settings(root_folder.PLACE)\n",
        "",
        "proc: write sysctl",
    ),
}
"""Of the supervisor's files: what is taken out of which file, and the attack that then succeeds."""


@pytest.mark.parametrize(("name", "value", "attack"), FILTERS.values(), ids=FILTERS)
async def test_a_weaker_filter_lets_an_attack_through(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, value: Any, attack: str
) -> None:
    seccomp.program.cache_clear()
    monkeypatch.setattr(seccomp, name, value)
    found = await matrix.probe(tmp_path, "namespaces", unix=False)
    monkeypatch.undo()
    seccomp.program.cache_clear()
    assert attack in found


@pytest.mark.skipif(os.geteuid() != 0, reason="what only root could do")
@pytest.mark.parametrize(("file", "code", "instead", "attack"), SOURCES.values(), ids=SOURCES)
async def test_a_missing_step_lets_an_attack_through(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    file: str,
    code: str,
    instead: str,
    attack: str,
) -> None:
    plant(tmp_path / "mutant", monkeypatch, (file, code, instead))
    assert attack in await matrix.probe(tmp_path / "probes", "namespaces", unix=False)


def plant(folder: Path, monkeypatch: pytest.MonkeyPatch, *changes: tuple[str, str, str]) -> None:
    """Have commands run by a copy of the supervisor's files with these changes."""
    for name, value in confined_run.plant(folder, changes).items():
        monkeypatch.setattr(supervisor, name, value)


TMPFS = """    for path in FLEETING:
        os.makedirs(PLACE + path)
        empty(PLACE + path, spec["tmp_mib"])
"""
LAST = """    place_all(spec, trees)
"""


def test_folders_in_memory_that_are_mounted_last_hide_the_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with tempfile.TemporaryDirectory(dir="/tmp") as below:
        assert levels._try(below, "namespaces", False) == (0, "")
        late = TMPFS.replace(
            "os.makedirs(PLACE + path)", "os.makedirs(PLACE + path, exist_ok=True)"
        )
        plant(
            tmp_path / "mutant",
            monkeypatch,
            ("root_folder.py", TMPFS, ""),
            ("root_folder.py", LAST, LAST + late),
        )
        code, said = levels._try(below, "namespaces", False)
    assert (code, "No such file" in said) == (127, True)


AGAIN = "        kernel.die_with_parent()  # the change of user has cleared it\n"


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0, reason="only root runs commands as another user")
@pytest.mark.parametrize("is_planted", [False, True], ids=["as it is", "without the signal"])
def test_a_change_of_user_loses_the_death_signal_unless_it_is_set_again(
    tmp_path: Path, is_planted: bool
) -> None:
    """Runtime and supervisor are killed at the same time, so neither ends the command."""
    mark = f"mark-{uuid.uuid4().hex}"
    changes = [("confinement.py", AGAIN, "")] if is_planted else []
    with started_runtime(tmp_path, f"exec -a {mark} sleep 1000", changes) as runtime:
        begun = json.loads((tmp_path / "spool" / "started.json").read_text())
        os.kill(begun["pid"], signal.SIGSTOP)  # or it would see the end of the runtime
        for pid in (runtime.pid, begun["pid"]):
            os.kill(pid, signal.SIGKILL)
        deadline = time.monotonic() + (1.0 if is_planted else 20.0)
        while (left := marked(mark)) and time.monotonic() < deadline:
            os.sched_yield()
        if is_planted:
            os.kill(begun["warden"], signal.SIGKILL)
    assert bool(left) is is_planted


@contextlib.contextmanager
def started_runtime(
    folder: Path, command: str, changes: list[tuple[str, str, str]]
) -> Generator[subprocess.Popen[bytes]]:
    """Run a command as a spare user in another process, which is killed at the end."""
    (folder / "scratch").mkdir()
    os.mkfifo(folder / "scratch" / "begun")
    with subprocess.Popen(
        [
            *(sys.executable, "-m", confined_run.__name__, str(folder), "namespaces"),
            *(f"echo > begun; {command}", json.dumps(changes)),
        ],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        cwd=Path(__file__).parents[2],
    ) as runtime:
        (folder / "scratch" / "begun").read_text()
        try:
            yield runtime
        finally:
            runtime.kill()


CONNECT = "python3 -c \"import socket; s = socket.socket(1); s.connect('{path}'); print('in')\""


@pytest.mark.parametrize("is_planted", [False, True], ids=["as it is", "with Unix sockets"])
async def test_unix_sockets_open_a_program_whose_socket_lies_in_a_given_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_planted: bool
) -> None:
    project = tmp_path / "project"
    project.mkdir()
    if is_planted:
        made = sandbox.spec_of
        monkeypatch.setattr(
            sandbox, "spec_of", lambda *given, **more: replace(made(*given, **more), unix=True)
        )
    path = project / "agent.sock"
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        path.chmod(0o777)
        server.listen()
        async with World(tmp_path / "home", easy_endings=True) as world:
            _, [told] = await run_calls(
                world,
                call("bash", command=CONNECT.format(path=path)),
                folders=(GivenFolder(path=str(project), name="project", access="rw"),),
            )
    assert ("in" in told.text.splitlines()) is is_planted, told.text
