"""Command words: finds the executable that a command line starts."""

import re
import shlex

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=")


def executable_of(command: str) -> str:
    """Return the first word of a command, behind variables that are set for it and `exec`; empty if
    the command cannot be split into words."""
    try:
        words = shlex.split(command, comments=False)
    except ValueError:
        return ""
    return next((word for word in words if not _VARIABLE.match(word) and word != "exec"), "")
