"""Responses match the schema: every operation, with requests generated from the schema."""

from collections.abc import Iterator
from http.cookiejar import DefaultCookiePolicy
from typing import Any, cast

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, seed, settings
from schemathesis.specs.openapi import checks

from tests.api.document import document
from tests.api.populated_server import PopulatedServer, populated_server
from tests.api.serving import TOKEN

EXAMPLES = 3
"""Random requests of each operation, beside two dozen that are derived from its schema; hundreds in
`make faults`."""

schema = schemathesis.openapi.from_dict(document())


def client() -> requests.Session:
    """Return a client that keeps its connection, but no cookie, and reads no file of the person."""
    made = requests.Session()
    made.trust_env, made.headers = False, {}  # pyright: ignore[reportAttributeAccessIssue]
    made.cookies.set_policy(DefaultCookiePolicy(allowed_domains=()))
    return made


CLIENT = client()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PopulatedServer]:
    with populated_server(tmp_path_factory.mktemp("populated") / "home") as opened:
        opened.served.api.access.burst = opened.served.api.access.rate = 1e9
        yield opened


@pytest.fixture
def known(server: PopulatedServer) -> dict[str, str]:
    """The ids of a new team for each operation: some operations end the team."""
    return server.create_team()


def use_existing_ids(case: schemathesis.Case, known: dict[str, str]) -> None:
    """Put existing ids into most requests; the others keep the ids that were generated."""
    odd = sum(len(str(value)) for value in case.path_parameters.values()) % 4 == 3
    if odd or not case.meta or case.meta.generation.mode.is_negative:
        return
    own = {"item": known["unverified" if "/knowledge/" in case.operation.path else "question"]}
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
def test_every_response_matches_the_schema(
    case: schemathesis.Case, server: PopulatedServer, known: dict[str, str]
) -> None:
    check_response(case, server, known)


FRAMING = ("content-length", "transfer-encoding")
"""Headers whose generated values are invalid HTTP: the server refuses them before the API."""
signed_in_only: set[str] = set()
"""Operations that succeeded, and refused the same request without a token or with a wrong one.

Whether an operation needs a token depends on no other part of the request: once is enough.
"""


def check_response(case: schemathesis.Case, server: PopulatedServer, known: dict[str, str]) -> None:
    use_existing_ids(case, known)
    for name in [name for name in case.headers if name.lower() in FRAMING]:
        del case.headers[name]
    headers = {"Authorization": f"Bearer {TOKEN}"}
    if "/hooks/" in case.operation.path and "X-Agiraph-Secret" in case.headers:
        case.headers["X-Agiraph-Secret"] = known["secret"]
    response = case.call(server.served.origin, CLIENT, headers)
    # A body that matches the schema may still be refused with 422: a blank goal, a wrong cron line.
    excluded: list[Any] = [checks.positive_data_acceptance]
    if case.operation.label in signed_in_only:
        excluded.append(checks.ignored_auth)
    case.validate_response(response, excluded_checks=excluded)
    if response.status_code < 300 and case.meta and not case.meta.generation.mode.is_negative:
        signed_in_only.add(case.operation.label)


def test_a_generated_content_length_is_not_sent(
    server: PopulatedServer, known: dict[str, str]
) -> None:
    operation = schema["/api/agents/{agent}/memories/{memory}"]["DELETE"]
    places = {"agent": "nobody", "memory": "none"}
    check_response(
        operation.Case(path_parameters=places, headers={"Content-Length": ""}), server, known
    )
