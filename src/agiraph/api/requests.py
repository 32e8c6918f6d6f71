"""Requests: what clients send to create and change teams, and what several requests have."""

import base64
from collections.abc import Sequence
from typing import Annotated, Any, Literal, cast

from pydantic import AwareDatetime, Field, field_validator

from agiraph.api.routing import Body
from agiraph.api.views import QUIET_HOURS
from agiraph.core.domain.agents import MOST_FOLDERS, Mode, Review, Rule, Trust
from agiraph.core.domain.chat import Attachment
from agiraph.core.domain.messages import MOST_ATTACHMENTS
from agiraph.core.domain.work import GOAL_TURNS, Budget, Effort, Line, LineKind
from agiraph.core.services.board.acceptance_lines import LINE_CHARACTERS, MAX_LINES
from agiraph.core.services.lifecycle import teams as verbs
from agiraph.core.services.lifecycle.settings import Settings


class AttachmentRequest(Body):
    name: str = Field(min_length=1, max_length=200)
    # The type goes into a data URL and into requests to vendors: no quotes, spaces or line breaks.
    media_type: str = Field(pattern=r"^[a-z]+/[A-Za-z0-9.+-]+$", max_length=100)
    data: str = Field(description="Base64.", max_length=14_000_000)

    @field_validator("data")
    @classmethod
    def _is_base64(cls, data: str) -> str:
        try:
            base64.b64decode(data, validate=True)
        except ValueError as error:
            raise ValueError(f"is not base64: {error}") from error
        return data


Attachments = Annotated[list[AttachmentRequest], Field(max_length=MOST_ATTACHMENTS)]


def received(attachments: Sequence[AttachmentRequest]) -> tuple[Attachment, ...]:
    """Return the files of a request as `Attachment` values, which verbs take."""
    return tuple(Attachment(**one.model_dump()) for one in attachments)


EffortChange = Literal["none", "low", "medium", "high", "max", "default"]
NO_EFFORT = " `default` takes the setting away, so that the next wider one counts."


def chosen_effort(change: EffortChange) -> Effort | None:
    """Return the effort to store."""
    return None if change == "default" else change


class BudgetRequest(Body):
    """Limits for the work on the goal.

    Without `seconds` a finite goal has 24 hours; without `tokens`, one whose model has no known
    price has 5 million. Other fields that are not set have no limit.
    """

    turns: int = Field(default=GOAL_TURNS, ge=1, le=100_000)
    tokens: int | None = Field(default=None, ge=0, le=10**12)
    usd: float | None = Field(default=None, ge=0, le=10**9, allow_inf_nan=False)
    model_calls: int | None = Field(default=None, ge=0, le=10**9)
    seconds: float | None = Field(default=None, ge=0, le=10**9, allow_inf_nan=False)

    def budget(self) -> Budget:
        return Budget(**self.model_dump())


class PermissionRule(Body):
    """A permission rule. The first rule that matches a tool call decides on it."""

    tool: str = Field(min_length=1, max_length=200, examples=["bash"])
    action: Literal["allow", "deny", "ask"]
    pattern: str = Field(default="*", max_length=2000)


