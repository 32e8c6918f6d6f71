"""Scenarios for the crash sweep: each process continues from what the last one left on disk."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from agiraph.core.domain.agents import Rule
from agiraph.core.domain.messages import Draft
from agiraph.core.domain.outcomes import Answer, Done
from agiraph.core.domain.persons import OWNER
from agiraph.core.run_context import RunContext
from agiraph.core.services.board import planning
from agiraph.core.services.lifecycle import teams
from agiraph.core.services.lifecycle.teams import NewTeam
from agiraph.core.services.mail import bus
from agiraph.core.services.members import roster
from agiraph.core.store import teams as rows
from agiraph.core.store.tx import Tx
from agiraph.core.tools.base import tool
from agiraph.models.base import Request
from agiraph.testing import Says, World, call, says
from agiraph.testing.scripted import ReactiveModel
from agiraph.testing.sweep import Check, Scenario
from tests.faults.invariants import EFFECTS, Ledger, after_recovery, at_kill, fingerprint

React = Callable[[Request], Says]


def step(request: Request) -> int:
    """Return the number of replies in the thread: the script's position."""
    return sum(turn.role == "assistant" for turn in request.transcript.turns)


def command(home: Path, token: str) -> str:
    return f"echo 'effect {token}' >> {EFFECTS}"


def counting_model(home: Path, react: React) -> ReactiveModel:
    """Return a model that answers with this function and notes each call in the ledger."""

    def noted(request: Request) -> Says:
        Ledger(home).note("llm", str(step(request)))
        return react(request)

    return ReactiveModel("scripted/ada", noted)


async def world_of(home: Path, react: React) -> World:
    Ledger(home).note("life")
    world = World(home, easy_endings=True)
    world.model("ada", counting_model(home, react))
    await world.start()
    return world


async def found_team_once(world: World, **more: Any) -> NewTeam | None:
    """Found the scenario's team, unless an earlier process already did."""
    found = await world.teams()
    if found:
        return None
    founded = await world.found("Do the work", **more)
    Ledger(world.path).note("acknowledged", f"teams {founded.team.id}")
    return founded


async def answer_all(world: World) -> None:
    """Answer every open question, and approve every request."""
    for team in await world.teams():
        for question in await world.questions(team.id):
            if question.kind == "approval":
                await world.answer(question, decision="approve")
            else:
                await world.answer(question, f"answer to {question.text}")
            Ledger(world.path).note("acknowledged", f"answers {question.id}")


# ---- a plain run ---------------------------------------------------------------------------


async def plain(home: Path) -> None:
    def react(request: Request) -> Says:
        match step(request):
            case 0:
                return says("First.", call("write_file", path="draft.md", content="half and whole"))
            case 1:
                return says(call("checkpoint", summary="half way"))
            case _:
                return says(call("finish", summary="done"))

    world = await world_of(home, react)
    await found_team_once(world)
    await world.settle()
    await world.stop()


# ---- tools of each effect ------------------------------------------------------------------


async def effects(home: Path) -> None:
    def react(request: Request) -> Says:
        match step(request):
            case 0:
                return says(
                    call("write_file", path="draft.md", content="half and whole"),
                    call("send_message", to="human", content="I have begun"),
                    call("bash", command=command(home, "one")),
                )
            case 1:
                return says(
                    call("edit_file", path="draft.md", old="and", new="or"),
                    call("bash", command=command(home, "two")),
                    call("send_message", to="human", content="Almost there"),
                )
            case 2:
                return says(call("read_file", path="draft.md"), call("check_messages"))
            case _:
                return says(call("finish", summary="done"))

    world = await world_of(home, react)
    await found_team_once(world)
    await world.settle()
    await world.stop()


# ---- questions, answered later -------------------------------------------------------------


async def questions(home: Path) -> None:
    def react(request: Request) -> Says:
        match step(request):
            case 0:
                return says(
                    call("ask_human", question="which database"),
                    call("ask_human", question="which colour"),
                )
            case 1:
                return says(call("ask_human", question="anything else"))
            case _:
                return says(call("finish", summary="done"))

    world = await world_of(home, react)
    await found_team_once(world)
    await world.settle()
    for _ in range(2):
        await answer_all(world)
        await world.settle()
    await world.stop()


# ---- a worker publishes a tree of files ----------------------------------------------------


async def publishing(home: Path) -> None:
    def react(request: Request) -> Says:
        match step(request):
            case 0:
                return says(
                    call("write_file", path="draft.md", content="the draft\n"),
                    call("write_file", path="data/one.csv", content="1,2\n" * 100),
                    call("write_file", path="data/deep/two.csv", content="3,4\n" * 100),
                )
            case _:
                return says(call("publish", summary="three files"))

    def employ(tx: Tx) -> str:
        founded = teams.create(
            tx, owner_id=OWNER, goal="Publish", model="scripted/ada", start=False, learns=False
        )
        worker = roster.hire(tx, founded.team.id, name="bob", role="worker", model="scripted/ada")
        planning.create(
            tx, team_id=founded.team.id, task="Write it", source="user", assignee_id=worker.id
        )
        return founded.team.id

    world = await world_of(home, react)
    if not await world.teams():
        team_id = await world.store.write(employ)
        Ledger(home).note("acknowledged", f"teams {team_id}")
    await world.settle()
    await world.stop()


