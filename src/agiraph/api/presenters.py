"""Presenters: convert rows to the views that clients get."""

from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any

from agiraph.api.job_views import JobView
from agiraph.api.thread_views import ThreadView, TurnView
from agiraph.api.views import (
    ActView,
    AgentView,
    AttachmentView,
    CostView,
    GivenFolderView,
    GrantOffer,
    InboxItem,
    MessageView,
    NodeView,
    StageView,
    TeamView,
    ToolCallView,
    TriggerView,
)
from agiraph.domain.acts import Act, describe
from agiraph.domain.agents import Team
from agiraph.domain.chat import Thread, ToolCall, Turn
from agiraph.domain.fence import without_marks
from agiraph.domain.ids import PersonId, TeamId
from agiraph.domain.messages import Message
from agiraph.domain.stages import Stage
from agiraph.domain.triggers import LATE_AFTER, Trigger
from agiraph.domain.work import NodeStatus, WorkNode
from agiraph.services.board import planning, requests, texts, timing
from agiraph.services.board.jobs import Job
from agiraph.services.mail import inbox
from agiraph.services.members.roster import Member
from agiraph.services.triggers import team_heartbeat
from agiraph.services.triggers.kinds import registry
from agiraph.store import (
    dependencies,
    messages,
    nodes,
    spend,
    stages,
    team_counts,
    teams,
    threads,
    triggers,
)
from agiraph.store.team_counts import TeamCounts
from agiraph.store.tx import Tx


def team_view(tx: Tx, team: Team, viewer: PersonId) -> TeamView:
    """Return a team as a person sees it: `unread` counts the messages to that person."""
    return team_views(tx, [team], viewer)[0]


def team_views(tx: Tx, page: Sequence[Team], viewer: PersonId) -> list[TeamView]:
    """Return teams as `team_view` does, in a fixed number of statements. The page is ordered by id,
    and no team is left out between its first and its last."""
    if not page:
        return []
    first, last = page[0].id, page[-1].id
    counts = team_counts.read(tx, first, last, viewer)
    intervals = team_heartbeat.intervals_s(tx, first, last)
    return [_team_view(tx, team, counts[team.id], intervals.get(team.id, 0.0)) for team in page]


def _team_view(tx: Tx, team: Team, counts: TeamCounts, interval_s: float) -> TeamView:
    return TeamView(
        id=team.id,
        name=team.name,
        goal=team.goal,
        mode=team.mode,
        status=team.status,
        coordinator_id=counts.members[0] if counts.members else None,
        created_at=team.created_at,
        learns=team.learns,
        review=team.review,
        trust=team.trust,
        folders=[GivenFolderView(**asdict(folder)) for folder in team.folders],
        quiet_hours=team.quiet_hours,
        quiet_zone=team.quiet_zone,
        muted_until=team.muted_until,
        channel=team.channel,
        answer_within=team.answer_within_s or 0.0,
        effort=team.effort,
        interval=interval_s,
        members=len(counts.members),
        working=counts.working,
        waits_for_you=_is_open(team) and counts.waits_for_person and not counts.working,
        open_questions=counts.open_questions,
        unread=counts.unread,
        usd=counts.usd,
        # Includes the events of this transaction, which are numbered when it commits.
        head=counts.head + tx.emitted(team.id),
    )


def _is_open(team: Team) -> bool:
    """Whether work of a team goes on when a person answers: research may still wait for an answer
    after the goal is reached."""
    return team.status in ("active", "completed")


def agent_view(tx: Tx, member: Member, viewer: PersonId) -> AgentView:
    """Return an agent as a person sees it: `unread` counts its messages to that person."""
    agent, node = member.agent, member.node
    return AgentView(
        id=agent.id,
        team_id=agent.team_id,
        name=agent.name,
        role=agent.role,
        kind=agent.kind,
        model=agent.model,
        effort=agent.effort,
        command=agent.command,
        status=member.doing,
        node_id=None if node is None else node.id,
        node_title="" if node is None else texts.subject_of(node),
        thread_id=None if member.thread is None else member.thread.id,
        waiting_reason=None if node is None else node.waiting_reason,
        persistent=agent.persistent,
        created_for=agent.created_for,
        parent_thread_id=agent.parent_thread_id,
        created_at=agent.created_at,
        retired_at=agent.retired_at,
        unread=messages.unread_from(tx, agent.team_id, viewer, sender=agent.id),
    )


