"""Channel routes: the channels to a person, and the pairing of their phone or mailbox."""

from agiraph.api.deps import ApiDep, PersonDep
from agiraph.api.feature_views.channels import ChannelView, PairingView
from agiraph.api.problems import documented
from agiraph.api.routing import Router
from agiraph.core.store import channels
from agiraph.core.store.tx import Tx
from agiraph.features.channels import pairing
from agiraph.features.channels.carriers import Carriers

router: Router = Router("channels")


@router.read("/channels")
def list_channels(tx: Tx, person: PersonDep) -> list[ChannelView]:
    """List your channels, and who is paired with them."""
    return [ChannelView.of(each) for each in channels.every(tx) if each.person_id == person]


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
    return ChannelView.of(pairing.unpair(tx, person, channel))
