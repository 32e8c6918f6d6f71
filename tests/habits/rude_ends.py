"""Rude ends: which messages a run lost, what it did unsaid, and what it said undone.

As a program it repeats one run: `python -m tests.habits.rude_ends "STATE | ACT | …"`.
"""

import asyncio
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from agiraph.core.domain.messages import Message
from agiraph.core.domain.persons import OWNER
from agiraph.core.domain.work import NodeStatus, WorkNode
from agiraph.features.research.model.kinds import KINDS as RESEARCH
from tests.habits.acts import State, runs
from tests.habits.rude_runs import COORDINATOR, Rows, Seen, stage

Shown = dict[str, Any]


def violations(seen: Seen) -> list[str]:
    """Return what the person may not rely on after this run."""
    acts = list(_acts(seen))
    found = [
        *seen.faults,
        *_without_reply(seen),
        *_lost(seen, acts),
        *_undone_or_unsaid(seen, acts),
        *_wrong_answers(seen, acts),
        *_needless_items(seen),
        *_still_open(seen),
    ]
    return list(dict.fromkeys(found))


def _acts(seen: Seen) -> Iterator[Shown]:
    """Yield what the person sees under the replies of this run."""
    replies = {seen.end.messages[one].reply_id for one in seen.said}
    for message in seen.shown:
        if message["sender"] == seen.agent_id and message["node_id"] in replies:
            yield from message["acts"]


def _without_reply(seen: Seen) -> Iterator[str]:
    """Each message of the person has a reply that they can read."""
    for one in seen.said:
        message = seen.end.messages[one]
        replies = [m for m in seen.shown if m["node_id"] == message.reply_id]
        if not any(m["text"].strip() and m["sender"] == seen.agent_id for m in replies):
            yield f"no reply to {message.text!r}"


def _needless_items(seen: Seen) -> Iterator[str]:
    """A reply puts nothing into the inbox; work that ended before it has its report there."""
    for item in seen.inbox:
        node = seen.end.nodes.get(item["message"]["node_id"])
        # Nobody plays research here: it may have failed before it is cancelled, and says so.
        is_research = node is not None and node.kind.name in RESEARCH
        if item["message"]["node_id"] not in seen.before.nodes and not is_research:
            yield f"the inbox got {item['message']['text']!r}"


# ---- 0 lost messages ----------------------------------------------------------------------------


def _lost(seen: Seen, acts: Sequence[Shown]) -> Iterator[str]:
    for one in [*seen.earlier, *seen.said]:
        message = seen.after.messages[one]
        if _open_own(seen):
            is_heard = _is_heard(seen, message, COORDINATOR)
            if not is_heard and not _is_heard_as_answer(seen, message):
                yield f"open work never heard {message.text!r}"
        elif not (_is_heard(seen, message) or _is_settled(seen, message, acts)):
            yield f"nobody has {message.text!r}"


def _open_own(seen: Seen) -> list[WorkNode]:
    """Return the agent's own work that was open before, and that the reply has not stopped."""
    before = [n for n in seen.before.nodes.values() if _is_own(seen, n)]
    now = [seen.after.nodes[node.id] for node in before]
    return [n for n in now if not n.status.is_final and not n.cancel_requested]


def _is_own(seen: Seen, node: WorkNode) -> bool:
    return node.lane == "work" and node.assignee_id == seen.agent_id


def _is_heard(seen: Seen, message: Message, agent: str = "") -> bool:
    """Whether a model of this agent's work, or of anybody's, was shown the message."""
    marks = _marks(message) or [f"[Message from human] {message.text}"]
    heard = [h for h in seen.player.heard if agent in ("", h.agent)]
    if agent:  # all of the message, to its end
        return any(all(mark in each.text for mark in marks) for each in heard)
    return any(mark in each.text for each in heard for mark in marks)


def _is_heard_as_answer(seen: Seen, message: Message) -> bool:
    """Whether own work got a message as the answer to its question: for the number of an option
    the option."""
    asked = [q for q in seen.before.messages.values() if q.sender == seen.agent_id]
    answers = [m for m in _answers(seen) if m.in_reply_to in {q.id for q in asked}]
    given = [m.text for m in answers if m.text in ("red", "blue", message.text)]
    heard = [each.text for each in seen.player.heard if each.agent == COORDINATOR]
    return any(words in text for words in given for text in heard)


_TAKES = ("stopped", "reminder", "trigger")
"""Acts that may be all that a message asks for. The person sees them, with their words."""


