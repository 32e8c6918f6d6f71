"""Heartbeat: a trigger that wakes an idle agent at intervals, if its wake gate finds a reason to.

The wake gate decides from rows and file hashes alone. It asks no model, so a night without news
costs nothing.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Literal, NamedTuple
from zlib import crc32

from pydantic import Field

from agiraph.core.domain.agents import Agent
from agiraph.core.domain.text.plurals import counted, times
from agiraph.core.domain.times import hours as daily
from agiraph.core.domain.triggers import Trigger, TriggerType
from agiraph.core.domain.work import WorkNode
from agiraph.core.services.board import labels, texts
from agiraph.core.services.triggers import firing
from agiraph.core.services.triggers.kinds.after_work import AfterWork
from agiraph.core.services.triggers.kinds.base import FileHashes, Seconds, TriggerConfig
from agiraph.core.store import messages, nodes, triggers, waits
from agiraph.core.store.triggers import TRIGGERS
from agiraph.core.store.tx import Tx

AT_ONCE = 20
"""If more timers than this are due, heartbeats are spread over their intervals."""
LONGEST_SPREAD_S = 3600.0
MAX_BACKOFF_S = 86_400.0
"""The longest interval that backoff reaches: a day."""


class HeartbeatConfig(TriggerConfig):
    interval_seconds: Seconds
    when: Literal["news", "always"] = "news"
    """`news`: wake the agent only if something happened; `always`: the interval is enough."""
    backoff: bool = True
    """Double the interval after each wake-up in which the agent found nothing to do."""
    hours: str | None = None
    """The daily hours in which the agent may be woken, such as 08:00-20:00."""
    watch: list[str] = Field(default_factory=list[str])
    """Files whose change counts as news."""


class _Closed(NamedTuple):
    """The wake gate stays closed: the reason, and when to check again."""

    why: str
    until: datetime


class Heartbeat(AfterWork[HeartbeatConfig]):
    name: TriggerType = "heartbeat"
    interval_field = "interval_seconds"
    config_type = HeartbeatConfig
    example = '{"interval_seconds": 1800}'
    guidance = (
        f"{example}: so long after your last work, if there is news\n"
        '  ("when": "always" even if not; "hours": "08:00-20:00"; "watch": ["memory/x.md"])'
    )

    def check(self, config: HeartbeatConfig) -> None:
        if config.hours is not None:
            daily.parse(config.hours)

    def idle_s(self, config: HeartbeatConfig) -> float:
        return config.interval_seconds

    def describe(self, config: HeartbeatConfig) -> str:
        return f"it is your heartbeat of {config.interval_seconds:g} seconds"

    def watched_files(self, config: HeartbeatConfig) -> Sequence[str]:
        return config.watch

    def on_due(self, tx: Tx, trigger: Trigger, agent: Agent) -> None:
        config = self.read(trigger.config)
        if config.watch and not nodes.has_open(tx, agent.id):
            # No file is read inside a transaction: the trigger worker does it, then calls
            # on_files_read.
            return triggers.leave_errand(tx, triggers.file_check_of(trigger.id))
        return self._wake_or_sleep(tx, trigger, agent, config, {})

    def on_files_read(self, tx: Tx, trigger: Trigger, agent: Agent, hashes: FileHashes) -> None:
        self._wake_or_sleep(tx, trigger, agent, self.read(trigger.config), hashes)

    def _wake_or_sleep(
        self,
        tx: Tx,
        trigger: Trigger,
        agent: Agent,
        config: HeartbeatConfig,
        hashes: FileHashes,
    ) -> None:
        """Wake the agent if the gate is open, else set when to check again."""
        if nodes.has_open(tx, agent.id):
            return firing.arm(tx, trigger, None)  # on_agent_idle sets the next due time
        if closed := _closed_for_all(tx, trigger, config):
            return self._sleep(tx, trigger, closed)
        if closed := _closed_by_others(tx, trigger, config):
            return self._sleep(tx, trigger, closed)
        ended = triggers.ended_since(tx, (agent.team_id, agent.id), _last_awake(trigger))
        news = _news(tx, agent, ended) + _changed_files(trigger, hashes)
        if not trigger.watched and hashes:
            TRIGGERS.update(tx, trigger.id, watched=hashes)  # the first hashes are the baseline
        if not news and (closed := _closed_without_news(tx, trigger, config)):
            return self._sleep(tx, trigger, closed)
        slot = f"beat {trigger.fired + trigger.skipped + 1}"
        # The news quotes titles of other agents' work.
        label = labels.of_board(tx, ended)
        done = self.fire(tx, trigger, slot, news=_as_text(news), label=label)
        if done.outcome != "skipped" and hashes:
            TRIGGERS.update(tx, trigger.id, watched=hashes)
        return self.rearm_after_work(tx, trigger, agent, config)

    def _sleep(self, tx: Tx, trigger: Trigger, closed: _Closed) -> None:
        if trigger.until is not None and closed.until > trigger.until:
            # It would only be due after its end, so `rearm` ends it now.
            return self.rearm(tx, trigger, closed.until)
        # Counted, without a row in firings: a heartbeat without news must not fill the database.
        return firing.arm(tx, trigger, closed.until, gated=trigger.gated + 1, gate=closed.why)


def _closed_for_all(tx: Tx, trigger: Trigger, config: HeartbeatConfig) -> _Closed | None:
    """Return what keeps the gate closed whatever the news: the hours, or an exhausted budget."""
    again = tx.now + timedelta(seconds=config.interval_seconds)
    if config.hours is not None:
        active = daily.parse(config.hours)
        if not active.contain(tx.now, trigger.zone):
            opens = active.next_begin(tx.now, trigger.zone) or again
            return _Closed(f"outside of {config.hours}", opens)
    closed = firing.closed_by_budget(tx, trigger)
    return None if closed is None else _Closed(closed, again)


def _closed_by_others(tx: Tx, trigger: Trigger, config: HeartbeatConfig) -> _Closed | None:
    """Return the agent's own place in the interval if much else is due now; only once, so that a
    busy runtime puts no heartbeat off again and again."""
    why = "much else was due at the same time"
    if trigger.gate == why or waits.count_due(tx, limit=AT_ONCE) < AT_ONCE:
        return None
    place = crc32(trigger.agent_id.encode()) / 2**32
    spread_s = min(config.interval_seconds, LONGEST_SPREAD_S)
    return _Closed(why, tx.now + timedelta(seconds=place * spread_s))


def _closed_without_news(tx: Tx, trigger: Trigger, config: HeartbeatConfig) -> _Closed | None:
    """Return why the agent is not woken without news although its interval is over."""
    again = tx.now + timedelta(seconds=config.interval_seconds)
    if config.when == "news":
        return _Closed("nothing new", again)
    wait_s = _backoff_s(config.interval_seconds, trigger.quiet if config.backoff else 0)
    if tx.now < _last_awake(trigger) + timedelta(seconds=wait_s):
        return _Closed(f"nothing new, and nothing to do {times(trigger.quiet)} before", again)
    return None


def _backoff_s(interval_s: float, quiet: int) -> float:
    """Return the interval doubled `quiet` times, at most a day and at least the interval."""
    # The exponent is limited because 2.0 ** 1024 overflows.
    return max(min(interval_s * 2.0 ** min(quiet, 40), MAX_BACKOFF_S), interval_s)


def _last_awake(trigger: Trigger) -> datetime:
    """Return when the agent last knew the state of things; anything later is news."""
    return max(filter(None, (trigger.created_at, trigger.fired_at, trigger.rested_at)))


def _news(tx: Tx, agent: Agent, ended: Sequence[WorkNode]) -> list[str]:
    unseen = messages.unseen(tx, agent.id)
    found = (
        [counted(len(unseen), "unread message, which follows", "unread messages, which follow")]
        if unseen
        else []
    )
    return found + [f"{texts.title_of(node)} ({node.id}) is {node.status}" for node in ended]


def _changed_files(trigger: Trigger, hashes: FileHashes) -> list[str]:
    if not trigger.watched:
        return []
    return [f"{path} has changed" for path, hash in hashes.items() if trigger.watched[path] != hash]


def _as_text(news: list[str]) -> str:
    if not news:
        return "Nothing has happened since you last looked."
    return "Since you last looked:\n" + "\n".join(f"- {line}" for line in news)
