"""`agiraph set` and `agiraph goal`: change a team's settings, and give it a new goal."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, get_args

import click

from agiraph.api.views import TeamView
from agiraph.cli.session import as_json, clean, command, connected
from agiraph.cli.teams import F, json_option
from agiraph.domain.agents import Review, Trust
from agiraph.domain.effort import EFFORTS
from agiraph.domain.folders import Access, split_access
from agiraph.domain.work import Line, LineKind

UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
TRUSTS = ["strict", "standard", "open"]
REVIEWS = ["auto", "always", "never"]


class Interval(click.ParamType[float]):
    """A length of time such as 30m, 2h or 1d, in seconds; `never` is 0."""

    name = "interval"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        if isinstance(value, float):
            return value
        if value in ("never", "off", "0"):
            return 0.0
        found = re.fullmatch(r"(\d+(?:\.\d+)?)([smhd])", str(value).strip().lower())
        if found is None:
            self.fail(
                f"{value!r} is not a length of time; write 30m, 2h or 1d, or never.", param, ctx
            )
        return float(found[1]) * UNITS[found[2]]


EVERY_HELP = "How long without work until the coordinator acts by itself: 30m, 2h, 1d or never."
ACCEPT_HELP = (
    "What must be true when the goal is reached; one option a line. `answer` means "
    "that any answer is enough."
)
ACCEPT_AS_HELP = (
    "The same with the evidence that proves it: `file`, `ran` for a command, or `judged` by a "
    "reviewer."
)
EFFORT_HELP = "How much the models of the team think."
REVIEW_HELP = "When a reviewer judges results before they count; auto: if a machine cannot."
TRUST_HELP = (
    "What the team may do by itself after it has read untrusted text; open is for throw-away "
    "homes and containers."
)
FOLDER_HELP = (
    "A folder of yours that the team may read, or with :rw also change; one option a folder."
)
QUIET_HELP = (
    "Daily hours without briefings and browser notifications, such as 22:00-07:00; or none."
)
CHANNEL_HELP = "Your channel for the team's questions; or all."
ANSWER_HELP = (
    "How long its agents wait for your answer before they go on without: 4h, 2d; or never, to wait "
    "for ever."
)
NONE_WORDS = {"quiet_hours": "none", "channel": "all"}
"""What a person writes to take such a setting away."""
MODE_HELP = "finite: work until the goal is reached. infinite: work in cycles without an end."


def accept_as_option(function: F) -> F:
    """Give a command the option `--accept-as`."""
    add = click.option(
        "--accept-as",
        multiple=True,
        type=(click.Choice(get_args(LineKind)), str),
        metavar="KIND LINE",
        help=ACCEPT_AS_HELP,
    )
    return add(function)


def lines_with_kinds(
    plain: Sequence[str], with_kinds: Sequence[tuple[LineKind, str]]
) -> tuple[str | Line, ...]:
    """Return the acceptance lines of both options."""
    return (*plain, *(Line(line, kind) for kind, line in with_kinds))


def confirm_open(trust: Trust | None, name: str) -> None:
    """Have the person type the team's name before a team is set to `open`."""
    if trust != "open":
        return
    click.echo(
        "An open team runs commands with network and sends what it knows wherever a page tells it "
        "to. Use it only in a container or a home that you can throw away."
    )
    if click.prompt(f"Type the team's name ({clean(name)}) to go on").strip() != name:
        raise click.UsageError("That is not the team's name; nothing was changed.")


def absolute_folder(folder: str) -> str:
    """Return `PATH[:ro|rw]` with an absolute path: the server runs in another folder. A plain word
    that names no folder here is left as it is: agiraph.toml may name it."""
    path, access = split_access(folder)
    found = Path(path).expanduser()
    is_name = "/" not in folder and not found.exists()
    return folder if is_name else f"{found.absolute()}:{access}"


def told_folder(name: str, path: str, access: Access) -> str:
    """Return what a person is told of a folder that they gave."""
    may = "reads and changes" if access == "rw" else "reads"
    return f"The team {may} {clean(path)}, as folders/{clean(name)}."


