"""Edges of the command line: other teams, other databases, wrong models."""

from typing import Any

import orjson

from agiraph.testing import ModelServer, call, says
from tests.cli.shell import Shell
from tests.cli.test_run import on


async def test_a_run_works_on_its_own_team_only(agiraph: Shell) -> None:
    steps = [says(call("ask_human", question="Which?")), says(call("finish", summary="done"))]
    async with ModelServer(steps) as server:
        await on(agiraph, server)("run", "First goal")
        [question] = orjson.loads((await agiraph("inbox", "--json")).out)
        await agiraph("answer", question["id"], "This one.")
        await agiraph("run", "--model", "demo", "Second goal")

    assert len(server.requests) == 1  # nobody asked to go on with the first


async def test_a_wrong_model_is_told_in_one_line_on_postgresql_too(
    agiraph: Shell, postgres: Any
) -> None:
    agiraph.environment["AGIRAPH_DATABASE_URL"] = postgres.fresh()
    ended = await agiraph("run", "--model", "nope", "a")

    assert (ended.code, ended.err.count("\n")) == (1, 1)
