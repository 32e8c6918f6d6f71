"""Command network: what a shell command may reach, and how its model is told.

A command has no network unless its call names it. What a command with network prints, and what it
leaves in its folder, may hold strangers' words.
"""

import re
import shlex
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from agiraph.domain.labels import Label

Network = Literal["none", "packages", "hosts", "open"]
FROM_NETWORK = Label(("network:unknown",))
"""The label of what a command with network brings in: nobody knows which hosts it talked to."""

_MEANS_OPEN = frozenset({"true", "yes", "on", "1", "all", "full", "internet"})
_MEANS_NONE = frozenset({"false", "no", "off", "0", "null", ""})


def _read(given: object) -> object:
    """Return the word for what a model wrote; earlier calls said true or false."""
    if given is None or isinstance(given, bool):
        return "open" if given else "none"
    word = given.strip().lower() if isinstance(given, str) else given
    if isinstance(word, str) and word in _MEANS_OPEN | _MEANS_NONE:
        return "open" if word in _MEANS_OPEN else "none"
    return word


def _without_default(schema: dict[str, Any]) -> None:
    schema.pop("default", None)  # every request repeats the schema, and the tool says it in words


NetworkArgument = Annotated[
    Network,
    BeforeValidator(_read),
    Field(json_schema_extra=_without_default),
]

HOW_TO_ASK = (
    "(It ran without network. If it needs the network, make the same call with "
    'network="{network}"{asked}.)'
)
WHOLE_NETWORK = (
    '(network="{network}" cannot be limited to that on this version: the command had the whole '
    "network.)"
)
READS_AND_SENDS = (
    "Not run: it could reach the network, and files within its reach hold words from {label}. Read "
    "these files first, then make this call again: the human is asked."
)
HIDDEN = (
    "(Files that hold strangers' words were hidden from it. A command without network that names "
    "their path, from ../ on, sees them; read_file shows them, too.)"
)

_PROGRAMS = re.compile(
    r"(?:^|[\s;&|(`/])(?:curl|wget|pip3?|pipx|uv|npm|npx|yarn|pnpm|cargo|gem|apt|apt-get|apk|dnf"
    r"|yum|brew|go\s+(?:get|install|mod)|git\s+(?:\S+\s+)*?(?:clone|pull|fetch|push|ls-remote"
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
