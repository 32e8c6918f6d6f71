"""Unfinished: makes a node wait for its delegated tasks and questions that have no result yet, and
keeps an agent from waiting for work that cannot end before the agent's own work does.

If that work depends on the agent's own node, the wait is refused. If its worker waits for an answer
of the agent, the agent is reminded once; if the agent waits again without answering, the worker
decides by itself.
"""

from collections.abc import Iterable

from agiraph.core.domain.chat import IN_WORDS, WAITS, Lease, Turn
from agiraph.core.domain.errors import AnswerFirst, Refused
from agiraph.core.domain.ids import AgentId, MessageId, NodeId, new_id
from agiraph.core.domain.messages import Message
from agiraph.core.domain.outcomes import Answer, Done, Pending
from agiraph.core.domain.persons import is_person
from agiraph.core.domain.stages import Stage
from agiraph.core.domain.text import fence
from agiraph.core.domain.work import NodeStatus, Timer, WaitingOn, WorkNode
from agiraph.core.services.board import planning, requests, texts, waiting
from agiraph.core.store import dependencies, messages, nodes, stages, threads, waits
from agiraph.core.store.messages import MESSAGES
from agiraph.core.store.nodes import NODES
from agiraph.core.store.stages import STAGES
from agiraph.core.store.teams import TEAMS
from agiraph.core.store.tx import Tx

REMINDER = (
    "Not waiting yet: {name} waits for your answer to {id}, and what you want to wait for cannot "
    "end before. Send the answer as a message to {name}, then wait again. If you wait again "
    "without an answer, {name} decides without you."
)
UNANSWERED = (
    "[Runtime] {whom} gave no answer to {question}. Decide yourself, go on, and say in your result "
    "what you decided."
)
LATE = (
    "[Runtime] Nobody has answered in time. What you asked stays open in the person's inbox, and "
    "an answer reaches you as a message. Do not wait for it any longer: do what can be done "
    "without it, and submit what you have."
)
WAITING = (
    "[Runtime] You answered without calling a tool while this is still open: {what}. You now wait "
    "for it, at no cost, and go on when the first of it ends or is answered, or when a question, "
    "an urgent message or the person's word comes. Nothing is cancelled."
)


ENDED = (
    "[Not ended] What you gave away has ended: {tasks}. The results come as messages, and "
    "task_output shows them. Read them, then make this call again with a summary that holds what "
    "came of them."
)


def refuse_cycle(tx: Tx, lease: Lease, target: WorkNode) -> None:
    """Refuse a wait for this node if it would close a cycle.

    Locks the team's row: without it two transactions could each add half of a cycle.
    """
    # Held until the wait commits, so that the next transaction that looks for a cycle sees it.
    TEAMS.get(tx, target.team_id, lock=True)
    remind_or_release(tx, lease, [target.id])
    if dependencies.leads_to(tx, target.id, lease.node_id):
        raise Refused(
            f"{target.id} needs or waits for your own work, so neither would ever end. Go on "
            "without it, or submit what you have first."
        )


def questions_between(tx: Tx, lease: Lease, work: Iterable[NodeId]) -> list[Message]:
    """Return the questions to this agent that keep one of these nodes from ending."""
    nodes = list(work)
    return [
        question
        for question in messages.open_questions_to(tx, lease.agent_id)
        if question.node_id is not None
        and waits.on(tx, WaitingOn("reply", question.id))
        and any(dependencies.leads_to(tx, node, question.node_id) for node in nodes)
    ]


def remind_or_release(tx: Tx, lease: Lease, work: Iterable[NodeId]) -> None:
    """Settle what these nodes ask this agent, before the agent waits for them.

    Raise `AnswerFirst` with the question if the agent's thread holds no such reminder yet; else
    tell the node that asked to decide by itself. The caller holds the team's row lock.
    """
    for question in questions_between(tx, lease, work):
        if not _was_reminded(tx, lease, question):
            name = planning.name_of(tx, question.sender)
            asked = fence.enclose_words(
                texts.truncate(question.text, texts.REASON),
                thread=lease.thread_id,
                author=name,
                kind="a question",
            )
            told = f"{REMINDER.format(name=name, id=question.id)}\n{asked}"
            raise AnswerFirst(told, question.id)
        release_asker(tx, question)


def _was_reminded(tx: Tx, lease: Lease, question: Message) -> bool:
    return any(turn.reminds_of == question.id for turn in threads.turns(tx, lease.thread_id))


def release_asker(tx: Tx, question: Message) -> None:
    """End a teammate's wait for the answer to this question: it decides by itself."""
    messages.answer(tx, question.id)
    text = UNANSWERED.format(
        whom=planning.name_of(tx, question.recipient),
        question=texts.question_name(question.text),
    )
    waiting.settle(tx, WaitingOn("reply", question.id), text)