@click.command()
@click.argument("team")
@click.option("--name", help="The team's name.")
@click.option("--mode", type=click.Choice(["finite", "infinite"]), help=MODE_HELP)
@click.option("--every", type=Interval(), help=EVERY_HELP)
@click.option("--review", type=click.Choice(REVIEWS), help=REVIEW_HELP)
@click.option("--trust", type=click.Choice(TRUSTS), help=TRUST_HELP)
@click.option(
    "--folder",
    "folders",
    multiple=True,
    metavar="PATH[:ro|rw]",
    help=f"{FOLDER_HELP} All of them, or none.",
)
@click.option("--model", help="The coordinator's model, as provider/model.")
@click.option("--effort", type=click.Choice([*EFFORTS, "default"]), help=EFFORT_HELP)
@click.option("--soul", help="The team's character: the new content of its SOUL.md.")
@click.option("--workers", type=click.IntRange(1, 200), help="The most members at a time.")
@click.option(
    "--budget",
    "--usd",
    "usd",
    type=click.FloatRange(min=0, min_open=True),
    help="The most dollars for its goal, in total; not less than it has spent.",
)
@click.option("--tokens", type=click.IntRange(1), help="The most tokens for its goal, in total.")
@click.option("--turns", type=click.IntRange(1), help="The most turns for its goal, in total.")
@click.option(
    "--seconds",
    type=click.FloatRange(min=0, min_open=True),
    help="The most seconds of work on its goal, in total.",
)
@click.option("--quiet", "quiet_hours", metavar="HOURS", help=QUIET_HELP)
@click.option("--zone", "quiet_zone", help="The time zone of the quiet hours: Europe/Berlin.")
@click.option("--channel", metavar="NAME", help=CHANNEL_HELP)
@click.option("--answer-within", type=Interval(), help=ANSWER_HELP)
@json_option
@command
async def set(
    team: str, trust: Trust | None, workers: int | None, json_: bool, **given: Any
) -> None:
    """Change settings of a TEAM (its id or name). What you leave out stays as it is."""
    limits = {name: given.pop(name) for name in ("usd", "tokens", "turns", "seconds")}
    given |= {
        "interval": given.pop("every"),
        "trust": trust,
        "limits": None if workers is None else {"agents": workers},
        "budget": {name: most for name, most in limits.items() if most is not None} or None,
    }
    if folders := given.pop("folders"):
        given["folders"] = [absolute_folder(folder) for folder in folders if folder != "none"]
    settings: Any = {key: value for key, value in given.items() if value is not None}
    if not settings:
        raise click.UsageError("Say what to change, for example --mode infinite --every 1h.")
    for name, word in NONE_WORDS.items():
        if settings.get(name) == word:
            settings[name] = ""
    async with connected() as client:
        found = await client.team(team)
        confirm_open(trust, found.name)
        changed = await client.change_team(found.id, **settings)
    if json_:
        return click.echo(as_json(changed))
    acts = f"every {interval_text(changed.interval)}" if changed.interval else "only when asked"
    click.echo(
        f"Changed {clean(changed.name)!r}: {changed.mode}, {changed.status}, the coordinator acts "
        f"{acts}, review {changed.review}, trust {changed.trust}{_asking(changed)}."
    )
    for folder in changed.folders if "folders" in settings else ():
        click.echo(told_folder(folder.name, folder.path, folder.access))


def _asking(team: TeamView) -> str:
    """Return when and how the team reaches the person, as far as it is not the default."""
    quiet = f", quiet {team.quiet_hours} {team.quiet_zone}" if team.quiet_hours else ""
    channel = f", questions to {clean(team.channel)}" if team.channel else ""
    within = team.answer_within
    return quiet + channel + (f", answers within {interval_text(within)}" if within else "")


def interval_text(seconds: float) -> str:
    """Return seconds in the largest unit that divides them, such as 90m."""
    unit = next((u for u in "dhm" if seconds % UNITS[u] == 0), "s")
    return f"{seconds / UNITS[unit]:g}{unit}"


@click.command()
@click.argument("team")
@click.argument("goal")
@click.option(
    "--budget",
    type=click.FloatRange(min=0),
    help="The most dollars for the work on this goal; without it, as many as for the last goal.",
)
@click.option("--accept", multiple=True, metavar="LINE", help=ACCEPT_HELP)
@accept_as_option
@click.option("--review", type=click.Choice(REVIEWS), help=REVIEW_HELP)
@json_option
@command
async def goal(
    team: str,
    goal: str,
    budget: float | None,
    accept: tuple[str, ...],
    accept_as: tuple[tuple[LineKind, str], ...],
    review: Review | None,
    json_: bool,
) -> None:
    """Give a TEAM a new GOAL. Open work on the old one is cancelled; what it knows stays.

    Limits of the last goal hold for the new one too, from zero.
    """
    limit = None if budget is None else {"usd": budget}
    async with connected() as client:
        found = await client.team(team)
        if review is not None and review != found.review:
            await client.change_team(found.id, review=review)
        aimed = await client.set_goal(
            found.id, goal, budget=limit, acceptance=lines_with_kinds(accept, accept_as)
        )
    if json_:
        return click.echo(as_json(aimed))
    click.echo(f"{clean(aimed.name)!r} works on the new goal. Watch it: agiraph tail {aimed.id}")
