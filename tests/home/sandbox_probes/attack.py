"""Attack: tries every way out from inside of a sandbox; prints what was open, as JSON.

It is copied into the scratch folder and run there by /usr/bin/python3, so it imports nothing of
ours. Its argument is the JSON of `targets.Targets`. Nothing is changed outside, only opened.
"""

# ruff: noqa: PTH103, PTH108, PTH110, PTH116, PTH123, PTH208, SIM115

import ctypes
import errno
import fcntl
import json
import os
import resource
import socket
import struct
import sys

libc = ctypes.CDLL(None, use_errno=True)
libc.shmat.restype = ctypes.c_void_p
IS_ARM = os.uname().machine == "aarch64"
CANARY = "canary-7f3a"
CLONE_NEWUSER = 0x10000000


def call(arm, x86, *arguments):
    given = [ctypes.c_long(a) if isinstance(a, int) else a for a in arguments]
    result = libc.syscall(ctypes.c_long(arm if IS_ARM else x86), *given)
    if result < 0:
        raise OSError(ctypes.get_errno(), "")
    return result


def opened(path, flags=os.O_RDONLY):
    os.close(os.open(path, flags | os.O_NONBLOCK))
    return path


def read(path):
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return b""


def connected(family, address, protocol=0):
    own = socket.socket(family, socket.SOCK_STREAM, protocol)
    own.settimeout(2)
    own.connect(address)
    return "connected"


def in_child(attempt):
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            attempt()
            os.write(writer, b"ok")
        except OSError as error:
            os.write(writer, b"%d" % error.errno)
        os._exit(0)
    os.waitpid(pid, 0)
    said = os.read(reader, 9)
    if said == b"ok":
        return "done"
    raise OSError(int(said), "")


def of_processes(name, word):
    pids = filter(str.isdigit, os.listdir("/proc"))
    return [pid for pid in pids if word in read(f"/proc/{pid}/{name}")]


def files(t):
    yield "file: token", lambda: open(t["dir"] + "/token").read()
    yield "file: other team", lambda: open(t["dir"] + "/other/scratch/x").read()
    yield "file: write outside", lambda: opened(t["dir"] + "/token", os.O_WRONLY)
    yield "file: /etc/shadow", lambda: opened("/etc/shadow")
    for path in t["home"]:
        yield "file: home of user", lambda path=path: opened(path)


def network(t):
    yield "unix: path", lambda: connected(1, t["unix"])
    yield "unix: in a given folder", lambda: connected(1, t["shared"])
    yield "unix: abstract", lambda: connected(1, "\0" + t["abstract"])
    here = ("127.0.0.1", t["tcp"])
    yield "net: loopback tcp", lambda: connected(2, here)

    def route():
        own = socket.socket(2, 2)
        own.connect(("192.0.2.1", 9))
        return own.getsockname()

    def fast_open():
        own = socket.socket()
        return own.sendto(b"x", 0x20000000, here) and own.getpeername()

    yield "net: route out (udp)", route
    yield "net: tcp by fast open", fast_open
    yield "net: mptcp", lambda: connected(2, here, 262)
    yield "net: vsock", lambda: socket.socket(40, 1)
    yield "net: packet", lambda: socket.socket(17, 3, 0x300)
    yield "net: alg", lambda: socket.socket(38, 5, 0)


def shared_memory(t):
    def attach():
        number = libc.shmget(t["key"], 0, 0)
        place = libc.shmat(number if number >= 0 else t["shm"], None, 0o10000)
        if place in (None, 2**64 - 1):
            raise OSError(ctypes.get_errno() or errno.EINVAL, "")
        return ctypes.string_at(place, len(CANARY)).decode() == CANARY

    def queue():
        if libc.msgget(t["key"], 0) < 0:
            raise OSError(ctypes.get_errno(), "")
        return "queue"

    def key():
        buffer = ctypes.create_string_buffer(64)
        return buffer.raw[: call(219, 250, 11, t["keyid"], buffer, 64)]

    yield "ipc: sysv shm", attach
    yield "ipc: posix shm", lambda: open(t["pshm"]).read()
    yield "ipc: sysv queue", queue
    yield "keyring: read by id", key
    yield "keyring: session", lambda: call(219, 250, 0, -3, 0)


