"""Starting: create a research job for a question, with a researcher hired for it."""

from dataclasses import replace
from typing import TypedDict, Unpack

from agiraph.core.domain.agents import Agent, Specialist
from agiraph.core.domain.errors import Refused
from agiraph.core.domain.ids import NodeId, PersonId, ThreadId
from agiraph.core.domain.provenance.labels import CLEAN, Label
from agiraph.core.domain.text.fence import one_line
from agiraph.core.domain.triggers import Trigger
from agiraph.core.domain.work import Budget, Source, WorkNode
from agiraph.core.services.board import budgets, planning, texts
from agiraph.core.services.members import roster
from agiraph.core.services.members.roster import Hirer
from agiraph.core.store import teams
from agiraph.core.store.nodes import NODES
from agiraph.core.store.teams import AGENTS
from agiraph.core.store.tx import Tx
from agiraph.features.research.model.jobs import DEPTHS, Depth, Limits, ResearchJob
from agiraph.features.research.model.kinds import RESEARCH
from agiraph.features.research.rows.jobs import JOBS
from agiraph.web import links
from agiraph.web.access import Web
from agiraph.web.search import NO_ENGINE

MOST_SEARCHES, MOST_PAGES = 100, 150
"""The most searches and pages that a request may ask for."""
LONGEST_GOAL = 20_000
RESEARCHER = "researcher"
TOOLS = ("web_search", "web_fetch", "note_evidence", "done")
"""The tools of a researcher and of its readers. They read untrusted pages, so none of the tools
stores knowledge."""
JOB_TURNS = 12
"""Turns of the job's own thread, which holds the brief; its parts have their own."""
SEARCH, FETCH = "web_search", "web_fetch"
"""The tools whose calls a job counts."""


class Wanted(TypedDict, total=False):
    """How much research is wanted, and whether it may ask."""

    depth: Depth | None
    searches: int | None
    pages: int | None
    asks: bool
    """Whether it came from a conversation, so that it may ask the person once."""


def start(
    tx: Tx,
    hirer: Hirer,
    goal: str,
    *,
    person_id: PersonId | None = None,
    parent_id: NodeId | None = None,
    label: Label = CLEAN,
    earlier: WorkNode | None = None,
    standing: Trigger | None = None,
    **wanted: Unpack[Wanted],
) -> WorkNode:
    """Create a research job for a newly hired researcher.

    With `parent_id` it is part of that work and paid from its budget; otherwise the person with
    `person_id` asked for it, or without one the team's owner. Without a `label` the question is in
    words of a person or of a clean thread, and the readers are public. With `earlier`, it has the
    ledger and the label of that job from the start. `standing` is the trigger of a question that is
    asked again and again.
    """
    depth, searches, pages = wanted.get("depth"), wanted.get("searches"), wanted.get("pages")
    _check_request(goal, searches, pages)
    if earlier is not None:
        _check_earlier(tx, hirer.agent, earlier)
        # The question and the claims of that job are shown to this one.
        label |= earlier.label
    agent, worker = hirer.agent, _hire_researcher(tx, hirer)
    node = planning.create(
        tx,
        team_id=agent.team_id,
        task=goal.strip(),
        title=texts.truncate(f"Research: {texts.first_line(goal)}", texts.TITLE),
        source=_source(parent_id, standing),
        creator_id=agent.id if parent_id else person_id or teams.owner_of(tx, agent.team_id),
        assignee_id=worker.id,
        parent_id=parent_id,
        budget=_budget(tx, depth, searches, pages, parent_id),
        asked_of=agent.id,
        trigger_id=None if standing is None else standing.id,
        payer_id=None if standing is None else standing.payer_id,
        label=label,
        kind=RESEARCH,
    )
    job = ResearchJob(
        id=node.id,
        team_id=node.team_id,
        question=goal.strip(),
        depth=depth,
        asks=wanted.get("asks", False),
        continues=None if earlier is None else earlier.id,
        searches=searches,
        pages=pages,
        standing=None if standing is None else standing.id,
        created_at=tx.now,
    )
    JOBS.insert(tx, job)
    return node


def check_engine(web: Web, goal: str) -> None:
    """Raise `Refused`, with the settings that would help, if there is no search engine and the
    question names no page to begin with."""
    if web.engine is None and not links.hosts_in(goal):
        raise Refused(NO_ENGINE)


