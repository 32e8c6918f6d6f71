"""Players: scripted agents of a stored home, which stop in the middle and go on in a later release.

It imports nothing that has moved between releases, so that an earlier release can run it.
"""

import asyncio
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from agiraph.testing import Says, call, says
from agiraph.testing.scripted import as_reply
from tests.local_web import Page

QUESTION = "Compare the two towers."
SITES = {
    "one.example": {"/": Page("# One\n\nThe first tower is 100 metres tall.\n", "One")},
    "two.example": {"/": Page("# Two\n\nThe second tower is 200 metres tall.\n", "Two")},
    "market.example": {
        "/": Page("# Market\n\nPears cost 3 coins. [More](http://market.example/more)\n", "Market"),
        "/more": Page("# More\n\nApples cost 2 coins.\n", "More"),
    },
}
TOWERS = {"first": "http://one.example/", "second": "http://two.example/"}
REPORT = (
    "## Answer\n\nOne is 100 metres tall [e{first}], the other 200 metres [e{second}].\n\n"
    "## Key findings\n\n- The first tower is 100 metres tall [e{first}].\n"
)
GIVEN_OUT = re.compile(r"(?:Created|in the background as) (node_\w+)")


@dataclass(frozen=True, slots=True)
class Stops:
    """A reply that is not given before the release changes."""

    then: Says


Line = Says | Stops | Callable[[Any], "Says | Stops"]


def steps(request: Any) -> int:
    """Return the number of replies in the thread: the place in its script."""
    return sum(turn.role == "assistant" for turn in request.transcript.turns)


def assignment(request: Any) -> str:
    return next(turn.text for turn in request.transcript.turns if turn.ref == "assignment")


def last_words(request: Any) -> str:
    return next(t.text for t in reversed(request.transcript.turns) if t.role == "user")


def created(request: Any) -> list[str]:
    """Return the ids of the tasks that this thread has given out, in order."""
    tools = [turn.text for turn in request.transcript.turns if turn.role == "tool"]
    return [id for text in tools for id in GIVEN_OUT.findall(text)]


class Player:
    """A model that says the lines of its script by their place in the thread."""

    def __init__(self, name: str, *work: Line, goes_on: bool, **others: Sequence[Line]) -> None:
        """`others`: the lines of a `worker`, of a `reply` to a person, of a `review`, and so on."""
        self.name = f"scripted/{name}"
        self._lines: dict[str, Sequence[Line]] = {"work": work, **others}
        self._goes_on = goes_on
        self.stopped = asyncio.Event()
        """Set once it has come to a reply that is to be given later."""

    async def reply(self, request: Any, on_delta: Any = None) -> Any:
        line = self._line(request)
        said = line if isinstance(line, Says | Stops) else line(request)
        if isinstance(said, Stops):
            if not self._goes_on:
                self.stopped.set()
                await asyncio.Event().wait()
            said = said.then
        return as_reply(said)

    def _line(self, request: Any) -> Line:
        part = self._part(request)
        lines = self._lines.get(part)
        if lines is None:
            return DEFAULTS[part]
        return lines[min(steps(request), len(lines) - 1)]

    def _part(self, request: Any) -> str:
        system = request.transcript.system
        tools = {tool.name for tool in request.tools}
        if "You are talking with the human" in system:
            return "reply"
        if "now look back on it" in system:
            return "reflection"
        for name, start in RESEARCH.items():
            if system.startswith(start):
                return name
        if "give_verdict" in tools:
            return "review"
        if request.schema is not None:
            return "support"
        return "work" if "finish" in tools else "worker"


RESEARCH = {
    "plan": "You plan the work on a research",
    "read": "You read the web",
    "gaps": "You check how far",
    "write": "You write the report",
}


def plans(request: Any) -> Says:
    parts = [{"question": f"How tall is the {name} tower?"} for name in TOWERS]
    plan = {"question": QUESTION, "kind": "survey", "sub_questions": parts}
    return says(json.dumps(plan))


