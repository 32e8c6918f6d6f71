"""Found: one thing that a search over all teams has found."""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Literal

from agiraph.core.domain.ids import AgentId, NodeId, TeamId, ThreadId
from agiraph.core.domain.provenance.labels import CLEAN, Label
from agiraph.core.domain.text.fence import without_marks
from agiraph.core.domain.value import dataclass

FoundKind = Literal[
    "team", "agent", "work", "message", "file", "note", "insight", "page", "report", "step"
]
"""step: what an agent said or did in a thread of its work."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    kind: FoundKind
    team_id: TeamId
    ref: str
    """What it is: the id of a team, agent, node, message, insight or thread, a path, or a URL."""
    title: str
    text: str
    at: datetime
    agent_id: AgentId | None = None
    node_id: NodeId | None = None
    thread_id: ThreadId | None = None
    seq: int | None = None
    """For a step, the number of its turn in the thread."""
    label: Label = CLEAN


_MAIN = (
    *("path", "command", "query", "url", "content", "task", "message", "question", "summary"),
    *("name", "title"),
)
"""Arguments that say most about a call, the best one first."""


def describe_calls(calls: Sequence[Mapping[str, Any]]) -> tuple[str, str]:
    """Return the tool calls of a turn in words: what was called with what main argument, and the
    text of all arguments. Each call has a `name` and `arguments`, or the text `malformed`."""
    lines = [" ".join(f"{call['name']} {_main(call)}".split())[:120].strip() for call in calls]
    texts = [_text(value) for call in calls for value in _arguments(call).values()]
    return "Called " + ", ".join(lines), "\n".join(text for text in texts if text)


def _arguments(call: Mapping[str, Any]) -> Mapping[str, Any]:
    return call.get("arguments") or {"": call.get("malformed") or ""}


def _main(call: Mapping[str, Any]) -> str:
    arguments = _arguments(call)
    named = [arguments[name] for name in _MAIN if isinstance(arguments.get(name), str)]
    texts = [value for value in (*named, *arguments.values()) if isinstance(value, str) and value]
    return without_marks(texts[0]).strip().partition("\n")[0] if texts else ""


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
