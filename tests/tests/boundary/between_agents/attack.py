"""Attacks of one agent's command on another agent's command: each with its error number, 0 for success."""

import ctypes
import errno
import fcntl
import json
import os
import resource
import signal
import socket
import struct
import sys

libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
libc.shmat.restype = ctypes.c_void_p
with open(sys.argv[1] + "/facts") as opened:
    facts = json.load(opened)
pid, place, temp = int(sys.argv[2]), facts["place"], sys.argv[3]
own = os.environ["TMPDIR"]
# In the full tier, the private temp directory has another path.
caches = facts["caches"].replace(facts["temp"], temp, 1)
for mine in ("mine", "more", "taken"):
    with open(own + "/" + mine, "w") as made:
        made.write("mine")


def checked(answer):
    if answer is None or answer < 0:
        raise OSError(ctypes.get_errno(), "denied")
    return answer


def at(name):
    return place + "/" + name


def there(name):
    """Skips attacks on an object that the victim could not make."""
    if facts[name] is None:
        raise OSError(errno.ENODATA, "it is not there")
    return facts[name]


def write(path, mode="r+", text="lost"):
    with open(path, mode) as opened:
        opened.write(text)


def read(path, size=4):
    with open(path, "rb") as opened:
        if not opened.read(size):
            raise OSError(errno.ENODATA, "nothing to read")


def send(kind, address):
    made = socket.socket(socket.AF_INET if isinstance(address, tuple) else socket.AF_UNIX, kind)
    made.settimeout(3)
    try:
        made.connect(address)
        made.send(b"lost")
    except TimeoutError as late:
        raise OSError(errno.ETIMEDOUT, "nobody answers") from late


def opened(path, flags, act):
    descriptor = os.open(path, flags)
    try:
        return act(descriptor)
    finally:
        os.close(descriptor)


def in_a_child(act):
    """Carries out an action in a child process, so that effects on the process end with it."""
    child = os.fork()
    if child == 0:
        try:
            act()
            os._exit(0)
        except OSError as error:
            os._exit(error.errno)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if code:
        raise OSError(code, "denied")


class Vector(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("size", ctypes.c_size_t)]


def memory(call):
    buffer = ctypes.create_string_buffer(b"kept in memory")
    local, remote = Vector(ctypes.addressof(buffer), 14), Vector(facts["address"], 14)
    checked(call(pid, ctypes.byref(local), 1, ctypes.byref(remote), 1, 0))


def proc_memory(path):
    def look(descriptor):
        os.pread(descriptor, 4, facts["address"])

    opened(path, os.O_RDONLY, look)


def with_pidfd(act):
    descriptor = os.pidfd_open(pid)
    try:
        checked(act(descriptor))
    finally:
        os.close(descriptor)


def watch():
    watcher = checked(libc.inotify_init1(os.O_NONBLOCK))
    checked(libc.inotify_add_watch(watcher, place.encode(), 0xFFF))
    os.close(watcher)


def lock(kind):
    def take(descriptor):
        fcntl.fcntl(descriptor, 6, struct.pack("hhlli4x", kind, 0, 0, 0, 0))

    opened(at("file"), os.O_RDONLY, take)


def message():
    buffer = ctypes.create_string_buffer(64)
    checked(libc.msgrcv(facts["messages"], buffer, 16, 0, 0o4000))


def queue():
    libc.mq_open.restype = ctypes.c_int
    os.close(checked(libc.mq_open(there("queue").encode(), os.O_RDWR)))


def poison(path):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    write(path, "w")


def attach():
    """shmat(2) returns a pointer of all ones for an error."""
    attached = libc.shmat(facts["segment"], None, 0)
    checked(-1 if attached == 2**64 - 1 else 0)
    ctypes.memmove(attached, b"lost", 4)


