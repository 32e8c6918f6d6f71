"""`agiraph completion`: the completion script of a shell."""

import click
from click.shell_completion import get_completion_class

SHELLS = ("bash", "zsh", "fish")
VARIABLE = "_AGIRAPH_COMPLETE"


@click.command()
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print the script that lets a SHELL complete commands and options.

    \b
    bash:  agiraph completion bash > ~/.local/share/bash-completion/completions/agiraph
    zsh:   agiraph completion zsh > ~/.zfunc/_agiraph
    fish:  agiraph completion fish > ~/.config/fish/completions/agiraph.fish
    """
    kind = get_completion_class(shell)
    assert kind is not None
    click.echo(kind(context.find_root().command, {}, "agiraph", VARIABLE).source())
