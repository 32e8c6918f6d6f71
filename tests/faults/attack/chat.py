"""Chat: a person sends orders and nudges, approves calls and answers questions.

Every acknowledged message is stored once and in order; every order in it becomes one call; a call
takes effect at most once; each approval and answer reaches its own call.
"""

import asyncio
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import Any

from tests.faults.attack.context import Context, require
from tests.faults.attack.model import ORDER, command, is_held_back, order, orders
from tests.faults.attack.person import QUESTION, answer_for, is_approved

PAUSE_SECONDS = 0.1


@dataclass(slots=True, kw_only=True)
class Chat:
    context: Context
    name: str
    kinds: tuple[str, ...] = ("stamp", "stamp", "approve", "ask")
    team: str = ""
    agent: str = ""
    acknowledged: list[str] = field(default_factory=list[str])

    async def set_up(self) -> None:
        rule = {"tool": "bash", "action": "ask", "pattern": "*.approve"}
        team = await self.context.create_team(self.name, permissions=[rule])
        self.team, self.agent = team["id"], team["coordinator_id"]

    async def act(self) -> None:
        """Send one message until it is acknowledged; seldom to an agent that is at work."""
        chance = self.context.chance
        now = await self.context.client.ask("GET", f"/api/agents/{self.agent}")
        if now["status"] != "idle" and chance.random() < 0.8:
            await asyncio.sleep(PAUSE_SECONDS)
            return
        number = next(self.context.numbers)
        body = {
            "message": order(chance.choice(self.kinds), number),
            "mode": "send" if chance.random() < 0.3 else "nudge",
            "client_id": f"c{number}",
        }
        got = await self.context.client.ask("POST", f"/api/agents/{self.agent}/send", body)
        self.acknowledged.append(got["text"])

    async def quick_check(self) -> None:
        """Check that the newest acknowledged messages are stored once and in order."""
        said, last = (
            list(self.acknowledged),
            15,
        )  # all of them and their answers fit on a page of 100
        page = await self.context.client.ask("GET", f"/api/agents/{self.agent}/conversation")
        shown = _ordered(page)
        recent = [text for text in said[-last:] if text in shown]
        places = [shown.index(text) for text in recent]
        require(places == sorted(places), self.name, "out of order", shown[-last:], said[-last:])
        require(len(shown) == len(set(shown)), self.name, "stored twice", shown)
        require(recent == said[-last:], self.name, "lost", said[-last:], shown)
        self._check_ledger()

    async def check(self) -> Counter[str]:
        said = await self.context.client.conversation(self.agent)
        told = _ordered(said)
        require(told == self.acknowledged, self.name, "messages", told, self.acknowledged)
        replies = [m["in_reply_to"] for m in said if m["sender"] == self.agent]
        twice = [to for to, times in Counter(replies).items() if to and times > 1]
        require(not twice, self.name, "replied twice to", twice)
        threads = await self.context.client.threads(self.agent)
        calls = _calls(threads)
        heard = [turn["text"] for thread in threads for turn in thread["turns"]]
        self._check_ledger()
        self._check_stamps(calls)
        await self._check_approvals(calls)
        await self._check_answers(calls, heard)
        counts = Counter(ORDER.findall(text)[0][0] for text in told)
        return Counter(messages=len(told)) + counts

    def _numbers(self, kind: str) -> list[int]:
        return [n for text in self.acknowledged for n in orders(text, kind)]

    def _check_ledger(self) -> None:
        for kind in ("stamp", "approve"):
            happened = self.context.ledger.counts(kind)
            twice = {n: happened[str(n)] for n in self._numbers(kind) if happened[str(n)] > 1}
            require(not twice, self.name, kind, "commands ran twice:", twice)

    def _one(self, calls: "Calls", name: str, about: str) -> Any:
        """Return the answer of the only call with this name and argument."""
        answers = calls[name, about]
        require(len(answers) == 1, self.name, name, about, "was called", len(answers), "times")
        require(answers[0] is not None, self.name, name, about, "has no answer")
        return answers[0]

    def _check_stamps(self, calls: "Calls") -> None:
        happened = self.context.ledger.counts("stamp")
        for number in self._numbers("stamp"):
            told = self._one(calls, "bash", command("stamp", number))
            known = happened[str(number)] == 1 or told["failed"]
            require(
                known, self.name, "stamp", number, "did not run; the model was told", told["text"]
            )

    async def _check_approvals(self, calls: "Calls") -> None:
        happened = self.context.ledger.counts("approve")
        asked: dict[int, list[Any]] = defaultdict(list)
        for item in await self.context.client.inbox():
            if item["message"]["kind"] == "approval" and item["message"]["team_id"] == self.team:
                asked[_number_of(item["message"])].append(item)
        for number in self._numbers("approve"):
            about = self.name, "approval", number
            require(len(asked[number]) == 1, *about, "asked", len(asked[number]), "times")
            [item] = asked[number]
            if item["state"] == "closed":  # its work ended before the person came to decide
                require(happened[str(number)] == 0, *about, "ran, and nobody had decided")
                continue
            wanted = "approve" if is_approved(number) else "deny"
            require(item["message"]["decision"] == wanted, *about, item)
            told = self._one(calls, "bash", command("approve", number))
            ran = happened[str(number)]
            if not is_approved(number):
                require(ran == 0, *about, "was denied and ran")
                was_told = "refused" in told["text"] or _is_interrupted(told)
                require(told["failed"] and was_told, *about, told["text"])
            require(
                ran == 1 or told["failed"], *about, "did not run; the model was told", told["text"]
            )

    async def _check_answers(self, calls: "Calls", heard: list[str]) -> None:
        """Check that each answer arrived; that of an interrupted question comes as a message.

        If its work ended before the person came to answer, the question has closed.
        """
        inbox = await self.context.client.inbox()
        closed = {item["message"]["text"] for item in inbox if item["state"] == "closed"}
        for number in self._numbers("ask"):
            told = self._one(calls, "ask_human", QUESTION.format(number=number))
            about = self.name, "answer", number, "is", told["text"]
            require(answer_for(number) in told["text"] or _is_interrupted(told), *about)
            if _is_interrupted(told) and QUESTION.format(number=number) in closed:
                continue
            require(
                any(answer_for(number) in text for text in heard),
                *about,
                "and the answer never came",
            )


Calls = dict[tuple[str, str], list[Any]]
"""Tool turns by the call's name and first argument."""


def _calls(threads: list[Any]) -> Calls:
    """Return the calls that were begun: those that a message held back are made again."""
    found: Calls = defaultdict(list)
    for thread in threads:
        turns = thread["turns"]
        answers = {turn["ref"]: turn for turn in turns if turn["role"] == "tool"}
        for made in (made for turn in turns for made in turn["calls"]):
            about = next(iter(made["arguments"].values()), "")
            answer = answers.get(made["id"])
            if answer is None or not is_held_back(answer["text"]):
                found[made["name"], str(about)].append(answer)
    return found


def _is_interrupted(told: dict[str, Any]) -> bool:
    """Return whether a message ended this call's wait for the person."""
    return told["text"].startswith(("Not answered yet", "Not approved yet"))


def _ordered(said: list[Any]) -> list[str]:
    mine = [m["text"] for m in said if m["kind"] in ("message", "nudge")]
    return [text for text in mine if ORDER.fullmatch(text)]


def _number_of(approval: dict[str, Any]) -> int:
    return int(approval["call"]["arguments"]["command"].partition("echo ")[2].split()[0])


def chats(context: Context, count: int) -> list[Chat]:
    return [Chat(context=context, name=f"chat {place}") for place in range(count)]
