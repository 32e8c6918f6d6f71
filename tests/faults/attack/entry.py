"""Entry: the `agiraph` command as the attack starts it.

It differs from the real command in two ways, both needed only here: agents may open pages on
loopback, where the test serves them, and a bug named in ATTACK_PLANTED is planted first.
"""

import functools
import os
import sys
from typing import Any, NoReturn

MODULE = "tests.faults.attack.entry"
PLANTED = "ATTACK_PLANTED"


def _keep_entry_across_exec() -> None:
    """`hide` replaces this process by `python -m agiraph`; let it start this module instead."""
    execve = os.execve

    def again(program: str, arguments: list[str], environment: dict[str, str]) -> NoReturn:
        execve(program, [program, "-m", MODULE, *arguments[3:]], environment)

    os.execve = again  # type: ignore[assignment]


def main() -> None:
    _keep_entry_across_exec()
    from agiraph.redaction import hide

    hide()
    from agiraph.web import configured
    from agiraph.web.addresses import AddressPolicy

    policy: Any = functools.partial(AddressPolicy, also_allowed=frozenset({"127.0.0.1"}))
    configured.AddressPolicy = policy  # type: ignore[misc]
    if name := os.environ.pop(PLANTED, ""):
        from tests.faults.attack.planted import ALL

        ALL[name].arm()
    from agiraph.cli import main as command

    sys.argv[0] = "agiraph"
    command()


if __name__ == "__main__":
    main()
