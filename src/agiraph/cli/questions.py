"""Questions: what somebody asks of the person, in a terminal, complete and to the letter."""

from collections.abc import Sequence
from typing import Any, Protocol

from rich.text import Text

from agiraph.domain.errors import Refused
from agiraph.domain.messages import Decision
from agiraph.domain.visible import call_lines, visible

DECISIONS: dict[str, Decision] = {
    "approve": "approve", "yes": "approve", "y": "approve",
    "deny": "deny", "no": "deny", "n": "deny",
}  # fmt: skip


class Call(Protocol):
    """The tool call that an approval is about."""

    @property
    def name(self) -> str: ...
    @property
    def arguments(self) -> dict[str, Any]: ...


class Question(Protocol):
    """What somebody wants to know of the person, wherever it was read."""

    @property
    def id(self) -> str: ...
    @property
    def kind(self) -> str: ...
    @property
    def text(self) -> str: ...
    @property
    def options(self) -> Sequence[str]: ...
    @property
    def call(self) -> Call | None: ...


def decide(question: Question, text: str) -> tuple[str, Decision | None]:
    """What a typed line means for this question: words, or a decision with a note."""
    if question.kind != "approval":
        if not text.strip():
            raise Refused("An empty answer says nothing; write what you want them to know.")
        return text, None
    word, _, note = text.strip().partition(" ")
    decision = DECISIONS.get(word.lower())
    if decision is None:
        raise Refused(f"{question.id} asks for approval: answer `approve` or `deny`, then a note.")
    return note.strip(), decision


def literal(text: str) -> Text:
    """Text of others as it is: no markup, nothing hidden. Print it with `soft_wrap`."""
    return Text(visible(text))


def asked(question: Question, width: int, *, before: Text, indent: str = "  ") -> list[Text]:
    """The lines of a question: its text, all of the call it is about, and its options."""
    lines = [before + literal(question.text)]
    if question.call is not None:
        lines += called(question.call, width, indent=indent)
    lines += [Text("    - ") + literal(option) for option in question.options]
    return lines


def called(call: Call, width: int, *, indent: str = "  ") -> list[Text]:
    """The lines of a call, none wider than the terminal: a terminal that wraps shows a line of an
    argument where a line of ours could stand."""
    lines = call_lines(call.name, call.arguments, width=max(width - len(indent), 20))
    return [literal(indent + line) for line in lines]
