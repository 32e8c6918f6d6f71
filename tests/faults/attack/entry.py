"""Entry: the `agiraph` command as the attack starts it.

It differs from the real command in two ways, both needed only here: agents may open pages on
loopback, where the test serves them, and a bug named in ATTACK_PLANTED is planted first.
"""

import functools
import os
from typing import Any

ENTRY = "tests.faults.attack.entry:main"
PLANTED = "ATTACK_PLANTED"


def main() -> None:
    from agiraph.secret_variables import hide

    hide()
    from agiraph.web import configured
    from agiraph.web.addresses import AddressPolicy

    policy: Any = functools.partial(AddressPolicy, also_allowed=frozenset({"127.0.0.1"}))
    configured.AddressPolicy = policy  # type: ignore[misc]
    if name := os.environ.pop(PLANTED, ""):
        from tests.faults.attack.planted import ALL

        ALL[name].arm()
    from agiraph.cli import main as command

    command()
