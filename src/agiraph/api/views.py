"""Views: the responses of the API. They import no store code, so that the client starts quickly."""

from datetime import datetime
from typing import Any, ClassVar, Literal, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field

from agiraph.core.domain.agents import (
    Access,
    AgentKind,
    Doing,
    Limits,
    Mode,
    Review,
    TeamState,
    TeamStatus,
    Trust,
)
from agiraph.core.domain.costs import GoalBudget
from agiraph.core.domain.messages import (
    Box,
    Decision,
    MessageKind,
    ProviderFault,
    Rating,
    State,
    StoppedBy,
)
from agiraph.core.domain.provenance.grants import GrantKind
from agiraph.core.domain.provenance.sinks import CallRisk
from agiraph.core.domain.records.acts import ActKind
from agiraph.core.domain.records.deliveries import Delivery
from agiraph.core.domain.records.doubts import Doubt
from agiraph.core.domain.stages import StageContract, StageDecision, StageStatus
from agiraph.core.domain.triggers import ActionType, Misfire, Overlap, TriggerStatus, TriggerType
from agiraph.core.domain.work import (
    Budget,
    Effort,
    HeldBy,
    IfUnmet,
    JobState,
    Lane,
    LineKind,
    NodeStatus,
    Source,
    StopReason,
)

WORKED_SECONDS = "Seconds that count towards its time limit, without waits, up to `running_since`."
STATE = (
    "The state of the team as people see it, from its status, its goal and its open work. "
    "needs_you: work of it waits for a person's answer."
)
QUIET_HOURS = (
    "Daily hours without briefings and browser notifications, such as 22:00-07:00; empty: none."
)


class View(BaseModel):
    # Deferred: a command uses one or two of the views, and building all of them would slow its
    # start. Fields have no docstrings either: pydantic would parse this file once per class.
    model_config: ClassVar[ConfigDict] = ConfigDict(defer_build=True, from_attributes=True)

    @classmethod
    def of(cls, row: object, **others: Any) -> Self:
        """Return the view of a row: its fields of the same names, and these others."""
        own = {name: getattr(row, name) for name in cls.model_fields if name not in others}
        return cls.model_validate({**own, **others})


V = TypeVar("V", bound=View)


def of_domain(view: type[V]) -> type[V]:
    """Put the docstrings of a view's fields, if they are domain classes, into the API's schema."""
    # Once the class is made: pydantic would parse this file for docstrings of its own fields.
    view.model_config["use_attribute_docstrings"] = True
    return view


class CostView(View):
    calls: int
    tokens: int
    usd: float = Field(description="The known part; calls without a known price count as zero.")


class GivenFolderView(View):
    name: str = Field(description="Its name in the team's paths: folders/<name>.")
    path: str
    access: Access


class TeamView(View):
    id: str
    name: str
    goal: str
    mode: Mode
    status: TeamStatus
    state: TeamState = Field(description=STATE)
    goal_status: NodeStatus | None = Field(
        description="How its last goal stands; null: it has none."
    )
    coordinator_id: str | None
    created_at: datetime
    learns: bool
    review: Review
    trust: Trust
    folders: list[GivenFolderView] = Field(description="Folders of a person that its agents see.")
    effort: Effort | None = Field(
        description="How much its agents' models think; null: as the settings say."
    )
    quiet_hours: str = Field(description=QUIET_HOURS)
    quiet_zone: str
    muted_until: datetime | None = Field(
        description="Until when it sends nothing unasked; null: it is not muted."
    )
    channel: str = Field(
        description="The channel for its questions; empty: each that sends questions."
    )
    answer_within: float = Field(
        description="Seconds that its agents wait for a person's answer; 0: for ever."
    )
    interval: float = Field(
        description="Seconds without work after which the coordinator wakes by itself; 0: never."
    )
    members: int
    working: int = Field(description="Members that are working now.")
    waits_for_you: bool = Field(description="Whether `state` is needs_you.")
    open_questions: int
    unread: int
    usd: float
    head: int = Field(description="The number of the team's newest event.")


