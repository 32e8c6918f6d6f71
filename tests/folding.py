"""Folding: compare the board that is folded from a team's events with the board in its rows."""

from itertools import pairwise
from typing import Any

from agiraph.core.domain.events import PREVIEW
from agiraph.core.domain.ids import TeamId
from agiraph.core.store import dependencies, events, nodes, stages, teams
from agiraph.core.store.tx import Tx
from agiraph.features.history import boards
from agiraph.features.history.boards import BoardFold, BoardMoment
from agiraph.features.history.spans import SpanFold

FIELDS = (
    "status", "assignee_id", "parent_id", "lane", "stage_id", "attempt", "waiting_reason",
    "stop_reason", "doubts", "checkpoint", "created_at", "started_at", "ended_at",
)  # fmt: skip


def folded_differences(tx: Tx) -> list[str]:
    """Return how the folded boards of all teams differ from their rows."""
    return [line for team in teams.every(tx) for line in differences(tx, team.id)]


def differences(tx: Tx, team_id: TeamId) -> list[str]:
    history = events.after(tx, team_id, 0, limit=1_000_000)
    moment = boards.fold(history)
    needed = dependencies.of_team(tx, team_id)
    found: list[str] = []
    rows = nodes.everything(tx, team_id)
    for node in rows:
        folded = moment.nodes.get(node.id)
        if folded is None:
            found.append(f"{node.id} is not in the folded board")
            continue
        expected = {name: getattr(node, name) for name in FIELDS}
        got = {name: getattr(folded, name) for name in FIELDS}
        found += [
            f"{node.id} {node.title!r}: {name} is {got[name]!r} when folded, {value!r} in its row"
            for name, value in expected.items()
            if got[name] != value
        ]
        if set(folded.needs) != set(needed.get(node.id, [])):
            found.append(f"{node.id}: needs {folded.needs} when folded")
    found += _stage_differences(tx, team_id, moment)
    members = {agent.id for agent in teams.members(tx, team_id)}
    if members != moment.members:
        found.append(f"members are {moment.members} when folded, {members} in their rows")
    found += _moment_differences(history, moment)
    return found + _span_differences(history, {node.id for node in rows if node.started_at})


def _stage_differences(tx: Tx, team_id: TeamId, moment: BoardMoment) -> list[str]:
    rows = {stage.id: stage.status for stage in stages.of_team(tx, team_id)}
    folded = {stage.id: stage.status for stage in moment.stages.values()}
    return [] if rows == folded else [f"stages are {folded} when folded, {rows} in their rows"]


def _moment_differences(history: list[Any], whole: BoardMoment) -> list[str]:
    """Return how the moments that the server keeps differ from a fold from the start."""
    kept = BoardFold()
    for event in history:
        kept.add(event)
    last = kept.moment(len(history))
    for node in (*last.nodes.values(), *whole.nodes.values()):
        node.result = node.result and node.result[:PREVIEW]  # the server keeps no whole results
    return [] if last.nodes == whole.nodes and last.stages == whole.stages else ["moments differ"]


def _span_differences(history: list[Any], started: set[str]) -> list[str]:
    """Return where the spans of a node overlap or leave a gap, and which started node has none."""
    fold = SpanFold()
    for event in history:
        fold.add(event)
    spans = [*fold.closed, *fold.open_spans()]
    found: list[str] = []
    by_node: dict[str, list[Any]] = {}
    for span in sorted(spans, key=lambda span: span.number):
        by_node.setdefault(span.node_id, []).append(span)
    ends = {e.seq for e in history if e.type.startswith("node.") and "result" in e.data}
    for node_id, own in by_node.items():
        for before, after in pairwise(own):
            # Between the end of an attempt and a retry nobody works on the node.
            if before.seq not in ends and before.end != after.start:
                found.append(f"{node_id}: {before.phase} ends at {before.end}, not {after.start}")
    lacking = {e.data["node_id"] for e in history if e.type == "node.started"} - set(by_node)
    took_time = [node for node in lacking & started if _takes_time(history, node)]
    return found + [f"{node} has no spans" for node in took_time]


def _takes_time(history: list[Any], node_id: str) -> bool:
    times = {e.at for e in history if e.data.get("node_id") == node_id}
    return len(times) > 1
