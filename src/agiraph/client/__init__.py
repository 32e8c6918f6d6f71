"""Client: everything the API offers, for programs and for the command line itself.

async with Client("http://127.0.0.1:8717", token) as client:
    team = await client.create_team("Compare three CSV libraries", budget={"usd": 2})
    async for event in client.follow(team.id):
        ...
"""

from agiraph.client.access import AccessCalls
from agiraph.client.files import FileCalls
from agiraph.client.knowledge import KnowledgeCalls
from agiraph.client.live import Frame, Live, Lost, Resync, Words
from agiraph.client.talk import TalkCalls
from agiraph.client.teams import TeamCalls
from agiraph.client.triggers import TriggerCalls

__all__ = ["Client", "Frame", "Lost", "Resync", "Words"]


class Client(TeamCalls, TalkCalls, KnowledgeCalls, TriggerCalls, FileCalls, AccessCalls, Live):
    """A way to one server. What it says no to is raised as `Declined`, in its own words."""