def open_waits(tx: Tx, lease: Lease, *, reply: int, remark: str = "") -> list[Turn]:
    """Open waits for all that is unfinished, for a node whose model replied in plain text.

    Return the turn that tells the agent so, with the `remark` behind it; nothing if there is
    nothing to wait for. `reply` is the number of that reply in the thread. The runner parks the
    node next; if it dies before that, the next claim finds the waits and parks the node.
    """
    append_at = threads.check_lease(tx, lease)
    # Two nodes that each begin to wait for the other would both find no cycle without this lock.
    TEAMS.get(tx, lease.team_id, lock=True)
    found = _open_children(tx, lease) | _answerable(tx, lease)
    if not found:
        return []
    text = WAITING.format(what=texts.join_limited(list(found.values()))) + remark
    return wait_in_words(tx, lease, append_at, found, reply=reply, text=text)


def wait_in_words(
    tx: Tx,
    lease: Lease,
    append_at: threads.AppendPoint,
    found: dict[WaitingOn, str],
    *,
    reply: int,
    text: str,
) -> list[Turn]:
    """Open these waits for a node whose model replied in plain text, and return the turn with the
    text that tells the agent so. A wait for people only has a time limit; other nodes end."""
    for waiting_on, what in found.items():
        # One call id for all of them: the first wait that ends drops
        # the others (`waits.drop_call`).
        waits.open(tx, lease, call_id=IN_WORDS, waiting_on=waiting_on, reason=what)
    if all(on.is_for_person for on in found):
        team = TEAMS.get(tx, lease.team_id)
        ends = [requests.ends_at(team, MESSAGES.get(tx, MessageId(on.id))) for on in found]
        if first := min((end for end in ends if end is not None), default=None):
            timer = new_id("timer")
            late = WaitingOn("time", timer)
            waits.open(tx, lease, call_id=IN_WORDS, waiting_on=late, reason=LATE)
            waits.set_timer(tx, Timer("wait", timer), first)
    _, turn = threads.append(
        tx, append_at, node_id=lease.node_id, role="user", ref=f"{WAITS}:{reply}", text=text
    )
    return [turn]


def has_waited(tx: Tx, lease: Lease, asked: Message) -> bool:
    """Return whether the person's time for answering a question is over. The work then goes on
    without the answer."""
    end = requests.ends_at(TEAMS.get(tx, lease.team_id), asked)
    return end is not None and end <= tx.now


def pending_look(tx: Tx, lease: Lease) -> Pending | None:
    """Return a wait for the first of the node's unfinished work that ends, for a call that only
    looks how the work stands; None if nothing is open.

    Locks the team's row, as every verb that opens waits between nodes does.
    """
    TEAMS.get(tx, lease.team_id, lock=True)
    found = _open_children(tx, lease) or _answerable(tx, lease)
    if not found:
        return None
    first, *others = found
    return Pending(first, texts.join_limited(list(found.values())), or_on=tuple(others))


def held_by(tx: Tx, lease: Lease) -> list[WorkNode]:
    """Return the open tasks below a node that can end before it does, for a call that would end it.

    Locks the team's row, as every verb that opens waits between nodes does, and the tasks. Raises
    `Refused` if a worker on them waits for an answer of this agent.
    """
    threads.check_lease(tx, lease)
    TEAMS.get(tx, lease.team_id, lock=True)
    remind_or_release(tx, lease, [task.id for task in nodes.open_below(tx, lease.node_id)])
    # Locked: none may end between this check and the commit of a wait for it.
    found = [NODES.get(tx, t.id, lock=True) for t in nodes.open_below(tx, lease.node_id)]
    return [t for t in found if not t.status.is_final and _will_end(tx, lease.node_id, t)]


def wait_for_tasks(tx: Tx, lease: Lease) -> Answer:
    """Return the wait for all open tasks of the node, for a call that would end it; if the last of
    them has just ended, the answer that says so."""
    if tasks := held_by(tx, lease):
        what = texts.join_limited([repr(texts.title_of(task)) for task in tasks], by=", ")
        return Pending(WaitingOn("tasks", lease.node_id), f"the end of {what}")
    return Done(_told_ends(tx, lease.node_id), failed=True)


def end_wait_for_tasks(tx: Tx, ended: WorkNode) -> None:
    """Answer the call that waits for the tasks above an ended node, if no other can end.

    The reports of the ends are messages, so a wait that somebody interrupts loses none of them.
    """
    above = None if ended.parent_id is None else NODES.get(tx, ended.parent_id)
    while above is not None and above.status is NodeStatus.PARTIAL and above.parent_id is not None:
        above = NODES.get(tx, above.parent_id)
    if above is None or not waits.on(tx, WaitingOn("tasks", above.id)):
        return
    # Two tasks may end at the same time. Without the lock each would count the other as open.
    NODES.get(tx, above.id, lock=True)
    if not any(_will_end(tx, above.id, task) for task in nodes.open_below(tx, above.id)):
        text = _told_ends(tx, above.id)
        waiting.settle(tx, WaitingOn("tasks", above.id), text, failed=True)


