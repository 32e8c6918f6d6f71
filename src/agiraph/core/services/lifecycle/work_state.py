"""Work state: what the prompt of a reply to a person shows of the work and the conversation.

Every line is made from rows when the reply begins: which work is open, what it did last, what has
ended with which result, what is asked of the person and what comes next. Untrusted text in a line
carries its label; `domain.prompt_lines` decides how it is shown.

The newest messages are shown. What is older stands in a summary, which a node in the reflection
lane writes after the reply: the person does not wait for it, its cost is booked as any other, and
after a crash the node is claimed again. Until it is written, the older messages stand in the prompt
as single lines.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from agiraph.core.domain.agents import Agent
from agiraph.core.domain.chat import Lease, Turn
from agiraph.core.domain.ids import SYSTEM, NodeId, PersonId, ThreadId
from agiraph.core.domain.messages import Message
from agiraph.core.domain.outcomes import Finished
from agiraph.core.domain.persons import is_person
from agiraph.core.domain.provenance.labels import CLEAN, Label
from agiraph.core.domain.records.doubts import sentences
from agiraph.core.domain.text import quotations
from agiraph.core.domain.text.fence import LOOK, Line, one_line, without_fences
from agiraph.core.domain.times import moments
from agiraph.core.domain.work import Budget, NodeStatus, StopReason, WorkNode, told_person
from agiraph.core.domain.work_kinds import CONVERSATION_SUMMARY
from agiraph.core.services.board import planning, texts
from agiraph.core.services.board.confided import Confided
from agiraph.core.services.board.feature_verbs import verbs_of
from agiraph.core.services.lifecycle import endings
from agiraph.core.services.mail import bus
from agiraph.core.services.triggers import promises
from agiraph.core.services.triggers.promises import Promise
from agiraph.core.store import messages, nodes, spend, teams, threads, triggers
from agiraph.core.store.lists import team_threads
from agiraph.core.store.threads import SUMMARIES, ConversationSummary
from agiraph.core.store.triggers import Trigger
from agiraph.core.store.tx import Tx
from agiraph.redaction import mask_secrets

OPEN = 10
"""Pieces of open work that a person is told of."""
ENDED, OWN_ENDED = 5, 3
"""Pieces of work that have ended lately and are shown with their result, and how many of them at
most are the agent's own."""
RESULT_CHARACTERS, RESULT_AT_WORK = 600, 3000
"""Characters of a result in a reply's prompt, and in that of new work that may build on it."""
STEPS = 3
"""Last steps of each piece of work that runs or waits."""
TAIL_TURNS, TAIL_CHARACTERS = 14, 300
"""Turns of each such thread that are read, and characters of each."""
DIGEST_CHARACTERS = 3000
"""Characters of the record of the agent's own work."""
EXCHANGE, RESULTS, READ, SAID_CHARACTERS = 4, 2, 20, 1000
"""Messages of the last exchange and results that new work is shown, messages that are read for it,
and characters of each."""
ROOTS = 3
"""Pieces of work whose budget is shown."""
AHEAD = 3
"""Triggers that are shown."""
_ORDER = (NodeStatus.RUNNING, NodeStatus.WAITING, NodeStatus.ASSIGNED, NodeStatus.PENDING)
SHOWN = 30
"""The newest messages, which a reply shows as they are."""
FULL = 20
"""Older messages without a summary; with so many, one is written."""
READ_FOR_SUMMARY = SHOWN + 2 * FULL
"""Messages that are read of a conversation."""
MOST_SUMMARISED = 300
"""Messages that one summary adds; of a longer conversation from before there were summaries, the
newest ones."""
SUMMARY_TASK = "Write the summary of the older part of your conversation with the person."
SUMMARY_TURNS = 3
SUMMARY_CHARACTERS = 3000
"""Characters of a summary."""


class WorkState(NamedTuple):
    """The sections of a reply's prompt about the work, the most important line first."""

    now: list[Line]
    own: list[Line]
    """What the agent itself did last, with the results."""
    lately: list[Line]
    """What others of the team did last."""
    asked: list[Line]
    ahead: list[Line]


