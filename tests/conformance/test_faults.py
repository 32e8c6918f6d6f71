"""Each fault of a server raises the right error; no partial reply is returned."""

from dataclasses import replace

import pytest

from agiraph.core.domain.errors import (
    ContextExceeded,
    KeyRefused,
    ModelDeclined,
    ModelError,
    ModelGarbled,
    ModelMissing,
    ModelRefused,
    ModelSilent,
    ModelUnavailable,
    QuotaSpent,
)
from agiraph.models.attempts import Retrying
from agiraph.models.base import Request
from agiraph.models.http.client import HttpClient
from agiraph.testing import ManualClock, ModelServer
from agiraph.testing.model_server import Script, Seen, Step
from tests.conformance.conftest import ModelOn, WireModel
from tests.conformance.faults import (
    EMPTY,
    EMPTY_REPLIES,
    FAULTS,
    FORMS,
    Fault,
    Form,
    end_of_empty,
)
from tests.conformance.threads import SPEC
from tests.providers.transcripts import request, thread

ERRORS: dict[str, type[ModelError]] = {
    "unavailable": ModelUnavailable,
    "silent": ModelSilent,
    "unpaid": QuotaSpent,
    "garbled": ModelGarbled,
    "refused": ModelRefused,
    "locked": KeyRefused,
    "declined": ModelDeclined,
    "missing": ModelMissing,
    "exceeded": ContextExceeded,
}


def fault_first(form: Form, fault: Fault) -> Script:
    """Return a script with the fault first, and then good answers."""

    def play(seen: Seen) -> Step:
        return fault.play(form, seen) if seen.index == 0 else form.answer(seen)

    return play


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.name)
@pytest.mark.parametrize("name", [*FAULTS, "empty"])
async def test_a_fault_raises_the_right_error_and_is_retried_only_if_it_is_temporary(
    model_on: ModelOn, clock: ManualClock, impatient: HttpClient, form: Form, name: str
) -> None:
    def opened(server: ModelServer) -> WireModel:
        model = model_on(form.provider, server)
        return replace(model, http=impatient) if name.startswith("silent") else model

    fault = FAULTS.get(name) or replace(EMPTY, end=end_of_empty(form))
    async with ModelServer(fault_first(form, fault)) as server:
        model = opened(server)
        with pytest.raises(ModelError) as caught:
            await model.reply(request())
        whole = await model_on(form.provider, server).reply(request())

    assert type(caught.value) is ERRORS[fault.end]
    assert whole.text == "All is well."

    clock.slept.clear()  # the second call may have waited for what the first was told
    waits = {"unavailable": [*fault.waits], "silent": [*fault.waits], "garbled": []}.get(fault.end)
    async with ModelServer(fault_first(form, fault)) as server:
        patient = Retrying(model=opened(server), clock=clock, jitter=lambda: 1.0)
        if waits is None or (fault.end == "unavailable" and not waits):
            with pytest.raises(ERRORS[fault.end]):
                await patient.reply(request())
            assert (len(server.requests), clock.slept) == (1, [])
        else:
            reply = await patient.reply(request())
            # A garbled reply is paid for as well.
            assert reply.usage.is_estimated is (fault.end == "garbled")
            # A try that may have cost something and brought no answer is said with the reply.
            assert reply.after_lost is (fault.end != "garbled" and not caught.value.unused)
            assert replace(reply, usage=whole.usage, after_lost=False) == whole
            assert (len(server.requests), clock.slept) == (2, waits)


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.name)
@pytest.mark.parametrize("name", EMPTY_REPLIES)
async def test_an_answer_that_says_nothing_is_an_empty_reply(
    model_on: ModelOn, form: Form, name: str
) -> None:
    async with ModelServer(fault_first(form, EMPTY_REPLIES[name])) as server:
        model = model_on(form.provider, server)
        if (form.name, name) == ("openai-json", "no choices"):
            with pytest.raises(ModelGarbled):  # not even an empty message
                await model.reply(request())
            return
        reply = await model.reply(request())
    assert (reply.text, reply.calls) == ("", ())


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.name)
async def test_a_retry_after_a_fault_sends_the_same_bytes(
    model_on: ModelOn, clock: ManualClock, form: Form
) -> None:
    asked = Request(transcript=thread(), tools=(SPEC,))
    async with ModelServer(fault_first(form, FAULTS["closed after 100 bytes"])) as server:
        model = Retrying(model=model_on(form.provider, server), clock=clock)
        await model.reply(asked)

    first, second = server.requests
    assert first.raw == second.raw


def test_there_are_more_than_thirty_faults() -> None:
    assert len(FAULTS) > 30
    assert {fault.end for fault in FAULTS.values()} == set(ERRORS)
