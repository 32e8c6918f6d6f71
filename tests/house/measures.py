"""Measures: how much code there is and how far one piece of work runs through it.

`python -m tests.house.measures` prints one row a measure. The runs are scripted models in worlds of
their own, so that the figures of two trees can be compared.
"""

import ast
import asyncio
import re
import sys
import tempfile
import threading
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from itertools import pairwise
from pathlib import Path
from statistics import median
from types import FrameType
from typing import Any

import agiraph
from agiraph.testing import Says, World, call, says
from agiraph.testing.scripted import Line

SRC = Path(agiraph.__file__).parent
TURNS = 20
MOST_PARAMETERS = 8
SMALL = 80
"""Lines below which a module with one importer should be a part of it."""
_KIND_BRANCH = re.compile(
    r"\b(?:node|child|last|earlier|n)\.(?:lane|research|reviews_call|is_public) *(?:[!=]=|is\b)"
    r"|\b(?:if|and|or|not) [\w.]*\b(?:reviews_call|is_public|is_single_turn)\b(?!\()"
    r"|\bagent\.kind\b *[!=]=|\.kind is (?:not )?(?:work_kinds\.)?[A-Z]{2}|\bpart_of\("
)
"""A line that asks which kind of work or agent it has before it."""
_OWN = ("knowledge.verbs.reflection", "tools.web.reading")
"""The modules of one kind, which may name it."""


class Trace:
    """Which files of the product a run goes through, and how often it goes from one to another."""

    def __init__(self) -> None:
        self.files: set[str] = set()
        self.hops = 0
        self.calls = 0
        self.is_on = False
        self._last = threading.local()

    def _see(self, frame: FrameType, event: str, _: object) -> None:
        if event != "call" or not self.is_on:
            return
        self.calls += 1
        name = frame.f_code.co_filename
        is_import = frame.f_code.co_name == "<module>"
        if is_import or not name.startswith(str(SRC)) or "/testing/" in name:
            return
        self.files.add(name)
        self.hops += name != getattr(self._last, "name", name)
        self._last.name = name

    @asynccontextmanager
    async def on(self, world: World) -> AsyncIterator[None]:
        """Start the world, and watch what all of its threads do from then on."""
        threading.setprofile(self._see)
        sys.setprofile(self._see)
        try:
            await world.start()
            self.is_on = True
            yield
        finally:
            self.is_on = False
            sys.setprofile(None)
            threading.setprofile(None)


async def _goal_with_a_task(world: World) -> Trace:
    """Run a goal that gives one task away."""
    give = call("create_work_node", task="Count the beans", assigned_to="new:scripted/bob")
    world.script("ada", says(give), says("I wait."), _ends("finish", "All is counted."))
    count = call("write_file", path="beans.md", content="There are 7.")
    world.script("bob", says(count), _ends("publish", "There are 7."))
    trace = Trace()
    async with trace.on(world):
        await world.found("Count")
        await world.settle()
    return trace


async def _reply(world: World) -> Trace:
    """Answer one message of a person."""
    world.script("ada", says("Good morning.", call("no_work_needed")))
    trace = Trace()
    async with trace.on(world):
        founded = await world.found("Count", start=False)
        await world.chat(founded.coordinator.id, "Good morning!")
        await world.settle()
    return trace


async def calls_of_a_turn(world: World) -> int:
    """Return the Python calls of a turn that only writes a checkpoint."""
    counts: list[int] = []
    trace = Trace()

    def step(number: int) -> Line:
        def reply(_: object) -> Says:
            counts.append(trace.calls)
            return says(call("checkpoint", summary=f"step {number}"))

        return reply

    world.script("ada", *map(step, range(TURNS)), says(call("ask_human", question="Which?")))
    async with trace.on(world):
        await world.found("Count")
        await world.settle()
    return int(median(after - before for before, after in pairwise(counts[5:])))


