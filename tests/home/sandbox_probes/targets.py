"""Targets: live things outside of a sandbox that no command may reach.

python targets.py FOLDER SHARED     prints them as JSON, and keeps them until its input ends
"""

import ctypes
import json
import os
import socket
import sys
import threading
from pathlib import Path
from typing import Any

CANARY = "canary-7f3a"


def prepare(folder: Path, shared: Path) -> tuple[dict[str, Any], list[socket.socket]]:
    """Create the targets of this user; return how to reach them, and the sockets to keep."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.shmat.restype = ctypes.c_void_p
    (folder / "other" / "scratch").mkdir(parents=True)
    for path in (folder / "token", folder / "other" / "scratch" / "x"):
        path.write_text(CANARY)
        path.chmod(0o644)
    posix = Path(f"/dev/shm/probe-{os.getpid()}")
    posix.write_text(CANARY)
    abstract, key = f"probe-{os.getpid()}", 0x5B000000 + os.getpid()
    addresses = [str(folder / "sock"), str(shared / "sock"), "\0" + abstract]
    servers = [socket.socket(socket.AF_UNIX) for _ in addresses]
    for server, address in zip(servers, addresses, strict=True):
        server.bind(address)
    tcp = socket.create_server(("127.0.0.1", 0))
    for server in servers:
        server.listen(64)
    segment = libc.shmget(key, 4096, 0o1600)
    ctypes.memmove(libc.shmat(segment, None, 0), CANARY.encode(), len(CANARY))
    add_key = 217 if os.uname().machine == "aarch64" else 248
    found = {
        "dir": str(folder), "pid": os.getpid(), "key": key, "shm": segment,
        "tcp": tcp.getsockname()[1], "unix": addresses[0], "shared": addresses[1],
        "abstract": abstract, "pshm": str(posix),
        "msq": libc.msgget(key, 0o1600), "home": entries_of_home(),
        "keyid": libc.syscall(add_key, b"user", b"probe", CANARY.encode(), len(CANARY), -4),
    }  # fmt: skip
    return found, [*servers, tcp]


def entries_of_home() -> list[str]:
    """Return what lies in the user's home, but for the runtime's Python, which commands may use."""
    home = Path.home()
    if not os.access(home, os.R_OK):
        return []
    python = [Path(prefix) for prefix in (sys.prefix, sys.base_prefix)]
    return [str(p) for p in home.iterdir() if not any(q.is_relative_to(p) for q in python)]


def accept_all(server: socket.socket) -> None:
    while True:
        server.accept()


def main() -> None:
    found, servers = prepare(Path(sys.argv[1]), Path(sys.argv[2]))
    for server in servers:
        threading.Thread(target=accept_all, args=(server,), daemon=True).start()
    print(json.dumps(found), flush=True)
    sys.stdin.read()
    libc = ctypes.CDLL(None)
    libc.shmctl(found["shm"], 0, None)
    libc.msgctl(found["msq"], 0, None)
    Path(found["pshm"]).unlink()


if __name__ == "__main__":
    main()
