"""Upgrades: the home and the backup that an earlier release has left open, and go on."""

import json
import tarfile
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from agiraph.core.services.lifecycle import teams, timers
from agiraph.core.services.triggers import due
from agiraph.core.store import teams as team_rows
from agiraph.core.store import triggers
from agiraph.features.knowledge import rows as knowledge
from agiraph.testing import ManualClock, World
from tests.cli.archives import Parts
from tests.cli.shell import Shell
from tests.local_web import local_web
from tests.upgrades.making import SECRET, commands, world_options
from tests.upgrades.players import SITES, players
from tests.upgrades.views import OF_ALL, seen

STORED = Path(__file__).with_name("schema_35.tar.xz")
Changed = Mapping[str, tuple[frozenset[str], str]]
CHANGED: Changed = {
    "cost": (
        frozenset({"budget", "outermost_id"}),
        "without a server, the cost of a team comes with what is left of its limits now, and each "
        "cost names who paid for it in the end",
    ),
    "board.jsonl": (
        frozenset(
            {"is_public", "research", "kind", "is_step", "address", "doubts"}
            | {"canceller_id", "cancel_asked_at"}
        ),
        "the kind of a node says whether it is public or a step of a research, it says who has "
        "stopped it, and doubts are points",
    ),
    "board": (  # after the longer name, which begins like it
        frozenset({"canceller_id", "canceller", "held_by", "doubts"}),
        "a node says who has stopped it, and what keeps it from starting; doubts are points",
    ),
    "teams": (
        frozenset({"state", "goal_status", "waits_for_you"}),
        "one word says how a team stands",
    ),
    "events.jsonl": (frozenset({"doubts"}), "doubts are points, and not one text"),
    "inbox": (
        frozenset({"doubts", "fault", "fault_of", "reason", "risks"})
        | {"box", "team_name", "has_doubts", "edits", "edited_by"},
        "a message keeps doubts beside its text, says which fault of a provider it is about, why "
        "a call is made and what can go wrong, and what it takes the place of; an item says where "
        "it stands",
    ),
    "threads/": (
        frozenset({"exit_code", "is_held_back", "is_repeated", "reminds_of", "sends_back"}),
        "what an answer tells the runtime stands beside its words",
    ),
    "triggers.json": (
        frozenset({"ended_with", "missed"}),
        "with what a trigger ended, and how often it was missed, are columns",
    ),
}
"""Fields of a part of the views that one of the two releases does not show, and why."""
RESTORED: Changed = {
    **CHANGED,
    "board.jsonl": (
        CHANGED["board.jsonl"][0] | {"owner"},
        "no process of the home that was saved runs work of the restored one",
    ),
}
"""The same for a restored backup."""
KINDS = {
    ("readers", "Research: Compare the two towers."): "research",
    ("readers", "Read: How tall is the first tower?"): "reader",
    ("readers", "Read: How tall is the second tower?"): "reader",
    ("writers", "Research: Compare the two towers."): "research",
    ("writers", "Read: How tall is the first tower?"): "reader",
    ("writers", "Read: How tall is the second tower?"): "reader",
    ("writers", "Look for gaps"): "gaps",
    ("writers", "Write the report"): "writing",
    ("links", "Read the links of a page"): "link_reader",
    ("public", "What do pears cost at http://market.example/?"): "public_task",
    ("single", ""): "single_answer",
    ("poem", "Review of Play poem"): "review",
    ("beans", "Reflection"): "reflection",
    ("thoughts", "Reflection"): "reflection",
    ("bridge", "Reply"): "reply",
}
"""What the upgrade finds out of the nodes that are no ordinary tasks, by team and title."""
pytestmark = pytest.mark.slow


@pytest.fixture
def stored(tmp_path: Path) -> Path:
    """The home, the backup and the views that the release has left, in a folder."""
    with tarfile.open(STORED) as tar:
        tar.extractall(tmp_path, filter="data")
    return tmp_path


