"""`python -m agiraph`, and the `agiraph` command."""

import os

from agiraph.secret_variables import hide


def main() -> None:
    hide()  # before anything else is loaded: it may start this process anew
    # pydantic would search all installed packages for plugins of its own.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    from agiraph.cli import main as command

    command()


if __name__ == "__main__":
    main()
