"""Link fetches: how many links of a site are free in a thread and in a day."""

from agiraph.core.store.texts import link_fetches
from agiraph.core.store.texts.link_fetches import Limits
from agiraph.testing import World

LIMITS = Limits(site_and_thread=3, thread=5, site_and_day=7)


async def take(world: World, thread: str, call: str, site: str = "a.test", team: str = "t") -> bool:
    return await world.store.write(link_fetches.take, team, thread, call, site, LIMITS)


async def test_three_links_of_a_site_are_free_in_a_thread(world: World) -> None:
    assert [await take(world, "one", f"c{n}") for n in range(5)] == [True] * 3 + [False] * 2
    assert await take(world, "one", "c9", "b.test")
    assert await take(world, "two", "c9")


async def test_a_call_that_is_made_again_counts_once(world: World) -> None:
    assert [await take(world, "one", "same") for _ in range(9)] == [True] * 9
    assert [await take(world, "one", f"c{n}") for n in range(3)] == [True, True, False]


async def test_an_attacker_with_many_sites_gets_a_few_links_of_a_thread(world: World) -> None:
    taken = [await take(world, "one", f"c{n}", f"{n}.test") for n in range(8)]
    assert taken == [True] * 5 + [False] * 3


async def test_the_links_of_a_site_are_counted_over_all_threads_of_a_team_for_a_day(
    world: World,
) -> None:
    assert [await take(world, f"t{n}", "c") for n in range(9)] == [True] * 7 + [False] * 2
    assert await take(world, "other", "c", team="other")
    world.clock.advance(hours=23)
    assert not await take(world, "later", "c")
    world.clock.advance(hours=2)
    assert await take(world, "later", "c")
