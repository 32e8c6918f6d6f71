"""`agiraph prompts`: every prompt as a model gets it, with its size.

A team works in a temporary home with the settings and specialists of the real one. Its model
records what it is asked and calls no server. Texts that a thread gets later, such as a heartbeat,
are shown with sample facts.
"""

import asyncio
import re
import tempfile
from collections.abc import Collection
from dataclasses import field, replace
from pathlib import Path
from string import Template
from typing import Any

import click
import orjson
from rich.table import Column

from agiraph import config
from agiraph.app import Runtime
from agiraph.cli.session import Columns, Told, plain_console, printing, shown, table
from agiraph.config import Settings
from agiraph.core.domain.chat import ToolCall
from agiraph.core.domain.persons import OWNER
from agiraph.core.domain.value import dataclass
from agiraph.core.home.specialists import specialists
from agiraph.core.prompts import prompt
from agiraph.core.services.lifecycle import conversation, teams
from agiraph.core.services.triggers import firing
from agiraph.models.base import OnDelta, Reply, Request
from agiraph.models.options import ModelOptions
from agiraph.models.wires.chat_completions import encode
from agiraph.redaction import environment

REQUESTS: dict[str, int] = {
    "coordinator": 3500,
    "worker": 2000,
    "lean_coordinator": 1500,
    "lean_worker": 1500,
    "reply": 2300,
    "lean_reply": 1500,
    "text_worker": 2500,
    "single": 2000,
    "public": 2000,
    "review": 2000,
    "reflection": 2000,
}
"""The first request of a thread with all that is sent: tools, system prompt and task. A specialist
counts as a worker. A reply is measured before there is any conversation or work."""
BOARD_IN_REPLY = 500
"""What the work of a small team may add to a reply."""

TEXTS: dict[str, int] = {
    "briefing": 140,
    "cli_task": 260,
    "compact": 150,
    "compacted": 80,
    "compaction_flush": 90,
    "coordinator": 360,
    "conversation_summary": 190,
    "cycle": 140,
    "heartbeat": 140,
    "lean": 200,
    "lean_coordinator": 340,
    "maintenance": 200,
    "promise": 140,
    "public": 270,
    "reader": 120,
    "reflection": 275,
    "reply": 400,
    "reply_lean": 220,
    "research_brief": 200,
    "research_gaps": 150,
    "research_reader": 310,
    "research_support": 110,
    "research_writing": 270,
    "review": 120,
    "rules": 240,
    "single": 80,
    "text_tool_calls": 520,
    "woken": 140,
    "worker": 120,
}
"""The words of a file, without the facts that are filled in."""
SPECIALIST = 150
"""The words of a specialist's file behind its front matter."""


GOAL = "Find out which of three heat pumps suits an old house, and write a report."
TASK = (
    "List what the three heat pumps cost, with sources, for the report to the owner of the house."
)
TIMEOUT_S = 60.0
FULL, LEAN, TEXT = "shown/full", "shown/lean", "shown/text"
_BRIEF: dict[str, Any] = {
    "description": "Costs of the pumps",
    "context": "The house has 120 square metres and old radiators.",
    "output": "`costs.md`: a table with one line a pump.",
    "boundaries": "No reviews: somebody else reads these.",
    "effort": "low",
}
_FACTS: dict[str, str] = {
    "goal": GOAL,
    "number": "3",
    "news": "Since you last looked:\n- the task *Costs of the pumps* ended",
    "desk": "agents/coordinator",
    "before": "Two of three pumps are compared.",
    "task": "Look whether the prices have changed.",
    "why": "its time has come",
    "id": "trigger_1",
    "made": "2026-11-10 09:00 UTC",
    "whom": "the human",
    "what": "Send the comparison by Friday.",
    "told": "So far you have told them nothing unasked.",
    "summary": "(the summary that the model wrote)",
    "state": "(task, files, open tasks and limits, from the records)",
    "save": "results and sources in files in scratch/ (`write_file`)",
    "pages": "3",
    "url": "https://example.org/pumps",
    "assignment": f"[Task] You have been given a task.\n\n{TASK}",
}
_LATER = {
    "heartbeat": "a scheduled check",
    "cycle": "a cycle of work without an end",
    "woken": "a trigger with a task",
    "promise": "a promise that is due",
    "maintenance": "once a day, in the system prompt",
    "compaction_flush": "before a long thread is shortened",
    "compact": "the question for a summary",
    "compacted": "what a shortened thread goes on from",
    "briefing": "whether the person is told something unasked",
    "conversation_summary": "the question for a summary of older talk",
    "research_brief": "the plan of research",
    "research_reader": "a reader of research",
    "research_gaps": "what research still lacks",
    "research_writing": "the report of research",
    "research_support": "whether quotations support a report",
    "reader": "the task of a reader of links",
    "cli_task": "`_task.md` of a program",
}
"""The texts that a thread gets later, with what each is for."""


