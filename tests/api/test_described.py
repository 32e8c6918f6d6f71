"""The API answers as it is described: every operation, with requests made up from its words."""

from collections.abc import Iterator
from typing import cast

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, seed, settings
from schemathesis.specs.openapi import checks

from agiraph.api.app import routes
from tests.api.serving import TOKEN
from tests.api.stage import Stage, stage

EXAMPLES = 12
LONG_EXAMPLES = 300

schema = schemathesis.openapi.from_dict(routes().openapi())


@pytest.fixture(scope="module")
def on_stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with stage(tmp_path_factory.mktemp("stage") / "home") as opened:
        opened.served.api.access.burst = opened.served.api.access.rate = 1e9
        yield opened


@pytest.fixture
def known(on_stage: Stage) -> dict[str, str]:
    """A team of its own for every operation: some end it."""
    return on_stage.prepare()


def about_what_there_is(case: schemathesis.Case, known: dict[str, str]) -> None:
    """Let most requests be about things that exist; the others about what they made up."""
    odd = sum(len(str(value)) for value in case.path_parameters.values()) % 4 == 3
    if odd or not case.meta or case.meta.generation.mode.is_negative:
        return
    own = {"item": known["held" if "/held/" in case.operation.path else "question"]}
    if "/files/" in case.operation.path:
        own["path"] = "GOAL.md"
    case.path_parameters.update(
        {n: v for n, v in (known | own).items() if n in case.path_parameters}
    )


BOUNDS = settings(
    max_examples=EXAMPLES,
    deadline=None,
    database=None,
    phases=[Phase.explicit, Phase.generate],
    # Pyright infers its metaclass as the type of each member.
    suppress_health_check=cast("list[HealthCheck]", list(HealthCheck)),
)


@schema.parametrize()
@seed(20)
@BOUNDS
def test_every_answer_is_described(
    case: schemathesis.Case, on_stage: Stage, known: dict[str, str]
) -> None:
    hold_to_its_word(case, on_stage, known)


@pytest.mark.long
@schema.parametrize()
@settings(BOUNDS, max_examples=LONG_EXAMPLES)
def test_every_answer_is_described_however_often_one_asks(
    case: schemathesis.Case, on_stage: Stage, known: dict[str, str]
) -> None:
    hold_to_its_word(case, on_stage, known)


FRAMING = ("content-length", "transfer-encoding")
"""Made-up values of these are no HTTP: the server refuses the bytes before the API sees them."""


def hold_to_its_word(case: schemathesis.Case, on_stage: Stage, known: dict[str, str]) -> None:
    about_what_there_is(case, known)
    for name in [name for name in case.headers if name.lower() in FRAMING]:
        del case.headers[name]
    headers = {"Authorization": f"Bearer {TOKEN}"}
    if "/hooks/" in case.operation.path and "X-Agiraph-Secret" in case.headers:
        case.headers["X-Agiraph-Secret"] = known["secret"]
    response = case.call(base_url=on_stage.served.origin, headers=headers)
    # What fits the description may still be refused, with 422: a goal of blanks, a wrong cron line.
    case.validate_response(response, excluded_checks=[checks.positive_data_acceptance])


def test_a_made_up_length_is_not_sent(on_stage: Stage, known: dict[str, str]) -> None:
    operation = schema["/api/agents/{agent}/memories/{memory}"]["DELETE"]
    places = {"agent": "nobody", "memory": "none"}
    hold_to_its_word(
        operation.Case(path_parameters=places, headers={"Content-Length": ""}), on_stage, known
    )
