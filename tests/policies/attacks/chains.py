"""Chains: a page's orders go from carrier to carrier before somebody obeys them."""

from itertools import product

from tests.policies.attacks.carriers import CARRIERS, COORDINATOR, Carrier
from tests.policies.attacks.scenario import Attack, Play
from tests.policies.attacks.stage import Run, send


def through(*carriers: Carrier, between: Play | None = None) -> Play:
    """Return the play in which the words pass through these carriers, and the last reader sends the
    secret. `between` happens after each step."""

    async def play(run: Run) -> None:
        agents = [COORDINATOR]
        for carrier in carriers:
            agents.append(carrier.reader_of(agents[-1]))
        wanted = list(send(run))
        for carrier, agent in reversed([*zip(carriers, agents, strict=False)]):
            wanted = list(carrier.write(run, agent, run.words(*wanted)))
        await run.meets(*wanted)
        for carrier, agent in zip(carriers, agents, strict=False):
            if between is not None:
                await between(run)
            await carrier.read(run, agent)

    return play


def _pair(first: Carrier, second: Carrier) -> Attack:
    return Attack(
        name=f"orders pass through {first.name}, then {second.name}",
        group="laundering",
        play=through(first, second),
    )


SINGLE = [
    Attack(name=f"orders wait in {one.name}", group="second thread", play=through(one))
    for one in CARRIERS
]
PAIRS = [_pair(first, second) for first, second in product(CARRIERS, CARRIERS)]
FEW = [
    _pair(first, CARRIERS[(place * 5 + 3) % len(CARRIERS)]) for place, first in enumerate(CARRIERS)
]
"""Pairs in which each carrier comes first once and second at least once."""