def _is_settled(seen: Seen, message: Message, acts: Sequence[Shown]) -> bool:
    """Whether a message needs no work: it was chat, an answer, a task or a reminder, or a stop took
    it."""
    marks = _marks(message)
    answered = {act["about"] for act in acts if act["kind"] == "answered"}
    answers = (m for m in seen.after.messages.values() if m.in_reply_to in answered)
    texts = [m.text for m in answers if m.kind == "answer"]
    texts += [node.task for node in seen.after.nodes.values() if node.lane == "work"]
    whole = (message.text, f"[Message from human] {message.text}")
    is_bare = not marks and (bool(answered) or any(text.endswith(whole) for text in texts))
    is_done = message.id in seen.said and any(act["kind"] in _TAKES for act in acts)
    is_dropped = any(mark in a["text"] for a in acts for mark in marks if a["kind"] == "stopped")
    is_kept = any(mark in text for mark in marks for text in texts)
    is_chat = message.id in seen.said and seen.player.chats
    return is_chat or is_bare or is_kept or is_done or is_dropped


def _marks(message: Message) -> list[str]:
    """Return the numbers of the two parts of a message, which no other message has; a bare word has
    none."""
    words = message.text.replace(".", " ").split()
    return [word for word in words if word.startswith("(") and word.endswith(("a)", "b)"))]


# ---- 0 false done -------------------------------------------------------------------------------


def _undone_or_unsaid(seen: Seen, acts: Sequence[Shown]) -> Iterator[str]:
    """What the replies did is what stands under them."""
    said = {kind: [a["about"] for a in acts if a["kind"] == kind] for kind in _KINDS}
    before, after = seen.before, seen.after
    made = [n.id for n in _new(before, after) if n.lane == "work" and not n.is_step]
    triggers, known = after.triggers - before.triggers, after.known - before.known
    yield from _differences("started", said["started"], made)
    yield from _differences("answered", said["answered"], [m.in_reply_to for m in _answers(seen)])
    yield from _differences("reminder", said["reminder"] + said["trigger"], triggers)
    yield from _differences("remembered", set(said["remembered"]), known)
    yield from _told_wrongly(seen, acts)
    yield from _stopped_wrongly(before, after, said["stopped"])
    yield from _differences("forgot", said["forgot"], before.known - after.known)


def _flat(text: str) -> str:
    """Return as much of a text as a line under a reply quotes."""
    return " ".join(text.split())[:300]


_KINDS = ("started", "answered", "reminder", "trigger", "remembered", "stopped", "forgot")


def _differences(what: str, said: Any, done: Any) -> Iterator[str]:
    said, done = Counter(said), Counter(done)
    yield from (f"{what} {about}, and no reply says so" for about in (done - said).elements())
    yield from (f"a reply says {what} {about}: not so" for about in (said - done).elements())


def _new(before: Rows, after: Rows) -> list[WorkNode]:
    return [node for node in after.nodes.values() if node.id not in before.nodes]


def _answers(seen: Seen) -> list[Message]:
    """Return the answers that the replies have stored."""
    new = (m for m in seen.after.messages.values() if m.id not in seen.before.messages)
    return [m for m in new if m.kind == "answer" and m.sender == OWNER]


def _had_read(seen: Seen, node: WorkNode) -> bool:
    """Whether the agent had read what the person said before this work ended."""
    said = [m for m in seen.after.messages.values() if m.sender == OWNER and m.reply_id]
    times = [m.seen_at for m in said if m.recipient == seen.agent_id]
    return all(at and node.ended_at and at <= node.ended_at for at in times)


def _is_dropped(told: Shown, acts: Sequence[Shown]) -> bool:
    """Whether a later stop of the same work names what it was told as dropped."""
    stops = [a["text"] for a in acts if (a["kind"], a["about"]) == ("stopped", told["about"])]
    marks = [word for word in told["text"].split() if word.startswith("(")]
    return any(all(mark.strip("”") in text for mark in marks) for text in stops)


def _told_wrongly(seen: Seen, acts: Sequence[Shown]) -> Iterator[str]:
    """What was told to a teammate is a message there; what was told to own work is heard."""
    told = [act for act in acts if act["kind"] == "told"]
    new = [m for m in seen.after.messages.values() if m.id not in seen.before.messages]
    sent = [m for m in new if (m.sender, m.kind) == (OWNER, "message") and m.reply_id is None]
    for act in told:
        node = seen.after.nodes.get(act["about"])
        if node is None:
            yield f"a reply says that {act['about']!r} was told, which is no work"
        elif node.assignee_id == seen.agent_id:
            is_stopped = node.cancel_requested and not _is_dropped(act, acts)
            if (node.status.is_final or is_stopped) and not _had_read(seen, node):
                yield f"a reply says that {node.title!r} was told, which had ended or was stopped"
        else:
            to = [
                m for m in sent if m.recipient == node.assignee_id and _flat(m.text) in act["text"]
            ]
            if not to:
                yield f"a reply says {act['text']!r}, and nobody got it"
            sent = [m for m in sent if m not in to[:1]]
    yield from (f"no reply says that {m.recipient} was told {m.text!r}" for m in sent)


