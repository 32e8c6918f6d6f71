"""Effort choice: how a request sets the effort of a team, an agent or a node, or takes it away."""

from typing import ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field

from agiraph.domain.effort import Effort

EffortChange = Literal["none", "low", "medium", "high", "max", "default"]
NO_EFFORT = " `default` takes the setting away, so that the next wider one counts."


def chosen_effort(change: EffortChange) -> Effort | None:
    """Return the effort to store."""
    return None if change == "default" else change


class EffortRequest(BaseModel):
    """How much a model thinks. It counts from the next start or wake-up of the work on."""

    model_config: ClassVar[ConfigDict] = ConfigDict(
        extra="forbid", strict=True, json_schema_extra={"example": {"effort": "high"}}
    )

    effort: EffortChange = Field(description="How much the model thinks first." + NO_EFFORT)
