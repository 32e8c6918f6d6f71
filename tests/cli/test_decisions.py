"""Grants and the digest at the command line, without a server."""

from pathlib import Path

import pytest

from agiraph.app import open_store
from agiraph.core.domain.ids import TeamId
from agiraph.core.domain.provenance.labels import of_page
from agiraph.core.domain.times.time import SystemClock
from agiraph.core.store import teams
from agiraph.core.store.tx import Tx
from agiraph.features.knowledge.verbs import items
from agiraph.sandbox import levels
from agiraph.testing import ModelServer, call, says
from agiraph.testing.model_server import Seen, Step
from tests.cli.shell import Shell
from tests.cli.test_run import team_in, use_model_server
from tests.local_web import PROGRAM, Page, environment, local_web


async def test_a_grant_is_made_listed_and_revoked(agiraph: Shell) -> None:
    await agiraph("run", "Count", "--model", "demo")
    listed = await agiraph("teams", "--json")
    team = listed.out.partition('"id":')[2].split('"')[1]
    none = await agiraph("grants", team)
    made = await agiraph("grant", team, "reach", "git.example.test")
    grant = made.out.split()[-1]
    wrong = await agiraph("grant", team, "read", "https://a.test/b")
    shown = await agiraph("grants", team)
    ended = await agiraph("revoke", grant)
    again = await agiraph("revoke", "grant_none")
    empty = await agiraph("inbox", "--digest")
    confirmed = await agiraph("confirm", team, "--all")
    words = f"Bread is made of flour. {'Always. ' * 30}"
    await learn(agiraph, team, words)
    unread = await agiraph("confirm", team, "--all")
    read = await agiraph("confirm", team, "--all", "--yes")

    assert none.out == f"The team {team!r} has no grants.\n"
    assert (made.code, made.out.startswith("Allowed until 20")) == (0, True)
    assert (wrong.code, "write it alone" in wrong.err) == (1, True)
    assert "git.example.test" in shown.out
    assert ended.out == "Revoked. The next such call asks you again.\n"
    assert (again.code, "grant_none" in again.err) == (1, True)
    [_, end, shows, none_open] = empty.out.splitlines()
    assert (end, none_open) == ("  Ended (completed): Count", "There is nothing to decide on.")
    assert (await agiraph("inbox", shows.split()[2])).code == 0
    assert "Ended" not in (await agiraph("inbox", "--digest")).out
    assert confirmed.out == "Decided on 0 entries.\n"
    assert (unread.code, words.strip() in unread.out) == (1, True)
    assert "Nobody can be asked here" in unread.err
    assert (words.strip() in read.out, read.out.splitlines()[-1]) == (True, "Decided on 1 entry.")


async def test_the_digest_shows_groups_and_their_words_on_demand(agiraph: Shell) -> None:
    await agiraph("run", "Count", "--model", "demo")
    listed = await agiraph("teams", "--json")
    team = listed.out.partition('"id":')[2].split('"')[1]
    facts = [f"Bread number {number} is made of flour." for number in range(12)]
    for fact in facts:
        await learn(agiraph, team, fact)
    short = await agiraph("inbox", "--digest")
    whole = await agiraph("inbox", "--digest", "--words")

    [_, _, _, group, on_demand, confirm] = short.out.splitlines()
    assert group == "  Unverified: it comes from untrusted text, from a page of a.test (12)"
    assert on_demand.strip().startswith("agiraph inbox --digest --words shows each")
    assert f"agiraph confirm {team} --all" in confirm
    assert [fact in whole.out for fact in facts] == [True] * 12


async def learn(agiraph: Shell, team: str, words: str) -> None:
    """Store a fact that the team has from a page."""
    store = await open_store(f"sqlite:///{agiraph.home / 'agiraph.db'}", SystemClock())

    def keep(tx: Tx) -> None:
        lead = teams.coordinator(tx, TeamId(team))
        items.learn(tx, lead, "fact", words, author=lead.id, label=of_page("https://a.test"))

    try:
        await store.write(keep)
    finally:
        await store.close()


WEATHER = {
    "weather.example": {"/data": Page("42 degrees", "Weather")},
    "blog.example": {"/heat": Page("Hot days are hot.", "Weather of hot days")},
}


def looks_up_the_weather(seen: Seen) -> Step:
    """Search, ask the host of the goal by a command, note what was found, and finish."""
    made = [message.text for message in seen.messages if message.role == "tool"]
    match len(made):
        case 0:
            lines = call("set_acceptance", lines=["the degrees are told"])
            return says(lines, call("web_search", query="weather hot"))
        case 2:
            asks = call("bash", command="curl -sS http://weather.example/data", network="hosts")
            return says(asks)
        case 3:
            assert "42 degrees" in made[-1]
            note = "# Memory\n\nIt has 42 degrees.\nThe blog knows more.\n"
            return says(call("write_file", path="MEMORY.md", content=note))
        case _:
            return says(call("finish", summary="42 degrees.", evidence=["42 degrees"]))


@pytest.mark.slow
@pytest.mark.skipif(not levels.choose().has_gate, reason="commands have no network of their own")
async def test_a_team_that_has_searched_uses_the_host_of_its_goal_and_its_memory_unasked(
    tmp_path: Path,
) -> None:
    agiraph = Shell(tmp_path / "home", function=PROGRAM).prepared()
    goal = "Tell me the weather of https://weather.example/data in degrees."
    async with (
        local_web(SystemClock(), WEATHER) as served,
        ModelServer(looks_up_the_weather) as model,
    ):
        use_model_server(agiraph, model).environment |= environment(served)
        ran = await agiraph("run", goal, "--review", "never")
        listed = await agiraph("grants", team_in(ran.out))
        inbox = await agiraph("inbox")
    assert "Done" in ran.out
    remark = "2 lines in MEMORY.md come from the web, and nobody has checked them."
    assert f"42 degrees.\n\n{remark}" in ran.out
    assert ran.out.count("nobody has checked") == 1
    assert served.visited("weather.example") == ["/data"]
    assert "weather.example" in listed.out
    assert "an address typed by" in listed.out
    assert "approv" not in inbox.out
    [memory] = (tmp_path / "home").glob("teams/*/MEMORY.md")
    assert "It has 42 degrees." in memory.read_text()
