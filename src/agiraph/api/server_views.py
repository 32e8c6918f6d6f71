"""Server views: persons, tokens, health, models and the state of a server, as the API returns
them."""

from datetime import datetime
from typing import Literal

from pydantic import Field

from agiraph.api.views import View
from agiraph.core.domain.provenance.access import Scope, TokenKind
from agiraph.core.domain.provenance.confinement import Level
from agiraph.core.domain.records.findings import Verdict
from agiraph.core.domain.work import Lane

FactOrigin = Literal["file", "server", "package", "assumed"]
ProviderState = Literal["ready", "down", "no_key", "not_running"]


class PersonView(View):
    id: str
    name: str
    away_until: datetime | None = Field(description="Until when they are away; null: they are not.")
    zone: str = Field(description="Their time zone, such as Europe/Berlin; empty: not known.")
    channels: list[str] = Field(description="The names of the channels that reach them.")


class NumberFact(View):
    value: float
    origin: FactOrigin = Field(description="Where the value was read: agiraph.toml is `file`.")


class FlagFact(View):
    value: bool
    origin: FactOrigin


class ModelCheck(View):
    name: Literal["words", "tool_call", "schema", "cache"]
    verdict: Literal["passed", "failed", "unknown"]
    what: str = Field(description="What happened.")
    advice: str = Field(description="What to do; empty if nothing needs to be done.")


class ModelTestView(View):
    model: str
    at: datetime = Field(description="When it was tested.")
    checks: list[ModelCheck] = Field(description="Only `words` if the model does not answer.")


class ModelView(View):
    name: str = Field(description="As `provider/model`, the way a team names it.")
    is_default: bool
    window: NumberFact = Field(description="Tokens that a request may hold.")
    output_limit: NumberFact | None = Field(description="Tokens of the longest reply.")
    tools: FlagFact | None = Field(description="None: not known. Without tools, use `text/…`.")
    images: FlagFact | None
    pdf: FlagFact | None
    thinking: FlagFact | None
    search: FlagFact | None = Field(description="Whether its vendor can search the web for it.")
    input_usd: NumberFact | None = Field(description="Dollars per million input tokens.")
    output_usd: NumberFact | None = Field(description="Dollars per million output tokens.")
    retires: str = Field(description="The day on which the vendor stops it; empty: none is known.")
    use_instead: str = Field(description="The model to use instead of one that retires.")
    advice: str = Field(
        description="What is wrong with its window and what to do; empty: nothing is known."
    )
    last_test: ModelTestView | None = Field(description="None: it was never tested.")


class ProviderView(View):
    name: str
    address: str
    is_local: bool = Field(description="Whether it is a server that people run themselves.")
    takes_key: bool = Field(description="Whether it is a vendor that needs an API key.")
    has_stored_key: bool = Field(
        description="Whether its key was entered here, so that it can be removed here."
    )
    state: ProviderState = Field(
        description="`down`: a server in the settings that does not answer; `not_running`: a local "
        "server that was not found at its usual port."
    )
    advice: str = Field(description="What to do to use it; empty if it is ready.")
    models: list[ModelView]


class ModelsView(View):
    default: str = Field(description="The model of teams that name none.")
    default_problem: str = Field(
        description="Why the default model cannot be used and what to do; empty: it can."
    )
    providers: list[ProviderView] = Field(description="Those that are ready come first.")


class TokenView(View):
    id: str
    person_id: str = Field(description="The person in whose name the token acts.")
    kind: TokenKind
    name: str
    scope: Scope
    created_at: datetime
    expires_at: datetime | None
    used_at: datetime | None = Field(
        description="When it was last used, to within ten minutes; None: never."
    )
    is_own: bool = Field(description="Whether this request was made with it.")


class IssuedToken(TokenView):
    secret: str = Field(description="Shown only once; the server stores a hash.")


class LinkView(View):
    id: str
    path: str = Field(description="The path to open in a browser on this server; valid once.")
    url: str = Field(
        description="The whole address for another device; empty: only this machine can reach it."
    )
    expires_at: datetime | None


class LinkUseView(View):
    expires_at: datetime | None
    used_at: datetime | None = Field(description="When a browser signed in with it; None: not yet.")
    session: TokenView | None = Field(description="The session of that browser, if it is kept.")


class HealthView(View):
    status: str


class SandboxView(View):
    """How the commands of agents are confined on the server's machine."""

    level: Level = Field(description="none: commands are not confined, and each asks a person.")
    is_named: bool = Field(description="Whether the settings name the level.")
    has_spare_user: bool = Field(
        description="Whether root's commands run as another user, one for each team."
    )
    description: str = Field(description="The level in one or two sentences, for people.")
    not_held: list[str] = Field(description="What commands can do in spite of it.")
    reasons: list[str] = Field(description="Why better levels were not taken.")
    limited_by: str = Field(description="How limits of processes, memory and disk are kept.")


class StatusView(View):
    build: str
    failing: list[str] = Field(description="A sentence for each background task that fails now.")
    sandbox: SandboxView
    stopped_at: datetime | None = Field(
        description="When all work was stopped by an emergency stop that is in force; None: none."
    )


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


class SetupView(View):
    """The result of setting up a model: its test, and whether it was stored and is the default."""

    provider: str
    model: str
    is_stored: bool = Field(description="False: it did not answer, so nothing was stored.")
    is_default: bool = Field(description="Whether teams that name no model use it now.")
    note: str = Field(description="What the person should know; empty: nothing.")
    test: ModelTestView
    facts: ModelView | None
