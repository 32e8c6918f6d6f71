"""`agiraph new` and `agiraph set`: the limits and the trust that a person gives a team."""

import json

from tests.cli.shell import Shell
from tests.up_process import Up, up


def let_commands_find(agiraph: Shell, running: Up) -> None:
    agiraph.environment["AGIRAPH_PORT"] = running.origin.rpartition(":")[2]


async def test_a_new_team_has_the_limits_that_it_was_given(agiraph: Shell) -> None:
    async with up(agiraph) as running:
        let_commands_find(agiraph, running)
        limits = ("--tokens", "90000", "--turns", "7", "--usd", "2.5")
        made = json.loads((await agiraph("new", "Count", *limits, "--json")).out)
        [goal] = json.loads((await agiraph("board", made["id"], "--json")).out)
        budget = (await running.ask("GET", f"/nodes/{goal['id']}"))["budget"]
    assert (budget["tokens"], budget["turns"], budget["usd"]) == (90_000, 7, 2.5)


async def test_a_person_sets_the_trust_of_a_team_and_types_its_name_for_open(
    agiraph: Shell,
) -> None:
    async with up(agiraph) as running:
        let_commands_find(agiraph, running)
        made = await agiraph(
            "new", "Watch the shelves", "--name", "Shelves", "--trust", "strict", "--json"
        )
        assert json.loads(made.out)["trust"] == "strict"

        refused = await agiraph.piped(b"Shelf\n", "set", "Shelves", "--trust", "open")
        assert refused.code == 2
        assert "That is not the team's name; nothing was changed." in refused.err
        assert "Use it only in a container or a home that you can throw away." in refused.out
        unanswered = await agiraph.piped(b"", "set", "Shelves", "--trust", "open")
        assert unanswered.code == 130

        agreed = await agiraph.piped(b"Shelves\n", "set", "Shelves", "--trust", "open")
        assert agreed.code == 0
        assert agreed.out.endswith("review auto, trust open.\n")
        back = await agiraph("set", "Shelves", "--trust", "standard", "--json")
        assert json.loads(back.out)["trust"] == "standard"
        wrong = await agiraph("set", "Shelves", "--trust", "none")
        assert "'none' is not one of 'strict', 'standard', 'open'" in wrong.err
