"""Fixtures of the conformance suite: every provider, built from settings, on its own wire."""

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from agiraph import config
from agiraph.core.domain.chat import Thread, Turn
from agiraph.core.domain.ids import ThreadId
from agiraph.core.domain.persons import OWNER
from agiraph.core.services.lifecycle import teams
from agiraph.core.store import threads
from agiraph.core.store.engine.sqlite import SqliteStore
from agiraph.core.store.threads import THREADS
from agiraph.core.store.tx import Tx
from agiraph.models.http.client import HttpClient
from agiraph.models.registry import Registry
from agiraph.models.wires.anthropic import AnthropicModel
from agiraph.models.wires.chat_completions import OpenAIModel
from agiraph.models.wires.gemini import GeminiModel
from agiraph.models.wires.responses import ResponsesModel
from agiraph.testing import ManualClock, ModelServer
from agiraph.testing.script import Wire
from agiraph.testing.world import prepare_database

KEY = "sk-canary-4711"
STALL_SECONDS = 20.0
IMPATIENT = 0.1

WireModel = AnthropicModel | GeminiModel | OpenAIModel | ResponsesModel


@dataclass(frozen=True, slots=True)
class Provider:
    """A provider: the name of one of its models, and its wire."""

    name: str
    wire: Wire

    @property
    def vendor(self) -> str:
        return self.name.partition("/")[0]

    @property
    def thinking_owner(self) -> str:
        """The owner of stored thinking; behind a router every model has its own."""
        if self.wire == "responses":
            return f"responses:{self.name}"
        return self.name if self.vendor == "openrouter" else self.vendor


PROVIDERS = (
    Provider("anthropic/claude-m", "anthropic"),
    Provider("openai/gpt-m", "openai"),
    Provider("gemini/gemini-3-m", "gemini"),
    Provider("openrouter/vendor/m", "openai"),
    Provider("house/m", "openai"),
    Provider("direct/gpt-m", "responses"),
)

ModelOn = Callable[[Provider, ModelServer], WireModel]


@pytest.fixture(params=PROVIDERS, ids=lambda p: p.vendor)
def provider(request: pytest.FixtureRequest) -> Provider:
    return request.param


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
async def http(clock: ManualClock) -> AsyncIterator[HttpClient]:
    opened = HttpClient(clock, stall_timeout_s=STALL_SECONDS)
    yield opened
    await opened.close()


@pytest.fixture
async def impatient(clock: ManualClock) -> AsyncIterator[HttpClient]:
    """A client with a very short stall timeout."""
    opened = HttpClient(clock, stall_timeout_s=IMPATIENT)
    yield opened
    await opened.close()


@pytest.fixture
def model_on(http: HttpClient, clock: ManualClock, tmp_path: Path) -> ModelOn:
    """Return a function that builds a provider's model on a server, from a person's settings."""

    def make(provider: Provider, server: ModelServer) -> WireModel:
        table = f'[servers.house]\nbase_url = "{server.openai_url}"\nkey_env = "HOUSE_KEY"\n'
        table += f'[servers.direct]\nbase_url = "{server.openai_url}"\nkey_env = "HOUSE_KEY"\n'
        table += 'wire = "responses"\n'
        (tmp_path / config.FILE).write_text(table)
        settings = config.load(
            {
                "AGIRAPH_HOME": str(tmp_path),
                "ANTHROPIC_API_KEY": KEY,
                "ANTHROPIC_BASE_URL": server.anthropic_url,
                "OPENAI_API_KEY": KEY,
                "OPENAI_BASE_URL": server.openai_url,
                "GEMINI_API_KEY": KEY,
                "GOOGLE_GEMINI_BASE_URL": server.gemini_url,
                "OPENROUTER_API_KEY": KEY,
                "OPENROUTER_BASE_URL": server.openai_url,
                "HOUSE_KEY": KEY,
            }
        )
        model = Registry(settings.keys, clock).resolve(provider.name)
        assert isinstance(model, WireModel)
        return replace(model, http=http)  # this client is closed with the test

    return make


class Journal:
    """Stores threads and reads them again, as after a restart."""

    def __init__(self, store: SqliteStore) -> None:
        self._store = store
        self._threads = 0

    async def store_and_read(self, turns: list[Turn]) -> list[Turn]:
        founded = await self._store.write(
            teams.create, owner_id=OWNER, goal="Keep it", model="demo", start=False
        )
        self._threads += 1
        thread = Thread(
            id=ThreadId(f"t_{self._threads}"),
            team_id=founded.team.id,
            agent_id=founded.coordinator.id,
            created_at=self._store.clock.now(),
        )

        def write(tx: Tx) -> None:
            THREADS.insert(tx, thread)
            page = threads.append_point(tx, thread.id)
            for turn in turns:
                page, _ = threads.append(
                    tx,
                    page,
                    node_id=None,
                    role=turn.role,
                    text=turn.text,
                    ref=turn.ref,
                    calls=turn.calls,
                    attachments=turn.attachments,
                    provider_data=turn.provider_data,
                    failed=turn.failed,
                    model=turn.model,
                    usage=turn.usage,
                )

        await self._store.write(write)
        return await self._store.read(threads.turns, thread.id)


@pytest.fixture
async def journal(tmp_path: Path, clock: ManualClock) -> AsyncIterator[Journal]:
    prepare_database(tmp_path / "journal.db")
    store = SqliteStore(tmp_path / "journal.db", clock)
    yield Journal(store)
    await store.close()
