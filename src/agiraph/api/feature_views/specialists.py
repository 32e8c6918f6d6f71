"""Specialist views: the kinds of agents that can be hired by name, as the API returns them."""

from typing import Literal

from pydantic import Field

from agiraph.api.views import View
from agiraph.core.domain.work import Effort


class SpecialistView(View):
    """A kind of agent that coordinators can hire by name."""

    name: str
    description: str
    model: str = Field(description="Empty: the model of the agent that hires it.")
    effort: Effort | None
    tools: list[str] = Field(description="Empty: all tools of a worker.")
    source: Literal["built_in", "home", "replaced"] = Field(
        description="built_in: comes with agiraph. home: a file of this home. replaced: a file of "
        "this home in the place of a built-in one."
    )


class SpecialistFile(View):
    specialist: SpecialistView
    text: str = Field(description="The whole file: settings between two lines of ---, and prompt.")


class PromptPreview(View):
    """What a model would be shown, without a call of it."""

    system: str
    task: str
    tools: list[str] = Field(description="The tools in its request; it finds others by name.")
    tokens: int = Field(description="About how many tokens that is.")