def node_view(tx: Tx, node: WorkNode) -> NodeView:
    used = spend.spent(tx, node.id)
    return NodeView(
        id=node.id,
        team_id=node.team_id,
        title=texts.subject_of(node),
        task=without_marks(node.task),
        status=node.status,
        source=node.source,
        lane=node.lane,
        creator_id=node.creator_id,
        creator=planning.name_of(tx, node.creator_id),
        assignee_id=node.assignee_id,
        assignee=None if node.assignee_id is None else planning.name_of(tx, node.assignee_id),
        parent_id=node.parent_id,
        depends_on=[needed.id for needed in dependencies.needs(tx, node.id)],
        stage_id=node.stage_id,
        trigger_id=node.trigger_id,
        thread_id=node.thread_id,
        depth=node.depth,
        is_public=not node.kind.sees_team,
        effort=node.effort,
        attempt=node.attempt,
        waiting_reason=node.waiting_reason,
        stop_reason=node.stop_reason,
        checkpoint=node.checkpoint,
        result=node.result,
        doubts=node.doubts,
        sources=list((node.label | threads.label_of_node(tx, node.id)).sources),
        created_at=node.created_at,
        started_at=node.started_at,
        ended_at=node.ended_at,
        stalled_at=node.stalled_at,
        worked_seconds=timing.worked_seconds(node),
        running_since=node.claimed_at if node.status is NodeStatus.RUNNING else None,
        cost=CostView(calls=used.calls, tokens=used.tokens, usd=used.usd),
    )


def stage_view(tx: Tx, stage: Stage) -> StageView:
    return StageView(
        id=stage.id,
        team_id=stage.team_id,
        node_id=stage.node_id,
        name=stage.name,
        status=stage.status,
        contract=stage.contract,
        nodes=[node.id for node in stages.nodes(tx, stage.id)],
        assessment=stage.assessment,
        verdicts=stage.verdicts,
        decision=stage.decision,
        created_at=stage.created_at,
        ended_at=stage.ended_at,
    )


def job_view(job: Job) -> JobView:
    node = job.node
    return JobView(
        node_id=node.id,
        parent_id=node.parent_id,
        title=texts.subject_of(node),
        worker=job.worker,
        state=job.state,
        position=job.position,
        is_research=node.asked_of is not None,
        used=dict(job.used),
        limits=node.budget.calls,
        tasks=job.tasks,
        tasks_done=job.tasks_done,
        progress=texts.truncate(job.progress, texts.REASON),
        started_at=node.started_at,
        ended_at=node.ended_at,
        worked_seconds=timing.worked_seconds(node),
        running_since=node.claimed_at if node.status is NodeStatus.RUNNING else None,
        sources=list(job.label.sources),
    )


def message_view(tx: Tx, message: Message) -> MessageView:
    return MessageView(
        id=message.id,
        team_id=message.team_id,
        seq=message.seq,
        sender=message.sender,
        sender_name=planning.name_of(tx, message.sender),
        recipient=message.recipient,
        kind=message.kind,
        title=message.title,
        text=message.text,
        options=list(message.options),
        node_id=message.node_id,
        in_reply_to=message.in_reply_to,
        said_to=messages.said_to(message.ref),
        client_id=message.client_id,
        attachments=[
            AttachmentView(name=a.name, media_type=a.media_type, data=a.data)
            for a in message.attachments
        ],
        created_at=message.created_at,
        seen_at=message.seen_at,
        answered_at=message.answered_at,
        decision=message.decision,
        rating=message.rating,
        sources=list(message.label.sources),
        call=None if message.call is None else call_view(message.call),
        stopped_by=message.stopped_by,
        consulted=list(message.consulted),
        waits_until=requests.waits_until(tx, message),
        acts=[act_view(act) for act in message.acts],
    )


