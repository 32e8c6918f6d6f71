"""Git commits: commits files of a person's working tree on a branch of ours, and runs nothing else.

Git works with a folder, an index and settings of our own; of the person's repository it uses only
objects and references. So no hook, filter, signature or other program of any settings runs, and the
person's branch, index and files stay as they are. The script is confined like every command.
"""

import asyncio
import os
import shutil
from collections.abc import Collection, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from agiraph.core.domain.errors import Refused
from agiraph.core.domain.value import dataclass
from agiraph.core.home.layout import Home
from agiraph.sandbox import commands, sandbox
from agiraph.sandbox.folders.git_settings import read_text, settings
from agiraph.sandbox.levels import CommandRules
from agiraph.sandbox.sandbox import Mount, Spec, TeamId

TIMEOUT_S = 300.0
PASSED_ON = frozenset(
    {"autocrlf", "eol", "filemode", "symlinks", "ignorecase", "precomposeunicode"}
)
"""Settings of [core] that say how files are stored, and run nothing."""
NO_FILES, FILTERED = 3, 4
"""Exit codes of the script: nothing has changed; a filter would have to run."""
SCRIPT = """set -eu
own=$(mktemp -d); trap 'rm -rf "$own"' EXIT
theirs() { git --git-dir="$REPO" -c core.hooksPath=/dev/null -c core.fsmonitor= -c gc.auto=0 "$@"; }
at=$BRANCH number=1
while [ -n "$(theirs for-each-ref --format='%(worktreepath)' "refs/heads/$at")" ]; do
  number=$((number + 1)); at=$BRANCH-$number
done
tip=$(theirs rev-parse -q --verify "refs/heads/$at^{commit}" || true)
head=$(theirs --git-dir="$HEAD_OF" rev-parse -q --verify "HEAD^{commit}" || true)
base=$tip
if [ -z "$tip" ] || { [ -n "$head" ] && theirs merge-base --is-ancestor "$tip" "$head"; }; then
  base=$head
fi
export GIT_DIR="$own/git" GIT_WORK_TREE="$TREE" GIT_OBJECT_DIRECTORY="$REPO/objects"
git init -q --template= --object-format="$FORMAT"
ours() { git -c core.excludesFile="$REPO/info/exclude" -c core.hooksPath=/dev/null "$@"; }
cd "$TREE"
[ -z "$base" ] || ours read-tree "$base"
ours check-ignore -z --stdin < "$GIVEN/paths" > "$own/ignored" || [ $? = 1 ]
sort -z "$own/ignored" > "$own/sorted"
sort -z "$GIVEN/paths" | comm -z -23 - "$own/sorted" > "$own/paths"
ours check-attr -z --stdin filter < "$own/paths" | tr '\\0' '\\n' > "$own/filters"
awk 'NR % 3 == 1 { path = $0 } NR % 3 == 0 && $0 != "unspecified" && $0 != "unset" { print path }' \
  "$own/filters" > "$own/filtered"
if [ -s "$own/filtered" ]; then head -n 5 "$own/filtered"; exit 4; fi
ours -c core.safecrlf=false update-index -z --add --remove --stdin < "$own/paths"
tree=$(ours write-tree --missing-ok)
if [ -n "$base" ] && [ "$tree" = "$(ours rev-parse "$base^{tree}")" ]; then
  echo "$at $base"; exit 3
fi
made=$(ours commit-tree "$tree" ${base:+-p "$base"} -F "$GIVEN/message")
count=$(ours diff-tree -r --root --no-commit-id --name-only ${base:+"$base"} "$made" | wc -l)
unset GIT_DIR GIT_WORK_TREE GIT_OBJECT_DIRECTORY
[ -z "$AGAIN" ] || rm -f "$REPO/refs/heads/$at.lock"
theirs update-ref -m "commit by agiraph" "refs/heads/$at" "$made" "$tip"
echo "$at $made $count"
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Repository:
    """A repository of a person, with its working tree."""

    tree: str
    head: str
    """The folder that holds the HEAD of this working tree."""
    common: str
    """The folder that holds objects and references."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Committed:
    """What was committed, or the commit that holds it already."""

    branch: str
    commit: str
    files: int
    """0: nothing had changed since that commit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Author:
    name: str
    email: str


def repository_in(folder: str, name: str) -> Repository:
    """Return the repository whose working tree a given folder is; else raise `Refused`."""
    head = Path(folder, ".git")
    if head.is_file():
        head = Path(folder, read_text(str(head)).removeprefix("gitdir:").strip())
    head = head.resolve()
    common = (head / (read_text(f"{head}/commondir").strip() or ".")).resolve()
    if not (head / "HEAD").exists() or not (common / "objects").is_dir():
        raise Refused(f"folders/{name} is not the working tree of a git repository.")
    if not head.is_relative_to(folder) or not common.is_relative_to(folder):
        raise Refused(
            f"The git repository of folders/{name} lies outside of that folder; the human commits."
        )
    return Repository(tree=folder, head=str(head), common=str(common))


class NewCommit(NamedTuple):
    """What a commit is to be."""

    branch: str
    message: str
    author: Author


async def commit(
    home: Home,
    rules: CommandRules,
    repository: Repository,
    paths: Collection[str],
    *,
    team_id: TeamId,
    spool: Path,
    new: NewCommit,
) -> Committed:
    """Commit these paths of a working tree, as they are now, on its branch; return the commit.

    The branch starts at the person's HEAD, and again wherever that has taken in the branch. If the
    person has it checked out, another one is taken. Raise `Refused` if git cannot do it.
    """
    again = await asyncio.to_thread(_clear_interrupted, spool)
    with _inputs(home, team_id, spool) as given:
        (given / "paths").write_bytes(b"".join(os.fsencode(path) + b"\0" for path in paths))
        (given / "message").write_text(new.message)
        result = await commands.run(
            spool,
            command=SCRIPT,
            cwd=Path(repository.tree),
            timeout=TIMEOUT_S,
            env=commands.child_environment(
                given,
                _environment(repository, new.author)
                | {"GIVEN": str(given), "BRANCH": new.branch, "AGAIN": "1" if again else ""},
            ),
            spec=_spec(home, rules, repository, given, team_id),
            limits=rules.limits,
            team=team_id,
        )
    if result.exit_code not in (0, NO_FILES):
        raise Refused(_why(result.output, is_filtered=result.exit_code == FILTERED))
    at, made, *files = result.output.split()
    return Committed(branch=at, commit=made, files=int(files[0]) if files else 0)


def _clear_interrupted(spool: Path) -> bool:
    """Remove what a run of this script left that a crash cut off, so that it runs again: what it
    had committed by then is found on the branch. Return whether there was one."""
    earlier = commands.resolve(spool)
    if earlier is None or earlier.ended != "interrupted":
        return False
    shutil.rmtree(spool)
    return True


@contextmanager
def _inputs(home: Home, team_id: TeamId, spool: Path) -> Generator[Path]:
    """Make a folder for what the script is given. After a crash the same call removes it."""
    given = home.path.resolve() / "teams" / team_id / "history" / f"commit-{spool.name}"
    given.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        yield given
    finally:
        shutil.rmtree(given)


def _why(output: str, *, is_filtered: bool) -> str:
    said = " ".join(output.split())[:500]
    if is_filtered:
        return (
            f"Nothing was committed: a filter of git would have to run for {said}. Ask the human."
        )
    return f"Git could not commit: {said or 'it said nothing'}."


def _environment(repository: Repository, author: Author) -> dict[str, str]:
    plain = [*settings(read_text(f"{repository.common}/config"))]
    core = {s.key: s.value for s in plain if s.section == "core" and s.key in PASSED_ON}
    formats = [s.value for s in plain if (s.section, s.key) == ("extensions", "objectformat")]
    passed = {"GIT_CONFIG_COUNT": str(len(core))}
    for number, (key, value) in enumerate(core.items()):
        passed |= {f"GIT_CONFIG_KEY_{number}": f"core.{key}", f"GIT_CONFIG_VALUE_{number}": value}
    return passed | {
        "REPO": repository.common,
        "HEAD_OF": repository.head,
        "TREE": repository.tree,
        "FORMAT": formats[-1] if formats else "sha1",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_NO_LAZY_FETCH": "1",
        "LC_ALL": "C",
        **{f"GIT_{who}_NAME": author.name for who in ("AUTHOR", "COMMITTER")},
        **{f"GIT_{who}_EMAIL": author.email for who in ("AUTHOR", "COMMITTER")},
    }


def _spec(
    home: Home, rules: CommandRules, repository: Repository, given: Path, team_id: TeamId
) -> Spec | None:
    """Return what the script sees: the working tree to read, and the repository to write."""
    confinement = rules.confinement
    if not confinement.is_confined:
        return None
    tree, common = Path(repository.tree), Path(repository.common)
    return Spec(
        level=confinement.level,
        mounts=(
            Mount(source=tree, target=tree),
            Mount(source=common, target=common, is_writable=True),
            Mount(source=given, target=given),
        ),
        masked=(home.path.resolve(), *rules.masked),
        unix=False,
        user=sandbox.spare_user(team_id) if confinement.has_spare_user else 0,
    )
