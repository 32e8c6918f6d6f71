"""Git attacks: commands that leave a program for git in a folder of a person, who then uses git.

Each is tried in a world of its own team, at one level of confinement, with the real git of this
machine. Also run by an ordinary user (`run_as_ordinary`).
"""

import asyncio
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple, cast

from agiraph import faultpoints
from agiraph.core.domain.agents import GivenFolder
from agiraph.sandbox.levels import Wanted
from agiraph.testing import World, call, says

HOOK = "printf '#!/bin/sh\\ntouch MARK\\n' > {0} && chmod +x {0}"
COMMIT = "git commit -q --allow-empty -m later; git status"
EVIL = "mkdir -p {0} && cp -r .git/. {0} && mkdir -p {0}/hooks && " + HOOK.format(
    "{0}/hooks/post-commit"
)
BARE = "git init -q --bare {0} && " + HOOK.format("{0}/hooks/pre-receive")


class Attack(NamedTuple):
    """What a person has, what a command does in the folder, and what the person does then."""

    before: str
    command: str
    after: str = COMMIT

    def on(self, person: "Person") -> str:
        """Return the command against this person."""
        return self.command.replace("MARK", str(person.mark))


ATTACKS = {
    "a hook": Attack("", HOOK.format(".git/hooks/post-commit")),
    "a return before a key": Attack(
        "", "printf '[core]\\n\\r\\tfsmonitor = touch MARK;:\\n' >> .git/config"
    ),
    "a worktree's settings": Attack(
        "git config extensions.worktreeConfig true",
        "git config --worktree core.fsmonitor 'touch MARK;:'",
    ),
    "hooks become a link": Attack(
        "",
        f"mkdir evil && {HOOK.format('evil/post-commit')}; "
        "mv .git/hooks h; ln -s ../evil .git/hooks",
    ),
    "hooks are a link": Attack(
        "mkdir h && rm -r .git/hooks && ln -s ../h .git/hooks", HOOK.format("h/post-commit")
    ),
    "hooks are a link, and its target is moved": Attack(
        "mkdir -p a/h && rm -r .git/hooks && ln -s ../a/h .git/hooks",
        f"mv a b; mkdir -p a/h && {HOOK.format('a/h/post-commit')}",
    ),
    "hooks are a link to a link": Attack(
        "mkdir h && ln -s h l && rm -r .git/hooks && ln -s ../l .git/hooks",
        f"mkdir e && {HOOK.format('e/post-commit')}; rm l && ln -s e l",
    ),
    "one hook is a link": Attack(
        "mkdir s && touch s/check && chmod +x s/check && "
        "ln -s ../../s/check .git/hooks/post-commit",
        HOOK.format("s/check"),
    ),
    ".git becomes a link": Attack("", f"{EVIL.format('evil')}; mv .git g; ln -s evil .git"),
    ".git is a link": Attack(
        "mv .git store && ln -s store .git", HOOK.format("store/hooks/post-commit")
    ),
    ".git is a link that is replaced": Attack(
        "mv .git store && ln -s store .git", f"{EVIL.format('evil')}; rm .git; ln -s evil .git"
    ),
    ".git is moved away": Attack("", f"mv .git g; {EVIL.replace('.git/.', 'g/.').format('.git')}"),
    "a file names the folder": Attack(
        "git init -q --separate-git-dir store", HOOK.format("store/hooks/post-commit")
    ),
    "a file names another folder": Attack(
        "git init -q --separate-git-dir store",
        f"{EVIL.replace('.git/.', 'store/.').format('evil')}; echo 'gitdir: evil' > .git || "
        "(rm -f .git; echo 'gitdir: evil' > .git)",
    ),
    "commondir": Attack("", f"{EVIL.format('evil')}; echo ../evil > .git/commondir"),
    "a linked worktree": Attack(
        "git worktree add -q tree", HOOK.format(".git/hooks/post-commit"), f"cd tree; {COMMIT}"
    ),
    "a worktree's file": Attack(
        "git worktree add -q tree",
        f'{EVIL.format("evil")}; rm tree/.git; echo "gitdir: $PWD/evil" > tree/.git',
        f"cd tree; {COMMIT}",
    ),
    "a submodule": Attack(
        "git init -q ../s && git -C ../s commit -q --allow-empty -m s && "
        'git -c protocol.file.allow=always submodule --quiet add "$PWD/../s" sub',
        HOOK.format(".git/modules/sub/hooks/post-commit"),
        f"cd sub; {COMMIT}",
    ),
    "the person's folder of hooks": Attack(
        "mkdir .githooks && git config core.hooksPath .githooks",
        HOOK.format(".githooks/post-commit"),
    ),
    "the person's folder of hooks, not made yet": Attack(
        "git config core.hooksPath .githooks",
        f"mkdir .githooks; {HOOK.format('.githooks/post-commit')}",
    ),
    "hooks of husky": Attack(
        "mkdir -p .husky/_ && echo '. .husky/post-commit' > .husky/_/post-commit && "
        "chmod +x .husky/_/post-commit && git config core.hooksPath .husky/_",
        HOOK.format(".husky/post-commit"),
    ),
    "included settings": Attack(
        "touch .gitconfig && git config include.path ../.gitconfig",
        "printf '[core]\\nfsmonitor = touch MARK;:\\n' > .gitconfig",
    ),
    "a program that settings name": Attack(
        "mkdir t && echo true > t/f.sh && chmod +x t/f.sh && git config core.fsmonitor ./t/f.sh",
        HOOK.format("t/f.sh"),
    ),
    "a bare repository": Attack(
        "git init -q --bare lib", HOOK.format("lib/hooks/pre-receive"), "git push -q ./lib HEAD:x"
    ),
    "a nested repository": Attack(
        "git init -q a/sub", HOOK.format("a/sub/.git/hooks/post-commit"), f"cd a/sub; {COMMIT}"
    ),
    "a nested repository is moved": Attack(
        "git init -q a/sub",
        "mv a b; mkdir -p a; cp -r b/sub a/sub; " + HOOK.format("a/sub/.git/hooks/post-commit"),
        f"cd a/sub; {COMMIT}",
    ),
    "a repository among packages": Attack(
        "git init -q node_modules/x",
        HOOK.format("node_modules/x/.git/hooks/post-commit"),
        f"cd node_modules/x; {COMMIT}",
    ),
    "pushurl": Attack(
        "git init -q --bare ../o && git remote add origin ../o",
        f"{BARE.format('evil')}; git config remote.origin.pushurl ./evil",
        "git push -q origin HEAD:x",
    ),
    "a new repository": Attack(
        "",
        "git init -q new && git -C new config core.fsmonitor 'touch MARK;:'",
        "cd new; git status",
    ),
    "a new repository in a closed folder": Attack(
        "",
        "mkdir c; git init -q c/new && git -C c/new config core.fsmonitor 'touch MARK;:'; "
        "chmod 300 c",
        "chmod 700 c; cd c/new; git status",
    ),
    "a new bare repository": Attack("", BARE.format("new"), "git push -q ./new HEAD:x"),
    "a new file that names a folder": Attack(
        "", f"{EVIL.format('evil')}; mkdir n && echo 'gitdir: ../evil' > n/.git", f"cd n; {COMMIT}"
    ),
    "a new link to a folder": Attack(
        "", f"{EVIL.format('evil')}; mkdir n && ln -s ../evil n/.git", f"cd n; {COMMIT}"
    ),
    "a repository around": Attack(
        "mv .git ../away", "git init -q . && git config core.fsmonitor 'touch MARK;:'"
    ),
    "a filter of attributes": Attack(
        "",
        "git config filter.x.clean 'touch MARK; cat'; echo '* filter=x' > .gitattributes; "
        "echo 2 > main.py",
        "git add main.py",
    ),
    "attributes that settings name": Attack(
        "mkdir a && touch a/at a/f.sh && chmod +x a/f.sh && git config core.attributesFile a/at && "
        "git config filter.x.clean a/f.sh",
        f"echo '* filter=x' > a/at; {HOOK.format('a/f.sh')}; echo 2 > main.py",
        "git add main.py",
    ),
    "an alias": Attack("", "git config alias.st '!touch MARK'", "git st"),
    "an alias that names a script": Attack(
        "mkdir a && touch a/st.sh && chmod +x a/st.sh && git config alias.st '!a/st.sh'",
        HOOK.format("a/st.sh"),
        "git st",
    ),
    "the program for ssh": Attack(
        "git remote add origin ssh://a.example/x",
        "git config core.sshCommand 'touch MARK;:'",
        "git fetch -q origin",
    ),
    "a repository that a variable names": Attack(
        "",
        "export GIT_DIR=$PWD/.git GIT_WORK_TREE=$PWD; cd /; git config core.fsmonitor "
        "'touch MARK;:'; git config --file $GIT_DIR/config core.fsmonitor 'touch MARK;:'",
    ),
    "settings that are included by a condition": Attack(
        "touch .local && git config includeIf.onbranch:main.path ../.local",
        "printf '[core]\\nfsmonitor = touch MARK;:\\n' > .local",
    ),
    "a program for differences": Attack(
        "", "git config diff.external 'touch MARK;:'; echo 2 > main.py", "git diff"
    ),
    "a clone with submodules": Attack(
        "",
        "git clone -q . new && mkdir -p new/.git/modules/x && cp -r .git/. new/.git/modules/x && "
        "mkdir new/x && echo 'gitdir: ../.git/modules/x' > new/x/.git && "
        + HOOK.format("new/.git/modules/x/hooks/post-commit"),
        f"cd new/x; {COMMIT}",
    ),
}


