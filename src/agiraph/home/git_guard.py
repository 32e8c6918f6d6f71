"""Git guard: finds changes to a repository's hooks and settings that run programs.

What a command leaves in .git/hooks, or in some settings of git, is run outside of any sandbox the
next time the person uses git. A read-only mount does not help, since a command can rename .git. So
such changes are found after the command, and put back.
"""

import configparser
import re

HOOKS = re.compile(r"(?:^|/)\.git/(?:modules/.+/|worktrees/.+/)?hooks/", re.IGNORECASE)
SETTINGS = re.compile(
    r"(?:^|/)\.git/(?:modules/.+/|worktrees/.+/)?config(?:\.worktree)?$", re.IGNORECASE
)
_HARMLESS = {
    "user": {"name", "email"},
    "init": {"defaultbranch"},
    "pull": {"rebase", "ff"},
    "push": {"default", "autosetupremote"},
    "core": {
        "repositoryformatversion", "filemode", "bare", "logallrefupdates", "ignorecase",
        "precomposeunicode", "autocrlf", "eol", "symlinks",
    },
    "remote": {"url", "fetch", "pushurl", "prune"},
    "branch": {"remote", "merge", "rebase", "description"},
    "submodule": {"url", "active", "branch", "path"},
}  # fmt: skip
"""Settings of git that run no program, by section. All others are the person's."""


def is_guarded(path: str) -> bool:
    """Whether a path of a given folder may make git run a program."""
    return HOOKS.search(path) is not None or SETTINGS.search(path) is not None


def is_harmful(path: str, before: bytes, after: bytes) -> bool:
    """Whether a change of a guarded file must be put back: any of a hook, and of a setting that may
    run a program."""
    if SETTINGS.search(path) is None:
        return not path.endswith(".sample")
    old, new = _settings(before), _settings(after)
    if new is None:
        return True
    changed = new.items() - (old or {}).items()
    return any(not _is_harmless(section, key, value) for (section, key), value in changed)


def _is_harmless(section: str, key: str, value: str) -> bool:
    kind = section.split(" ")[0].casefold()
    # A remote such as ext::sh runs a command whenever git talks to it.
    return key in _HARMLESS.get(kind, ()) and "ext::" not in value


def _settings(data: bytes) -> dict[tuple[str, str], str] | None:
    """Return the settings by section and key; None if the file is not plain enough to be read."""
    reader = configparser.RawConfigParser(
        strict=False, allow_no_value=True, delimiters=("=",), comment_prefixes=("#", ";")
    )
    text = re.sub(r"^[ \t]+", "", data.decode(errors="replace"), flags=re.MULTILINE)
    # A line that goes on in the next one, or a section with its setting on one line, could be read
    # in another way by git.
    if re.search(r"\\$", text, re.MULTILINE) or re.search(r"^\[.*\].*\S", text, re.MULTILINE):
        return None
    try:
        reader.read_string(text)
    except (configparser.Error, ValueError):
        return None
    return {
        (section, key.casefold()): value or ""
        for section in reader.sections()
        for key, value in reader.items(section)
    }
