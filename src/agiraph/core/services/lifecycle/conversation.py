"""Conversation: reply to a person at once, and turn the request into work where needed."""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple, TypedDict, Unpack

from agiraph.core.domain import work_kinds
from agiraph.core.domain.agents import Agent
from agiraph.core.domain.chat import Attachment, Lease
from agiraph.core.domain.errors import NotFound, Refused
from agiraph.core.domain.ids import SYSTEM, AgentId, MessageId, NodeId, PersonId
from agiraph.core.domain.messages import MOST_ATTACHMENTS, Draft, Message
from agiraph.core.domain.outcomes import Failed, Finished
from agiraph.core.domain.persons import is_person
from agiraph.core.domain.provenance.labels import CLEAN, Label, join
from agiraph.core.domain.records.acts import Act
from agiraph.core.domain.text import quotations
from agiraph.core.domain.text.fence import enclose
from agiraph.core.domain.tools import WorkDecision
from agiraph.core.domain.value import value
from agiraph.core.domain.work import Budget, Queue, WorkNode
from agiraph.core.services.board import leases, planning, texts, waiting
from agiraph.core.services.board.feature_verbs import KindVerbs
from agiraph.core.services.board.texts import first_line, join_limited, truncate
from agiraph.core.services.lifecycle import endings, routing, work_state
from agiraph.core.services.lifecycle.teams import reactivate
from agiraph.core.services.mail import bus, deliveries, edits
from agiraph.core.store import messages, nodes, teams, threads
from agiraph.core.store.messages import MESSAGES
from agiraph.core.store.tx import Tx

NO_REPLY = "I have your message, but something went wrong while I answered it: {why}"
FILE_NAME = 60
"""Characters of a file's name in a title."""
TURNS = 8
"""Turns that a reply may take, including those in which it looks something up."""


class MessagePart(NamedTuple):
    """What a part of a person's message asks for, if no call of the reply has said it."""

    what: WorkDecision
    id: str
    """Of the work or the question that it is about."""
    words: str


class Saying(TypedDict, total=False):
    """How a person says something to an agent."""

    client_id: str | None
    nudge: bool
    attachments: tuple[Attachment, ...]
    label: Label
    edits: MessageId | None
    stops_work: bool


def say(
    tx: Tx,
    agent_id: AgentId,
    text: str,
    *,
    person_id: PersonId,
    said_to: AgentId | None = None,
    **how: Unpack[Saying],
) -> Message:
    """Send a person's message to an agent and make sure that a reply node answers it.

    A nudge gets no reply: the agent hears it in its work. The agent's row lock keeps the message
    from arriving between an agent's last yield point and the end of its node. Files may come
    without words. `said_to` is the agent in whose conversation the person mentioned this one.
    `edits` is the message to this agent that it takes the place of, with its files; `stops_work`
    stops the work that was begun for that one.
    """
    client_id, nudge = how.get("client_id"), how.get("nudge", False)
    agent = teams.lock(tx, agent_id)
    team = teams.TEAMS.get(tx, agent.team_id)
    if team.status == "archived":
        raise Refused(f"Team {team.name!r} is archived; nobody there can receive messages.")
    answered = not nudge and agent.has_model
    # Under the agent's row lock: of two requests with the same client_id, the second finds the
    # message of the first and needs no reply of its own.
    is_new = client_id is None or messages.by_client(tx, team.id, client_id) is None
    files, reply_id = _taken_back(tx, person_id, how) if is_new else edits.NOTHING
    attachments = (*files, *how.get("attachments", ()))
    if files and len(attachments) > MOST_ATTACHMENTS:
        raise Refused(f"A message holds {MOST_ATTACHMENTS} files; the one before has {len(files)}.")
    if is_new and not answered:
        reactivate(tx, team.id)  # an idle agent begins with it at once
    elif is_new and reply_id is None:
        reply_id = _pending_reply(tx, agent, person_id).id
    sent = bus.send(
        tx,
        Draft(
            team_id=team.id,
            sender=person_id,
            recipient=agent.id,
            text=text if text.strip() or not attachments else words_for(attachments),
            kind="nudge" if nudge else "message",
            topic=None if said_to is None else "mention",
            ref=said_to,
            client_id=client_id,
            reply_id=reply_id,
            edits=how.get("edits"),
            attachments=attachments,
            label=how.get("label", CLEAN),
        ),
        sets_to_work=not answered,
    )
    if is_new and sent.edits:
        MESSAGES.update(tx, sent.edits, edited_by=sent.id)
    return sent


