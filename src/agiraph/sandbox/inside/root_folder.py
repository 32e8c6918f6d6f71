"""Root folder: builds the file system that a command sees, on a tmpfs with what it is given.

Nothing of the machine is visible but the listed paths. The supervisor loads this file by its path,
without the package.
"""

# ruff: noqa: PTH102, PTH103, PTH110, PTH112, PTH114, PTH115, PTH120, PTH123
# ruff: noqa: PTH211 - pathlib takes too long to import

import os

TYPE_CHECKING = False  # typing takes long to import
if TYPE_CHECKING or __package__:
    from agiraph.sandbox.inside import kernel
else:
    import kernel
if TYPE_CHECKING:
    from typing import Any

PLACE = "/tmp"
"""Where the new root is built. Any folder will do: in this mount namespace nobody else sees it."""
LINKS = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")
"""Links or folders of the root folder that programs need."""
DEVICES = ("null", "zero", "full", "random", "urandom", "tty")
"""The harmless devices. Root could read the home through the device of its disk."""
DEVICE_LINKS = {
    "fd": "/proc/self/fd", "stdin": "fd/0", "stdout": "fd/1", "stderr": "fd/2",
}  # fmt: skip
FLEETING = ("/tmp", "/run", "/var/tmp")
"""Folders that are empty, writable and gone with the command."""
SHARED_MEMORY = "/dev/shm"
IN_MEMORY = (*FLEETING, SHARED_MEMORY)
IN_WRITABLE = tuple(f"{folder}/" for folder in IN_MEMORY)
KERNEL_FILES = ("/proc/sys", "/proc/sysrq-trigger", "/proc/irq", "/proc/bus", "/proc/fs")
"""Files by which root could change the machine without any capability."""


class Tree:
    """A detached mount, and the path at which the command sees it."""

    def __init__(
        self, source: str, target: str, *, is_system: bool = False, is_held: bool = False
    ) -> None:
        self.is_system = is_system
        self.is_held = is_held
        self.descriptor: int = kernel.clone_tree(source, is_held=is_held)
        self.target: str = target
        self.is_folder: bool = os.fstat(self.descriptor).st_mode & 0o170000 == 0o040000


def take(spec: "dict[str, Any]", id_maps: "dict[int, int]") -> list[Tree]:
    """Return detached mounts of all that the command sees, outer folders before inner ones.

    They are taken while the machine's file system is visible. `id_maps` are user namespaces by the
    owner whose files they show as the command's own.
    """
    safe = kernel.NO_SETUID | kernel.NO_DEVICES
    trees: list[Tree] = []
    system: list[str] = spec["system"]
    for path in [path for path in system if os.path.exists(path)]:
        trees.append(tree := Tree(os.path.realpath(path), path, is_system=True))
        kernel.set_attributes(tree.descriptor, path, safe | kernel.READ_ONLY)
    given = [(path, path, False) for path in spec["readable"]]
    for source, target, is_writable in (*given, *spec["mounts"]):
        try:
            tree = Tree(source, target, is_system=(source, target, is_writable) in given)
        except OSError:
            # A readable path may have gone since the view was made, or is a link. Without its
            # writable folder a command would lose its work.
            if is_writable:
                raise
            continue
        adapt(tree, source, safe | (0 if is_writable else kernel.READ_ONLY), id_maps)
        trees.append(tree)
    for path, is_writable in spec["held"]:
        # Without one of them the command must not run: it could change what is read-only here.
        trees.append(tree := Tree(path, path, is_held=True))
        adapt(tree, path, safe | (0 if is_writable else kernel.READ_ONLY), id_maps)
    return sorted(trees, key=lambda tree: (tree.target.count("/"), tree.target))


def adapt(tree: Tree, source: str, attributes: int, id_maps: "dict[int, int]") -> None:
    """Set the attributes of a tree, and show its owner as the command's user."""
    kernel.set_attributes(tree.descriptor, source, attributes)
    owner = os.fstat(tree.descriptor).st_uid
    if owner in id_maps:
        kernel.set_attributes(tree.descriptor, source, kernel.ID_MAPPED, id_maps[owner])


def build(spec: "dict[str, Any]", trees: list[Tree]) -> None:
    """Mount a new root at `PLACE` with all trees in it."""
    devices = [Tree(p, p) for name in DEVICES if os.path.exists(p := f"/dev/{name}")]
    kernel.mount(b"tmpfs", PLACE, kernel.MS_NOSUID | kernel.MS_NODEV, b"size=8m,mode=755")
    # Before the trees: the home may lie in one of these folders.
    for path in FLEETING:
        os.makedirs(PLACE + path)
        empty(PLACE + path, spec["tmp_mib"])
    build_devices(devices, spec["tmp_mib"])
    make_links(spec["links"])
    for path, text in spec["files"].items():
        os.makedirs(os.path.dirname(PLACE + path), exist_ok=True)
        with open(PLACE + path, "w") as file:
            file.write(text)
    place_all(spec, trees)
    os.makedirs(PLACE + "/proc", exist_ok=True)


