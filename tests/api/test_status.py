"""Status: the API names the sandbox and what it does not hold, whatever its level."""

from pathlib import Path

from tests.api.serving import Served, serving


async def test_the_status_names_the_level_of_the_sandbox(served: Served) -> None:
    found = served.world.runtime.confinement
    assert await served.ask("GET", "/status") == (
        200,
        {
            "build": "dev",
            "failing": [],
            "sandbox": {
                "level": found.level,
                "is_named": False,
                "has_spare_user": found.has_spare_user,
                "description": found.describe(),
                "not_held": list(found.not_held),
                "reasons": list(found.reasons),
                "limited_by": found.limited_by,
            },
            "stopped_at": None,
        },
    )


async def test_a_level_that_confines_nothing_is_named_as_such(tmp_path: Path) -> None:
    async with serving(tmp_path, sandbox_level="none") as served:
        _, said = await served.ask("GET", "/status")
    sandbox = said["sandbox"]
    assert (sandbox["level"], sandbox["is_named"]) == ("none", True)
    assert sandbox["not_held"] == [
        "Everything: a command can read and change all that your user can."
    ]
    assert sandbox["description"].startswith("Commands are not confined")
