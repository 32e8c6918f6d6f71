"""Person: answers every question and approval in the inbox; its number decides how."""

import re
from dataclasses import dataclass
from typing import Any

from tests.faults.attack.context import Context

QUESTION = "What about number {number}?"
AGAIN = "Try again."
_QUESTION = re.compile(r"What about number (\d+)\?")
_COMMAND = re.compile(r"echo (\d+) >> \S*[./]approve")


def is_approved(number: int) -> bool:
    return number % 3 != 1


def answer_for(number: int) -> str:
    return f"The answer for {number} is {number * 7}."


@dataclass(slots=True, kw_only=True)
class Person:
    context: Context

    async def act(self) -> bool:
        """Answer all open questions and approvals; return whether there were any."""
        page = await self.context.client.ask("GET", "/api/inbox")
        waiting = [item["message"] for item in page["items"] if item["needs_answer"]]
        for message in waiting:
            path = f"/api/inbox/{message['id']}/answer"
            answer = self._answer(message)
            await self.context.client.ask("POST", path, answer, key=f"answer {message['id']}")
        return bool(waiting)

    def _answer(self, message: dict[str, Any]) -> dict[str, str]:
        if message["kind"] == "approval":
            found = _COMMAND.search(message["call"]["arguments"]["command"])
            approved = found is None or is_approved(int(found[1]))
            return {"decision": "approve" if approved else "deny"}
        if found := _QUESTION.search(message["text"]):
            return {"text": answer_for(int(found[1]))}
        # The server was killed so often at one step of this node that the node asks what to do.
        self.context.restarted_by_person[message["node_id"]] += 1
        return {"text": AGAIN}
