"""Thread views: the threads of agents and their turns, as the API returns them."""

from datetime import datetime

from pydantic import Field

from agiraph.api.view import View
from agiraph.api.views import ToolCallView
from agiraph.domain.work import Lane


class ThreadView(View):
    id: str
    team_id: str
    agent_id: str
    node_id: str | None
    kind: Lane
    parent_id: str | None
    created_at: datetime
    closed_at: datetime | None
    pruned_at: datetime | None = Field(
        description="When its turns were removed, as the setting `retention` says; null: they are "
        "all there."
    )


class TurnView(View):
    seq: int
    role: str
    text: str
    at: datetime
    ref: str | None
    calls: list[ToolCallView]
    failed: bool
    model: str | None
    input_tokens: int
    output_tokens: int
    usd: float | None
    started_at: datetime = Field(
        description="When the step began: the time of the entry before it, which may be internal."
    )
    waited_s: float = Field(
        description="Seconds between `started_at` and `at` in which nobody worked on it: it waited "
        "for a person, a teammate or a time, or no server ran."
    )
    thinking: str = Field(description="What the model thought before the reply, if it is known.")
    thinking_tokens: int = Field(
        description="The output tokens spent on thinking; 0 if the vendor does not report it."
    )
    cached_tokens: int = Field(description="The input tokens that came from the vendor's cache.")
    is_estimated: bool = Field(description="Whether the tokens were estimated by agiraph.")
    served_model: str = Field(
        description="The model's name as its server gives it; empty if it is the one asked for."
    )
    refusal: str = Field(
        description="The vendor's reason for withholding the rest of the reply; empty if it is "
        "whole."
    )