def of_team(tx: Tx, agent: Agent, *, since: datetime | None = None) -> WorkState:
    """Return the state of the work of an agent's team; what has changed after `since` is marked.

    The agent's own work comes first. A worker is shown the work of the whole team, too: the person
    may ask it about what others did. The parts of a research are not listed: the line of the job
    stands for them. What people wrote to others alone is left out.
    """
    confided = Confided(tx, agent)
    found = _of_team(tx, agent, since)
    return WorkState(
        *([line._replace(text=confided.hide(line.text)) for line in lines] for lines in found)
    )


def _of_team(tx: Tx, agent: Agent, since: datetime | None) -> WorkState:
    still_open, own, others = _work(tx, agent)
    tails = team_threads.tails(tx, agent.team_id, turns=TAIL_TURNS, characters=TAIL_CHARACTERS)
    view = _view(tx, agent, [*own, *others], since)
    return WorkState(
        now=[
            *_budget_lines(tx, still_open),
            *_open_lines(view, still_open, agent, tails),
            *(line for node in still_open for line in verbs_of(node).state_lines(tx, node)),
        ],
        own=[_ended_line(view, node) for node in own],
        lately=[_ended_line(view, node) for node in others],
        asked=[_question_line(tx, view, m) for m in messages.open_questions(tx, agent.team_id)],
        ahead=_ahead(tx, agent),
    )


def said_before(tx: Tx, agent: Agent, node: WorkNode, thread: str) -> list[Line]:
    """Return what an agent ended last, and the last exchange before a person's message became this
    node: *make it shorter* says nothing without them. Empty for other work."""
    person_id = PersonId(node.creator_id)
    if node.source != "user" or node.is_goal or not is_person(person_id):
        return []
    asked = messages.of_node(tx, node.id)
    first = asked[0].id if asked else ""
    said = messages.lately(tx, agent.team_id, agent.id, person_id, limit=READ, before=first)
    spoken = [
        m
        for m in said
        if m.kind in ("message", "nudge", "question", "answer")
        and m.edited_by is None
        and bus.thread_text(tx, m, m.id) not in node.task  # the task itself is not said before
    ][-EXCHANGE:]
    ended = [n for n in nodes.ended_of(tx, agent, limit=RESULTS) if n.id != node.id]
    view = _view(tx, agent, ended) if ended else None
    lines = [
        _ended_line(view, n, is_at_work=True) for n in ended if view and n.is_work and n.result
    ]
    return [*(_said_line(message, thread) for message in spoken), *lines]


def _said_line(message: Message, thread: str) -> Line:
    if is_person(message.sender):
        words = quotations.enclose_quoted(message.text, thread=thread, longest=SAID_CHARACTERS)
        return Line(f"- Human: {words}", message.label, "- Human: a message with words of others")
    words = texts.truncate(one_line(message.text), SAID_CHARACTERS)
    return Line(f"- You: {words}", message.label, "- You: words that repeat what others wrote")


def for_person(tx: Tx, agent: Agent) -> str:
    """Return how the work of an agent's team stands in words for a person: without ids, and without
    words of strangers, for which the text would need their label."""
    still_open, own, others = _work(tx, agent)
    view = _view(tx, agent, [*own, *others])
    asked = messages.open_questions(tx, agent.team_id)
    asking = {question.node_id for question in asked}
    told: list[str] = []
    for node in [*still_open[:OPEN], *own, *others]:
        is_clean = not view.label(node)
        name = texts.subject_of(node) if is_clean else "a task"
        told.append(f"- {name}: {view.who(node)}, {_since(view, node)}")
        if is_clean and (more := _outcome_of(node, is_asking=node.id in asking)):
            told.append(f"  {more}")
    for question in asked:
        words = "it is in your inbox" if question.label else one_line(question.text)
        told.append(f"- {planning.name_of(tx, question.sender)} waits for you: {words}")
    return "\n".join(told)


def _since(view: "_View", node: WorkNode) -> str:
    if node.ended_at is not None:
        return f"{node.status} {age(view.now - node.ended_at)} ago"
    return f"{node.status} for {age(view.now - (node.started_at or node.created_at))}"


def _outcome_of(node: WorkNode, *, is_asking: bool) -> str:
    """Return what came of a piece of work, or what it waits for unless that is its question."""
    if not node.status.is_final:
        told = told_person(node.waiting_reason or "") or node.checkpoint or ""
        return "" if is_asking else one_line(told)
    said = texts.truncate(one_line(node.result or ""), RESULT_CHARACTERS)
    why = "" if node.status is NodeStatus.COMPLETED or not node.stop_reason else node.stop_reason
    doubts = f"Not confirmed: {'; '.join(sentences(node.doubts))}" if node.doubts else ""
    return ". ".join(filter(None, (why and why.words, said.rstrip("."), doubts)))


