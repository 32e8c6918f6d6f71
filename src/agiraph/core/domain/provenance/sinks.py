"""Sinks: the ways out of a thread that holds words from outside the team, and who decides on them.

Untrusted text may hold instructions that a model follows. What such a thread writes down stays
labelled and harms nobody by itself; harm needs a way out: an address that is opened, a command with
network, a message to others, something that acts later. Each tool says which way out a call of it
takes (`@tool(way_out=…)`), and this table says whether a person has to decide on it. In a public
thread, which holds nothing of the team's, every way is free; in a clean one every way but that of a
person's files and mail to a host that nobody allowed.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Literal

from agiraph.core.domain.agents import Trust
from agiraph.core.domain.value import dataclass

Verdict = Literal["free", "ask"]
"""free: the call is made, and the label stays on what comes of it. ask: a person decides."""


class Sink(StrEnum):
    """A kind of way out."""

    SEARCH = "search"  # a query for the search engine
    SEARCH_BEYOND_LIMIT = "search_beyond_limit"
    LINK = "link"  # an address that a page or a search in a labelled thread gave
    LINK_BEYOND_LIMIT = "link_beyond_limit"
    READING_HOST = "reading_host"  # a made-up address at a host where only its operator sees it
    MADE_UP_ADDRESS = "made_up_address"
    PACKAGES_COMMAND = "packages_command"  # reads package indexes, and git from granted hosts
    HOSTS_COMMAND = "hosts_command"  # talks to hosts that a person granted
    NETWORK_COMMAND = "network_command"  # talks to any host
    PRIVATE_SEND = "private_send"  # can send a person's files or mail to a host nobody allowed
    GIVEN_FOLDER = "given_folder"  # change a file in a folder of a person
    UNCONFINED_COMMAND = "unconfined_command"  # where the machine cannot take the network away
    WAKE_SELF = "wake_self"  # a trigger for the agent itself
    WAKE_BEYOND_LIMIT = "wake_beyond_limit"
    KEEP_WORKER = "keep_worker"  # a worker stays for later work
    MORE_TOOLS = "more_tools"  # hire a worker with tools that the agent has not itself
    CALLBACK = "callback"  # a webhook, or a trigger that sends a message to others
    PROGRAM = "program"  # run a program as a worker
    TOOL_READS = "tool_reads"  # an added tool that only reads
    TOOL_CHANGES = "tool_changes"
    TOOL_SENDS = "tool_sends"


CallRisk = Literal[
    "reveals_words", "reaches_allowed_hosts", "reaches_any_host", "sends_your_files",
    "sends_to_others", "changes_outside", "changes_your_files", "changes_files", "acts_later",
    "more_tools", "runs_program", "runs_command", "unconfined", "cannot_be_undone", "unknown",
]  # fmt: skip
"""What can go wrong with a call, as its way out and its tool declare it."""

RISK_OF_SINK: Mapping[Sink, CallRisk] = {
    Sink.SEARCH: "reveals_words",
    Sink.SEARCH_BEYOND_LIMIT: "reveals_words",
    Sink.LINK: "reveals_words",
    Sink.LINK_BEYOND_LIMIT: "reveals_words",
    Sink.READING_HOST: "reveals_words",
    Sink.MADE_UP_ADDRESS: "reveals_words",
    Sink.PACKAGES_COMMAND: "reaches_allowed_hosts",
    Sink.HOSTS_COMMAND: "reaches_allowed_hosts",
    Sink.NETWORK_COMMAND: "reaches_any_host",
    Sink.PRIVATE_SEND: "sends_your_files",
    Sink.GIVEN_FOLDER: "changes_your_files",
    Sink.UNCONFINED_COMMAND: "unconfined",
    Sink.WAKE_SELF: "acts_later",
    Sink.WAKE_BEYOND_LIMIT: "acts_later",
    Sink.KEEP_WORKER: "acts_later",
    Sink.MORE_TOOLS: "more_tools",
    Sink.CALLBACK: "sends_to_others",
    Sink.PROGRAM: "runs_program",
    Sink.TOOL_READS: "reveals_words",
    Sink.TOOL_CHANGES: "changes_outside",
    Sink.TOOL_SENDS: "sends_to_others",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class WayOut:
    """The way out that one call takes."""

    sink: Sink
    target: str
    """What a grant would name: a host, the exact command, or the name of a tool."""
    why: str
    """Why a person is asked, as the rest of a sentence that begins "I ask because …"."""
    instead: str = ""
    """What the agent can do without a person, in whole sentences for the agent."""


_UNLESS_STRICT: dict[Trust, Verdict] = {"strict": "ask", "standard": "free", "open": "free"}
_OPEN_ONLY: dict[Trust, Verdict] = {"strict": "ask", "standard": "ask", "open": "free"}
_ALWAYS_ASK: dict[Trust, Verdict] = {"strict": "ask", "standard": "ask", "open": "ask"}

VERDICTS: Mapping[Sink, Mapping[Trust, Verdict]] = {
    Sink.SEARCH: _UNLESS_STRICT,
    Sink.SEARCH_BEYOND_LIMIT: _OPEN_ONLY,
    Sink.LINK: _UNLESS_STRICT,
    Sink.LINK_BEYOND_LIMIT: _OPEN_ONLY,
    Sink.READING_HOST: _UNLESS_STRICT,
    Sink.MADE_UP_ADDRESS: _OPEN_ONLY,
    Sink.PACKAGES_COMMAND: _UNLESS_STRICT,
    Sink.HOSTS_COMMAND: _UNLESS_STRICT,
    Sink.NETWORK_COMMAND: _OPEN_ONLY,
    Sink.PRIVATE_SEND: _OPEN_ONLY,
    Sink.UNCONFINED_COMMAND: _OPEN_ONLY,
    Sink.GIVEN_FOLDER: _UNLESS_STRICT,
    Sink.WAKE_SELF: _UNLESS_STRICT,
    Sink.WAKE_BEYOND_LIMIT: _OPEN_ONLY,
    Sink.KEEP_WORKER: _UNLESS_STRICT,
    Sink.MORE_TOOLS: _OPEN_ONLY,
    Sink.CALLBACK: _ALWAYS_ASK,
    Sink.PROGRAM: _OPEN_ONLY,
    Sink.TOOL_READS: _UNLESS_STRICT,
    Sink.TOOL_CHANGES: _OPEN_ONLY,
    Sink.TOOL_SENDS: _ALWAYS_ASK,
}


def verdict(sink: Sink, trust: Trust) -> Verdict:
    """Return whether a call that takes this way out is made, or a person decides on it."""
    return VERDICTS[sink][trust]
