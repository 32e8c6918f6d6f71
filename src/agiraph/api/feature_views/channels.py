"""Channel views: what the API shows of channels. They import no store code."""

from datetime import datetime

from pydantic import Field

from agiraph.api.views import View
from agiraph.core.domain.messages import MessageKind


class ChannelView(View):
    name: str
    kinds: list[MessageKind] = Field(description="The kinds of messages it sends.")
    is_two_way: bool = Field(description="Whether it also receives, once it is paired.")
    address: str | None = Field(description="Who is paired with it; null: nobody.")
    paired_at: datetime | None
    muted_until: datetime | None = Field(description="Until when it sends nothing unasked.")
    dropped: int = Field(description="Messages of unknown senders, of which nothing was kept.")


class PairingView(View):
    code: str = Field(description="Works once; the server stores a hash.")
    until: datetime
    hint: str = Field(description="What to do with the code.")
