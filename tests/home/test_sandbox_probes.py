"""Sandbox probes: what each level holds, as root and as an ordinary user, against live targets."""

import os
from pathlib import Path

import pytest
from tests.home.ordinary_user import run_as_ordinary
from tests.home.sandbox_probes import matrix

from agiraph.sandbox import levels, sandbox
from agiraph.sandbox.sandbox import Level

GIVEN = "unix: in a given folder"
KNOWN: dict[tuple[Level, bool], list[str]] = {
    ("namespaces", True): [GIVEN],
    ("namespaces", False): [],
    ("bubblewrap", True): [GIVEN],
    ("bubblewrap", False): [],
    ("landlock", False): ["signal: pidfd"],
}
"""The attacks that succeed, by level and whether Unix sockets are allowed. docs/sandbox.md says the
same in words."""


def is_here(level: Level) -> bool:
    return not levels.choose(level).reasons


@pytest.mark.parametrize(("level", "unix"), KNOWN)
async def test_each_level_holds_what_its_table_says(
    tmp_path: Path, level: Level, unix: bool
) -> None:
    if not is_here(level):
        pytest.skip(f"this machine has no {level}")
    assert await matrix.probe(tmp_path, level, unix=unix) == KNOWN[level, unix]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can run commands as another user")
async def test_a_spare_user_holds_the_same(tmp_path: Path) -> None:
    found = await matrix.probe(tmp_path, "namespaces", unix=False, user=sandbox.FIRST_SPARE_USER)
    assert found == []


@pytest.mark.skipif(os.geteuid() != 0, reason="the tests run as an ordinary user already")
@pytest.mark.parametrize("level", ["namespaces", "bubblewrap", "landlock"])
def test_each_level_holds_the_same_for_an_ordinary_user(level: Level) -> None:
    if not is_here(level):
        pytest.skip(f"this machine has no {level}")
    found = run_as_ordinary(matrix.__name__, level, "no-unix")
    assert found == KNOWN[level, False]
