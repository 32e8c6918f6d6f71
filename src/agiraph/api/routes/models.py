"""Model routes: the models that can be used and tests of them; API keys, a default model and named
secrets that a person enters, each tested or checked before it is stored and used."""

import asyncio
import re
from dataclasses import replace
from typing import Annotated

from pydantic import Field
from starlette.requests import Request

from agiraph import redaction
from agiraph.api import model_presenters
from agiraph.api.deps import Api, ApiDep, Path, is_loopback
from agiraph.api.model_presenters import facts_view, models_view, test_view
from agiraph.api.problems import documented
from agiraph.api.routing import Body, Router
from agiraph.api.server_views import ModelsView, ModelTestView, SetupView
from agiraph.core.domain.errors import Conflict, NotFound, Refused
from agiraph.core.home import named_secrets, stored_keys
from agiraph.core.services.lifecycle import answers
from agiraph.models.catalogue import Catalogue
from agiraph.models.probe import OTHERS, CheckName
from agiraph.models.registry import Account
from agiraph.models.vendors import REMOTE_VENDOR_NAMES, VENDOR_BY_NAME, VENDORS, Vendor

router: Router = Router("models")
setup_router: Router = Router("models")

DEMO = "demo"
CALLS: tuple[CheckName, ...] = ("tool_call",)
"""Calls of a setup test besides the first one: each costs a little."""
SHORTEST_KEY = 16
FEWEST_CHARACTERS = 6
"""Different characters that a key has at least."""
TYPE_AGAIN = "Copy the key again, or enter another one."
_FORMS: tuple[tuple[str, str], ...] = (
    (r"sk-ant-[\w-]+", "anthropic"),
    (r"sk-or-[\w-]+", "openrouter"),
    (r"AIza[\w-]{30,}", "gemini"),
    (r"gsk_\w+", "groq"),
    (r"xai-[\w-]+", "xai"),
    (r"sk-(proj|svcacct|admin)-[\w-]+", "openai"),
)
"""The forms of keys that belong to one vendor alone."""
_OWN_ID = re.compile(r"(?:team|agent|node|msg|thread|token|event)_")


class ModelTestRequest(Body, example={"model": "ollama/qwen3:8b"}):
    """Names the model to test."""

    model: str = Field(min_length=1, max_length=200)


class KeyRequest(Body, example={"key": "sk-ant-…", "provider": "anthropic"}):
    """Gives the server an API key."""

    key: str = Field(min_length=8, max_length=500, repr=False)
    provider: str = Field(default="", max_length=40, description="Empty: guessed from the key.")
    model: str = Field(default="", max_length=200, description="Empty: the provider's default.")


class DefaultModelRequest(Body, example={"model": "ollama/qwen3:8b"}):
    """Chooses the model of teams that name none."""

    model: str = Field(min_length=1, max_length=200)


class NewSecret(Body, example={"value": "correct horse"}):
    value: str = Field(max_length=4000, repr=False)


@router.get("/models")
async def list_models(api: ApiDep) -> ModelsView:
    """List the providers with their models. Servers of your own are asked what they have."""
    tests = await asyncio.to_thread(model_presenters.kept, api.home)
    stored = await asyncio.to_thread(stored_keys.read, api.home.path)
    return await models_view(api.models, api.model, tests, stored.keys)


@router.post("/models/test", responses=documented(422))
async def run_model_test(body: ModelTestRequest, api: ApiDep) -> ModelTestView:
    """Call a model once each for words, a tool call, a schema and its cache. It costs a little.

    The result is kept in the home, as the model's last test.
    """
    test = await test_view(api.models, body.model, api.clock, OTHERS)
    await asyncio.to_thread(model_presenters.keep, api.home, test)
    return test


@setup_router.post("/operations/keys", responses=documented(409))
async def set_api_key(body: KeyRequest, api: ApiDep, request: Request) -> SetupView:
    """Take an API key, test it with two small calls, and if it works store and use it.

    The key is written to a file of the home that only its owner can read, and never shown again.
    """
    _check_private(api, request)
    key = body.key.strip()
    _check_form(key)
    vendor = vendor_of(key, body.provider)
    account = api.models.registry.account(vendor)
    if account.key and not account.is_stored:
        raise Conflict(
            f"{vendor.key_variable} is set in the environment, which takes precedence over a "
            "stored key. Change it there, and start agiraph again."
        )
    name = _model_of(vendor, body.model)
    with redaction.kept(key):  # no log and no error of the test shows it
        trial = api.models.with_account(vendor.name, replace(account, key=key))
        try:
            made = await _tested(api, trial, name)
        finally:
            await trial.close()
        if not made.is_stored:
            return _with_advice(made, instead_of=trial.diagnosis(name).wrong_key())
        # Read again: another key may have been stored during the test.
        stored = stored_keys.read(api.home.path).with_key(vendor.key_variable, key)
        stored_keys.write(api.home, stored)
        redaction.keep(stored.secrets)
    used = Account(key=key, base_url=account.base_url, is_stored=True)
    api.models.set_account(vendor.name, used)
    await api.store.write(answers.accept_key, vendor.name)
    if api.model == DEMO:
        return _used(api, made)
    return made.model_copy(update={"is_default": made.model == api.model})