def act_view(act: Act) -> ActView:
    return ActView(
        kind=act.kind,
        about=act.about,
        text=describe(replace(act, undone_at=None)),
        words=act.words or act.name,
        is_undone=act.undone_at is not None,
    )


def call_view(call: ToolCall) -> ToolCallView:
    return ToolCallView(id=call.id, name=call.name, arguments=call.arguments)


def thread_view(thread: Thread) -> ThreadView:
    return ThreadView(
        id=thread.id,
        team_id=thread.team_id,
        agent_id=thread.agent_id,
        node_id=thread.node_id,
        kind=thread.kind,
        parent_id=thread.parent_id,
        created_at=thread.created_at,
        closed_at=thread.closed_at,
        pruned_at=thread.pruned_at,
    )


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
    return TurnView(
        seq=turn.seq,
        role=turn.role,
        text=turn.text,
        at=turn.at,
        ref=turn.ref,
        calls=[call_view(call) for call in turn.calls],
        failed=turn.failed,
        model=turn.model,
        input_tokens=turn.usage.input_tokens,
        output_tokens=turn.usage.output_tokens,
        usd=turn.usage.usd,
        started_at=time.started_at,
        waited_s=time.waited_s,
        thinking=turn.provider_data.thinking,
        thinking_tokens=turn.usage.thinking_tokens,
        cached_tokens=turn.usage.cached_tokens,
        is_estimated=turn.usage.is_estimated,
        served_model=turn.provider_data.served_model,
        refusal=turn.provider_data.refusal,
    )


def inbox_item_view(tx: Tx, item: inbox.Item) -> InboxItem:
    node_id = item.message.node_id
    node = None if node_id is None else nodes.NODES.find(tx, node_id)
    shown = replace(item.message, text=item.message.summary or item.message.text)
    return InboxItem(
        message=message_view(tx, shown),
        state=item.state,
        needs_answer=item.needs_answer,
        deliveries=list(item.deliveries),
        node_status=None if node is None else node.status,
        stop_reason=None if node is None else node.stop_reason,
        doubts=None if node is None else node.doubts,
        always=_offer(item.message),
        snoozed_until=item.message.snoozed_until,
        archived_at=item.message.archived_at,
        reply_to=_reply_to(tx, item.message, node),
    )


def _reply_to(tx: Tx, message: Message, node: WorkNode | None) -> str | None:
    """Return the agent that answers questions about a message. A researcher leaves the team with
    its report; the agent that ordered the research can read the report and its evidence."""
    if message.kind == "report" and node is not None and node.asked_of is not None:
        return node.asked_of
    return message.sender if teams.AGENTS.find(tx, message.sender) is not None else None


def _offer(message: Message) -> GrantOffer | None:
    is_open = message.kind == "approval" and message.answered_at is None
    offered = requests.offer(message) if is_open else None
    return None if offered is None else GrantOffer(kind=offered[0], pattern=offered[1])


def trigger_fields(tx: Tx, trigger: Trigger) -> dict[str, Any]:
    cost = triggers.cost(tx, trigger.id)
    shown = {
        name: getattr(trigger, name)
        for name in TriggerView.model_fields
        if name not in ("is_overdue", "cost", "nothing_to_do")
    }
    # LATE_AFTER leaves time for a trigger that is just being fired.
    late = trigger.due_at is not None and trigger.due_at < tx.now - LATE_AFTER
    waits = registry.kind_of(trigger).fires_once and trigger.gate is not None
    return {
        **shown,
        "is_overdue": late and not waits and trigger.status == "active",
        "nothing_to_do": triggers.count_nothing_to_do(tx, trigger.id),
        "cost": CostView(calls=cost.calls, tokens=cost.tokens, usd=cost.usd),
    }