def _work(tx: Tx, agent: Agent) -> tuple[list[WorkNode], list[WorkNode], list[WorkNode]]:
    """Return the open work of an agent's team, what the agent itself ended lately, and others."""
    still_open = sorted(nodes.still_open(tx, agent.team_id), key=lambda n: _rank(n, agent))
    own = nodes.ended_of(tx, agent, limit=OWN_ENDED)
    return still_open, own, nodes.ended_of_others(tx, agent, limit=ENDED - len(own))


def _view(
    tx: Tx, agent: Agent, ended: Sequence[WorkNode], since: datetime | None = None
) -> "_View":
    earliest = min((n.ended_at for n in ended if n.ended_at), default=tx.now)
    labels = team_threads.labels(tx, agent.team_id, ended_since=earliest)
    names: dict[str, str] = {member.id: member.name for member in teams.everyone(tx, agent.team_id)}
    return _View(tx.now, since, labels, names)


class _View(NamedTuple):
    """What the lines need to know besides the rows they are about."""

    now: datetime
    since: datetime | None
    labels: Mapping[NodeId, Label]
    names: Mapping[str, str]

    def who(self, node: WorkNode) -> str:
        return "nobody yet" if node.assignee_id is None else self.names[node.assignee_id]

    def label(self, node: WorkNode) -> Label:
        return node.label | self.labels.get(node.id, CLEAN)

    def is_new(self, moment: datetime | None) -> bool:
        return self.since is not None and moment is not None and moment >= self.since


def _rank(node: WorkNode, agent: Agent) -> tuple[bool, int, str]:
    return node.assignee_id != agent.id, _ORDER.index(node.status), node.id


def _open_lines(
    view: _View,
    still_open: Sequence[WorkNode],
    agent: Agent,
    tails: Mapping[ThreadId, Sequence[Turn]],
) -> list[Line]:
    lines: list[Line] = []
    has_record = False
    for node in still_open:
        tail = () if node.thread_id is None else tails.get(node.thread_id, ())
        is_own = bool(tail) and node.assignee_id == agent.id and not has_record
        lines.append(_open_line(view, node, () if is_own else tail))
        if is_own:
            has_record = True
            lines.append(_record_line(view, node, tail))
    return lines


def _open_line(view: _View, node: WorkNode, tail: Sequence[Turn]) -> Line:
    began = node.started_at or node.created_at
    state = f"{node.status} for {age(view.now - began)}"
    new = " (new)" if view.is_new(node.created_at) else ""
    told = [f"- {texts.subject_of(node)} ({node.id}): {view.who(node)}, {state}{new}"]
    if node.waiting_reason:
        told.append(f"  waits: {texts.truncate(one_line(node.waiting_reason), texts.REASON)}")
    if node.checkpoint:
        told.append(f"  last checkpoint: {texts.truncate(one_line(node.checkpoint), 400)}")
    if steps := _steps(tail, STEPS):
        told.append("  last steps: " + "; ".join(steps))
    plain = f"- a task of {view.who(node)} ({node.id}): {state}{new}; {LOOK.format(id=node.id)}"
    return Line("\n".join(told), view.label(node), plain)


_REPORT = 'read_report("{id}") has all'
_TASK_OUTPUT = 'task_output("{id}") shows it whole'


def _record_line(view: _View, node: WorkNode, tail: Sequence[Turn]) -> Line:
    """Return a line on the agent's own last steps, with more detail than those of others."""
    told = _steps(tail, TAIL_TURNS)
    while told and sum(map(len, told)) > DIGEST_CHARACTERS:
        told.pop(0)
    text = "\n".join(f"  - {step}" for step in told)
    return Line(f"  What you did last in {node.id}:\n{text}" if told else "", view.label(node))


def _steps(tail: Sequence[Turn], most: int) -> list[str]:
    """Return the last calls and words of a thread, one line each, oldest first."""
    answers = {turn.ref: turn for turn in tail if turn.role == "tool"}
    steps: list[str] = []
    for turn in tail:
        if turn.role != "assistant":
            continue
        if turn.text.strip() and not turn.calls:
            steps.append(f"said: {texts.truncate(one_line(turn.text), 160)}")
        for call in turn.calls:
            subject = texts.truncate(one_line(str(next(iter(call.arguments.values()), ""))), 80)
            answer = answers.get(call.id)
            came = "under way" if answer is None else _outcome(answer)
            steps.append(f"{call.name}({subject}) → {came}")
    return steps[-most:]


