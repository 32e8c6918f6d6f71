"""Operations routes: the state of the server, health checks, metrics and the emergency stop."""

import asyncio
import os
import resource
from collections.abc import Iterable
from typing import Literal

from starlette.responses import PlainTextResponse

from agiraph.api.deps import Api, ApiDep, CallerDep, PersonDep
from agiraph.api.problems import documented
from agiraph.api.routing import Router
from agiraph.api.server_views import (
    BackupView,
    EmergencyStopView,
    ExaminationView,
    FindingView,
    HealthView,
    OperationsView,
    ProviderStatusView,
    QueueView,
    ResumedView,
    SandboxView,
    StatusView,
    StorageView,
    WorkerView,
    WorkStopView,
)
from agiraph.core.domain.errors import NotFound, NotReady
from agiraph.core.home import health, last_backup
from agiraph.core.services import access
from agiraph.core.services import health as work_health
from agiraph.core.services.lifecycle import teams as team_verbs
from agiraph.core.services.lifecycle.teams import WorkStop
from agiraph.core.store import spend, teams
from agiraph.core.store.access import PASSES
from agiraph.core.store.lists import counts
from agiraph.core.store.lists import health as database_health
from agiraph.core.store.spend import ModelSpend
from agiraph.core.store.tx import Tx
from agiraph.models.attempts import CircuitBreaker
from agiraph.models.listing import ListedProvider, listing
from agiraph.redaction import redact
from agiraph.sandbox.levels import Confinement

router: Router = Router("operations")
status_router: Router = Router("operations")
health_router: Router = Router("health")


@router.post("/stop", responses=documented())
async def stop_everything(api: ApiDep, person: PersonDep) -> EmergencyStopView:
    """Cancel the open work of all teams and end every process they started."""
    stopped = EmergencyStopView(teams=0, nodes=0)
    after = ""
    while page := await api.store.read(teams.page, after=after, limit=500):
        # One transaction per team: an error in one team must not keep the others running.
        for team in page:
            try:
                ended = await api.store.write_first(team_verbs.halt, team.id, by=person)
            except NotFound:
                continue
            stopped.nodes += ended
            stopped.teams += team.status in ("active", "paused") or ended > 0
        after = page[-1].id
    return stopped


@router.get("/operations", responses=documented())
async def read_operations(api: ApiDep) -> OperationsView:
    """Show the queues, the workers, the storage and the sandbox of the server."""
    stop = await api.store.read(team_verbs.found_stop)
    return OperationsView(
        build=api.build,
        stopped=None if stop is None else await api.store.read(work_stop, stop),
        queue=_queue(await api.store.read(counts.nodes)),
        workers=await _workers(api),
        failing=[*api.failing(), *await api.store.read(work_health.unremoved)],
        storage=await _storage(api),
        sandbox=_sandbox_view(api.confinement),
    )


def work_stop(tx: Tx, stop: WorkStop) -> WorkStopView:
    """Return the view of an emergency stop, with the name of its caller's token."""
    token = None if stop.token_id is None else PASSES.find(tx, stop.token_id)
    kind = "owner" if stop.token_id is None else "token"
    if token is not None and token.kind == "session":
        kind = "session"
    return WorkStopView.of(stop, by=stop.by if token is None else token.name, by_kind=kind)


def _queue(found: Iterable[tuple[str, str, int]]) -> QueueView:
    sums = {"running": 0, "assigned": 0, "waiting": 0, "pending": 0}
    for _, status, count in found:
        if status in sums:
            sums[status] += count
    return QueueView(queued=sums.pop("assigned"), **sums)


def _dialect(tx: Tx) -> Literal["sqlite", "postgres"]:
    return tx.dialect


async def _workers(api: Api) -> list[WorkerView]:
    """Return the processes that work: with SQLite this one, else those of the rows."""
    if await api.store.read(_dialect) == "sqlite":
        return [WorkerView(name=f"process {os.getpid()}", silent_s=0.0, failing=api.failing())]
    from agiraph.core.store.engine.presence import (
        workers,  # imports psycopg, which SQLite homes do not need
    )

    found = await api.store.read(workers)
    return [WorkerView.of(one, name=f"process {one.pid} on {one.host}") for one in found]