# ---- refused calls, an approval ------------------------------------------------------------


async def refusals(home: Path) -> None:
    def react(request: Request) -> Says:
        match step(request):
            case 0:
                return says(
                    call("no_such_tool", x=1),
                    call("write_file", path="../../escape.md", content="no"),
                    call("write_file", path="draft.md"),
                    call("send_message", to="nobody", content="hello?"),
                )
            case 1:
                return says(
                    call("bash", command=command(home, "denied") + " # forbidden"),
                    call("bash", command=command(home, "asked") + " # ask first"),
                )
            case _:
                return says(call("finish", summary="done"))

    rules = (
        Rule(tool="bash", pattern="*forbidden*", action="deny"),
        Rule(tool="bash", pattern="*ask first*", action="ask"),
    )
    world = await world_of(home, react)
    await found_team_once(world, permissions=rules)
    await world.settle()
    await answer_all(world)
    await world.settle()
    await world.stop()


# ---- a result that a reviewer sends back once ----------------------------------------------


async def reviewed(home: Path) -> None:
    def react(request: Request) -> Says:
        if any(tool.name == "give_verdict" for tool in request.tools):
            if "the first try" not in request.transcript.turns[1].text:
                return says(call("give_verdict", verdict="accept"))
            return says(call("give_verdict", verdict="rework", findings=["No joke in it."]))
        match step(request):
            case 0:
                return says(call("write_file", path="draft.md", content="half and whole"))
            case 1:
                return says(call("finish", summary="the first try", evidence=["I laughed"]))
            case _:
                return says(call("finish", summary="the second try", evidence=["They laughed"]))

    world = await world_of(home, react)
    await found_team_once(world, acceptance=["It is funny"], review="auto")
    await world.settle()
    await world.stop()


# ---- messages during a wait, and after the end ---------------------------------------------


async def messages(home: Path) -> None:
    def react(request: Request) -> Says:
        turns = request.transcript.turns
        answered = any(t.role == "tool" and t.text.startswith("answer to") for t in turns)
        if "Do the work" in turns[1].text and not answered:
            return says(call("ask_human", question="shall I"))  # again, after each note
        return says(call("finish", summary=f"done after {step(request)}"))

    world = await world_of(home, react)
    founded = await found_team_once(world)
    await world.settle()
    for number in (1, 2, 3):
        if number == 3:
            await answer_all(world)
            await world.settle()
        await _say_once(world, number)
        await world.settle()
    await world.stop()
    assert founded is None or founded.node is not None


async def _say_once(world: World, number: int) -> None:
    """Send a message, as a client that retries after a crash with the same key."""
    [team] = await world.teams()
    [agent] = await world.store.read(rows.members, team.id)
    # Longer than the part that the answer to an interrupted question quotes.
    text = f"note {number} {'and so on ' * 300}"
    said = await world.say(agent.id, text, team_id=team.id, client_id=f"c{number}")
    Ledger(world.path).note("acknowledged", f"messages {said.id}")


# ---- a message between the calls of a reply, and an end that waits for a task ---------------


@tool(effect="repeatable", outside="nothing")
async def look_up(ctx: RunContext) -> Answer:
    """Look up from the work; the person writes in this moment."""
    said = {"sender": OWNER, "recipient": ctx.agent.id, "text": "mind the gap", "client_id": "c1"}
    await ctx.store.write(bus.send, Draft(team_id=ctx.team.id, **said))
    return Done("There is a gap.")


async def interrupted(home: Path) -> None:
    aside = call(
        "assign_task", agent="new:scripted/ada", task="Aside", description="aside",
        run_in_background=True,
    )  # fmt: skip
    run = call("bash", command=command(home, "one"))

    def react(request: Request) -> Says:
        is_worker = any(tool.name == "publish" for tool in request.tools)
        match step(request):
            case 0 if is_worker:
                return says(call("write_file", path="draft.md", content="half and whole"))
            case _ if is_worker:
                return says(call("publish", summary="done aside"))
            case 0:
                return says(aside, call("look_up"), run)
            case 1:
                return says(run)
            case _:
                return says(call("finish", summary="done"))

    Ledger(home).note("life")
    world = World(home, easy_endings=True, tools=(look_up,))
    world.model("ada", counting_model(home, react))
    await world.start()
    await found_team_once(world)
    await world.settle()
    await world.stop()


def scenario(
    name: str,
    live: Callable[[Path], object],
    arm: Callable[[], object],
    *more: Check,
) -> Scenario:
    """Return a scenario with the common invariants and additional checks."""

    def recovered(home: Path) -> Iterator[str]:
        for check in (after_recovery, *more):
            yield from check(home)

    return Scenario(
        name=name,
        live=live,  # pyright: ignore[reportArgumentType]
        at_kill=at_kill,
        after_recovery=recovered,
        fingerprint=fingerprint,
        arm=arm,
    )


ALL = {
    "plain": plain,
    "effects": effects,
    "questions": questions,
    "publishing": publishing,
    "refusals": refusals,
    "messages": messages,
    "reviewed": reviewed,
    "interrupted": interrupted,
}
