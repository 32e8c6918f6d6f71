"""Operations views: the state of a server, its providers and MCP servers, and health checks."""

from datetime import datetime
from typing import ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field

from agiraph.api.model_views import ModelTestView, ModelView
from agiraph.api.status_views import SandboxView
from agiraph.api.view import View
from agiraph.domain.findings import Verdict
from agiraph.domain.work import Lane


class EmergencyStopView(View):
    """What an emergency stop ended."""

    teams: int
    nodes: int = Field(
        description="Open nodes that were cancelled; running ones end within seconds."
    )


class InterruptedTaskView(View):
    """A task that was running when all work was stopped."""

    team_id: str
    team: str
    agent_id: str
    agent: str
    node_id: str
    title: str
    lane: Lane


class WorkStopView(View):
    """An emergency stop that is in force."""

    at: datetime
    by: str = Field(description="The name of the token that stopped the work, without its id.")
    by_kind: Literal["session", "token", "owner"] = Field(
        description="session: a person in the browser; token: of a program; owner: the token in "
        "the home."
    )
    running: int = Field(description="Tasks that were interrupted.")
    queued: int = Field(description="Tasks that were ready to run.")
    interrupted: list[InterruptedTaskView] = Field(description="The first 100 of them.")


class ResumedView(View):
    queues: int = Field(description="Queues of agents that work again.")


class QueueView(View):
    """How much work there is, of all teams and lanes."""

    running: int
    queued: int = Field(description="Ready to run.")
    waiting: int = Field(description="For a person, a teammate or a time.")
    pending: int = Field(description="Without an agent, or a dependency is open.")


class WorkerView(View):
    """A process that does background work."""

    name: str
    silent_s: float = Field(description="Seconds since it was last active.")
    failing: list[str]


class BackupView(View):
    at: datetime
    file: str


class StorageView(View):
    database: Literal["sqlite", "postgres"]
    database_bytes: int
    home: str
    free_bytes: int
    output_bytes: int = Field(description="What the output of commands takes.")
    last_backup: BackupView | None = Field(description="None: no backup was made of this home.")


class OperationsView(View):
    """The state of a server."""

    build: str
    stopped: WorkStopView | None = Field(description="The emergency stop in force; None: none.")
    queue: QueueView
    workers: list[WorkerView]
    failing: list[str] = Field(description="A sentence for each background task that fails now.")
    storage: StorageView
    sandbox: SandboxView


class ProviderStatusView(View):
    """What this server knows of one provider of models."""

    name: str
    address: str
    state: Literal["working", "failing", "paused", "not_reached", "not_called"] = Field(
        description="paused: it failed several times in a row and is not called for some seconds. "
        "not_reached: a server of your own does not answer. not_called: nothing is known yet."
    )
    advice: str = Field(description="What to do; empty if nothing needs to be done.")
    succeeded_at: datetime | None = Field(description="The last successful call of this process.")
    failed_at: datetime | None
    error: str = Field(description="What the last failed call said.")
    paused_s: float = Field(description="Seconds until it is called again after its failures.")
    rate_limit_s: float = Field(description="Seconds that its rate limit keeps calls waiting.")
    calls_today: int
    usd_today: float


class FindingView(View):
    """The result of one health check."""

    name: str
    verdict: Verdict
    what: str = Field(description="What was found and, if it is a problem, what to do.")
    details: list[str]
    can_fix: bool = Field(description="Whether `agiraph doctor --fix` repairs it.")


class ExaminationView(View):
    at: datetime
    findings: list[FindingView]


class KeyRequest(BaseModel):
    """Gives the server an API key."""

    model_config: ClassVar[ConfigDict] = ConfigDict(
        extra="forbid",
        strict=True,
        json_schema_extra={"example": {"key": "sk-ant-…", "provider": "anthropic"}},
    )

    key: str = Field(min_length=8, max_length=500, repr=False)
    provider: str = Field(default="", max_length=40, description="Empty: guessed from the key.")
    model: str = Field(default="", max_length=200, description="Empty: the provider's default.")


class DefaultModelRequest(BaseModel):
    """Chooses the model of teams that name none."""

    model_config: ClassVar[ConfigDict] = ConfigDict(
        extra="forbid", strict=True, json_schema_extra={"example": {"model": "ollama/qwen3:8b"}}
    )

    model: str = Field(min_length=1, max_length=200)


class SetupView(View):
    """The result of setting up a model: its test, and whether it was stored and is the default."""

    provider: str
    model: str
    is_stored: bool = Field(description="False: it did not answer, so nothing was stored.")
    is_default: bool = Field(description="Whether teams that name no model use it now.")
    note: str = Field(description="What the person should know; empty: nothing.")
    test: ModelTestView
    facts: ModelView | None