@setup_router.delete("/operations/keys/{provider}", status_code=204, responses=documented(404))
async def remove_api_key(provider: Annotated[str, Path(max_length=100)], api: ApiDep) -> None:
    """Remove a stored API key. A key of the environment, if there is one, stays in use."""
    # A call under way finishes with the key. It stays redacted: it may still stand in what is
    # written later.
    vendor = VENDOR_BY_NAME.get(provider)
    stored = stored_keys.read(api.home.path)
    if vendor is None or vendor.key_variable not in stored.keys:
        known = "A key of the server's environment is removed there, before agiraph starts again."
        raise NotFound("stored key for", provider, known=known)
    stored_keys.write(api.home, stored.without_key(vendor.key_variable))
    account = api.models.registry.account(vendor)
    # The environment takes precedence: its key stays in use, also if it is the same.
    if account.is_stored:
        api.models.set_account(vendor.name, replace(account, key="", is_stored=False))


@setup_router.post("/operations/default-model", responses=documented())
async def set_default_model(body: DefaultModelRequest, api: ApiDep) -> SetupView:
    """Test a model with two small calls, and if it answers make it the default of new teams."""
    # A model that needs no new key.
    api.check_model(body.model)
    made = await _tested(api, api.models, body.model)
    return _used(api, made) if made.is_stored else made


@setup_router.put("/secrets/{name}", status_code=204, responses=documented(409))
async def enter_secret(
    name: Annotated[str, Path(max_length=100)], body: NewSecret, api: ApiDep, request: Request
) -> None:
    """Keep a secret under a name. From now on it is hidden in all that is written and shown.

    Tools and MCP servers that ask for the name get it; agents and models never see it.
    """
    _check_private(api, request)
    await asyncio.to_thread(named_secrets.enter, api.home, api.secrets, name, body.value)


def _check_private(api: Api, request: Request) -> None:
    """Refuse a key that came over a network without encryption."""
    is_local = is_loopback(request.client.host if request.client else "")
    if not (is_local or api.access.is_secure):
        raise Refused(
            "A key is taken only over https, or on the machine that runs the server. Set it in the "
            "server's environment instead."
        )


def vendor_of(key: str, named: str) -> Vendor:
    """Return the vendor that a person named, or that the form of the key tells."""
    if named:
        if named not in REMOTE_VENDOR_NAMES:
            raise Refused(f"{named!r} takes no key; choose one of {', '.join(_names())}.")
        return VENDOR_BY_NAME[named]
    for form, name in _FORMS:
        if re.fullmatch(form, key):
            return VENDOR_BY_NAME[name]
    raise Refused(
        f"The provider cannot be recognised from the key. Choose one of {', '.join(_names())}."
    )


def _names() -> list[str]:
    return [vendor.name for vendor in VENDORS if not vendor.is_local]


def _with_advice(made: SetupView, *, instead_of: str) -> SetupView:
    """Return the test with advice for a person who typed the key: the provider's advice is about a
    key of the environment."""
    checks = [
        check.model_copy(update={"advice": TYPE_AGAIN}) if check.advice == instead_of else check
        for check in made.test.checks
    ]
    return made.model_copy(update={"test": made.test.model_copy(update={"checks": checks})})


def _check_form(key: str) -> None:
    """Refuse what cannot be a key.

    A key is redacted from all that is written: a word such as 00000000 would be taken out of
    ordinary texts and numbers.
    """
    if "/" in key or _OWN_ID.match(key):
        raise Refused(
            "This is not an API key: it looks like a name or an address. Copy the key again."
        )
    if not key.isascii() or not key.isprintable() or " " in key:
        raise Refused("An API key contains only ASCII characters and no spaces. Copy it again.")
    if len(key) < SHORTEST_KEY or len(set(key)) < FEWEST_CHARACTERS:
        raise Refused(f"An API key has at least {SHORTEST_KEY} characters. Copy all of it.")


def _model_of(vendor: Vendor, model: str) -> str:
    wanted = model.strip() or vendor.default_model
    return wanted if wanted.startswith(f"{vendor.name}/") else f"{vendor.name}/{wanted}"


async def _tested(api: Api, models: Catalogue, name: str) -> SetupView:
    test = await test_view(models, name, api.clock, CALLS)
    is_working = test.checks[0].verdict != "failed"
    if is_working:
        model_presenters.keep(api.home, test)
    return SetupView(
        provider=name.removeprefix("text/").partition("/")[0],
        model=name,
        is_stored=is_working,
        is_default=False,
        note="",
        test=test,
        facts=facts_view(models, name, api.model, test) if is_working else None,
    )


def _used(api: Api, made: SetupView) -> SetupView:
    """Store the tested model as the default model of this server, now and after a restart."""
    stored = stored_keys.read(api.home.path)
    stored_keys.write(api.home, stored.with_model(made.model))
    api.model = made.model
    note = ""
    if api.is_model_set:
        note = (
            "AGIRAPH_MODEL or agiraph.toml names another default model, which counts again at the "
            "next start."
        )
    return made.model_copy(update={"is_default": True, "note": note})
