"""Extension checks: what `agiraph doctor` says of code and skills of a person."""

import sys
from contextlib import redirect_stdout

from agiraph.core.domain.records.channels import WantedChannel
from agiraph.core.home import health as home_health
from agiraph.core.home.layout import Home
from agiraph.doctor.checkup import Checkup
from agiraph.features.extensions.loading import Extensions, unopened
from agiraph.features.extensions.skills import Skills
from agiraph.web.access import WantedEngine


async def check(checkup: Checkup) -> None:
    """Name the extensions that are faulty, have changed or are missing."""
    home = checkup.settings.home
    if not home.is_dir() or home_health.why_not_writable(home):
        return  # the check of the home folder has reported this already
    extensions: Extensions = checkup.parts.get(Extensions) or unopened(checkup.settings)
    # What own code prints while it is imported is no part of our output.
    with redirect_stdout(sys.stderr):
        found = await extensions.listed()
    broken = [f"{one.id}: {one.summary}" for one in found if one.state in ("changed", "faulty")]
    broken += [extensions.problem] if extensions.problem else []
    broken += _missing(checkup, extensions)
    on = [one for one in found if one.state == "on"]
    if broken:
        checkup.problem(
            "own tools", f"{len(broken)} cannot be used; `agiraph tools` lists all.", *broken
        )
    elif on:
        checkup.fine(
            "own tools", f"{len(on)} enabled.", *(f"{one.id}: {one.summary}" for one in on)
        )
    _skills(checkup, extensions.home)
    if off := [one.id for one in found if one.state == "off"]:
        checkup.note(
            "own tools", f"Not enabled: {', '.join(off[:20])}. To use one: agiraph tools enable."
        )


def _skills(checkup: Checkup, home: Home) -> None:
    found = Skills(home=home).listed()
    broken = [f"{one.id}: {one.summary}" for one in found if one.state in ("changed", "faulty")]
    if broken:
        checkup.problem("skills", f"{len(broken)} cannot be used.", *broken)
    elif on := [one.id for one in found if one.state == "on"]:
        checkup.fine("skills", f"{len(on)} enabled.", *on)


def _missing(checkup: Checkup, extensions: Extensions) -> list[str]:
    """Return what the settings name and no enabled extension declares."""
    settings, said = checkup.settings, list[str]()
    engine = settings.web.engine
    if isinstance(engine, WantedEngine) and ("engines", engine.own_name) not in extensions.declared:
        said.append(f"[search] names {engine.name}, which no enabled file in engines/ declares.")
    own = {name for kind, name in extensions.declared if kind == "tools"}
    said += [
        f"[tools.{name}] names a tool that no enabled file in tools/ declares."
        for name in settings.features["extensions"]
        if name not in own
    ]
    for name, channel in settings.features.get("channels", {}).items():
        if not isinstance(channel, WantedChannel):
            continue
        if ("channels", channel.own_name) not in extensions.declared:
            said.append(
                f"[channels.{name}] names own:{channel.own_name}, which no enabled file in "
                "channels/ declares."
            )
    return said
