"""`agiraph away`, and `agiraph set` with quiet hours, channel and time limit."""

import re

from tests.cli.shell import Ended, Shell
from tests.cli.test_commands_with_server import read_json, up


async def test_a_person_says_at_the_terminal_when_and_how_teams_may_reach_them(
    agiraph: Shell,
) -> None:
    (agiraph.home / "agiraph.toml").write_text(
        '[channels.phone]\ntype = "webhook"\nurl = "http://127.0.0.1:9/"\n'
    )
    async with up(agiraph):
        here = await agiraph("away")
        gone = await agiraph("away", "--until", "2099-05-20T09:00")
        too_far = await agiraph("away", "--until", "9999-01-01")
        wrong = await agiraph("away", "--until", "soonish")
        both = await agiraph("away", "--until", "3 days", "--back")
        for_days = await read_json(agiraph, "away", "--until", "3 days")
        back = await agiraph("away", "--back")

        await agiraph("new", "Watch", "--name", "watch")
        quiet = ("--quiet", "22:00-07:00", "--zone", "Europe/Berlin")
        reached = await agiraph(
            "set", "watch", *quiet, "--channel", "phone", "--answer-within", "4h"
        )
        fax = await agiraph("set", "watch", "--channel", "fax")
        plain = await agiraph(
            "set", "watch", "--quiet", "none", "--channel", "all", "--answer-within", "never"
        )

    assert here == Ended(0, "You are here: messages are sent to your channels.\n")
    assert gone.code == 1
    assert "too far away; ten years is the most" in gone.err
    assert too_far.code == 1
    assert (wrong.code, "write 2030-05-20, 2030-05-20T09:00 or '3 days'" in wrong.err) == (2, True)
    assert (both.code, "not both" in both.err) == (2, True)
    assert re.match(r"\d{4}-\d\d-\d\dT", for_days["away_until"])
    assert back == here
    assert reached.out.endswith(
        "trust standard, quiet 22:00-07:00 Europe/Berlin, questions to phone, answers within 4h.\n"
    )
    assert "There is no channel 'fax'. There are phone" in fax.err
    assert plain.out.endswith("trust standard.\n")


async def test_a_person_says_at_the_terminal_where_they_live(agiraph: Shell) -> None:
    settings = agiraph.home / "agiraph.toml"
    settings.write_text('zone = "Europe/Vienna"\n')
    async with up(agiraph):
        written = await agiraph("zone")
        moved = await read_json(agiraph, "zone", "Asia/Tokyo")
        wrong = await agiraph("zone", "Tokyo")
    settings.write_text('zone = "Vienna"\n')
    refused = await agiraph("run", "Count", "--model", "demo")

    assert written == Ended(0, "Your time zone is Europe/Vienna.\n")
    assert moved["zone"] == "Asia/Tokyo"
    assert (wrong.code, "'Tokyo' is not a time zone; use a name such as" in wrong.err) == (1, True)
    assert (refused.code, "zone in agiraph.toml: 'Vienna' is not a time zone" in refused.err) == (
        1,
        True,
    )