async def calls_of_work(world: World) -> int:
    """Return the Python calls from a new goal, with two calls of the model, to its end. Another
    goal has ended before: what a process does once does not count."""
    trace = Trace()
    count = call("write_file", path="beans.md", content="There are 7.")
    world.script("ada", *2 * [says(count), _ends("finish", "All is counted.")])
    async with trace.on(world):
        await world.found("Count")
        await world.settle()
        before = trace.calls
        await world.found("Count again")
        await world.settle()
    return trace.calls - before


def _ends(by: str, summary: str) -> Says:
    return says(call(by, summary=summary, reached="yes"))


async def _in_world(run: Callable[[World], Awaitable[Any]]) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        world = World(Path(folder) / "home", validates_events=False, easy_endings=True)
        try:
            return await run(world)
        finally:
            await world.stop()


def modules() -> dict[str, Path]:
    """Return the product's modules by their dotted names."""
    found = {
        p: ".".join(p.relative_to(SRC.parent).with_suffix("").parts) for p in SRC.rglob("*.py")
    }
    return {name.removesuffix(".__init__"): path for path, name in found.items()}


_PLACE = re.compile(r'"(agiraph(?:\.\w+)+):\w+"')
"""A module that the registry of features imports when it is first used."""


def importers(known: dict[str, Path]) -> dict[str, set[str]]:
    """Return by module the modules that import it or a name of it, and whose registry names it."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    for module, path in known.items():
        for place in _PLACE.findall(text := path.read_text()):
            found[place] |= {module, "the registry"}
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.ImportFrom) and node.module:
                for alias in node.names:
                    whole = f"{node.module}.{alias.name}"
                    found[whole if whole in known else node.module].add(module)
            elif isinstance(node, ast.Import):
                for alias in node.names:
                    found[alias.name].add(module)
    return found


def _wide(path: Path) -> Iterator[str]:
    """Yield the functions with more parameters than a reader can hold."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            names = [
                a.arg for a in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)
            ]
            if len(names) - (names[:1] in (["self"], ["cls"])) > MOST_PARAMETERS:
                yield node.name


def rows() -> list[tuple[str, str, str]]:
    """Return each measure with its figure and its goal."""
    known = modules()
    used = importers(known)
    size = {name: len(path.read_text().splitlines()) for name, path in known.items()}
    single = [n for n, p in known.items() if len(used[n]) == 1 and p.name != "__init__.py"]
    folders = Counter(path.parent for path in known.values())
    crowded = {str(f.relative_to(SRC)): n for f, n in folders.most_common() if n > 21}
    branches = sum(
        len(_KIND_BRANCH.findall(line))
        for name, path in known.items()
        if not name.endswith(_OWN) and ".features." not in name and "kinds" not in name
        for line in path.read_text().splitlines()
    )
    wide = sum(len([*_wide(path)]) for path in known.values())
    goal = asyncio.run(_in_world(_goal_with_a_task))
    reply = asyncio.run(_in_world(_reply))
    return [
        ("files and hops of a goal with a task", f"{len(goal.files)}; {goal.hops}", "90; 2400"),
        ("files of a reply to a person", f"{len(reply.files)}", "70"),
        ("Python calls of a durable turn", f"{asyncio.run(_in_world(calls_of_a_turn))}", "700"),
        ("Python calls of a goal, two turns", f"{asyncio.run(_in_world(calls_of_work))}", "4500"),
        ("branches on kinds outside of them", f"{branches}", "0"),
        ("modules with one importer", f"{len(single)}", "60"),
        (f"of them below {SMALL} lines", f"{sum(size[n] < SMALL for n in single)}", "0"),
        ("folders with more than 20 modules", f"{crowded}", "{}"),
        ("functions with more than 8 parameters", f"{wide}", "0"),
        ("lines of Python", f"{sum(size.values())}", "80000"),
        ("modules", f"{len(known)}", ""),
    ]


if __name__ == "__main__":
    for what, figure, wanted in rows():
        print(f"{what:40} {figure:>12}   goal {wanted}" if wanted else f"{what:40} {figure:>12}")