def _stopped_wrongly(before: Rows, after: Rows, said: Sequence[str]) -> Iterator[str]:
    stopped = [
        n
        for n in before.nodes.values()
        if n.lane == "work" and not _is_stopped(n) and _is_stopped(after.nodes[n.id])
    ]
    above = {node.id: _line(after, node) for node in stopped}
    for node in stopped:
        if not above[node.id] & {*said}:
            yield f"{node.title!r} was stopped, and no reply says so"
    for one, times in Counter(said).items():
        if times > 1 or not any(one in line for line in above.values()):
            yield f"a reply says that {one} was stopped: not so, or twice"


def _is_stopped(node: WorkNode) -> bool:
    return node.cancel_requested or node.status is NodeStatus.CANCELLED


def _line(rows: Rows, node: WorkNode) -> set[str]:
    """Return the ids of a node and of all above it."""
    line = {str(node.id)}
    while node.parent_id is not None:
        node = rows.nodes[node.parent_id]
        line.add(node.id)
    return line


# ---- 0 wrong answers that the person was not shown ----------------------------------------------


def _wrong_answers(seen: Seen, acts: Sequence[Shown]) -> Iterator[str]:
    """Each answer is shown with its question and words, and answers what the reply could mean."""
    answers = _answers(seen)
    for mark, times in Counter(mark for m in answers for mark in _marks(m)).items():
        if times > 1:
            yield f"the words with {mark} have answered {times} questions"
    if seen.run.messages == "one bare word" and len(answers) > 1:
        yield f"a bare word has answered {len(answers)} questions"
    newest = _newest(seen)
    for answer in answers:
        question = seen.after.messages[answer.in_reply_to or ""]
        if question.kind != "question":
            yield f"words in a conversation have decided {question.id}"
        texts = [a["text"] for a in acts if a["about"] == question.id]
        if not any(question.text in text and _flat(answer.text) in text for text in texts):
            yield f"nothing shows that {question.text!r} was answered with {answer.text!r}"
        is_named = question.id in seen.player.ids
        if not is_named and (not newest or newest.pop(0) != question.id):
            yield f"{question.text!r} was answered, which nobody named"
        if seen.run.state is State.STOPPED:
            yield f"{question.text!r} was answered after its work had been stopped"
    for card in seen.before.messages.values():
        if card.kind == "approval" and seen.after.messages[card.id].decision is not None:
            yield f"words in a conversation have decided {card.id}"


def _newest(seen: Seen) -> list[str]:
    """Return the questions of this conversation that a bare answer may answer, one after the
    other."""
    mine = [m for m in seen.before.messages.values() if m.kind == "question"]
    still = [m for m in mine if m.sender == seen.agent_id and m.answered_at is None]
    return [m.id for m in reversed(still) if m.id not in seen.player.ids]


# ---- the end ------------------------------------------------------------------------------------


def _still_open(seen: Seen) -> Iterator[str]:
    for node in seen.end.nodes.values():
        if not node.status.is_final:
            yield f"{node.title or node.task!r} is still {node.status}"
        # Nobody plays research here: it is cancelled, or its model has only talked until then.
        is_research = node.kind.name in RESEARCH
        if node.status is NodeStatus.FAILED and not is_research:
            yield f"{node.title or node.task!r} failed: {node.result} {node.stop_reason}"
    goals = [n for n in seen.end.nodes.values() if n.is_goal and n.lane == "work"]
    for goal in goals:
        is_stopped = _is_stopped(seen.after.nodes[goal.id])
        if seen.run.state is not State.STOPPED and is_stopped != _is_stopped(goal):
            yield f"the goal was stopped, and nobody asked for it: {goal.status}"


async def _repeat(wanted: str) -> None:
    [run] = [run for state in State for run in runs(state) if str(run) == wanted]
    with tempfile.TemporaryDirectory() as folder:
        async with stage(Path(folder)) as world:
            seen = await world.play(run)
    for message in seen.shown:
        print(f"{message['sender_name']}: {message['text']}")
        print(*(f"  → {act['text']}" for act in message["acts"]), sep="\n")
    print("\n".join(violations(seen)) or "no violation")


if __name__ == "__main__":
    asyncio.run(_repeat(sys.argv[1]))
