"""ReflectingModel: a scripted model that works, reflects on its work and briefs the person."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from agiraph.core.domain.chat import Turn
from agiraph.core.domain.ids import SYSTEM, AgentId, TeamId
from agiraph.core.domain.provenance.labels import CLEAN, Label
from agiraph.core.domain.work import Source, WorkNode
from agiraph.core.services.board import planning
from agiraph.models.base import OnDelta, Reply, Request
from agiraph.testing import Says, World, call, says
from agiraph.testing.scripted import as_reply

NOTHING = json.dumps({"insights": []})
INSIGHT = {"type": "technique", "content": "Check filings first", "confidence": 0.9, "work": 1}
HARVEST = json.dumps({"insights": [INSIGHT]})
SILENCE = json.dumps({"score": 0.1, "title": "", "summary": "", "text": ""})

Answer = str | BaseException | Callable[[Request], "str | BaseException"]


def briefing(title: str, text: str, score: float = 0.9, summary: str = "") -> str:
    return json.dumps({"score": score, "title": title, "summary": summary, "text": text})


@dataclass(slots=True)
class ReflectingModel:
    """Submits every task at once. Of `harvest` and `verdict` the last entry repeats."""

    name: str = "scripted/ada"
    harvest: list[Answer] = field(default_factory=lambda: [HARVEST])
    verdict: list[Answer] = field(default_factory=lambda: [SILENCE])
    work: Callable[[Request], Says] | None = None
    asked: list[tuple[str, tuple[Turn, ...], Any]] = field(default_factory=list)
    """Every question about finished work: its name, the turns that were sent, the schema."""

    async def reply(self, request: Request, on_delta: OnDelta | None = None) -> Reply:
        turns = tuple(request.transcript.spoken())
        ref = (turns[-1].ref or "").partition(":")[0]
        if ref not in ("harvest", "briefing"):
            return as_reply((self.work or submit)(request))
        self.asked.append((turns[-1].ref or "", turns, request.schema))
        answers = self.harvest if ref == "harvest" else self.verdict
        answer = answers.pop(0) if len(answers) > 1 else answers[0]
        said = answer(request) if callable(answer) else answer
        if isinstance(said, BaseException):
            raise said
        return as_reply(says(said))

    def questions(self) -> list[str]:
        return [name for name, _, _ in self.asked]


def submit(request: Request) -> Says:
    ending = "finish" if any(tool.name == "finish" for tool in request.tools) else "publish"
    return says(call(ending, summary="Found what there is."))


async def create_node(
    world: World,
    team_id: TeamId,
    agent_id: AgentId,
    task: str = "Look around",
    *,
    source: Source = "trigger",
    creator_id: str = SYSTEM,
    label: Label = CLEAN,
) -> WorkNode:
    """Create a node for an agent, by default one that no person or agent asked for."""
    return await world.store.write(
        planning.create,
        team_id=team_id,
        task=task,
        title=task,
        source=source,
        creator_id=creator_id,
        assignee_id=agent_id,
        label=label,
    )
