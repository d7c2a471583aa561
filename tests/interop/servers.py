"""Servers of other projects: started on loopback, awaited, and ended by process id."""

import ctypes
import os
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request

# Maximum seconds from a server's start to its first answer, and from SIGTERM to its end.
START_SECONDS = 180
END_SECONDS = 20
# prctl(2)
PR_SET_PDEATHSIG = 1
PRCTL = ctypes.CDLL(None, use_errno=True).prctl


class Unusable(Exception):
    """A server did not start. The error has the end of the server's output."""


class Server:
    """A process that serves on `port` while the context is entered. `url` is its address."""

    def __init__(self, command, port, ready_path, log, environment=()):
        self.command, self.port, self.ready_path, self.log = command, port, ready_path, log
        self.environment = dict(os.environ, **dict(environment))
        self.process = None

    @property
    def url(self):
        return "http://127.0.0.1:%d" % self.port

    def __enter__(self):
        with open(self.log, "wb") as log:
            # The server has a session of its own, so its children end with it. It ends when this process is killed.
            self.process = subprocess.Popen(self.command, env=self.environment, stdin=subprocess.DEVNULL, stdout=log,
                                            stderr=subprocess.STDOUT, start_new_session=True, preexec_fn=end_with_us)
        try:
            self.wait_until_ready()
        except BaseException:
            self.end()
            raise
        return self

    def __exit__(self, *_):
        self.end()

    def wait_until_ready(self):
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            if self.process.poll() is not None:
                raise Unusable("%s ended with status %d:\n%s" % (self.command[0], self.process.returncode, self.tail()))
            if get(self.url + self.ready_path) is not None:
                return
            time.sleep(0.2)
        raise Unusable("%s did not answer within %d s:\n%s" % (self.command[0], START_SECONDS, self.tail()))

    def tail(self):
        with open(self.log, errors="replace") as log:
            return log.read()[-4000:]

    def end(self):
        self.signal(signal.SIGTERM)
        try:
            self.process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            pass
        self.signal(signal.SIGKILL)
        self.process.wait()

    def signal(self, number):
        try:
            os.killpg(self.process.pid, number)
        except ProcessLookupError:
            pass


def end_with_us():
    PRCTL(PR_SET_PDEATHSIG, signal.SIGKILL)


def free_port():
    """Returns a port that was free a moment ago, because these servers take a port number and no socket."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


def get(url, timeout=5):
    """Returns the body of a page if the status is 200, else None."""
    try:
        with urllib.request.urlopen(url, timeout=timeout) as page:
            return page.read()
    except (urllib.error.URLError, OSError):
        return None
