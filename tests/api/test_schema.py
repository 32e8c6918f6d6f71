"""The OpenAPI schema describes every operation, frame and error."""

import re
from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.api.document import document
from tests.api.serving import Served
from tests.cli.shell import Shell


@pytest.fixture(scope="module")
def schemas() -> dict[str, Any]:
    return document()["components"]["schemas"]


def test_every_operation_describes_itself_its_body_and_its_responses(
    schemas: dict[str, Any],
) -> None:
    operations = {
        f"{method.upper()} {path}": operation
        for path, operations in document()["paths"].items()
        for method, operation in operations.items()
    }
    assert len(operations) > 60
    for name, operation in operations.items():
        check_operation(name, operation, schemas)


def check_operation(name: str, operation: dict[str, Any], schemas: dict[str, Any]) -> None:
    assert operation["description"].endswith("."), name
    assert ("x-scope" in operation) is bool(operation["security"]), name
    answers = operation["responses"]
    assert any(int(status) < 300 for status in answers), name
    for status, answer in answers.items():
        assert answer["description"] not in ("", "Successful Response", "Validation Error"), name
        if int(status) >= 400:
            schema = {"$ref": "#/components/schemas/Problem"}
            assert answer["content"] == {"application/problem+json": {"schema": schema}}, name
    if body := operation.get("requestBody"):
        [content] = body["content"].values()
        schema = schemas[content["schema"]["$ref"].rpartition("/")[2]]
        assert schema.get("example"), name
        assert schema["additionalProperties"] is False, name
        assert {"400", "413", "415", "422"} <= set(answers), name


def test_frames_and_events_have_a_discriminator(schemas: dict[str, Any]) -> None:
    assert set(schemas["Frame"]["discriminator"]["mapping"]) == {
        *("hello", "event", "delta", "draft", "resync", "ping")
    }
    assert schemas["Event"]["discriminator"]["propertyName"] == "type"
    assert "SubscribeFrame" in schemas


def test_every_reference_resolves(schemas: dict[str, Any]) -> None:
    found = re.findall(rb'"#/components/schemas/([^"]+)"', orjson.dumps(document()))
    assert {name.decode() for name in found} <= set(schemas)
    assert not [name for name in schemas if "__" in name], "two models have the same name"


@pytest.mark.slow
async def test_the_schema_command_prints_the_schema(tmp_path: Path) -> None:
    ended = await Shell(tmp_path, function="agiraph.api.schema:main")()
    assert (ended.code, orjson.loads(ended.out)) == (0, document())


async def test_the_server_serves_the_schema(served: Served) -> None:
    assert await served.ask("GET", "/openapi.json") == (200, document())


async def test_a_wrong_method_or_path_is_answered_with_what_exists(served: Served) -> None:
    status, problem = await served.ask("PATCH", "/teams", {})
    assert (status, problem["detail"]) == (405, "This path takes GET, POST.")
    status, problem = await served.ask("GET", "/nothing")
    assert (status, "/api/openapi.json" in problem["detail"]) == (404, True)
