"""Synonyms: names that models learned for such tools as ours elsewhere, and their arguments.

A synonym says exactly which arguments it may come with and what each is called here. With any other
argument it is not read: an `offset` in lines, say, means nothing to a tool that counts bytes.
"""

from collections.abc import Mapping
from typing import Any

from agiraph.core.domain.value import dataclass

_ANY = object()
"""Any value: the argument only explains the call."""

_PATH = {"path": "path", "file_path": "path", "filepath": "path", "filename": "path"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Synonym:
    """A tool of ours under a name that models learned elsewhere."""

    tool: str
    takes: Mapping[str, str]
    """Argument names: theirs to ours."""
    void: Mapping[str, Any]
    """Arguments without effect here, with the only value that makes them so."""
    when: Mapping[str, str]
    """Arguments that must be given with this value; they choose between tools."""

    def rename(self, given: Mapping[str, Any]) -> dict[str, Any] | None:
        """Return the arguments under our names; None if one of them does not fit."""
        renamed: dict[str, Any] = {}
        if any(given.get(name) != value for name, value in self.when.items()):
            return None
        for name, value in given.items():
            if name in self.when or (name in self.void and self.void[name] in (_ANY, value)):
                continue
            ours = self.takes.get(name)
            if ours is None or ours in renamed:
                return None
            renamed[ours] = value
        return renamed


def _synonym(
    tool: str,
    takes: Mapping[str, str],
    *,
    void: Mapping[str, Any] | None = None,
    when: Mapping[str, str] | None = None,
) -> Synonym:
    return Synonym(tool=tool, takes=takes, void=void or {}, when=when or {})


_RUN = _synonym(
    "bash",
    {"command": "command", "cmd": "command", "script": "command"},
    void={"description": _ANY, "explanation": _ANY, "is_background": False},
)
_READ = _synonym("read_file", _PATH, void={"explanation": _ANY})
_WRITE = _synonym(
    "write_file",
    {**_PATH, "content": "content", "contents": "content", "file_text": "content"},
    void={"explanation": _ANY},
)
_EDIT = _synonym(
    "edit_file",
    {
        **_PATH,
        **{"old": "old", "old_string": "old", "old_str": "old"},
        **{"new": "new", "new_string": "new", "new_str": "new"},
    },
    void={"replace_all": False, "instruction": _ANY, "expected_replacements": 1},
)
_LIST = _synonym(
    "list_files",
    {"path": "path", "directory": "path", "dir_path": "path", "directory_path": "path"},
    void={"recursive": False, "explanation": _ANY},
)
_FETCH = _synonym("web_fetch", {"url": "url"})
_SEARCH = _synonym("web_search", {"query": "query", "q": "query"})
_ASK = _synonym("ask_human", {"question": "question"})

_EDITOR = (
    _synonym("read_file", {"path": "path"}, when={"command": "view"}),
    _synonym("write_file", {"path": "path", "file_text": "content"}, when={"command": "create"}),
    _synonym(
        "edit_file",
        {"path": "path", "old_str": "old", "new_str": "new"},
        when={"command": "str_replace"},
    ),
)

_BY_NAMES: tuple[tuple[str, tuple[Synonym, ...]], ...] = (
    (
        "bash shell sh terminal execute_command run_command run_shell_command shell_command "
        "run_terminal_cmd run_in_terminal execute_bash run_bash bash_command local_shell",
        (_RUN,),
    ),
    ("read view view_file open_file cat read_text_file get_file_contents", (_READ,)),
    ("write create_file write_to_file save_file new_file write_text_file", (_WRITE,)),
    ("edit str_replace replace search_replace replace_in_file string_replace", (_EDIT,)),
    ("ls list_dir list_directory list_folder", (_LIST,)),
    ("web_fetch fetch fetch_url open_url read_url browse", (_FETCH,)),
    ("web_search search_web google_search", (_SEARCH,)),
    ("ask_user ask_user_question ask_followup_question ask_question", (_ASK,)),
    ("str_replace_editor str_replace_based_edit_tool text_editor", _EDITOR),
)


def folded(name: str) -> str:
    """Return a name without regard to case and to how its words are joined."""
    return name.casefold().replace("_", "").replace("-", "").replace(" ", "")


SYNONYMS: dict[str, tuple[Synonym, ...]] = {
    folded(name): synonyms for names, synonyms in _BY_NAMES for name in names.split()
}
"""By folded name: the tools of ours that the name may stand for."""

_ELSEWHERE: tuple[tuple[str, tuple[tuple[str, str], ...]], ...] = (
    (
        "todowrite todoread todo_list update_plan update_todo_list manage_todo_list",
        (("checkpoint", "say there what is done and what comes next"),),
    ),
    (
        "task agent new_task dispatch_agent spawn_agent subagent delegate_task",
        (("assign_task", ""), ("suggest_next", "you do your task yourself")),
    ),
    (
        "glob file_search find_files glob_file_search find_by_name",
        (("bash", "such as find . -name '*.md'"), ("list_files", "")),
    ),
    (
        "grep grep_search ripgrep rg search_files codebase_search search_file_content",
        (("bash", "such as grep -rn WORD ."),),
    ),
    (
        "apply_patch apply_diff multi_edit notebook_edit patch edit_block",
        (("edit_file", "one call for each place"), ("write_file", "")),
    ),
    ("bash_output kill_shell kill_bash write_stdin", (("bash", "a command ends with its call"),)),
    ("attempt_completion exit_plan_mode submit complete_task", (("finish", ""), ("publish", ""))),
)
ELSEWHERE: dict[str, tuple[tuple[str, str], ...]] = {
    folded(name): ours for names, ours in _ELSEWHERE for name in names.split()
}
"""By folded name of a tool of another product whose arguments mean nothing here: the tools of ours
that do the same, with a remark, the best first."""
