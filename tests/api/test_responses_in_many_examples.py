"""Responses match the schema, with many more generated requests: a part of `make faults`."""

import pytest
import schemathesis
from hypothesis import settings

from tests.api.populated_server import PopulatedServer
from tests.api.test_responses_match_schema import BOUNDS, check_response, known, schema, server

EXAMPLES = 300

__all__ = ["known", "server"]


@pytest.mark.long
@schema.parametrize()
@settings(BOUNDS, max_examples=EXAMPLES)
def test_every_response_matches_the_schema_in_many_examples(
    case: schemathesis.Case, server: PopulatedServer, known: dict[str, str]
) -> None:
    check_response(case, server, known)