def plain(views: Any, changed: Changed, part: str = "") -> Any:
    """Return views without the fields that only one of the two releases shows."""
    if isinstance(views, list):
        return [plain(one, changed, part) for one in views]
    if not isinstance(views, dict):
        return views
    dropped = next((names for start, (names, _) in changed.items() if part.startswith(start)), ())
    # The keys of all views, of those of one team, and of its export are names of parts.
    is_of_parts = part in ("", "team", "export")
    return {
        name: plain(value, changed, _part(part, name) if is_of_parts else part)
        for name, value in views.items()
        if name not in dropped
    }


def _part(above: str, name: str) -> str:
    return name if above or name in OF_ALL else "team"


def recorded(stored: Path) -> Any:
    return json.loads((stored / "views.json").read_text())


async def test_a_home_of_an_earlier_release_shows_all_that_it_showed(stored: Path) -> None:
    shown = await seen(commands(stored / "home"), stored / "exports")
    assert plain(shown, CHANGED) == plain(recorded(stored), CHANGED)
    kinds = {
        (team["name"], node["title"]): node["kind"]
        for team in shown["teams"]
        for node in shown[team["name"]]["export"]["board.jsonl"]
        if node["kind"] != "task"
    }
    assert kinds == KINDS
    doubts = [node["doubts"] for node in shown["library"]["board"]]
    words = "nothing was read, written, run or given to anyone"
    point = {"kind": "earlier", "words": words, "node_id": None, "title": ""}
    assert doubts == [[], [point], []]


async def test_a_backup_of_an_earlier_release_shows_all_that_the_home_showed(
    stored: Path, database_url: str
) -> None:
    run = commands(stored / "new", AGIRAPH_DATABASE_URL=database_url)
    await run("restore", str(stored / "backup.tar.gz"))
    shown = await seen(run, stored / "exports")
    assert plain(shown, RESTORED) == plain(recorded(stored), RESTORED)


def break_answer(parts: Parts) -> None:
    """Break what a migration reads: the JSON beside the answer of a command."""
    rows = parts.rows
    at = next(n for n, row in enumerate(rows) if isinstance(row, dict) and row["table"] == "turns")
    role, text, extra = (rows[at]["columns"].index(name) for name in ("role", "text", "extra"))
    answer = next(row for row in rows[at + 1 :] if row[role] == "tool")
    answer[text], answer[extra] = "[exit code 0]", "{"
    parts.set_rows(rows)


DAMAGES: dict[str, tuple[Callable[[Parts], None], str]] = {
    "too few rows": (lambda parts: parts.set_manifest(rows=9_999), "not 9,999"),
    "a table that was not there": (lambda parts: parts.set_manifest(schema=3), "rows.jsonl, line "),
    "JSON that is none": (break_answer, "cannot be upgraded"),
}


@pytest.mark.parametrize("damage", DAMAGES)
async def test_a_damaged_backup_of_an_earlier_release_leaves_nothing(
    stored: Path, damage: str
) -> None:
    change, why = DAMAGES[damage]
    parts = Parts.of(stored / "backup.tar.gz")
    change(parts)
    agiraph = Shell(stored / "new")
    ended = await agiraph("restore", str(parts.write(stored / "damaged.tar.gz")))
    assert (ended.code, ended.out, why in ended.err) == (1, "", True), ended.err
    assert "Traceback" not in ended.err
    assert not (stored / "new").exists()


@asynccontextmanager
async def opened(home: Path, database_url: str) -> AsyncIterator[World]:
    """Open a stored home with models that go on where they stopped."""
    clock = ManualClock()
    async with local_web(clock, SITES) as web:
        options = world_options(home, web.access)
        options["features"] = {name: options.pop(name) for name in ("mcp", "channels")}
        world = World(home, clock=clock, database_url=database_url, easy_endings=True, **options)
        for name, player in players(goes_on=True).items():
            world.model(name, player)
        async with world:
            yield world


async def answer_all(world: World) -> list[str]:
    """Answer all questions, and approve all requests; return what was asked."""
    asked: list[str] = []
    for team in await world.store.read(team_rows.every):
        for question in await world.questions(team.id):
            decision: Any = "approve" if question.kind == "approval" else None
            await world.answer(question, "" if decision else "Yes.", decision=decision)
            asked.append(f"{team.name}: {question.kind}")
    await world.settle()
    return asked


