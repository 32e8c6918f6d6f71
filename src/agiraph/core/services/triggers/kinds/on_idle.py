"""On idle: a trigger that fires when its agent has had no work for some time."""

from agiraph.core.domain.agents import Agent
from agiraph.core.domain.triggers import Trigger, TriggerType
from agiraph.core.services.triggers import firing
from agiraph.core.services.triggers.kinds.after_work import AfterWork
from agiraph.core.services.triggers.kinds.base import Seconds, TriggerConfig
from agiraph.core.store import nodes
from agiraph.core.store.tx import Tx


class OnIdleConfig(TriggerConfig):
    idle_seconds: Seconds


class OnIdle(AfterWork[OnIdleConfig]):
    name: TriggerType = "on_idle"
    interval_field = "idle_seconds"
    config_type = OnIdleConfig
    example = '{"idle_seconds": 3600}'
    guidance = f"{example}: if nothing was done for so long"

    def idle_s(self, config: OnIdleConfig) -> float:
        return config.idle_seconds

    def describe(self, config: OnIdleConfig) -> str:
        return f"you have done nothing for {config.idle_seconds:g} seconds"

    def on_due(self, tx: Tx, trigger: Trigger, agent: Agent) -> None:
        if nodes.has_open(tx, agent.id):
            return firing.arm(tx, trigger, None)  # on_agent_idle sets the next due time
        self.fire(tx, trigger, f"idle {trigger.fired + trigger.skipped + 1}")
        return self.rearm_after_work(tx, trigger, agent, self.read(trigger.config))
