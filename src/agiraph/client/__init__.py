"""Client: every operation of the API as a method, for programs and for the command line.

async with Client("http://127.0.0.1:8717", token) as client:
    team = await client.create_team("Compare three CSV libraries", budget={"usd": 2})
    async for event in client.follow(team.id):
        ...
"""

from agiraph.client.access import AccessCalls
from agiraph.client.channels import ChannelCalls
from agiraph.client.decisions import DecisionCalls
from agiraph.client.extensions import ExtensionCalls
from agiraph.client.files import FileCalls
from agiraph.client.history import HistoryCalls
from agiraph.client.knowledge import KnowledgeCalls
from agiraph.client.live import ConnectionLost, Frame, Live, ReplyDelta, Resync
from agiraph.client.models import ModelCalls
from agiraph.client.talk import TalkCalls
from agiraph.client.teams import TeamCalls
from agiraph.client.triggers import TriggerCalls

__all__ = ["Client", "ConnectionLost", "Frame", "ReplyDelta", "Resync"]


class Client(
    TeamCalls,
    TalkCalls,
    DecisionCalls,
    KnowledgeCalls,
    TriggerCalls,
    ModelCalls,
    FileCalls,
    AccessCalls,
    ChannelCalls,
    ExtensionCalls,
    HistoryCalls,
    Live,
):
    """A client of one server. A refusal of the server is raised as `Declined` with its message."""
