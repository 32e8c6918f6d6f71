"""Attached files: the paths at which a team's files show those that came with messages.

They stay with their messages; nothing is stored at these paths.
"""

import re
from dataclasses import replace

from agiraph.core.domain.chat import Attachment
from agiraph.core.domain.ids import MessageId

ATTACHED = "user_uploads/attached"
_SOURCE = re.compile(rf"{ATTACHED}/(msg_[0-9a-z]+)/([0-9]{{1,2}})/[^/]+")
_UNSAFE = re.compile(r"[/\\\x00-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]")
"""Separators of paths, and characters that hide or reorder the others."""


def path_of(message_id: str, place: int, name: str) -> str:
    """Return the path of a message's file, by its place among the message's files, from 0."""
    plain = _UNSAFE.sub("_", name)
    return f"{ATTACHED}/{message_id}/{place}/{plain if plain.strip('. ') else 'file'}"


def storable(attachment: Attachment) -> Attachment:
    """Return the attachment with a name that PostgreSQL can take out of JSON: without NUL."""
    return replace(attachment, name=attachment.name.replace("\0", "\N{REPLACEMENT CHARACTER}"))


def source_of(path: str) -> tuple[MessageId, int] | None:
    """Return the message that a path names, and the place of the file in it; None for a path of
    the team's folder."""
    found = _SOURCE.fullmatch(path)
    return found and (MessageId(found[1]), int(found[2]))
