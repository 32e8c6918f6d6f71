"""Test kit: what you need to test agents, tools and settings of agiraph without a real model.

- `World`: a whole runtime in a temporary folder, with scripted models and a manual clock.
- `ScriptedModel`, `says`, `call`: a model in the same process that replies what a test wrote down;
  `ReactiveModel` computes its reply from the request.
- `ModelServer`: an HTTP server that speaks the wire formats of OpenAI, Anthropic and Gemini, with
  scripted replies and network faults.
- `ManualClock`: a clock that moves only when a test moves it.

    async with World(tmp_path, easy_endings=True) as world:
        world.script("ada", says(call("finish", summary="Done.")))
        founded = await world.found("Write a poem")
        await world.settle()
        assert [node.result for node in await world.board(founded.team.id)] == ["Done."]
"""

from agiraph.testing.clock import ManualClock
from agiraph.testing.model_server import ModelServer
from agiraph.testing.script import Call, Says, call, says
from agiraph.testing.scripted import PowerCut, ReactiveModel, ScriptedModel, ScriptExhausted
from agiraph.testing.world import World

__all__ = [
    "Call",
    "ManualClock",
    "ModelServer",
    "PowerCut",
    "ReactiveModel",
    "Says",
    "ScriptExhausted",
    "ScriptedModel",
    "World",
    "call",
    "says",
]
