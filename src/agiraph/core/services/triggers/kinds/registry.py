"""Registry: the kind of each trigger type. A new kind is a module beside this and an entry here."""

from typing import Any

from agiraph.core.domain.errors import Refused
from agiraph.core.domain.triggers import Trigger, TriggerType
from agiraph.core.services.triggers.kinds.base import Kind
from agiraph.core.services.triggers.kinds.heartbeat import Heartbeat
from agiraph.core.services.triggers.kinds.on_event import OnEvent, OnIdle, Webhook
from agiraph.core.services.triggers.kinds.timed import AtTime, Delayed, Scheduled

KINDS: dict[TriggerType, Kind[Any]] = {
    kind.name: kind
    for kind in (
        Delayed(),
        AtTime(),
        Scheduled(),
        Heartbeat(),
        OnIdle(),
        OnEvent(),
        Webhook(),
    )
}


def kind_named(type: str) -> Kind[Any]:
    for known, kind in KINDS.items():
        if known == type:
            return kind
    raise Refused(f"There is no trigger of type {type!r}; there are {', '.join(KINDS)}.")


def kind_of(trigger: Trigger) -> Kind[Any]:
    return KINDS[trigger.type]