async def _storage(api: Api) -> StorageView:
    home = api.home.path
    made = await asyncio.to_thread(last_backup.read, api.home)
    return StorageView(
        database=await api.store.read(_dialect),
        database_bytes=await api.store.read(database_health.bytes_used),
        home=str(home),
        free_bytes=await asyncio.to_thread(health.free_bytes, home),
        output_bytes=await asyncio.to_thread(health.spool_bytes, home),
        last_backup=None if made is None else BackupView.of(made),
    )


@router.get("/operations/providers", responses=documented())
async def list_provider_status(api: ApiDep) -> list[ProviderStatusView]:
    """Show the last calls of each provider of models, and what it cost today."""
    listed = await listing(api.models)
    today = spend.day_of(api.clock.now())
    spent = _by_provider(await api.store.read(spend.by_model, today))
    shown = [
        one
        for one in listed
        if one.state in ("ready", "down") or one.name in api.models.circuits or one.name in spent
    ]
    return [_provider(api, one, spent.get(one.name, (0, 0.0))) for one in shown]


def _by_provider(found: Iterable[ModelSpend]) -> dict[str, tuple[int, float]]:
    sums: dict[str, tuple[int, float]] = {}
    for one in found:
        provider = one.model.removeprefix("text/").partition("/")[0]
        calls, usd = sums.get(provider, (0, 0.0))
        sums[provider] = (calls + one.calls, usd + one.usd)
    return sums


def _provider(api: Api, listed: ListedProvider, spent: tuple[int, float]) -> ProviderStatusView:
    circuit = api.models.circuits.get(listed.name) or CircuitBreaker(listed.name, api.clock)
    return ProviderStatusView.of(
        circuit,
        name=listed.name,
        address=redact(listed.address),
        state=_state(listed, circuit),
        advice=redact(listed.advice),
        error=redact(circuit.error),
        paused_s=round(circuit.open_s, 1),
        rate_limit_s=round(api.models.registry.wait_s(listed.name), 1),
        calls_today=spent[0],
        usd_today=round(spent[1], 6),
    )


def _state(
    listed: ListedProvider, circuit: CircuitBreaker
) -> Literal["working", "failing", "paused", "not_reached", "not_called"]:
    if listed.state == "down":
        return "not_reached"
    if circuit.open_s > 0:
        return "paused"
    last, failed = circuit.succeeded_at, circuit.failed_at
    if failed is not None and (last is None or failed > last):
        return "failing"
    return "not_called" if last is None else "working"


@router.post("/operations/doctor", responses=documented())
async def run_health_checks(api: ApiDep) -> ExaminationView:
    """Make all health checks of `agiraph doctor`, within 30 seconds. Nothing is repaired."""
    at = api.clock.now()
    findings = [
        FindingView.of(one, what=redact(one.what), details=[redact(line) for line in one.details])
        for one in await api.examine()
    ]
    return ExaminationView(at=at, findings=findings)


@router.write("POST", "/operations/stop")
def stop_all_work(tx: Tx, caller: CallerDep) -> WorkStopView:
    """Interrupt all work of all teams at once, until it is resumed, also after a restart.

    Nothing is cancelled: tasks go on where they stopped when work is resumed.
    """
    return work_stop(tx, team_verbs.stop_all(tx, by=caller.name, token_id=caller.token_id))


@router.write("POST", "/operations/resume")
def resume_all_work(tx: Tx) -> ResumedView:
    """End the emergency stop: all tasks go on where they stopped."""
    return ResumedView(queues=team_verbs.resume_all(tx))


@status_router.get("/status", responses=documented())
async def status(api: ApiDep) -> StatusView:
    """Say which version runs, what fails, whether work is stopped, and how commands of agents are
    confined."""
    stop = await api.store.read(team_verbs.found_stop)
    return StatusView(
        build=api.build,
        failing=api.failing(),
        sandbox=_sandbox_view(api.confinement),
        stopped_at=None if stop is None else stop.at,
    )


