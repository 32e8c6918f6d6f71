"""Confirmed by another source: two independent sources that show the same claim."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from agiraph.testing import call, says
from tests.local_web import Page
from tests.research.kit import QUESTION, Cast, reads, scene

NIBE, VAILLANT, TEST, LG, AEG = (
    f"http://{site}.example/p" for site in ("nibe", "vaillant", "independent-test", "lg", "aeg")
)
ONE, TWO = "The NIBE S1255 has 49 dB in operation.", "The Vaillant flexo has 54 dB in operation."
BOTH = "We measured the NIBE S1255 at 49 dB in operation."
RENT, TOWER, BRIDGE = (f"http://{site}.example/p" for site in ("rent", "tower", "bridge"))
MONTHLY = "The rent of a flexo is 49 euros a month."
TALL, LONG = "The tower is 330 metres tall.", "The bridge is 330 metres long."
LG_DATA, AEG_DATA = "The LG has 50 dB in operation.", "The AEG has 50 dB in operation."
SITES = {
    "rent.example": {"/p": Page(f"# Prices\n\n{MONTHLY} Call us.\n", "Rent")},
    "tower.example": {"/p": Page(f"# Sights\n\n{TALL} Lifts are slow.\n", "Sights")},
    "bridge.example": {"/p": Page(f"# Roads\n\n{LONG} Trucks pay.\n", "Roads")},
    "lg.example": {"/p": Page(f"# LG\n\n{LG_DATA}\n", "LG")},
    "aeg.example": {"/p": Page(f"# AEG\n\nSold worldwide. {AEG_DATA}\n", "AEG")},
    "nibe.example": {"/p": Page(f"# Data\n\n{ONE} It is quiet.\n", "NIBE")},
    "vaillant.example": {"/p": Page(f"# Facts\n\n{TWO} It is loud at night.\n", "Vaillant")},
    "independent-test.example": {"/p": Page(f"# Test of pumps\n\n{BOTH}\n", "Test")},
}
FALSE = {
    "two marks": "The NIBE has 49 dB [e1] and the Vaillant has 54 dB [e2].",
    "one mark": "The NIBE has 49 dB and the Vaillant has 54 dB [e1, e2].",
    "one of two numbers": "The NIBE has 49 dB, the Vaillant more [e1, e2].",
    "short names": "The LG has 50 dB and the AEG has 50 dB [e4, e5].",
    "no number": "The NIBE is in operation, and the Vaillant, too [e1, e2].",
    "a table": "| pump | noise | other | noise |\n|---|---|---|---|\n| NIBE | 49 dB [e1] | Vaillant"
    " | 54 dB [e2] |",
}
OTHERS = {
    "another unit": "It has 49 dB [e1, e2].",
    "another thing with the number": "The rent is 49 euros a month [e1, e2].",
    "one word of many": "The tower is 330 metres tall [e3, e4].",
}
TRUE = {
    "one mark": "The NIBE has 49 dB [e1, e3].",
    "two marks side by side": "The NIBE has 49 dB [e1] [e3].",
    "among others": "The Vaillant has 54 dB [e2], the NIBE has 49 dB [e1, e3].",
    "in another language": "Die NIBE hat 49 dB [e1, e3].",
    "in other words": "At 49 dB in operation, the NIBE is quiet [e1, e3].",
}


PUMPS = ((NIBE, ONE), (VAILLANT, TWO), (TEST, BOTH), (LG, LG_DATA), (AEG, AEG_DATA))
MIXED = ((NIBE, ONE), (RENT, MONTHLY), (TOWER, TALL), (BRIDGE, LONG))


async def _sources(
    tmp_path: Path, text: str, pages: Sequence[tuple[str, str]] = PUMPS
) -> dict[str, bool]:
    """Return for each cited site whether the report calls it confirmed by another source."""
    reader = [step for url, quote in pages for step in reads(url, (quote, quote))[:2]]
    cast = Cast(
        readers={QUESTION: [*reader, says(call("done"))]},
        writing=[says(f"## Answer\n\n{text}\n")],
    )
    async with scene(tmp_path, cast, sites=SITES) as it:
        await it.start()
        listed = (await it.report()).partition("## Sources\n\n")[2].partition("\n\n")[0]
    return {
        line.partition("http://")[2].partition(".example")[0]: "confirmed by another" in line
        for line in listed.splitlines()
    }


@pytest.mark.parametrize("name", [*FALSE, *OTHERS])
async def test_sources_of_different_claims_do_not_confirm_each_other(
    tmp_path: Path, name: str
) -> None:
    text, pages = (FALSE[name], PUMPS) if name in FALSE else (OTHERS[name], MIXED)
    found = await _sources(tmp_path, text, pages)
    assert (len(found), any(found.values())) == (2, False)


@pytest.mark.parametrize("name", TRUE)
async def test_two_sources_of_one_claim_confirm_each_other(tmp_path: Path, name: str) -> None:
    found = await _sources(tmp_path, TRUE[name])
    assert (found.pop("nibe"), found.pop("independent-test")) == (True, True)
    assert not any(found.values())
