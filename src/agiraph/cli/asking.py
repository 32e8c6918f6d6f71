"""Asking: shows an agent's question or request for approval at a terminal, word for word, and reads
the person's answer."""

from datetime import datetime

from rich.text import Text

from agiraph.api.views import MessageView, ToolCallView
from agiraph.core.domain.errors import Refused
from agiraph.core.domain.messages import Decision, option_with_number
from agiraph.core.domain.text.visible import call_lines, visible

# Only these words decide. A sentence such as "yesterday it worked" must never approve a call.
DECISIONS: dict[str, Decision] = {
    "approve": "approve", "yes": "approve", "y": "approve",
    "deny": "deny", "no": "deny", "n": "deny",
}  # fmt: skip


def decide(question: MessageView, text: str) -> tuple[str, Decision | None]:
    """Return the answer's text, an option for its number, and the decision if the question is an
    approval."""
    if question.kind != "approval":
        if not text.strip():
            raise Refused("The answer is empty: write a text.")
        return option_with_number(question.options, text) or text, None
    word, _, note = text.strip().partition(" ")
    decision = DECISIONS.get(word.lower())
    if decision is None:
        raise Refused(
            f"{question.id} asks for approval: answer `approve` or `deny`, with a note if you like."
        )
    return note.strip(), decision


def literal(text: str) -> Text:
    """Return text of agents without markup and with hidden characters shown. Print it with
    `soft_wrap`."""
    return Text(visible(text))


def question_lines(
    question: MessageView, width: int, *, before: Text, indent: str = "  "
) -> list[Text]:
    """Return the lines of a question: its text, the complete call it is about, and its options."""
    lines = [before + literal(question.text)]
    if question.call is not None:
        lines += call_text(question.call, width, indent=indent)
    listed = enumerate(question.options, 1)
    lines += [Text(f"    {number}. ") + literal(option) for number, option in listed]
    return lines


def deadline(until: datetime | None) -> str:
    """Return how long a question waits, for a person; empty if it waits as long as it takes."""
    return (
        ""
        if until is None
        else f"Waits until {until:%Y-%m-%d %H:%M} UTC, then goes on without your answer."
    )


def call_text(call: ToolCallView, width: int, *, indent: str = "  ") -> list[Text]:
    """Return the lines of a call, none wider than the terminal. A wrapped line of an argument could
    imitate a line of our own."""
    lines = call_lines(call.name, call.arguments, width=max(width - len(indent), 20))
    # They hold code points already; a second time would escape the signs around these.
    return [Text(indent + line) for line in lines]
