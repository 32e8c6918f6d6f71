"""Presenters: convert rows to the views that clients get."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from agiraph.api.decision_views import (
    DigestEntry,
    DigestGroup,
    DigestView,
    GrantView,
    InboxRow,
    RowMessage,
)
from agiraph.api.views import (
    ActView,
    AgentView,
    CostView,
    InboxItem,
    JobView,
    MessageView,
    NodeView,
    StageView,
    TeamView,
    ThreadView,
    ToolCallView,
    TriggerView,
    TurnView,
    WaitingWorkView,
)
from agiraph.core.domain.agents import Team, state_of
from agiraph.core.domain.chat import Thread, ToolCall, Turn
from agiraph.core.domain.ids import AgentId, NodeId, PersonId, TeamId
from agiraph.core.domain.messages import Message
from agiraph.core.domain.provenance.grants import Grant
from agiraph.core.domain.provenance.labels import CLEAN
from agiraph.core.domain.provenance.sinks import RISK_OF_SINK, CallRisk
from agiraph.core.domain.records.acts import Act, describe
from agiraph.core.domain.records.digest import Digest, Entry
from agiraph.core.domain.stages import Stage
from agiraph.core.domain.text.fence import one_line, without_marks
from agiraph.core.domain.triggers import LATE_AFTER, Trigger
from agiraph.core.domain.work import NodeStatus, WorkNode
from agiraph.core.services.board import jobs, planning, requests, texts, timing
from agiraph.core.services.board.jobs import Job
from agiraph.core.services.mail import inbox
from agiraph.core.services.members.roster import Member
from agiraph.core.services.triggers import team_heartbeat
from agiraph.core.services.triggers.kinds import registry
from agiraph.core.store import (
    dependencies,
    messages,
    nodes,
    spend,
    stages,
    teams,
    threads,
    triggers,
)
from agiraph.core.store.lists import overview
from agiraph.core.store.lists.overview import TeamCounts
from agiraph.core.store.tx import Tx

PREVIEWED_NAME = 60
"""Characters of a message that name the reply to it."""
PREVIEW = 200
"""Characters of an entry of a digest that are shown unless its exact words are asked for."""


def team_view(tx: Tx, team: Team, viewer: PersonId) -> TeamView:
    """Return a team as a person sees it: `unread` counts the messages to that person."""
    return team_views(tx, [team], viewer)[0]


def team_views(tx: Tx, page: Sequence[Team], viewer: PersonId) -> list[TeamView]:
    """Return teams as `team_view` does, in a fixed number of statements. The page is ordered by id,
    and no team is left out between its first and its last."""
    if not page:
        return []
    first, last = page[0].id, page[-1].id
    counts = overview.read_counts(tx, first, last, viewer)
    intervals = team_heartbeat.intervals_s(tx, first, last)
    return [_team_view(tx, team, counts[team.id], intervals.get(team.id, 0.0)) for team in page]


def _team_view(tx: Tx, team: Team, counts: TeamCounts, interval_s: float) -> TeamView:
    state = state_of(
        team.status,
        team.mode,
        counts.goal,
        is_open=counts.is_open,
        needs_person=counts.waits_for_person,
        is_halted=counts.is_halted,
    )
    return TeamView.of(
        team,
        goal_status=counts.goal,
        coordinator_id=counts.members[0] if counts.members else None,
        answer_within=team.answer_within_s or 0.0,
        interval=interval_s,
        members=len(counts.members),
        working=counts.working,
        state=state,
        waits_for_you=state == "needs_you",
        open_questions=counts.open_questions,
        unread=counts.unread,
        usd=counts.usd,
        # Includes the events of this transaction, which are numbered when it commits.
        head=counts.head + tx.emitted(team.id),
    )


def agent_view(tx: Tx, member: Member, viewer: PersonId) -> AgentView:
    """Return an agent as a person sees it: `unread` counts its messages to that person."""
    agent, node = member.agent, member.node
    return AgentView.of(
        agent,
        status=member.doing,
        node_id=None if node is None else node.id,
        node_title="" if node is None else texts.subject_of(node),
        thread_id=None if member.thread is None else member.thread.id,
        waiting_reason=None if node is None else node.waiting_reason,
        unread=messages.unread_from(tx, agent.team_id, viewer, sender=agent.id),
    )


def node_view(tx: Tx, node: WorkNode) -> NodeView:
    return node_views(tx, [node])[0]


def node_views(tx: Tx, page: Sequence[WorkNode]) -> list[NodeView]:
    """Return the views of nodes of one team, in a fixed number of statements but for the names."""
    if not page:
        return []
    team, ids = page[0].team_id, (min(node.id for node in page), max(node.id for node in page))
    needs = dependencies.of_team(tx, team, ids)
    labels = dict(threads.labelled(tx, team, ids))
    spent = spend.spent_between(tx, team, ids)
    held = jobs.held(tx, page)
    people = {who for n in page for who in (n.creator_id, n.assignee_id, n.canceller_id)}
    names = {who: planning.name_of(tx, who) for who in people if who is not None}
    return [
        NodeView.of(
            node,
            title=texts.subject_of(node),
            task=without_marks(node.task),
            creator=names[node.creator_id],
            assignee=None if node.assignee_id is None else names[node.assignee_id],
            canceller=None if node.canceller_id is None else names[node.canceller_id],
            held_by=held.get(node.id),
            depends_on=needs.get(node.id, []),
            is_public=not node.kind.sees_team,
            sources=(node.label | labels.get(node.id, CLEAN)).sources,
            worked_seconds=timing.worked_seconds(node),
            running_since=_running_since(node),
            cost=CostView.of(spent.get(node.id, spend.NOTHING)),
        )
        for node in page
    ]


def _running_since(node: WorkNode) -> datetime | None:
    return node.claimed_at if node.status is NodeStatus.RUNNING else None


def stage_view(tx: Tx, stage: Stage) -> StageView:
    return StageView.of(stage, nodes=[node.id for node in stages.nodes(tx, stage.id)])


def job_view(job: Job) -> JobView:
    node = job.node
    return JobView.of(
        job,
        node_id=node.id,
        parent_id=node.parent_id,
        title=texts.subject_of(node),
        is_research=node.asked_of is not None,
        limits=node.budget.calls,
        progress=texts.truncate(job.progress, texts.REASON),
        started_at=node.started_at,
        ended_at=node.ended_at,
        worked_seconds=timing.worked_seconds(node),
        running_since=_running_since(node),
        sources=job.label.sources,
    )


def message_view(tx: Tx, message: Message) -> MessageView:
    return MessageView.of(
        message,
        sender_name=planning.name_of(tx, message.sender),
        sources=message.label.sources,
        waits_until=requests.waits_until(tx, message),
        acts=[act_view(act) for act in message.acts],
        reason=_reason_of(tx, message),
        risks=_risks_of(message),
        fault_of=None if message.fault is None else message.ref,
    )


def _reason_of(tx: Tx, message: Message) -> str:
    if message.kind != "approval" or message.call is None or message.node_id is None:
        return ""
    at = message.created_at
    return threads.words_beside(tx, message.node_id, message.call.id, before=at)


def _risks_of(message: Message) -> list[CallRisk]:
    """Return what can go wrong with the call of a request, as its way out and its tool declare."""
    if message.kind != "approval" or message.call is None:
        return []
    # All tools are loaded only here: commands without a server load this module, too.
    from agiraph.core.tools.toolsets import BUILT_IN

    tool, way_out = BUILT_IN.get(message.call.name), message.way_out
    found: list[CallRisk] = [] if way_out is None else [RISK_OF_SINK[way_out.sink]]
    if tool is None:
        # An added tool that asks by a rule of the team has declared nothing here.
        return found or ["unknown"]
    properties = tool.properties
    if properties.runs_commands:
        found.append("runs_command")
    if properties.writes_files and "changes_your_files" not in found:
        found.append("changes_files")
    if properties.opens_address and not found:
        found.append("reveals_words")
    if tool.effect == "once" and not properties.writes_files:
        found.append("cannot_be_undone")
    return found


def act_view(act: Act) -> ActView:
    return ActView.of(
        act,
        text=describe(replace(act, undone_at=None)),
        words=act.words or act.name,
        is_undone=act.undone_at is not None,
    )


def thread_views(tx: Tx, agent_id: AgentId, page: Sequence[Thread]) -> list[ThreadView]:
    """Return threads of an agent with the names that people know them by."""
    ids = sorted(thread.node_id for thread in page if thread.node_id is not None)
    if not ids:
        return [ThreadView.of(thread, title="") for thread in page]
    between = (ids[0], ids[-1])
    found = nodes.of_threads(tx, agent_id, between)
    titles: dict[NodeId | None, str] = {node.id: texts.subject_of(node) for node in found}
    for node_id, text in messages.answered_by_replies(tx, agent_id, between).items():
        titles[node_id] = f"Reply to “{texts.truncate(one_line(text), PREVIEWED_NAME)}”"
    return [ThreadView.of(t, title=titles.get(t.node_id, "")) for t in page]


def turn_views(
    tx: Tx, team_id: TeamId, turns: Sequence[Turn], before: Turn | None = None
) -> list[TurnView]:
    """Return consecutive turns of a thread without its internal entries; `before` is the turn in
    front of them."""
    times = timing.of_turns(tx, team_id, turns, before)
    return [
        turn_view(turn, time)
        for turn, time in zip(turns, times, strict=True)
        if turn.role != "intent"
    ]


def turn_view(turn: Turn, time: timing.StepTime) -> TurnView:
    usage, data = turn.usage, turn.provider_data
    return TurnView.of(
        turn,
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        usd=usage.usd,
        started_at=time.started_at,
        waited_s=time.waited_s,
        thinking=data.thinking,
        thinking_tokens=usage.thinking_tokens,
        cached_tokens=usage.cached_tokens,
        is_estimated=usage.is_estimated,
        served_model=data.served_model,
        refusal=data.refusal,
    )


def inbox_item_view(tx: Tx, item: inbox.Item) -> InboxItem:
    message, node_id = item.message, item.message.node_id
    node = None if node_id is None else nodes.NODES.find(tx, node_id)
    is_asked = message.kind == "approval" and message.answered_at is None
    return InboxItem.of(
        item,
        message=message_view(tx, replace(message, text=message.summary or message.text)),
        node_status=None if node is None else node.status,
        stop_reason=None if node is None else node.stop_reason,
        always=requests.offer(message) if is_asked else None,
        has_doubts=bool(message.doubts),
        team_name=teams.TEAMS.get(tx, message.team_id).name,
        box=inbox.box_of(tx, message),
        snoozed_until=message.snoozed_until,
        archived_at=message.archived_at,
        reply_to=_reply_to(tx, message, node),
    )


ROW_TITLE, ROW_TEXT = 200, 240
"""The most characters of a title and of a text in a row: more than a list shows."""


def inbox_row_view(row: inbox.InboxRow) -> InboxRow:
    message, around = row.message, row.around
    text = message.summary or message.text
    shown = RowMessage.of(
        message,
        title=texts.truncate(message.title, ROW_TITLE),
        text=texts.truncate(text, ROW_TEXT),
        sender_name=around.sender_name or message.sender,
        call=None if message.call is None else _call_beginning(message.call),
    )
    return InboxRow(
        message=shown,
        team_name=around.team_name,
        box=row.box,
        state=row.state,
        needs_answer=row.needs_answer,
        has_doubts=bool(message.doubts),
        node_status=around.node_status,
        stop_reason=around.stop_reason,
        waiting_work=[WaitingWorkView.of(one) for one in row.waiting_work],
        snoozed_until=message.snoozed_until,
        archived_at=message.archived_at,
    )


def _call_beginning(call: ToolCall) -> ToolCallView:
    first = [*call.arguments.items()][:1]
    short = {name: texts.truncate(str(given), ROW_TITLE) for name, given in first}
    return ToolCallView(id=call.id, name=call.name, arguments=short)


def _reply_to(tx: Tx, message: Message, node: WorkNode | None) -> str | None:
    """Return the agent that answers questions about a message. A researcher leaves the team with
    its report; the agent that ordered the research can read the report and its evidence."""
    if message.kind == "report" and node is not None and node.asked_of is not None:
        return node.asked_of
    return message.sender if teams.AGENTS.find(tx, message.sender) is not None else None


def trigger_view(tx: Tx, trigger: Trigger) -> TriggerView:
    # LATE_AFTER leaves time for a trigger that is just being fired.
    late = trigger.due_at is not None and trigger.due_at < tx.now - LATE_AFTER
    waits = registry.kind_of(trigger).fires_once and trigger.gate is not None
    return TriggerView.of(
        trigger,
        is_overdue=late and not waits and trigger.status == "active",
        nothing_to_do=triggers.count_nothing_to_do(tx, trigger.id),
        cost=CostView.of(triggers.cost(tx, trigger.id)),
    )


def grant_view(grant: Grant, now: datetime) -> GrantView:
    return GrantView.of(grant, is_in_force=grant.is_in_force(now))


def digest_view(tx: Tx, found: Digest, *, words: bool) -> DigestView:
    """Return a digest, with the exact words of its entries or with their beginnings."""
    return DigestView.of(
        found,
        team_name=teams.TEAMS.get(tx, found.team_id).name,
        groups=[
            DigestGroup(kind=kind, source=source, ids=ids)
            for (kind, source), ids in found.groups.items()
        ],
        entries=[_entry_view(entry, words=words) for entry in found.entries],
    )


def _entry_view(entry: Entry, *, words: bool) -> DigestEntry:
    is_cut = not words and len(entry.text) > PREVIEW
    text = f"{entry.text[:PREVIEW]}…" if is_cut else entry.text
    return DigestEntry.of(entry, text=text, is_cut=is_cut)