MAX_INTERVAL_S = 366 * 86_400
INTERVAL = (
    "Seconds without work after which the coordinator wakes by itself; at least 30, or 0 for never."
)
TRUST = (
    "What the team may do by itself in threads that hold words from outside: `strict` asks before "
    "almost every way out, `standard` lets it search and read with limits, and `open` is for "
    "throw-away homes and containers."
)
REVIEW = (
    "When a reviewer judges a result before it counts: `auto` if acceptance lines cannot be "
    "checked by machine."
)
QUIET_ZONE = "The time zone of the quiet hours, such as Europe/Berlin."
CHANNEL = (
    "The channel for the team's questions and approvals; empty: each that sends such messages."
)
MUTED = (
    "Until when the team sends nothing unasked, neither to channels nor as notifications of the "
    "web UI; null: it is not muted. Its messages are in the inbox all the same."
)
PERMISSIONS = (
    "The permission rules, all of them: the first that matches a call decides. The list replaces "
    "the old one, and needs the scope `admin`."
)
EXAMPLE_TIME = "2030-05-20T09:00:00+02:00"
ANSWER_WITHIN = (
    "Seconds that agents wait for a person's answer before they go on without it; at least 60, or "
    "0 for ever."
)
EFFORT = "How much the models of the team think, unless an agent or a node says otherwise."
FOLDERS = (
    "Folders of this machine that the team sees, as PATH, PATH:ro or PATH:rw: to read, or to read "
    "and change. Giving one needs the scope `admin`."
)
Folders = Annotated[
    list[Annotated[str, Field(min_length=1, max_length=4096)]], Field(max_length=MOST_FOLDERS)
]
_LineText = Annotated[str, Field(max_length=LINE_CHARACTERS)]


class AcceptanceLine(Body):
    line: _LineText
    kind: LineKind = Field(
        description="What proves it: a `file`, a command that `ran`, or a reviewer who `judged` it."
    )


Acceptance = Annotated[list[_LineText | AcceptanceLine], Field(max_length=MAX_LINES)]
ACCEPTANCE = (
    "What must be true when the goal is reached, one statement each, or a statement with the kind "
    "of evidence that proves it. A file in backticks must be published; `answer` means that any "
    "answer is enough. Agents can add lines, not change these."
)


def lines_of(given: Acceptance) -> list[Line]:
    """Return the acceptance lines of a request."""
    return [Line(each) if isinstance(each, str) else Line(each.line, each.kind) for each in given]


ATTACHMENTS = "Files that belong to the goal. The coordinator has them from its first step."


class NewTeam(
    Body,
    example={"goal": "Compare three vector databases", "budget": {"usd": 2}},
):
    goal: str = Field(min_length=1, max_length=verbs.GOAL_LIMIT)
    name: str = Field(default="", max_length=200)
    mode: Mode = "finite"
    model: str = Field(default="", max_length=500, examples=["anthropic/claude-sonnet-4-5"])
    soul: str = Field(
        default="",
        max_length=100_000,
        description="The team's character: the content of its SOUL.md.",
    )
    budget: BudgetRequest | None = None
    tools: list[str] = Field(default_factory=list[str], max_length=200)
    workers: int | None = Field(
        default=None, ge=1, le=200, description="The most members at a time."
    )
    permissions: list[PermissionRule] = Field(default_factory=list[PermissionRule], max_length=200)
    learns: bool = True
    start: bool = Field(default=True, description="Whether to start working immediately.")
    interval: float = Field(default=verbs.HOUR, ge=0, le=MAX_INTERVAL_S, description=INTERVAL)
    review: Review = Field(default="auto", description=REVIEW)
    trust: Trust = Field(default="standard", description=TRUST)
    folders: Folders = Field(default_factory=list[str], description=FOLDERS)
    effort: Effort | None = Field(default=None, description=EFFORT)
    acceptance: Acceptance = Field(
        default_factory=list[_LineText | AcceptanceLine], description=ACCEPTANCE
    )
    attachments: Attachments = Field(
        default_factory=list[AttachmentRequest], description=ATTACHMENTS
    )


class LimitsRequest(Body):
    """How far a team may grow. A field that is not set stays as it is."""

    depth: int | None = Field(default=None, ge=0, le=20)
    children: int | None = Field(default=None, ge=1, le=1000)
    agents: int | None = Field(default=None, ge=1, le=200)
    hires_per_minute: int | None = Field(default=None, ge=1, le=1000)
    nodes: int | None = Field(default=None, ge=1, le=100_000)


class ChangedBudget(Body):
    """New limits of the team's goal, in total. A field that is not set stays as it is."""

    turns: int | None = Field(default=None, ge=1, le=100_000)
    tokens: int | None = Field(default=None, ge=1, le=10**12)
    usd: float | None = Field(default=None, gt=0, le=10**9, allow_inf_nan=False)
    seconds: float | None = Field(default=None, gt=0, le=10**9, allow_inf_nan=False)


