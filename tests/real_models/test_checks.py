"""The checks of a run with the real model: each notices what it is there for."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from agiraph.core.domain.ids import AgentId, NodeId, TeamId
from agiraph.core.domain.persons import OWNER
from agiraph.core.domain.work import Budget, NodeStatus, StopReason, WorkNode
from agiraph.core.store.spend import Spend
from agiraph.models.servers import Server
from tests.real_models.runs import GOALS, Ended, check, words_of

SETTING = words_of(Server(base_url="http://127.0.0.1:1/v1"), 4_096)
NODE = WorkNode(
    id=NodeId("node_1"),
    team_id=TeamId("team_1"),
    task="Write a haiku about rain into haiku.md.",
    source="system",
    creator_id=OWNER,
    created_at=datetime(2026, 1, 5, tzinfo=UTC),
    status=NodeStatus.FAILED,
    stop_reason=StopReason.SILENT,
)
PAID = Spend(
    node_id=NODE.id,
    agent_id=AgentId("agent_1"),
    purpose="work",
    model="text/llamacpp/smollm2",
    day="2026-01-05",
    team_id=NODE.team_id,
    calls=0,
    lost=0,
    input_tokens=900,
    output_tokens=60,
    cached_tokens=0,
    cache_write_tokens=0,
    thinking_tokens=0,
    usd=0.0,
    unpriced=0,
    estimated=0,
    outermost_id=NODE.id,
)
TOLD: Any = ["a message"]
ENDED = Ended(
    node=NODE, board=[NODE], replies=[], bill=[PAID], files={}, told=TOLD, asked=[], seconds=1.0
)


def changed(**node: Any) -> Ended:
    other = replace(NODE, **node)
    return replace(ENDED, node=other, board=[other])


def test_an_honest_failure_passes() -> None:
    check(ENDED, SETTING, GOALS[1], Budget(turns=4, tokens=1_000))


@pytest.mark.parametrize(
    "ended",
    [
        changed(status=NodeStatus.COMPLETED, stop_reason=StopReason.FINISHED),
        changed(status=NodeStatus.RUNNING),
        changed(status=NodeStatus.WAITING, waiting_reason="a person"),
        changed(stop_reason=StopReason.BROKEN),
        replace(ENDED, told=[]),
        replace(ENDED, bill=[replace(PAID, input_tokens=1_000)]),
        replace(ENDED, bill=[replace(PAID, calls=1)]),
        replace(ENDED, bill=[replace(PAID, lost=1)]),
        replace(ENDED, bill=[replace(PAID, estimated=1)]),
        replace(ENDED, bill=[replace(PAID, usd=0.1)]),
        replace(ENDED, bill=[replace(PAID, unpriced=1)]),
    ],
    ids=["not-done", "stuck", "nothing-asked", "broken", "untold", "over", "unbooked", "lost",
         "estimated", "paid", "unpriced"],
)  # fmt: skip
def test_a_run_that_is_not_as_it_says_fails(ended: Ended) -> None:
    with pytest.raises(AssertionError):
        check(ended, SETTING, GOALS[1], Budget(turns=4, tokens=1_000))
