"""Terminal: prints a line on the terminal where the runtime was started."""

from collections.abc import Callable
from dataclasses import dataclass

from agiraph.domain.deliveries import OutgoingMessage
from agiraph.domain.messages import INBOX, MessageKind

MAX_TEXT_CHARS = 200


def _print(line: str) -> None:
    print(line, flush=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Terminal:
    kinds: frozenset[MessageKind] = INBOX
    write: Callable[[str], None] = _print

    @property
    def description(self) -> str:
        return "terminal"

    async def send(self, outgoing: OutgoingMessage) -> None:
        message = outgoing.message
        head = f"[{message.kind}] {outgoing.team}, {outgoing.sender}"
        text = message.title or message.text
        # The call is not printed, because a shortened call could hide the part that matters.
        more = " Read the call with: agiraph inbox --open" if message.call is not None else ""
        self.write(f"{_printable(head)}: {_printable(text)}{more} ({message.id})")


def _printable(text: str) -> str:
    """Return one short line without control characters, which could steer the terminal."""
    line = " ".join(text.split())
    clean = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in line)
    return clean if len(clean) <= MAX_TEXT_CHARS else clean[: MAX_TEXT_CHARS - 1] + "…"
