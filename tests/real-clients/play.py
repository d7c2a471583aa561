"""Runs each client unconfined and confined, to the listed host and to another. Prints a table. Status 1: a fault."""

import os
import pwd
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import machine
from clients import CLIENTS

ON, OFF = "on.example", "off.example"
LIST = ",".join([ON, *(f"{ON}:{port}" for port in (80, 22, 7))])
# Time limit in seconds, after which every client must have an answer or an error.
LIMIT_S = 60
SHOWN = 110


class Player:
    """Runs clients as a user, each in a new project."""

    def __init__(self, place, bailiwick, uid):
        self.place, self.bailiwick, self.uid = place, bailiwick, uid
        self.home = place / f"home-{uid}"
        self.home.mkdir()
        os.chown(self.home, uid, uid)
        path = f"{bailiwick.parent}:/usr/sbin:{os.environ['PATH']}"
        self.environment = {"HOME": str(self.home), "PATH": path, "LANG": "C.UTF-8", "USER": pwd.getpwuid(uid).pw_name}

    def run(self, command, project, limit=LIMIT_S):
        try:
            done = subprocess.run(command, cwd=project, env=self.environment, user=self.uid, group=self.uid, timeout=limit, text=True, errors="replace",
                                  extra_groups=[] if os.getuid() == 0 else None, stdin=subprocess.DEVNULL, capture_output=True)
            return done.returncode, done.stdout, done.stderr
        except subprocess.TimeoutExpired:
            return None, "", f"no end after {limit} s"

    def missing(self, client):
        """Returns a requirement of a client that this user lacks, or None."""
        for need in client.needs:
            find = f'python3 -c "import {need[7:]}"' if need.startswith("module:") else f'command -v "{need}" && test -x "$(command -v {need})"'
            if self.run(["bash", "-c", find], self.place)[0] != 0:
                return need
        return None

    def project(self, client, host):
        project = Path(tempfile.mkdtemp(prefix="project-", dir=self.place))
        for name in ("ca.pem", "trust.p12", "deploy", "known"):
            if (self.place / name).exists():
                shutil.copy(self.place / name, project / name)
        for name, text in client.files.items():
            (project / name).parent.mkdir(exist_ok=True)
            (project / name).write_text(text.replace("HOST", host))
        if (project / "deploy").exists():
            (project / "deploy").chmod(0o600)
        for path in [project, *project.rglob("*")]:
            os.chown(path, self.uid, self.uid)
        if client.prepare:
            code, _, said = self.run(["bash", "-c", client.prepare], project, 10 * LIMIT_S)
            if code != 0:
                raise SystemExit(f"{client.name} cannot be prepared: {said}")
        return project

    def reach(self, client, host, confined):
        """Runs a client. Returns true if it reached the host, else its last line, and the seconds."""
        project = self.project(client, host)
        command = ["bash", "-c", client.command.replace("HOST", host)]
        if confined:
            command = [str(self.bailiwick), "sandbox", "--tier", "full", "--net", LIST, "-C", str(project), "--", *command]
        began = time.monotonic()
        code, said, errors = self.run(command, project)
        took = time.monotonic() - began
        shutil.rmtree(project)
        if code == 0 and client.says.replace("HOST", host) in said:
            return True, "", took
        return False, errors.strip() or said.strip(), took


def error_of(text):
    """Returns the words of a client's output that say most about the error."""
    said = "\n".join(line for line in text.splitlines() if not line.startswith(("bailiwick", "  hint:")))
    before = r"(?<!\S)[^\n|`]{0,75}"
    for words in (before + r"refused", before + r"ECONNREFUSED", before + r"onnect to [\w. ]*"):
        if found := re.search(words, said, re.IGNORECASE):
            return found[0].strip()
    return (said.strip().splitlines() or ["nothing"])[-1].replace("|", "/")[:SHOWN]


def play(player, internet, client):
    """Runs one client in every way. Returns the cells of its row, and true if all results are as expected."""
    version = player.run(["bash", "-c", client.version or "true"], player.place)[1].strip()
    freely, why, _ = player.reach(client, OFF, confined=False)
    if not freely:
        print(f"--- {client.name} unconfined\n{why[-1500:]}", file=sys.stderr)
    on, why, took = player.reach(client, ON, confined=True)
    if not on:
        print(f"--- {client.name} inside\n{why[-1500:]}", file=sys.stderr)
    before = internet.came()
    off, error, patience = player.reach(client, OFF, confined=True)
    came = internet.came() - before
    if off or came:
        print(f"--- {client.name}: the other host was reached, {came} connections\n{error[-1500:]}", file=sys.stderr)
    is_right = freely and on and not off and not came and "no end after" not in error
    who = "root" if player.uid == 0 else "plain user"
    cells = [client.name, version or "-", who, "reached" if on else "**missed**", f"{took:.1f}",
             "**reached**" if off or came else f"`{error_of(error)}`", f"{patience:.1f}"]
    print(f"| {' | '.join(cells)} |", flush=True)
    return is_right


def keys(place):
    """Makes a git repository, and keys for ssh."""
    git = ["git", "-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "init.defaultBranch=main"]
    machine.run(*git, "init", "-q", place / "work")
    machine.run(*git, "-C", place / "work", "commit", "-q", "--allow-empty", "-m", "first")
    machine.run("git", "clone", "-q", "--bare", place / "work", place / "git")
    machine.run("git", "-C", place / "git", "update-server-info")
    if shutil.which("ssh-keygen"):
        for name in ("deploy", "host-ed25519"):
            machine.run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", place / name)
        host = " ".join((place / "host-ed25519.pub").read_text().split()[:2])
        (place / "known").write_text(f"{ON},{OFF} {host}\n")


def main():
    machine.settle()
    # The path is short and every user may enter it. It is not below /tmp, because the sandbox has a private /tmp.
    with tempfile.TemporaryDirectory(prefix="clients-", dir="/var/tmp", ignore_cleanup_errors=True) as directory:
        place = Path(directory)
        place.chmod(0o755)
        machine.certificates(place)
        keys(place)
        bailiwick = machine.programs(place / "programs")
        internet = machine.Internet(place)
        users = [0, pwd.getpwnam("nobody").pw_uid] if os.getuid() == 0 else [os.getuid()]
        print("| client | version | user | a host of the list | s | another host: its error | s |\n| --- | --- | --- | --- | --- | --- | --- |", flush=True)
        right = True
        try:
            for uid in users:
                player = Player(place, bailiwick, uid)
                for client in CLIENTS:
                    if sys.argv[1:] and not any(word in client.name for word in sys.argv[1:]):
                        continue
                    if need := player.missing(client):
                        print(f"absent: {client.name}: no {need} for {'root' if uid == 0 else 'a plain user'}", file=sys.stderr)
                        continue
                    right &= play(player, internet, client)
        finally:
            internet.end()
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
