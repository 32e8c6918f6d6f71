"""Wording: renders a message as plain text for a channel, whole or cut with a link to the rest."""

from datetime import timedelta

from agiraph.core.domain.messages import NEEDS_ANSWER, Message
from agiraph.core.domain.records.acts import as_text
from agiraph.core.domain.records.deliveries import OutgoingMessage
from agiraph.core.domain.text.visible import call_lines, visible
from agiraph.core.domain.value import value
from agiraph.core.services.mail.deliveries import GOES_ON

OLD = timedelta(minutes=10)
"""A message that is older than this when it is sent says when it was written."""


@value
class Shown:
    """The text of a message, and whether it is complete."""

    text: str
    is_whole: bool


TO_UNDO = "(To undo the last of it, write /undo; the first is /undo 1.)"


def shown(
    outgoing: OutgoingMessage, *, url: str, limit: int, width: int = 0, has_buttons: bool = False
) -> Shown:
    """Return a message as text of at most `limit` UTF-16 code units.

    In a question or an approval every invisible character is shown as its code point. If the
    message does not fit, the text is cut and links to the rest, and `is_whole` is false. `width`
    breaks long lines of a call, so that a narrow screen does not break them where our own lines
    begin. What a reply did is never cut off with its words.
    """
    message = outgoing.message
    text, did = f"{_head(outgoing)}\n\n{_body(outgoing, width)}", _did(message, has_buttons)
    if fits(text + did, limit):
        return Shown(text=text + did, is_whole=True)
    did = did if fits(did, limit // 2) else f"{_cut(did, limit // 2)}…"
    place = "/inbox" if outgoing.others else f"/inbox/{message.id}"
    rest = f"\n\n… (The whole text: {url}{place}){did}"
    most = limit - len(rest.encode("utf-16-le")) // 2
    return Shown(text=_cut(text, most) + rest, is_whole=False)


def _did(message: Message, has_buttons: bool) -> str:
    """Return the lines that say what a reply did, and how to undo it where no button does."""
    if not message.acts:
        return ""
    did = f"\n\n{visible(as_text(message.acts))}"
    return did if has_buttons else f"{did}\n{TO_UNDO}"


def fits(text: str, limit: int) -> bool:
    return len(text.encode("utf-16-le", "surrogatepass")) // 2 <= limit


def _cut(text: str, units: int) -> str:
    data = text.encode("utf-16-le", "surrogatepass")[: 2 * max(units, 0)]
    return data.decode("utf-16-le", "ignore")


def note_of(message: Message) -> str:
    """Return the line that tells whose words a message holds, and what its addresses look like."""
    return (
        f"(Holds words from {visible(str(message.label))}. Addresses with [.] are no links, because"
        " you have not allowed their hosts: check one before you open it.)"
    )


def _head(outgoing: OutgoingMessage) -> str:
    """Return the first line: the sender, the team, the kind of message, and the time if it is long
    ago."""
    message = outgoing.message
    kind = "" if message.kind == "message" else f": {message.kind}"
    written = ""
    if outgoing.age > OLD:
        written = f"\n(Written {message.created_at:%Y-%m-%d %H:%M} UTC.)"
    return f"{visible(outgoing.sender)} ({visible(outgoing.team)}){kind}{written}"


def _body(outgoing: OutgoingMessage, width: int) -> str:
    message = outgoing.message
    is_decided = message.kind in NEEDS_ANSWER
    parts = [visible(message.title)] if message.title and not is_decided else []
    parts.append(visible(message.text) if is_decided else message.full_text)
    if message.call is not None:
        lines = call_lines(message.call.name, message.call.arguments, width=width)
        parts.append("\n".join(lines))
    if message.kind == "question":
        listed = [f"{number}. {visible(o)}" for number, o in enumerate(message.options, 1)]
        parts += ["\n".join(listed)] if listed else []
    if outgoing.waits_until:
        parts.append(GOES_ON.format(time=outgoing.waits_until))
    if message.label:
        parts.append(note_of(message))
    return "\n\n".join(parts)
