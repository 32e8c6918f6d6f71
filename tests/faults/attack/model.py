"""Model: carries out the numbered orders in its messages, each once per thread.

It depends on the request alone, so it continues after any crash. It never repeats a call by itself,
whatever its answer: an effect that happens twice was repeated by the runtime.
"""

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
        made = [(made.name, made.arguments) for m in seen.messages for made in m.calls]
        for message in seen.messages:
            for kind, number in ORDER.findall(message.text if message.role == "user" else ""):
                found = wanted(kind, int(number))
                if found is not None and (found.name, found.arguments) not in made:
                    return says(found)
        return says(call("finish", summary="All orders are carried out."))

    def answer(seen: Seen) -> Step:
        if "web_search" in seen.tools and "bash" not in seen.tools:
            said = research(seen)
        elif "bash" in seen.tools:
            said = work(seen)
        else:
            said = says("I will see to it.")
        return Delay(seen.index * 37 % 100 / 100 * SLOWEST, said)

    return answer


def research(seen: Seen) -> Step:
    """Search once, read one page, report."""
    made = {made.name for message in seen.messages for made in message.calls}
    if "web_search" not in made:
        return says(call("web_search", query="heat pumps"))
    links = [link for m in seen.messages if m.role == "tool" for link in _URL.findall(m.text)]
    if "web_fetch" not in made and links:
        return says(call("web_fetch", url=links[0]))
    [number, *_] = (n for m in seen.messages for n in orders(m.text, "research"))
    read = "with" if links else "without"
    return says(call("publish", summary=f"## Summary\n\nReport {number}, {read} a page.\n"))