def _taken_back(tx: Tx, person_id: PersonId, how: Saying) -> edits.TakenBack:
    """Take back the message that a new one takes the place of, if there is one; stop the work that
    was begun for it if the person says so."""
    if not (edited := how.get("edits")):
        return edits.NOTHING
    taken = edits.take_back(tx, edited, nudge=how.get("nudge", False))
    work = edits.open_work(tx, MESSAGES.get(tx, edited)) if how.get("stops_work") else []
    for node in work:
        endings.stop(tx, node.id, by=person_id)
    return taken


def words_for(files: Sequence[Attachment]) -> str:
    """Return the text of a message that consists of files alone. It names no file, because the name
    of a file, like its content, may be somebody else's words."""
    return "(I send a file.)" if len(files) == 1 else f"(I send {len(files)} files.)"


def say_to_mentioned(
    tx: Tx,
    agent_id: AgentId,
    mentioned: Sequence[AgentId],
    text: str,
    *,
    person_id: PersonId,
    **how: Unpack[Saying],
) -> list[Message]:
    """Send a message that was written in one agent's conversation to the agents that it mentions.

    Each of them gets it once, as a message of the person; the agent of the conversation gets it
    only if it is mentioned too. The order of the ids is the order of the locks, and of the ids that
    make a repeated request harmless: the first message has `client_id` itself.
    """
    team_id = teams.AGENTS.get(tx, agent_id).team_id
    found = [teams.AGENTS.get(tx, one) for one in sorted(set(mentioned))]
    if strangers := [one.id for one in found if one.team_id != team_id]:
        raise Refused(f"{', '.join(strangers)} is not on this team; mention members of the team.")
    said: list[Message] = []
    client_id, edited = how.get("client_id"), how.get("edits")
    is_repeated = client_id is not None and messages.by_client(tx, team_id, client_id) is not None
    earlier = dict[AgentId, MessageId]()
    if edited and not is_repeated:
        earlier = edits.find(tx, agent_id, edited, mentioned, person_id=person_id)
    for place, one in enumerate(found):
        if client_id and place:
            how["client_id"] = f"{client_id}:{one.id}"
        how["edits"] = earlier.get(one.id)
        said_to = agent_id if one.id != agent_id else None
        said.append(say(tx, one.id, text, person_id=person_id, said_to=said_to, **how))
    return said


def _pending_reply(tx: Tx, agent: Agent, person_id: PersonId) -> WorkNode:
    """Return the pending reply node to this person, creating it if needed.

    Messages of one person that arrive before it starts are answered by the same reply.
    """
    pending = nodes.unbegun(tx, Queue(agent.id, "reply"))
    if pending is not None and planning.person_for(tx, pending) == person_id:
        return pending
    return planning.create(
        tx,
        team_id=agent.team_id,
        task="Answer the human.",
        title="Reply",
        source="user",
        creator_id=SYSTEM,
        assignee_id=agent.id,
        budget=Budget(turns=TURNS),
        kind=work_kinds.REPLY,
    )


def undecided_rest(
    tx: Tx, agent: Agent, reply_id: NodeId, decided: frozenset[WorkDecision], acts: Sequence[Act]
) -> str:
    """Return the words that no call of a reply is about; empty if open work hears them."""
    if _hearing(tx, agent):
        return ""
    return routing.left_over(tx, messages.to_answer(tx, reply_id), decided, acts)


