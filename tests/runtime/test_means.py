"""Means: what a coordinator is told that it can use, and how its team stands."""

import pytest

from agiraph.core.domain.agents import Rule, Team
from agiraph.core.domain.errors import Misconfigured
from agiraph.core.domain.ids import TeamId
from agiraph.core.domain.work import Budget
from agiraph.core.runtime.prompts.means import Means
from agiraph.models.catalogue import Catalogue
from agiraph.models.facts.prices import Prices, Terms
from agiraph.models.hireable import HireableModel, hireable_models
from agiraph.models.registry import Account, Keys, Registry
from agiraph.testing import ManualClock, World, call, says

DONE = says(call("finish", summary="done"))


def catalogue(keys: Keys, terms: dict[str, Terms] | None = None) -> Catalogue:
    clock = ManualClock()
    return Catalogue(Registry(keys, clock), Prices(terms or {}), clock)


def test_of_a_vendor_its_default_its_strongest_and_its_cheapest_model_are_listed() -> None:
    keys = Keys({"anthropic": Account(key="k")})
    found = hireable_models(catalogue(keys), "anthropic/claude-sonnet-5-5")

    assert found[0].name == "anthropic/claude-sonnet-5-5"
    assert [model.strength for model in found] == ["", "strongest", "cheapest"]
    prices = [model.output_usd or 0 for model in found]
    assert max(prices) == prices[1] > prices[0] > prices[2] == min(prices)
    assert all(model.window for model in found)


def test_models_that_cannot_be_used_are_not_listed() -> None:
    terms = {"gone/x": Terms(window=1), "openai/y": Terms(window=2_000, strength="code")}
    keys = Keys({"openai": Account(key="k", base_url="http://127.0.0.1:9/v1")})
    found = hireable_models(catalogue(keys, terms), "openai/own, openai/y")

    with pytest.raises(Misconfigured):
        catalogue(keys).check("gone/x")
    assert found == [
        HireableModel(name="openai/own"),
        HireableModel(name="openai/y", window=2_000, strength="code"),
    ]


def team(**more: object) -> Team:
    given = {"id": TeamId("t"), "name": "t", "goal": "g", "created_at": ManualClock().now(), **more}
    return Team(**given)  # pyright: ignore[reportArgumentType]


def test_the_trust_says_what_a_person_decides_and_rules_of_the_team_are_named() -> None:
    standard, strict, open_ = (
        Means(has_search=True).rules(team(trust=trust)) for trust in ("standard", "strict", "open")
    )
    assert "decides on an address that nobody gave you, a command with open network" in standard
    assert "decides on a web search, a link of a page, an address" in strict
    assert "decides on a tool that sends something out. The call says so" in open_

    rules = (Rule(tool="bash", action="deny", pattern="rm *"), Rule(tool="x", action="allow"))
    said = Means().rules(team(permissions=rules)).splitlines()
    assert said[0].startswith("- No web search is set up")
    assert said[-1] == "- Rules of this team: bash rm * (not allowed)."


async def test_a_new_thread_is_told_who_is_there_and_what_is_spent(world: World) -> None:
    hires = says(
        call("spawn_worker", name="bob", model="scripted/bob"),
        call("spawn_worker", name="cid", model="scripted/ada"),
    )
    ada = world.script("ada", hires, DONE, DONE, DONE)
    world.script("bob")
    founded = await world.found("Count", budget=Budget(usd=5.0, tokens=1000_000))
    await world.settle()
    await world.say(founded.coordinator.id, "Once more", team_id=founded.team.id)
    await world.settle()

    before, after = (ada.requests[n].system.splitlines()[-3:] for n in (0, -1))
    assert before[0].startswith("- Spent so far: $0.00 of $5.00, ")
    assert before[1] == "- On the team: nobody but you yet. At most 16 members at a time."
    # The name of a model that the settings do not offer may be a stranger's words.
    assert after[1] == (
        "- On the team: bob (worker): idle; cid (worker, scripted/ada): idle. At most 16 members "
        "at a time."
    )
    assert ada.requests[0].system == ada.requests[1].system
