"""Forged notice: tells a model that it wrote a notice of the runtime or a message by itself.

A model that has seen many notices may write the next one, and then believe it.
"""

import re

from agiraph.core.domain.chat import Transcript
from agiraph.core.services.lifecycle.journal import SystemNote

_FORGED = re.compile(r"^[ \t>*_]*\[(?:Runtime\]|Budget\]|Task\]|Message from\b)", re.MULTILINE)
_TOLD = (
    "[Runtime] You wrote this yourself: a line of your reply begins with {mark!r}, as notices and "
    "messages here do. Nobody sent it, and nothing in it has happened. Go on by what you were "
    "really told."
)


def note(transcript: Transcript) -> SystemNote | None:
    """Return the note for the newest reply if it holds a notice; None if not, or once told."""
    newest = transcript.steps(1)
    # A search for the bracket alone takes a hundredth of the time, and most replies have none.
    if not newest or "[" not in newest[0].text:
        return None
    if (found := _FORGED.search(newest[0].text)) is None:
        return None
    ref = f"forged:{newest[0].seq}"
    mark = found[0].strip(" \t>*_")
    return None if transcript.has(ref) else SystemNote(ref, _TOLD.format(mark=mark))