class TeamChanges(Body, example={"mode": "infinite", "interval": 3600}):
    """Settings of a team. A field that is not set stays as it is."""

    name: str | None = Field(default=None, max_length=200)
    soul: str | None = Field(
        default=None, max_length=100_000, description="The new content of the team's SOUL.md."
    )
    model: str | None = Field(
        default=None, min_length=1, max_length=500, description="The coordinator's model."
    )
    mode: Mode | None = None
    interval: float | None = Field(default=None, ge=0, le=MAX_INTERVAL_S, description=INTERVAL)
    review: Review | None = Field(default=None, description=REVIEW)
    trust: Trust | None = Field(default=None, description=TRUST)
    folders: Folders | None = Field(
        default=None, description=FOLDERS + " The list replaces the old one."
    )
    effort: EffortChange | None = Field(default=None, description=EFFORT + NO_EFFORT)
    quiet_hours: str | None = Field(default=None, max_length=20, description=QUIET_HOURS)
    quiet_zone: str | None = Field(default=None, max_length=100, description=QUIET_ZONE)
    muted_until: Annotated[
        AwareDatetime | None, Field(strict=False, description=MUTED, examples=[EXAMPLE_TIME])
    ] = None
    permissions: list[PermissionRule] | None = Field(
        default=None, max_length=200, description=PERMISSIONS
    )
    channel: str | None = Field(default=None, max_length=200, description=CHANNEL)
    answer_within: float | None = Field(
        default=None, ge=0, le=MAX_INTERVAL_S, allow_inf_nan=False, description=ANSWER_WITHIN
    )
    limits: LimitsRequest | None = None
    budget: ChangedBudget | None = Field(
        default=None,
        description="Total limits of the team's goal, none below what is used. Work that stopped "
        "because a limit was used up resumes automatically.",
    )

    def settings(self) -> Settings:
        """Return the fields that are set, as the verb takes them."""
        given = self.model_dump(exclude_none=True, exclude={"folders", "permissions"})
        if "muted_until" in self.model_fields_set:
            given["muted_until"] = self.muted_until
        if self.permissions is not None:
            given["permissions"] = tuple(Rule(**rule.model_dump()) for rule in self.permissions)
        for name in ("interval", "answer_within"):
            if name in given:
                given[f"{name}_s"] = given.pop(name)
        if self.effort is not None:
            given["effort"] = chosen_effort(self.effort)
        return cast(Settings, given)


class NextBudget(Body):
    """Limits for the work on a new goal. A field that is left out keeps the limit of the team's
    last goal, and null means no limit. What the last goal used does not count towards them."""

    turns: int | None = Field(default=None, ge=1, le=100_000)
    tokens: int | None = Field(default=None, ge=0, le=10**12)
    usd: float | None = Field(default=None, ge=0, le=10**9, allow_inf_nan=False)
    model_calls: int | None = Field(default=None, ge=0, le=10**9)
    seconds: float | None = Field(default=None, ge=0, le=10**9, allow_inf_nan=False)

    def chosen(self) -> dict[str, Any]:
        """Return the fields that are set. A goal always has a limit on turns: null is the default
        one."""
        given = self.model_dump(exclude_unset=True)
        return given | {"turns": GOAL_TURNS} if given.get("turns", 1) is None else given


class NewGoal(Body, example={"goal": "Now compare their prices, too"}):
    goal: str = Field(min_length=1, max_length=verbs.GOAL_LIMIT)
    budget: NextBudget | None = Field(
        default=None, description="Null: the same limits as for the team's last goal."
    )
    acceptance: Acceptance = Field(
        default_factory=list[_LineText | AcceptanceLine], description=ACCEPTANCE
    )
    attachments: Attachments = Field(
        default_factory=list[AttachmentRequest], description=ATTACHMENTS
    )