def reads(request: Any) -> Says:
    task = next(t.text for t in request.transcript.spoken() if t.role == "user")
    name = "first" if "first" in task.partition("It is a part of")[0] else "second"
    words = f"The {name} tower is {100 if name == 'first' else 200} metres tall."
    lines = [
        call("web_search", query=f"{name} tower"),
        call("web_fetch", url=TOWERS[name]),
        call("note_evidence", claim=words, quote=words, url=TOWERS[name]),
        call("done"),
    ]
    return says(lines[min(steps(request), 3)])


def writes(request: Any) -> Says:
    shown = request.transcript.system.partition("# The evidence")[2]
    first = 1 if shown.index("The first") < shown.index("The second") else 2
    return says(REPORT.format(first=first, second=3 - first))


def reflects(request: Any) -> Says:
    if "worth keeping" in last_words(request):
        kept = {"type": "fact", "content": "Beans come in bags of ten.", "confidence": 0.8}
        return says(json.dumps({"insights": [{**kept, "work": 1}]}))
    told = {"score": 0.9, "title": "Beans", "text": "Beans come in bags of ten now."}
    return says(json.dumps(told))


DEFAULTS: dict[str, Line] = {
    "reply": says("I have noted it.", call("no_work_needed", reason="It is noted.")),
    "reflection": reflects,
    "review": says(call("give_verdict", verdict="accept")),
    "support": says('{"verdicts": [{"pair": 1, "verdict": "yes"}]}'),
    "plan": plans,
    "read": reads,
    "gaps": says('{"missing": [], "next": []}'),
    "write": writes,
    "worker": says(call("publish", summary="It is done.")),
}


def reads_only_the_first(request: Any) -> Says | Stops:
    """Read as in other teams, but stop before the words of the second page are noted."""
    task = next(t.text for t in request.transcript.spoken() if t.role == "user")
    is_first = "first" in task.partition("It is a part of")[0]
    return reads(request) if is_first or steps(request) < 2 else Stops(reads(request))


def stage_of_all(request: Any) -> Says:
    return says(call("start_stage", name="first", nodes=created(request)))


def judges_stage(request: Any) -> Says:
    verdicts = [{"node_id": id, "verdict": "accept"} for id in created(request)]
    return says(
        call("reconvene", assessment="Both are there.", verdicts=verdicts, decision="continue")
    )


def delegates(task: str, helper: str, **more: Any) -> Says:
    given = {"agent": f"new:scripted/{helper}", "task": task, "description": task}
    return says(call("assign_task", **given | more))


def promises_once(request: Any) -> Says:
    """Promise something for later, and keep it then."""
    if "Boil the water" in assignment(request):
        return finishes("The water boils.")
    return says(call("promise", what="Boil the water", when="in 2 hours"))


def asks(question: str, **more: Any) -> Says:
    return says(call("ask_human", question=question, **more))


def mcp(tool: str, **given: str) -> Says:
    return says(call("call_tool", name=f"mcp__rude__{tool}", arguments=given))


def finishes(summary: str, **more: Any) -> Says:
    return says(call("finish", summary=summary, **more))


WRITES_DRAFT = says(call("write_file", path="draft.md", content="half and whole"))
PUBLISHES = says(call("publish", summary="The draft is there."))
HALF_WAY = says(call("checkpoint", summary="half way"))
LOOKS_AT_MARKET = says(call("web_fetch", url="http://market.example/"))
ASKS_TO_RUN = says(call("bash", command="echo bought > bought.md", network="open"))
INTERRUPTED = "cli:echo begun > begun.md; exec sleep 1000"
LATER = "cli:echo beaten > beaten.md; echo done > _result.md"
IN_TIME = "cli:echo mended > mended.md; echo done > _result.md"


def employs(command: str, description: str) -> Says:
    """Give a task to a program."""
    return says(call("assign_task", agent=command, task=f"{description} it.",
                     description=description))  # fmt: skip


