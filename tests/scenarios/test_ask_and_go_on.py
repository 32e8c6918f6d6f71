"""Ask and go on: work continues while a person decides on a call, and a grant opens it."""

from pathlib import Path

from agiraph.core.domain.persons import OWNER
from agiraph.core.domain.work import NodeStatus
from agiraph.core.policies.permission import ASKED
from agiraph.core.services.lifecycle import answers
from agiraph.core.services.lifecycle.teams import NewTeam
from agiraph.testing import call, says
from tests.services.asking import COMMAND, DONE, RUN, Place, answers_of, open_place

WRITES = says(call("write_file", path="prices.md", content="Bread: 2"))


async def work(place: Place, team: NewTeam) -> None:
    """Have the coordinator read the page again, and so label a new thread."""
    await place.world.say(team.coordinator.id, f"Read {place.page}", team_id=team.team.id)
    await place.world.settle()


async def told(place: Place, team: NewTeam) -> list[tuple[str, bool]]:
    """Return how the answers to the calls of the newest work begin, and whether they failed."""
    node = (await place.world.board(team.team.id))[-1]
    return [(a.text[:20], a.failed) for a in answers_of(await place.world.turns(node.id))]


async def test_work_goes_on_while_a_person_allows_revokes_and_refuses_a_command(
    tmp_path: Path, database_url: str
) -> None:
    async with open_place(tmp_path / "home", database_url) as place:
        # A rude model: it goes on, and then makes the call again that nobody has decided on.
        rude = (says(RUN), WRITES, says(RUN), DONE)
        granted = (place.reads, says(RUN), DONE)
        refused = (place.reads, says(RUN), says(RUN), says(RUN), DONE)
        team = await place.found(*rude, *granted, *refused)
        [request] = await place.asks(team)
        [node] = await place.world.board(team.team.id)
        assert node.status is NodeStatus.WAITING
        grant = await place.world.store.write(
            answers.allow,
            kind="command",
            pattern=COMMAND,
            person_id=OWNER,
            team_id=team.team.id,
        )
        await place.world.settle()
        ran = "[exit code 0]\nonce"
        asked, wrote = (ASKED[:20], True), ("Wrote prices.md (8 b", False)
        assert (await told(place, team))[:3] == [asked, wrote, (ran, False)]

        await work(place, team)
        assert (await told(place, team))[0] == (ran, False)
        assert await place.asks(team) == []

        await place.world.store.write(answers.revoke_grant, grant.id)
        await work(place, team)
        [again] = await place.asks(team)
        assert again.id != request.id
        await place.decide(again, "deny", "Not any more.")
        first, *others = await told(place, team)
        assert (first, [failed for _, failed in others[:2]]) == (asked, [True, True])
        assert (await place.world.board(team.team.id))[-1].status is NodeStatus.COMPLETED
        # The rude model has made the refused call once more: that is asked, and nothing was run.
        assert len(await place.asks(team)) == 1
        assert ran not in [text for text, _ in await told(place, team)]
