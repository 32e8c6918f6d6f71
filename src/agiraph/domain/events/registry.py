"""Registry: the class of every event type."""

from agiraph.domain.events import EVENT_CLASSES, knowledge, mail, team, triggers, work

__all__ = ["EVENT_CLASSES", "knowledge", "mail", "team", "triggers", "work"]
