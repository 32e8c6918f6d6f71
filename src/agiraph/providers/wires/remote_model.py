"""Remote model: what the models of all wires share: an address, a key, and how they are asked."""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field

from agiraph.providers.base import OnDelta, Reply, Request
from agiraph.providers.http.client import HttpClient
from agiraph.providers.http.connection import Body
from agiraph.providers.options import NONE, ModelOptions
from agiraph.providers.wires.reply_builder import ResponseReader
from agiraph.providers.wires.request_settings import Attempt, Ladder, Refusals, Settings, ask
from agiraph.providers.wires.wire import Asked, request_reply, retry_without_reasoning

KEY = "{key}"
"""Stands for the key in a wire's header."""
BEARER = ("authorization", f"Bearer {KEY}")


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteModel(ABC):
    """A model behind HTTP. A wire's own class encodes the request and names the reader."""

    name: str
    model: str
    base_url: str
    key: str = field(repr=False)
    http: HttpClient
    options: ModelOptions = NONE
    refusals: Refusals = field(default_factory=Refusals, repr=False, compare=False)
    learned: set[str] = field(default_factory=set[str], repr=False, compare=False)
    """Names of what earlier replies have shown about this server and model, such as a chat template
    that accepts no system message (`chat_forms.py`)."""

    @abstractmethod
    async def reply(self, request: Request, on_delta: OnDelta | None = None) -> Reply: ...

    async def ask(self, attempt: Attempt, request: Request, ladder: Ladder) -> Reply:
        """Return the reply to the request, asked with the settings that the server accepts."""
        return await ask(
            attempt,
            request,
            name=self.name,
            options=self.options,
            refusals=self.refusals,
            ladder=ladder,
        )

    async def ask_with_reasoning(
        self,
        send: Callable[[Settings], Awaitable[Reply]],
        request: Request,
        ladder: Ladder,
        drop_reasoning: Callable[[], bool],
    ) -> Reply:
        """Return the reply; if the vendor refuses its own reasoning, `drop_reasoning` is called
        and the request is sent without it."""

        async def attempt(settings: Settings) -> Reply:
            return await retry_without_reasoning(lambda: send(settings), drop_reasoning)

        return await self.ask(attempt, request, ladder)

    async def post(
        self,
        path: str,
        body: Body,
        reader: ResponseReader,
        *,
        key_header: tuple[str, str],
        request: Request,
        on_delta: OnDelta | None,
        headers: Mapping[str, str] | None = None,
    ) -> Reply:
        """Send one request and return its whole reply. `key_header`: the name of the header for the
        key, and its value with KEY in place of the key; a server without a key gets none."""
        name, value = key_header
        keyed = {name: value.replace(KEY, self.key)} if self.key else {}
        return await request_reply(
            self.http,
            self.base_url.rstrip("/") + path,
            Asked(
                name=self.name,
                key=self.key,
                headers={**(headers or {}), **keyed, **self.options.headers},
                learned=self.learned,
            ),
            body,
            reader,
            request=request,
            on_delta=on_delta,
        )
