"""Channel routes: the channels to a person, added, tried and paired with a phone or mailbox."""

import asyncio
from typing import Any, Literal

from pydantic import Field

from agiraph.api.deps import Api, ApiDep, CallerDep, PersonDep, check_owner
from agiraph.api.feature_views.channels import ChannelDraftView, ChannelView, PairingView
from agiraph.api.problems import documented
from agiraph.api.routing import Body, Router
from agiraph.core.domain.errors import Conflict, NotFound, Refused
from agiraph.core.domain.messages import MessageKind
from agiraph.core.domain.records.channels import Channel, is_two_way
from agiraph.core.home import settings_file
from agiraph.core.store import channels
from agiraph.core.store.tx import Tx
from agiraph.features.channels import adding, pairing
from agiraph.features.channels.carriers import Carriers

router: Router = Router("channels")
Port = int | None
_NAMED = ("token_secret", "url_secret", "secret_secret", "password_secret")
"""The fields that name a secret."""
Security = Literal["", "starttls", "tls", "none"]


class ChannelDraft(
    Body, example={"name": "phone", "type": "telegram", "token_secret": "telegram_token"}
):
    """A channel. Which fields it needs, its type says; secrets are given by their names."""

    name: str = Field(max_length=100)
    type: str = Field(
        max_length=60,
        description="telegram, email, webhook, smtp, terminal, or own:NAME for one of your own.",
    )
    kinds: list[MessageKind] = Field(
        default_factory=list, description="Messages that go there; none: all kinds."
    )
    token_secret: str = Field(default="", description="telegram: the secret with the bot's token.")
    api_url: str = Field(default="", description="telegram: a Bot API server of your own.")
    url: str = Field(default="", max_length=2000, description="webhook: where messages are posted.")
    url_secret: str = Field(default="", description="webhook: the secret with its address instead.")
    secret_secret: str = Field(default="", description="webhook: the secret that signs requests.")
    address: str = Field(default="", description="email: the mailbox of agiraph.")
    smtp_host: str = Field(default="", description="email")
    smtp_port: Port = Field(default=None, description="email")
    smtp_security: Security = Field(default="", description="email: starttls if empty.")
    imap_host: str = Field(default="", description="email")
    imap_port: Port = Field(default=None, description="email")
    imap_security: Security = Field(default="", description="email: tls if empty.")
    folder: str = Field(default="", description="email: the folder that is read; INBOX if empty.")
    checked_by: str = Field(default="", description="email: the server whose checks are believed.")
    host: str = Field(default="", description="smtp: the server.")
    port: Port = Field(default=None, description="smtp")
    security: Security = Field(default="", description="smtp: starttls if empty.")
    sender: str = Field(default="", description="smtp: the address that mails come from.")
    to: list[str] = Field(default_factory=list, description="smtp: the addresses they go to.")
    user: str = Field(default="", description="email, smtp")
    password_secret: str = Field(default="", description="email, smtp: the secret with it.")

    def table(self) -> dict[str, Any]:
        """Return the channel as agiraph.toml has it."""
        given = self.model_dump(exclude={"name", "sha256"})
        named = {"from" if key == "sender" else key: value for key, value in given.items()}
        return {key: value for key, value in named.items() if value}


class NewChannel(ChannelDraft, example={"name": "log", "type": "terminal", "sha256": "0" * 64}):
    """A channel, as a person was shown it."""

    sha256: str = Field(pattern="^[0-9a-f]{64}$")


@router.get("/channels")
async def list_channels(api: ApiDep, person: PersonDep) -> list[ChannelView]:
    """List your channels, and who is paired with them."""
    rows = await api.store.read(channels.every)
    carriers: Carriers | None = api.parts.get(Carriers)
    here = {} if carriers is None else carriers.channels
    written = await asyncio.to_thread(settings_file.tables, api.home, adding.TABLE)
    return [
        ChannelView.of(
            each,
            description=here[each.name].description if each.name in here else "",
            can_remove=each.name in here and each.name in written,
        )
        for each in rows
        if each.person_id == person
    ]


