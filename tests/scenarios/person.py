"""Person: uses a served team from outside, and keeps what a person reads at each moment."""

import asyncio
import re
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agiraph.core.domain.messages import INBOX, MessageKind
from agiraph.core.domain.records.deliveries import OutgoingMessage
from agiraph.models.registry import Account, Keys
from agiraph.testing import ModelServer
from agiraph.testing.clock import ManualClock
from agiraph.testing.script import Script
from tests.api.serving import Served, serving

_MACHINE = re.compile(r"\b(?:team|agent|node|msg|trig|note|memory)_\w{8,}|scratch/|\b\w+\(.*\) → ")
"""Ids, the names of our folders and lines of the tool log: nothing for a person."""


@dataclass(slots=True)
class Phone:
    """A channel that keeps what it was sent."""

    kinds: frozenset[MessageKind] = INBOX
    description: str = "a phone"
    got: list[OutgoingMessage] = field(default_factory=list[OutgoingMessage])

    async def send(self, outgoing: OutgoingMessage) -> None:
        self.got.append(outgoing)


@dataclass(slots=True)
class Person:
    """Talks to one team over HTTP. `transcript` has what they did and read, in order."""

    served: Served
    phone: Phone
    team: str = ""
    agent: str = ""
    transcript: list[str] = field(default_factory=list[str])
    _seen: set[str] = field(default_factory=set[str])

    async def get(self, path: str) -> Any:
        status, body = await self.served.ask("GET", path)
        assert status == 200, body
        return body

    async def _post(self, path: str, body: Any) -> Any:
        status, told = await self.served.ask("POST", path, body)
        assert status < 300, told
        return told

    async def founds(self, goal: str, **more: Any) -> None:
        self._note(f">>> New team: {goal}")
        made = await self._post("/teams", {"goal": goal, "model": "openai/test", **more})
        self.team, self.agent = made["id"], made["coordinator_id"]
        await self._reads()

    async def says(self, text: str) -> None:
        self._note(f">>> {text}")
        await self._post(f"/agents/{self.agent}/send", {"message": text})
        await self._reads()

    async def answers(self, text: str) -> None:
        """Answer all open questions with the same words."""
        self._note(f">>> (answers) {text}")
        for item in await self.inbox():
            if item["needs_answer"]:
                await self._post(f"/inbox/{item['message']['id']}/answer", {"text": text})
        await self._reads()

    async def waits(self, **time: float) -> None:
        self._note(f">>> (waits {time})")
        await self.served.world.advance(**time)
        await self._reads()

    async def inbox(self) -> list[dict[str, Any]]:
        return (await self.get("/inbox"))["items"]

    async def told(self, *kinds: str) -> list[str]:
        """Return the texts of these kinds in the inbox, oldest first."""
        found = [item["message"] for item in await self.inbox()]
        return [whole(m) for m in sorted(found, key=lambda m: m["id"]) if m["kind"] in kinds]

    def machine_words(self) -> list[str]:
        """Return the ids and words of the machine in all that was read so far."""
        read = "\n".join(line for line in self.transcript if not line.startswith(">>>"))
        return _MACHINE.findall(read)

    async def _reads(self) -> None:
        """Wait until nothing can run, then read what is new in conversations, inbox and phone."""
        async with asyncio.timeout(60):
            await self.served.world.settle()
        for one in await self.get(f"/teams/{self.team}/agents?all=true"):
            for said in await self.get(f"/agents/{one['id']}/conversation"):
                if said["sender"] != "human":
                    self._read(f"chat with {one['name']}", said["id"], said)
        for item in await self.inbox():
            self._read("inbox", f"{item['message']['id']} inbox", item["message"])
        for sent in self.phone.got:
            message = {"title": sent.message.title, "text": sent.message.full_text, "doubts": []}
            self._read("phone", sent.key, message | {"kind": sent.message.kind})
        team = await self.get(f"/teams/{self.team}")
        self._note(f"[team] {team['state']}")

    def _read(self, where: str, key: str, message: dict[str, Any]) -> None:
        if key not in self._seen:
            self._seen.add(key)
            title = f"«{message['title']}» " if message["title"] else ""
            self._note(f"[{where}] {message['kind']}: {title}{whole(message)}")

    def _note(self, line: str) -> None:
        self.transcript.append(line)


def whole(message: dict[str, Any]) -> str:
    """Return what a person reads of a message: its text, and each point that is not confirmed."""
    points = [f"- {d['title']} {d['words']}".replace("-  ", "- ") for d in message["doubts"]]
    return "\n".join([message["text"], *points])


@asynccontextmanager
async def person(folder: Path, script: Script) -> AsyncGenerator[Person]:
    """Serve a home in this folder, with a scripted model behind a real wire format."""
    phone = Phone()
    async with ModelServer(script) as models:
        keys = Keys({"openai": Account(key="sk-canary-canary", base_url=models.openai_url)})
        clock, channels = ManualClock(), {"phone": phone}
        async with serving(
            folder, model="openai/test", keys=keys, clock=clock, features={"channels": channels}
        ) as served:
            yield Person(served, phone)
        assert models.refused == []
