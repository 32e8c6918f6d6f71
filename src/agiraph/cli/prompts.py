"""`agiraph prompts`: every prompt as a model gets it, with its size."""

import click
from rich.console import Console
from rich.table import Table

from agiraph import config
from agiraph.cli.prompt_renderings import Rendering, renderings
from agiraph.cli.session import as_json, command, shown
from agiraph.cli.teams import json_option
from agiraph.redaction import environment


@click.command()
@click.argument("names", nargs=-1, metavar="[NAME]…")
@json_option
@command
async def prompts(names: tuple[str, ...], json_: bool) -> None:
    """Show what models are told, in how many tokens.

    Without names, it lists the prompts with their sizes; with NAMEs, it prints these whole: tools,
    system prompt and task, as this home's settings and specialists make them. No model is called.
    """
    found = await renderings(config.load(environment()))
    known = {rendering.name: rendering for rendering in found}
    if unknown := [name for name in names if name not in known]:
        listed = ", ".join(known)
        raise click.UsageError(f"There is no prompt {unknown[0]!r}. There are: {listed}.")
    if json_:
        chosen = [known[name] for name in names] or found
        return click.echo(as_json([_fields(each, whole=bool(names)) for each in chosen]))
    if not names:
        return _list(found)
    for name in names:
        each = known[name]
        click.echo(f"{name}: {each.tokens:,} tokens of at most {each.most:,} ({each.about})\n")
        click.echo(each.text)
    return None


def _fields(each: Rendering, *, whole: bool) -> dict[str, object]:
    fields: dict[str, object] = {
        "name": each.name,
        "tokens": each.tokens,
        "most": each.most,
        "about": each.about,
    }
    return {**fields, "text": each.text} if whole else fields


def _list(found: list[Rendering]) -> None:
    console = Console(highlight=False, emoji=False, soft_wrap=True)
    table = Table(box=None)
    table.add_column("prompt", no_wrap=True)
    table.add_column("tokens", justify="right", no_wrap=True, min_width=6)
    table.add_column("at most", justify="right", no_wrap=True, min_width=7)
    table.add_column("what it is")
    for each in found:
        size = f"{each.tokens:,}"
        style = size if each.tokens <= each.most else f"[red]{size}[/]"
        table.add_row(shown(each.name), style, f"{each.most:,}", shown(each.about))
    console.print(table)
    console.print("\nA token is four bytes. `agiraph prompts NAME` shows one whole.")
