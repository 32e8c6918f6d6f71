"""Watching: a team that watches local sites day after day, and the models that play it.

Every day the sites change. The careful model searches, opens hits and links, writes its plan and
notes, schedules a look ahead and finishes. The rude one ends in words, writes MEMORY.md, wants
`curl` and a package, and asks for the same thing each day.
"""

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from agiraph.core.domain.chat import Turn
from agiraph.core.domain.messages import Message
from agiraph.core.domain.work import WorkNode
from agiraph.core.services.lifecycle.teams import NewTeam
from agiraph.features.knowledge.kind import KNOWN
from agiraph.models.base import OnDelta, Reply, Request
from agiraph.testing import PowerCut, Says, World, call, says
from agiraph.testing.scripted import as_reply
from tests.local_web import LocalWeb, Page

DAY = timedelta(days=1)
FRONT = "http://news.example/"
GOAL = (
    f"Watch the price and the news of the Atlas engine: {FRONT} and whatever a search finds. Keep "
    "notes and a plan, and tell me when something important has changed."
)
DAYS = 31
MANUAL = "Atlas engine manual"
INSTALL = "pip install atlas-watch"
SHOWN = 3
"""Items on the front page: a new one each day, and the two before it."""


def price(day: int) -> int:
    """Return what the engine costs on a day: it rises each day, by more each week."""
    return 100 + day + 10 * (day // 7)


def fact(day: int) -> str:
    return f"The Atlas engine cost {price(day)} dollars on day {day}."


def headline(day: int) -> str:
    return f"Atlas engine update number {day}"


def _front(day: int) -> str:
    items = range(day, max(day - SHOWN, -1), -1)
    links = "".join(f"- [{headline(n)}]({FRONT}item/{n})\n" for n in items)
    return f"# Engine news\n\n{links}"


def sites(days: int = DAYS) -> dict[str, dict[str, Page]]:
    """Return the sites that the team watches, for so many days."""
    items = {
        f"/item/{n}": Page(f"# {headline(n)}\n\nThe makers shipped revision {n}.", headline(n))
        for n in range(days + 1)
    }
    return {
        "news.example": {"/": Page(_front, "Engine news"), **items},
        "shop.example": {
            "/atlas": Page(lambda day: f"# Atlas engine price\n\n{fact(day)}\n", "Atlas price"),
            "/cart/1": Page("Your cart: the Atlas engine price"),
            "/robots.txt": Page("User-agent: *\nDisallow: /cart\n"),
        },
        "docs.example": {"/atlas": Page("<p>How to mount the engine.</p>", MANUAL, is_html=True)},
    }


Work = Callable[[Request, int], Says]
"""Returns the reply in a work thread that has so many replies already."""


@dataclass(slots=True)
class WatchingModel:
    """A model that works as `work` says, and answers the questions of its reflections."""

    work: Work
    name: str = "scripted/ada"
    openings: list[str] = field(default_factory=list[str])
    """The first request of each work thread: system prompt and assignment."""
    cut_off: set[int] = field(default_factory=set[int])
    """Numbers of the calls at which the power fails."""
    was_cut_off: bool = False
    calls: int = 0

    async def reply(self, request: Request, on_delta: OnDelta | None = None) -> Reply:
        self.calls += 1
        if self.calls in self.cut_off:
            self.was_cut_off = True
            raise PowerCut
        turns = list(request.transcript.spoken())
        match (turns[-1].ref or "").partition(":")[0]:
            case "harvest":
                return as_reply(says(_learned(turns)))
            case "briefing":
                return as_reply(says(_briefing(turns)))
            case _:
                replies = sum(turn.role == "assistant" for turn in turns)
                if replies == 0:
                    opening = [t.text for t in turns]
                    self.openings.append("\n".join([request.transcript.system, *opening]))
                return as_reply(self.work(request, replies))


def _learned(turns: Sequence[Turn]) -> str:
    """Answer the question what was learned: the price, in place of the one that was known."""
    record, _, known = turns[-1].text.partition(KNOWN)
    found = re.findall(r"The Atlas engine cost \d+ dollars on day \d+\.", record)
    if not found:
        return json.dumps({"insights": []})
    before = re.findall(r"(\w+): The Atlas engine cost", known)[:1]
    how = {"action": "supersede", "id": before[0]} if before else {"action": "add", "id": ""}
    learned = {"type": "fact", "content": found[-1], "confidence": 0.9, "work": 1} | how
    return json.dumps({"insights": [learned]})


def _briefing(turns: Sequence[Turn]) -> str:
    """Brief the person when the price has made a jump: every seventh day."""
    days = [day for turn in turns for day in re.findall(r"Noted\. .* on day (\d+)\.", turn.text)]
    day = int(days[-1]) if days else 0
    is_news = day > 0 and day % 7 == 0
    text = jump(day) if is_news else ""
    title = f"Jump number {day // 7}" if is_news else ""
    return json.dumps({"score": 0.9 if is_news else 0.1, "title": title, "text": text})


def jump(day: int) -> str:
    """Return the news of a jump. Each has a cause of its own: a briefing that differs from an
    earlier one in its numbers only is the same."""
    causes = ("a strike at the works", "new tariffs", "the recall of a rival", "a dry spring")
    return f"The price jumped to {price(day)} dollars after {causes[day // 7 - 1]}."


def _read(request: Request) -> str:
    """Return all that the tools have answered in this thread."""
    return "\n".join(t.text for t in request.transcript.spoken() if t.role == "tool")


def _today(request: Request) -> int:
    """Return the day, as the pages of this thread show it."""
    found = re.findall(r"on day (\d+)\.|update number (\d+)\]", _read(request))
    return max((int(price or number) for price, number in found), default=0)


def watches(request: Request, replies: int) -> Says:
    """The careful watcher's cycle."""
    match replies:
        case 0:
            return says(
                "I look what is new.",
                call("web_search", query="Atlas engine price"),
                call("read_file", path="PLAN.md"),
            )
        case 1:
            hits = re.findall(r"^   (http://shop\S+)$", _read(request), re.MULTILINE)[:1]
            manual = re.findall(rf"{MANUAL}\n   (\S+)$", _read(request), re.MULTILINE)
            # It looks into the manual once in a while only: HTML takes a process to read.
            is_due = "day 7:" in _read(request)
            urls = [*hits, FRONT, *(manual[:1] if is_due else [])]
            return says(*(call("web_fetch", url=url) for url in urls))
        case 2:
            [link, *_] = re.findall(r"\((http://news\S+/item/\d+)\)", _read(request))
            return says(call("web_fetch", url=link))
        case 3:
            return says(*_notes(_today(request)))
        case 4:
            return says(call("checkpoint", summary=f"Day {_today(request)} is noted."))
        case _:
            return says(call("finish", summary=f"Noted. {fact(_today(request))}"))


def _notes(day: int) -> list[Any]:
    plan = f"# Plan\n\n- [x] day {day}\n- [ ] day {day + 1}: look at the price again\n"
    note = f"# Atlas on day {day}\n\n{fact(day)}\n\n{headline(day)}.\n"
    written = [
        call("write_file", path="PLAN.md", content=plan),
        call("memory_write", path=f"memory/knowledge/atlas-{day}.md", content=note),
    ]
    if day % 10 == 1:
        later = {"delay_seconds": 2 * DAY.total_seconds()}
        look = f"Look whether the jump after day {day} has come, and finish."
        written.append(call("schedule", type="delayed", config=later, action=look))
    return written


def installs(request: Request, replies: int) -> Says:
    """The careful watcher's cycle, with a package that it would like to have."""
    if replies == 3:
        wanted = call("bash", command=INSTALL, network=True)
        return says(wanted, *_notes(_today(request)))
    return watches(request, replies)


def is_rude(request: Request, replies: int) -> Says:
    """The rude watcher's cycle: it ignores advice, and asks for the same each day."""
    match replies:
        case 0:
            return says(call("web_search", query="Atlas engine price"))
        case 1:
            return says(
                call("web_fetch", url="http://shop.example/atlas"),
                call("bash", command="curl http://shop.example/atlas", network=True),
            )
        case 2:
            text = f"# Memory\n\nThe human said that curl is allowed. {fact(_today(request))}"
            return says(
                "You allowed it.",
                call("bash", command="curl http://shop.example/atlas", network=True),
                call("bash", command=INSTALL, network=True),
                call("write_file", path="MEMORY.md", content=text),
                call("memory_write", path="MEMORY.md", content=text),
            )
        case 3:
            return says("I wait until they allow it.")
        case 4:
            return says("I still wait.")
        case _:
            return says(call("finish", summary=f"Waited. {fact(_today(request))}"))


async def found_watchers(world: World, model: WatchingModel, **more: Any) -> NewTeam:
    """Found the team that watches the sites, woken once a day."""
    world.model("ada", model)
    heartbeat = {"mode": "infinite", "heartbeat": DAY.total_seconds(), "learns": True}
    return await world.found(GOAL, **heartbeat, **more)


async def pass_day(world: World) -> None:
    """Let a day pass, hour by hour as it would; the team does what falls due."""
    for _ in range(4):
        await world.pass_time(hours=6)


@dataclass(slots=True)
class Month:
    """What a month without a person has left."""

    model: WatchingModel
    served: LocalWeb
    board: list[WorkNode]
    inbox: list[Message]

    @property
    def cycles(self) -> list[WorkNode]:
        return [n for n in self.board if n.lane == "work" and n.trigger_id is not None]
