"""Conversation: a person talks about three tasks over HTTP, and is answered from the work."""

import re
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agiraph.models.registry import Account, Keys
from agiraph.testing import ModelServer, call, says
from agiraph.testing.model_server import Seen, Step
from tests.api.serving import Served, serving
from tests.runtime.waiting import Gate, until
from tests.scenarios.endings import finishes
from tests.scenarios.thread_queries import agent_name, new_text, reply_count

GOAL = "Choose a heat pump for an old house."
WHICH = "Which one do you want, the Arctic for 4,200 euros or the Boreal for 6,900 euros?"
PRICES = "Two pumps fit: the Arctic for 4,200 euros and the Boreal for 6,900 euros."
REPORT = f"""\
# Pumps

## Prices

{PRICES}

## Guarantee

The Arctic has a guarantee of 7 years, the Boreal of 10 years.
"""
NOISE = "The Boreal is the quietest: 38 decibels."
READ = "40 of 200 reviews are read; most praise the Arctic."
AT_NIGHT = "At night it is quieter still: 31 decibels."

FOUND, CHEAPER, GUARANTEE, STOP, GO_ON = (
    "What have you found so far?",
    "Use the cheaper one",
    "What does the report say about the guarantee?",
    "Stop the second one",
    "Go on with what Bob did",
)
FOUND_SO_FAR = f"{PRICES} {NOISE} {READ}"
SEVEN_YEARS = "The Arctic has 7 years, the Boreal 10."
TAKEN = "Then I take the Arctic."
STOPPED = "I have stopped the reading of reviews."
BOB_GOES_ON = "Bob goes on with it."


def task_of(system: str, name: str) -> str:
    """Return the id of the task of an agent, from the prompt of a reply."""
    found = re.search(rf"\((node_\w+)\): {name}, ", system)
    assert found is not None, system
    return found[1]


@dataclass
class Cast:
    """The scripted agents over the real wire; the reader of reviews waits at a gate."""

    reviews: Gate = field(default_factory=Gate)
    talks: list[Seen] = field(default_factory=list[Seen])
    """The requests of the replies to the person."""

    async def play(self, seen: Seen) -> Step:
        if "no_work_needed" in seen.tools:
            self.talks.append(seen)
            return self.talk(seen)
        match agent_name(seen):
            case "coordinator":
                return self.coordinator(seen)
            case "alice":
                return self.writes(seen, "report.md", REPORT, f"{PRICES} All of it: report.md.")
            case "bob" if GO_ON in new_text(seen) or reply_count(seen) > 2:
                return self.writes(seen, "night.md", AT_NIGHT, AT_NIGHT)
            case "bob":
                return self.writes(seen, "noise.md", NOISE, NOISE)
            case _:
                return await self.reader(seen)

    def coordinator(self, seen: Seen) -> Step:
        if GOAL not in seen.messages[0].text:
            return finishes("That is settled.")
        if reply_count(seen) == 0:
            tasks = {
                "alice": "List the prices.",
                "bob": "Measure the noise.",
                "cid": "Read reviews.",
            }
            return says(
                *(call("spawn_worker", name=name) for name in tasks),
                *(
                    call("assign_task", agent=name, task=task, description=task,
                         run_in_background=True)
                    for name, task in tasks.items()
                ),
            )  # fmt: skip
        heard = "\n".join(m.text for m in seen.messages if m.role != "assistant")
        if CHEAPER not in heard:
            return says(call("ask_human", question=WHICH))
        if "was cancelled" not in heard:
            return says("I wait for the reviews.")
        return finishes("The Arctic for 4,200 euros.")

    def writes(self, seen: Seen, file: str, text: str, summary: str) -> Step:
        if not any(made.name == "write_file" for m in seen.messages[-2:] for made in m.calls):
            return says(call("write_file", path=file, content=text))
        return says(call("publish", summary=summary))

    async def reader(self, seen: Seen) -> Step:
        if reply_count(seen) == 0:
            return says(call("checkpoint", summary=READ))
        await self.reviews.wait()
        return says(call("publish", summary="All 200 reviews are read."))

    def talk(self, seen: Seen) -> Step:
        asked, system, news = seen.messages[0].text, seen.system, new_text(seen)
        match asked:
            case _ if asked == FOUND:
                return says(FOUND_SO_FAR, call("no_work_needed"))
            case _ if asked == CHEAPER:
                [question] = re.findall(r"- (msg_\w+), coordinator", system)
                return says(TAKEN, call("answer", question_id=question))
            case _ if asked == GUARANTEE and "7 years" not in news:
                return says(call("read_report", id=task_of(system, "alice"), section="guarantee"))
            case _ if asked == GUARANTEE:
                return says(SEVEN_YEARS, call("no_work_needed"))
            case _ if asked == STOP:
                return says(STOPPED, call("stop_work", node_id=task_of(system, "cid")))
            case _:
                assert asked == GO_ON
                return says(BOB_GOES_ON, call("start_work", continues="bob"))


