"""Decision views: grants, rules, digests and the rows of the inbox as the API returns them."""

from datetime import datetime

from pydantic import Field

from agiraph.api.views import GrantOffer, ToolCallView, View, WaitingWorkView, of_domain
from agiraph.core.domain.messages import Box, MessageKind, State
from agiraph.core.domain.provenance.grants import GrantKind
from agiraph.core.domain.records.digest import EntryKind
from agiraph.core.domain.work import NodeStatus, StopReason


@of_domain
class GrantView(View):
    """What a person has allowed for longer than one call."""

    id: str
    kind: GrantKind
    pattern: str
    team_id: str | None = Field(description="Null: it holds for all teams of this home.")
    person_id: str = Field(description="Who allowed it.")
    created_at: datetime
    until: datetime | None
    uses_left: int | None = Field(description="Null: any number.")
    used: int
    used_at: datetime | None
    from_ask: str | None = Field(description="The request that was answered with it.")
    revoked_at: datetime | None
    is_typed: bool = Field(description="Whether the person only typed an address of the host.")
    is_in_force: bool = Field(description="Whether it is neither revoked, nor over, nor used up.")


class DigestEntry(View):
    id: str
    kind: EntryKind
    title: str
    text: str = Field(description="The exact words; without `words`, their beginning.")
    is_cut: bool = Field(description="Whether `text` is only the beginning.")
    source: str = Field(description="Who wrote some of its words, if not the team.")
    agent_id: str | None
    created_at: datetime
    is_waited_for: bool = Field(description="Whether work is parked until the person decides.")
    always: GrantOffer | None = Field(
        description="For a request: what `always` would allow; null if each call is decided alone."
    )


class DigestGroup(View):
    kind: EntryKind
    source: str
    ids: list[str]


class EndedGoalView(View):
    """The end of a team's goal that the person has not read about."""

    message_id: str = Field(description="The item of the inbox that tells of it.")
    node_id: str
    status: NodeStatus
    goal: str
    ended_at: datetime


class DigestView(View):
    """What a person may decide on in one team, and whether it has ended meanwhile."""

    team_id: str
    team_name: str
    as_of: datetime = Field(description="Send it with `confirm: all`, so that it means this list.")
    groups: list[DigestGroup]
    entries: list[DigestEntry]
    ended: EndedGoalView | None = Field(
        description="Null: it works, or the person has read how its goal ended."
    )


class DecidedView(View):
    ids: list[str] = Field(description="The entries that were decided on.")


class BulkOutcome(View):
    """What became of one item of a bulk action."""

    id: str
    is_done: bool
    reason: str = Field(description="Why nothing was done; empty if it was.")


class BulkView(View):
    outcomes: list[BulkOutcome] = Field(description="One for each id, in their order.")


class RowMessage(View):
    """What a list shows of a message."""

    id: str
    team_id: str
    kind: MessageKind
    title: str
    text: str = Field(description="The beginning. `GET /inbox/{item}` has all of it.")
    sender: str
    sender_name: str
    node_id: str | None
    created_at: datetime
    call: ToolCallView | None = Field(
        description="For an approval: the call, with the beginning of its first argument."
    )


class InboxRow(View):
    """An item of the inbox as lists show it."""

    message: RowMessage
    team_name: str
    box: Box
    state: State
    needs_answer: bool = Field(description="Whether the person has not answered it yet.")
    has_doubts: bool = Field(description="Whether something of a result could not be confirmed.")
    node_status: NodeStatus | None
    stop_reason: StopReason | None
    waiting_work: list[WaitingWorkView] = Field(
        description="For an open question about a provider: the work that waits for the answer."
    )
    snoozed_until: datetime | None
    archived_at: datetime | None


class InboxCounts(View):
    """What badges say of the whole inbox."""

    unread: int = Field(description="Items that were neither read nor answered.")
    open: int = Field(description="Items that wait for an answer.")
    newest: str = Field(description="The id of the newest item in any box; empty: there is none.")


class InboxRows(InboxCounts):
    """A page of a list, with the counts of the whole inbox."""

    items: list[InboxRow]
    cursor: str | None = Field(
        description="The value of `after` for the next page; null on the last page."
    )


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
