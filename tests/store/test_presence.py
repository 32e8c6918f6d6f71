"""Who is taken for dead: by looks in a row, sooner without a session than with one."""

from agiraph.store.presence import GONE_CHECKS, HUNG_CHECKS, PeerState, SilenceCounter


def looks(*seen: PeerState) -> list[bool]:
    """Whether the worker is taken for dead after each of these looks at it."""
    silence = SilenceCounter()
    return [bool(silence.after([one])) for one in seen]


def beating(many: int, *, first: int = 1) -> list[PeerState]:
    return [PeerState("w", beat, False) for beat in range(first, first + many)]


def test_a_worker_that_beats_is_never_taken_for_dead() -> None:
    assert not any(looks(*beating(1000)))


def test_a_worker_whose_session_ended_is_dead_after_a_few_looks() -> None:
    gone = [PeerState("w", 5, True)] * GONE_CHECKS
    assert looks(*beating(5), *gone) == [False] * (5 + GONE_CHECKS - 2) + [True] * 2
    assert looks(*gone) == [False] * (GONE_CHECKS - 1) + [True]


def test_a_worker_that_is_silent_but_has_its_session_is_given_much_longer() -> None:
    silent = [PeerState("w", 5, False)] * HUNG_CHECKS
    assert looks(*silent) == [False] * (HUNG_CHECKS - 1) + [True]
    assert HUNG_CHECKS >= 5 * GONE_CHECKS


def test_a_worker_that_comes_back_in_time_is_not_dead() -> None:
    away = [PeerState("w", 5, True)] * (GONE_CHECKS - 2)
    assert not any(looks(*beating(5), *away, *beating(5, first=6), *away, *beating(5, first=20)))


def test_a_session_lost_after_a_long_silence_is_not_held_against_a_worker_at_once() -> None:
    silent = [PeerState("w", 5, False)] * (HUNG_CHECKS - 1)
    assert looks(*silent, PeerState("w", 5, True))[-1] is False