def _told_ends(tx: Tx, node_id: NodeId) -> str:
    tasks = [child for child in nodes.children(tx, node_id) if not child.is_step]
    told = [f"{texts.title_of(each)!r} ({each.id}): {each.status}" for each in tasks]
    return ENDED.format(tasks=texts.join_limited(told[::-1]))


def open_task_ids(tx: Tx, lease: Lease) -> list[NodeId]:
    """Return the ids of the node's delegated tasks that have not ended."""
    return [child.id for child in nodes.children(tx, lease.node_id) if not child.status.is_final]


def awaited_ids(tx: Tx, lease: Lease) -> list[NodeId]:
    """Return the ids of the work that the node waits for in words: its delegated tasks that have
    not ended, and the work of the teammates whom it has asked."""
    asked = [on for on in _open_questions(tx, lease) if on.kind == "reply"]
    recipients = [MESSAGES.get(tx, MessageId(on.id)).recipient for on in asked]
    at_work = [node for agent in recipients for node in nodes.open_of(tx, AgentId(agent))]
    return [*open_task_ids(tx, lease), *(node.id for node in at_work)]


def _open_children(tx: Tx, lease: Lease) -> dict[WaitingOn, str]:
    """Return the waits for delegated nodes that have not ended, each with its name for people.

    A child in a running stage is waited for through the stage, which has a time limit.
    """
    found: dict[WaitingOn, str] = {}
    for child in nodes.children(tx, lease.node_id):
        if child.status.is_final:
            continue
        # Locked: it must not end between this check and the commit of the wait.
        child = NODES.get(tx, child.id, lock=True)
        if child.status.is_final or not _will_end(tx, lease.node_id, child):
            continue
        stage = None if child.stage_id is None else STAGES.get(tx, child.stage_id)
        if stage is not None and _can_wait_for_stage(tx, lease, stage):
            found[WaitingOn("stage", stage.id)] = f"stage {stage.name!r}"
        else:
            found[WaitingOn("node", child.id)] = f"{texts.title_of(child)} ({child.id})"
    return found


def _can_wait_for_stage(tx: Tx, lease: Lease, stage: Stage) -> bool:
    """Whether this is a running stage of the node, and no task in it needs the node to go on."""
    if stage.status != "running" or stage.node_id != lease.node_id:
        return False
    members = [node for node in stages.nodes(tx, stage.id) if not node.status.is_final]
    return not any(dependencies.leads_to(tx, node.id, lease.node_id) for node in members)


def _will_end(tx: Tx, node_id: NodeId, child: WorkNode) -> bool:
    """Whether a child can end without another step of the node that waits for it."""
    if dependencies.leads_to(tx, child.id, node_id):
        return False
    if child.status is not NodeStatus.PENDING:
        return True
    if planning.is_ready(tx, child):
        child = planning.assign_ready(tx, child)
    if child.status is not NodeStatus.PENDING:
        return True
    # A pending child without open dependencies needs its creator's decision or a free worker.
    needs = [needed for needed in dependencies.needs(tx, child.id) if not needed.status.is_final]
    return bool(needs) and all(_will_end(tx, node_id, needed) for needed in needs)


def _answerable(tx: Tx, lease: Lease) -> dict[WaitingOn, str]:
    """Return the waits for the node's open questions, without those to a teammate whose work needs
    this node to go on."""
    return {
        on: what for on, what in _open_questions(tx, lease).items() if _will_answer(tx, lease, on)
    }


def _will_answer(tx: Tx, lease: Lease, on: WaitingOn) -> bool:
    if on.kind != "reply":
        return True
    asked = nodes.open_of(tx, AgentId(MESSAGES.get(tx, MessageId(on.id)).recipient))
    return not asked or not all(dependencies.leads_to(tx, n.id, lease.node_id) for n in asked)


def _open_questions(tx: Tx, lease: Lease) -> dict[WaitingOn, str]:
    """Return the waits for the unanswered questions and requests of the node, to people and
    teammates. Those to people whose time for an answer is over are left out."""
    found: dict[WaitingOn, str] = {}
    for asked in messages.of_node(tx, lease.node_id):
        if asked.sender != lease.agent_id or asked.answered_at is not None:
            continue
        if is_person(asked.recipient) and has_waited(tx, lease, asked):
            continue
        if asked.kind == "question":
            kind = "answer" if is_person(asked.recipient) else "reply"
            found[WaitingOn(kind, asked.id)] = texts.question_name(asked.text)
        elif asked.way_out is not None and asked.call is not None:
            found[WaitingOn("approval", asked.id)] = f"the request {asked.id} ({asked.call.name})"
    return found
