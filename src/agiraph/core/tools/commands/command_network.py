"""Command network: what a shell command may reach, and how its model is told.

A confined command reaches the network through its gate alone (`command_gate`): package indexes,
unless its call names another network. What it receives labels its thread.
"""

import re
import shlex
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from agiraph.core.domain.agents import Trust
from agiraph.core.domain.provenance.labels import Label
from agiraph.core.domain.provenance.sinks import Sink, verdict

Network = Literal["none", "packages", "hosts", "open"]
FROM_NETWORK = Label(("network:unknown",))
"""The label of what an unconfined command brings in: nobody knows which hosts it talked to."""
SINKS: dict[Network, Sink] = {
    "packages": Sink.PACKAGES_COMMAND,
    "hosts": Sink.HOSTS_COMMAND,
    "open": Sink.NETWORK_COMMAND,
}
WHY: dict[Network, str] = {
    "packages": "the names of the packages that it asks for can tell their owners something",
    "hosts": "whatever this agent knows can be sent to the hosts that commands may reach",
    "open": "the command would reach the network",
}

_MEANS_OPEN = frozenset({"true", "yes", "on", "1", "all", "full", "internet"})
_MEANS_NONE = frozenset({"false", "no", "off", "0"})
_NOT_NAMED = frozenset({"null", "default", ""})


def _read(given: object) -> object:
    """Return the word for what a model wrote; earlier calls said true or false."""
    if given is None:
        return None
    if isinstance(given, bool):
        return "open" if given else "none"
    word = given.strip().lower() if isinstance(given, str) else given
    if isinstance(word, str) and word in _NOT_NAMED:
        return None
    if isinstance(word, str) and word in _MEANS_OPEN | _MEANS_NONE:
        return "open" if word in _MEANS_OPEN else "none"
    return word


def _without_default(schema: dict[str, Any]) -> None:
    schema.pop("default", None)  # every request repeats the schema, and the tool says it in words


NetworkArgument = Annotated[
    Network | None,
    BeforeValidator(_read),
    Field(json_schema_extra=_without_default),
]


def network_of(named: Network | None, *, is_labelled: bool, trust: Trust) -> Network:
    """Return the network of a command: what its call names, else packages.

    Where packages would ask a person, a call that names no network has none: most commands need
    none, and a person must not be asked for each of them.
    """
    if named is not None:
        return named
    is_free = not is_labelled or verdict(Sink.PACKAGES_COMMAND, trust) == "free"
    return "packages" if is_free else "none"


HOW_TO_ASK = (
    "(It ran without network. If it needs the network, make the same call with "
    'network="{network}"{asked}.)'
)
PROXY_ONLY = (
    '(network="{network}" goes through the HTTP proxy in the variables http_proxy and https_proxy '
    "alone. What does not use it, such as ssh, has no network.)"
)
NO_GATE = (
    "(Commands here have no network: the sandbox of this machine has no network of its own to put "
    "a gate into. `agiraph doctor` says why.)"
)
READS_AND_SENDS = (
    "Not run: it could reach the network, and files within its reach hold words from {label}. Read "
    "these files first, then make this call again: the human is asked."
)
HIDDEN = (
    "(Files that hold untrusted text were hidden from it. A command without network that names "
    "their path, from ../ on, sees them; read_file shows them, too.)"
)

_PROGRAMS = re.compile(
    r"(?:^|[\s;&|(`/])(?:curl|wget|pip3?|pipx|uv|npm|npx|yarn|pnpm|cargo|gem|apt|apt-get|apk|dnf"
    r"|yum|brew|go\s+(?:get|install|mod)|git\s+(?:\S+\s+){0,6}?(?:clone|pull|fetch|push|ls-remote"
    r"|submodule)|ssh|scp|sftp|rsync|ftp|nc|ncat|telnet|ping|dig|nslookup|host|docker|podman"
    r"|kubectl|gh|aws|gcloud|az|psql|mysql|redis-cli)(?=\s|$)"
)
_FAILURES = re.compile(
    r"could not resolve|couldn't resolve|name or service not known|name resolution"
    r"|network is unreachable|network unreachable|no route to host|failed to connect"
    r"|connection refused|getaddrinfo|enotfound|eai_again|econnrefused|enetunreach"
    r"|temporary failure resolving|unable to access|max retries exceeded|proxy",
    re.IGNORECASE,
)


_NO_ROUTE = re.compile(
    r"could not resolve|couldn't resolve|name or service not known|name resolution"
    r"|network is unreachable|network unreachable|no route to host|getaddrinfo|enotfound|eai_again",
    re.IGNORECASE,
)


def missed_proxy(output: str) -> bool:
    """Whether a program of a command with a gate probably looked for the network elsewhere."""
    return _NO_ROUTE.search(output) is not None


def needs_network(command: str, output: str) -> bool:
    """Whether a command that failed without network probably failed for want of it."""
    return bool(_PROGRAMS.search(command) or _FAILURES.search(output))


def advice(command: str, *, sources: str) -> str:
    """Return how to make the call again with network. `sources` names those of a labelled
    thread's words."""
    installs = re.search(r"\b(?:pip3?|pipx|uv|npm|yarn|pnpm|cargo|gem)\b", command)
    asked = f"; the human is asked, because this thread holds words from {sources}"
    return HOW_TO_ASK.format(
        network="packages" if installs else "open", asked=asked if sources else ""
    )


_LOCAL = frozenset(
    {
        "[", "basename", "cat", "cd", "chmod", "comm", "cp", "cut", "date", "diff",
        "dirname", "du", "echo", "expr", "false", "file", "grep", "head", "jq", "ls",
        "md5sum", "mkdir", "mv", "nl", "paste", "printf", "pwd", "realpath", "rm", "rmdir",
        "seq", "sha256sum", "sort", "stat", "tac", "tail", "test", "touch", "tr", "tree",
        "true", "uniq", "wc", "which",
    }
)  # fmt: skip
"""Programs that reach no network, whatever their arguments."""
_RUNS_OTHERS = re.compile(r"\$\(|`|<\(|>\(|/dev/(?:tcp|udp)")


def may_use_network(command: str) -> bool:
    """Whether an unconfined command can have reached the network: all but plain file commands."""
    if _RUNS_OTHERS.search(command):
        return True
    try:
        lexer = shlex.shlex(command.replace("\n", ";"), posix=True, punctuation_chars=True)
        lexer.commenters = ""  # a comment would hide the lines after it
        words = list(lexer)
    except ValueError:
        return True
    is_first = True
    for word in words:
        if set(word) <= set(";&|()"):
            is_first = True
        elif is_first and word not in _LOCAL:
            return True
        else:
            is_first = False
    return False
