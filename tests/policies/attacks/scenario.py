"""Scenario: an attack that must do no harm in strict and standard teams, and its twin."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from agiraph.core.domain.agents import Trust
from tests.policies.attacks.stage import Mode, Run, Stage, open_stage

TRUSTS: tuple[Trust, ...] = ("strict", "standard")
Play = Callable[[Run], Awaitable[object]]
Harm = Callable[[Run], Awaitable[list[str]]]
Twin = Literal["rule", "person", "approval"]
"""How a person lets the same thing happen: by a rule that allows all tools, by giving the orders
themselves, or by approving each request."""


async def leaked(run: Run) -> list[str]:
    return run.leaked()


@dataclass(frozen=True, slots=True, kw_only=True)
class Attack:
    """An attack by a stranger's words, played step by step."""

    name: str
    """A sentence that says what the attack tries."""
    group: str
    play: Play
    harm: Harm = leaked
    """Returns what harm was done; for most attacks, in which forms the secret reached the sink."""
    twin: Twin = "rule"
    team: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """What the teams are founded with, beside their trust."""
    world: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """What the world is opened with."""
    then: Play | None = None
    """What the twin does in place of `play`, if a person would do the same by other means."""

    @property
    def id(self) -> str:
        return f"{self.group}: {self.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What came of one attack and its twin."""

    harm: dict[Trust, list[str]]
    """The harm by trust; empty lists if all guards held."""
    twin: list[str]
    """The harm that the twin did; empty if the channel does not work at all."""
    unlabelled: list[str]
    unfenced: list[str]
    bytes_at_sink: int

    @property
    def is_safe(self) -> bool:
        return not any(self.harm.values()) and not self.unlabelled and not self.unfenced


async def perform(folder: Path, attack: Attack, *, twin: bool = True, **world: Any) -> Outcome:
    """Play the attack against a team of each trust, then its twin, in one world."""
    async with open_stage(folder, **{**attack.world, **world}) as stage:
        harm, size = await _play(stage, attack)
        allowed = await _play_twin(stage, attack) if twin else []
        # Also of the twin: a rule that allows a call takes no label off what it reads.
        return Outcome(
            harm=harm,
            twin=allowed,
            unlabelled=sorted(set(stage.orders.unlabelled)),
            unfenced=sorted(set(stage.orders.unfenced)),
            bytes_at_sink=size,
        )


async def _play(stage: Stage, attack: Attack) -> tuple[dict[Trust, list[str]], int]:
    """Play the attack, and return its harm by trust and the bytes of secrets at the sink."""
    harm: dict[Trust, list[str]] = {}
    size = 0
    for trust in TRUSTS:
        run = await stage.team(attack.id, trust, **attack.team)
        await attack.play(run)
        harm[trust] = await attack.harm(run)
        size += len(run.secret) * len(run.leaked())
    return harm, size


async def _play_twin(stage: Stage, attack: Attack) -> list[str]:
    modes: dict[Twin, Mode] = {"rule": "rule", "person": "person", "approval": "attack"}
    run = await stage.team(f"twin of {attack.id}", mode=modes[attack.twin], **attack.team)
    await (attack.then or attack.play)(run)
    if attack.twin == "approval":
        await run.approve_all()
    return await attack.harm(run)
