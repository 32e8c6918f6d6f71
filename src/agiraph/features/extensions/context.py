"""Contexts: the objects through which a person's own code gets secrets, its caller and commands."""

from collections.abc import Callable
from typing import NamedTuple

from agiraph.core.domain.errors import Refused

Secrets = Callable[[str], str]
"""Returns the value of a secret by its name."""


class CommandOutput(NamedTuple):
    """The result of a command that a tool ran."""

    exit_code: int | None
    """None if the command did not end by itself, such as after its time limit."""
    output: str
    """Standard output and error, in the order in which they were written."""


class Context:
    """Given to an extension's code; returns the secrets that the extension declares."""

    def __init__(self, name: str, secrets: tuple[str, ...], get: Secrets) -> None:
        self._name = name
        self._secrets = secrets
        self._get = get

    def secret(self, name: str) -> str:
        """Return the value of a secret that the declaration names.

        agiraph.toml's `[secrets]` says where it is, or a person has entered it. It is kept out of
        logs, threads and answers.
        """
        if name not in self._secrets:
            raise Refused(
                f"{self._name!r} may not read the secret {name!r}: its declaration does not name "
                f'it. Write secrets=["{name}"] into its decorator.'
            )
        return self._get(name)


Run = Callable[[str, float], CommandOutput]


class ToolContext(Context):
    """Given to a tool for one call, as its first argument, if the tool's signature asks for it."""

    def __init__(
        self,
        name: str,
        secrets: tuple[str, ...],
        get: Secrets,
        *,
        team: str = "",
        agent: str = "",
        call_id: str = "",
        run: Run | None = None,
    ) -> None:
        super().__init__(name, secrets, get)
        self.team: str = team
        """The name of the team that the calling agent is on."""
        self.agent: str = agent
        """The name of the calling agent."""
        self.call_id: str = call_id
        """The same for a call that is made again after a crash: an idempotency key."""
        self._run = run

    def run(self, command: str, *, timeout_s: float = 60.0) -> CommandOutput:
        """Run a shell command in the agent's sandbox and wait for its end.

        It sees the agent's scratch folder, which is its working folder, and has no network.
        """
        if self._run is None:
            raise Refused("There is no sandbox here to run commands in.")
        return self._run(command, timeout_s)
