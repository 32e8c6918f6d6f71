"""Secret variables: taken out of the environment that this process was started with.

A child process can read its parent's environment in /proc. So the first thing the `agiraph` command
does is to execute itself again without the secrets, which it passes to itself through a pipe. What
is imported until then is imported twice, so this module imports next to nothing.
"""

import os
import sys

PIPE_VARIABLE = "AGIRAPH_PIPE_VARIABLE_FD"
"""The environment variable that holds the number of the pipe with the secrets."""
_NAME_PARTS = ("KEY", "TOKEN", "SECRET", "PASSWORD", "CREDENTIAL")
_NAMES = frozenset({"AGIRAPH_DATABASE_URL", "OTEL_EXPORTER_OTLP_HEADERS"})
_VARIABLES = r"""["']env:\s*(\w+)|\w_env\s*=\s*["'](\w+)"""
"""Variables in agiraph.toml: `name = "env:VARIABLE"` and `key_env = "VARIABLE"`."""
_NEEDED = frozenset({"PATH", "HOME", "LANG", "USER", "AGIRAPH_HOME", "PYTHONPATH"})
"""Variables that stay in the environment, whatever the settings say."""
_LONGEST_SETTINGS = 1 << 20
_PR_SET_DUMPABLE = 4


def is_secret(name: str) -> bool:
    """Whether an environment variable of this name holds a secret."""
    return name in _NAMES or any(word in name.upper() for word in _NAME_PARTS)


def hide() -> None:
    """Remove the secrets from this process's environment; executes the process again if needed."""
    if PIPE_VARIABLE in os.environ:
        import ctypes

        from agiraph.redaction import keep

        keep(taken_over(int(os.environ.pop(PIPE_VARIABLE))))
        # Not dumpable: other processes of the same user cannot read this one's memory or environ.
        ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
        return
    # /proc shows the environment that a process was started with, whatever it does to `os.environ`.
    # So the secrets can only be removed by executing the program again.
    environment = hand_over(dict(os.environ))
    if environment is not None:
        os.execve(sys.executable, [sys.executable, "-m", "agiraph", *sys.argv[1:]], environment)


def hand_over(environ: dict[str, str]) -> dict[str, str] | None:
    """Put the secrets of this environment into a pipe; return the environment without them, which
    names the pipe. Return None if there are no secrets."""
    named = _named_in_settings(environ)
    secret = {n: value for n, value in environ.items() if value and (is_secret(n) or n in named)}
    if not secret:
        return None
    reader, writer = os.pipe()
    # The pipe's buffer (64 KiB on Linux) must hold all of it: the reader starts only after the
    # exec, so a write that does not fit would block for ever.
    os.write(writer, os.fsencode("\0".join(f"{n}={value}" for n, value in secret.items())))
    os.close(writer)
    # Python marks descriptors close-on-exec, and the new process needs this one.
    os.set_inheritable(reader, True)
    public = {name: value for name, value in environ.items() if name not in secret}
    return {**public, PIPE_VARIABLE: str(reader)}


def taken_over(pipe: int) -> dict[str, str]:
    """Return the secrets that `hand_over` has put into this pipe, and close it."""
    with os.fdopen(pipe, "rb") as handed:
        pairs = (pair.partition("=") for pair in os.fsdecode(handed.read()).split("\0"))
        return {name: value for name, _, value in pairs}


def _named_in_settings(environ: dict[str, str]) -> frozenset[str]:
    """Return the variables that agiraph.toml names as the places of secrets, whatever their names.

    The file is not parsed: that comes later, with errors that a person can read, and would delay
    every command.
    """
    home = os.path.expanduser(environ.get("AGIRAPH_HOME") or "~/.agiraph")  # noqa: PTH111
    try:
        with open(os.path.join(home, "agiraph.toml"), "rb") as file:  # noqa: PTH118, PTH123
            text = file.read(_LONGEST_SETTINGS).decode(errors="replace")
    except OSError:
        return frozenset()
    import re

    found = {name for pair in re.findall(_VARIABLES, text) for name in pair if name}
    return frozenset(found) - _NEEDED
