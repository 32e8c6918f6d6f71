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
    description: str = Field(
        default="", description="Where it leads, without secrets; empty: another process has it."
    )
    can_remove: bool = Field(
        default=False, description="Whether agiraph.toml names it, so that the API can."
    )


class ChannelDraftView(View):
    """A channel that a person is about to add, with all that they consent to."""

    name: str
    description: str = Field(description="Where it leads, without secrets.")
    kinds: list[MessageKind] = Field(description="The kinds of messages it sends.")
    is_two_way: bool
    secrets: list[str] = Field(description="The names of the secrets that it is handed.")
    consent: str = Field(description="What it means to go on.")
    question: str = Field(description="What the person is asked.")
    sha256: str = Field(description="Hash of what is shown here, for the request that adds it.")


class PairingView(View):
    code: str = Field(description="Works once; the server stores a hash.")
    until: datetime
    hint: str = Field(description="What to do with the code.")