def _outcome(answer: Turn) -> str:
    said = texts.truncate(one_line(without_fences(answer.text)), 120)
    return f"failed: {said}" if answer.failed else said


def _ended_line(view: _View, node: WorkNode, *, is_at_work: bool = False) -> Line:
    assert node.ended_at is not None
    new = "NEW since your last message: " if view.is_new(node.ended_at) else ""
    state = f"{node.status} {age(view.now - node.ended_at)} ago"
    told = [f"- {new}{texts.subject_of(node)} ({node.id}): {view.who(node)}, {state}"]
    if node.result:
        most = RESULT_AT_WORK if is_at_work else RESULT_CHARACTERS
        all_of_it = (_TASK_OUTPUT if is_at_work else _REPORT).format(id=node.id)
        whole = f" … ({all_of_it})" if len(node.result) > most else ""
        told.append(f"  result: {one_line(node.result[:most])}{whole}")
    elif node.stop_reason is not None:
        told.append(f"  no result: {node.stop_reason.words}")
    if node.manifest:
        told.append(f"  files: {texts.join_limited(sorted(node.manifest), ', ')}")
    if node.doubts:
        told.append(f"  not confirmed: {texts.not_confirmed(node)}")
    look = (_TASK_OUTPUT if is_at_work else LOOK).format(id=node.id)
    plain = f"- {new}a task of {view.who(node)} ({node.id}): {state}; {look}"
    return Line("\n".join(told), view.label(node), plain)


def _question_line(tx: Tx, view: _View, asked: Message) -> Line:
    who, since = planning.name_of(tx, asked.sender), age(view.now - asked.created_at)
    if asked.kind == "approval":
        tool = "a call" if asked.call is None else asked.call.name
        about = f"wants approval for {tool}; only the card in their inbox approves it"
        return Line(f"- {asked.id}, {who}, {since} ago: {about}")
    told = f"- {asked.id}, {who}, {since} ago: {texts.truncate(one_line(asked.text), texts.REASON)}"
    if asked.options:
        told += " Options: " + ", ".join(f"{n}. {o}" for n, o in enumerate(asked.options, start=1))
    plain = f"- {asked.id}, {who}, {since} ago: a question; it stands in their inbox"
    return Line(told, asked.label, plain)


def _budget_lines(tx: Tx, still_open: Iterable[WorkNode]) -> list[Line]:
    """Return what the outermost open work has spent of its limits."""
    roots = [node for node in still_open if node.parent_id is None and node.payer_id is None]
    return [line for node in roots[:ROOTS] if (line := _budget_line(tx, node)) is not None]


def _budget_line(tx: Tx, node: WorkNode) -> Line | None:
    budget = node.budget
    limited = (budget.usd, budget.tokens, budget.model_calls)
    used = spend.total(tx, node.id)
    if limited == (None, None, None) and not used.calls:
        return None
    parts = [f"${used.usd:.2f}" + ("" if budget.usd is None else f" of ${budget.usd:.2f}")]
    if budget.tokens is not None:
        parts.append(f"{used.tokens:,} of {budget.tokens:,} tokens")
    if budget.model_calls is not None:
        parts.append(f"{used.calls} of {budget.model_calls} model calls")
    return Line(f"- {node.id} has spent {', '.join(parts)}.")


def _ahead(tx: Tx, agent: Agent) -> list[Line]:
    """Return what the agent has promised, and the next triggers of its team."""
    lines = [_promise_line(tx, made) for made in promises.open_of_agent(tx, agent.id)]
    zone = teams.zone_of_team(tx, agent.team_id)
    due = (t for t in triggers.active_of_team(tx, agent.team_id) if t.due_at and not t.promised_to)
    for trigger in sorted(due, key=_due)[:AHEAD]:
        what = one_line(str(trigger.payload.get("task") or trigger.type))
        due_at = moments.local(_due(trigger), zone)
        at = f"- {due_at:%d %b %H:%M} {due_at.tzinfo} ({trigger.id}): "
        lines.append(Line(at + texts.truncate(what, 200), trigger.label, f"{at}{trigger.type}"))
    return lines


