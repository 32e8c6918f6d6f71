"""Given folders: which folders of a person can be given to a team, and what is kept of them."""

import os
import socket
from pathlib import Path

import pytest

from agiraph.core.domain.agents import GivenFolder
from agiraph.core.domain.errors import NotFound, Refused
from agiraph.sandbox.folders import given_folders
from agiraph.sandbox.folders.folder_history import FolderHistory

HOME = Path("/nowhere/agiraph")


def given(folder: Path, access: str = "rw") -> GivenFolder:
    [one] = given_folders.check(HOME, [f"{folder}:{access}"])
    return one


def test_a_folder_is_given_to_read_unless_a_person_says_otherwise(tmp_path: Path) -> None:
    (tmp_path / "My app").mkdir()
    (tmp_path / "b" / "My app").mkdir(parents=True)
    found = given_folders.check(HOME, [str(tmp_path / "My app"), f"{tmp_path}/b/My app:rw"])
    assert [(one.name, one.access) for one in found] == [("My-app", "ro"), ("My-app-2", "rw")]
    assert found[0].path == str((tmp_path / "My app").resolve())
    named = {"mine": f"{tmp_path}/My app:rw"}
    assert given_folders.check(HOME, ["mine"], named)[0].access == "rw"


def test_a_folder_with_keys_or_of_others_is_refused_with_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    user, home = tmp_path / "user", tmp_path / "user" / "agiraph"
    for folder in (home / "teams", user / ".ssh", user / "app" / ".git", tmp_path / "out"):
        folder.mkdir(parents=True)
    (user / "file").touch()
    (user / "link").symlink_to(user / ".ssh")
    monkeypatch.setenv("HOME", str(user))
    said = {
        "/": "holds agiraph's own files",
        str(user): "holds agiraph's own files",
        str(home): "holds agiraph's own files",
        str(home / "teams"): "lies in them",
        str(tmp_path): "holds agiraph's own files",
        str(user / ".ssh"): "keys and settings",
        str(user / "link"): "keys and settings",
        str(user / "file"): "is not a folder",
        str(user / "none"): "No such file or directory",
        "app": "is neither an absolute path nor a name",
        "": "is neither an absolute path nor a name",
        "/usr/lib": "belongs to the system",
        "/var/log": "belongs to the system",
    }
    for path, why in said.items():
        if os.geteuid() != 0 and path in ("/", "/usr/lib", "/var/log"):
            why = "belongs to another user"
        with pytest.raises(Refused, match=why):
            given_folders.check(home, [path])
    monkeypatch.setattr(os, "geteuid", lambda: 4242)
    with pytest.raises(Refused, match="belongs to another user"):
        given_folders.check(home, [str(user / "app")])


def test_the_home_of_the_user_cannot_be_given_wherever_agiraph_lies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "user" / "app").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(tmp_path / "user"))
    with pytest.raises(Refused, match="holds your whole home"):
        given_folders.check(HOME, [str(tmp_path / "user")])
    with pytest.raises(Refused, match="overlap"):
        given_folders.check(HOME, [str(tmp_path / "user" / "app")] * 2)


def test_sockets_in_a_folder_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # the path of a socket is short
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("agent.sock")
        assert given_folders.sockets([given(tmp_path)]) == [f"{tmp_path}/agent.sock"]


@pytest.mark.parametrize("swapped", ["project", "project/data"])
def test_a_link_in_the_place_of_a_given_folder_or_around_it_is_not_followed(
    tmp_path: Path, swapped: str
) -> None:
    data, secret = tmp_path / "project" / "data", tmp_path / "home" / "data"
    for folder in (data, secret):
        folder.mkdir(parents=True)
        (folder / "token").write_text(str(folder))
    one = given(data)
    with given_folders.open_folder(one) as opened:
        assert opened.read("token", limit=1000) == str(data).encode()
    history = FolderHistory(tmp_path / "team", one)

    (tmp_path / swapped).rename(tmp_path / "moved")
    (tmp_path / swapped).symlink_to(secret if swapped.endswith("data") else secret.parent)

    with pytest.raises(Refused, match="folders/data cannot be opened: a symbolic link has taken"):
        given_folders.open_folder(one)
    for follow in (history.scan, lambda: history.copy("token")):
        with pytest.raises(OSError, match="symbolic links"):
            follow()


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    (folder / "src").mkdir(parents=True)
    (folder / "src" / "a.py").write_text("a = 1\n")
    (folder / "run.sh").write_text("echo\n")
    (folder / "run.sh").chmod(0o755)
    (folder / "latest").symlink_to("src/a.py")
    (folder / "node_modules").mkdir()
    (folder / "node_modules" / "x.js").write_text("x")
    return folder


def history_of(project: Path) -> FolderHistory:
    return FolderHistory(project.parent / "team", given(project))


def test_every_change_is_found_and_can_be_put_back(project: Path) -> None:
    history = history_of(project)
    assert history.scan() == []  # what is there at first, the person has made
    assert history.scan() == []
    assert history.left_out == ["node_modules"]

    (project / "src" / "a.py").write_text("a = 2\n")
    (project / "run.sh").chmod(0o644)
    (project / "latest").unlink()
    (project / "new" / "deep").mkdir(parents=True)
    (project / "new" / "deep" / "b").write_text("b")
    changes = history.scan()
    assert [(c.path, c.before is None, c.after is None) for c in changes] == [
        ("latest", False, True),
        ("new/deep/b", True, False),
        ("run.sh", False, False),
        ("src/a.py", False, False),
    ]
    for path, before, _ in changes:
        history.restore(path, before)
    assert (project / "src" / "a.py").read_text() == "a = 1\n"
    assert (project / "run.sh").stat().st_mode & 0o777 == 0o755
    assert (project / "latest").readlink() == Path("src/a.py")
    assert not (project / "new" / "deep" / "b").exists()


def test_a_change_is_found_although_its_time_was_set_back(project: Path) -> None:
    history = history_of(project)
    history.scan()
    file = project / "src" / "a.py"
    then = file.stat()
    file.write_text("a = 9\n")
    os.utime(file, ns=(then.st_atime_ns, then.st_mtime_ns))
    assert [change.path for change in history.scan()] == ["src/a.py"]


def test_no_link_leads_a_scan_or_an_undo_out_of_the_folder(project: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "key").write_text("secret")
    history = history_of(project)
    history.scan()
    (project / "away").symlink_to(outside)
    os.mkfifo(project / "pipe")
    assert [(c.path, (c.after or "").split(" ")[0]) for c in history.scan()] == [
        ("away", "link"),
        ("pipe", "uncopied"),
    ]
    (project / "src" / "a.py").unlink()
    (project / "src").rmdir()
    (project / "src").symlink_to(outside)
    with pytest.raises(Refused, match="is a link or a file now"):
        _restore_a(history)
    assert (outside / "key").read_text() == "secret"
    assert [path.name for path in outside.iterdir()] == ["key"]


def _restore_a(history: FolderHistory) -> None:
    [before] = [c.before for c in history.scan() if c.path == "src/a.py"]
    history.restore("src/a.py", before)


def test_copies_that_nothing_needs_are_removed(project: Path) -> None:
    history = history_of(project)
    history.scan()
    (project / "src" / "a.py").write_text("a = 2\n")
    [(_, before, after)] = history.scan()
    assert before is not None
    assert after is not None
    assert history.remove_copies(used={before}) == 0
    assert history.content(before) == b"a = 1\n"
    assert history.remove_copies(used=set()) == 1
    assert history.content(after) == b"a = 2\n"
    with pytest.raises(NotFound, match="old copies are removed"):
        history.content(before)
