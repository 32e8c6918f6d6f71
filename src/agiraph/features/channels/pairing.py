"""Pairing: proves by a code that the sender on a channel is the person of this installation.

A person who is signed in is shown the code and sends it from the phone or mailbox. The code works
once, for a quarter of an hour, and is void after a few wrong guesses.
"""

import hmac
import re
import secrets
from datetime import datetime, timedelta
from typing import NamedTuple

from agiraph.core.domain.errors import NotFound, Refused
from agiraph.core.domain.ids import PersonId
from agiraph.core.domain.records.channels import ChannelState, Incoming
from agiraph.core.services.access import digest
from agiraph.core.services.mail import deliveries
from agiraph.core.store import channels
from agiraph.core.store.channels import CHANNELS
from agiraph.core.store.lists import inbox_items
from agiraph.core.store.tx import Tx

CODE_LIFE = timedelta(minutes=15)
MAX_TRIES = 10
"""Wrong codes after which a new one has to be made."""
# Without letters and digits that look alike: a person types it.
_ALPHABET = "ABCDEFGHJKMNPQRSTVWXYZ23456789"
_CODE = re.compile(rf"\b([{_ALPHABET}]{{5}})-?([{_ALPHABET}]{{5}})\b", re.IGNORECASE)


class PairingCode(NamedTuple):
    code: str
    until: datetime


def of(tx: Tx, person_id: PersonId, name: str) -> ChannelState:
    """Return a person's channel that can be paired; raise if there is none of this name."""
    channel = CHANNELS.find(tx, name)
    if channel is None or channel.person_id != person_id:
        known = ", ".join(c.name for c in channels.every(tx) if c.is_two_way) or "none"
        raise NotFound("channel", name, known=f"Channels that can be paired: {known}.")
    if not channel.is_two_way:
        raise Refused(f"Channel {name!r} only sends; there is nothing to pair.")
    return channel


def new_code(tx: Tx, person_id: PersonId, name: str) -> PairingCode:
    """Make a code for a channel. It replaces an earlier one; only its digest is stored."""
    of(tx, person_id, name)
    letters = [secrets.choice(_ALPHABET) for _ in range(10)]
    code = "".join(letters[:5]) + "-" + "".join(letters[5:])
    until = tx.now + CODE_LIFE
    CHANNELS.update(tx, name, code_digest=digest(code), code_until=until, code_tries=0)
    return PairingCode(code, until)


def unpair(tx: Tx, person_id: PersonId, name: str) -> ChannelState:
    """Remove the pairing of a channel. From then on it sends nothing and ignores what it
    receives."""
    channel = of(tx, person_id, name)
    CHANNELS.update(tx, name, address=None, paired_at=None, code_digest=None, agent_id=None)
    for delivery in deliveries.waiting_on(tx, name):
        deliveries.give_up(tx, delivery, error="The channel was unpaired.")
    deliveries.revoke_receipts(tx, channel)
    return CHANNELS.get(tx, name)


def may_hold_code(text: str) -> bool:
    """Whether a text contains something in the form of a pairing code."""
    return _CODE.search(text) is not None


def redeem(tx: Tx, channel: ChannelState, incoming: Incoming) -> bool:
    """Pair the sender of a message that contains the channel's code; return whether it does.

    The caller holds the channel's row lock. The person's open questions are sent to the channel, so
    that they can be answered there.
    """
    codes = ["-".join(found).upper() for found in _CODE.findall(incoming.text)]
    if not codes or channel.code_digest is None or channel.code_until is None:
        return False
    if channel.code_until <= tx.now or channel.code_tries >= MAX_TRIES:
        return False
    if not any(hmac.compare_digest(digest(code), channel.code_digest) for code in codes):
        CHANNELS.update(tx, channel.name, code_tries=channel.code_tries + 1)
        return False
    if channel.address != incoming.sender:
        deliveries.revoke_receipts(tx, channel)
    changes = {"address": incoming.sender, "paired_at": tx.now, "code_digest": None}
    CHANNELS.update(tx, channel.name, **changes, code_until=None, agent_id=None)
    paired = CHANNELS.get(tx, channel.name)
    asked = inbox_items.InboxFilter(person_id=paired.person_id)
    for question in inbox_items.waiting_for_person(tx, asked, limit=20):
        if question.kind in paired.kinds:
            deliveries.queue_again(tx, question, paired)
    return True