async def pass_time(world: World, **time: float) -> None:
    world.clock.advance(seconds=timedelta(**time).total_seconds())
    await world.store.write(timers.fire_due)
    await world.settle()


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What came of the work of a stored home."""

    asked: Counter[str]
    """How many questions and approvals of each team a person answered."""
    left: list[str]
    """Questions that nobody has answered."""
    statuses: dict[str, str]
    """Of the teams."""
    results: dict[tuple[str, str], tuple[str, str]]
    """Status and first line of the result of each node but the triggers', by team and title."""
    fired: set[tuple[str, str]]
    """Type and action of the triggers that have fired."""
    conversation: list[str]
    """With the agent that a person had written to."""
    insights: list[str]
    """What was learned in the work that the earlier release had not looked back on."""
    unsent: int
    """Deliveries that have not reached their channel."""


async def goes_on(home: Path, database_url: str) -> Outcome:
    """Let all work of a stored home go on to its end, and its triggers fire for a day."""
    async with opened(home, database_url) as world:
        await world.settle()
        by_name = {team.name: team for team in await world.store.read(team_rows.every)}
        await world.store.write(teams.resume, by_name["paused"].id)
        asked = await answer_all(world) + await answer_all(world)
        garden = by_name["garden"].id
        hooks = await world.store.read(triggers.of_team, garden)
        [hook] = [one.id for one in hooks if one.type == "webhook"]
        await world.store.write(due.receive_request, hook, SECRET, "{}", delivery="first")
        for _ in range(27):
            await pass_time(world, hours=1)
        return await outcome(world, asked)


async def outcome(world: World, asked: list[str]) -> Outcome:
    every = await world.store.read(team_rows.every)
    boards = {team.name: await world.board(team.id) for team in every}
    by_name = {team.name: team.id for team in every}
    fired = await world.store.read(triggers.of_team, by_name["garden"])
    [bridge] = await world.store.read(team_rows.members, by_name["bridge"])
    [thinker] = await world.store.read(team_rows.members, by_name["thoughts"])
    learned = await world.store.read(
        knowledge.INSIGHTS.select, "agent_id = :agent", agent=thinker.id
    )
    unsent = await world.store.read(
        lambda tx: tx.one("select count(*) from deliveries where status <> 'sent'")
    )
    return Outcome(
        asked=Counter(asked),
        left=[one.text for team in every for one in await world.questions(team.id)],
        statuses={team.name: team.status for team in every},
        results={
            (team, node.title or node.kind.name): (node.status, first_line(node.result))
            for team, nodes in boards.items()
            for node in nodes
            if team != "garden"
        },
        fired={(one.type, one.action) for one in fired if one.fired},
        conversation=[message.text for message in await world.conversation(bridge)],
        insights=[one.content for one in learned],
        unsent=unsent[0],
    )


def first_line(text: str | None) -> str:
    return (text or "").partition("\n")[0]