def continue_with_answer(
    tx: Tx, ended: WorkNode, answer: str, *, person_id: PersonId, label: Label
) -> WorkNode:
    """Start research that goes on from an ended job, with a person's late answer to its question.
    The report of that job did not use the answer; `label` is the answer's."""
    assert ended.asked_of is not None
    assert ended.assignee_id is not None
    job, before = JOBS.get(tx, ended.id), AGENTS.get(tx, ended.assignee_id)
    known = Specialist(name=RESEARCHER, description="", prompt=before.identity, model=before.model)
    asked = "" if job.brief is None else one_line(job.brief.ask)
    return start(
        tx,
        Hirer(AGENTS.get(tx, ended.asked_of), ThreadId(""), {RESEARCHER: known}, str),
        f"{job.question}\n\n(Asked {asked!r}, the person says:) {answer}",
        depth=job.depth,
        person_id=person_id,
        label=label,
        asks=True,
        earlier=ended,
    )


def _source(parent_id: NodeId | None, standing: Trigger | None) -> Source:
    if standing is not None:
        return "trigger"
    return "user" if parent_id is None else "delegation"


def _check_request(goal: str, searches: int | None, pages: int | None) -> None:
    if not goal.strip():
        raise Refused("Say what is to be found out: the goal is empty.")
    if len(goal) > LONGEST_GOAL:
        raise Refused(f"A research goal holds {LONGEST_GOAL:,} characters; say what matters most.")
    if not (0 <= (searches or 0) <= MOST_SEARCHES and 0 <= (pages or 0) <= MOST_PAGES):
        raise Refused(f"A budget is 0 to {MOST_SEARCHES} searches and 0 to {MOST_PAGES} pages.")


def _check_earlier(tx: Tx, agent: Agent, earlier: WorkNode) -> None:
    if earlier.team_id != agent.team_id or JOBS.find(tx, earlier.id) is None:
        raise Refused(f"{earlier.id} is not research of this team: leave out `continues`.")


def _hire_researcher(tx: Tx, hirer: Hirer) -> Agent:
    """Hire an agent for this one question; it leaves the team when the report is written."""
    agent = hirer.agent
    unknown = Specialist(name=RESEARCHER, description="", prompt="")
    specialist = hirer.specialists.get(RESEARCHER, unknown)
    return roster.hire(
        tx,
        agent.team_id,
        name=roster.free_name(tx, agent.team_id, RESEARCHER),
        role=RESEARCHER,
        model=specialist.model or agent.model,
        tools=TOOLS,
        identity=specialist.prompt,
        persistent=False,
        parent_thread_id=hirer.thread_id,
    )


def _budget(
    tx: Tx, depth: Depth | None, searches: int | None, pages: int | None, parent_id: NodeId | None
) -> Budget:
    """Return what a job may spend; the brief may choose a smaller depth than the standard one."""
    budget = of_depth(DEPTHS[depth or "standard"], searches, pages)
    if parent_id is None:
        return budget
    share = budgets.share(tx, NODES.get(tx, parent_id), turns=JOB_TURNS)
    return replace(
        share,
        usd=_least(share.usd, budget.usd),
        tokens=int(_least(share.tokens, budget.tokens) or 0),
        seconds=_least(share.seconds, budget.seconds),
        calls=budget.calls,
    )


def of_depth(limits: Limits, searches: int | None, pages: int | None) -> Budget:
    """Return the budget of a job with a depth's limits; `searches` and `pages` override them."""
    return Budget(
        turns=JOB_TURNS,
        usd=limits.usd,
        tokens=limits.tokens,
        seconds=limits.seconds,
        calls={
            SEARCH: limits.searches if searches is None else searches,
            FETCH: limits.pages if pages is None else pages,
        },
        given={"turns": JOB_TURNS},
    )


def lowered(budget: Budget, limits: Limits) -> Budget:
    """Return the budget with no more than a smaller depth allows."""
    return replace(
        budget,
        usd=_least(budget.usd, limits.usd),
        tokens=int(_least(budget.tokens, limits.tokens) or 0),
        seconds=_least(budget.seconds, limits.seconds),
    )


def _least(one: float | None, other: float | None) -> float | None:
    known = [limit for limit in (one, other) if limit is not None]
    return min(known, default=None)
