"""Rate limits: calls wait for the requests and tokens per minute of their provider and key.

The limits come from the settings and from the headers of responses. Waiting calls take turns by
team, so that a team with many calls does not keep the others waiting.
"""

import asyncio
import re
from collections import OrderedDict, deque
from collections.abc import Mapping
from dataclasses import field
from datetime import datetime
from typing import Annotated

from pydantic import Field

from agiraph.core.domain.errors import ModelUnavailable
from agiraph.core.domain.sections import entry, must
from agiraph.core.domain.times.time import Clock
from agiraph.core.domain.value import dataclass
from agiraph.core.domain.work import Usage

MINUTE_S = 60.0
LONGEST_BLOCK_S = 60.0
"""The longest pause of all calls after a refusal. A server that asks for more is better left to the
next model of the chain, or to a sleep of the node."""
LEAST_WAIT_S = 0.001
_Names = tuple[str, str, str]


def _names(pattern: str) -> _Names:
    return pattern.format("limit"), pattern.format("remaining"), pattern.format("reset")


_REQUEST_HEADERS = tuple(
    map(_names, ("x-ratelimit-{}-requests", "anthropic-ratelimit-requests-{}"))
)
_TOKEN_HEADERS = tuple(
    map(
        _names,
        (
            "x-ratelimit-{}-tokens",
            "anthropic-ratelimit-tokens-{}",
            "anthropic-ratelimit-input-tokens-{}",
        ),
    )
)
"""The headers with a limit, with what is left of it, and with the time until it is whole again."""
_LIMIT_HEADERS = frozenset(names[0] for names in (*_REQUEST_HEADERS, *_TOKEN_HEADERS))
_PART = re.compile(r"(?<!\d)(\d++(?:\.\d++)?)(ms|s|m|h|d)")
_UNITS_S = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}


_Most = Annotated[float, Field(ge=1, lt=1e12), must("must be a number of at least 1")]


@entry
class Rate:
    """The most that a provider is asked for in a minute, from the settings; None: no limit."""

    requests_per_minute: _Most | None = None
    tokens_per_minute: _Most | None = None

    @property
    def description(self) -> str:
        """The limits as a person reads them."""
        limits = {"requests": self.requests_per_minute, "tokens": self.tokens_per_minute}
        return ", ".join(f"{most:g} {what} a minute" for what, most in limits.items() if most)


@dataclass(slots=True)
class _Bucket:
    """What is left of one limit. It fills up again evenly, within a minute."""

    configured: float | None = None
    learned: float | None = None
    capacity: float | None = field(default=None, init=False)
    """The lower one of the two."""
    level: float = 0.0
    filled_at: float = 0.0
    full_at: float | None = None
    """When the server says that its limit is whole again."""

    def __post_init__(self) -> None:
        self.capacity = self.configured
        self.level = self.capacity or 0.0

    def fill(self, now: float) -> None:
        if (capacity := self.capacity) is not None:
            more = (now - self.filled_at) * capacity / MINUTE_S
            is_whole = self.full_at is not None and now >= self.full_at
            # What the server counts may be whole sooner than what the settings allow.
            if is_whole and self.learned == capacity:
                more = capacity
            self.level = min(capacity, self.level + more)
        self.filled_at = now

    def wait_s(self, amount: float) -> float:
        """Return the seconds until there is room; an amount above the limit needs all of it."""
        if (capacity := self.capacity) is None:
            return 0.0
        missing = min(amount, capacity) - self.level
        # A billionth of slack: sums of floats fall short of the amount they add up to.
        return 0.0 if missing <= capacity * 1e-9 else missing * MINUTE_S / capacity

    def take(self, amount: float) -> None:
        if (capacity := self.capacity) is not None:
            # A large reply may leave a debt, but none that takes longer than a minute to fill.
            self.level = max(self.level - amount, -capacity)

    def learn(self, limit: float, left: float, full_at: float | None) -> None:
        """Take over what a server says; it knows better than our estimates."""
        self.learned, self.full_at = limit, full_at
        self.capacity = limit if self.configured is None else min(limit, self.configured)
        self.level = min(left, limit)


@dataclass(slots=True, eq=False)
class _Waiter:
    team: str
    tokens: float
    admitted: asyncio.Future[None]


