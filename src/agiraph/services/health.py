"""Checkup: what is wrong with the rows, and putting right what can be put right without harm."""

from datetime import timedelta

from agiraph.domain.deliveries import Delivery
from agiraph.domain.errors import Refused
from agiraph.domain.events.work import NodeAssigned
from agiraph.domain.work import NodeStatus, Queue, WorkNode
from agiraph.services.board import waiting
from agiraph.services.lifecycle import stalled
from agiraph.services.mail import deliveries as outgoing
from agiraph.services.triggers import firing
from agiraph.store import counts, deliveries, health, nodes, triggers, waits
from agiraph.store.nodes import NODES
from agiraph.store.tx import Tx

LATE = timedelta(minutes=2)
"""How long something may be due before it counts as late, where somebody should have done it."""
UNHEARD = timedelta(hours=1)


def stuck(tx: Tx, *, is_running: bool) -> list[str]:
    """Work that stands still although nothing keeps it, a sentence each."""
    found = [f"{node.id} waits, but for nothing." for node in health.waiting_for_nothing(tx)]
    found += [
        f"{wait.node_id} waits for {wait.waiting_on}, which is over or gone."
        for wait in health.waiting_for_what_ended(tx)
    ]
    found += [
        f"{wait.node_id} sleeps, but no timer will wake it."
        for wait in health.sleeping_without_a_timer(tx)
    ]
    found += [
        f"{trigger.id} is due at {trigger.due_at:%Y-%m-%d %H:%M}, but no timer will ring."
        for trigger in health.triggers_without_timer(tx)
    ]
    found += [f"The queue {key} holds work that nobody is told of." for key in _forgotten(tx)]
    if is_running:
        late = counts.overdue_seconds(tx)
        if late > LATE.total_seconds():
            found.append(f"A timer is {late:.0f} seconds late although somebody is at work.")
        found += filter(None, (_unattended(tx, node) for node in health.left_running(tx)))
    return found


def _unattended(tx: Tx, node: WorkNode) -> str | None:
    """Why a running node, in a sentence, looks as if it had no runner or could not end."""
    if node.owner is None:
        return f"{node.id} runs, but nobody owns it."
    if health.is_orphaned(tx, node):
        return f"{node.id} runs, but the process that ran it is gone."
    if node.crashes:
        return (
            f"{node.id} was started again {node.crashes} times without getting a step further; "
            "the server's log says why."
        )
    if node.cancel_requested and tx.now - stalled.last_activity(tx, node) > LATE:
        return f"{node.id} was told to stop, and has not: restart the server, which ends it."
    if node.lane == "work" and stalled.is_stalled(tx, node):
        at = stalled.last_activity(tx, node)
        return (
            f"{node.id} runs, but nothing has come of it since {at:%Y-%m-%d %H:%M}: cancel it, or "
            "restart the server."
        )
    return None


def _forgotten(tx: Tx) -> list[str]:
    return health.queues_without_job(tx)


def for_people(tx: Tx) -> list[str]:
    """What stands still and only a person can decide about."""
    found = [
        f"{wait.node_id} waits for {wait.waiting_on}, a question that is gone or answered: say "
        "something to its agent, or stop it."
        for wait in health.waiting_for_a_lost_answer(tx)
    ]
    found += [
        f"{node.id} is in the queue of somebody who has left: cancel it, or give it to another."
        for node in health.queued_for_nobody(tx)
    ]
    found += [
        f"{node.id} has all it needs, and is in nobody's queue: pause and resume its team."
        for node in health.startable(tx)
    ]
    return found


def undelivered(tx: Tx, *, is_running: bool) -> list[str]:
    """Words that did not arrive."""
    found = [_told(delivery) for delivery in deliveries.failed(tx, limit=20)]
    if many := health.count_unseen_messages(tx, since=tx.now - UNHEARD):
        found.append(f"{many} messages to agents have not been seen for an hour.")
    if is_running and (many := health.count_overdue_deliveries(tx, since=tx.now - 5 * LATE)):
        found.append(f"{many} deliveries are late.")
    return found


def _told(delivery: Delivery) -> str:
    return f"{delivery.id} was given up on {delivery.channel}: {delivery.error or 'no reason'}"


def overdue(tx: Tx) -> list[str]:
    return [
        f"{trigger.id} has been due since {trigger.due_at:%Y-%m-%d %H:%M}."
        for trigger in triggers.overdue(tx, since=tx.now - LATE)
    ]


def mend(tx: Tx) -> list[str]:
    """Put right what cannot do harm, while nobody else is at work; what was done, a line each."""
    return [*_let_go(tx), *_go_on(tx), *_set_timers(tx), *_wake(tx), *_redeliver(tx)]


def _let_go(tx: Tx) -> list[str]:
    many = nodes.forget_owners(tx)
    deliveries.forget_owners(tx)
    return [f"Freed {many} pieces of work whose owner is gone."] if many else []


def _go_on(tx: Tx) -> list[str]:
    """Back into the queue. A call that was waiting is made again, and finds out how things are."""
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
        waits.set_timer(tx, wait.waiting_on.id, tx.now)
        done.append(f"{wait.node_id} wakes now.")
    for trigger in health.triggers_without_timer(tx):
        firing.arm(tx, trigger, trigger.due_at)
        done.append(f"{trigger.id} has its timer again.")
    return done


def _wake(tx: Tx) -> list[str]:
    keys = _forgotten(tx)
    for key in keys:
        tx.wake(*Queue.of(key))
    return [f"Woke {len(keys)} queues."] if keys else []


def _redeliver(tx: Tx) -> list[str]:
    done: list[str] = []
    for delivery in deliveries.failed(tx, limit=1000):
        try:
            outgoing.redeliver(tx, delivery.id)
        except Refused:
            continue  # its channel is gone; a person has to set it up first
        done.append(f"{delivery.id} goes out again.")
    return done
