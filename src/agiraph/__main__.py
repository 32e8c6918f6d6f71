"""`python -m agiraph`, and the `agiraph` command."""

from agiraph.redaction import hide


def main() -> None:
    hide()  # before anything else is loaded: it may start this process anew
    from agiraph.cli import main as command

    command()


if __name__ == "__main__":
    main()