def _sandbox_view(found: Confinement) -> SandboxView:
    """Return the level at which commands are confined, and what it does not enforce."""
    return SandboxView.of(found, description=found.describe())


@health_router.get("/healthz")
async def alive() -> HealthView:
    """Check that this process responds."""
    return HealthView(status="alive")


@health_router.get("/readyz", responses=documented(503, everywhere=False))
async def ready(api: ApiDep) -> HealthView:
    """Check that database and home accept writes, and that no background task is failing."""
    # A write and not a read: from a full or read-only disk rows can still be read.
    await api.store.write(access.epoch)
    # Rows need no new file: a disk without inodes still takes them, but no command can start.
    if why := await asyncio.to_thread(health.why_not_writable, api.home.path):
        raise NotReady(
            f"No file can be made in the home. {why}. Delete files that you do not need."
        )
    if failing := api.failing():
        raise NotReady("; ".join(failing))
    return HealthView(status="ready")


def _metric(name: str, about: str, *samples: float | tuple[dict[str, str], float]) -> str:
    """Return a metric in the Prometheus text format: a counter if its name says so."""
    kind = "counter" if name.endswith("_total") else "gauge"
    lines = [f"# HELP {name} {about}", f"# TYPE {name} {kind}"]
    for sample in samples:
        labels, value = sample if isinstance(sample, tuple) else ({}, sample)
        inner = ",".join(f'{key}="{_escaped(text)}"' for key, text in labels.items())
        lines.append(f"{name}{f'{{{inner}}}' if inner else ''} {value:g}")
    return "\n".join(lines)


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


@health_router.get("/metrics", response_class=PlainTextResponse)
async def metrics(api: ApiDep) -> str:
    """Return counts of teams, nodes, questions, model calls, costs and WebSockets."""
    counted = await api.store.read(_counted)
    open_now, usage = api.hub.subscribers, resource.getrusage(resource.RUSAGE_SELF)
    backlog = max((len(one.frames) for one in open_now), default=0)
    told = api.hub.events_published
    cpu_s, resident = usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024
    lost = "WebSockets closed because the client was too slow."
    own = [
        _metric("agiraph_watchers", "WebSockets open now.", len(open_now)),
        _metric("agiraph_watchers_lost_total", lost, api.hub.lost),
        _metric("agiraph_watcher_backlog", "Frames queued for the slowest WebSocket.", backlog),
        _metric(
            "agiraph_events_told_total", "Events published to WebSockets by this process.", told
        ),
        _metric("process_cpu_seconds_total", "CPU time of this process.", cpu_s),
        _metric("process_max_resident_bytes", "Peak resident memory of this process.", resident),
    ]
    return "\n".join([*counted, *own]) + "\n"


def _counted(tx: Tx) -> list[str]:
    by_status = [({"status": status}, count) for status, count in counts.teams(tx)]
    nodes = [({"lane": lane, "status": s}, count) for lane, s, count in counts.nodes(tx)]
    asked, overdue_s = counts.open_questions(tx), counts.overdue_seconds(tx)
    spent = [({"model": r.model, "purpose": r.purpose}, r) for r in counts.spent(tx)]
    tokens = [
        ({**labels, "direction": way}, count)
        for labels, r in spent
        for way, count in (("in", r.input_tokens), ("out", r.output_tokens))
    ]
    calls, usd = (
        [(labels, r.calls) for labels, r in spent],
        [(labels, r.usd) for labels, r in spent],
    )
    priced = "Cost in USD by model and purpose; calls without a known price count as zero."
    return [
        _metric("agiraph_teams", "Teams by status.", *by_status),
        _metric("agiraph_nodes", "Nodes by lane and status.", *nodes),
        _metric("agiraph_questions_open", "Open questions and approvals.", asked),
        _metric("agiraph_overdue_seconds", "How long the oldest timer is overdue.", overdue_s),
        _metric("agiraph_model_calls_total", "Model calls by model and purpose.", *calls),
        _metric("agiraph_tokens_total", "Tokens by model and direction.", *tokens),
        _metric("agiraph_usd_total", priced, *usd),
    ]
