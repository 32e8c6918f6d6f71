"""Registry: from a name such as `openai/gpt-5` to the model that answers to it."""

from collections.abc import Callable
from dataclasses import dataclass, field

from agiraph.domain.errors import Misconfigured
from agiraph.domain.time import Clock
from agiraph.providers.base import Model
from agiraph.providers.demo import DemoModel
from agiraph.providers.http import Http
from agiraph.providers.openai import OpenAIModel
from agiraph.providers.retry import Retrying

OPENAI_URL = "https://api.openai.com/v1"
Maker = Callable[[str], Model]


@dataclass(frozen=True, slots=True, kw_only=True)
class Keys:
    """Where providers are and what opens them; never printed."""

    openai_key: str = field(default="", repr=False)
    openai_url: str = ""


class Registry:
    def __init__(self, keys: Keys, clock: Clock) -> None:
        self._keys = keys
        self._clock = clock
        self._http = Http(clock)
        self._makers: dict[str, Maker] = {"openai": self._openai}
        self._made: dict[str, Model] = {}

    def add(self, provider: str, maker: Maker) -> None:
        """Serve `provider/…` by what this makes of the rest of the name."""
        self._makers[provider] = maker

    def resolve(self, name: str) -> Model:
        """The model of that name, or `Misconfigured` with what to write instead."""
        if name == "demo":
            return DemoModel()
        if name not in self._made:
            provider, slash, model = name.partition("/")
            if provider not in self._makers or not slash or not model:
                raise Misconfigured(
                    f"{name!r} is not a model agiraph can reach. Write `provider/model` with one "
                    f"of {', '.join(sorted(self._makers))}, or `demo`, which needs no key."
                )
            self._made[name] = self._makers[provider](model)
        return self._made[name]

    async def close(self) -> None:
        await self._http.close()

    def _openai(self, model: str) -> Model:
        if not self._keys.openai_key and not self._keys.openai_url:
            raise Misconfigured(
                f"openai/{model} needs OPENAI_API_KEY, or OPENAI_BASE_URL for a server of your own."
            )
        url = self._keys.openai_url or OPENAI_URL
        if not url.startswith(("https://", "http://")):
            raise Misconfigured(f"OPENAI_BASE_URL {url!r} must begin with https:// or http://.")
        wire = OpenAIModel(
            name=f"openai/{model}",
            model=model,
            base_url=url,
            key=self._keys.openai_key,
            http=self._http,
        )
        return Retrying(model=wire, clock=self._clock)
