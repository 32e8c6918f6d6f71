"""Client: every operation of the API as a method, for programs and for the command line.

async with Client("http://127.0.0.1:8717", token) as client:
    team = await client.create_team("Compare three CSV libraries", budget={"usd": 2})
    async for event in client.follow(team.id):
        ...
"""

from agiraph.client.features import FeatureOperations
from agiraph.client.live import ConnectionLost, Frame, Live, ReplyDelta, Resync
from agiraph.client.teams import TeamOperations

__all__ = ["Client", "ConnectionLost", "Frame", "ReplyDelta", "Resync"]


class Client(TeamOperations, FeatureOperations, Live):
    """A client of one server. A refusal of the server is raised as `Declined` with its message."""
