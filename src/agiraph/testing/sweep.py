"""Crash sweep: kills a scenario with SIGKILL at every fault point, and checks the recovery.

Each life is a forked process. The first is killed at fault point k, and the state on disk is
checked as other processes would see it. A second life must finish the work. A third must find
nothing to do and change nothing.
"""

import asyncio
import contextlib
import os
import random
import select
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Coroutine, Iterable, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any

from agiraph import faultpoints
from agiraph.core.domain.value import dataclass
from agiraph.testing.world import preload

Live = Callable[[Path], Coroutine[Any, Any, None]]
"""One life of the scenario in this folder: starts the work, or continues what it finds."""

Check = Callable[[Path], Iterable[str]]
"""Yields a sentence for each invariant that the state in this folder violates."""

Death = tuple[int | str, ...]
"""Where the lives of one home are killed, one after the other: at the point with this number, or at
the next one with this name."""

LIFE_S = 60.0
"""A life that takes longer is reported as hung."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """A piece of work to be killed at each of its fault points, and its checks."""

    name: str
    live: Live
    at_kill: Check
    """Checks the state that the killed process left."""
    after_recovery: Check
    """Checks the state after the life that finished the work."""
    fingerprint: Callable[[Path], str]
    """Returns a digest of the state that a restart with nothing to do must not change."""
    arm: Callable[[], object] = field(default=lambda: None)
    """Called first in every life. Tests of the sweep itself plant a bug with it."""


@dataclass(slots=True)
class Report:
    """The result of a sweep."""

    scenario: str
    points: list[str] = field(default_factory=list[str])
    kills: int = 0
    violations: list[str] = field(default_factory=list[str])
    unmet: list[str] = field(default_factory=list[str])
    """Points of rows that did not come again in the life that was to be killed there."""
    seconds: float = 0.0

    def __str__(self) -> str:
        return (
            f"{self.scenario}: {self.kills} kills at {len(self.points)} points, "
            f"{len(self.violations)} violations, {self.seconds:.1f} s"
        )


def place_of_sweeps() -> Path:
    """Return the folder of all sweeps, in memory if possible: SIGKILL loses nothing there, and it
    is faster."""
    shared = Path("/dev/shm")
    is_usable = shared.is_dir() and os.access(shared, os.W_OK)
    return shared if is_usable else Path(tempfile.gettempdir())


def folder_for_sweeps() -> Path:
    return Path(tempfile.mkdtemp(prefix="agiraph-sweep-", dir=place_of_sweeps()))


class Sweep:
    """Runs a scenario once for each fault point, and kills it there."""

    def __init__(self, scenario: Scenario) -> None:
        self.scenario = scenario
        self.report: Report = Report(scenario.name)

    def count(self) -> int:
        """Run the scenario without a kill, and return how many fault points it passes."""
        preload(place_of_sweeps())  # before the forks: a life is short, and would mostly do this
        root = folder_for_sweeps()
        try:
            log = root / "points"
            code = self._life(root / "home", _counting(log))
            self.report.points = log.read_text().splitlines() if log.exists() else []
            problems = [] if code == 0 else [f"a clean run ends with {code}"]
            problems += self.scenario.after_recovery(root / "home")
            self.report.violations += [f"clean run: {p}" for p in problems]
            return len(self.report.points)
        finally:
            shutil.rmtree(root, ignore_errors=True)

    def run(self, *, until_caught: bool = False, first: str = "", every: int = 1) -> Report:
        """Kill at every fault point, or at each `every`-th one, on all cores.

        With `until_caught` the points are taken one by one in random order, those whose names start
        with `first` before the others, and the sweep stops at the first violation.
        """
        total = self.count()
        chosen = list(enumerate(self.report.points, start=1))[::every]
        if until_caught:
            random.Random(total).shuffle(chosen)
            chosen.sort(key=lambda point: not point[1].startswith(first))
        return self.kill_at([k for k, _ in chosen], until_caught=until_caught)

    def kill_at(self, points: Sequence[int], *, until_caught: bool = False) -> Report:
        """Kill at these points, numbered from 1 in the order that `count` found, on all cores.

        Does nothing if the run without a kill had violations already.
        """
        return self._kill_timed([(k,) for k in points], until_caught=until_caught)

    def kill_in_rows(self, rows: Sequence[Sequence[str]]) -> Report:
        """Kill at the points of each row, one life after the other, before the work is finished.

        A row costs little more than a single kill, as each life begins where the last one died.
        The first kill is at the middle one of the points with that name, each other one at the next
        point with its name. `Report.unmet` has the names that did not come: for instance, recovery
        does not repeat an effect that has happened.
        """
        return self._kill_timed([(self.middle(first), *rest) for first, *rest in rows])

    def middle(self, name: str) -> int:
        """Return the number of the middle one of the points with this name."""
        numbers = [k for k, point in enumerate(self.report.points, start=1) if point == name]
        return numbers[len(numbers) // 2]

    def _kill_timed(self, deaths: Sequence[Death], *, until_caught: bool = False) -> Report:
        started = time.monotonic()
        if not self.report.violations:
            self._kill_each(deaths, until_caught=until_caught)
        self.report.seconds += time.monotonic() - started
        return self.report

    def run_pairs(self, *, seconds: float, at_least: int, seed: int = 0) -> Report:
        """Kill the first life, and then the life that recovers from it.

        Takes pairs of points in random order, for so many seconds and at least so many pairs.
        """
        started = time.monotonic()
        total = self.count()
        points = range(1, total + 1)
        pairs: list[Death] = [(k, j) for k in points for j in points]
        random.Random(seed).shuffle(pairs)
        self._kill_each(pairs[:at_least])
        deadline = started + seconds
        self._kill_each(pairs[at_least:], until=lambda: time.monotonic() >= deadline)
        self.report.seconds = time.monotonic() - started
        return self.report

    def _kill_each(
        self,
        deaths: Sequence[Death],
        *,
        until_caught: bool = False,
        until: Callable[[], bool] = lambda: False,
    ) -> None:
        # One kill mostly catches a bug: a second one at the same time would be for nothing.
        workers = 1 if until_caught else min(os.cpu_count() or 1, len(deaths)) or 1
        shares = [deaths[i::workers] for i in range(workers)]
        children = [
            _in_child(lambda share=share: self._kill_share(share, until_caught, until))
            for share in shares
        ]
        for child, reader in children:
            with os.fdopen(reader) as lines:
                self._count_lines(lines)
            if status := os.waitpid(child, 0)[1]:
                # Without this line a crash of the sweep itself would pass as fewer kills.
                self.report.violations.append(f"the sweep's own process ended with {status}")

    def _count_lines(self, lines: Iterable[str]) -> None:
        """Add what a child wrote, as lines of `_kill_share`, to the report."""
        for line in lines:
            kind, _, text = line.rstrip("\n").partition(" ")
            if kind == "kill":
                self.report.kills += 1
            elif kind == "unmet":
                self.report.unmet.append(text)
            elif kind == "bad":
                self.report.violations.append(text)

    def _kill_share(
        self, deaths: Sequence[Death], until_caught: bool, until: Callable[[], bool]
    ) -> Iterable[str]:
        for death in deaths:
            if until():
                return
            unmet: list[str] = []
            problems = list(self._kill_in_row(death, unmet))
            yield from ("bad " + problem.replace("\n", " ⏎ ") for problem in problems)
            yield from (f"unmet {name}" for name in unmet)
            yield from ["kill"] * (1 + sum(isinstance(k, str) for k in death) - len(unmet))
            if until_caught and problems:
                return

    def _kill_in_row(self, death: Death, unmet: list[str]) -> Iterable[str]:
        root = folder_for_sweeps()
        home = root / "home"
        where = ", then ".join(self._named(k) for k in death)
        try:
            for number, k in enumerate(death):
                code = self._life(home, _killing(k))
                # 0: tasks interleave differently each time, so a run may pass fewer points than the
                # counted one.
                if code not in (0, -signal.SIGKILL):
                    yield f"{where}: the life to be killed ended with {code}"
                if code == 0 and isinstance(k, str):  # nothing is left that could come
                    unmet += map(str, death[number:])
                    break
                shutil.copytree(home, root / "seen", symlinks=True, copy_function=_copy)
                yield from (
                    f"{where}: at the kill: {p}" for p in self.scenario.at_kill(root / "seen")
                )
                shutil.rmtree(root / "seen")
            code = self._life(home, None)
            if code != 0:
                yield f"{where}: recovery ended with {code}"
            yield from (f"{where}: {p}" for p in self.scenario.after_recovery(home))
            before = self.scenario.fingerprint(home)
            code = self._life(home, None)
            if code != 0 or self.scenario.fingerprint(home) != before:
                yield f"{where}: an idle restart ended with {code} or changed something"
        finally:
            shutil.rmtree(root, ignore_errors=True)

    def _named(self, k: int | str) -> str:
        if isinstance(k, str):
            return k
        points = self.report.points
        return f"{self.scenario.name} #{k} {points[k - 1] if k <= len(points) else 'later'}"

    def _life(self, home: Path, hook: Callable[[str], None] | None) -> int:
        """Run one life in a forked process; return its exit code, or minus the signal."""
        home.mkdir(parents=True, exist_ok=True)
        child = os.fork()
        if child == 0:
            # Not sys.exit: cleanup of the parent, such as pytest's, must not run in the child.
            os._exit(self._run_life(home, hook))
        deadline = time.monotonic() + LIFE_S
        handle = os.pidfd_open(child)
        try:
            if not select.select([handle], [], [], max(0.0, deadline - time.monotonic()))[0]:
                os.kill(child, signal.SIGKILL)
                os.waitpid(child, 0)
                return 999  # it hung
            return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        finally:
            os.close(handle)

    def _run_life(self, home: Path, hook: Callable[[str], None] | None) -> int:
        try:
            self.scenario.arm()
            faultpoints.armed = hook
            asyncio.run(self.scenario.live(home))
        except BaseException:
            traceback.print_exc(file=sys.stderr)
            return 1
        return 0


def _copy(source: str, target: str) -> None:
    """Copy a file. A command that outlives the kill may rename its files meanwhile."""
    with contextlib.suppress(FileNotFoundError):
        shutil.copy2(source, target)


def _counting(log: Path) -> Callable[[str], None]:
    file = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def record(point: str) -> None:
        # One write with O_APPEND for each point: lines of several threads do not mix.
        os.write(file, f"{point}\n".encode())

    return record


def _killing(k: int | str) -> Callable[[str], None]:
    passed = 0

    def count(point: str) -> None:
        nonlocal passed
        passed += 1
        if k in (passed, point):
            # Not an exception: after a real crash no `finally` runs either.
            os.kill(os.getpid(), signal.SIGKILL)

    return count


def _in_child(work: Callable[[], Iterable[str]]) -> tuple[int, int]:
    """Run the work in a forked process; return its id and the pipe with the lines it yields."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        os._exit(_write_lines(work, writer))
    os.close(writer)
    return child, reader


def _write_lines(work: Callable[[], Iterable[str]], writer: int) -> int:
    """Write the lines of the work to a pipe as they come; return an exit code."""
    try:
        with os.fdopen(writer, "w") as lines:
            for line in work():
                lines.write(line + "\n")
                lines.flush()
    except BaseException:
        traceback.print_exc(file=sys.stderr)
        return 1
    return 0
