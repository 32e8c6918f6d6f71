"""Gate: whether there is anything to wake an agent for. It looks, and asks no model."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from agiraph.domain.agents import Agent
from agiraph.domain.triggers import Trigger
from agiraph.domain.work import WorkNode
from agiraph.services.board import budgets, taint, texts
from agiraph.services.triggers import configuration, firing
from agiraph.services.triggers.configuration import Heartbeat
from agiraph.store import messages, nodes, triggers
from agiraph.store.triggers import TRIGGERS
from agiraph.store.tx import Tx

Hashes = dict[str, str]
"""What watched files hold, by their paths; an empty hash for what is not there."""


class _Closed(NamedTuple):
    """Nobody is woken: why, and when to look again."""

    why: str
    until: datetime


def beat(tx: Tx, trigger: Trigger, agent: Agent, hashes: Hashes | None = None) -> None:
    """A heartbeat is due: wake the agent if there is a reason to, else let it sleep on.

    Files are looked at outside the transaction; without their hashes that is asked for first.
    """
    form = configuration.read(trigger.type, trigger.config)
    assert isinstance(form, Heartbeat)
    if nodes.has_open(tx, agent.id):
        return firing.arm(tx, trigger, None)  # due again when it rests
    if form.watch and hashes is None:
        return triggers.leave_errand(tx, triggers.look_of(trigger.id))
    if closed := _asleep(tx, trigger, form):
        return _sleep_on(tx, trigger, closed)
    ended = triggers.ended_since(tx, (agent.team_id, agent.id), _since(trigger))
    news = _news(tx, agent, ended) + _changed(trigger, hashes)
    if not trigger.watched and hashes:
        TRIGGERS.update(tx, trigger.id, watched=hashes)  # what they are compared with from now on
    if not news and (closed := _quiet(tx, trigger, form)):
        return _sleep_on(tx, trigger, closed)
    slot = f"beat {trigger.fired + trigger.skipped + 1}"
    tainted_by = taint.of_board(tx, ended)
    done = firing.handle(tx, trigger, slot, news=_told(news), tainted_by=tainted_by)
    if done.outcome != "skipped" and hashes:
        TRIGGERS.update(tx, trigger.id, watched=hashes)
    return _next(tx, trigger, agent, configuration.rest_seconds(form))


def idle(tx: Tx, trigger: Trigger, agent: Agent) -> None:
    """An agent may have done nothing for as long as was agreed."""
    if nodes.has_open(tx, agent.id):
        return firing.arm(tx, trigger, None)
    firing.handle(tx, trigger, f"idle {trigger.fired + trigger.skipped + 1}")
    return _next(
        tx,
        trigger,
        agent,
        configuration.rest_seconds(configuration.read("on_idle", trigger.config)),
    )


def _next(tx: Tx, trigger: Trigger, agent: Agent, seconds: float) -> None:
    """Due again so long after the agent's rest, which has begun if nothing woke it."""
    at_work = nodes.has_open(tx, agent.id)
    firing.go_on(tx, trigger, None if at_work else tx.now + timedelta(seconds=seconds))


def rest(tx: Tx, trigger: Trigger, *, quiet: int) -> None:
    """The agent rests from now on: due some time from here."""
    seconds = configuration.rest_seconds(configuration.read(trigger.type, trigger.config))
    due = tx.now + timedelta(seconds=seconds)
    firing.arm(tx, trigger, due, rested_at=tx.now, quiet=quiet)


def _asleep(tx: Tx, trigger: Trigger, form: Heartbeat) -> _Closed | None:
    """What keeps it shut, whatever the news."""
    if opens := configuration.opens_at(form.hours, trigger.zone, tx.now):
        return _Closed(f"outside of {form.hours}", opens)
    payer = triggers.payer(tx, trigger)
    if payer is not None and (spent := budgets.exhausted_above(tx, payer)):
        return _Closed(f"budget: {spent}", tx.now + timedelta(seconds=form.interval_seconds))
    return None


def _quiet(tx: Tx, trigger: Trigger, form: Heartbeat) -> _Closed | None:
    """Whether the agent may sleep on, since nothing has happened."""
    again = tx.now + timedelta(seconds=form.interval_seconds)
    if form.when == "news":
        return _Closed("nothing new", again)
    sleeps = configuration.backoff_seconds(
        form.interval_seconds, trigger.quiet if form.backoff else 0
    )
    until = _since(trigger) + timedelta(seconds=sleeps)
    if tx.now < until:
        return _Closed(f"nothing new, and nothing to do {trigger.quiet} times before", again)
    return None


def _sleep_on(tx: Tx, trigger: Trigger, closed: _Closed) -> None:
    # Counted and not listed: what does nothing must not fill the database.
    if trigger.until is not None and closed.until > trigger.until:
        return firing.go_on(tx, trigger, closed.until)
    return firing.arm(tx, trigger, closed.until, gated=trigger.gated + 1, gate=closed.why)


def _since(trigger: Trigger) -> datetime:
    """When its agent last looked."""
    return max(filter(None, (trigger.created_at, trigger.fired_at, trigger.rested_at)))


def _news(tx: Tx, agent: Agent, ended: Sequence[WorkNode]) -> list[str]:
    unseen = messages.unseen(tx, agent.id)
    found = [f"{len(unseen)} unread messages, which follow"] if unseen else []
    return found + [f"{texts.title_of(node)} ({node.id}) is {node.status}" for node in ended]


def _changed(trigger: Trigger, hashes: Hashes | None) -> list[str]:
    if not hashes or not trigger.watched:
        return []
    return [f"{path} has changed" for path, hash in hashes.items() if trigger.watched[path] != hash]


def _told(news: list[str]) -> str:
    if not news:
        return "Nothing has happened since you last looked."
    return "Since you last looked:\n" + "\n".join(f"- {line}" for line in news)