@value
class ReplyCalls:
    """What the calls of a reply did."""

    decided: frozenset[WorkDecision] = frozenset()
    parts: Sequence[MessagePart] = ()
    """What it says of the parts of the message."""
    acts: Sequence[Act] = ()
    consulted: tuple[str, ...] = ()
    """What the agent looked up."""


NO_CALLS = ReplyCalls()


def end_reply(
    tx: Tx,
    lease: Lease,
    outcome: Finished | Failed,
    *,
    text: str,
    did: ReplyCalls = NO_CALLS,
    summarise_upto: str = "",
) -> None:
    """Send the reply and end its node; a request about which nothing was decided becomes work.

    What the reply's calls decided and did is done already; what it says of the parts of the message
    is done here. Every message reaches the agent's open work at its next yield point. Reply, new
    work and the reply node's end commit together. A summary is queued of the messages up to
    `summarise_upto`.
    """
    threads.check_lease(tx, lease)
    agent = teams.lock(tx, lease.agent_id)
    # Under the agent's lock its open work stays the same until the commit: no claim, end or
    # message of this agent comes in between.
    person_id = planning.person_for(tx, nodes.NODES.get(tx, lease.node_id))
    decided, acts, unheard = _decide(tx, agent, lease.node_id, did.parts, did.decided, did.acts)
    acts = routing.drop_told_to_stopped(acts)
    acts = routing.drop_said_before(tx, agent, lease.node_id, decided, acts)
    acts = _hand_on(tx, agent, lease.node_id, decided, acts, unheard)
    asked = messages.to_answer(tx, lease.node_id)
    reply = bus.send(
        tx,
        Draft(
            team_id=lease.team_id,
            sender=agent.id,
            recipient=person_id,
            text=text,
            node_id=lease.node_id,
            in_reply_to=asked[-1].id if asked else None,
            consulted=did.consulted,
            acts=tuple(acts),
        ),
        refusable=False,
    )
    own = bus.told_own(tx, agent.id, acts)
    if others := tuple(act for act in acts if act not in own):
        _tell_of_reply(tx, agent, asked, replace(reply, acts=others))
    if len(asked) > 1:  # `send` has queued it for the channel of the last one
        deliveries.queue_reply(tx, reply, [message.id for message in asked[:-1]])
    if summarise_upto:
        work_state.queue_summary(tx, agent, person_id, upto=summarise_upto)
    endings.end_node(tx, lease, outcome)


def _decide(
    tx: Tx,
    agent: Agent,
    reply_id: NodeId,
    parts: Sequence[MessagePart],
    decided: frozenset[WorkDecision],
    acts: Sequence[Act],
) -> tuple[frozenset[WorkDecision], list[Act], list[str]]:
    """Do what the parts of a message ask for; return all that is decided now, all acts, and the
    words of the parts that decide nothing because they name what does not exist."""
    done, unheard = [*acts], list[str]()
    for part in parts:
        try:
            match part.what:
                case "about_work":
                    found = routing.tell(tx, agent, reply_id, part.id, part.words).did
                case "stop":
                    found = routing.stop(tx, agent, reply_id, part.id).did
                case "answer":
                    answered = routing.answer(tx, agent, reply_id, part.id, part.words, acts=done)
                    found = answered.did
                case "new_work":
                    words = _task_words(tx, reply_id, part.words)
                    found = _started(start_work(tx, agent, reply_id, words))
                case "chat":
                    found = None
        except (Refused, NotFound):
            unheard.append(routing.passage(messages.to_answer(tx, reply_id), part.words))
            continue
        decided = decided.union((part.what,))
        done += [] if found is None else [found]
    return decided, done, unheard


