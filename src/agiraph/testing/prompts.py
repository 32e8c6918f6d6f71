"""Prompts: the first request of each role as its model receives it, to read and to measure.

requests = await first_requests(tmp_path, specialists={"poet": "---\\nname: poet\\n…"})
print(requests["poet"].text, requests["poet"].tokens)
"""

import re
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, Literal, cast

import orjson

from agiraph.core.domain.value import dataclass
from agiraph.core.home.specialists import specialists as load_specialists
from agiraph.models.facts.prices import Prices, Terms
from agiraph.models.registry import Account, Keys
from agiraph.models.servers import Server
from agiraph.testing.model_server import ModelServer
from agiraph.testing.script import Call, Says, Seen, call, says
from agiraph.testing.world import World
from agiraph.web.access import Web
from agiraph.web.search import LocalEngine

PromptWire = Literal["openai", "responses", "anthropic", "gemini", "text"]
WIRES: tuple[PromptWire, ...] = ("openai", "responses", "anthropic", "gemini", "text")
LARGE_WINDOW = 128_000

GOAL = "Find out which of three heat pumps suits an old house, and write a report."
TASK = "For the report on heat pumps: list what the three of them cost, with sources."
COORDINATOR, WORKER, SINGLE, REPLY = "coordinator", "worker", "single", "reply"

_MODELS: Mapping[PromptWire, str] = {
    "openai": "openai/test",
    "responses": "house/test",
    "anthropic": "anthropic/test",
    "gemini": "gemini/test",
    "text": "text/openai/test",
}
_RANDOM = re.compile(r"\b(node|t|team|agent)_[0-9a-z]{6,}\b")
_MARK = re.compile(r"(<<<|>>>) [0-9a-f]{16}")
_KEY = re.compile(r"(The key for this reply is|<call) [a-z0-9]{8}\b")


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstRequest:
    """The first request of a thread."""

    name: str
    """The role: coordinator, worker, single, reply, or the name of a specialist."""
    seen: Seen

    @property
    def tokens(self) -> int:
        """The size of the request: the bytes of its body, divided by four."""
        return len(self.seen.raw) // 4

    @property
    def text(self) -> str:
        """The request as text for people, the same in each run: tools, system prompt, messages."""
        body = self.seen.body
        parts = [f"{self.name}: {self.tokens:,} tokens, {len(self.seen.tools)} tools"]
        parts += ["===== tools =====", *map(_tool_text, body.get("tools") or ())]
        parts += ["===== system =====", self.seen.system]
        for message in self.seen.messages:
            parts += [f"===== {message.role} =====", message.text]
        return _fixed("\n\n".join(parts)) + "\n"


async def first_requests(
    folder: Path,
    *,
    wire: PromptWire = "openai",
    window: int = LARGE_WINDOW,
    specialists: Mapping[str, str] | None = None,
    roles: Collection[str] | None = None,
) -> dict[str, FirstRequest]:
    """Return the first request of each role in a fresh team, by role.

    `specialists` are files of your own by name; those that agiraph ships are there in any case.
    `roles` are those that are asked for; None: all. `window` is that of the model in tokens: with a
    small one, the prompts are short. The folder must be empty.
    """
    agents = folder / "agents"
    agents.mkdir(parents=True)
    for name, text in (specialists or {}).items():
        (agents / f"{name}.md").write_text(text)
    model = _MODELS[wire]
    play = _Play(model)
    async with ModelServer(play.reply) as server:
        keys = Keys(
            {
                "openai": Account(key="k", base_url=server.openai_url),
                "anthropic": Account(key="k", base_url=server.anthropic_url),
                "gemini": Account(key="k", base_url=server.gemini_url),
            },
            servers={"house": Server(base_url=server.openai_url, wire="responses")},
        )
        prices = Prices({name: Terms(window=window) for name in _MODELS.values()})
        web = Web(engine=LocalEngine([]))
        opened = World(folder, keys=keys, prices=prices, web=web, validates_events=False)
        async with opened as world:
            known = load_specialists(world.runtime.home)
            play.specialists = [name for name in known if roles is None or name in roles]
            founded = await world.found(GOAL, model=model)
            await world.settle()
            await world.chat(founded.coordinator.id, "How far are you?")
            await world.settle()
    return play.found


class _Play:
    """Replies for all agents: the coordinator gives everybody a task, the others submit."""

    def __init__(self, model: str) -> None:
        self._model = model
        self.specialists: list[str] = []
        self.found: dict[str, FirstRequest] = {}

    def reply(self, seen: Seen) -> Says:
        who = re.search(r"^You are ([\w.-]+)\.$", seen.system, re.MULTILINE)
        name = who[1] if who else "unknown"
        if "You are talking with the human" in seen.system:
            name = REPLY
        elif "no second turn" in seen.system:
            name = SINGLE
        elif name not in (COORDINATOR, *self.specialists):
            name = WORKER
        is_first = name not in self.found
        if is_first:
            self.found[name] = FirstRequest(name=name, seen=seen)
        if name in (REPLY, SINGLE):
            return says("It goes well.")
        if name != COORDINATOR:
            return self._says(seen, call("publish", summary="They cost the same."))
        if not is_first:
            return self._says(seen, call("finish", summary="The second one suits best."))
        single = call("create_work_node", task=TASK, max_turns=1, assigned_to=f"new:{self._model}")
        others = [*self.specialists, f"new:{self._model}"]
        tasks = [
            call("assign_task", agent=agent, task=f"{TASK} ({agent})", description="Costs")
            for agent in others
        ]
        return self._says(seen, single, *tasks)

    def _says(self, seen: Seen, *calls: Call) -> Says:
        """Return a reply with these calls, in the form that the model was told."""
        if not self._model.startswith("text/"):
            return says(*calls)
        [key] = re.findall(r"The key for this reply is (\w+)", seen.messages[-1].text)[-1:]
        lines = [
            f"<call {key} {made.name}>\n{orjson.dumps(made.arguments).decode()}\n</call>"
            for made in calls
        ]
        return says("\n".join(lines))


def _tool_text(tool: Any) -> str:
    """Return a tool of a request as text; all wires name the same things differently."""
    given = cast(dict[str, Any], tool)
    if "functionDeclarations" in given:
        return "\n\n".join(map(_tool_text, given["functionDeclarations"]))
    given = given.get("function", given)
    schema = next(given[k] for k in _SCHEMAS if k in given)
    shown = orjson.dumps(schema).decode()
    return f"{given['name']}: {given['description']}\n{shown}"


_SCHEMAS = ("parameters", "input_schema", "parametersJsonSchema")


def _fixed(text: str) -> str:
    """Return the text without what is random in it."""
    text = _RANDOM.sub(r"\1_…", text)
    text = _MARK.sub(r"\1 MARK", text)
    return _KEY.sub(r"\1 KEY", text)
