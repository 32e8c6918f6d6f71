"""Model server: serves the wire formats of three vendors on loopback, with a scripted model.

    async with ModelServer([says(call("read_file", path="a.md")), says("Done.")]) as model:
        ...  # point an agent at model.openai_url, model.anthropic_url or model.gemini_url
    assert model.requests[-1].messages[-1].text == "What a.md holds."

`python -m agiraph.testing.model_server --port 8089 --reply "Hello."` serves one fixed reply.
"""

from agiraph.testing.model_server.server import ModelServer
from agiraph.testing.script import (
    Call,
    Cut,
    Delay,
    Empty,
    Garbage,
    Overflow,
    Oversize,
    Reply,
    Says,
    Script,
    Seen,
    SeenCall,
    SeenMessage,
    Stall,
    Status,
    Step,
    StreamError,
    Trickle,
    Wire,
    call,
    context_overflow,
    says,
)

__all__ = [
    "Call",
    "Cut",
    "Delay",
    "Empty",
    "Garbage",
    "ModelServer",
    "Overflow",
    "Oversize",
    "Reply",
    "Says",
    "Script",
    "Seen",
    "SeenCall",
    "SeenMessage",
    "Stall",
    "Status",
    "Step",
    "StreamError",
    "Trickle",
    "Wire",
    "call",
    "context_overflow",
    "says",
]
