"""Means: tells a coordinator which workers it can use, what it may spend, and which calls need
approval.

`Means` comes from the settings and is the same for all threads of a team, so it stands near the
beginning of the prompt, which vendors cache. `TeamState` is read when a thread begins and stands at
the end of the prompt; later the agent calls `check_board` for the newest state.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import field

from agiraph.core.domain.agents import Agent, Rule, Specialist, Team
from agiraph.core.domain.provenance.sinks import VERDICTS, Sink
from agiraph.core.domain.text.fence import one_line
from agiraph.core.domain.value import dataclass
from agiraph.core.domain.work import WorkNode
from agiraph.core.services.board import budgets, texts
from agiraph.core.services.members import roster
from agiraph.core.services.members.roster import Member
from agiraph.core.store.tx import Tx
from agiraph.core.tools.delegation import specialist_lines
from agiraph.models.hireable import HireableModel

MAX_MEMBERS = 10
"""Members that the prompt lists; `check_board` shows all."""
MAX_RULES = 5
STRENGTH_CHARACTERS = 60

_ASKED: Mapping[Sink, str] = {
    Sink.SEARCH: "a web search",
    Sink.LINK: "a link of a page",
    Sink.MADE_UP_ADDRESS: "an address that nobody gave you",
    Sink.NETWORK_COMMAND: "a command with open network",
    Sink.WAKE_SELF: "waking yourself later",
    Sink.KEEP_WORKER: "keeping a worker",
    Sink.MORE_TOOLS: "a worker with more tools than you have",
    Sink.PROGRAM: "a program as a worker",
    Sink.TOOL_SENDS: "a tool that sends something out",
}
"""The ways out that a prompt names, in words. The rest is told when a call takes one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Means:
    """What the settings offer to a coordinator."""

    specialists: Mapping[str, Specialist] = field(default_factory=dict[str, Specialist])
    models: Sequence[HireableModel] = ()
    """Models to hire workers with; the coordinator's own is the first."""
    programs: Sequence[str] = ()
    """Names of the programs in the settings, for `cli:NAME`."""
    has_search: bool = False
    usd_per_day: float | None = None
    """What all teams together may spend in a day; None: no limit."""

    def workers(self) -> str:
        """Return who can be given a task, for the argument `agent`."""
        parts: list[str] = []
        if lines := specialist_lines(self.specialists):
            parts.append("\n".join(["Specialists, by name:", *lines]))
        if len(self.models) > 1:
            head = "Models, as new:NAME. Prices are dollars for a million tokens, in / out:"
            own, *others = self.models
            lines = [_model_line(own, " (yours)"), *map(_model_line, others)]
            parts.append("\n".join([head, *lines]))
        elif self.models:
            parts.append(f"Other workers use your model: new:{self.models[0].name}.")
        if self.programs:
            parts.append(f"Programs: {', '.join(f'cli:{name}' for name in self.programs)}.")
        return "\n\n".join(parts)

    def rules(self, team: Team) -> str:
        """Return the prompt's lines on web search, on calls that a person must approve, and on the
        team's own rules."""
        search = (
            "Web search is available."
            if self.has_search
            else "No web search is set up. Read addresses that you know with `web_fetch`."
        )
        return "\n".join(f"- {line}" for line in (search, _trust(team), *_rules(team.permissions)))

    def short(self) -> str:
        """Return the workers for a small window: names alone."""
        names = [*self.specialists, *(f"cli:{name}" for name in self.programs)]
        return f"Workers: {', '.join(names)}." if names else ""


GIT = " They cannot change .git; `git_commit` commits what you changed."


def folders(team: Team) -> str:
    """Return the section of prompts on the folders that a person gave to the team."""
    lines = [
        f"- folders/{one.name}: you may {'read and change' if one.is_writable else 'only read'} "
        f"it. Commands find it at {one_line(one.path)}.{GIT if one.is_writable else ''}"
        for one in team.folders
    ]
    return "\n".join(["# Folders that the person gave you", "", *lines]) if lines else ""


def _model_line(model: HireableModel, mark: str = "") -> str:
    known: list[str] = []
    if model.input_usd is not None and model.output_usd is not None:
        known.append(f"{model.input_usd:g} / {model.output_usd:g}")
    if model.window is not None:
        known.append(f"window {model.window:,}")
    if model.strength:
        known.append(texts.truncate(one_line(model.strength), STRENGTH_CHARACTERS))
    return f"- {model.name}{mark}" + (f": {', '.join(known)}" if known else "")


def _trust(team: Team) -> str:
    """Return which trust is in force, and what a person decides under it."""
    asked = [words for sink, words in _ASKED.items() if VERDICTS[sink][team.trust] == "ask"]
    listed = ", ".join(asked)
    return (
        f"Trust: {team.trust}. Once you have read words from outside, a person decides on "
        f"{listed}. The call says so; do other things meanwhile."
    )


def _rules(rules: Sequence[Rule]) -> list[str]:
    """Return the team's own rules that stop a call, one line."""
    verbs = {"ask": "ask first", "deny": "not allowed"}
    stopping = [
        f"{one_line(rule.tool)} {one_line(rule.pattern)} ({verbs[rule.action]})"
        for rule in rules
        if rule.action in verbs
    ]
    return [f"Rules of this team: {'; '.join(stopping[:MAX_RULES])}."] if stopping else []


@dataclass(frozen=True, slots=True, kw_only=True)
class TeamState:
    """The state of a team when a thread of its coordinator begins."""

    spent: str = ""
    others: tuple[Member, ...] = ()
    most_members: int = 0

    def lines(self, means: Means) -> list[str]:
        """Return the state of the team as list items."""
        known = {model.name for model in means.models}
        shown = [_member_line(member, known) for member in self.others[:MAX_MEMBERS]]
        if more := len(self.others) - len(shown):
            shown.append(f"{more} more")
        usd = means.usd_per_day
        day = "" if usd is None else f" All teams together may spend ${usd:g} a day."
        return [
            f"- {self.spent}{day}",
            f"- On the team: {'; '.join(shown) or 'nobody but you yet'}. At most "
            f"{self.most_members} members at a time.",
        ]


def _member_line(member: Member, known: Collection[str]) -> str:
    agent = member.agent
    # A thread with untrusted text in it may have hired the agent, and some servers take any name
    # of a model: no such name comes into a prompt.
    model = f", {agent.model}" if agent.model in known else ""
    return f"{agent.name} ({agent.role}{model}): {member.doing}"


def team_state(tx: Tx, team: Team, agent: Agent, node: WorkNode) -> TeamState:
    """Return the present state of the team."""
    others = (m for m in roster.members(tx, team.id) if m.agent.id != agent.id)
    return TeamState(
        spent=budgets.spent_line(tx, node), others=tuple(others), most_members=team.limits.agents
    )
