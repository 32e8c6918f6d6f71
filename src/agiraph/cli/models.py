"""`agiraph models`: the models that can be used, what they can do, and a test of each; and which of
them is offered if none is configured."""

import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace

import click
from rich.console import Console
from rich.table import Table

from agiraph import config
from agiraph.api import model_presenters
from agiraph.api.model_presenters import models_view, test_view
from agiraph.api.server_views import FlagFact, ModelTestView, ModelView, NumberFact, ProviderView
from agiraph.cli.session import as_json, clean, command, json_option, plain_console, shown
from agiraph.config import Settings
from agiraph.core.domain.times.time import SystemClock
from agiraph.core.home.layout import Home
from agiraph.models.catalogue import Catalogue
from agiraph.models.listing import LocalModel, local_models
from agiraph.models.probe import OTHERS
from agiraph.models.registry import Registry
from agiraph.redaction import environment

_MARKS = {"passed": "[green]✓[/]", "failed": "[red]✗[/]", "unknown": "[yellow]·[/]"}
_CHECKS = {
    "words": "answers", "tool_call": "calls tools", "schema": "keeps to a schema", "cache": "caches"
}  # fmt: skip
DEMO = "demo"
MOST_OFFERED = 9
PIPED_WIDTH = 140
"""Width of the table, in characters, if the output is not a terminal but a file or a pipe."""
_ORIGINS = {"file": "f", "server": "s", "package": "", "assumed": "?"}


@click.command()
@click.argument("names", nargs=-1, metavar="[MODEL]…")
@click.option("--test", is_flag=True, help="Call each model a few times, which costs a little.")
@click.option("--all", "all_", is_flag=True, help="Also show providers that cannot be used yet.")
@json_option
@command
async def models(names: tuple[str, ...], test: bool, all_: bool, json_: bool) -> None:
    """List the models that can be used and what they can do.

    With --test, each MODEL is called for words, a tool call, a schema and its cache; without
    names, the default model and all models of local servers. The Models page of the web UI shows
    the last test of each. Exit code 1 means that one failed.
    """
    settings = config.load(environment())
    async with opened(settings) as catalogue:
        if test:
            raise click.exceptions.Exit(await _test(catalogue, settings, names, json_=json_))
        found = await models_view(catalogue, settings.model, _last_tests(settings))
    if json_:
        return click.echo(as_json(found))
    console = plain_console()
    if not console.is_terminal:
        console = Console(highlight=False, emoji=False, soft_wrap=True, width=PIPED_WIDTH)
    for provider in found.providers:
        if provider.state in ("ready", "down") or all_:
            _show_provider(console, provider, names)
    ready = [provider for provider in found.providers if provider.state == "ready"]
    if not ready and not all_:
        console.print("No provider is ready: `agiraph models --all` shows what each one needs.")
    console.print(f"\nDefault model: {shown(found.default)}")
    if found.default_problem:
        console.print(f"[red]✗[/] {shown(found.default_problem)}")
    return None


@asynccontextmanager
async def opened(settings: Settings) -> AsyncGenerator[Catalogue]:
    """Open the models of these settings."""
    clock = SystemClock()
    catalogue = Catalogue(Registry(settings.keys, clock), settings.prices, clock)
    try:
        yield catalogue
    finally:
        await catalogue.close()


def _last_tests(settings: Settings) -> dict[str, ModelTestView]:
    return model_presenters.kept(Home.open(settings.home)) if settings.home.exists() else {}


async def _test(
    catalogue: Catalogue, settings: Settings, names: tuple[str, ...], *, json_: bool
) -> int:
    home = Home.open(settings.home)
    if not names:
        found = await models_view(catalogue, settings.model, {})
        local = [m.name for p in found.providers if p.is_local for m in p.models]
        chain = [name.strip() for name in settings.model.split(",")]
        names = tuple(dict.fromkeys([*chain, *local]))
    console = plain_console()
    tested: list[ModelTestView] = []
    for name in names:
        tested.append(await test_view(catalogue, name, SystemClock(), OTHERS))
        model_presenters.keep(home, tested[-1])
        if not json_:
            _show_test(console, tested[-1])
    if json_:
        click.echo(as_json(tested))
    return int(any(check.verdict == "failed" for one in tested for check in one.checks))


def _show_test(console: Console, tested: ModelTestView) -> None:
    console.print(f"[bold]{shown(tested.model)}[/]")
    for check in tested.checks:
        console.print(f"  {_MARKS[check.verdict]} {_CHECKS[check.name]}: {shown(check.what)}")
        if check.advice:
            console.print(f"      {shown(check.advice)}")


def _show_provider(console: Console, provider: ProviderView, names: tuple[str, ...]) -> None:
    console.print(f"\n[bold]{shown(provider.name)}[/] [dim]{shown(provider.address)}[/]")
    if provider.advice:
        console.print(f"  [yellow]·[/] {shown(provider.advice)}")
    chosen = [model for model in provider.models if not names or model.name in names]
    if not chosen:
        return
    table = Table(box=None)
    table.add_column("model", no_wrap=True, min_width=max(len(m.name) for m in chosen))
    for heading in ("window", "output", "tools", "images", "PDF", "thinks", "$ in", "$ out"):
        table.add_column(heading)
    for model in chosen:
        table.add_row(*_row(model))
    console.print(table)


def _row(model: ModelView) -> list[str]:
    name = shown(model.name)
    if model.retires:
        name += f" [yellow](until {model.retires})[/]"
    return [
        f"[green]{name}[/]" if model.is_default else name,
        *map(_count, (model.window, model.output_limit)),
        *map(_flag, (model.tools, model.images, model.pdf, model.thinking)),
        *map(_price, (model.input_usd, model.output_usd)),
    ]


def _count(fact: NumberFact | None) -> str:
    return "" if fact is None else f"{fact.value:,.0f}{_ORIGINS[fact.origin]}"


def _price(fact: NumberFact | None) -> str:
    return "" if fact is None else f"{fact.value:g}"


def _flag(fact: FlagFact | None) -> str:
    return "" if fact is None else ("yes" if fact.value else "no")


# Without a configured model


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