class RuleView(View):
    tool: str
    action: Literal["allow", "deny", "ask"]
    pattern: str


@of_domain
class TeamSettingsView(View):
    """The settings of a team, those in `TeamView` included."""

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


class DeletionView(View):
    """A team that was deleted for good. Its data is removed in the background."""

    team_id: str
    name: str


class MemberOverview(View):
    """A member of a team, and what it is doing now."""

    id: str
    name: str
    role: str
    status: Doing
    unread: int = Field(description="Messages from it that the person has not read.")
    questions: int = Field(description="Its open questions to people.")


class TeamOverview(View):
    """A team with its members."""

    id: str
    name: str
    status: TeamStatus
    state: TeamState = Field(description=STATE)
    trust: Trust
    coordinator_id: str | None
    created_at: datetime
    active_at: datetime = Field(
        description="When its agents last did something or a message came; of an archived team, "
        "the time of its newest event."
    )
    ended_at: datetime | None = Field(
        description="When its last goal ended; null: it has none that has ended."
    )
    head: int = Field(description="The number of the team's newest event.")
    members: list[MemberOverview] = Field(description="The coordinator first.")
    former_members: int = Field(description="How many agents have left the team.")
    open_questions: int
    unread: int
    usd: float
    quiet_hours: str = Field(description=QUIET_HOURS)
    quiet_zone: str
    muted_until: datetime | None = Field(
        description="Until when it sends nothing unasked; null: it is not muted."
    )


class AgentView(View):
    id: str
    team_id: str
    name: str
    role: str
    kind: AgentKind
    model: str
    effort: Effort | None = Field(description="How much its model thinks; null: as for the team.")
    command: str | None
    status: Doing = Field(description="Derived from its nodes, never stored.")
    node_id: str | None = Field(description="The node it works on, or worked on last.")
    node_title: str
    thread_id: str | None
    waiting_reason: str | None
    persistent: bool
    created_for: str | None
    parent_thread_id: str | None
    created_at: datetime
    retired_at: datetime | None
    unread: int = Field(description="Messages from this agent that the person has not read.")


class NodeView(View):
    id: str
    team_id: str
    title: str
    task: str
    status: NodeStatus
    source: Source
    lane: Lane
    creator_id: str
    creator: str
    assignee_id: str | None
    assignee: str | None
    parent_id: str | None
    depends_on: list[str]
    stage_id: str | None
    trigger_id: str | None
    thread_id: str | None
    depth: int
    is_public: bool = Field(description="Whether its agent sees its task and nothing of the team.")
    effort: Effort | None = Field(description="How much its model thinks; null: as for the agent.")
    attempt: int
    waiting_reason: str | None
    held_by: HeldBy | None = Field(
        description="What keeps it from starting; null: nothing, or it has started."
    )
    stop_reason: StopReason | None
    canceller_id: str | None = Field(
        description="The person or agent that cancelled it; null: the runtime, or nobody."
    )
    canceller: str | None
    checkpoint: str | None
    result: str | None
    doubts: list[Doubt] = Field(description="What could not be confirmed of the result.")
    sources: list[str] = Field(
        description="Whose words the node has read, if not the team's: search, page:HOST, … Its "
        "result may hold them: show links in it as plain text."
    )
    created_at: datetime
    started_at: datetime | None
    ended_at: datetime | None
    stalled_at: datetime | None
    worked_seconds: float = Field(description=WORKED_SECONDS)
    running_since: datetime | None = Field(description="When its present run began, if it runs.")
    cost: CostView = Field(description="The cost of this node and all nodes below it.")


class FileView(View):
    path: str = Field(description="Relative to the team's folder.")
    kind: str
    size: int
    modified: datetime


