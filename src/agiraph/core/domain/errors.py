"""Errors: one tree; each branch says who must react.

AgiraphError
├── Refused              the request was wrong: its author (model, person, client) must change it
│   ├── NotFound         there is no such thing
│   ├── Conflict         it was decided before: a second answer, a reused idempotency key
│   ├── Declined         a server refused; carries its status and message
│   ├── IllegalMove      a node cannot change from its status to that one
│   └── OutOfScope       a path that this agent may not use
├── Fenced               another runner has claimed the thread: stop and write nothing
├── StoreUnavailable     nothing was written; wait, then continue from the journal
│   ├── StoreFull        the disk is full
│   ├── StoreLocked      another process has locked the database
│   └── StoreGone        its file was removed, replaced or moved while it was open
├── NotReady             background work of this process fails; the message says which
├── StoreDamaged         the database cannot be trusted: refuse to write to it
├── HomeInUse            another runtime works on this home
├── Unreachable          no server answers where one should
├── Misconfigured        a setting is missing or wrong; the message says which and what to do
└── ModelError           the model gave no usable answer
    ├── ModelUnavailable ... for now: rate limit, overload, server error, lost connection
    │   └── ModelSilent      ... because no reply began within the patience with its server
    ├── ModelRefused     ... and never will to this request: bad key, bad request
    │   ├── KeyRefused       ... because the provider does not accept the key
    │   ├── ModelMissing     ... because the provider has no model of this name
    │   ├── ModelDeclined    ... because the model or the vendor's filter withholds the answer
    │   ├── QuotaSpent       ... because the account has no money or quota left
    │   └── PromptCut        ... because the server dropped a part of the prompt silently
    ├── ModelGarbled     ... that can be parsed: empty, truncated, wrong format
    │   ├── CallGarbled      ... because the vendor found a broken tool call in it
    │   └── ModelRepeats     ... because it repeats one piece without end
    ├── ContextExceeded  ... because the thread no longer fits its window
    └── OutOfTime        ... before the time limit of the node
"""

from datetime import datetime

from agiraph.core.domain.ids import MessageId
from agiraph.core.domain.provenance.labels import CLEAN, Label


class AgiraphError(Exception):
    """Anything this package raises on purpose."""

    label: Label = CLEAN
    """Who outside the team made it fail, after they had answered. The message repeats none of their
    words, but which message it is was their choice."""
    quoted: str = ""
    """What they, or the code of a person, said about it. A model reads it inside a fence."""


class Refused(AgiraphError):
    """The request cannot be carried out as asked; the message says what to do instead."""


class SentBack(Refused):
    """A result is sent back with what speaks against it, once for an attempt."""


class AnswerFirst(Refused):
    """The agent may wait once it has answered a question, or is told the second time."""

    def __init__(self, message: str, question_id: MessageId) -> None:
        super().__init__(message)
        self.question_id = question_id


class NotFound(Refused):
    def __init__(self, kind: str, name: str, *, known: str = "") -> None:
        super().__init__(f"There is no {kind} {name!r}.{f' {known}' if known else ''}")


class Conflict(Refused):
    pass


class Declined(Refused):
    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class IllegalMove(Refused):
    def __init__(self, node: str, status: str, to: str) -> None:
        super().__init__(f"Node {node} is {status} and cannot become {to}.")


class OutOfScope(Refused):
    pass


class Fenced(AgiraphError):
    pass


class StoreUnavailable(AgiraphError):
    pass


class StoreFull(StoreUnavailable):
    pass


class StoreLocked(StoreUnavailable):
    pass


class StoreGone(StoreUnavailable):
    pass


class NotReady(AgiraphError):
    pass


class StoreDamaged(AgiraphError):
    pass


class HomeInUse(AgiraphError):
    pass


class Unreachable(AgiraphError):
    pass


class Misconfigured(AgiraphError):
    pass


class ModelError(AgiraphError):
    unused: bool
    """Whether the call certainly cost nothing: the vendor refused it, or it was never sent."""

    def __init__(self, message: str, *, unused: bool = False) -> None:
        super().__init__(message)
        self.unused = unused


class ModelUnavailable(ModelError):
    def __init__(
        self, message: str, *, retry_after: float | None = None, unused: bool = False
    ) -> None:
        super().__init__(message, unused=unused)
        self.retry_after = retry_after


class ModelSilent(ModelUnavailable):
    pass


class ModelRefused(ModelError):
    pass


class KeyRefused(ModelRefused):
    pass


class ModelMissing(ModelRefused):
    pass


class ModelDeclined(ModelRefused):
    pass


class QuotaSpent(ModelRefused):
    pass


class PromptCut(ModelRefused):
    pass


class ModelGarbled(ModelError):
    hint: str = ""
    """What to tell the model at the end of the next request, so that it answers otherwise."""
    retries: int = 1
    """How often the model is asked again."""
    input_tokens: int = 0
    output_tokens: int = 0
    """What the reply cost that cannot be used, estimated."""


class CallGarbled(ModelGarbled):
    retries = 3

    def __init__(self, message: str, *, hint: str) -> None:
        super().__init__(message)
        self.hint = hint


class ModelRepeats(ModelGarbled):
    hint = (
        "Your last reply repeated the same words again and again. It was cut off and nothing of it "
        "was kept. Answer anew and briefly, and do not repeat yourself."
    )


class ContextExceeded(ModelError):
    pass


class OutOfTime(ModelError):
    pass


class DailyLimitReached(AgiraphError):
    """The home has spent what it may spend today: the node waits for a person or for tomorrow."""

    def __init__(self, limit_usd: float) -> None:
        super().__init__("Today's limit for model calls is reached.")
        self.limit_usd = limit_usd


class BurnRateReached(AgiraphError):
    """A goal spends so fast that its work waits for a person's leave."""

    def __init__(self) -> None:
        super().__init__("The goal spends very fast.")


class AlreadyAnswered(Conflict):
    def __init__(self, question: MessageId, at: datetime) -> None:
        super().__init__(
            f"{question} was answered at {at:%Y-%m-%d %H:%M} UTC; the first answer stands. "
            "Send the agent a message if you want to add something."
        )
