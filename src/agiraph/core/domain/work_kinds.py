"""Kinds of work: what sets a review, a reply or a step of research apart from an ordinary task.

A node has one kind. It names how such work runs and what its end means, and holds the facts that
the runtime asks for; nothing else in the runtime knows a kind by its name.
"""

from functools import cache
from typing import Literal

from agiraph.core.domain.features import found_at, installed
from agiraph.core.domain.value import dataclass

Lane = Literal["work", "reply", "reflection"]
"""What an agent can do at the same time: work, a reply to a person, a reflection on ended work.
In each lane it runs one node at a time."""

NOT_IN_A_REPLY = (
    "Not in a reply: this conversation holds words from outside the team, so the human has to "
    "agree to this call. Start it as work; there they are asked."
)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class WorkKind:
    """One kind of work. The defaults are those of an ordinary task."""

    name: str
    lane: Lane = "work"
    is_step: bool = False
    """Whether it is a step of the work above it: lists of what a team did leave it out."""
    is_bounded_above: bool = False
    """Whether the work above it bounds how many of it there are; the team's limits do not."""
    hears_mail: bool = True
    """Whether messages to its agent are read in it. What is said to a step without mail is heard
    by the work above it."""
    may_ask: bool = True
    """Whether a reply that ends with a question goes to whoever gave the work."""
    sees_team: bool = True
    """Whether it sees anything of the team: files, knowledge, messages. Work that sees nothing may
    open any address, for it has nothing to give away."""
    reads_above: bool = False
    """Whether it reads all files of the work above it, which it judges, and changes none."""
    is_reviewed: bool = True
    """Whether its result may be given to a reviewer."""
    is_told: bool = True
    """Whether it begins with what its agent and the team know."""
    recalls: bool = True
    """Whether insights are part of that."""
    is_reflected_on: bool = True
    """Whether its thread is read for insights when its agent is idle."""
    goes_on: bool = True
    """Whether later work may go on in its thread."""
    answers_messages: bool = False
    """Whether it answers messages of a person, who may be told what it may not do by itself."""
    no_requests: str = ""
    """Why no person is asked to approve a call of it; empty: one is."""
    no_ways_out: str = ""
    """Why no person is asked to approve a call that takes a way out; empty: one is."""
    calls_used_up: str = (
        "all {limit} calls of {tool} that this work had are used; go on without it."
    )
    """What a call of a tool is answered of which the budget allows no more."""
    runner: str = "agiraph.core.runtime.kinds.tasks:TASK"
    """How it runs: a module and the name of its `Runner`."""
    verbs: str = "agiraph.core.services.board.feature_verbs:TASK"
    """What its end, its state and a late answer mean: a module and the name of its `KindVerbs`."""


TASK = WorkKind(name="task")
SINGLE_ANSWER = WorkKind(
    name="single_answer", runner="agiraph.core.runtime.kinds.tasks:SINGLE_ANSWER"
)
"""One reply of a model, without tools."""
PUBLIC_TASK = WorkKind(
    name="public_task",
    hears_mail=False,
    may_ask=False,
    sees_team=False,
    is_told=False,
    is_reviewed=False,
    goes_on=False,
    runner="agiraph.core.runtime.kinds.tasks:PUBLIC_TASK",
)
"""A task whose thread holds nothing of the team's: only its task, the web and its scratch."""
LINK_READER = WorkKind(
    name="link_reader",
    hears_mail=False,
    may_ask=False,
    sees_team=False,
    is_told=False,
    is_reviewed=False,
    goes_on=False,
    runner="agiraph.core.runtime.kinds.tasks:PUBLIC_TASK",
)
"""A public task that reads the links of one page."""
REPLY = WorkKind(
    name="reply",
    lane="reply",
    answers_messages=True,
    no_ways_out=NOT_IN_A_REPLY,
    runner="agiraph.core.runtime.kinds.replies:REPLY",
    verbs="agiraph.core.services.lifecycle.conversation:REPLY",
)
"""The answer to messages of a person, beside the work."""
CONVERSATION_SUMMARY = WorkKind(
    name="conversation_summary",
    lane="reflection",
    runner="agiraph.core.runtime.kinds.replies:SUMMARY",
)
"""The summary of the older part of a conversation with a person."""

_CORE = {
    kind.name: kind
    for kind in (
        TASK,
        SINGLE_ANSWER,
        PUBLIC_TASK,
        LINK_READER,
        REPLY,
        CONVERSATION_SUMMARY,
    )
}


@cache
def kind_named(name: str) -> WorkKind:
    """Return the kind with this name; `KeyError` if nothing brings it."""
    if name in _CORE:
        return _CORE[name]
    places = {kind: feature.kinds_at for feature in installed() for kind in feature.kinds}
    return found_at(places[name])[name]
