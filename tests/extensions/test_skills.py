"""Skills: nobody sees a word of one before a person has enabled exactly its files."""

import itertools
import os
from pathlib import Path
from typing import Any

import pytest

from agiraph import World, call, says
from agiraph.core.domain.agents import Team
from agiraph.core.domain.errors import Conflict, Refused
from agiraph.core.domain.ids import TeamId
from agiraph.core.home.layout import Home
from agiraph.features.extensions import skills as skill_folders
from agiraph.features.extensions.skills import Skills, forget_below
from tests.extensions.files import AT, put_skill
from tests.tools.tool_calls import run_calls

NUMBERS = itertools.count()
"""Each run of a world has a model of its own."""


def opened(home: Path) -> Skills:
    return Skills(home=Home.open(home))


def team_of(identity: str) -> Team:
    return Team(id=TeamId(identity), name="Painters", goal="Paint", created_at=AT)


def states(home: Path) -> dict[str, str]:
    return {one.id: one.state for one in opened(home).listed()}


async def asked(world: World, **more: Any) -> Any:
    """Return the first request of a team's coordinator."""
    name = f"ada{next(NUMBERS)}"
    ada = world.script(name, says(call("finish", summary="done")))
    await world.found("Do it", model=f"scripted/{name}", **more)
    await world.settle()
    return ada.requests[0]


async def test_a_skill_is_listed_and_read_once_a_person_has_enabled_it(tmp_path: Path) -> None:
    home = tmp_path / "home"
    put_skill(home, "skills/pdf", "Use two columns.", about="How PDFs are made.", more__md="More.")
    async with World(home, easy_endings=True) as world:
        before = await asked(world)
        assert "use_skill" not in before.tools
        assert "PDF" not in before.system

        opened(home).enable("pdf", at=AT)
        after = await asked(world)
        assert "use_skill" in after.tools
        assert (
            "# Skills (before you do such work, read one with `use_skill`)\n\n"
            "- pdf: How PDFs are made.\n" in after.system
        )
        _, told = await run_calls(
            world,
            call("use_skill", name="pdf"),
            call("use_skill", name="pdf", file="more.md"),
            call("use_skill", name="pdf", file="../../token"),
            call("use_skill", name="doc"),
        )
    assert told[0].text == (
        "Use two columns.\n\n(Further files: more.md. use_skill(name='pdf', file=…) shows one. "
        "Commands find them in /skills/pdf, where nothing can be written.)"
    )
    assert [answer.text for answer in told[1:]] == [
        "More.",
        "The skill 'pdf' has no file '../../token'. Further files: more.md.",
        "There is no skill 'doc'. Skills: pdf.",
    ]


async def test_a_script_of_a_skill_runs_in_the_sandbox_and_cannot_be_changed(
    tmp_path: Path,
) -> None:
    home = tmp_path / "home"
    folder = put_skill(home, "skills/pdf", run__sh="echo from the skill\n")
    (folder / "run.sh").chmod(0o755)
    opened(home).enable("pdf", at=AT)
    async with World(home, sandbox_readable=(), easy_endings=True) as world:
        _, told = await run_calls(
            world,
            call("use_skill", name="pdf"),
            call(
                "bash",
                command="sh /skills/pdf/run.sh; echo x >> /skills/pdf/run.sh; ls -l /skills/pdf/",
            ),
        )
    assert "from the skill" in told[1].text
    assert "ead-only" in told[1].text or "denied" in told[1].text.lower()
    assert (folder / "run.sh").read_text() == "echo from the skill\n"


async def test_a_changed_skill_is_off_until_it_is_enabled_again(tmp_path: Path) -> None:
    folder = put_skill(tmp_path, "skills/pdf", "Two columns.")
    first = opened(tmp_path).enable("skills/pdf", at=AT)
    assert states(tmp_path) == {"skills/pdf": "on"}

    async with World(tmp_path, easy_endings=True) as world:
        assert "use_skill" in (await asked(world)).tools
        (folder / "evil.sh").write_text("curl evil.example")
        assert "use_skill" not in (await asked(world)).tools
        assert states(tmp_path) == {"skills/pdf": "changed"}
        assert "skills/pdf is off" in [item.title for item in await world.inbox()]
        with pytest.raises(Conflict, match="has changed since you looked"):
            opened(tmp_path).enable("pdf", sha256=first.sha256, at=AT)
        opened(tmp_path).enable("pdf", at=AT)
        assert "use_skill" in (await asked(world)).tools
        assert opened(tmp_path).disable("pdf") == "skills/pdf"
        assert "use_skill" not in (await asked(world)).tools


async def test_skills_of_a_given_folder_and_of_a_team_are_for_this_team_alone(
    tmp_path: Path,
) -> None:
    home, app = tmp_path / "home", tmp_path / "app"
    put_skill(app, ".claude/skills/deploy", "Ask first.", about="How we deploy.")
    async with World(home, easy_endings=True) as world:
        from agiraph.core.domain.agents import GivenFolder

        given = (GivenFolder(name="app", path=str(app.resolve()), access="rw"),)
        assert "deploy" not in (await asked(world, folders=given)).system
        opened(home).enable(str(app / ".claude/skills/deploy"), at=AT)
        assert "How we deploy." in (await asked(world, folders=given)).system
        assert "deploy" not in (await asked(world)).system
        put_skill(app, ".claude/skills/deploy", "Do not ask.", about="Changed by an agent.")
        assert "deploy" not in (await asked(world, folders=given)).system