FOR_ALL = Attack(
    "mkdir .all && git config --global core.hooksPath .all", HOOK.format(".all/post-commit")
)


def many_files(number: int) -> Attack:
    """Return an attack that also makes so many files, more than are scanned."""
    made = f"mkdir many; cd many; seq {number} | xargs touch"
    return Attack("", f"{HOOK.format('.git/hooks/post-commit')}; {made}")


class Person:
    """A person with a home, a repository and a file that an attack makes."""

    def __init__(self, own: Path) -> None:
        self.home, self.app, self.mark = own / "user", own / "app", own / "mark"
        self.home.mkdir(parents=True)
        self.app.mkdir()
        self.do("git init -q -b main . && echo 1 > main.py && git add . && git commit -q -m first")

    def do(self, command: str) -> str:
        """Run a command as the person, in the repository; return all that it printed."""
        names = {
            f"GIT_{who}_{what}": "a@b.example"
            for who in ("AUTHOR", "COMMITTER")
            for what in ("NAME", "EMAIL")
        }
        env = {"PATH": os.environ["PATH"], "HOME": str(self.home), **names}
        told = subprocess.PIPE, subprocess.STDOUT
        done = subprocess.run(
            ["bash", "-c", command],
            cwd=self.app,
            env=env,
            stdout=told[0],
            stderr=told[1],
            text=True,
            check=False,
        )
        return done.stdout

    def is_harmed_by(self, attack: Attack) -> bool:
        """Use git after an attack; return whether the attack's program ran."""
        self.do(attack.after)
        return self.mark.exists()


