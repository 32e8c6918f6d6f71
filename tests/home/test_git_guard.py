"""Git guard: nothing that a command leaves in a given folder is run by git as the person."""

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.fences import lines_from_folder
from tests.home import git_attacks
from tests.home.git_attacks import ATTACKS, Attack, Person
from tests.home.ordinary_user import run_as_ordinary

from agiraph.core.domain.agents import GivenFolder
from agiraph.core.domain.ids import TeamId
from agiraph.core.home.layout import Home
from agiraph.sandbox import levels
from agiraph.sandbox.folders import folder_history, git_commits
from agiraph.sandbox.folders.git_settings import read_text, settings
from agiraph.sandbox.sandbox import Level
from agiraph.testing import Call, World, call, says

HELD = dict.fromkeys(ATTACKS, False)


def is_here(level: Level) -> bool:
    return not levels.choose(level).reasons


@pytest.mark.parametrize("name", ATTACKS)
def test_without_a_sandbox_every_attack_succeeds(tmp_path: Path, name: str) -> None:
    person, attack = Person(tmp_path), ATTACKS[name]
    person.do(attack.before)
    person.do(attack.on(person))
    assert person.is_harmed_by(attack)


@pytest.mark.parametrize("level", ["namespaces", "bubblewrap", "landlock"])
async def test_no_attack_succeeds_at_any_level(tmp_path: Path, level: Level) -> None:
    if not is_here(level):
        pytest.skip(f"this machine has no {level}")
    assert await git_attacks.try_all(tmp_path, level) == HELD


@pytest.mark.skipif(os.geteuid() != 0, reason="the tests run as an ordinary user already")
@pytest.mark.parametrize("level", ["namespaces", "bubblewrap", "landlock"])
def test_no_attack_succeeds_for_an_ordinary_user(level: Level) -> None:
    if not is_here(level):
        pytest.skip(f"this machine has no {level}")
    assert run_as_ordinary(git_attacks.__name__, level) == HELD


