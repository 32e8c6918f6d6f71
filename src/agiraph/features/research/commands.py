"""`agiraph research`: have a question researched, once or again and again; `agiraph evidence`: see
what a report rests on."""

import click

from agiraph.api.feature_views.research import EvidenceView, ResearchView
from agiraph.cli.session import Told, clean, connected, printing
from agiraph.cli.talk import SCHEDULES, cron_of, find_agent
from agiraph.core.domain.errors import Refused
from agiraph.core.domain.text.plurals import counted
from agiraph.core.domain.times.moments import as_text
from agiraph.features.research.model.jobs import Depth

DEPTHS = ("quick", "standard", "deep")
EVERY_HELP = f"Ask again and report only what is new: {', '.join(SCHEDULES)}, or a cron expression."


@click.command()
@click.argument("team")
@click.argument("question", required=False)
@click.option("--depth", type=click.Choice(DEPTHS), help="Without it, the question decides.")
@click.option("--continues", metavar="TASK", help="Go on from the findings of this research.")
@click.option("--every", metavar="WHEN", help=EVERY_HELP)
@click.option("--zone", help="The time zone of --every. [default: your own]")
@printing
async def research(
    team: str,
    question: str | None,
    depth: Depth | None,
    continues: str | None,
    every: str | None,
    zone: str | None,
) -> Told:
    """Have a TEAM research a QUESTION; the report goes to the inbox. Without a question, list the
    team's research."""
    async with connected() as client:
        agent = await find_agent(client, team, None)
        if question is None:
            if depth or continues or every:
                raise Refused("Write the question behind the team's name.")
            listed = await client.research(agent.team_id)
            return listed, _listing(listed)
        if every is not None:
            if continues is not None:
                raise Refused("--every goes on from its own last report: leave out --continues.")
            made = await client.create_trigger(
                agent.team_id,
                "scheduled",
                config={"cron": cron_of(every), **({"zone": zone} if zone else {})},
                action="research",
                payload={"question": question, **({"depth": depth} if depth else {})},
            )
            due = as_text(made.due_at, made.zone) if made.due_at else "never"
            said = f"Asked again and again as {made.id}, first on {due}. "
            return made, f"{said}Stop it: agiraph triggers {made.team_id} --cancel {made.id}"
        node = await client.start_research(agent.id, question, depth=depth, continues=continues)
    return node, f"Research has started as {node.id}. See it: agiraph evidence {node.id}"


@click.command()
@click.argument("task")
@printing
async def evidence(task: str) -> Told:
    """Show the plan of a research TASK and the quotations that its report rests on."""
    async with connected() as client:
        found = await client.research_job(task)
    return found, "\n".join(_lines(found))


def _listing(jobs: list[ResearchView]) -> str:
    lines = [
        f"{job.node_id}  {job.state:8} {job.created_at:%Y-%m-%d %H:%M}  "
        f"{counted(len(job.evidence), 'quotation'):>14}  ${job.usd:.2f}  {clean(job.title)}"
        for job in jobs
    ]
    return "\n".join(lines) or "There is no research yet."


def _lines(job: ResearchView) -> list[str]:
    used = (
        f"{job.state}, {job.phase}, depth {job.depth or 'not chosen yet'}, "
        f"{job.searches} of {job.searches_limit} searches, "
        f"{len(job.pages)} of {job.pages_limit} pages, ${job.usd:.2f}"
    )
    lines = [clean(job.title), used]
    for part in job.sub_questions:
        lines.append(f"{part.number}. {clean(part.question)} ({part.state}, {part.evidence} found)")
    for entry in job.evidence:
        lines += ["", *_entry(entry)]
    return lines


def _entry(entry: EvidenceView) -> list[str]:
    facts = [entry.stance, entry.source_class, entry.published, entry.checked]
    title = entry.title or entry.site
    return [
        f"{entry.id}  {clean(entry.claim)}",
        f"    “{clean(entry.quote)}”",
        f"    {clean(title)}, {clean(entry.url)} ({', '.join(filter(None, facts))})",
    ]