@dataclass(slots=True)
class RateLimiter:
    """The limits of one key, or of one model of a key."""

    clock: Clock
    rate: Rate = Rate()
    counts_cached: bool = True
    """Whether tokens that a vendor reads from its cache count. For most vendors' own limits they do
    not, so that the estimate of a call is multiplied with the share that was new in the last."""
    _new_share: float = field(default=1.0, init=False)
    _under_way: float = field(default=0.0, init=False)
    """Tokens of the calls that the server has not answered yet."""
    _requests_under_way: int = field(default=0, init=False)
    _requests: _Bucket = field(init=False)
    _tokens: _Bucket = field(init=False)
    _blocked_until: float = field(default=0.0, init=False)
    _waiting: OrderedDict[str, deque[_Waiter]] = field(
        default_factory=OrderedDict[str, deque[_Waiter]], init=False
    )
    """Waiting calls by team; the first team is served next."""
    _serving: asyncio.Task[None] | None = field(default=None, init=False)
    _is_free: bool = field(default=False, init=False)
    """Whether there is no limit so far, so that no call can have to wait."""

    def __post_init__(self) -> None:
        now = self.clock.monotonic()
        self._requests = _Bucket(self.rate.requests_per_minute, filled_at=now)
        self._tokens = _Bucket(self.rate.tokens_per_minute, filled_at=now)
        self._is_free = self._requests.capacity is None and self._tokens.capacity is None

    @property
    def is_open(self) -> bool:
        """Whether a call need not wait, however large it is."""
        return self._is_free and not self._waiting

    def admit(self, estimated: int) -> float:
        """Let a call of about so many tokens through; return the tokens that count."""
        tokens = estimated if self.counts_cached else estimated * self._new_share
        self._take(tokens)
        return tokens

    async def acquire(
        self, team: str, estimated: int, longest_wait_s: float | None = None
    ) -> float:
        """Wait until a call of about so many tokens may be made; return the tokens that count.

        Raise `ModelUnavailable` if that takes longer than `longest_wait_s`. Cancelling gives up the
        place.
        """
        tokens = estimated if self.counts_cached else estimated * self._new_share
        wait_s = 0.0 if self._is_free else self.wait_s(tokens)
        if not self._waiting and wait_s <= 0:
            self._take(tokens)
            return tokens
        if longest_wait_s is not None and wait_s > longest_wait_s:
            raise ModelUnavailable(
                f"The rate limit of the model is reached; it can be asked in {wait_s:.0f} s.",
                retry_after=wait_s,
                unused=True,
            )
        waiter = _Waiter(team, tokens, asyncio.get_running_loop().create_future())
        self._waiting.setdefault(team, deque()).append(waiter)
        if self._serving is None or self._serving.done():
            self._serving = asyncio.create_task(self._serve(), name="rate limit")
        try:
            await waiter.admitted
        except asyncio.CancelledError:
            if waiter.admitted.cancelled():
                self._leave(waiter)
            else:  # let through just before, and not made
                self.answered(tokens, None)
            raise
        return tokens

    def answered(self, tokens: float, headers: Mapping[str, str] | None) -> None:
        """Note that the server has counted a call of so many tokens, or never got it."""
        self._under_way -= tokens
        self._requests_under_way -= 1
        if headers:
            self._learn(headers)

    def settle(self, estimated: int, tokens: float, usage: Usage) -> None:
        """Correct the estimate of a call by what it used."""
        if self.counts_cached:
            self._tokens.take(usage.tokens - tokens)
        elif estimated:
            share = min(max(usage.tokens - usage.cached_tokens, 0) / estimated, 1.0)
            self._new_share = (self._new_share + share) / 2

    def block(self, seconds: float) -> None:
        """Let no call begin for some seconds: the server refused one and asks to wait."""
        if seconds <= LONGEST_BLOCK_S:
            self._is_free = False
            until = self.clock.monotonic() + seconds
            self._blocked_until = max(self._blocked_until, until)

    def _learn(self, headers: Mapping[str, str]) -> None:
        """Take over the limits that a response reports; odd ones are ignored."""
        if headers.keys().isdisjoint(_LIMIT_HEADERS):
            return
        now = self.clock.monotonic()
        for names, bucket, under_way in (
            (_REQUEST_HEADERS, self._requests, float(self._requests_under_way)),
            (_TOKEN_HEADERS, self._tokens, self._under_way),
        ):
            for limit_name, left_name, reset_name in names:
                if limit_name not in headers:
                    continue
                limit = _number(headers[limit_name])
                if limit is None or limit < 1:
                    continue
                left = _number(headers.get(left_name))
                reset_s = self._seconds(headers.get(reset_name))
                self._is_free = False
                bucket.fill(now)
                bucket.learn(
                    limit,
                    (limit if left is None else left) - under_way,
                    None if reset_s is None else now + reset_s,
                )
                break

    def close(self) -> None:
        if self._serving is not None:
            self._serving.cancel()

    async def _serve(self) -> None:
        """Admit waiting calls, one of each team in turn, until none waits."""
        while self._waiting:
            team, calls = next(iter(self._waiting.items()))
            wait_s = self.wait_s(calls[0].tokens)
            if wait_s > 0:
                # Another call may give up meanwhile, so the choice is made anew afterwards.
                await self.clock.sleep(max(wait_s, LEAST_WAIT_S))
                continue
            waiter = calls.popleft()
            if not waiter.admitted.done():  # else cancelled, and about to leave
                self._take(waiter.tokens)
                waiter.admitted.set_result(None)
            self._waiting.move_to_end(team)
            if not calls:
                del self._waiting[team]

    def wait_s(self, tokens: float) -> float:
        """Return for how many seconds a call of so many tokens would wait now."""
        now = self.clock.monotonic()
        self._requests.fill(now)
        self._tokens.fill(now)
        return max(self._blocked_until - now, self._requests.wait_s(1), self._tokens.wait_s(tokens))

    def _take(self, tokens: float) -> None:
        if not self._is_free:
            self._requests.take(1)
            self._tokens.take(tokens)
        self._requests_under_way += 1
        self._under_way += tokens

    def _leave(self, waiter: _Waiter) -> None:
        calls = self._waiting.get(waiter.team)
        if calls is not None and waiter in calls:
            calls.remove(waiter)
            if not calls:
                del self._waiting[waiter.team]

    def _seconds(self, text: str | None) -> float | None:
        """Return how long until a time such as `6m0s`, `1.5` or 2026-01-05T09:00:00Z."""
        if not text:
            return None
        if (plain := _number(text)) is not None:
            return plain
        if _PART.sub("", text.strip()) == "":
            return sum(float(many) * _UNITS_S[unit] for many, unit in _PART.findall(text))
        try:
            when = datetime.fromisoformat(text)
            return max((when - self.clock.now()).total_seconds(), 0.0)
        except (ValueError, TypeError):  # TypeError: a time without a zone
            return None


