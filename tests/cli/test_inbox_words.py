"""The inbox in a terminal says what became of a task, never the raw name of a limit."""

from agiraph.api.presenters import inbox_item_view
from agiraph.cli.inbox import ending_text
from agiraph.core.domain.messages import Draft, MessageKind
from agiraph.core.domain.persons import OWNER
from agiraph.core.domain.records.doubts import Doubt
from agiraph.core.domain.work import NodeStatus, StopReason
from agiraph.core.services.lifecycle import teams
from agiraph.core.services.mail import bus, inbox
from agiraph.core.store.nodes import NODES
from agiraph.core.store.tx import Tx
from agiraph.testing import World


def _labels(tx: Tx) -> list[str]:
    made = teams.create(tx, owner_id=OWNER, goal="Count", model="openai/test")
    assert made.node is not None
    found: list[str] = []
    doubt = Doubt(kind="file", words="`a.md` is missing")
    ends: list[tuple[MessageKind, NodeStatus, tuple[Doubt, ...]]] = [
        ("failure", NodeStatus.PARTIAL, ()),
        ("failure", NodeStatus.FAILED, ()),
        ("failure", NodeStatus.COMPLETED, ()),
        ("failure", NodeStatus.RUNNING, ()),
        ("result", NodeStatus.COMPLETED, ()),
        ("result", NodeStatus.COMPLETED, (doubt,)),
    ]
    for kind, status, doubts in ends:
        NODES.update(tx, made.node.id, status=status)
        sent = bus.send(
            tx,
            Draft(
                team_id=made.team.id,
                sender=made.coordinator.id,
                recipient=OWNER,
                kind=kind,
                title="Count",
                text=f"{kind} {len(found)}",
                doubts=doubts,
                node_id=made.node.id,
            ),
        )
        found.append(ending_text(inbox_item_view(tx, inbox.item(tx, OWNER, sent.id))))
    return found


async def test_an_end_is_named_by_what_became_of_the_task(world: World) -> None:
    assert await world.store.write(_labels) == [
        "partial result",
        "failure",
        "done since",
        "goes on",
        "result",
        "done, with doubts",
    ]


def test_every_reason_for_an_end_has_words() -> None:
    assert [r for r in StopReason if "_" in r.words or not r.words] == []
