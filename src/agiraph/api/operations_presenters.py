"""Operations presenters: turn the state of a server into views of the API."""

import asyncio
import os
from collections.abc import Iterable
from dataclasses import asdict
from datetime import datetime
from typing import Literal

from agiraph.api.access_control import OWNER_CALLER
from agiraph.api.deps import Api
from agiraph.api.operations_views import (
    BackupView,
    ExaminationView,
    FindingView,
    InterruptedTaskView,
    OperationsView,
    ProviderStatusView,
    QueueView,
    StorageView,
    WorkerView,
    WorkStopView,
)
from agiraph.api.status_presenters import sandbox_view
from agiraph.domain.access import Token
from agiraph.domain.findings import Finding
from agiraph.home import health, last_backup
from agiraph.providers.attempts import CircuitBreaker
from agiraph.providers.listing import ListedProvider, listing
from agiraph.redaction import redact
from agiraph.services import health as work_health
from agiraph.services.lifecycle import teams
from agiraph.services.lifecycle.teams import WorkStop
from agiraph.store import counts, spend
from agiraph.store import health as database_health
from agiraph.store.access import PASSES
from agiraph.store.spend import ModelSpend
from agiraph.store.tx import Tx


async def operations(api: Api) -> OperationsView:
    """Return the state of a server."""
    stop = await api.store.read(teams.found_stop)
    return OperationsView(
        build=api.build,
        stopped=None if stop is None else await api.store.read(work_stop, stop),
        queue=_queue(await api.store.read(counts.nodes)),
        workers=await _workers(api),
        failing=[*api.failing(), *await api.store.read(work_health.unremoved)],
        storage=await _storage(api),
        sandbox=sandbox_view(api.confinement),
    )


def work_stop(tx: Tx, stop: WorkStop) -> WorkStopView:
    """Return the view of an emergency stop, with the name of its caller's token."""
    name, _, identity = stop.by.removesuffix(")").rpartition(" (")
    token = PASSES.find(tx, identity)
    by = name if token is not None else stop.by
    kind = "owner" if stop.by == OWNER_CALLER else "session" if _is_session(token) else "token"
    return WorkStopView(
        at=stop.at,
        by=by,
        by_kind=kind,
        running=stop.running,
        queued=stop.queued,
        interrupted=[InterruptedTaskView.model_validate(asdict(one)) for one in stop.interrupted],
    )


def _is_session(token: Token | None) -> bool:
    return token is not None and token.kind == "session"


def _queue(found: Iterable[tuple[str, str, int]]) -> QueueView:
    sums = {"running": 0, "assigned": 0, "waiting": 0, "pending": 0}
    for _, status, count in found:
        if status in sums:
            sums[status] += count
    return QueueView(
        running=sums["running"],
        queued=sums["assigned"],
        waiting=sums["waiting"],
        pending=sums["pending"],
    )


def _dialect(tx: Tx) -> Literal["sqlite", "postgres"]:
    return tx.dialect


async def _workers(api: Api) -> list[WorkerView]:
    """Return the processes that work: with SQLite this one, else those of the rows."""
    if await api.store.read(_dialect) == "sqlite":
        return [WorkerView(name=f"process {os.getpid()}", silent_s=0.0, failing=api.failing())]
    from agiraph.store.presence import workers  # imports psycopg, which SQLite homes do not need

    return [
        WorkerView(
            name=f"process {one.pid} on {one.host}", silent_s=one.silent_s, failing=one.failing
        )
        for one in await api.store.read(workers)
    ]


async def _storage(api: Api) -> StorageView:
    home = api.home.path
    made = await asyncio.to_thread(last_backup.read, api.home)
    return StorageView(
        database=await api.store.read(_dialect),
        database_bytes=await api.store.read(database_health.bytes_used),
        home=str(home),
        free_bytes=await asyncio.to_thread(health.free_bytes, home),
        output_bytes=await asyncio.to_thread(health.spool_bytes, home),
        last_backup=None if made is None else BackupView(at=made.at, file=made.file),
    )


async def providers(api: Api) -> list[ProviderStatusView]:
    """Return the providers that can be called or were called, with their costs of today."""
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
    calls, usd = spent
    return ProviderStatusView(
        name=listed.name,
        address=redact(listed.address),
        state=_state(listed, circuit),
        advice=redact(listed.advice),
        succeeded_at=circuit.succeeded_at,
        failed_at=circuit.failed_at,
        error=redact(circuit.error),
        paused_s=round(circuit.open_s, 1),
        rate_limit_s=round(api.models.registry.wait_s(listed.name), 1),
        calls_today=calls,
        usd_today=round(usd, 6),
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


def examination(at: datetime, found: Iterable[Finding]) -> ExaminationView:
    """Return the doctor's findings for the API; secrets that a finding quotes are redacted."""
    return ExaminationView(
        at=at,
        findings=[
            FindingView(
                name=one.name,
                verdict=one.verdict,
                what=redact(one.what),
                details=[redact(line) for line in one.details],
                can_fix=one.can_fix,
            )
            for one in found
        ],
    )
