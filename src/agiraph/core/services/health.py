"""Health: finds work that stands still and rows that contradict each other, and repairs what is
safe to repair automatically."""

from datetime import timedelta

from agiraph.core.domain.errors import Refused
from agiraph.core.domain.events.work import NodeAssigned
from agiraph.core.domain.records.deliveries import Delivery
from agiraph.core.domain.text.plurals import counted, times
from agiraph.core.domain.work import NodeStatus, Queue, WorkNode
from agiraph.core.services.board import waiting
from agiraph.core.services.lifecycle import timers
from agiraph.core.services.mail import deliveries as outgoing
from agiraph.core.services.triggers import firing
from agiraph.core.store import deletions, deliveries, nodes, triggers, waits
from agiraph.core.store.lists import counts, health
from agiraph.core.store.nodes import NODES
from agiraph.core.store.tx import Tx

LATE = timedelta(minutes=2)
"""How long a timer or a trigger may be overdue while a process is running."""
UNREAD_AFTER = timedelta(hours=1)
"""How long a message to an agent may stay unread."""
UNREMOVED_AFTER = timedelta(minutes=10)
"""How long the removal of a deleted team may take."""


def stuck(tx: Tx, *, is_running: bool) -> list[str]:
    """Return a sentence for each piece of work that stands still without a reason."""
    found = [
        f"{node.id} is waiting, but it waits for nothing."
        for node in health.waiting_for_nothing(tx)
    ]
    found += [
        f"{wait.node_id} waits for {wait.waiting_on}, which has ended or does not exist."
        for wait in health.waiting_for_what_ended(tx)
    ]
    found += [
        f"{wait.node_id} is sleeping, but it has no timer."
        for wait in health.sleeping_without_a_timer(tx)
    ]
    found += [
        f"{trigger.id} is due at {trigger.due_at:%Y-%m-%d %H:%M}, but it has no timer."
        for trigger in health.triggers_without_timer(tx)
    ]
    found += [
        f"The queue {key} holds work that no process knows of."
        for key in health.queues_without_job(tx)
    ]
    if is_running:
        late = counts.overdue_seconds(tx)
        if late > LATE.total_seconds():
            found.append(f"A timer is {late:.0f} seconds late although a process is running.")
        found += filter(None, (_unattended(tx, node) for node in health.left_running(tx)))
        found += unremoved(tx)
    return found


def unremoved(tx: Tx) -> list[str]:
    """Return a sentence for each deleted team whose data should have been removed long ago."""
    return [
        f"The data of the team {each.name!r}, deleted at {each.created_at:%Y-%m-%d %H:%M}, is not "
        "removed yet; the server's log says why."
        for each in deletions.every(tx)
        if tx.now - each.created_at > UNREMOVED_AFTER
    ]


def _unattended(tx: Tx, node: WorkNode) -> str | None:
    """Return a sentence if a running node seems to have no runner, or cannot end."""
    if node.owner is None:
        return f"{node.id} is running, but no process owns it."
    if health.is_orphaned(tx, node):
        return f"{node.id} is running, but its process has ended."
    if node.crashes > 1:
        return (
            f"{node.id} was restarted {times(node.crashes)} without completing a step; "
            "the server's log says why."
        )
    if node.cancel_requested and tx.now - timers.last_activity(tx, node) > LATE:
        return f"{node.id} was cancelled and has not stopped: restart the server, which ends it."
    if node.is_work and timers.is_stalled(tx, node):
        at = timers.last_activity(tx, node)
        return (
            f"{node.id} is running, but has done nothing since {at:%Y-%m-%d %H:%M}: cancel it, or "
            "restart the server."
        )
    return None


