"""Registry: the class of every event type."""

from typing import get_args

from agiraph.core.domain.events import (
    REGISTERED,
    EventType,
    TeamEvent,
    knowledge,
    mail,
    team,
    triggers,
    work,
)

MODULES = (team, work, mail, triggers, knowledge)
"""The modules with event classes; importing them registers the classes."""

# In the order of `EventType`, not of imports: the API's schema must not depend on who imported
# which module first. A type without a class raises KeyError here.
EVENT_CLASSES: dict[EventType, type[TeamEvent]] = {
    type: REGISTERED[type] for type in get_args(EventType)
}
