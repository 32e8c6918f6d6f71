"""Responses match the schema: every operation, with requests generated from the schema."""

import random
from collections.abc import Iterator
from http.cookiejar import DefaultCookiePolicy
from typing import Any, cast

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from schemathesis.generation.hypothesis.examples import generate_one
from schemathesis.specs.openapi import checks

from tests.api.document import document
from tests.api.populated_server import PopulatedServer, populated_server
from tests.api.serving import TOKEN

EXAMPLES = 3
"""Random requests of each operation, beside those that are derived from its schema; hundreds in
`make faults`."""

schema = schemathesis.openapi.from_dict(document())
METHODS = ("get", "put", "post", "delete", "patch")
OPERATIONS = [
    f"{method.upper()} {path}"
    for path, methods in document()["paths"].items()
    for method in methods
    if method in METHODS
]


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


@pytest.fixture(scope="module")
def readable(server: PopulatedServer) -> dict[str, str]:
    """The ids of a team for all operations that only read."""
    return server.create_team()


@pytest.fixture
def known(label: str, server: PopulatedServer, request: pytest.FixtureRequest) -> dict[str, str]:
    """The ids of a team: a new one for each operation that writes, as some end their team."""
    if label.startswith("GET "):
        return request.getfixturevalue("readable")
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
    database=None,
    phases=[Phase.generate],
    # Pyright infers its metaclass as the type of each member.
    suppress_health_check=cast("list[HealthCheck]", list(HealthCheck)),
)


def operation_of(label: str) -> Any:
    method, _, path = label.partition(" ")
    return schema[path][method]


def derived(operation: Any) -> list[schemathesis.Case]:
    """Return the requests that follow from the schema: each parameter at its bounds, of a wrong
    type, missing, and so on."""
    generation = schema.config.generation_for(operation=operation, phase="coverage")
    return list(
        schema.iter_coverage_cases(
            operation, generation_modes=generation.modes, generation_config=generation
        )
    )


def one_of_each_kind(cases: list[schemathesis.Case], label: str) -> list[schemathesis.Case]:
    """Choose one of the requests that differ only in which wrong type or method they have."""
    kinds: dict[tuple[Any, ...], list[schemathesis.Case]] = {}
    for case in cases:
        about = cast(Any, case.meta).phase.data
        place = about.parameter_location
        kind = (about.scenario, place, about.parameter, place and about.description)
        kinds.setdefault(kind, []).append(case)
    chance = random.Random(label)
    return [chance.choice(alike) for alike in kinds.values()]


def written_examples(operation: Any) -> list[schemathesis.Case]:
    """Return the requests with the examples that the schema's own authors gave."""
    return [generate_one(strategy) for strategy in operation.get_strategies_from_examples()]


def check_random_responses(
    label: str, server: PopulatedServer, known: dict[str, str], *, examples: int, fixed: bool
) -> None:
    """Check this many random requests: with `fixed` the same ones in every run."""
    operation = operation_of(label)
    modes = schema.config.generation_for(operation=operation, phase="fuzzing").modes
    random_case = st.one_of([operation.as_strategy(generation_mode=mode) for mode in modes])

    @settings(BOUNDS, max_examples=examples)
    @given(case=random_case)
    def check(case: schemathesis.Case) -> None:
        check_response(case, server, known)

    (seed(20)(check) if fixed else check)()


@pytest.mark.parametrize("label", OPERATIONS)
def test_every_response_matches_the_schema(
    label: str, server: PopulatedServer, known: dict[str, str]
) -> None:
    for case in one_of_each_kind(derived(operation_of(label)), label):
        check_response(case, server, known)
    check_random_responses(label, server, known, examples=EXAMPLES, fixed=True)


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


@pytest.mark.parametrize("label", ["DELETE /api/agents/{agent}/memories/{memory}"])
def test_a_generated_content_length_is_not_sent(
    label: str, server: PopulatedServer, known: dict[str, str]
) -> None:
    places = {"agent": "nobody", "memory": "none"}
    case = operation_of(label).Case(path_parameters=places, headers={"Content-Length": ""})
    check_response(case, server, known)