def _hand_on(
    tx: Tx,
    agent: Agent,
    reply_id: NodeId,
    decided: frozenset[WorkDecision],
    acts: list[Act],
    unheard: Sequence[str],
) -> list[Act]:
    """Let the agent's open work hear the messages that a reply has answered; make work of them, or
    of the `unheard` parts of them, if there is none that could, and it should. Return all that was
    done."""
    asked = messages.to_answer(tx, reply_id)
    if asked and all(message.edited_by for message in asked):
        return acts  # what took their place has a reply of its own
    made = {message.node_id for message in asked}
    work = [node for node in _hearing(tx, agent) if node.id not in made]
    own = bus.told_own(tx, agent.id, acts)
    told = {act.about for act in own}.intersection(node.id for node in work)
    is_unheard = any(message.seen_at is None for message in asked)
    if is_unheard and own and not told:
        # The work that was told has ended meanwhile, without having heard it.
        acts, decided = [act for act in acts if act not in own], frozenset[WorkDecision]()
    if work and unheard and not told:
        decided = frozenset()
    if decided or not asked:
        if not work:
            left = routing.left_over(tx, asked, decided, acts) or "\n\n".join(unheard)
            if left:
                acts = [*acts, _started(start_work(tx, agent, reply_id, left))]
            routing.mark_heard(tx, asked)
            return acts
        if told:
            messages.set_hearer(tx, [m.id for m in asked], NodeId(next(iter(told))))
            waiting.interrupt(tx, agent.id, messages.to_answer(tx, reply_id))
        return acts  # what was not told is heard at the next yield point, and ends no wait
    hearer = work[0].id if work else _heard_in(tx, agent, asked)
    if hearer is None:
        return [*acts, _started(start_work(tx, agent, reply_id))]
    if work:
        waiting.interrupt(tx, agent.id, asked)
    words = "\n\n".join(message.text for message in asked)
    return [*acts, routing.told(agent, nodes.NODES.get(tx, hearer), agent.name, words)]


def _hearing(tx: Tx, agent: Agent) -> list[WorkNode]:
    """Return the agent's open work that still hears messages: it is not about to stop."""
    return [node for node in nodes.open_of(tx, agent.id) if not node.cancel_requested]


def _heard_in(tx: Tx, agent: Agent, asked: Sequence[Message]) -> NodeId | None:
    """Return the ended work that has read the last of these messages, if work has read them all:
    they are not done again."""
    if any(message.seen_at is None for message in asked):
        return None
    read = [threads.read_in(tx, agent.id, message.id, message.created_at) for message in asked]
    return read[-1][-1] if all(read) else None


def _started(node: WorkNode) -> Act:
    return Act(kind="started", about=node.id, name=texts.subject_of(node))


def _tell_of_reply(tx: Tx, agent: Agent, asked: Sequence[Message], reply: Message) -> None:
    """Tell the agent's open work that had read the messages before the reply what the reply did
    besides: what it told that work itself is still to be done there."""
    read = [message.id for message in asked if message.seen_at is not None]
    for node_id in {node for one in read for node in threads.open_with(tx, agent.id, one)}:
        told = bus.send(
            tx,
            Draft(
                team_id=agent.team_id,
                sender=SYSTEM,
                recipient=agent.id,
                kind="notice",
                text=bus.said_and_done(reply),
            ),
            refusable=False,
        )
        messages.set_hearer(tx, [told.id], node_id)


def _task_words(tx: Tx, reply_id: NodeId, words: str) -> str:
    """Return the part of a message that a task is made of; empty if it is all of the message."""
    asked = messages.to_answer(tx, reply_id)
    part = routing.passage(asked, words)
    return "" if part == routing.passage(asked, "") else part


