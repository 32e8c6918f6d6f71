"""Mutations: runs a story with one lapse of its models, and checks what is left.

As a program it repeats one run: `python -m tests.habits.mutations STORY REPLY LAPSE`.
"""

import asyncio
import contextlib
import random
import shutil
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path

from agiraph.testing import World
from agiraph.testing.staging import directed_by
from tests.habits import aftermath, lapses, stories
from tests.habits.aftermath import Left
from tests.habits.understudy import Place, Understudy

STILL_SECONDS = 0.8
"""A story that has not moved for so long waits for something that its script no longer does."""
LONGEST_SECONDS = 60.0
RARE = {
    "grown stage": ("lies", "lies, twice", "claims a file", "forges a frame"),
    "side work": (
        "promises and does nothing",
        "calls a tool that is not there",
        "stays silent in a reply",
        "gives strings",
    ),
    "seed 1": ("is cut", "is cut before its call"),
    "seed 5": ("gives a null argument",),
    "seed 6": ("is empty on the wire", "only thinks"),
}
"""Lapses that few stories admit, and a story that plays them first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutation:
    """One run: the story, the number of the reply that goes wrong, and how."""

    story: str
    reply: int
    lapse: str

    def __str__(self) -> str:
        again = f'.venv/bin/python -m tests.habits.mutations "{self.story}" {self.reply}'
        return (
            f"story {self.story!r}, reply {self.reply}, lapse {self.lapse!r}"
            f' (repeat with: {again} "{self.lapse}")'
        )


@dataclass(slots=True)
class Run(Understudy):
    """An understudy that also examines each world of the story."""

    found: list[str] = field(default_factory=list[str])
    left: Left | None = None

    async def before_close(self, world: World) -> None:
        self.is_over.set()
        self.found += await aftermath.play_the_person(world)
        left: Left = await world.store.read(aftermath.read)
        self.left = replace(left, broken=tuple(world.invalid_events))
        world.invalid_events.clear()


@dataclass(frozen=True, slots=True, kw_only=True)
class Rehearsal:
    """A story without a lapse: its replies, and what it leaves."""

    places: tuple[Place, ...]
    left: Left

    def mutations(self, story: str) -> Iterator[Mutation]:
        for number, place in enumerate(self.places):
            for lapse in lapses.ALL.values():
                if place.admits(lapse):
                    yield Mutation(story=story, reply=number, lapse=lapse.name)


@cache
def rehearse(story: str) -> Rehearsal:
    """Run a story as it is; fail if it does not pass."""
    run = Run()
    failure = asyncio.run(_perform(story, run))
    assert failure is None, f"{story!r} fails without a lapse: {failure!r}"
    assert run.left is not None
    assert run.found == [], run.found
    return Rehearsal(places=tuple(run.places), left=run.left)


def perform(mutation: Mutation) -> list[str] | None:
    """Run a story with a lapse and return the violations; None if the lapse's place never came."""
    before = rehearse(mutation.story)
    place, lapse = before.places[mutation.reply], lapses.ALL[mutation.lapse]
    run = Run(lapse, (place.name, place.nth))
    asyncio.run(_perform(mutation.story, run))
    if not run.has_lapsed:
        return None
    if run.left is None:
        return ["the story never closed its world"]
    if lapse.is_ending and place.talk.replies > 0:
        lapse = replace(lapse, unwanted=())
    wrong = aftermath.violations(run.left, before.left, lapse, is_wanted=run.improvised == 0)
    return list(dict.fromkeys([*run.found, *wrong]))


async def _perform(story: str, run: Run) -> BaseException | None:
    """Run a story to the end of what its author wrote, then until nothing can run."""
    folder = Path(tempfile.mkdtemp(prefix="habits-", dir=_memory()))
    try:
        with directed_by(run):
            task = asyncio.ensure_future(stories.ALL[story](folder))
        await _until_still(task, run)
        [ended] = await asyncio.gather(task, return_exceptions=True)
        return ended if isinstance(ended, BaseException) else None
    finally:
        shutil.rmtree(folder, ignore_errors=True)


async def _until_still(task: "asyncio.Future[None]", run: Run) -> None:
    """Wait for a story; break it off if its author waits for what no longer comes."""
    asked = -1
    for _ in range(int(LONGEST_SECONDS / STILL_SECONDS)):
        await asyncio.wait({task}, timeout=STILL_SECONDS)
        if task.done():
            return
        if run.lapse is not None and run.asked == asked and not run.is_over.is_set():
            task.cancel()  # its world then closes, and the person plays on
            run.is_over.set()
        asked = run.asked
    task.cancel()


def _memory() -> Path | None:
    memory = Path("/dev/shm")
    return memory if memory.is_dir() else None


def chosen(story: str, *, most: int, seed: int) -> list[Mutation]:
    """Return some mutations of a story, drawn with this seed: each lapse that it admits, then
    others.

    Lapses that few stories admit come first.
    """
    rest = list(rehearse(story).mutations(story))
    random.Random(f"{seed} {story}").shuffle(rest)
    each = list({mutation.lapse: mutation for mutation in rest}.values())
    each.sort(key=lambda mutation: mutation.lapse not in RARE.get(story, ()))
    return [*each, *(m for m in rest if m not in each)][:most]


def main() -> None:
    story, reply, lapse = sys.argv[1:]
    found = perform(Mutation(story=story, reply=int(reply), lapse=lapse))
    place = rehearse(story).places[int(reply)]
    print(f"place: {place.name}\nreply: {place.said}")
    print("the place never came" if found is None else "\n".join(found) or "no violation")


if __name__ == "__main__":
    with contextlib.suppress(BrokenPipeError):
        main()