def processes(t):
    pid = t["pid"]

    def vm_read():
        class Vector(ctypes.Structure):
            _fields_ = [("base", ctypes.c_void_p), ("size", ctypes.c_size_t)]

        start = int(read(f"/proc/{pid}/maps").split(b"-")[0] or b"1000", 16)
        buffer = ctypes.create_string_buffer(8)
        own, other = Vector(ctypes.addressof(buffer), 8), Vector(start, 8)
        return call(270, 310, pid, ctypes.byref(own), 1, ctypes.byref(other), 1, 0)

    yield "proc: other environ", lambda: of_processes("environ", CANARY.encode())
    yield "proc: other cmdlines", lambda: of_processes("cmdline", b"targets.py\0")
    yield "proc: /proc/PID/root", lambda: open(f"/proc/{pid}/root{t['dir']}/token").read()
    yield "proc: /proc/PID/mem", lambda: opened(f"/proc/{pid}/mem")
    yield "signal: kill 0", lambda: os.kill(pid, 0) is None
    yield "signal: pidfd", lambda: os.close(os.pidfd_open(pid)) is None
    yield "ptrace: seize", lambda: call(117, 101, 0x4206, pid, 0, 0) == 0
    yield "ptrace: process_vm_readv", vm_read
    yield "prlimit of other", lambda: resource.prlimit(pid, 7)
    yield "setpriority of other", lambda: os.setpriority(0, pid, os.getpriority(0, pid)) is None


def kernel(t):
    def log():
        buffer = ctypes.create_string_buffer(4096)
        return call(116, 103, 3, buffer, 4096)

    def node():
        os.mknod("node", 0o60600, os.stat("/proc/self/exe").st_dev)
        try:
            return opened("node")
        finally:
            os.unlink("node")

    def by_handle():
        handle = ctypes.create_string_buffer(struct.pack("IiII", 8, 1, 2, 0))
        return call(265, 304, os.open("/", os.O_RDONLY), handle, 0)

    bpf = struct.pack("IIII", 2, 4, 4, 1).ljust(120, b"\0")
    perf = struct.pack("IIQ", 1, 128, 0).ljust(128, b"\0")
    yield "proc: write sysctl", lambda: opened("/proc/sys/kernel/core_pattern", os.O_WRONLY)
    yield "proc: sysrq", lambda: opened("/proc/sysrq-trigger", os.O_WRONLY)
    yield "proc: kmsg", lambda: opened("/proc/kmsg")
    yield "sys: read", lambda: opened("/sys/kernel/uevent_seqnum")
    yield "sys: cgroup.procs", lambda: opened("/sys/fs/cgroup/cgroup.procs", os.O_WRONLY)
    yield "dmesg: syslog", log
    yield "dmesg: /dev/kmsg", lambda: opened("/dev/kmsg")
    yield "dev: disk", lambda: [opened(p) for p in ("/dev/vda", "/dev/sda") if os.path.exists(p)]
    yield "dev: mknod + open", node
    yield "kernel: io_uring", lambda: call(425, 425, 1, ctypes.create_string_buffer(120))
    yield "kernel: bpf", lambda: call(280, 321, 0, ctypes.create_string_buffer(bpf), 120)
    yield "kernel: perf", lambda: call(241, 298, ctypes.create_string_buffer(perf), 0, -1, -1, 0)
    yield "kernel: userfaultfd", lambda: call(282, 323, 1)
    yield "kernel: open_by_handle_at", by_handle


def privileges(t):
    def clone3():
        given = struct.pack("QQQQQQQQ", CLONE_NEWUSER, 0, 0, 0, 17, 0, 0, 0)
        if call(435, 435, ctypes.create_string_buffer(given), 64) == 0:
            os._exit(0)

    def mount():
        os.makedirs("mnt", exist_ok=True)
        call(40, 165, b"x", b"mnt", b"tmpfs", 0, 0)

    def plant(*, by_open):
        made = os.open("setuid", os.O_CREAT | os.O_RDWR, 0o4755 if by_open else 0o755)
        try:
            if not by_open:
                os.fchmod(made, 0o4755)
            return os.fstat(made).st_mode & 0o4000
        finally:
            os.unlink("setuid")

    def status(name):
        lines = open("/proc/self/status").read().splitlines()
        return next(line.split()[1] for line in lines if line.startswith(name))

    yield "priv: user namespace", lambda: in_child(lambda: call(97, 272, CLONE_NEWUSER))
    yield "priv: userns by clone3", lambda: in_child(clone3)
    yield "priv: mount", lambda: in_child(mount)
    yield "priv: capabilities", lambda: int(status("CapEff"), 16)
    yield "priv: new privileges", lambda: status("NoNewPrivs") == "0"
    yield "priv: setuid file by chmod", lambda: plant(by_open=False)
    yield "priv: setuid file by open", lambda: plant(by_open=True)
    yield "tty: TIOCSTI", lambda: [fcntl.ioctl(os.open("/dev/tty", os.O_RDWR), 0x5412, b"#")]
    yield "env: canary", lambda: [name for name, value in os.environ.items() if CANARY in value]


def main():
    targets = json.loads(sys.argv[1])
    found = []
    for group in (files, network, shared_memory, processes, kernel, privileges):
        for name, attempt in group(targets):
            try:
                is_open = bool(attempt())
            except (OSError, KeyError, ValueError, StopIteration):
                is_open = False
            if is_open:
                found.append(name)
    print(json.dumps(sorted(set(found))))


if __name__ == "__main__":
    main()