@of_domain
class NodeDetail(NodeView):
    refs: dict[str, str]
    acceptance: list[str]
    acceptance_kinds: dict[str, LineKind] = Field(
        default_factory=dict[str, LineKind],
        description="What proves a line, by the line, for those that say it.",
    )
    if_unmet: IfUnmet
    budget: Budget
    manifest: dict[str, str] = Field(description="The published files, each with its hash.")
    files: list[FileView]
    children: list[str]
    started: int = Field(description="How many times work on it was started.")


@of_domain
class StageView(View):
    id: str
    team_id: str
    node_id: str
    name: str
    status: StageStatus
    contract: StageContract
    nodes: list[str]
    assessment: str | None
    verdicts: dict[str, str] = Field(
        description="The coordinator's last verdict on each node; a reason follows a colon."
    )
    decision: StageDecision | None
    created_at: datetime
    ended_at: datetime | None


class AttachmentView(View):
    name: str
    media_type: str
    data: str = Field(description="Base64.")


class ToolCallView(View):
    id: str
    name: str
    arguments: dict[str, Any]


class ActView(View):
    """One thing that a reply did for the person besides its words."""

    kind: ActKind
    about: str = Field(description="The id of the work, question, trigger or memory.")
    text: str = Field(description="What was done, in a line. Show it as plain text.")
    words: str = Field(
        description="What was passed on, begun, answered, promised or remembered: what a person "
        "edits who changes it."
    )
    is_undone: bool


class MessageView(View):
    id: str
    team_id: str
    seq: int = Field(description="The message's position in the recipient's mailbox.")
    sender: str
    sender_name: str
    recipient: str
    kind: MessageKind
    title: str
    text: str
    options: list[str]
    node_id: str | None
    in_reply_to: str | None
    said_to: str | None = Field(description="The agent in whose conversation it was written.")
    edits: str | None = Field(
        description="The earlier message of the same person that it takes the place of."
    )
    edited_by: str | None = Field(
        description="The later message that takes its place. An agent that had not read this "
        "one reads only the later one."
    )
    client_id: str | None
    attachments: list[AttachmentView]
    created_at: datetime
    seen_at: datetime | None = Field(
        description="When it was received: by an agent at a step, by the person on reading it."
    )
    answered_at: datetime | None
    decision: Decision | None
    rating: Rating | None = Field(description="The person's rating of a briefing.")
    sources: list[str] = Field(
        description="Who wrote some of its words, if not the team: search, page:HOST, file:NAME, … "
        "Show the links in such a message as plain text."
    )
    call: ToolCallView | None = Field(
        description="For an approval: the tool call to decide on, complete. Show it as plain text."
    )
    reason: str = Field(description="Of an approval: what its agent wrote beside the call.")
    risks: list[CallRisk] = Field(description="Of an approval: what can go wrong with the call.")
    stopped_by: StoppedBy | None = Field(
        description="For a question that agiraph asks for the agent: why its work cannot go on. "
        "Any answer lets it try again."
    )
    fault: ProviderFault | None = Field(
        description="For such a question: what is wrong with a provider, if that is the cause: "
        "key, it refuses the key; quota, its money is spent."
    )
    fault_of: str | None = Field(description="The provider whose fault it is, such as openai.")
    consulted: list[str] = Field(
        description="Of a reply: what its agent looked up, such as look_into(bob). Show it as "
        "plain text."
    )
    waits_until: datetime | None = Field(
        description="Of an open question: when the work that asks goes on without an answer; "
        "null if it waits as long as it takes, or does not wait."
    )
    doubts: list[Doubt] = Field(
        description="Of a result: what could not be confirmed of it; `text` does not repeat it."
    )
    acts: list[ActView] = Field(
        description="Of a reply: what it did for the person. "
        "`POST /messages/{id}/acts/{place}/undo` undoes one, by its place from 0."
    )


class GrantOffer(View):
    """The grant that a person gives by answering an approval request with `always`."""

    kind: GrantKind
    pattern: str


