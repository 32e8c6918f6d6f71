"""`agiraph extend`, without and with a server."""

import re

from agiraph.testing import ModelServer, call, says
from tests.cli.shell import Shell
from tests.cli.test_run import team_in, use_model_server

FINISH = says(call("finish", summary="Two notes are in a.md and b.md."))


async def test_a_run_that_a_limit_ended_says_how_to_extend_it_and_goes_on(agiraph: Shell) -> None:
    steps = [
        says("A note.", call("write_file", path="a.md", content="x")),
        says("One note."),
        says(call("write_file", path="b.md", content="y")),
        *[FINISH] * 3,
    ]
    async with ModelServer(steps) as server:
        use_model_server(agiraph, server)
        ended = await agiraph("run", "--turns", "2", "Take notes")
        [told] = re.findall(r"Let it go on with: agiraph (extend node_\w+ --turns 50)", ended.out)
        extended = await agiraph(*told.split())
        resumed = await agiraph("run", "--resume", team_in(ended.out))

    assert (ended.code, extended.code, resumed.code in (0, 3)) == (1, 0, True)
    team = team_in(ended.out)
    assert extended.out == (f"Extended 'Take notes'. Continue with: agiraph run --resume {team}\n")
    assert "Two notes are in a.md and b.md." in resumed.out


async def test_an_unknown_task_is_refused_in_one_line(agiraph: Shell) -> None:
    unknown = await agiraph("extend", "node_1", "--turns", "5")
    assert (unknown.code, unknown.err.count("\n")) == (1, 1)
