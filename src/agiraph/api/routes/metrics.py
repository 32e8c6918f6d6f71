"""Metrics route: counters and gauges in the Prometheus text format."""

import resource
from typing import NamedTuple

from fastapi import APIRouter
from fastapi.responses import PlainTextResponse

from agiraph.api.deps import ApiDep
from agiraph.api.routers import api_router
from agiraph.store import counts
from agiraph.store.tx import Tx

router: APIRouter = api_router("health")


class Metric(NamedTuple):
    name: str
    kind: str
    help: str
    samples: list[tuple[dict[str, str], float]]

    def lines(self) -> list[str]:
        said = [f"# HELP {self.name} {self.help}", f"# TYPE {self.name} {self.kind}"]
        for labels, value in self.samples:
            inner = ",".join(f'{key}="{_escaped(text)}"' for key, text in labels.items())
            said.append(f"{self.name}{f'{{{inner}}}' if inner else ''} {value:g}")
        return said


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


@router.get("/metrics", response_class=PlainTextResponse)
async def metrics(api: ApiDep) -> str:
    """Return counts of teams, nodes, questions, model calls, costs and WebSockets."""
    counted = await api.store.read(_counted)
    hub = api.hub
    usage = resource.getrusage(resource.RUSAGE_SELF)
    own = [
        Metric("agiraph_watchers", "gauge", "WebSockets open now.", [({}, len(hub.subscribers))]),
        Metric(
            "agiraph_watchers_lost_total",
            "counter",
            "WebSockets closed because the client was too slow.",
            [({}, hub.lost)],
        ),
        Metric(
            "agiraph_watcher_backlog",
            "gauge",
            "Frames queued for the slowest WebSocket.",
            [({}, max((len(w.frames) for w in hub.subscribers), default=0))],
        ),
        Metric(
            "agiraph_events_told_total",
            "counter",
            "Events published to WebSockets by this process.",
            [({}, hub.events_published)],
        ),
        Metric(
            "process_cpu_seconds_total",
            "counter",
            "CPU time of this process.",
            [({}, usage.ru_utime + usage.ru_stime)],
        ),
        Metric(
            "process_max_resident_bytes",
            "gauge",
            "Peak resident memory of this process.",
            [({}, usage.ru_maxrss * 1024)],
        ),
    ]
    return "\n".join(line for metric in [*counted, *own] for line in metric.lines()) + "\n"


def _counted(tx: Tx) -> list[Metric]:
    return [*_work(tx), *_spending(counts.spent(tx))]


def _work(tx: Tx) -> list[Metric]:
    return [
        Metric(
            "agiraph_teams",
            "gauge",
            "Teams by status.",
            [({"status": status}, count) for status, count in counts.teams(tx)],
        ),
        Metric(
            "agiraph_nodes",
            "gauge",
            "Nodes by lane and status.",
            [({"lane": lane, "status": s}, count) for lane, s, count in counts.nodes(tx)],
        ),
        Metric(
            "agiraph_questions_open",
            "gauge",
            "Open questions and approvals.",
            [({}, counts.open_questions(tx))],
        ),
        Metric(
            "agiraph_overdue_seconds",
            "gauge",
            "How long the oldest timer is overdue.",
            [({}, counts.overdue_seconds(tx))],
        ),
    ]


def _spending(spent: list[counts.Spent]) -> list[Metric]:
    return [
        Metric(
            "agiraph_model_calls_total",
            "counter",
            "Model calls by model and purpose.",
            [({"model": r.model, "purpose": r.purpose}, r.calls) for r in spent],
        ),
        Metric(
            "agiraph_tokens_total",
            "counter",
            "Tokens by model and direction.",
            [
                ({"model": r.model, "purpose": r.purpose, "direction": way}, count)
                for r in spent
                for way, count in (("in", r.input_tokens), ("out", r.output_tokens))
            ],
        ),
        Metric(
            "agiraph_usd_total",
            "counter",
            "Cost in USD by model and purpose; calls without a known price count as zero.",
            [({"model": r.model, "purpose": r.purpose}, r.usd) for r in spent],
        ),
    ]
