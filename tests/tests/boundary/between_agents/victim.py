"""The victim: an agent's command that makes objects in a directory, reports their places, and in the end reports
how the objects have changed."""

import ctypes
import fcntl
import json
import os
import signal
import socket
import struct
import sys
import time

libc = ctypes.CDLL(None, use_errno=True)
os.chdir(sys.argv[1])
temp = os.environ["TMPDIR"]
name = "between-" + os.urandom(6).hex()
signals = []
for number in (signal.SIGTERM, signal.SIGUSR1):
    signal.signal(number, lambda number, _: signals.append(number))


def bound(kind, address):
    made = socket.socket(socket.AF_INET if isinstance(address, tuple) else socket.AF_UNIX, kind)
    made.bind(address)
    if kind == socket.SOCK_STREAM:
        made.listen()
    made.setblocking(False)
    return made


def tried(make):
    """Makes an object. Returns None if this tier denies that to everybody."""
    try:
        return make()
    except OSError:
        return None


def shared_memory():
    place = "/dev/shm/" + name
    with open(place, "w") as made:
        made.write("kept")
    return place


def new_terminal():
    """Opens a new terminal. Engines make /dev/ptmx a link to devpts; a container of namespaces has only devpts."""
    try:
        return os.openpty()
    except OSError:
        master = os.open("/dev/pts/ptmx", os.O_RDWR | os.O_NOCTTY)
        # TIOCSPTLCK and TIOCGPTN of ioctl_tty(2).
        fcntl.ioctl(master, 0x40045431, struct.pack("i", 0))
        number = struct.unpack("i", fcntl.ioctl(master, 0x80045430, bytes(4)))[0]
        return master, os.open(f"/dev/pts/{number}", os.O_RDWR | os.O_NOCTTY)


def queue():
    libc.mq_open.restype = ctypes.c_int
    made = libc.mq_open(("/" + name).encode(), os.O_CREAT | os.O_RDWR, 0o600, None)
    if made < 0:
        raise OSError(ctypes.get_errno(), "mq_open")
    return "/" + name


with open("file", "w") as made:
    made.write("kept")
os.mkdir("dir")
with open(temp + "/secret", "w") as made:
    made.write("kept")
os.mkfifo("fifo")
fifo = os.open("fifo", os.O_RDWR | os.O_NONBLOCK)
os.write(fifo, b"kept")
stream, datagrams = bound(socket.SOCK_STREAM, "socket"), bound(socket.SOCK_DGRAM, "datagrams")
abstract, port = bound(socket.SOCK_STREAM, "\0" + name), bound(socket.SOCK_STREAM, ("127.0.0.1", 0))
key = int.from_bytes(os.urandom(4), "big") & 0x7FFFFFFF
segment, semaphore, messages = libc.shmget(key, 4096, 0o1600), libc.semget(key, 1, 0o1600), libc.msgget(key, 0o1600)
libc.shmat.restype = ctypes.c_void_p
attached = libc.shmat(segment, None, 0)
ctypes.memmove(attached, b"kept", 4)
message = ctypes.create_string_buffer(b"\1\0\0\0\0\0\0\0kept")
libc.msgsnd(messages, message, 4, 0)
secret = ctypes.create_string_buffer(b"kept in memory")
terminal = tried(new_terminal)
if terminal:
    os.set_blocking(terminal[0], False)
facts = {
    "place": os.getcwd(),
    "temp": temp,
    "caches": os.environ.get("GOCACHE", temp + "/go-build"),
    "home": os.path.expanduser("~"),
    "name": name,
    "port": port.getsockname()[1],
    "key": key,
    "segment": segment,
    "semaphore": semaphore,
    "messages": messages,
    "address": ctypes.addressof(secret),
    "descriptor": os.open(temp + "/secret", os.O_RDONLY),
    "memory": tried(shared_memory),
    "queue": tried(queue),
    "terminal": os.ttyname(terminal[1]) if terminal else None,
}
with open("facts", "w") as made:
    json.dump(facts, made)
with open("pid", "w") as made:
    made.write(f"{os.getpid()}\n")
before = sorted(os.listdir("."))
while not os.path.exists("../end"):
    time.sleep(0.005)


def came(act):
    try:
        act()
        return True
    except BlockingIOError:
        return False


def text(place):
    try:
        with open(place) as opened:
            return opened.read()
    except OSError as error:
        return error.strerror


kept = {
    "signals": signals,
    "connected": [came(stream.accept), came(lambda: datagrams.recv(9)), came(abstract.accept), came(port.accept)],
    "names": [left for left in sorted(os.listdir(".")) if left not in before]
    + [left for left in before if not os.path.lexists(left)],
    "file": text("file"),
    "mode": oct(os.stat("file").st_mode) if os.path.exists("file") else None,
    "temp": [text(temp + "/secret"), os.path.exists(temp + "/new")],
    "segment": ctypes.string_at(attached, 4).decode(),
    "semaphore": libc.semctl(semaphore, 0, 12),
    "messages": libc.msgrcv(messages, message, 4, 0, 0o4000),
    "memory": facts["memory"] and text(facts["memory"]),
    "typed": bool(terminal) and came(lambda: os.read(terminal[0], 9)),
    "secret": secret.value.decode(),
}
libc.shmctl(segment, 0, None)
libc.semctl(semaphore, 0, 0)
libc.msgctl(messages, 0, None)
if facts["memory"] and os.path.exists(facts["memory"]):
    os.unlink(facts["memory"])
if facts["queue"]:
    libc.mq_unlink(facts["queue"].encode())
print("kept " + json.dumps(kept))
