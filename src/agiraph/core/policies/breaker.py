"""Breaker: stops a model that repeats its steps or makes no calls; warns it before.

Silence, loops and forged notices are each judged by a module of their own.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from agiraph.core.domain.chat import Transcript
from agiraph.core.domain.outcomes import Failed, Finished
from agiraph.core.policies import forged_notice
from agiraph.core.policies.loops import Loops
from agiraph.core.policies.silence import Silence
from agiraph.core.services.lifecycle.journal import SystemNote
from agiraph.core.tools.base import Tool


@dataclass(slots=True)
class Breaker:
    """Judges one thread by its newest replies."""

    tools: Mapping[str, Tool]
    silence: Silence = field(init=False)
    loops: Loops = field(init=False)

    def __post_init__(self) -> None:
        self.silence, self.loops = Silence(self.tools), Loops(self.tools)

    def notes(self, transcript: Transcript) -> list[SystemNote]:
        """Return the notes that the newest reply needs: a nudge, a warning, or none."""
        found = (
            forged_notice.note(transcript),
            self.silence.note(transcript),
            self.loops.note(transcript),
        )
        return [note for note in found if note is not None]

    def verdict(self, transcript: Transcript) -> Finished | Failed | None:
        """Return the end of the node if it must stop here; None to go on."""
        return self.silence.verdict(transcript) or self.loops.verdict(transcript)