@router.post("/channels/draft", responses=documented(409))
async def draft_channel(body: ChannelDraft, api: ApiDep, caller: CallerDep) -> ChannelDraftView:
    """Show where a channel leads. Nothing is sent, and nothing is stored. Needs `admin`."""
    check_owner(caller, "To add a channel")
    channel, two_way = await _drafted(api, body)
    table = body.table()
    return ChannelDraftView(
        name=body.name,
        description=channel.description,
        kinds=sorted(channel.kinds),
        is_two_way=two_way,
        secrets=[str(table[key]) for key in _NAMED if key in table],
        consent=adding.TWO_WAY_CONSENT if two_way else adding.CONSENT,
        question=adding.QUESTION,
        sha256=adding.shown_hash(body.name, table),
    )


@router.post("/channels", status_code=201, responses=documented(409))
async def add_channel(
    body: NewChannel, api: ApiDep, caller: CallerDep, person: PersonDep
) -> list[ChannelView]:
    """Try the channel that a person was shown, and if it works, add it to `agiraph.toml`.

    Needs the scope `admin`. One that only sends gets a test message. Returns all channels.
    """
    check_owner(caller, "To add a channel")
    channel, _ = await _drafted(api, body)
    table = body.table()
    if adding.shown_hash(body.name, table) != body.sha256:
        raise Conflict(f"The channel {body.name!r} has changed since you looked; look again.")
    await adding.try_out(body.name, channel, api.clock.now())
    await adding.add(api.home, _carriers(api), body.name, table, channel)
    return await list_channels(api, person)


@router.delete("/channels/{channel}", status_code=204, responses=documented(404))
async def remove_channel(channel: str, api: ApiDep, caller: CallerDep) -> None:
    """Take a channel out of `agiraph.toml`. It sends nothing and hears nobody from now on.

    Needs the scope `admin`.
    """
    check_owner(caller, "To remove a channel")
    _of(api, channel)
    await adding.remove(api.home, _carriers(api), channel)


@router.post("/channels/{channel}/test", status_code=204, responses=documented(404))
async def try_channel(channel: str, api: ApiDep, caller: CallerDep) -> None:
    """Send a test message; if nobody is paired with the channel, ask its service whether it lets
    agiraph in. Needs the scope `admin`."""
    check_owner(caller, "To try a channel")
    found = _of(api, channel)
    [row] = [one for one in await api.store.read(channels.every) if one.name == channel]
    await adding.try_out(channel, found, api.clock.now(), row.address or "")


async def _drafted(api: Api, body: ChannelDraft) -> tuple[Channel, bool]:
    given = (api.home, _carriers(api), body.name, body.table(), api.url)
    channel = await asyncio.to_thread(adding.draft, *given)
    return channel, is_two_way(channel)


def _carriers(api: Api) -> Carriers:
    carriers: Carriers | None = api.parts.get(Carriers)
    if carriers is None:
        raise Refused("This process of agiraph has no channels.")
    return carriers


def _of(api: Api, name: str) -> Channel:
    """Return a channel of this process; raise `NotFound` if it has none of this name."""
    found = _carriers(api).channels
    if name not in found:
        raise NotFound("channel", name, known=f"There are: {', '.join(found) or 'none'}.")
    return found[name]


@router.post("/channels/{channel}/pair", status_code=201, responses=documented(404))
async def pair_channel(channel: str, api: ApiDep, person: PersonDep) -> PairingView:
    """Make a code that pairs your phone or mailbox with a channel when it is sent from there.

    Whoever sends it may then speak in your name on this channel, and decide on requests.
    """
    made = await api.store.write_first(pairing.new_code, person, channel)
    carriers: Carriers | None = api.parts.get(Carriers)
    hints = {} if carriers is None else carriers.pairing_hints
    hint = hints.get(channel, "Send the code to the channel: {code}")
    return PairingView.of(made, hint=hint.replace("{code}", made.code))


@router.write("DELETE", "/channels/{channel}/pairing", 404)
def unpair_channel(tx: Tx, channel: str, person: PersonDep) -> ChannelView:
    """Forget who is paired with a channel. It sends nothing and hears nobody from now on."""
    return ChannelView.of(pairing.unpair(tx, person, channel), description="", can_remove=False)