class WaitingWorkView(View):
    team_id: str
    node_id: str


@of_domain
class InboxItem(View):
    message: MessageView
    state: State
    needs_answer: bool = Field(description="Whether the person has not answered it yet.")
    deliveries: list[Delivery] = Field(description="The deliveries to the person's channels.")
    node_status: NodeStatus | None = Field(
        description="The status now of the node that the message is about; null if there is none."
    )
    stop_reason: StopReason | None = Field(description="Why that node ended, if it has ended.")
    always: GrantOffer | None = Field(
        description="For an open request: what `always` would allow; null if nothing."
    )
    has_doubts: bool
    team_name: str
    box: Box
    waiting_work: list[WaitingWorkView] = Field(
        description="For an open question about a provider: the work that waits for the answer, "
        "of any team. One answer, or a new key, lets all of it try again."
    )

    @property
    def waiting_teams(self) -> set[str]:
        return {one.team_id for one in self.waiting_work}

    snoozed_until: datetime | None = Field(
        description="Until when it is out of the inbox; in the past: it came back then."
    )
    archived_at: datetime | None
    reply_to: str | None = Field(
        description="The agent that knows what the message is about; null if no agent sent it."
    )


class InboxPage(View):
    items: list[InboxItem]
    cursor: str | None = Field(
        description="The value of `after` for the next page; null on the last page."
    )
    unread: int


class TriggerView(View):
    id: str
    team_id: str
    agent_id: str
    type: TriggerType
    action: ActionType
    config: dict[str, Any]
    payload: dict[str, Any]
    zone: str
    misfire: Misfire
    overlap: Overlap
    status: TriggerStatus
    due_at: datetime | None = Field(
        description="When it fires next; null while its agent works, or if it does not fire by "
        "time."
    )
    is_overdue: bool
    fired_at: datetime | None
    fired: int
    skipped: int
    gated: int = Field(
        description="How many times its condition was not met, so that no agent was woken. "
        "These cost nothing."
    )
    gate: str | None = Field(
        description="Why it did not wake an agent when it was last due, such as *budget: "
        "money_spent*; null once it has fired. A trigger for one time waits for this to change."
    )
    nothing_to_do: int = Field(
        description="How many of its firings were ended with nothing to do. Nobody is told of them."
    )
    made_by: str
    promised_to: str | None
    created_at: datetime
    ended_at: datetime | None
    ended: str | None
    cost: CostView


class CreatedTriggerView(TriggerView):
    secret: str | None = Field(
        default=None, description="The secret that a webhook's caller sends; shown only once."
    )


class FolderView(View):
    """The entries of a folder."""

    path: str
    entries: list[FileView]


class JobView(View):
    """Work as a card shows it: who is on it, how far it is, and what it did last."""

    node_id: str
    parent_id: str | None
    title: str
    worker: str
    state: JobState
    position: int | None = Field(description="Its place in its worker's queue, from 1.")
    held_by: HeldBy | None = Field(
        description="What keeps it from starting; null: nothing, or it has started."
    )
    is_research: bool
    used: dict[str, int] = Field(description="Calls made of each tool that its budget limits.")
    limits: dict[str, int] = Field(description="The limit on calls of each such tool.")
    tasks: int = Field(description="Tasks that it has given away.")
    tasks_done: int
    progress: str = Field(description="Why it waits, else its last checkpoint.")
    started_at: datetime | None
    ended_at: datetime | None
    worked_seconds: float = Field(description=WORKED_SECONDS)
    running_since: datetime | None = Field(description="When its present run began, if it runs.")
    sources: list[str] = Field(
        description="Who wrote some of these words, if not the team. Show links in them as text."
    )


class ThreadView(View):
    id: str
    team_id: str
    agent_id: str
    node_id: str | None
    kind: Lane
    parent_id: str | None
    title: str = Field(description="Its name for people: its task, or the message it answers.")
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