def test_what_is_no_skill_is_refused_with_the_reason(tmp_path: Path) -> None:
    put_skill(tmp_path, "skills/linked")
    (tmp_path / "skills/linked/key").symlink_to("/etc/passwd")
    put_skill(tmp_path, "skills/piped")
    os.mkfifo(tmp_path / "skills/piped/pipe")
    put_skill(tmp_path, "skills/Upper Case")
    put_skill(tmp_path, "skills/silent", about="")
    put_skill(tmp_path, "skills/long", about="x" * 1025)
    put_skill(tmp_path, "skills/large", big__bin="x" * (16 * 2**20 + 1))
    (tmp_path / "skills/bare").mkdir()
    (tmp_path / "skills/plain").mkdir()
    (tmp_path / "skills/plain/SKILL.md").write_text("No front matter.")
    (tmp_path / "real").mkdir()
    (tmp_path / "skills/a-link").symlink_to(tmp_path / "real")

    said = {}
    for name in ("linked", "piped", "Upper Case", "silent", "long", "large", "bare", "plain",
                 "missing", "a-link"):  # fmt: skip
        with pytest.raises(Refused) as refused:
            opened(tmp_path).enable(name, at=AT)
        said[name] = str(refused.value).removeprefix(f"skills/{name} cannot be enabled: ")
    assert said == {
        "linked": "'key' in it is not a regular file; replace links by files.",
        "piped": "'pipe' in it is not a regular file; replace links by files.",
        "Upper Case": "its name 'upper case' is not made of small letters, digits, - and _.",
        "silent": "it has no description: say when to use it.",
        "long": "its description has over 1024 characters: shorten it.",
        "large": "it is larger than 16 MiB.",
        "bare": "it has no SKILL.md.",
        "plain": "it does not begin with front matter between two lines of ---.",
        "missing": "There is no skill at 'skills/missing'.",
        "a-link": said["a-link"],
    }
    assert "link" in said["a-link"]
    assert not (tmp_path / "consents.json").exists()


def test_a_damaged_copy_is_not_used(tmp_path: Path) -> None:
    put_skill(tmp_path, "skills/pdf")
    enabled = opened(tmp_path).enable("pdf", at=AT)
    home = Home.open(tmp_path)
    assert skill_folders.enabled_copy(home, enabled.sha256) is not None
    copy = tmp_path / skill_folders.COPIES / enabled.sha256 / "SKILL.md"
    copy.write_text("---\nname: pdf\ndescription: other\n---\nevil")
    assert skill_folders.enabled_copy(home, enabled.sha256) is None
    opened(tmp_path).enable("pdf", at=AT)
    assert skill_folders.enabled_copy(home, enabled.sha256) is not None


@pytest.mark.slow
async def test_many_skills_stay_within_bounds_in_a_prompt(tmp_path: Path) -> None:
    for number in range(30):
        put_skill(tmp_path, f"skills/s{number:02}", about="word " * 200)
        opened(tmp_path).enable(f"s{number:02}", at=AT)
    async with World(tmp_path, easy_endings=True) as world:
        system = (await asked(world)).system
    section = system.partition("# Skills")[2].partition("\n# ")[0]
    assert len(section) < 2000
    assert "- s06: " in section
    assert "- also: s07, s08" in section


async def test_a_skill_in_a_teams_folder_is_for_this_team_and_comes_before_the_homes(
    tmp_path: Path,
) -> None:
    put_skill(tmp_path, "skills/pdf", about="Of the home.")
    put_skill(tmp_path, "teams/team_1/skills/pdf", about="Of the team.")
    skills = opened(tmp_path)
    for identity in ("skills/pdf", "teams/team_1/skills/pdf"):
        skills.enable(identity, at=AT)
    seen = {
        name: [skill.description for skill in await skills.offered(team)]
        for name, team in (("team_1", team_of("team_1")), ("team_2", team_of("team_2")))
    }
    assert seen == {"team_1": ["Of the team."], "team_2": ["Of the home."]}


def test_the_copies_of_a_deleted_teams_skills_are_removed(tmp_path: Path) -> None:
    for place in ("skills/pdf", "teams/team_1/skills/paint"):
        put_skill(tmp_path, place, f"How to do {place}.", about="About it.")
        opened(tmp_path).enable(place, at=AT)
    put_skill(tmp_path, "teams/team_1/skills/paint", "Another way.", about="About it.")
    opened(tmp_path).enable("teams/team_1/skills/paint", at=AT)
    assert len(list((tmp_path / "enabled-skills").iterdir())) == 3
    forget_below(Home.open(tmp_path), "teams/team_1/")
    assert states(tmp_path) == {"skills/pdf": "on", "teams/team_1/skills/paint": "off"}
    assert len(list((tmp_path / "enabled-skills").iterdir())) == 1


@pytest.mark.parametrize(
    "identity", ["~nosuchuser/.claude/skills/x", "a\0b", "/a\0/.claude/skills/x"]
)
def test_an_id_that_is_no_path_is_refused(tmp_path: Path, identity: str) -> None:
    for use in (opened(tmp_path).content, opened(tmp_path).disable):
        with pytest.raises(Refused):
            use(identity)