DONE = "completed"
GOAL = "Get to work on the goal"
RESEARCHED = {
    "Research: Compare the two towers.": (DONE, "## Answer"),
    "Read: How tall is the first tower?": (DONE, "Done."),
    "Read: How tall is the second tower?": (DONE, "Done."),
    "Look for gaps": (DONE, "0 questions to read for."),
    "Write the report": (DONE, "128 characters, 0 sentences struck."),
    "Check the quotations": (DONE, "1 of 1 sentences compared, 0 struck."),
    GOAL: (DONE, "The towers are compared."),
}
RESULTS: dict[str, dict[str, tuple[str, str]]] = {
    "news": {GOAL: (DONE, "The news is out.")},
    "market": {GOAL: (DONE, "Pears are bought.")},
    "letters": {GOAL: (DONE, "Both are noted.")},
    "school": {GOAL: (DONE, "The lesson is held.")},
    "beans": {GOAL: (DONE, "Beans are counted.")},
    "bridge": {GOAL: (DONE, "It is built.")},
    "paused": {GOAL: (DONE, "After the pause.")},
    "stopped": {GOAL: ("cancelled", "")},
    "archived": {GOAL: (DONE, "Put away.")},
    "partial": {GOAL: ("partial", "Half of it.")},
    "failed": {GOAL: ("failed", "[no call]")},
    "readers": RESEARCHED,
    "writers": RESEARCHED,
    "smith": {
        GOAL: (DONE, "The iron is forged."), "Heat": (DONE, "done"), "Beat": (DONE, "done"),
    },
    "kettle": {
        GOAL: (DONE, "The kettle is set."), "Boil the water": (DONE, "The water boils."),
    },
    "harbour": {
        GOAL: (DONE, "The harbour is drawn."), "Draw the harbour.": (DONE, "The draft is there."),
    },
    "links": {
        GOAL: (DONE, "All links are read."),
        "Read the links of a page": (DONE, "Apples cost 2 coins."),
    },
    "public": {
        GOAL: (DONE, "Pears cost 3 coins."),
        "What do pears cost at http://market.example/?": (DONE, "3 coins."),
    },
    "single": {GOAL: (DONE, "The number is 7."), "single_answer": (DONE, "7")},
    "poem": {GOAL: (DONE, "A poem."), "Review of Play poem": (DONE, "Nothing to object to.")},
    "mill": {  # its program was killed with the runtime, and nobody starts one twice
        GOAL: (DONE, "It turns again."), "Mend": ("failed", ""), "Repair": (DONE, "done"),
    },
    "library": {GOAL: (DONE, "The library is sorted."), "task": (DONE, "The draft is there.")},
    "thoughts": {GOAL: (DONE, "It is thought over.")},
}  # fmt: skip
"""Status and first line of the result of each node when all is done, by team and title."""
STATUSES = {"garden": "active", "stopped": "stopped", "partial": "stopped", "failed": "stopped",
            "archived": "archived"}  # fmt: skip
"""Of teams that are not completed then."""
EXPECTED = Outcome(
    asked=Counter(
        ["bridge: question", "letters: question", "market: approval", "mill: approval",
         "news: question", "news: question", "paused: question", "school: question",
         "smith: approval"]
    ),
    left=[],
    statuses=dict.fromkeys(RESULTS, "completed") | STATUSES,
    results={(team, title): end for team, ends in RESULTS.items() for title, end in ends.items()},
    fired={
        ("at_time", "wake_agent"), ("delayed", "run_callback"), ("delayed", "send_message"),
        ("heartbeat", "wake_agent"), ("on_event", "wake_agent"), ("on_idle", "wake_agent"),
        ("scheduled", "research"), ("scheduled", "wake_agent"), ("webhook", "wake_agent"),
    },
    conversation=[
        "Which stone?", "When will it be built?", "And how high?", "Soon.", "Yes.", "It is built.",
    ],
    insights=["Beans come in bags of ten."],
    unsent=0,
)  # fmt: skip


def printed(stored: Path) -> list[Any]:
    return [json.loads(line) for line in (stored / "paper.jsonl").read_text().splitlines()]


async def test_work_of_a_stored_home_goes_on_to_its_end(stored: Path) -> None:
    home, before = stored / "home", printed(stored)
    assert await goes_on(home, f"sqlite:///{home / 'agiraph.db'}") == EXPECTED
    sent = printed(stored)
    assert sent[: len(before)] == before
    assert max(Counter(key for key, _ in sent).values()) == 1
    assert (home / "mcp" / "rude" / "notes").read_text().split() == ["first", "second"]


async def test_work_of_a_restored_backup_goes_on_to_its_end(
    stored: Path, database_url: str
) -> None:
    home = stored / "new"
    run = commands(home, AGIRAPH_DATABASE_URL=database_url)
    await run("restore", str(stored / "backup.tar.gz"), "--with-settings")
    assert await goes_on(home, database_url) == EXPECTED
    assert (home / "mcp" / "rude" / "notes").read_text().split() == ["first", "second"]
