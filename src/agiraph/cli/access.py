"""`agiraph away`, `zone`, `link`, `tokens`: when you are reached, and who has access."""

import contextlib
from datetime import UTC, datetime

import click

from agiraph.api.server_views import PersonView, TokenView
from agiraph.cli.session import Columns, Told, command, connected, group, listing, printing, shown
from agiraph.core.domain.errors import Refused
from agiraph.core.domain.provenance.access import SCOPES, Scope
from agiraph.core.domain.times import moments

UNTIL_HELP = "A day (2030-05-20), a time (2030-05-20T09:00) in your zone, or how long: '3 days'."


@click.command()
@click.option("--until", metavar="DATE", help=UNTIL_HELP)
@click.option("--back", is_flag=True, help="You are back.")
@printing
async def away(until: str | None, back: bool) -> Told:
    """Say until when you are away, or that you are back; without options, show it.

    Nothing is sent to your channels while you are away. Questions wait in the inbox; those with a
    time limit are given up after it, and the work goes on with its default.
    """
    if back and until is not None:
        raise click.UsageError("Say --until or --back, not both.")
    async with connected() as client:
        me = await client.me()
        if back or until is not None:
            me = await client.set_away(None if until is None else _moment(until, me.zone))
    return me, _told_away(me)


def _moment(text: str, zone: str) -> datetime:
    """Return the moment that a person wrote. Without an offset it is in their zone, or in this
    machine's if theirs is not known."""
    with contextlib.suppress(ValueError):
        if not zone:
            return datetime.fromisoformat(text.strip()).astimezone()
    try:
        return moments.parse_deadline(text, datetime.now(UTC), zone or "UTC")
    except Refused as error:
        raise click.UsageError(
            f"{text!r} is not a time; write 2030-05-20, 2030-05-20T09:00 or '3 days'."
        ) from error


def _told_away(me: PersonView) -> str:
    if me.away_until is None:
        return "You are here: messages are sent to your channels."
    until = me.away_until
    local = moments.local(until, me.zone) if me.zone else until.astimezone()
    return (
        f"You are away until {local:%A, %d %B %Y %H:%M}: nothing is sent to your channels until "
        "then. Back earlier: agiraph away --back"
    )


@click.command()
@click.argument("name", required=False)
@printing
async def zone(name: str | None) -> Told:
    """Say in which time zone you live, by its NAME, such as Europe/Berlin; without it, show it.

    Agents are told times in it, and a time without an offset means it: in promises, triggers and
    quiet hours.
    """
    async with connected() as client:
        me = await client.me() if name is None else await client.set_zone(name.strip())
    unknown = "Your time zone is not known, so times are in UTC. Say it: agiraph zone Europe/Berlin"
    return me, f"Your time zone is {me.zone}." if me.zone else unknown


@click.command()
@printing
async def link() -> Told:
    """Print a link that signs a browser in. It works once."""
    async with connected() as client:
        made = await client.create_link()
    url = client.url + made.path
    return {"url": url, "expires_at": made.expires_at}, url


@printing
async def _tokens() -> Told:
    async with connected() as client:
        found = await client.tokens()
    return listing(found, _TOKENS, "No tokens, besides the one in the home's file `token`.")


_TOKENS: Columns[TokenView] = (
    ("id!", lambda token: token.id),
    ("kind", lambda token: token.kind),
    ("name", lambda token: shown(token.name)),
    ("scope", lambda token: token.scope),
    ("since", lambda token: f"{token.created_at:%Y-%m-%d %H:%M}"),
    ("until", lambda t: f"{t.expires_at:%Y-%m-%d %H:%M}" if t.expires_at else "revoked"),
)


@group(_tokens)
def tokens() -> None:
    """List access tokens and sessions; create and revoke tokens."""


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
@printing
async def new_token(name: str, scope: Scope, days: int | None) -> Told:
    """Create a token called NAME and print it. It cannot be shown again."""
    async with connected() as client:
        made = await client.create_token(name, scope=scope, days=days)

    def show() -> None:
        # Alone on standard output, so that a script can assign it to a variable.
        click.echo(made.secret)
        revoke = f"Revoke it with: agiraph tokens revoke {made.id}"
        click.echo(f"Store it now: it cannot be shown again. {revoke}", err=True)

    return made, show


@tokens.command("revoke")
@click.argument("token")
@command
async def revoke_token(token: str) -> None:
    """Revoke a TOKEN by its id. It gives no access from now on."""
    async with connected() as client:
        await client.revoke_token(token)
    click.echo(f"Revoked {token}.")
