"""Model checks: whether the models of `agiraph doctor` are set up, run and answer."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from agiraph.config import Settings
from agiraph.doctor.checkup import Checkup
from agiraph.domain.errors import Misconfigured
from agiraph.domain.time import SystemClock
from agiraph.providers.catalogue import Catalogue, split_chain
from agiraph.providers.probe import CheckName, probe
from agiraph.providers.registry import Registry
from agiraph.redaction import redact
from agiraph.store.health import PromptSize

_ASKED = {"words": "answer", "tool_call": "tool call"}


async def check(checkup: Checkup, names: list[str]) -> None:
    """Check that each model has what a request needs, and that a server of one's own answers."""
    async with _models(checkup) as catalogue:
        for name in names:
            if any(finding.name == f"model {name}" for finding in checkup.findings):
                continue
            try:
                catalogue.resolve(name)
                await catalogue.learn(name)
                catalogue.check(name)
            except Misconfigured as error:
                checkup.problem(f"model {name}", str(error))
            else:
                _note_model(checkup, catalogue, name)


async def check_threads(checkup: Checkup, threads: list[PromptSize]) -> None:
    """Report unfinished work whose thread is longer than the context window of its model."""
    async with _models(checkup) as catalogue:
        for model in {thread.model for thread in threads}:
            await catalogue.learn(model)
        over = [
            f"{thread.thread_id} has {thread.tokens:,} tokens; {thread.model} accepts {window:,}."
            for thread in threads
            if thread.tokens > (window := catalogue.window(thread.model))
        ]
    checkup.list(
        "threads",
        over,
        good="All fit the context windows.",
        bad="are larger than the context window.",
        one_bad="is larger than the context window.",
    )


@asynccontextmanager
async def _models(checkup: Checkup) -> AsyncGenerator[Catalogue]:
    """Yield the models of the running process, or those of the settings, closed at the end."""
    if checkup.models is not None:
        yield checkup.models
        return
    catalogue = catalogue_of(checkup.settings)
    try:
        yield catalogue
    finally:
        await catalogue.close()


def _note_model(checkup: Checkup, catalogue: Catalogue, name: str) -> None:
    if problem := catalogue.access_problem(name):
        return checkup.problem(f"model {name}", problem)
    if served := catalogue.served_instead(name):
        checkup.note(f"server of {name}", f"It answers to any name; its model is {served!r}.")
    if small := small_window(catalogue, name):
        return checkup.note(f"model {name}", small)
    window = catalogue.window(name)
    is_asked = checkup.online or catalogue.is_own(name)
    asked = "" if is_asked else " `agiraph doctor --online` also asks it."
    return checkup.fine(
        f"model {name}", f"It is configured; its window is {window:,} tokens.{asked}"
    )


def small_window(catalogue: Catalogue, names: str) -> str:
    """Return that the window of one of the chain is small, and what to do; else an empty string."""
    smallest = min(split_chain(names), key=catalogue.window)
    return "" if catalogue.is_own(smallest) else catalogue.diagnosis(smallest).narrow_window()


def catalogue_of(settings: Settings) -> Catalogue:
    """Return the models of these settings."""
    clock = SystemClock()
    return Catalogue(Registry(settings.keys, clock), settings.prices, clock)


async def ask_each(checkup: Checkup) -> None:
    """Send each model that has no problem a short request."""
    async with _models(checkup) as catalogue:
        for finding in [f for f in checkup.findings if f.name.startswith("model ")]:
            if finding.verdict != "problem":
                await _ask(checkup, catalogue, finding.name.removeprefix("model "))


async def _ask(checkup: Checkup, catalogue: Catalogue, name: str) -> None:
    for one in split_chain(name):
        # The demo's script calls the tools of agiraph, not that of the probe.
        only: tuple[CheckName, ...] = () if catalogue.is_own(one) else ("tool_call",)
        for check in await probe(catalogue, one, only):
            finding = f"{_ASKED[check.name]} of {one}"
            what = redact(f"{check.what} {check.advice}".strip())
            if check.verdict == "failed":
                checkup.problem(finding, what)
            else:
                checkup.fine(finding, what)