@click.command()
@click.argument("names", nargs=-1, metavar="[NAME]…")
@printing
async def prompts(names: tuple[str, ...]) -> Told:
    """Show what models are told, in how many tokens.

    Without names, it lists the prompts with their sizes; with NAMEs, it prints these whole: tools,
    system prompt and task, as this home's settings and specialists make them. No model is called.
    """
    found = await renderings(config.load(environment()))
    known = {rendering.name: rendering for rendering in found}
    if unknown := [name for name in names if name not in known]:
        listed = ", ".join(known)
        raise click.UsageError(f"There is no prompt {unknown[0]!r}. There are: {listed}.")
    if not names:
        return [_fields(each) for each in found], lambda: _list(found)
    chosen = [known[name] for name in names]
    texts = [f"{_size(each)} ({each.about})\n\n{each.text}" for each in chosen]
    return [{**_fields(each), "text": each.text} for each in chosen], "\n".join(texts)


def _size(each: "Rendering") -> str:
    return f"{each.name}: {each.tokens:,} tokens of at most {each.most:,}"


def _fields(each: "Rendering") -> dict[str, object]:
    return {"name": each.name, "tokens": each.tokens, "most": each.most, "about": each.about}


_NUMBER: dict[str, Any] = {"justify": "right", "no_wrap": True}
_PROMPTS: "Columns[Rendering]" = (
    ("prompt!", lambda each: shown(each.name)),
    (Column("tokens", min_width=6, **_NUMBER), lambda each: _tokens(each)),
    (Column("at most", min_width=7, **_NUMBER), lambda each: f"{each.most:,}"),
    ("what it is", lambda each: shown(each.about)),
)


def _tokens(each: "Rendering") -> str:
    return f"{each.tokens:,}" if each.tokens <= each.most else f"[red]{each.tokens:,}[/]"


