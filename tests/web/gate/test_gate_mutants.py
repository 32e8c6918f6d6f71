"""Mutants of the gate: each switches one guard off, and the test of that guard must fail."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from agiraph.sandbox.gate import git_reading, server
from agiraph.sandbox.gate.exchange import Meter
from agiraph.sandbox.gate.git_reading import GitRequest
from agiraph.sandbox.gate.package_names import PackageNames
from agiraph.sandbox.gate.rules import Rules
from agiraph.sandbox.gate.server import Gate
from tests.web.gate import test_gate, test_package_reading
from tests.web.gate.upstreams import Upstream, open_upstream

Arm = Callable[[pytest.MonkeyPatch], None]
Proof = Callable[[Upstream], Awaitable[None]]


def _off(owner: Any, name: str, instead: Callable[..., Any] = lambda *_, **__: None) -> Arm:
    return lambda patch: patch.setattr(owner, name, instead)


async def _at_once(*_: object, **__: object) -> None:
    """Do nothing, in place of a coroutine."""


def _any_git(request: Any, scheme: str, host: str, whole: str) -> GitRequest:
    return GitRequest(scheme, host, whole.partition("?")[0], request.method == "POST")


def _passes_on(self: Gate, host: str, use: str) -> Any:
    return _at_once()


async def _hosts(upstream: Upstream) -> None:
    await test_gate.test_a_host_without_a_grant_is_refused_with_how_to_allow_it(
        test_gate.PACKAGES, upstream
    )


async def _grants(upstream: Upstream) -> None:
    test_gate.test_a_grant_is_for_its_host_alone_unless_it_says_so()


MUTANTS: dict[str, tuple[Arm, Proof]] = {
    "every host is reachable": (_off(Rules, "check_host"), _hosts),
    "git may push": (
        _off(git_reading, "_checked", _any_git),
        test_gate.test_git_reads_from_a_granted_host_and_sends_nothing,
    ),
    "hosts are not recorded": (
        _off(Gate, "_reach", _passes_on),
        test_gate.test_nothing_is_sent_that_could_not_be_recorded,
    ),
    "bytes are not counted": (
        _off(Meter, "count", lambda self, piece: piece),
        test_gate.test_a_command_that_moves_too_much_is_cut_off,
    ),
    "every name is allowed": (
        _off(PackageNames, "allows", lambda *_: True),
        test_package_reading.test_a_bound_command_asks_for_no_name_that_a_stranger_can_have_made_up,
    ),
    "a package binds nobody": (
        _off(PackageNames, "bind"),
        test_package_reading.test_a_clean_command_is_bound_once_it_has_received_a_package,
    ),
    "dependencies are not learned": (
        _off(PackageNames, "learn"),
        test_package_reading.test_declared_granted_well_known_and_needed_packages_are_allowed,
    ),
    "queries and other methods pass": (
        _off(server, "_check_reading"),
        test_package_reading.test_what_no_index_lists_is_refused_and_never_asked_for,
    ),
    "a subdomain counts as its host": (
        _off(test_gate, "names_host", lambda known, host: any(host.endswith(k) for k in known)),
        _grants,
    ),
}


@pytest.mark.parametrize("name", MUTANTS)
async def test_a_guard_that_is_switched_off_is_noticed(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    arm, proof = MUTANTS[name]
    async with open_upstream() as upstream:
        upstream.pages["/page"] = b"a page"
        test_package_reading.fill(upstream)
        await proof(upstream)
        upstream.asked.clear()
        upstream.headers.clear()
        arm(monkeypatch)
        with pytest.raises((AssertionError, ValueError)):
            await proof(upstream)