@asynccontextmanager
async def told(folder: Path, database_url: str = "") -> AsyncGenerator["Talk"]:
    """Serve a team with three background tasks, of which two have ended and one runs."""
    cast = Cast()
    async with ModelServer(cast.play) as models:
        keys = Keys({"openai": Account(key="k", base_url=models.openai_url)})
        more: dict[str, Any] = {"database_url": database_url} if database_url else {}
        async with serving(folder, keys=keys, model="openai/test", **more) as served:
            team = {"goal": GOAL, "model": "openai/test", "learns": False, "acceptance": ["answer"]}
            status, made = await served.ask("POST", "/teams", team)
            assert status in (200, 201), made
            talk = Talk(served, cast, made["id"], made["coordinator_id"])
            await cast.reviews.reached()
            await until(served.world, talk.is_asked)
            yield talk
            cast.reviews.set()


@dataclass
class Talk:
    """The person's side of the conversation."""

    served: Served
    cast: Cast
    team: str
    agent: str

    async def get(self, path: str) -> Any:
        status, body = await self.served.ask("GET", path)
        assert status == 200, body
        return body

    async def is_asked(self) -> bool:
        board = await self.get(f"/teams/{self.team}/board")
        states = {node["status"] for node in board}
        return len(board) == 4 and states == {"waiting", "completed", "running"}

    async def says(self, text: str) -> dict[str, Any]:
        """Send a message over HTTP and return the reply to it."""
        status, sent = await self.served.ask(
            "POST", f"/agents/{self.agent}/send", {"message": text}
        )
        assert status == 202, sent
        found: list[dict[str, Any]] = []

        async def is_answered() -> bool:
            said = await self.get(f"/agents/{self.agent}/conversation")
            found[:] = [m for m in said if m["in_reply_to"] == sent["id"]]
            return bool(found)

        await until(self.served.world, is_answered)
        return found[0]

    async def board(self) -> dict[str, tuple[str, str]]:
        """Return status and agent of each task, by its title."""
        names = {a["id"]: a["name"] for a in await self.get(f"/teams/{self.team}/agents?all=true")}
        board = await self.get(f"/teams/{self.team}/board")
        return {n["title"]: (n["status"], names[n["assignee_id"]]) for n in board}


async def converse(talk: Talk) -> None:
    """Talk about the three tasks, and check that each message is settled by the work there is."""
    requests = talk.cast.talks
    reply = await talk.says(FOUND)
    assert reply["text"] == FOUND_SO_FAR
    for fact in (PRICES, NOISE, READ, WHICH, "msg_", "What you did last"):
        assert fact in requests[-1].system

    assert (await talk.says(CHEAPER))["text"] == TAKEN
    [answered] = [
        m for m in await talk.get(f"/agents/{talk.agent}/conversation") if m["kind"] == "answer"
    ]
    assert answered["text"] == CHEAPER

    reply = await talk.says(GUARANTEE)
    assert reply["text"] == SEVEN_YEARS
    assert [read.partition("(")[0] for read in reply["consulted"]] == ["read_report"]
    assert "a guarantee of 7 years" in new_text(requests[-1])
    assert PRICES not in new_text(requests[-1])

    assert "Human (answer)" not in requests[-1].system

    goal = next(n for n in await talk.get(f"/teams/{talk.team}/board") if n["parent_id"] is None)
    heard = await talk.get(f"/threads/{goal['thread_id']}")
    assert FOUND in str(heard), "the work hears each message, and what the reply did about it"

    assert (await talk.says(STOP))["text"] == STOPPED
    await talk.served.world.settle()
    assert (await talk.says(GO_ON))["text"] == BOB_GOES_ON
    assert f"NEW since your last message: {GOAL}" in requests[-1].system
    await talk.served.world.settle()

    assert await talk.board() == {
        GOAL: ("completed", "coordinator"),
        "List the prices.": ("completed", "alice"),
        "Measure the noise.": ("completed", "bob"),
        "Read reviews.": ("cancelled", "cid"),
        GO_ON: ("completed", "bob"),
    }
    inbox = await talk.get("/inbox")
    assert AT_NIGHT in str(inbox)


async def test_a_person_is_answered_from_the_work_and_no_needless_work_is_started(
    tmp_path: Path, database_url: str
) -> None:
    async with told(tmp_path, database_url) as talk:
        await converse(talk)
