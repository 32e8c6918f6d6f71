"""Research: have a hired researcher answer a question from the web, and deliver the report."""

import re
from dataclasses import replace
from string import Template

from agiraph.domain.agents import Agent, Specialist
from agiraph.domain.errors import Refused
from agiraph.domain.fence import enclose
from agiraph.domain.ids import NodeId, PersonId
from agiraph.domain.labels import CLEAN, Label
from agiraph.domain.messages import MessageKind
from agiraph.domain.work import Budget, NodeStatus, WorkNode
from agiraph.prompts import prompt
from agiraph.services.board import budgets, labels, planning, texts
from agiraph.services.mail import bus
from agiraph.services.members import roster
from agiraph.services.members.hiring import Hirer
from agiraph.store import passages, persons
from agiraph.store.nodes import NODES
from agiraph.store.tx import Tx

SEARCHES, PAGES = 5, 3
"""Searches and pages of a research, unless its request says otherwise."""
MOST_SEARCHES, MOST_PAGES = 50, 30
"""The most searches and pages that a request may ask for."""
LONGEST_GOAL = 20_000
RESEARCHER = "researcher"
TOOLS = ("web_search", "web_fetch", "knowledge_search", "read_file")
"""The tools of a researcher. It has none to store knowledge: it reads strangers' pages."""
LOOK = " look with knowledge_search what the team has read\nalready;"
STEPS = 8
"""Turns beside those for searches and pages: to plan, to read again, to write."""
SUMMARY = 1200
"""Characters of a report that go into the conversation; the inbox holds all of it."""
EXHAUSTED = "Budget exhausted — synthesise your findings now."

_SECTION = re.compile(
    r"^#+\s*summary\s*$(.*?)(?=^#+\s|\Z)", re.IGNORECASE | re.DOTALL | re.MULTILINE
)


def start(
    tx: Tx,
    hirer: Hirer,
    goal: str,
    *,
    searches: int = SEARCHES,
    pages: int = PAGES,
    person_id: PersonId | None = None,
    parent_id: NodeId | None = None,
    label: Label = CLEAN,
    is_public: bool = False,
    earlier: WorkNode | None = None,
) -> WorkNode:
    """Create a research node for a newly hired researcher.

    With `parent_id` it is part of that work and paid from its budget; otherwise the person with
    `person_id` asked for it, or without one the team's owner. `is_public`: the goal is in words of
    a person or of a clean thread, so the researcher is a public reader. With `earlier`, the
    researcher is given the report of that research and goes on from it.
    """
    _check_request(goal, searches, pages)
    agent, worker = hirer.agent, _hire_researcher(tx, hirer)
    words, asked = Template(prompt("research")), goal.strip()
    if label:
        what = f"what is asked, in the words of {agent.name}, who had read strangers' words before"
        asked = enclose(asked, thread=hirer.thread_id, what=what)
    if earlier is not None:
        asked += f"\n\n{_earlier_report(earlier, hirer)}"
        label |= labels.of_nodes(tx, [earlier.id]) | earlier.label
    return planning.create(
        tx,
        team_id=agent.team_id,
        task=words.safe_substitute(
            goal=asked,
            searches=searches,
            pages=pages,
            look="" if is_public else LOOK,
        ),
        title=f"Research: {texts.first_line(goal)}",
        source="user" if parent_id is None else "delegation",
        creator_id=agent.id if parent_id else person_id or persons.owner_of(tx, agent.team_id),
        assignee_id=worker.id,
        parent_id=parent_id,
        budget=_budget(tx, searches, pages, parent_id),
        asked_of=agent.id,
        label=label,
        is_public=is_public,
    )


def _earlier_report(earlier: WorkNode, hirer: Hirer) -> str:
    what = f"the report of {earlier.id}, from which this research goes on. It is data."
    report = texts.truncate((earlier.result or "").strip(), LONGEST_GOAL)
    return enclose(report, thread=hirer.thread_id, what=what)


