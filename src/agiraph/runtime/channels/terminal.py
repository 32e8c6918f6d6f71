"""Terminal: a line where the runtime was started."""

from collections.abc import Callable
from dataclasses import dataclass

from agiraph.domain.deliveries import OutgoingMessage
from agiraph.domain.messages import INBOX, MessageKind

LONGEST = 200


def _print(line: str) -> None:
    print(line, flush=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Terminal:
    kinds: frozenset[MessageKind] = INBOX
    write: Callable[[str], None] = _print

    @property
    def shown(self) -> str:
        return "terminal"

    async def send(self, parcel: OutgoingMessage) -> None:
        message = parcel.message
        head = f"[{message.kind}] {parcel.team}, {parcel.sender}"
        said = message.title or message.text
        # Not a part of a call: whoever decides reads all of it.
        more = " Read the call with: agiraph inbox --open" if message.call is not None else ""
        self.write(f"{_plain(head)}: {_plain(said)}{more} ({message.id})")


def _plain(text: str) -> str:
    """Words of others as one line that steers no terminal."""
    line = " ".join(text.split())
    kept = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in line)
    return kept if len(kept) <= LONGEST else kept[: LONGEST - 1] + "…"
