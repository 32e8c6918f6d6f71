"""Settings views: everything that a person can set about a team, and what it may spend."""

from datetime import datetime
from typing import Literal

from pydantic import Field

from agiraph.api.view import View
from agiraph.api.views import DOMAIN_FIELDS, TeamView
from agiraph.domain.agents import Limits
from agiraph.domain.costs import GoalBudget
from agiraph.domain.effort import Effort


class RuleView(View):
    tool: str
    action: Literal["allow", "deny", "ask"]
    pattern: str


class TeamSettingsView(View):
    """The settings of a team, those in `TeamView` included."""

    model_config = DOMAIN_FIELDS

    team: TeamView
    soul: str = Field(description="The content of SOUL.md, without its heading.")
    is_default_soul: bool = Field(description="Whether SOUL.md is the one that agiraph wrote.")
    model: str = Field(
        description="The coordinator's model; after commas, those that answer if it cannot."
    )
    permissions: list[RuleView] = Field(
        description="The permission rules in order: the first that matches a call decides."
    )
    limits: Limits
    budget: GoalBudget | None = Field(description="The limits of the goal; null: it has no goal.")


class MatchedCall(View):
    """A tool call that agents of the team have made."""

    tool: str
    argument: str = Field(description="The call's first argument. Show it as plain text.")
    agent: str
    at: datetime


class RuleMatches(View):
    count: int = Field(description="How many of the calls this rule would decide on.")
    examples: list[MatchedCall]


class RulesPreview(View):
    """Which of the team's newest tool calls a list of permission rules would have decided on."""

    calls: int = Field(description="How many calls were looked at, the newest ones.")
    rules: list[RuleMatches] = Field(description="In the order of the rules.")
    tools: list[str] = Field(description="The names of all tools that rules can name.")


class DeletionView(View):
    """A team that was deleted for good. Its data is removed in the background."""

    team_id: str
    name: str


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


class SkillFile(View):
    """The SKILL.md of a skill, and what agents are told of it."""

    id: str
    text: str
    files: list[str] = Field(description="Its other files.")
    shown: str = Field(description="The line about it in prompts.")
    can_edit: bool = Field(description="Whether it lies in this home, so that it can be changed.")
