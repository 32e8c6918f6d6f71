"""Event classes: one for each event type, which also defines the stored data and the schema."""

from dataclasses import fields, replace
from datetime import UTC, datetime
from typing import Any, get_args

import pytest

from agiraph.api.event_models import EVENT_CLASSES, EVENT_MODELS, MODULES, mismatches, schemas
from agiraph.core.domain.events import REGISTERED, Event, EventType, TeamEvent, event
from agiraph.core.domain.events.work import CallPreview, NodeAssigned, NodeCheckpoint, TurnAdded
from agiraph.core.domain.ids import TeamId
from agiraph.testing import World, call, says

SCHEMAS = schemas("#/components/schemas/{model}")


def unregistered(classes: list[type[TeamEvent]]) -> list[str]:
    """Return the names of the event classes that are not registered."""
    return [c.__name__ for c in classes if EVENT_CLASSES.get(c.event_type) is not c]


def test_every_event_class_is_registered_and_in_the_schema() -> None:
    classes = [
        found
        for module in MODULES
        for found in vars(module).values()
        if isinstance(found, type) and issubclass(found, TeamEvent) and found is not TeamEvent
    ]
    assert unregistered(classes) == []
    assert len(classes) == len(EVENT_CLASSES)
    assert set(REGISTERED) == set(EVENT_MODELS) == set(get_args(EventType))


def test_an_unregistered_event_class_is_found() -> None:
    class NodeMoved(TeamEvent):
        event_type = "node.moved"  # pyright: ignore
        required_fields, optional_fields = (), ()

    assert unregistered([NodeMoved]) == ["NodeMoved"]
    moved: Any = {"type": NodeMoved.event_type, "data": NodeMoved().data()}
    assert mismatches(stored(NodeCheckpoint(node_id="node_a", summary="half"), **moved)) == [
        "node.moved has no registered class: decorate its class with `@event`"
    ]


def test_a_second_class_for_an_event_type_is_refused() -> None:
    class Again(TeamEvent):
        event_type = "node.started"

    with pytest.raises(TypeError, match=r"'node\.started' has two classes"):
        event(Again)


def stored(emitted: TeamEvent, **changes: Any) -> Event:
    at = datetime(2026, 1, 1, tzinfo=UTC)
    team = TeamId("team_a")
    made = Event(team_id=team, seq=1, type=emitted.event_type, at=at, data=emitted.data())
    return replace(made, **changes)


@pytest.mark.parametrize(
    ("data", "wrong"),
    [
        ({"summary": "half"}, "node_id"),
        ({"node_id": "node_a", "summary": 7}, "valid string"),
        ({"node_id": "node_a", "summary": "half", "by": "ada"}, "`by` is not a field"),
    ],
)
def test_a_stored_event_that_does_not_match_its_class_is_found(
    data: dict[str, Any], wrong: str
) -> None:
    fitting = stored(NodeCheckpoint(node_id="node_a", summary="half"))
    assert mismatches(fitting) == []
    [found] = mismatches(replace(fitting, data=data))
    assert wrong in found


def test_an_unset_optional_field_is_left_out() -> None:
    assigned = NodeAssigned(node_id="node_a", agent_id="agent_a")
    assert assigned.data() == {"node_id": "node_a", "agent_id": "agent_a"}
    assert replace(assigned, added={"turns": 5.0}).data()["added"] == {"turns": 5.0}


def test_the_tool_calls_of_a_turn_event_are_plain_json() -> None:
    calls = [CallPreview(id="call_1", name="bash", arguments={"command": "ls"})]
    reply = TurnAdded(
        node_id="node_a", thread_id="t_a", agent_id="agent_a", seq=1, text="", calls=calls,
        tokens=1, usd=None,
    )  # fmt: skip
    assert reply.data()["calls"] == [
        {"id": "call_1", "name": "bash", "arguments": {"command": "ls"}}
    ]


@pytest.mark.parametrize("cls", EVENT_CLASSES.values(), ids=lambda cls: cls.__name__)
def test_the_schema_of_an_event_matches_its_class(cls: type[TeamEvent]) -> None:
    whole, data = SCHEMAS[f"{cls.__name__}Event"], SCHEMAS[cls.__name__]
    assert whole["properties"]["type"]["const"] == cls.event_type
    assert whole["properties"]["data"] == {"$ref": f"#/components/schemas/{cls.__name__}"}
    assert list(data.get("properties", {})) == [f.name for f in fields(cls)]  # pyright: ignore
    assert data.get("required", []) == list(cls.required_fields)


def test_the_docstrings_of_fields_are_their_descriptions() -> None:
    described = SCHEMAS["NodeCompleted"]["properties"]["doubts"]["description"]
    assert described == "What could not be confirmed of the result."
    assert SCHEMAS["CallPreview"]["properties"]["arguments"]["description"]


async def test_a_world_validates_the_events_it_emits(world: World) -> None:
    def spoil(tx: Any, team_id: Any) -> None:
        tx.emit(team_id, NodeCheckpoint(node_id="node_a", summary=7))  # pyright: ignore

    world.script("ada", says("Done.", call("finish", summary="done")))
    founded = await world.found("Say it")
    await world.settle()
    assert world.invalid_events == []
    await world.store.write(spoil, founded.team.id)
    [found] = world.invalid_events
    assert found.startswith("node.checkpoint: ")
    world.invalid_events.clear()
