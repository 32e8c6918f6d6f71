"""Triggers: calls of a webhook, delayed triggers, and a schedule.

Every acknowledged call and every slot fires once, with its effect, or is recorded as skipped.
"""

import asyncio
import itertools
from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from tests.faults.attack.context import Context, require
from tests.faults.attack.model import order

SECRET = "a-secret-of-the-webhook"
CRON, DELAYED = "the minute is over", "delayed number {number}"
FIRED, SKIPPED = "trigger.fired", "trigger.skipped"


@dataclass(slots=True, kw_only=True)
class Triggers:
    context: Context
    name: str = "triggers"
    team: str = ""
    agent: str = ""
    hook: str = ""
    cron: str = ""
    hits: dict[int, dict[str, Any]] = field(default_factory=dict[int, dict[str, Any]])
    """The acknowledgement of every call."""
    delayed: dict[int, str] = field(default_factory=dict[int, str])

    async def set_up(self) -> None:
        team = await self.context.create_team(self.name)
        self.team, self.agent = team["id"], team["coordinator_id"]
        hook = {"secret": SECRET, "overlap": "queue"}
        self.hook = await self._trigger("webhook", hook, payload={"task": "See what came."})
        payload = {"to": "human", "content": CRON}
        self.cron = await self._trigger(
            "scheduled", {"cron": "* * * * *"}, action="send_message", payload=payload
        )

    async def _trigger(self, type: str, config: dict[str, Any], **more: Any) -> str:
        path, body = f"/api/teams/{self.team}/triggers", {"type": type, "config": config} | more
        made = await self.context.client.ask("POST", path, body, key=f"trigger {body}")
        return made["id"]

    async def act(self) -> None:
        chance, number = self.context.chance, next(self.context.numbers)
        if chance.random() < 0.5:
            await self._call(number)
            if chance.random() < 0.3:  # a caller that did not get the answer calls again
                await self._call(number)
        else:
            await self._delay(number, is_waking=chance.random() < 0.5)
        await asyncio.sleep(chance.uniform(0.1, 0.8))

    async def _call(self, number: int) -> None:
        headers = {"X-Agiraph-Secret": SECRET, "X-Delivery-Id": f"d{number}"}
        body = {"order": order("hook", number)}
        got = await self.context.client.ask(
            "POST", f"/api/hooks/{self.hook}", body, headers=headers
        )
        before = self.hits.setdefault(number, got)
        require(got == before, "the same delivery was answered with", got, "after", before)

    async def _delay(self, number: int, *, is_waking: bool) -> None:
        config = {"delay_seconds": round(self.context.chance.uniform(0.1, 3.0), 2)}
        words = DELAYED.format(number=number)
        more: dict[str, Any] = {"payload": {"task": f"{words} {order('wake', number)}"}}
        if not is_waking:
            more = {"action": "send_message", "payload": {"to": "human", "content": words}}
        self.delayed[number] = await self._trigger("delayed", config, **more)

    async def quick_check(self) -> None:
        return

    async def check(self) -> Counter[str]:
        events = await self.context.client.events(self.team)
        slots = [e for e in events if e["type"] in (FIRED, SKIPPED)]
        named = Counter((e["trigger_id"], e["slot"]) for e in map(_flat, slots))
        twice = {slot: times for slot, times in named.items() if times > 1}
        require(not twice, "slots that fired twice:", twice)
        handled = {(e["trigger_id"], e["slot"]): e for e in map(_flat, slots)}
        board = {node["id"]: node for node in await self.context.client.board(self.team)}
        said = Counter(m["text"] for m in await self.context.client.conversation(self.agent))
        since = await self.context.client.events(self.team, events[-1]["seq"])
        self._check_hook(handled, board)
        self._check_delayed([_flat(event) for event in slots], board, said)
        told = said[CRON] - sum(self._is_minute(_flat(event)) for event in since)
        minutes = self._check_cron([_flat(event) for event in slots], range(told, said[CRON] + 1))
        return Counter(hooks=len(self.hits), delayed=len(self.delayed), minutes=minutes)

    def _check_hook(self, handled: dict[Any, Any], board: dict[str, Any]) -> None:
        made = Counter(node["trigger_id"] for node in board.values())
        fired = [e for (trigger, _), e in handled.items() if trigger == self.hook]
        require(len(fired) == len(self.hits), "webhook fired", len(fired), "of", len(self.hits))
        require(made[self.hook] == len(self.hits), "webhook started", made[self.hook], "nodes")
        for number, acknowledged in self.hits.items():
            event = handled.get((self.hook, f"hit d{number}"))
            require(event is not None, "the acknowledged call", number, "never fired")
            require(acknowledged["outcome"] == "fired", "call", number, acknowledged)
            node = board.get(acknowledged["node_id"])
            require(node is not None, "the node of call", number, "is lost")
            assert node is not None
            require(
                f"<<hook {number}>>" in node["task"],
                "call",
                number,
                "has another call's node:",
                node,
            )
            require(node["status"] == "completed", "call", number, "ended as", node["status"])

    def _check_delayed(self, slots: list[Any], board: dict[str, Any], said: Counter[str]) -> None:
        by_trigger = Counter(event["trigger_id"] for event in slots)
        woken = Counter(node["trigger_id"] for node in board.values())
        for number, trigger in self.delayed.items():
            about = "delayed", number
            require(by_trigger[trigger] == 1, *about, "fired", by_trigger[trigger], "times")
            fired = next(e for e in slots if e["trigger_id"] == trigger)["type"] == FIRED
            effects = woken[trigger] + said[DELAYED.format(number=number)]
            require(effects == int(fired), *about, "had", effects, "effects")

    def _is_minute(self, event: dict[str, Any]) -> bool:
        return event["type"] == FIRED and event["trigger_id"] == self.cron

    def _check_cron(self, slots: list[Any], told: range) -> int:
        """Check that every minute is recorded, and every firing sent one message.

        The schedule runs during the check, so there may be one message more than firings.
        """
        own = [event for event in slots if event["trigger_id"] == self.cron]
        covered: list[datetime] = []
        for event in own:
            first = datetime.fromisoformat(event["slot"])
            covered += [first + timedelta(minutes=n) for n in range(event.get("count") or 1)]
        covered.sort()
        steps = {later - earlier for earlier, later in itertools.pairwise(covered)}
        require(steps <= {timedelta(minutes=1)}, "minutes", [str(m) for m in covered])
        fired = sum(self._is_minute(event) for event in own)
        require(fired in told, "the schedule fired", fired, "times and sent", told, "messages")
        return len(covered)


def _flat(event: dict[str, Any]) -> dict[str, Any]:
    """Return an event with its data merged into the top level."""
    return event | event.get("data", {})
