"""Offers: proposes a model if none is configured: one of a local model server, or the demo."""

import sys
from dataclasses import replace

import click

from agiraph.cli.models import opened
from agiraph.cli.session import clean
from agiraph.config import Settings
from agiraph.providers.listing import LocalModel, local_models

DEMO = "demo"
MOST_OFFERED = 9


async def with_model(settings: Settings) -> Settings:
    """Return the settings; where no model is set and no key, with one that the person chooses from
    the local servers that run. Without a terminal, what was found is only printed."""
    if settings.model != DEMO or settings.shown["AGIRAPH_MODEL"].origin != "default":
        return settings
    async with opened(settings) as catalogue:
        found = (await local_models(catalogue))[:MOST_OFFERED]
    if not found:
        return settings
    if sys.stdin.isatty() and sys.stdout.isatty():
        return replace(settings, model=_choose(found))
    click.echo(
        f"No model is set: the scripted demo answers. Found {_described(found[0])}: use it with "
        f"AGIRAPH_MODEL={clean(found[0].name)}"
        + (f" (or one of {len(found) - 1} more: `agiraph models`)." if found[1:] else ".")
    )
    return settings


def _choose(found: list[LocalModel]) -> str:
    """Ask which of the local models to use; the demo is the last choice."""
    click.echo("No model is set. These run on this machine:")
    for number, model in enumerate(found, 1):
        click.echo(f"  {number}. {_described(model)}")
    click.echo(f"  {len(found) + 1}. the scripted demo, which shows how agiraph works")
    choice = click.prompt("Which one?", type=click.IntRange(1, len(found) + 1), default=1)
    if choice > len(found):
        return DEMO
    name = found[choice - 1].name
    click.echo(f'To keep this choice, write model = "{clean(name)}" into agiraph.toml.')
    return name


def _described(model: LocalModel) -> str:
    return f"{clean(model.name)} at {model.address}, window {model.window:,} tokens"
