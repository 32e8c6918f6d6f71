"""Sandbox mutants: each guard that is taken out lets an attack of the probes succeed."""

import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from tests.home.sandbox_probes import matrix

from agiraph.home import levels, seccomp, supervisor

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
    copied = tmp_path / "mutant"
    copied.mkdir()
    for each in Path(supervisor.__file__).parent.glob("*.py"):
        shutil.copy(each, copied)
    before = (copied / file).read_text()
    assert code in before
    (copied / file).write_text(before.replace(code, instead))
    monkeypatch.setattr(supervisor, "__file__", str(copied / "supervisor.py"))
    monkeypatch.setattr(supervisor, "__cached__", str(copied / "none.pyc"))
    assert attack in await matrix.probe(tmp_path / "probes", "namespaces", unix=False)
