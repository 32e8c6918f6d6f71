"""Adding channels: shows a person what a new channel would do, tries it, and saves its settings."""

import hashlib
from collections.abc import Mapping
from datetime import datetime
from typing import Any

import orjson

from agiraph.config import Picker
from agiraph.core.domain.errors import Conflict, Misconfigured, Refused
from agiraph.core.domain.ids import MessageId, TeamId, new_id
from agiraph.core.domain.messages import Message
from agiraph.core.domain.persons import OWNER
from agiraph.core.domain.records.channels import Channel, DeliveryFailed, WantedChannel, is_two_way
from agiraph.core.domain.records.deliveries import Delivery, OutgoingMessage
from agiraph.core.home import settings_file
from agiraph.core.home.layout import Home
from agiraph.features.channels.carriers import Carriers
from agiraph.features.channels.kinds.configured import NAME, channel_of

TABLE = "channels"
TEST = "This is a test message of agiraph. Messages for you come here."
CONSENT = "Messages for you are sent there from now on. What they say leaves this machine."
QUESTION = "Try it, and add it if it works?"
TWO_WAY_CONSENT = (
    "Once you are paired with it, messages for you are sent there, and what you write there counts "
    "as said by you. What they say leaves this machine."
)


def shown_hash(name: str, table: Mapping[str, Any]) -> str:
    """Return the hash of all that a person is shown of a channel before it is added."""
    said = orjson.dumps([name, dict(table)], option=orjson.OPT_SORT_KEYS)
    return hashlib.sha256(said).hexdigest()


def draft(home: Home, carriers: Carriers, name: str, table: Mapping[str, Any], url: str) -> Channel:
    """Return the channel as it would stand in agiraph.toml, which is not changed; raise `Refused`
    if it cannot be used."""
    if not NAME.fullmatch(name):
        raise Refused(f"{name!r} cannot name a channel: use at most 24 of a-z, 0-9, '-' and '_'.")
    if name in carriers.channels:
        raise Conflict(f"There is a channel {name!r} already.")
    pick = Picker(home.config_path, {}, {}, {}, {}, carriers.secrets, url)
    try:
        channel = carriers.resolved(channel_of(pick, name, dict(table)))
    except Misconfigured as error:
        raise Refused(settings_file.reason(home, error)) from error
    if isinstance(channel, WantedChannel):
        raise Refused(f"No enabled file in channels/ declares the channel {channel.own_name!r}.")
    return channel


async def try_out(name: str, channel: Channel, at: datetime, address: str = "") -> None:
    """Send a test message; if nobody is paired with a two-way channel, ask its service whether it
    lets agiraph in. Raise `Refused` with the reason if that fails."""
    try:
        if not is_two_way(channel) or address:
            await channel.send(_test(name, at, address))
        elif (probe := getattr(channel, "probe", None)) is not None:
            await probe()
    except DeliveryFailed as error:
        raise Refused(f"The channel {name!r} does not work: {error}") from error


async def add(
    home: Home, carriers: Carriers, name: str, table: Mapping[str, Any], channel: Channel
) -> None:
    """Write a channel that was tried into agiraph.toml, and use it from now on."""
    settings_file.add(home, TABLE, name, table)
    await carriers.put(name, channel)


async def remove(home: Home, carriers: Carriers, name: str) -> None:
    """Take a channel out of agiraph.toml, and use it no more."""
    if name not in settings_file.tables(home, TABLE):
        raise Misconfigured(f"The channel {name!r} is not in {home.config_path}.")
    settings_file.take_out(home, TABLE, name)
    await carriers.put(name, None)


def _test(name: str, at: datetime, address: str) -> OutgoingMessage:
    team = TeamId("team_test")
    message = Message(
        id=MessageId(new_id("msg")),
        seq=0,
        created_at=at,
        team_id=team,
        sender="system",
        recipient=OWNER,
        kind="report",
        title="Test",
        text=TEST,
    )
    delivery = Delivery(
        id=new_id("delivery"),
        team_id=team,
        message_id=message.id,
        channel=name,
        created_at=at,
        due_at=at,
    )
    return OutgoingMessage(
        delivery=delivery,
        message=message,
        team="agiraph",
        sender="agiraph",
        claimed_at=at,
        address=address,
    )
