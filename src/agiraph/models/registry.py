"""Registry: from a name such as `openai/gpt-5` to the model that answers under it."""

from collections.abc import Callable, Mapping
from dataclasses import field, replace

from agiraph.core.domain.errors import Misconfigured
from agiraph.core.domain.times.time import Clock
from agiraph.core.domain.value import dataclass
from agiraph.models.base import Model
from agiraph.models.demo import DemoModel
from agiraph.models.facts import packaged
from agiraph.models.facts.server_facts import Endpoint
from agiraph.models.http.client import HttpClient
from agiraph.models.http.patience import PatienceSettings
from agiraph.models.http.proxy import Proxies
from agiraph.models.http.rate_limits import Rate
from agiraph.models.options import NONE, CallForm, ModelOptions, PromptSize, with_headers
from agiraph.models.servers import Server
from agiraph.models.vendors import (
    REMOTE_VENDOR_NAMES,
    VENDOR_BY_NAME,
    VENDORS,
    WIRES,
    Vendor,
)
from agiraph.models.wires.anthropic import AnthropicModel
from agiraph.models.wires.chat_completions import OpenAIModel

MAX_OUTPUT_TOKENS = 32_000
"""The highest output limit that is sent by itself: some routers set the price of it aside."""
_KEY_HEADERS: Mapping[str, Callable[[str], dict[str, str]]] = {
    "anthropic": lambda key: {"x-api-key": key, "anthropic-version": "2023-06-01"},
    "gemini": lambda key: {"x-goog-api-key": key},
}
"""The headers with a key of the wires that take it otherwise than as `authorization: Bearer`."""
ModelFactory = Callable[[str], Model]
"""Makes a model from the part of its name after the slash."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """The key and address for one vendor of `vendors`."""

    key: str = field(default="", repr=False)
    base_url: str = ""
    """Replaces the vendor's address, for a gateway or a server of one's own."""
    is_stored: bool = False
    """Whether a person entered the key in the web UI; else it is the environment's."""


@dataclass(frozen=True, slots=True)
class Keys:
    """Access to model providers. API keys are left out of its `repr`."""

    accounts: Mapping[str, Account] = field(default_factory=dict[str, Account])
    """By the `name` of a vendor in the table."""
    servers: Mapping[str, Server] = field(default_factory=dict[str, Server], kw_only=True)
    proxies: Proxies = field(default=Proxies(), kw_only=True)
    options: Mapping[str, ModelOptions] = field(
        default_factory=dict[str, ModelOptions], kw_only=True
    )
    """What the settings add to the requests to a model, by its name `provider/model`."""
    patience: Mapping[str, PatienceSettings] = field(
        default_factory=dict[str, PatienceSettings], kw_only=True
    )
    """How long a server may be silent, by its name or that of a model."""
    rates: Mapping[str, Rate] = field(default_factory=dict[str, Rate], kw_only=True)
    """The most that a provider is asked for in a minute, by its name."""

    @property
    def default_model(self) -> str:
        """The default model of the first vendor with a key; `demo` if there is no key."""
        for vendor in VENDORS:
            if vendor.default_model and self.account(vendor).key:
                return f"{vendor.name}/{vendor.default_model}"
        return "demo"

    def account(self, vendor: Vendor) -> Account:
        return self.accounts.get(vendor.name, Account())

    def with_account(self, vendor: str, account: Account) -> "Keys":
        """Return these keys with another account of a vendor."""
        return replace(self, accounts={**self.accounts, vendor: account})


_LOCAL = [vendor for vendor in VENDORS if vendor.is_local]
_REMOTE = [vendor for vendor in VENDORS if not vendor.is_local]