def _number(text: str | None) -> float | None:
    """Return a header as a number; None if it is missing or cannot be a count."""
    if not text:
        return None
    try:
        found = float(text)
    except ValueError:
        return None
    return found if 0 <= found < 1e12 else None


@dataclass(slots=True)
class Pace:
    """The pace of one model's calls: the limits of its key, from the settings, and its own, which
    the headers of responses say."""

    account: RateLimiter
    model: RateLimiter

    async def acquire(
        self, team: str, estimated: int, longest_wait_s: float | None = None
    ) -> "Slot":
        """Wait until a call of about so many tokens may be made; see `RateLimiter.acquire`."""
        if self.model.is_open and self.account.is_open:  # as nearly always
            own, shared = self.model.admit(estimated), self.account.admit(estimated)
            return Slot(self, estimated, own, shared)
        own = await self.model.acquire(team, estimated, longest_wait_s)
        try:
            shared = await self.account.acquire(team, estimated, longest_wait_s)
        except BaseException:  # cancelled too: the call is not made
            self.model.answered(own, None)
            raise
        return Slot(self, estimated, own, shared)


@dataclass(slots=True)
class Slot:
    """A call that was let through."""

    pace: Pace
    estimated: int
    own: float
    shared: float
    is_answered: bool = False

    def answer(self, headers: Mapping[str, str] | None = None) -> None:
        """Note that the response has begun, or that the call has failed; counts once."""
        if not self.is_answered:
            self.is_answered = True
            self.pace.model.answered(self.own, headers)
            self.pace.account.answered(self.shared, None)

    def settle(self, usage: Usage) -> None:
        """Correct the estimate by what the call used."""
        self.pace.model.settle(self.estimated, self.own, usage)
        self.pace.account.settle(self.estimated, self.shared, usage)


class RateLimits:
    """The limiters of a process."""

    def __init__(self, clock: Clock, rates: Mapping[str, Rate] | None = None) -> None:
        self._clock = clock
        self._rates = rates or {}
        self._accounts: dict[tuple[str, str], RateLimiter] = {}
        self._paces: dict[tuple[str, str], Pace] = {}

    def of(self, name: str, key: str) -> Pace:
        """Return the pace of the model `provider/model` with this key."""
        pace = self._paces.get((name, key))
        if pace is None:
            model = RateLimiter(self._clock, counts_cached=False)
            pace = self._paces[name, key] = Pace(self._account(name.partition("/")[0], key), model)
        return pace

    def wait_s(self, provider: str) -> float:
        """Return for how many seconds a small call to this provider would wait now; the longest of
        its models."""
        limiters = [limiter for (name, _), limiter in self._accounts.items() if name == provider]
        paces = self._paces.items()
        limiters += [pace.model for (name, _), pace in paces if name.startswith(f"{provider}/")]
        return max((limiter.wait_s(1) for limiter in limiters), default=0.0)

    def _account(self, provider: str, key: str) -> RateLimiter:
        if (provider, key) not in self._accounts:
            rate = self._rates.get(provider, Rate())
            self._accounts[provider, key] = RateLimiter(self._clock, rate)
        return self._accounts[provider, key]

    def close(self) -> None:
        for limiter in (*self._accounts.values(), *(pace.model for pace in self._paces.values())):
            limiter.close()
