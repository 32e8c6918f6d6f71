"""The test kit: what agiraph tests itself with, and what you test your own agents with."""

from agiraph.testing.clock import ManualClock
from agiraph.testing.model_server import ModelServer
from agiraph.testing.script import Call, Says, call, says
from agiraph.testing.scripted import PowerCut, ScriptedModel, ScriptExhausted
from agiraph.testing.world import World

__all__ = [
    "Call",
    "ManualClock",
    "ModelServer",
    "PowerCut",
    "Says",
    "ScriptExhausted",
    "ScriptedModel",
    "World",
    "call",
    "says",
]
