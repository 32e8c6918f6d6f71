"""Grants and the digest at the command line, without a server."""

from agiraph.app import open_store
from agiraph.domain.ids import TeamId
from agiraph.domain.labels import of_page
from agiraph.domain.time import SystemClock
from agiraph.services.knowledge import items
from agiraph.store import teams
from agiraph.store.tx import Tx
from tests.cli.shell import Shell


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
    assert empty.out == "There is nothing to decide on.\n"
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

    [_, group, on_demand, confirm] = short.out.splitlines()
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