@pytest.fixture
def person(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Person:
    made = Person(tmp_path_factory.mktemp("elsewhere"))
    monkeypatch.setenv("HOME", str(made.home))
    return made


@pytest.mark.parametrize("attack", [git_attacks.FOR_ALL, git_attacks.many_files(501)])
async def test_neither_hooks_for_all_repositories_nor_many_files_help(
    world: World, person: Person, attack: Attack, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folder_history, "MOST_FILES", 500)
    await _is_held(world, person, attack)


@pytest.mark.long
async def test_more_files_than_are_scanned_do_not_help(world: World, person: Person) -> None:
    await _is_held(world, person, git_attacks.many_files(folder_history.MOST_FILES + 1))


async def _is_held(world: World, person: Person, attack: Attack) -> None:
    """Check that an attack fails in the sandbox, and succeeds without one."""
    person.do(attack.before)
    await git_attacks.run_in(world, {person.app: attack.on(person)})
    assert not person.is_harmed_by(attack)
    person.do(attack.on(person))
    assert person.is_harmed_by(attack)


async def told(world: World, person: Person, *calls: Call, access: str = "rw") -> list[str]:
    """Let an agent make these calls, one in each reply; return their answers."""
    given = (GivenFolder(name="app", path=str(person.app.resolve()), access=access),)  # type: ignore[arg-type]
    model = f"m{len(world._models)}"
    world.script(model, *(says(one) for one in calls), says(call("finish", summary="done")))
    founded = await world.found("Work", model=f"scripted/{model}", name="My team", folders=given)
    await world.settle()
    [goal, *_] = await world.board(founded.team.id)
    return [turn.text for turn in await world.turns(goal.id) if turn.role == "tool"][: len(calls)]


READING = (
    "echo 2 > main.py; mkdir new; echo 3 > new/b; git status --short; git diff --stat; "
    "git log --oneline | wc -l; git show HEAD:main.py; git stash list; git blame main.py | wc -l"
)
READ = [
    "[exit code 0]",
    " M main.py",
    "?? new/",
    " main.py | 2 +-",
    " 1 file changed, 1 insertion(+), 1 deletion(-)",
    "1",
    "1",
    "1",
]


@pytest.mark.parametrize("level", ["namespaces", "bubblewrap"])
async def test_commands_change_files_and_read_the_repository(
    tmp_path: Path, person: Person, level: Level
) -> None:
    if not is_here(level):
        pytest.skip(f"this machine has no {level}")
    person.do("git init -q a/sub && echo a > .git/info/exclude")
    async with World(tmp_path / "home", sandbox_level=level, easy_endings=True) as world:
        [said, moved] = await told(
            world,
            person,
            call("bash", command=f"cd {person.app}; {READING}"),
            call("bash", command=f"cd {person.app}; mv new/b a/sub/c; mv a/sub/c d; rm -r new; ls"),
        )
    assert lines_from_folder(said, "app") == READ
    assert lines_from_folder(moved, "app") == ["[exit code 0]", "a", "d", "main.py"]


async def test_landlock_lets_commands_change_what_lies_beside_git(
    tmp_path: Path, person: Person
) -> None:
    if not is_here("landlock"):
        pytest.skip("this machine has no landlock")
    person.do("mkdir src && touch src/a && ln -s src link")
    async with World(tmp_path / "home", sandbox_level="landlock", easy_endings=True) as world:
        command = "echo 2 > main.py; echo 3 > src/b; mv src/a src/c; git status --short"
        [said] = await told(world, person, call("bash", command=f"cd {person.app}; {command}"))
    assert lines_from_folder(said, "app") == ["[exit code 0]", " M main.py", "?? link", "?? src/"]
    assert sorted(path.name for path in (person.app / "src").iterdir()) == ["b", "c"]


async def test_file_tools_write_neither_hooks_nor_a_new_repository(
    world: World, person: Person
) -> None:
    person.do("mkdir .githooks h && git config core.hooksPath .githooks && git init -q --bare lib")
    person.do("ln -s ../../h/check .git/hooks/post-commit && touch h/check")
    names = (".git/config", ".githooks/post-commit", "lib/config", "h/check", "a/.GIT/hooks/x")
    answers = await told(
        world,
        person,
        *(call("write_file", path=f"folders/app/{name}", content="x") for name in names),
        call("write_file", path="folders/app/new/objects/x", content="x"),
        call("write_file", path="folders/app/new/refs/x", content="x"),
        call("write_file", path="folders/app/new/HEAD", content="ref: refs/heads/main"),
        call("write_file", path="folders/app/new/HEAD.md", content="x"),
        call("write_file", path="folders/app/h/other", content="x"),
    )
    said = ["belongs to git" in answer for answer in answers]
    assert said == [True, True, True, True, True, False, False, True, False, False]


async def test_git_commit_commits_what_the_team_changed_and_runs_nothing(
    world: World, person: Person
) -> None:
    """Hooks, filters, signing, an editor and a monitor are set up by the person for their own use;
    a file attribute that an agent writes must not start them either."""
    trap = f"touch {person.mark}"
    for key in ("core.fsmonitor", "core.editor", "gpg.program", "filter.x.clean", "core.pager"):
        person.do(f"git config {key} '{trap};:'")
    person.do("git config commit.gpgSign true && git config core.autocrlf input")
    for hook in ("pre-commit", "commit-msg", "post-commit", "reference-transaction"):
        person.do(f"echo '{trap}' > .git/hooks/{hook}; chmod +x .git/hooks/{hook}")
    person.do("echo mine > mine.txt; echo '*.log' > .gitignore")
    before = {path: path.read_bytes() for path in (person.app / ".git").glob("[Ii]n*/*")}
    index = (person.app / ".git" / "index").read_bytes()
    person.mark.unlink(missing_ok=True)
    answers = await told(
        world,
        person,
        call("write_file", path="folders/app/main.py", content="2\r\n"),
        call("bash", command=f"cd {person.app}; mkdir src; echo 3 > src/b; echo 4 > x.log"),
        call("git_commit", folder="folders/app", message="Change two\n\nBecause."),
        call("git_commit", folder="app", message="x"),
        call("git_commit", folder=str(person.app), message="Again"),
        call("bash", command=f"cd {person.app}; rm src/b; echo '*.bin filter=x' > .gitattributes"),
        call("git_commit", folder="folders/app", message="Second"),
        call("write_file", path="folders/app/a.bin", content="x"),
        call("git_commit", folder="folders/app", message="Third"),
    )
    assert not person.mark.exists()
    assert (person.app / ".git" / "index").read_bytes() == index
    assert all(path.read_bytes() == held for path, held in before.items())
    for key in ("core.fsmonitor", "core.pager", "commit.gpgSign"):
        person.do(f"git config --unset {key}")
    person.do("rm .git/hooks/*")
    log = person.do("git log --format='%an %s' agiraph/My-team").splitlines()
    assert log == [
        f"{log[0].split()[0]} Second",
        f"{log[0].split()[0]} Change two",
        "a@b.example first",
    ]
    assert person.do("git show --format= --name-status agiraph/My-team~1").splitlines() == [
        "M\tmain.py",
        "A\tsrc/b",
    ]
    assert person.do("git show agiraph/My-team~1:main.py") == "2\n"
    assert person.do("git show --format= --name-status agiraph/My-team").splitlines() == [
        "A\t.gitattributes",
        "D\tsrc/b",
    ]
    assert person.do("git log --format=%s").splitlines() == ["first"]
    assert person.do("git fsck 2>&1") == ""
    commit = person.do("git rev-parse --short=12 agiraph/My-team~1").strip()
    assert answers[2] == (
        f"Committed 2 files as {commit} on the branch agiraph/My-team of folders/app. The branch "
        "that the human works on is as it was."
    )
    assert "There is no folder 'app'" in answers[3]
    assert answers[4] == (
        f"Nothing to commit: the branch agiraph/My-team of folders/app holds it all, as {commit}."
    )
    assert "a filter of git would have to run for a.bin" in answers[8]


async def test_a_commit_of_the_person_beside_a_command_does_not_break_git_commit(
    world: World, person: Person
) -> None:
    beside = f"cd {person.app}; echo 2 > main.py; touch one; until [ -e two ]; do sleep 0.02; done"
    commits = call("git_commit", folder="folders/app", message="Change it")
    mine = "until [ -e one ]; do sleep 0.02; done; git commit -q --allow-empty -m mine; touch two"
    answers, _ = await asyncio.gather(
        told(world, person, call("bash", command=beside), commits),
        asyncio.to_thread(person.do, mine),
    )
    assert answers[1].startswith("Committed 3 files as ")


async def test_a_commit_that_a_crash_cut_off_is_made_by_the_same_call(
    tmp_path: Path, person: Person
) -> None:
    """The script died while it set the branch: git has left the lock of the branch."""
    home, team = Home.open(tmp_path), TeamId("team_1")
    person.do(
        "mkdir -p .git/refs/heads/agiraph; touch .git/refs/heads/agiraph/x.lock; echo 2 > new"
    )
    spool = home.spool("thread-call")
    (spool / "started.json").write_text('{"boot": "an earlier one", "at": 0}')
    (spool / "output").touch()
    made = await git_commits.commit(
        home,
        await asyncio.to_thread(levels.CommandRules().confined, "", home.path),
        git_commits.repository_in(str(person.app), "app"),
        ["new"],
        team_id=team,
        spool=spool,
        new=git_commits.NewCommit(
            "agiraph/x", "Add it", git_commits.Author(name="bob", email="bob@agiraph")
        ),
    )
    assert person.do("git log --format='%H %s' agiraph/x --not main") == f"{made.commit} Add it\n"
    assert not list(tmp_path.glob("teams/*/history/*"))


SETTINGS = """\ufeff[core]
\tbare = false
 hooksPath = "a b/c" ; a remark
[remote "ori\\"gin"] url = x\\
y # another
\tflag
[includeIf "gitdir:~/x/"]
path = ../.gitconfig
[Alias] st = "!sh -c \\"x  y\\" "\t
\t\rpager = e \r
[a.b "c"]
k=v\\tw
K = "half" quoted  ; end
"""


def test_settings_are_read_as_git_reads_them(tmp_path: Path) -> None:
    file = tmp_path / "config"
    file.write_text(SETTINGS, newline="")
    listed = subprocess.run(
        ["git", "config", "--file", file, "--null", "--list"], capture_output=True, text=True
    )
    pairs = [line.partition("\n") for line in listed.stdout.split("\0") if line]
    git = [
        (name.split(".")[0], name.split(".")[-1], value if mark else "true")
        for name, mark, value in pairs
    ]
    assert [tuple(one) for one in settings(read_text(str(file)))] == git
    assert len(git) == 9


def as_other_process(own: Path, *arguments: str) -> int:
    """Let a runtime in another process run a command and kill itself as soon as that has ended."""
    line = [sys.executable, "-m", git_attacks.__name__, str(own), "", *arguments]
    env = {**os.environ, "HOME": str(own / "user")}
    return subprocess.run(line, check=False, env=env, cwd=Path(__file__).parents[2]).returncode


async def test_a_kill_before_anything_is_looked_at_leaves_git_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A repository that the command made is switched off when the runtime starts again."""
    person = Person(tmp_path)
    monkeypatch.setenv("HOME", str(person.home))
    hook, new = ATTACKS["a hook"], ATTACKS["a new repository"]
    command = f"{new.command}; {hook.command}".replace("MARK", str(person.mark))
    assert as_other_process(tmp_path, command) == -9
    assert (person.app / "new" / ".git" / "HEAD").exists()
    assert not person.is_harmed_by(hook)

    async with World(tmp_path / "home", easy_endings=True) as world:
        await world.settle()
    assert not (person.app / "new" / ".git" / "HEAD").exists()
    assert not person.is_harmed_by(new)


async def test_two_commands_at_once_cannot_help_each_other(world: World, person: Person) -> None:
    person.do("git init -q a/sub")
    hook = git_attacks.HOOK.replace("MARK", str(person.mark))
    first = (
        f"cd {person.app}; git init -q b/new; touch one; until [ -e two ]; do sleep 0.02; done; "
        f"{hook.format('b/new/.git/hooks/post-commit')}; touch three"
    )
    second = (
        f"cd {person.app}; until [ -e one ]; do sleep 0.02; done; "
        f"{hook.format('a/sub/.git/hooks/post-commit')}; touch two; mv a c; mv b c; "
        "until [ -e three ]; do sleep 0.02; done; git init -q d"
    )
    given = (GivenFolder(name="app", path=str(person.app.resolve()), access="rw"),)
    for model, command in (("one", first), ("two", second)):
        world.script(model, says(call("bash", command=command)), says(call("finish", summary="x")))
        await world.found("Work", model=f"scripted/{model}", folders=given)
    await world.settle()
    assert (person.app / "three").exists()
    for place in ("a/sub", "b/new", "c/new", "d", "."):
        person.do(f"cd {place} && git commit -q --allow-empty -m later")
    assert not person.mark.exists()
    assert not list(person.app.glob("[bcd]/**/HEAD"))