async def try_all(own: Path, level: Wanted) -> dict[str, bool]:
    """Return of each attack whether its program ran. One command makes all attacks."""
    before = os.environ["HOME"]
    persons = {name: Person(own / str(number)) for number, name in enumerate(ATTACKS)}
    os.environ["HOME"] = str(next(iter(persons.values())).home)
    for name, person in persons.items():
        person.do(ATTACKS[name].before)
    try:
        async with World(own / "home", sandbox_level=level, easy_endings=True) as world:
            await run_in(world, {p.app: ATTACKS[name].on(p) for name, p in persons.items()})
    finally:
        os.environ["HOME"] = before
    return {name: person.is_harmed_by(ATTACKS[name]) for name, person in persons.items()}


async def run_in(world: World, commands: dict[Path, str]) -> str:
    """Let an agent run a command in each of these folders; return what it was told."""
    command = "\n".join(f"(cd {app}; {command})" for app, command in commands.items())
    world.script("m", says(call("bash", command=command)), says(call("finish", summary="done")))
    given = (
        GivenFolder(name=f"app{number}", path=str(app.resolve()), access="rw")
        for number, app in enumerate(commands)
    )
    founded = await world.found("Work", model="scripted/m", folders=tuple(given))
    await world.settle()
    [goal, *_] = await world.board(founded.team.id)
    told = next(turn.text for turn in await world.turns(goal.id) if turn.role == "tool")
    # Else the command could not be started. Of one that left too many files, the end is not told.
    assert told.startswith("[exit code") or "more than 50,000 files" in told, told
    return told


async def end_after(own: Path, command: str) -> None:
    """Run a command in the person's repository, and kill this runtime as soon as it has ended."""

    def kill(point: str) -> None:
        # The sandbox was tried by a command before.
        if point == "fx:after:command" and (own / "app" / "new").exists():
            os.kill(os.getpid(), signal.SIGKILL)

    faultpoints.armed = kill
    async with World(own / "home", easy_endings=True) as world:
        await run_in(world, {own / "app": command})


if __name__ == "__main__":
    given = Path(sys.argv[1])
    if len(sys.argv) > 3:
        asyncio.run(end_after(given, sys.argv[3]))
    print(json.dumps(asyncio.run(try_all(given, cast(Wanted, sys.argv[2])))))
