"""Responses match the schema, with many more generated requests: a part of `make faults`."""

import pytest

from tests.api.populated_server import PopulatedServer
from tests.api.test_responses_match_schema import (
    OPERATIONS,
    check_random_responses,
    check_response,
    derived,
    known,
    operation_of,
    readable,
    server,
    written_examples,
)

EXAMPLES = 300

__all__ = ["known", "readable", "server"]


@pytest.mark.long
@pytest.mark.parametrize("label", OPERATIONS)
def test_every_response_matches_the_schema_in_many_examples(
    label: str, server: PopulatedServer, known: dict[str, str]
) -> None:
    operation = operation_of(label)
    for case in [*written_examples(operation), *derived(operation)]:
        check_response(case, server, known)
    check_random_responses(label, server, known, examples=EXAMPLES, fixed=False)


@pytest.mark.long
def test_the_schema_has_examples_that_are_tried() -> None:
    assert any(written_examples(operation_of(label)) for label in OPERATIONS)