def _list(found: "list[Rendering]") -> None:
    console = plain_console()
    console.print(table(found, _PROMPTS))
    console.print("\nA token is four bytes. `agiraph prompts NAME` shows one whole.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Rendering:
    """One prompt as a model gets it."""

    name: str
    text: str
    tokens: int
    """Bytes of the whole request, or of the words of a text without its facts, divided by four."""
    most: int
    """The most tokens that it may have."""
    about: str


async def renderings(settings: Settings) -> list[Rendering]:
    """Return all prompts: first requests with the means of this home, then the later texts."""
    recorder = _Recorder()
    with tempfile.TemporaryDirectory(prefix="agiraph-prompts-") as folder:
        home = Path(folder)
        (home / "agents").mkdir()
        for file in (settings.home / "agents").glob("*.md"):
            (home / "agents" / file.name).write_bytes(file.read_bytes())
        async with asyncio.timeout(TIMEOUT_S):
            await _play(settings, home, recorder)
    order = [*REQUESTS, *sorted(recorder.found)]
    requests = sorted(recorder.found.values(), key=lambda each: order.index(each.name))
    return [*requests, *map(_later, _LATER)]


async def _play(settings: Settings, home: Path, recorder: "_Recorder") -> None:
    """Run scripted teams to their end, once with full prompts and once with short ones."""
    keys = replace(
        settings.keys,
        options={**settings.keys.options, LEAN: ModelOptions(prompt="lean")},
    )
    runtime = await Runtime.open(
        home,
        database_url=f"sqlite:///{home / 'agiraph.db'}",
        keys=keys,
        prices=settings.prices,
        own_models={"shown": lambda name: _Recording(f"shown/{name}", recorder)},
        commands=settings.commands,
        web=settings.web,
        usd_per_day=settings.usd_per_day,
    )
    recorder.specialists = sorted(specialists(runtime.home))
    try:
        await runtime.start()
        given: dict[str, Any] = {"goal": GOAL, "owner_id": OWNER, "heartbeat": None}
        for model in (FULL, LEAN):
            await runtime.store.write(teams.create, model=model, review="always", **given)
            # A team without work, so that the reply shows no board.
            idle = await runtime.store.write(teams.create, model=model, start=False, **given)
            said = (idle.coordinator.id, "How far are you?")
            await runtime.store.write(conversation.say, *said, person_id=OWNER)
        await runtime.engine.idle()
    finally:
        await runtime.close()


def _later(name: str) -> Rendering:
    text, facts = prompt(name), dict(_FACTS)
    if name == "woken":
        facts |= {"news": f"\n\n{facts['news']}", "unheard": firing.UNHEARD}
    if "$" in text:
        shown = Template(text).safe_substitute(facts)
    else:
        shown = text.format(**facts, used=98_304, window=128_000)
    return Rendering(
        name=name,
        text=shown + "\n",
        tokens=len(text.encode()) // 4,
        most=TEXTS[name],
        about=_LATER[name],
    )


@dataclass(slots=True)
class _Recorder:
    """The first request of each role, and what its model answers."""

    specialists: list[str] = field(default_factory=list[str])
    found: dict[str, Rendering] = field(default_factory=dict[str, Rendering])

    def answer(self, model: str, request: Request) -> Reply:
        """Record the request, if its role has none yet, and return what keeps the team going."""
        name = self._role(model, request)
        is_first = name not in self.found
        if is_first:
            self.found[name] = _rendered(name, request)
        shown = {spec.name for spec in request.tools}
        if request.schema is not None:
            return Reply(text='{"insights": [], "score": 0, "title": "", "text": ""}')
        if "give_verdict" in shown:
            return _says("", ("give_verdict", {"verdict": "accept"}))
        if "no_work_needed" in shown:
            return _says("One task is under way.", ("no_work_needed", {}))
        if key := re.search(
            r"The key for this reply is (\w+)\.", request.transcript.turns[-1].text
        ):
            name, arguments = _ending(())
            made = orjson.dumps(arguments).decode()
            return Reply(text=f"<call {key[1]} {name}>\n{made}\n</call>")
        if not shown:
            return Reply(text="They cost the same.")
        if is_first and name == "coordinator":
            return _says("", *self._delegations())
        return _says("", _ending(shown))

    def _delegations(self) -> list[tuple[str, dict[str, Any]]]:
        single: dict[str, Any] = {"task": TASK, "max_turns": 1, "assigned_to": f"new:{FULL}"}
        public: dict[str, Any] = {
            **_BRIEF,
            "agent": f"new:{FULL}",
            "task": f"{TASK} (public)",
            "public": True,
        }
        return [
            ("create_work_node", single),
            ("assign_task", public),
            *(
                ("assign_task", {**_BRIEF, "agent": agent, "task": f"{TASK} ({agent})"})
                for agent in (f"new:{FULL}", f"new:{LEAN}", f"new:text/{TEXT}", *self.specialists)
            ),
        ]

    def _role(self, model: str, request: Request) -> str:
        system, shown = request.transcript.system, {spec.name for spec in request.tools}
        who = re.search(r"^You are ([\w.-]+)\.$", system, re.MULTILINE)
        name = who[1] if who else ""
        if request.schema is not None:
            return "reflection"
        if "give_verdict" in shown:
            return "review"
        if "no_work_needed" in shown:
            return "lean_reply" if model == LEAN else "reply"
        if model == TEXT:
            return "text_worker"
        if not shown:
            return "single"
        if not name:
            return "public"
        name = name if name in ("coordinator", *self.specialists) else "worker"
        return f"lean_{name}" if model == LEAN else name


@dataclass(frozen=True, slots=True)
class _Recording:
    """A model that only records what it is asked."""

    name: str
    recorder: _Recorder

    async def reply(self, request: Request, on_delta: OnDelta | None = None) -> Reply:
        return self.recorder.answer(self.name, request)


def _ending(shown: Collection[str]) -> tuple[str, dict[str, Any]]:
    name = "finish" if "finish" in shown else "publish"
    summary = "All three cost about the same. That is all that is known."
    return name, {"summary": summary, "reached": "yes"}


def _says(text: str, *made: tuple[str, dict[str, Any]]) -> Reply:
    calls = (
        ToolCall(id=f"call_{number}", name=name, arguments=arguments)
        for number, (name, arguments) in enumerate(made)
    )
    return Reply(text=text, calls=tuple(calls))


def _rendered(name: str, request: Request) -> Rendering:
    """Return a request as text for people: tools, system prompt and messages."""
    parts = ["===== tools ====="]
    for spec in request.tools:
        parts.append(f"{spec.name}: {spec.description}\n{orjson.dumps(spec.schema).decode()}")
    parts += ["===== system =====", request.transcript.system]
    for turn in request.transcript.spoken():
        parts += [f"===== {turn.role} =====", turn.text]
    size = sum(len(part) for part in encode(name, request))
    return Rendering(
        name=name,
        text="\n\n".join(parts) + "\n",
        tokens=size // 4,
        most=REQUESTS.get(name, REQUESTS["worker"]),
        about="the first request",
    )
