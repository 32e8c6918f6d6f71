"""Events: records of what happened in a team, numbered without gaps in commit order.

Each event type is one class in a module of this package; `registry` maps type strings to classes.
This module defines no event class, so that a command that only reads `Event` rows starts quickly.
"""

from collections.abc import Callable
from dataclasses import field, fields
from datetime import datetime
from operator import attrgetter
from typing import Any, ClassVar, Literal, TypeVar, dataclass_transform

from agiraph.core.domain.ids import TeamId
from agiraph.core.domain.value import value

EventType = Literal[
    "team.created",
    "team.completed",
    "team.paused",
    "team.resumed",
    "team.stopped",
    "team.changed",
    "team.archived",
    "team.restored",
    "team.deleted",
    "work.stopped",
    "work.resumed",
    "grant.made",
    "grant.used",
    "grant.revoked",
    "agent.hired",
    "agent.left",
    "agent.returned",
    "agent.promoted",
    "node.created",
    "node.assigned",
    "node.changed",
    "node.started",
    "node.waiting",
    "node.completed",
    "node.partial",
    "node.failed",
    "node.cancelled",
    "node.extended",
    "node.checkpoint",
    "node.acceptance",
    "node.stalled",
    "node.output",
    "folder.changed",
    "report.shared",
    "stage.started",
    "stage.ended",
    "stage.reconvened",
    "thread.opened",
    "thread.compacted",
    "turn.added",
    "tool.result",
    "network.reached",
    "network.refused",
    "message.sent",
    "message.seen",
    "message.filed",
    "question.asked",
    "question.answered",
    "reply.act_undone",
    "model.failed",
    "call.lost",
    "trigger.created",
    "trigger.changed",
    "trigger.fired",
    "trigger.postponed",
    "trigger.skipped",
    "trigger.ended",
    "memory.written",
    "insight.learned",
    "knowledge.pending",
    "knowledge.changed",
    "thread.harvested",
    "briefing.decided",
    "briefing.rated",
    "delivery.sent",
    "delivery.failed",
]

PREVIEW = 400
"""The most characters of a text that an event carries; the thread has the whole text."""


def _no_values(_: object) -> tuple[Any, ...]:
    return ()


class TeamEvent:
    """The payload of one event type, as code emits it: `tx.emit(team_id, NodeStarted(…))`.

    The fields of a subclass are the keys of the stored JSON, in order.
    """

    __slots__ = ()
    # Read by Pydantic, which describes the API: a field's docstring is its description.
    __pydantic_config__: ClassVar[dict[str, bool]] = {"use_attribute_docstrings": True}
    event_type: ClassVar[EventType]
    # Precomputed by `event`: every model turn emits two or three events.
    required_fields: ClassVar[tuple[str, ...]]
    optional_fields: ClassVar[tuple[str, ...]]
    _values: ClassVar[Callable[[Any], tuple[Any, ...]]] = staticmethod(_no_values)
    """Returns the values of the required fields."""

    def data(self) -> dict[str, Any]:
        """Return the payload as stored and sent: an optional field that is None is left out."""
        data = dict(zip(self.required_fields, type(self)._values(self), strict=True))
        for name in self.optional_fields:
            if (content := getattr(self, name)) is not None:
                data[name] = content
        return data


E = TypeVar("E", bound=TeamEvent)
REGISTERED: dict[EventType, type[TeamEvent]] = {}
"""The classes registered so far, in import order. Read `registry.EVENT_CLASSES` instead, which
is complete."""


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(field,))
def event(cls: type[E]) -> type[E]:
    """Make a subclass of `TeamEvent` a value and register it as the class of its `event_type`."""
    if cls.event_type in REGISTERED:
        raise TypeError(f"{cls.event_type!r} has two classes: give {cls.__name__} its own type.")
    made = value(cls)
    # A default of None marks a field as optional; the stored JSON leaves it out when it is None.
    made.required_fields = tuple(f.name for f in fields(made) if f.default is not None)  # pyright: ignore
    made.optional_fields = tuple(f.name for f in fields(made) if f.default is None)  # pyright: ignore
    # Of fewer than two names, `attrgetter` would return no tuple.
    names = made.required_fields
    made._values = staticmethod(  # pyright: ignore[reportPrivateUsage]
        attrgetter(*names) if len(names) > 1 else lambda one: tuple(getattr(one, n) for n in names)
    )
    REGISTERED[made.event_type] = made
    return made


@value
class Event:
    """An event as committed: the payload with its team, number and time."""

    team_id: TeamId
    seq: int
    type: EventType
    at: datetime
    data: dict[str, Any] = field(default_factory=dict[str, Any])
