"""After work: the part shared by kinds that are due some time after their agent's last work."""

from abc import abstractmethod
from datetime import datetime, timedelta
from typing import Any

from agiraph.core.domain.agents import Agent
from agiraph.core.domain.triggers import Trigger
from agiraph.core.services.triggers import firing
from agiraph.core.services.triggers.kinds.base import C, Kind
from agiraph.core.store import nodes
from agiraph.core.store.tx import Tx


class AfterWork(Kind[C]):
    is_due_after_work = True
    interval_field: str
    """The field of the configuration that holds the seconds of `idle_s`."""

    @abstractmethod
    def idle_s(self, config: C) -> float:
        """Return how many seconds after the agent's last work the trigger is due."""

    def next_due(self, config: C, after: datetime) -> datetime:
        return after + timedelta(seconds=self.idle_s(config))

    def slowed(self, config: dict[str, Any], least_s: float) -> dict[str, Any]:
        given = config.get(self.interval_field)
        if not isinstance(given, int | float):
            return config  # `read` says what is wrong with it
        return config | {self.interval_field: max(given, least_s)}

    def on_agent_idle(self, tx: Tx, trigger: Trigger, *, quiet: int) -> None:
        due = self.next_due(self.read(trigger.config), tx.now)
        firing.arm(tx, trigger, due, rested_at=tx.now, quiet=quiet)

    def rearm_after_work(self, tx: Tx, trigger: Trigger, agent: Agent, config: C) -> None:
        """Set the next due time: none while the agent works, else the interval from now."""
        is_working = nodes.has_open(tx, agent.id)
        self.rearm(tx, trigger, None if is_working else self.next_due(config, tx.now))
