"""Model checks: whether the models of `agiraph doctor` are set up, run and answer."""

from agiraph.cli.checkup import Checkup
from agiraph.config import Settings
from agiraph.domain.chat import Transcript, Turn
from agiraph.domain.errors import Misconfigured, ModelError
from agiraph.domain.ids import ThreadId
from agiraph.domain.time import SystemClock
from agiraph.providers.base import Request
from agiraph.providers.catalogue import Catalogue
from agiraph.providers.registry import Registry
from agiraph.redaction import redact
from agiraph.store.health import PromptSize


async def check(checkup: Checkup, names: list[str]) -> None:
    """Check that each model has what a request needs, and that a server of one's own answers."""
    catalogue = catalogue_of(checkup.settings)
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
    catalogue = catalogue_of(checkup.settings)
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
    )


def _note_model(checkup: Checkup, catalogue: Catalogue, name: str) -> None:
    if problem := catalogue.unreached(name):
        return checkup.problem(f"model {name}", problem)
    if served := catalogue.served_instead(name):
        checkup.note(f"server of {name}", f"It answers to any name; its model is {served!r}.")
    window = catalogue.window(name)
    if narrow := catalogue.diagnosis(name).narrow_window():
        return checkup.note(f"model {name}", narrow)
    return checkup.fine(f"model {name}", f"It is configured; its window is {window:,} tokens.")


def catalogue_of(settings: Settings) -> Catalogue:
    """Return the models of these settings."""
    clock = SystemClock()
    return Catalogue(Registry(settings.keys, clock), settings.prices, clock)


async def ask_each(checkup: Checkup) -> None:
    """Send each model that has no problem a short request."""
    catalogue = catalogue_of(checkup.settings)
    try:
        for finding in [f for f in checkup.findings if f.name.startswith("model ")]:
            if finding.verdict != "problem":
                await _ask(checkup, catalogue, finding.name.removeprefix("model "))
    finally:
        await catalogue.close()


async def _ask(checkup: Checkup, catalogue: Catalogue, name: str) -> None:
    now = SystemClock().now()
    turn = Turn(
        thread_id=ThreadId("t_doctor"), seq=1, node_id=None, role="user", text="Say: well.", at=now
    )
    try:
        request = Request(transcript=Transcript([turn]), max_output_tokens=64)
        reply = await catalogue.resolve(name, patient=False).reply(request)
    except ModelError as error:
        checkup.problem(f"answer of {name}", redact(str(error)))
    else:
        usage = reply.usage
        checkup.fine(f"answer of {name}", f"It answers ({usage.tokens} tokens).")
