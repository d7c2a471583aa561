"""Runs the real program `bailiwick`."""

import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

from report import expect

# API key that the servers here expect.
KEY = "sk-interop-loopback-only"


class Bailiwick:
    """The program, with a state directory below `work`."""

    def __init__(self, program, work):
        self.program, self.work = program, Path(work)
        (self.work / "tmp").mkdir()
        self.environment = dict(os.environ, BAILIWICK_HOME=str(self.work / "home"), TMPDIR=str(self.work / "tmp"),
                                ANTHROPIC_API_KEY=KEY, OPENAI_API_KEY=KEY)

    def speaks(self, provider):
        """True if this build has a provider."""
        done = self.run("debug", "stream", "--help")
        return "- %s:" % provider in done.stdout.decode()

    def run(self, *arguments, key=KEY, timeout=600):
        environment = dict(self.environment, ANTHROPIC_API_KEY=key, OPENAI_API_KEY=key)
        return subprocess.run([self.program, *arguments], env=environment, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=timeout)

    def stream_arguments(self, provider, url, request):
        with tempfile.NamedTemporaryFile("w", dir=self.work, suffix=".json", delete=False) as file:
            json.dump(request, file)
        return ["debug", "stream", "--base-url", url, "--request", file.name, "--provider", provider]

    def stream(self, provider, url, request, key=KEY):
        """Returns the output of `debug stream`: {"ok": true, "message": …} or {"ok": false, "error": …}."""
        done = self.run(*self.stream_arguments(provider, url, request), key=key)
        said = done.stderr.decode(errors="replace")
        expect(done.returncode in (0, 6), "exit status %d: %s" % (done.returncode, said))
        expect("panicked" not in said, said)
        return json.loads(done.stdout)

    def killed_stream(self, provider, url, request, until, grace=30):
        """Starts a request, kills the client once `until()` is true, and returns the time of the kill."""
        process = subprocess.Popen([self.program, *self.stream_arguments(provider, url, request)], env=self.environment,
                                   stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            wait_for(until, grace, "the stream to begin")
            expect(process.poll() is None, "the stream ended before it could be cut")
        finally:
            process.send_signal(signal.SIGKILL)
            process.wait()

    def exec(self, project, prompt, *arguments):
        """Runs `exec` to its end. Returns its events and its exit status."""
        done = self.run("exec", "-C", str(project), "--output", "stream-json", *arguments, prompt)
        events = [json.loads(line) for line in done.stdout.splitlines()]
        return done.returncode, events, done.stderr.decode(errors="replace")


def wait_for(condition, seconds, what):
    deadline = time.monotonic() + seconds
    while not condition():
        expect(time.monotonic() < deadline, "waited %d s for %s" % (seconds, what))
        time.sleep(0.02)


def copy_of(project, directory):
    """Copies a project to a directory, and commits the copy in git."""
    shutil.copytree(project, directory, ignore=shutil.ignore_patterns("target"))
    identity = ["-c", "user.name=Interop", "-c", "user.email=interop@localhost"]
    for arguments in (["init", "--quiet"], ["add", "."], [*identity, "commit", "--quiet", "-m", "as it was"]):
        subprocess.run(["git", *arguments], cwd=directory, check=True, stdin=subprocess.DEVNULL)
    return directory
