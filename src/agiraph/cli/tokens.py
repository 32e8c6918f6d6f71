"""`agiraph link` and `agiraph tokens`: access for browsers and programs."""

import click
from rich.console import Console
from rich.table import Column, Table

from agiraph.cli.session import as_json, command, connected, shown
from agiraph.cli.teams import json_option
from agiraph.domain.access import SCOPES, Scope


@click.command()
@json_option
@command
async def link(json_: bool) -> None:
    """Print a link that signs a browser in. It works once."""
    async with connected() as client:
        made = await client.create_link()
        url = client.url + made.path
    if json_:
        return click.echo(as_json({"url": url, "expires_at": made.expires_at}))
    click.echo(url)


@click.group(invoke_without_command=True)
@json_option
@click.pass_context
def tokens(context: click.Context, json_: bool) -> None:
    """List access tokens and sessions; create and revoke tokens."""
    if context.invoked_subcommand is None:
        _list(json_)


@command
async def _list(json_: bool) -> None:
    async with connected() as client:
        found = await client.tokens()
    if json_:
        return click.echo(as_json(found))
    if not found:
        return click.echo("No tokens, besides the one in the home's file `token`.")
    table = Table(Column("id", no_wrap=True), "kind", "name", "scope", "since", "until", box=None)
    for token in found:
        until = f"{token.expires_at:%Y-%m-%d %H:%M}" if token.expires_at else "revoked"
        since = f"{token.created_at:%Y-%m-%d %H:%M}"
        table.add_row(token.id, token.kind, shown(token.name), token.scope, since, until)
    Console(emoji=False).print(table)


@tokens.command("new")
@click.argument("name")
@click.option(
    "--scope",
    type=click.Choice(SCOPES),
    default="read",
    show_default=True,
    help="What the token allows; each scope includes those before it.",
)
@click.option("--days", type=click.IntRange(1, 3650), help="How many days it is valid.")
@json_option
@command
async def new_token(name: str, scope: Scope, days: int | None, json_: bool) -> None:
    """Create a token called NAME and print it. It cannot be shown again."""
    async with connected() as client:
        made = await client.create_token(name, scope=scope, days=days)
    if json_:
        return click.echo(as_json(made))
    # Alone on standard output, so that a script can assign it to a variable.
    click.echo(made.secret)
    click.echo(
        f"Store it now: it cannot be shown again. Revoke it with: agiraph tokens revoke {made.id}",
        err=True,
    )


@tokens.command("revoke")
@click.argument("token")
@command
async def revoke_token(token: str) -> None:
    """Revoke a TOKEN by its id. It gives no access from now on."""
    async with connected() as client:
        await client.revoke_token(token)
    click.echo(f"Revoked {token}.")
