"""`agiraph run` with other teams in the home, and with a wrong model on PostgreSQL."""

from typing import Any

import orjson

from agiraph.testing import ModelServer, call, says
from tests.cli.shell import Shell
from tests.cli.test_run import use_model_server


async def test_a_run_works_only_on_its_own_team(agiraph: Shell) -> None:
    steps = [says(call("ask_human", question="Which?")), says(call("finish", summary="done"))]
    async with ModelServer(steps) as server:
        await use_model_server(agiraph, server)("run", "First goal")
        [question] = orjson.loads((await agiraph("inbox", "--json")).out)
        await agiraph("answer", question["id"], "This one.")
        await agiraph("run", "--model", "demo", "Second goal")

    assert len(server.requests) == 1  # the second run did not continue the first team


async def test_a_wrong_model_is_reported_in_one_line_on_postgresql_too(
    agiraph: Shell, postgres: Any
) -> None:
    agiraph.environment["AGIRAPH_DATABASE_URL"] = postgres.fresh()
    ended = await agiraph("run", "--model", "nope", "a")

    assert (ended.code, ended.err.count("\n")) == (1, 1)