def _due(trigger: Trigger) -> datetime:
    assert trigger.due_at is not None
    return trigger.due_at


def _promise_line(tx: Tx, promise: Promise) -> Line:
    plain = promises.as_line(tx, promise._replace(what="something that list_triggers shows"))
    return Line(promises.as_line(tx, promise), promise.trigger.label, plain)


def age(since: timedelta) -> str:
    """Return a length of time in words, such as *12 min*."""
    minutes = max(int(since.total_seconds() // 60), 0)
    if minutes < 1:
        return "less than a minute"
    if minutes < 120:
        return f"{minutes} min"
    return f"{minutes // 60} h" if minutes < 48 * 60 else f"{minutes // (24 * 60)} days"


class History(NamedTuple):
    """A conversation as a reply sees it."""

    summary: ConversationSummary | None
    older: list[Message]
    """Messages between the summary and the newest ones."""
    newest: list[Message]

    @property
    def is_full(self) -> bool:
        """Whether so many older messages are in no summary that one should be written.

        Messages of which a summary was asked for do not count again: a model that writes none is
        asked anew after as many further messages, not after each reply.
        """
        asked = "" if self.summary is None else self.summary.next_upto
        return sum(message.id > asked for message in self.older) >= FULL


def history(tx: Tx, agent: Agent, person_id: PersonId, *, without: NodeId) -> History:
    """Return the conversation of an agent and a person, without what this reply answers."""
    found = threads.summary_of(tx, agent.id, person_id)
    said = messages.lately(tx, agent.team_id, agent.id, person_id, limit=READ_FOR_SUMMARY)
    known = "" if found is None else found.upto
    read = [m for m in said if m.reply_id != without and not m.is_withdrawn]
    fresh = [m for m in read if not _is_repeated(m, said)]
    newest = fresh[-SHOWN:]
    return History(found, [m for m in fresh[:-SHOWN] if m.id > known], newest)


def _is_repeated(message: Message, said: Sequence[Message]) -> bool:
    """Whether an answer repeats a message of the person: one that a reply gave to the question."""
    if message.kind != "answer":
        return False
    return any(m.text == message.text and m.reply_id is not None for m in said)


def queue_summary(tx: Tx, agent: Agent, person_id: PersonId, *, upto: str) -> None:
    """Create the node that writes the next summary, unless one is open. The caller holds the
    agent's row lock."""
    key = threads.summary_key(agent.id, person_id)
    found = SUMMARIES.find(tx, key, lock=True)
    if found is not None and nodes.is_open(tx, found.node_id):
        return
    node = planning.create(
        tx,
        team_id=agent.team_id,
        task=SUMMARY_TASK,
        title="Summarise the conversation",
        source="self",
        creator_id=SYSTEM,
        assignee_id=agent.id,
        budget=Budget(turns=SUMMARY_TURNS),
        kind=CONVERSATION_SUMMARY,
    )
    if found is None:
        made = ConversationSummary(
            id=key,
            team_id=agent.team_id,
            agent_id=agent.id,
            person_id=person_id,
            updated_at=tx.now,
            node_id=node.id,
            next_upto=upto,
        )
        SUMMARIES.insert(tx, made)
    else:
        SUMMARIES.update(tx, key, node_id=node.id, next_upto=upto)


def to_summarise(tx: Tx, node_id: NodeId) -> tuple[ConversationSummary, list[Message]] | None:
    """Return the row that a node writes, and the messages that its summary adds; None if the node
    writes no summary."""
    found = threads.summary_of_node(tx, node_id)
    if found is None:
        return None
    said = messages.between(
        tx,
        found.team_id,
        found.agent_id,
        found.person_id,
        after=found.upto,
        upto=found.next_upto,
        limit=MOST_SUMMARISED,
    )
    return found, [m for m in said if not m.is_withdrawn]


def store_summary(tx: Tx, lease: Lease, text: str, *, label: Label) -> None:
    """Store the summary that a node has written, and end the node, in one transaction."""
    threads.check_lease(tx, lease)
    found = threads.summary_of_node(tx, lease.node_id)
    if found is not None:
        SUMMARIES.update(
            tx,
            found.id,
            text=mask_secrets(text.strip())[:SUMMARY_CHARACTERS],
            upto=found.next_upto,
            label=label,
            updated_at=tx.now,
        )
    endings.end_node(tx, lease, Finished("Summarised.", StopReason.FINISHED))