IOPRIO_SET = 30 if os.uname().machine == "aarch64" else 251
proc = f"/proc/{pid}/"
acts = {
    # Attacks on the process of the victim.
    "signal_0": lambda: os.kill(pid, 0),
    "signal_term": lambda: os.kill(pid, signal.SIGTERM),
    "signal_group": lambda: os.killpg(os.getpgid(pid), signal.SIGUSR1),
    "signal_thread": lambda: checked(libc.tgkill(pid, pid, signal.SIGUSR1)),
    "signal_pidfd": lambda: with_pidfd(lambda of: libc.syscall(424, of, signal.SIGTERM, None, 0)),
    "pidfd_getfd": lambda: with_pidfd(lambda of: libc.syscall(438, of, facts["descriptor"], 0)),
    "ptrace": lambda: in_a_child(lambda: checked(libc.ptrace(0x4206, pid, None, None))),
    "vm_read": lambda: memory(libc.process_vm_readv),
    "vm_write": lambda: memory(libc.process_vm_writev),
    "limits": lambda: resource.prlimit(pid, resource.RLIMIT_NOFILE),
    "proc_mem": lambda: proc_memory(proc + "mem"),
    "proc_environ": lambda: read(proc + "environ"),
    "proc_maps": lambda: read(proc + "maps"),
    "proc_fd_list": lambda: os.listdir(proc + "fd"),
    "proc_fd_open": lambda: read(proc + f"fd/{facts['descriptor']}"),
    "proc_cwd": lambda: os.readlink(proc + "cwd"),
    "proc_exe": lambda: os.readlink(proc + "exe"),
    "proc_root": lambda: os.listdir(proc + "root/"),
    "proc_oom": lambda: write(proc + "oom_score_adj", text="100"),
    "command_line": lambda: read(proc + "cmdline"),
    "status": lambda: read(proc + "status"),
    "priority": lambda: os.setpriority(os.PRIO_PROCESS, pid, os.getpriority(os.PRIO_PROCESS, pid) + 1),
    "affinity": lambda: os.sched_setaffinity(pid, os.sched_getaffinity(0)),
    "scheduler": lambda: os.sched_setscheduler(pid, os.SCHED_BATCH, os.sched_param(0)),
    "io_priority": lambda: checked(libc.syscall(IOPRIO_SET, 1, pid, 3 << 13)),
    # Kernel objects other than files that agents share.
    "abstract_socket": lambda: send(socket.SOCK_STREAM, "\0" + facts["name"]),
    "loopback": lambda: send(socket.SOCK_STREAM, ("127.0.0.1", facts["port"])),
    "segment": attach,
    "segment_by_key": lambda: checked(libc.shmget(facts["key"], 0, 0)),
    "semaphore": lambda: checked(libc.semop(facts["semaphore"], struct.pack("Hhh", 0, 1, 0o4000), 1)),
    "messages": message,
    "queue": queue,
    "shared_memory": lambda: write(there("memory")),
    "terminal": lambda: opened(there("terminal"), os.O_WRONLY | os.O_NOCTTY, lambda of: os.write(of, b"lost\n")),
    # Private directories of the victim.
    "temp_list": lambda: os.listdir(temp),
    "temp_read": lambda: read(temp + "/secret"),
    "temp_create": lambda: write(temp + "/new", "w"),
    "temp_link": lambda: os.link(temp + "/secret", own + "/linked"),
    "package_cache": lambda: poison(caches + "/poison"),
    "home_cache": lambda: poison(facts["home"] + "/.cache/poison/x"),
    # Objects in the victim's write root.
    "stream_socket": lambda: send(socket.SOCK_STREAM, at("socket")),
    "datagram_socket": lambda: send(socket.SOCK_DGRAM, at("datagrams")),
    "fifo_write": lambda: opened(at("fifo"), os.O_WRONLY | os.O_NONBLOCK, lambda of: os.write(of, b"lost")),
    "fifo_read": lambda: opened(at("fifo"), os.O_RDONLY | os.O_NONBLOCK, lambda of: os.read(of, 1)),
    "lease": lambda: opened(at("file"), os.O_RDONLY, lambda of: fcntl.fcntl(of, 1024, fcntl.F_RDLCK)),
    "notify": lambda: opened(place, os.O_RDONLY, lambda of: fcntl.fcntl(of, 1026, 4)),
    "watch": watch,
    "file_lock": lambda: opened(at("file"), os.O_RDONLY, lambda of: fcntl.flock(of, fcntl.LOCK_EX | fcntl.LOCK_NB)),
    "read_lock": lambda: lock(fcntl.F_RDLCK),
    "write": lambda: write(at("file")),
    "truncate": lambda: os.truncate(at("file"), 0),
    "chmod": lambda: os.chmod(at("file"), 0o666),
    "utime": lambda: os.utime(at("file")),
    "create": lambda: write(at("new"), "w"),
    "mkdir": lambda: os.mkdir(at("made")),
    "symlink": lambda: os.symlink("/", at("link")),
    "link_in": lambda: os.link(own + "/more", at("linked")),
    "rename_in": lambda: os.rename(own + "/mine", at("moved")),
    "rename_out": lambda: os.rename(at("file"), own + "/gone"),
    "unlink": lambda: os.unlink(at("socket")),
    "rmdir": lambda: os.rmdir(at("dir")),
}
came_of = {}
for name, act in acts.items():
    try:
        act()
        came_of[name] = 0
    except OSError as error:
        came_of[name] = error.errno
print("tried " + json.dumps(came_of))