TEAMS: dict[str, tuple[tuple[Line, ...], dict[str, Sequence[Line]]]] = {
    "harbour": (
        (delegates("Draw the harbour.", "harbour"), finishes("The harbour is drawn.")),
        {"worker": (WRITES_DRAFT, Stops(PUBLISHES))},
    ),
    "bridge": (
        (HALF_WAY, asks("Which stone?", options=["granite", "basalt"]), finishes("It is built.")),
        {"reply": (Stops(says("Soon.", call("no_work_needed", reason="It is answered."))),)},
    ),
    "market": (
        (LOOKS_AT_MARKET,
         says(call("write_file", path="prices.md", content="Pears cost 3 coins."),
              call("memory_write", path="knowledge/prices.md", content="Pears cost 3 coins.")),
         ASKS_TO_RUN, ASKS_TO_RUN, finishes("Pears are bought.")),
        {},
    ),
    "links": (
        (LOOKS_AT_MARKET, says(call("call_tool", name="read_links",
                                    arguments={"url": "http://market.example/"})),
         finishes("All links are read.")),
        {"worker": (says(call("web_fetch", url="http://market.example/more")),
                    Stops(says(call("publish", summary="Apples cost 2 coins."))))},
    ),
    "public": (
        (delegates("What do pears cost at http://market.example/?", "public", public=True),
         finishes("Pears cost 3 coins.")),
        {"worker": (LOOKS_AT_MARKET, Stops(says(call("publish", summary="3 coins."))))},
    ),
    "single": (
        (says(call("create_work_node", task="Say a number.", max_turns=1,
                   assigned_to="new:scripted/single")),
         lambda request: says(call("task_output", id=created(request)[0], blocking=True)),
         finishes("The number is 7.")),
        {"worker": (Stops(says("7")),)},
    ),
    "readers": ((finishes("The towers are compared."),), {"read": (reads_only_the_first,)}),
    "writers": (
        (finishes("The towers are compared."),),
        {"write": (lambda request: Stops(writes(request)),)},
    ),
    "letters": (
        (mcp("note", text="first"), mcp("echo", text="hello"), asks("Shall I note the second?"),
         mcp("note", text="second"), finishes("Both are noted.")),
        {},
    ),
    "news": (
        (says(call("send_message", to="human", content="I have begun.")),
         says(call("ask_human", question="Which headline?"),
              call("ask_human", question="Which picture?")),
         finishes("The news is out.")),
        {},
    ),
    "garden": (
        (finishes("The beds are laid."),),
        {},
    ),
    "kettle": ((promises_once, finishes("The kettle is set.")), {}),
    "poem": (
        (WRITES_DRAFT, finishes("A poem.", evidence=["I laughed"])),
        {"review": (Stops(says(call("give_verdict", verdict="accept"))),)},
    ),
    "mill": (
        (employs(INTERRUPTED, "Mend"), employs(IN_TIME, "Repair"), finishes("It turns again.")),
        {},
    ),
    "smith": (  # what a program wrote is untrusted, so a person is asked before the next one runs
        (employs(IN_TIME, "Heat"), employs(LATER, "Beat"), finishes("The iron is forged.")),
        {},
    ),
    "library": (
        (says(call("create_work_node", task="Sort books.", assigned_to="new:scripted/library"),
              call("create_work_node", task="Stop here.", assigned_to="new:scripted/library")),
         stage_of_all, judges_stage, finishes("The library is sorted.")),
        {"worker": (lambda request:
                    Stops(PUBLISHES) if "Stop here" in assignment(request) else PUBLISHES,)},
    ),
    "school": (
        (says(call("use_skill", name="lessons"), call("feels_like", celsius=20.0, wind_kmh=50.0)),
         asks("Shall I look again?"),
         says(call("use_skill", name="lessons"), call("feels_like", celsius=10.0, wind_kmh=50.0)),
         finishes("The lesson is held.")),
        {},
    ),
    "beans": ((finishes("Beans are counted."),), {}),
    "thoughts": (
        (finishes("It is thought over."),),
        {"reflection": (lambda request: Stops(reflects(request)),)},
    ),
    "paused": ((asks("Shall I go on after the pause?"), finishes("After the pause.")), {}),
    "stopped": ((asks("Shall I go on?"), finishes("On again.")), {}),
    "archived": ((finishes("Put away."),), {}),
    "partial": ((says(call("finish", summary="Half of it.", reached="partly")),), {}),
    "failed": ((says("[no call]"),), {}),
}  # fmt: skip


def players(*, goes_on: bool) -> dict[str, Player]:
    return {
        name: Player(name, *work, goes_on=goes_on, **others)
        for name, (work, others) in TEAMS.items()
    }
