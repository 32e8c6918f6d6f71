"""Following events: each one once and in order, however often the connection breaks."""

import asyncio
from contextlib import aclosing

import pytest

from agiraph.api.live import PartialReply
from agiraph.api.views import TeamView
from agiraph.client import Client, ConnectionLost, ReplyDelta, Resync
from agiraph.core.domain.errors import Declined
from agiraph.core.domain.events import Event
from agiraph.core.domain.events.team import TeamPaused
from agiraph.core.domain.ids import AgentId, NodeId, TeamId, ThreadId
from agiraph.testing import call, says
from tests.api.serving import TOKEN, Served
from tests.client.proxy import proxied


async def idle_team(client: Client, goal: str) -> TeamView:
    """Create a team that is not started; its view has the number of the last event."""
    return await client.team((await client.create_team(goal, start=False)).id)


async def test_events_of_a_team_arrive_once_through_broken_connections(served: Served) -> None:
    served.world.script("ada", says(call("finish", summary="done")))
    async with (
        proxied(served) as proxy,
        Client(f"http://127.0.0.1:{proxy.port}", TOKEN) as client,
    ):
        team = await client.create_team("Count the beans", learns=False)
        await served.world.settle()
        head = (await client.team(team.id)).head
        assert head > 6
        seen: list[int] = []
        lost = 0
        async with aclosing(client.watch(team.id)) as frames:
            async for frame in frames:
                match frame:
                    case Event():
                        seen.append(frame.seq)
                        if len(seen) in (2, 5, head):
                            proxy.cut()
                        if len(seen) == head + 1:
                            break
                    case ConnectionLost():
                        lost += 1
                        # The next event is written while the client is disconnected.
                        if len(seen) == head:
                            await served.world.store.write(
                                lambda tx: tx.emit(team.id, TeamPaused())
                            )
                    case _:
                        pass
    assert seen == list(range(1, head + 2))
    assert lost >= 1


async def test_all_teams_are_followed_and_new_ones_from_their_first_event(served: Served) -> None:
    async with (
        proxied(served) as proxy,
        Client(f"http://127.0.0.1:{proxy.port}", TOKEN) as client,
    ):
        old = await idle_team(client, "Old")
        quiet = await idle_team(client, "Quiet")
        seen: list[tuple[str, int]] = []
        wanted = asyncio.Event()

        async def follow() -> None:
            async for event in client.follow_all({old.id: 1}):
                assert isinstance(event, Event)
                seen.append((event.team_id, event.seq))
                wanted.set()

        async def until(count: int) -> None:
            while len(seen) < count:
                wanted.clear()
                await wanted.wait()

        following = asyncio.create_task(follow())
        await until(old.head - 1)  # the events after the cursor of "Old", none of "Quiet"
        proxy.is_open = False
        proxy.cut()
        direct = Client(served.origin, TOKEN, session=served.http)
        new = await idle_team(direct, "New")
        proxy.is_open = True
        await until(old.head - 1 + new.head)
        await client.pause(quiet.id)
        await until(old.head - 1 + new.head + 1)
        following.cancel()
    assert seen == [
        *((old.id, seq) for seq in range(2, old.head + 1)),
        *((new.id, seq) for seq in range(1, new.head + 1)),
        (quiet.id, quiet.head + 1),
    ]


async def test_reply_text_is_streamed_while_it_is_written(served: Served, client: Client) -> None:
    team = await idle_team(client, "Talk")
    draft = PartialReply(
        team_id=TeamId(team.id),
        agent_id=AgentId(team.coordinator_id or ""),
        node_id=NodeId("node_x"),
        thread_id=ThreadId("t_x"),
        lane="reply",
    )
    heard: list[ReplyDelta] = []
    async with aclosing(client.watch(team.id)) as frames:
        async for frame in frames:
            if isinstance(frame, Event) and frame.seq == team.head:
                served.api.hub.publish_delta(draft, "Hello ")
                served.api.hub.publish_delta(draft, "you")
            if isinstance(frame, ReplyDelta):
                heard.append(frame)
                if sum(len(words.text) for words in heard) == 9:
                    break
    assert "".join(words.text for words in heard) == "Hello you"
    assert (heard[0].offset, heard[0].lane, heard[0].agent_id) == (0, "reply", draft.agent_id)


async def test_a_cursor_beyond_the_last_event_gets_a_resync(client: Client) -> None:
    team = await idle_team(client, "Short")
    async with aclosing(client.watch(team.id, after=1000)) as frames:
        async for frame in frames:
            assert frame == Resync(team_id=team.id, head=team.head)
            break


async def test_following_an_unknown_team_or_with_a_wrong_token_is_refused(
    served: Served, client: Client
) -> None:
    with pytest.raises(Declined, match="There is no team 'nope'"):
        await anext(client.follow("nope"))
    async with Client(served.origin, "wrong") as stranger:
        with pytest.raises(Declined, match="This token is unknown"):
            await anext(stranger.follow_all())
