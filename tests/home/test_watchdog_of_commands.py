"""Watchdog of commands: its thread ends the largest command of a team, or of all, over a limit."""

import os
import select
import threading
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from agiraph.sandbox import commands
from agiraph.sandbox.commands import Usage, Watchdog
from agiraph.sandbox.inside.processes import ALL_PROCESSES, MIB, TEAM_MEMORY
from agiraph.sandbox.sandbox import Limits

LIMITS = Limits(team_memory_mib=100, team_processes=50, all_processes=60, all_memory_mib=1000)


class Command:
    """A command that reports what it uses, and the pipe by which it is ended."""

    def __init__(self, stack: ExitStack, team: str, *, processes: int = 1, mib: int = 1) -> None:
        counts = os.memfd_create("counts")
        self.ends, control = os.pipe()
        for descriptor in (counts, self.ends, control):
            stack.callback(os.close, descriptor)
        self.usage = Usage(counts, control, team, LIMITS)
        self.uses(processes=processes, mib=mib)

    def uses(self, *, processes: int, mib: int) -> None:
        used = processes.to_bytes(8, "little") + (mib * MIB).to_bytes(8, "little")
        os.pwrite(self.usage.counts, used, 0)

    def ended_for(self, *, within_s: float) -> int:
        """Return the number of the limit for which the command is ended; 0: it is not."""
        ready, _, _ = select.select([self.ends], [], [], within_s)
        return os.read(self.ends, 1)[0] if ready else 0


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as opened:
        yield opened


def test_the_thread_ends_the_largest_command_of_a_team_that_uses_too_much(
    stack: ExitStack,
) -> None:
    dog = Watchdog()
    small, large, other = (
        Command(stack, "a", mib=40),
        Command(stack, "a", mib=50),
        Command(stack, "b", mib=99),
    )
    for command in (small, large, other):
        dog.add(command.usage)
    large.uses(processes=1, mib=70)

    assert large.ended_for(within_s=20) == TEAM_MEMORY
    assert (small.ended_for(within_s=0), other.ended_for(within_s=0)) == (0, 0)
    for command in (small, large, other):
        dog.remove(command.usage)


def test_the_thread_ends_the_largest_command_of_all_teams_that_use_too_much(
    stack: ExitStack,
) -> None:
    dog = Watchdog()
    small, large = Command(stack, "a", processes=30), Command(stack, "b", processes=31)
    for command in (small, large):
        dog.add(command.usage)
    assert large.ended_for(within_s=20) == ALL_PROCESSES
    assert small.ended_for(within_s=0) == 0
    for command in (small, large):
        dog.remove(command.usage)


def test_the_thread_ends_when_there_is_nothing_to_watch_and_starts_again(
    stack: ExitStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commands, "IDLE_S", 0.05)
    dog, command = Watchdog(), Command(stack, "a", mib=60)
    dog.add(command.usage)
    first = dog._thread
    assert isinstance(first, threading.Thread)
    dog.remove(command.usage)
    first.join(20)
    assert (first.is_alive(), dog._thread) == (False, None)

    mate = Command(stack, "a", mib=61)
    dog.add(command.usage)
    dog.add(mate.usage)
    assert mate.ended_for(within_s=20) == TEAM_MEMORY
    for one in (command, mate):
        dog.remove(one.usage)


def test_a_command_that_comes_and_goes_between_two_looks_leaves_the_thread_asleep(
    stack: ExitStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commands, "IDLE_S", 0.05)
    dog, command = Watchdog(), Command(stack, "a")
    dog._changed.set()  # as the command's start left it
    dog.add(command.usage)
    thread = dog._thread
    assert isinstance(thread, threading.Thread)
    dog.remove(command.usage)
    dog._changed.set()
    thread.join(20)
    assert not thread.is_alive()


def test_a_single_command_is_left_to_its_own_limit(stack: ExitStack) -> None:
    alone = Command(stack, "a", processes=500, mib=5000)
    commands.check([alone.usage])
    assert alone.ended_for(within_s=0) == 0
