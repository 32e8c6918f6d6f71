"""Model: carries out the numbered orders in its messages, each once per thread.

It depends on the request alone, so it continues after any crash. It repeats a call only if a
message came before the call was begun: an effect that happens twice was repeated by the runtime.
"""

import json
import re
from collections.abc import Callable

from agiraph.testing.model_server import Call, Delay, Seen, Step, call, says
from tests.faults.attack.context import Ledger, own_file

ORDER = re.compile(r"<<(stamp|approve|ask|program|research|hook|wake) (\d+)>>")
SLOWEST = 0.15
"""The longest model call in seconds: long enough for a kill during the call."""
_URL = re.compile(r"^   (http://\S+)", re.MULTILINE)


def order(kind: str, number: int) -> str:
    return f"<<{kind} {number}>>"


def orders(text: str, kind: str) -> list[int]:
    return [int(number) for found, number in ORDER.findall(text) if found == kind]


def command(kind: str, number: int) -> str:
    """Return a command that appends the number to the ledger; every third one runs longer."""
    pause = "sleep 0.2; " if number % 3 == 0 else ""
    return f"{pause}echo {number} >> {own_file(kind)}"


def is_held_back(answer: str) -> bool:
    """Whether this answer says that a message came before the call was begun."""
    return "Not made: a message came first" in answer


def model(ledger: Ledger) -> Callable[[Seen], Step]:
    def wanted(kind: str, number: int) -> Call | None:
        match kind:
            case "stamp" | "approve":
                return call("bash", command=command(kind, number))
            case "ask":
                return call("ask_human", question=f"What about number {number}?")
            case "program":
                task = f"Count number {number}."
                return call(
                    "assign_task", agent="cli:counter", task=task, description=f"count {number}"
                )
            case _:
                return None

    def work(seen: Seen) -> Step:
        answers = {m.call_id: m.text for m in seen.messages if m.role == "tool"}
        made = [
            (made.name, made.arguments)
            for m in seen.messages
            for made in m.calls
            if not is_held_back(answers.get(made.id, ""))
        ]
        for message in seen.messages:
            for kind, number in ORDER.findall(message.text if message.role == "user" else ""):
                found = wanted(kind, int(number))
                if found is not None and (found.name, found.arguments) not in made:
                    return says(found)
        return says(call("finish", summary="All orders are carried out."))

    def answer(seen: Seen) -> Step:
        if is_research(seen):
            said = research(seen)
        elif "bash" in seen.tools:
            said = work(seen)
        else:
            said = says("I will see to it.")
        return Delay(seen.index * 37 % 100 / 100 * SLOWEST, said)

    return answer


def is_research(seen: Seen) -> bool:
    """Whether a research job or one of its parts asks."""
    beginnings = ("You plan the work on a research", "You read the web for", "You write the report")
    return seen.system.startswith(beginnings)


def research(seen: Seen) -> Step:
    """Plan one question, search once, read and note one page, and report it."""
    asked = "".join(m.text for m in seen.messages)
    if seen.system.startswith("You plan"):
        [number, *_] = orders(asked, "research")
        question = f"Heat pumps, {order('research', number)}"
        return says(json.dumps({"question": question, "kind": "fact"}))
    if seen.system.startswith("You write"):
        return says("## Summary\n\nHeat pumps give three units for one [e1].\n")
    made = {made.name for message in seen.messages for made in message.calls}
    if "web_search" not in made:
        return says(call("web_search", query="heat pumps"))
    links = [link for m in seen.messages if m.role == "tool" for link in _URL.findall(m.text)]
    if "web_fetch" not in made and links:
        return says(call("web_fetch", url=links[0]))
    if "note_evidence" not in made and links:
        given = {"claim": "Three units for one.", "quote": "Three units for one."}
        return says(call("note_evidence", **given, url=links[0]))
    return says(call("done"))