def place_all(spec: "dict[str, Any]", trees: list[Tree]) -> None:
    """Mount the trees into the new root. The home and the database may lie in a folder of the
    system, or in one that is writable: there they are covered before the parts that the command
    sees are mounted. Else a command could write beside them, where nothing is kept."""
    for tree in [tree for tree in trees if tree.is_system]:
        kernel.place(tree.descriptor, make_room(tree))
    for path in spec["masked"]:
        if path.startswith(IN_WRITABLE) and any(t.target.startswith(f"{path}/") for t in trees):
            os.makedirs(PLACE + path, exist_ok=True)
    masked = [PLACE + path for path in spec["masked"] if os.path.lexists(PLACE + path)]
    for path in masked:
        if os.path.isdir(path):
            kernel.mount(b"tmpfs", path, kernel.MS_NOSUID | kernel.MS_NODEV, b"size=4m,mode=755")
        else:
            cover(path)
    for tree in [tree for tree in trees if not tree.is_system]:
        if tree.is_held:
            kernel.place_over(tree.descriptor, PLACE + tree.target)
        else:
            kernel.place(tree.descriptor, make_room(tree))
    for path in spec["hidden"]:
        cover(PLACE + path)
    for path in [path for path in masked if os.path.isdir(path)]:
        kernel.freeze_mount(path)


def in_memory(readable: list[str]) -> tuple[str, ...]:
    """Return the folders in memory, without those that lie under a folder given to be read: what
    is stored there is the machine's."""
    given = tuple(f"{path}/" for path in readable)
    return tuple(path for path in IN_MEMORY if not f"{path}/".startswith(given))


def empty(path: str, mib: int) -> None:
    """Mount an empty tmpfs, which the kernel removes with the namespace."""
    # The pages of a tmpfs belong to no process, so no limit of memory sees them: `size` bounds
    # them.
    options = f"size={mib}m,nr_inodes=100k,mode=1777".encode()
    kernel.mount(b"tmpfs", path, kernel.MS_NOSUID | kernel.MS_NODEV, options)


def build_devices(devices: list[Tree], mib: int) -> None:
    os.mkdir(PLACE + "/dev")
    # Not sticky: in a sticky folder the kernel refuses O_CREAT on devices of other users.
    kernel.mount(b"tmpfs", PLACE + "/dev", kernel.MS_NOSUID, b"size=64k,mode=755")
    for device in devices:
        kernel.place(device.descriptor, make_room(device))
    for name, target in DEVICE_LINKS.items():
        os.symlink(target, f"{PLACE}/dev/{name}")
    os.mkdir(PLACE + SHARED_MEMORY)
    empty(PLACE + SHARED_MEMORY, min(mib, 64))
    os.mkdir(PLACE + "/dev/pts")
    try:
        flags = kernel.MS_NOSUID | kernel.MS_NOEXEC
        kernel.mount(b"devpts", PLACE + "/dev/pts", flags, b"newinstance,ptmxmode=0666")
        os.symlink("pts/ptmx", PLACE + "/dev/ptmx")
    except OSError:
        pass  # some containers forbid it; then no command can open a terminal


def make_links(given: dict[str, str]) -> None:
    for name in LINKS:
        if os.path.islink(f"/{name}"):
            os.symlink(os.readlink(f"/{name}"), f"{PLACE}/{name}")
    for path, target in given.items():
        os.makedirs(os.path.dirname(PLACE + path), exist_ok=True)
        os.symlink(target, PLACE + path)


def make_room(tree: Tree) -> str:
    """Return where a file or folder is mounted in the new root; make a missing mount point."""
    path = PLACE + tree.target
    os.makedirs(path if tree.is_folder else os.path.dirname(path), exist_ok=True)
    if not tree.is_folder and not os.path.lexists(path):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL, 0o600))
    return path


def cover(path: str) -> None:
    """Mount something empty over a file or folder of the new root; a link is left alone, since it
    leads to a path that is covered itself or not visible."""
    if os.path.islink(path) or not os.path.lexists(path):
        return
    if os.path.isdir(path):
        kernel.mount(b"tmpfs", path, kernel.MS_NOSUID, b"size=4k,mode=0555")
        return kernel.freeze_mount(path)
    blank = PLACE + "/.hidden"
    if not os.path.exists(blank):
        os.close(os.open(blank, os.O_CREAT | os.O_EXCL, 0))
    over = kernel.clone_tree(blank)
    kernel.set_attributes(over, path, kernel.READ_ONLY)
    return kernel.place(over, path)


def show_processes(at: str) -> None:
    """Mount a /proc that shows this pid namespace alone, with the kernel's settings read-only."""
    flags = kernel.MS_NOSUID | kernel.MS_NODEV | kernel.MS_NOEXEC
    kernel.mount(b"proc", at + "/proc", flags)


def freeze_settings(at: str) -> None:
    """Make the kernel's settings in /proc read-only."""
    for path in KERNEL_FILES:
        if os.path.exists(at + path):
            kernel.freeze(at + path)
