"""Tool properties: what policies, prompts and steps must know of a tool besides what it does.

A tool declares them in its `@tool` decorator. No other module keeps a list of tool names.
"""

from typing import Literal

from agiraph.core.domain.value import value

EVERY_ROLE = frozenset({"coordinator", "worker"})
ON_DEMAND: frozenset[str] = frozenset()
"""The value of `in_sight` of a tool that no role sees at once."""

WorkDecision = Literal["chat", "about_work", "new_work", "stop", "answer"]
Reach = Literal["nothing", "reads", "changes", "sends"]
"""What a call of an added tool does outside of the team: nothing; it reads, which tells others
what it looks for; it changes something there; or it sends something to others."""


@value
class ToolProperties:
    roles: frozenset[str] = EVERY_ROLE
    """The roles whose agents are given the tool."""
    in_sight: frozenset[str] = EVERY_ROLE
    """The roles whose agents see the tool in their list. Others that are given it call it on demand
    (`tools/calls/on_demand.py`)."""
    rare: frozenset[str] = frozenset()
    """Arguments that requests leave out of the schema; `tool_help` shows them, and calls may have
    them."""
    basic_for: frozenset[str] = frozenset()
    """The roles whose agents see the tool even with a small window; `reply`: replies show it."""
    always_granted: bool = False
    """Specialists get the tool even if their file does not list it: they talk to the team with
    it."""
    leads: bool = False
    """It gives work away or leads those who do it. A specialist whose file lists the tool gets it,
    whatever the roles."""
    ends_node: bool = False
    """A successful call ends the node. Every agent keeps this tool of its role."""
    sets_acceptance: bool = False
    """A call says what done means. Every agent keeps this tool of its role: without it, its
    result would always be doubted."""
    counts_as_work: bool = True
    """A successful call shows that something was done. A result without any such call and without
    files is doubted."""
    polls: bool = False
    """The call only looks how work stands. A second look in a row that finds nothing new waits for
    the work."""
    looks_up: bool = False
    """A reply to a person is written after the tool's answer, which may change it."""
    decides_work: WorkDecision | None = None
    """What a call in a reply decides: work was started, the message was brought to work that there
    is, or no work is needed."""
    runs_commands: bool = False
    """The argument `command` is a shell command. A rule that allows a command does not allow
    others that are chained to it, and `ran:` evidence names one."""
    saves: str = ""
    """What a model is told to save with it before older turns are replaced by a summary."""
    writes_files: bool = False
    """A successful call has changed a file: what was tested before it must be tested again."""
    opens_address: bool = False
    """The argument `url` is an address. A person who named it has allowed it."""
    asks_person: bool = False
    """The tool asks a person a question."""
    asks_teammate: bool = False
    """The tool can ask a teammate a question, by its argument `kind`."""
    delegates: bool = False
    """The call gives work to somebody. Of identical calls in one reply only one is made."""
    reads_file: bool = False
    """The answer is the text of the file that the first argument names."""
    gives_addresses: bool = False
    """Addresses in its answers may be opened by a thread that has read untrusted text."""
    listed_by: str = ""
    """The tool that lists this one. The prompt then lists that tool alone."""
    outside: Reach | None = None
    """What a call of an added tool does outside of the team; None: its author has not said it
    (`tools/calls/added.py`)."""