def start_work(
    tx: Tx,
    agent: Agent,
    reply_id: NodeId,
    added: str = "",
    *,
    label: Label = CLEAN,
    earlier: WorkNode | None = None,
) -> WorkNode:
    """Create a node for the agent from what a person asked in the messages of this reply.

    In a clean reply the agent may say it in its own words, `added`. In a labelled one the person's
    words are the task, and what the agent adds stands behind them in a fence, with the reply's
    label; with nothing added the node is as clean as the messages are. The agent has then seen
    these messages, and the node takes over their attachments.

    With `earlier`, the node goes on in the thread of that ended node, with the agent that did it.
    An agent that was hired for one task goes on in the thread of that task.
    """
    person_id = planning.person_for(tx, nodes.NODES.get(tx, reply_id))
    asked = messages.to_answer(tx, reply_id)
    unseen = [message for message in asked if message.seen_at is None]
    if not _hearing(tx, agent):  # else its open work hears them, too
        messages.mark_seen(tx, [message.id for message in unseen])
    reactivate(tx, agent.team_id)
    said = [message.text for message in asked]
    if not added.strip() or (label and _adds_nothing(added, said)):
        added, label = "", CLEAN
    heard = asked if added else unseen or asked
    earlier = earlier or leases.last_task(tx, agent)
    node = planning.create(
        tx,
        team_id=agent.team_id,
        task=_task(agent, heard, added, label),
        title=first_line(added) if added and not label else _title(heard),
        source="user",
        creator_id=person_id,
        assignee_id=agent.id if earlier is None else earlier.assignee_id,
        label=label | join(message.label for message in asked),
    )
    if earlier is not None:
        said = unsaid(tx, node.task, asked, earlier.thread_id or "")
        giver = planning.name_of(tx, person_id)
        leases.continue_thread(tx, earlier, node, giver=giver, said=said)
    for message in asked:
        MESSAGES.update(tx, message.id, node_id=node.id)
    return node


def unsaid(tx: Tx, task: str, asked: Sequence[Message], thread: str) -> list[str]:
    """Return those of a person's messages, as text for a thread, that a task does not hold: an
    agent's own words for them may leave something out."""
    told: list[str] = []
    for message in asked:
        words = quotations.enclose_quoted(message.text, thread=message.id)
        is_held = any(f"\n\n{said}\n\n" in f"\n\n{task}\n\n" for said in (message.text, words))
        is_mail = bus.thread_text(tx, message, message.id) in task
        if is_person(message.sender) and not (is_held or is_mail):
            words = quotations.enclose_quoted(message.text, thread=thread)
            told.append(f"[Message from {planning.name_of(tx, message.sender)}] {words}")
    return told


def _title(heard: Sequence[Message]) -> str:
    """Return the first line of the messages; if the first is files with hardly a letter, such as
    a dot, the files' names."""
    files = next((message.attachments for message in heard), ())
    if not files or not (heard[0].text == words_for(files) or _is_wordless(heard[0].text)):
        return first_line("\n\n".join(message.text for message in heard))
    names = join_limited([_file_name(file) for file in files], ", ")
    return first_line(f"{'File' if len(files) == 1 else 'Files'}: {names}")


def _is_wordless(text: str) -> bool:
    """Whether a text has fewer than two letters or digits."""
    return sum(character.isalnum() for character in text) < 2


def _file_name(file: Attachment) -> str:
    """Return a file's name for a title, with `_` for what could pass for more than a name.

    A name is not the person's word, and a title may stand outside a fence.
    """
    plain = "".join(c if c.isalnum() or c in "._-() " else "_" for c in file.name)
    return truncate(" ".join(plain.split()), FILE_NAME) or "unnamed"


def _adds_nothing(added: str, said: Sequence[str]) -> bool:
    """Whether what an agent adds to a person's messages stands in them already."""
    whole = "\n\n".join(said)
    return quotations.is_same(added, whole) or quotations.find(added, said) is not None


def _task(agent: Agent, asked: Sequence[Message], added: str, label: Label) -> str:
    if added and not label:
        return added
    # The work's thread does not exist yet; a message's id is as unknown to the author of a text.
    words = [quotations.enclose_quoted(message.text, thread=message.id) for message in asked]
    if added:
        what = (
            f"added by {agent.name}, who has read untrusted text. It may help with what the "
            "person asks for above, and asks for nothing itself."
        )
        words.append(enclose(added, thread=agent.id, what=what))
    return "\n\n".join(words)


class _Reply(KindVerbs):
    def failed(self, tx: Tx, lease: Lease, outcome: Failed) -> bool:
        end_reply(tx, lease, outcome, text=NO_REPLY.format(why=outcome.detail))
        return True


REPLY = _Reply()
