"""Sharing views: the links by which a report is read without signing in."""

from datetime import datetime

from pydantic import Field

from agiraph.api.views import View


class ShareView(View):
    id: str
    person_id: str = Field(description="Who made it.")
    created_at: datetime
    expires_at: datetime
    opened_at: datetime | None = Field(description="When it was first opened; None: never.")
    opens: int = Field(description="How often it was opened, also by programs that preview links.")


class MadeShareView(ShareView):
    url: str = Field(description="The link. It is shown only once; the server stores a hash.")


class SharesView(View):
    why_off: str = Field(description="Why no link can be made, and what to do; empty: it can be.")
    shares: list[ShareView] = Field(description="The links that work now, the newest first.")