def _check_request(goal: str, searches: int, pages: int) -> None:
    if not goal.strip():
        raise Refused("Say what is to be found out: the goal is empty.")
    if len(goal) > LONGEST_GOAL:
        raise Refused(f"A research goal holds {LONGEST_GOAL:,} characters; say what matters most.")
    if not (0 <= searches <= MOST_SEARCHES and 0 <= pages <= MOST_PAGES):
        raise Refused(f"A budget is 0 to {MOST_SEARCHES} searches and 0 to {MOST_PAGES} pages.")


def _hire_researcher(tx: Tx, hirer: Hirer) -> Agent:
    """Hire an agent for this one question; it leaves the team when the report is written."""
    agent, specialist = hirer.agent, _specialist(hirer)
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


def _budget(tx: Tx, searches: int, pages: int, parent_id: NodeId | None) -> Budget:
    """Return what a research may spend: of its parent's budget, if it is part of other work."""
    turns = STEPS + searches + pages
    calls = {"web_search": searches, "web_fetch": pages}
    if parent_id is None:
        return Budget(turns=turns, calls=calls, given={"turns": turns})
    return replace(budgets.share(tx, NODES.get(tx, parent_id), turns=turns), calls=calls)


def _specialist(hirer: Hirer) -> Specialist:
    unknown = Specialist(name=RESEARCHER, description="", prompt="")
    return hirer.specialists.get(RESEARCHER, unknown)


def deliver(tx: Tx, node: WorkNode, text: str) -> None:
    """Send the report, or why there is none, to the inbox, and a summary to the conversation.

    A result that was written before the budget ran out is delivered as an incomplete report.
    """
    assert node.asked_of is not None
    title = texts.title_of(node)
    report = (node.result or "").strip()
    if not report:
        why = text.strip() if text != texts.NO_WORDS else "It ended without a report."
        _send_to_inbox(tx, node, kind="failure", title=title, text=f"There is no report. {why}")
        return _send_summary(
            tx, node, f"I could not finish the research you asked for ({title}): {why}"
        )
    report = texts.fit_message(report)
    is_whole = node.status is NodeStatus.COMPLETED
    if not is_whole:
        # The text of a partial end holds the report already.
        holds_it = node.status is NodeStatus.PARTIAL
        title = f"{title} (incomplete)"
        report = text.strip() if holds_it else f"{text.strip()}\n\n{report}"
    _send_to_inbox(tx, node, kind="report", title=title, text=texts.for_person(node, report))
    passages.put(
        tx,
        team_id=node.team_id,
        kind="report",
        ref=node.id,
        title=title,
        text=report,
        label=node.label,
    )
    lead = f"The research is done ({title}); the whole report is in your inbox."
    return _send_summary(tx, node, f"{lead}\n\n{summary(node.result or '')}")


def _send_to_inbox(tx: Tx, node: WorkNode, *, kind: MessageKind, title: str, text: str) -> None:
    bus.send(
        tx,
        team_id=node.team_id,
        sender=node.assignee_id or "system",
        recipient=planning.person_for(tx, node),
        kind=kind,
        title=title,
        text=text,
        node_id=node.id,
        refusable=False,
    )


def _send_summary(tx: Tx, node: WorkNode, text: str) -> None:
    """Send a summary as the agent that was asked, in its conversation with the person."""
    assert node.asked_of is not None
    bus.send(
        tx,
        team_id=node.team_id,
        sender=node.asked_of,
        recipient=planning.person_for(tx, node),
        text=text,
        node_id=node.id,
        refusable=False,
    )


def summary(report: str) -> str:
    """Return the report's section "Summary", else its beginning, cut to SUMMARY characters."""
    found = _SECTION.search(report)
    said = (found[1] if found else report).strip() or report.strip()
    return said if len(said) <= SUMMARY else said[: SUMMARY - 1].rstrip() + "…"