def needing_a_person(tx: Tx) -> list[str]:
    """Return a sentence for each piece of work that only a person can get going again."""
    found = [
        f"{wait.node_id} waits for {wait.waiting_on}, a question that is gone or answered: send "
        "its agent a message, or cancel it."
        for wait in health.waiting_for_a_lost_answer(tx)
    ]
    found += [
        f"{node.id} is in the queue of an agent that has left: cancel it, or assign it to another."
        for node in health.queued_for_nobody(tx)
    ]
    found += [
        f"{node.id} can start, but is in no queue: pause and resume its team."
        for node in health.startable(tx)
    ]
    return found


def undelivered(tx: Tx, *, is_running: bool) -> list[str]:
    """Return a sentence for each failed delivery, and for messages that nobody reads or sends."""
    found = [_failure(delivery) for delivery in deliveries.failed(tx, limit=20)]
    if many := health.count_unseen_messages(tx, since=tx.now - UNREAD_AFTER):
        unseen = counted(many, "message to agents has", "messages to agents have")
        found.append(f"{unseen} not been seen for an hour.")
    if is_running and (many := health.count_overdue_deliveries(tx, since=tx.now - 5 * LATE)):
        found.append(f"{counted(many, 'delivery is', 'deliveries are')} late.")
    return found


def _failure(delivery: Delivery) -> str:
    return f"{delivery.id} was given up on {delivery.channel}: {delivery.error or 'no reason'}"


def overdue(tx: Tx) -> list[str]:
    """Return a sentence for each active trigger whose due time has passed."""
    return [
        f"{trigger.id} has been due since {trigger.due_at:%Y-%m-%d %H:%M}."
        for trigger in triggers.overdue(tx, since=tx.now - LATE)
    ]


def repair(tx: Tx) -> list[str]:
    """Repair what is safe to repair automatically. Return a line for each repair.

    Only for when no other process works on the database: it takes work from its owners.
    """
    return [*_free(tx), *_requeue(tx), *_set_timers(tx), *_wake(tx), *_redeliver(tx)]


def _free(tx: Tx) -> list[str]:
    # Only safe because the caller has made sure that nobody else works on the database.
    many = nodes.forget_owners(tx)
    deliveries.forget_owners(tx)
    return [f"Freed {counted(many, 'node')} whose process has ended."] if many else []


def _requeue(tx: Tx) -> list[str]:
    """Put nodes without a valid wait back into their queues. Their waiting call is made again."""
    done: list[str] = []
    for wait in health.waiting_for_what_ended(tx):
        if waiting.settle(tx, wait.waiting_on, None):
            done.append(f"{wait.node_id} no longer waits for {wait.waiting_on}.")
    for node in health.waiting_for_nothing(tx):
        nodes.move(tx, NODES.get(tx, node.id, lock=True), NodeStatus.ASSIGNED, waiting_reason=None)
        if node.assignee_id is not None:
            tx.emit(node.team_id, NodeAssigned(node_id=node.id, agent_id=node.assignee_id))
        done.append(f"{node.id} is back in its queue.")
    return done


def _set_timers(tx: Tx) -> list[str]:
    done: list[str] = []
    for wait in health.sleeping_without_a_timer(tx):
        # Now, because the time it was set for was lost with the timer.
        waits.set_timer(tx, wait.waiting_on.timer, tx.now)
        done.append(f"{wait.node_id} wakes now.")
    for trigger in health.triggers_without_timer(tx):
        firing.arm(tx, trigger, trigger.due_at)
        done.append(f"{trigger.id} has its timer again.")
    return done


def _wake(tx: Tx) -> list[str]:
    keys = health.queues_without_job(tx)
    for key in keys:
        tx.wake(*Queue.of(key))
    return [f"Woke {counted(len(keys), 'queue')}."] if keys else []


def _redeliver(tx: Tx) -> list[str]:
    done: list[str] = []
    for delivery in deliveries.failed(tx, limit=1000):
        try:
            outgoing.redeliver(tx, delivery.id)
        except Refused:
            continue  # its channel no longer exists; a person has to configure it first
        done.append(f"{delivery.id} goes out again.")
    return done
