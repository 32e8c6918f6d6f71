"""Channel routes: the channels to a person, and the pairing of their phone or mailbox."""

from fastapi import APIRouter

from agiraph.api.channel_views import ChannelView, PairingView
from agiraph.api.deps import ApiDep, PersonDep
from agiraph.api.problems import documented
from agiraph.api.routers import api_router
from agiraph.domain.channels import ChannelState
from agiraph.services.mail import pairing
from agiraph.store import channels
from agiraph.store.tx import Tx

router: APIRouter = api_router("channels")


def _view(channel: ChannelState) -> ChannelView:
    return ChannelView.model_validate(
        {name: getattr(channel, name) for name in ChannelView.model_fields}
    )


@router.get("/channels", responses=documented())
async def list_channels(api: ApiDep, person: PersonDep) -> list[ChannelView]:
    """List your channels, and who is paired with them."""

    def look(tx: Tx) -> list[ChannelView]:
        return [_view(each) for each in channels.every(tx) if each.person_id == person]

    return await api.store.read(look)


@router.post("/channels/{channel}/pair", status_code=201, responses=documented(404))
async def pair_channel(channel: str, api: ApiDep, person: PersonDep) -> PairingView:
    """Make a code that pairs your phone or mailbox with a channel when it is sent from there.

    Whoever sends it may then speak in your name on this channel, and decide on requests.
    """
    made = await api.store.write(pairing.new_code, person, channel)
    hint = api.pairing_hints.get(channel, "Send the code to the channel: {code}")
    return PairingView(code=made.code, until=made.until, hint=hint.replace("{code}", made.code))


@router.delete("/channels/{channel}/pairing", responses=documented(404))
async def unpair_channel(channel: str, api: ApiDep, person: PersonDep) -> ChannelView:
    """Forget who is paired with a channel. It sends nothing and hears nobody from now on."""
    return _view(await api.store.write(pairing.unpair, person, channel))
