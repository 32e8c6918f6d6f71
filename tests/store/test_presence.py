"""A worker is declared dead after checks without a heartbeat, sooner if it has no session."""

from agiraph.core.store.engine.presence import GONE_CHECKS, HUNG_CHECKS, PeerState, SilenceCounter


def verdicts(*seen: PeerState) -> list[bool]:
    """Return whether the worker is declared dead after each of these checks."""
    silence = SilenceCounter()
    return [bool(silence.after([one])) for one in seen]


def beats(many: int, *, first: int = 1) -> list[PeerState]:
    return [PeerState("w", beat, False) for beat in range(first, first + many)]


def test_a_worker_with_a_heartbeat_is_never_declared_dead() -> None:
    assert not any(verdicts(*beats(1000)))


def test_a_worker_whose_session_ended_is_declared_dead_after_a_few_checks() -> None:
    gone = [PeerState("w", 5, True)] * GONE_CHECKS
    assert verdicts(*beats(5), *gone) == [False] * (5 + GONE_CHECKS - 2) + [True] * 2
    assert verdicts(*gone) == [False] * (GONE_CHECKS - 1) + [True]


def test_a_silent_worker_with_a_session_gets_many_more_checks() -> None:
    silent = [PeerState("w", 5, False)] * HUNG_CHECKS
    assert verdicts(*silent) == [False] * (HUNG_CHECKS - 1) + [True]
    assert HUNG_CHECKS >= 5 * GONE_CHECKS


def test_a_worker_that_comes_back_in_time_is_not_declared_dead() -> None:
    away = [PeerState("w", 5, True)] * (GONE_CHECKS - 2)
    assert not any(verdicts(*beats(5), *away, *beats(5, first=6), *away, *beats(5, first=20)))


def test_losing_the_session_after_a_long_silence_is_not_fatal_at_once() -> None:
    silent = [PeerState("w", 5, False)] * (HUNG_CHECKS - 1)
    assert verdicts(*silent, PeerState("w", 5, True))[-1] is False