class Registry:
    """Makes each named model once, on one HTTP client."""

    def __init__(self, keys: Keys, clock: Clock, *, demo_s: float = 0.0) -> None:
        self._keys = keys
        self._clock = clock
        self._demo_s = demo_s
        self._http = HttpClient(
            clock, proxies=keys.proxies, patience=keys.patience, rates=keys.rates
        )
        self._models: dict[str, Model] = {}

    def resolve(self, name: str) -> Model:
        """Return the model with this name, or raise `Misconfigured` with what to write instead."""
        if name == "demo":
            return DemoModel(story_s=self._demo_s, clock=self._clock)
        if name not in self._models:
            self._models[name] = self._limited(self._make(name))
        return self._models[name]

    def with_account(self, vendor: str, account: Account) -> "Registry":
        """Return a registry of its own in which a vendor has this account."""
        keys = self._keys.with_account(vendor, account)
        return Registry(keys, self._clock, demo_s=self._demo_s)

    def set_account(self, vendor: str, account: Account) -> None:
        """Use a vendor with this account from now on."""
        self._keys = self._keys.with_account(vendor, account)
        self._models.clear()

    @property
    def keys(self) -> Keys:
        """The keys in use now."""
        return self._keys

    def account(self, vendor: Vendor) -> Account:
        """Return the access to a vendor; without a key if there is none."""
        return self._keys.account(vendor)

    def wait_s(self, provider: str) -> float:
        """Return for how many seconds the rate limit keeps calls of a provider waiting now."""
        return self._http.rate_limits.wait_s(provider)

    def default_models(self) -> list[str]:
        """Return the default models of the vendors that have a key."""
        return [
            f"{vendor.name}/{vendor.default_model}"
            for vendor in VENDORS
            if vendor.default_model and self._keys.account(vendor).key
        ]

    def is_usable(self, provider: str) -> bool:
        """Whether this is a vendor of the table with a key, asked at its own address."""
        vendor = VENDOR_BY_NAME.get(provider)
        account = None if vendor is None else self._keys.account(vendor)
        return account is not None and bool(account.key) and not account.base_url

    def server(self, provider: str) -> Server | None:
        """Return the server of this name in agiraph.toml."""
        return None if provider in REMOTE_VENDOR_NAMES else self._keys.servers.get(provider)

    def providers(self) -> list[str]:
        """Return every provider whose models can be asked for, servers of one's own first."""
        usable = [v.name for v in _REMOTE if self._has_access(v)]
        local = [v.name for v in _LOCAL if v.name not in self._keys.servers]
        return [*self._keys.servers, *usable, *local]

    def endpoint(self, provider: str) -> Endpoint | None:
        """Return where a provider is asked about itself; None if it is not known."""
        server, vendor = self.server(provider), VENDOR_BY_NAME.get(provider)
        if server is not None:
            wire, url, key = server.wire, server.base_url, server.key
        elif vendor is not None and (vendor.is_local or self._has_access(vendor)):
            account = self._keys.account(vendor)
            wire, url, key = vendor.name, account.base_url or vendor.base_url, account.key
        else:
            return None
        # These wires have the version in the paths below the base URL.
        path = "/v1" if wire in ("anthropic", "gemini") else ""
        own: Mapping[str, str] = {} if server is None else server.headers
        headers = _KEY_HEADERS[wire](key) if key and wire in _KEY_HEADERS else {}
        return Endpoint(
            base_url=url.rstrip("/") + path,
            key="" if headers else key,
            headers={**own, **headers},
            proxies=self._keys.proxies,
        )

    def is_own_server(self, provider: str) -> bool:
        """Whether people run this server themselves, or set its address."""
        if self.server(provider) is not None:
            return True
        vendor = VENDOR_BY_NAME.get(provider)
        return vendor is not None and (vendor.is_local or bool(self._keys.account(vendor).base_url))

    def _has_access(self, vendor: Vendor) -> bool:
        account = self._keys.account(vendor)
        return bool(account.key or account.base_url)

    def call_form(self, name: str) -> CallForm:
        """Return how the calls of a model are read, by its own settings or those of its server."""
        options = self._keys.options.get(name)
        server = self._keys.servers.get(name.partition("/")[0])
        own = None if options is None else options.calls
        return own or (None if server is None else server.calls) or "native"

    def prompt_size(self, name: str) -> PromptSize:
        """Return which prompt a model is shown; `text/…` is the model behind it, unless it has
        settings of its own."""
        options = self._keys.options
        return (options.get(name) or options.get(name.removeprefix("text/"), NONE)).prompt

    async def close(self) -> None:
        await self._http.close()

    def _make(self, name: str) -> Model:
        provider, _, model = name.partition("/")
        if model and provider in self._keys.servers and provider not in REMOTE_VENDOR_NAMES:
            return self._on_server(name, provider, model)
        if model and provider in VENDOR_BY_NAME:
            return self._at_vendor(name, VENDOR_BY_NAME[provider], model)
        known = sorted({*VENDOR_BY_NAME, *self._keys.servers})
        raise Misconfigured(
            f"{name!r} is not a model agiraph can reach. Write `provider/model` with one of "
            f"{', '.join(known)}, or `demo`, which needs no key. Servers of your own are named in "
            "agiraph.toml."
        )

    def _at_vendor(self, name: str, vendor: Vendor, model: str) -> Model:
        account = self._keys.account(vendor)
        # A gateway or server of one's own may need no key.
        if not vendor.is_local and not account.key and not account.base_url:
            raise Misconfigured(
                f"{name} needs {vendor.key_variable}, or {vendor.url_variable} for a server of "
                "your own."
            )
        base_url = account.base_url or vendor.base_url
        _check_url(base_url, vendor.url_variable)
        is_elsewhere = base_url.rstrip("/") != vendor.base_url
        wire = (vendor.gateway_wire if is_elsewhere else None) or vendor.wire
        return wire(
            name=name,
            model=model,
            base_url=base_url,
            key=account.key,
            http=self._http,
            options=self._keys.options.get(name, NONE),
        )

    def _on_server(self, name: str, provider: str, model: str) -> Model:
        server = self._keys.servers[provider]
        if server.key_env and not server.key:
            raise Misconfigured(
                f"{name} needs a key in {server.key_env}, as [servers.{provider}] in agiraph.toml "
                "says. Set the variable, or remove key_env."
            )
        _check_url(server.base_url, f"base_url of [servers.{provider}]")
        return WIRES[server.wire](
            name=name,
            model=model,
            base_url=server.base_url,
            key=server.key,
            http=self._http,
            options=with_headers(self._keys.options.get(name, NONE), server.headers),
        )

    def _limited(self, model: Model) -> Model:
        """Return the model with the output limit that is known of it.

        A model that repeats itself would else go on until its window is full, and a server
        refuses a limit above its window. The limit leaves three quarters to the thread.
        """
        if not isinstance(model, OpenAIModel | AnthropicModel):
            return model
        server, facts = self.server(model.name.partition("/")[0]), packaged.known(model.name)
        if server is not None and server.window:
            window, output = server.window, facts.output or MAX_OUTPUT_TOKENS
        elif isinstance(model, OpenAIModel) and facts.window and facts.output:
            window, output = facts.window, facts.output
        else:
            return model
        return replace(model, max_output_tokens=min(output, window // 4, MAX_OUTPUT_TOKENS))


def _check_url(url: str, setting: str) -> None:
    if not url.startswith(("https://", "http://")):
        raise Misconfigured(f"{setting} {url!r} must begin with https:// or http://.")
