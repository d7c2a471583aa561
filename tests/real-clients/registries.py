"""Runs package managers with the real registries: by a preset, and with a list of another host. Status 1: a fault."""

import os
import pwd
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import machine

LIMIT_S = 300
APT = ("for d in state/lists/partial cache/archives/partial; do mkdir -p $d; done; apt=\"apt-get -q -o Dir::State=$PWD/state -o Dir::State::status=/var/lib/dpkg/status "
       "-o Dir::Cache=$PWD/cache -o Dir::Etc::sourcelist=$PWD/debian.list -o Dir::Etc::sourceparts=- -o APT::Sandbox::User=$(id -un) -o Debug::NoLocking=1 "
       "-o Acquire::Retries=0\"; $apt -o APT::Update::Error-Mode=any update && $apt download hello && ls hello_*.deb")

# Rows: name, program, preset, files, command, and the expected output.
PLAYS = [
    ("npm ci", "npm", "@npm", {"package.json": '{"name": "own", "version": "0.0.0", "dependencies": {"is-number": "7.0.0"}}'},
     "npm install --package-lock-only --no-audit --no-fund --fetch-retries 0 && npm ci --no-audit --no-fund --fetch-retries 0 "
     "&& node -e \"console.log(require('is-number')(5))\"", "true"),
    ("pip install", "python3", "@pypi", {}, "python3 -m venv .venv && .venv/bin/pip install --disable-pip-version-check --retries 0 idna "
     "&& .venv/bin/python -c 'import idna; print(idna.encode(\"a\"))'", "b'a'"),
    ("uv pip install", "uv", "@pypi", {}, "UV_NATIVE_TLS=1 UV_HTTP_RETRIES=0 uv pip install --target t idna && PYTHONPATH=t python3 -c 'import idna; print(idna.encode(\"a\"))'", "b'a'"),
    ("cargo fetch", "cargo", "@crates", {
        "Cargo.toml": '[package]\nname = "own"\nversion = "0.0.0"\nedition = "2021"\n[dependencies]\nitoa = "1"\n[workspace]\n', "src/lib.rs": ""},
     "CARGO_HOME=$PWD/home CARGO_NET_RETRY=0 cargo fetch && ls home/registry/cache/*", "itoa-1"),
    ("apt-get update, download", "apt-get", "@debian", {"debian.list": "deb http://deb.debian.org/debian stable main\n"}, APT, "hello_"),
]


def run(place, bailiwick, uid, play, net):
    """Runs a row in a new project. Returns true if the output is as expected, and the seconds."""
    _, _, _, files, command, says = play
    project = Path(tempfile.mkdtemp(prefix="project-", dir=place))
    for name, text in files.items():
        (project / name).parent.mkdir(exist_ok=True)
        (project / name).write_text(text)
    home = place / f"home-{uid}"
    home.mkdir(exist_ok=True)
    for path in [project, home, *project.rglob("*")]:
        os.chown(path, uid, uid)
    environment = {"HOME": str(home), "PATH": os.environ["PATH"], "LANG": "C.UTF-8", "USER": pwd.getpwuid(uid).pw_name}
    began = time.monotonic()
    done = subprocess.run([str(bailiwick), "sandbox", "--tier", "full", "--net", net, "-C", str(project), "--", "bash", "-c", command], cwd=project,
                          env=environment, user=uid, group=uid, extra_groups=[] if os.getuid() == 0 else None, stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, errors="replace", timeout=LIMIT_S)
    took = time.monotonic() - began
    shutil.rmtree(project, ignore_errors=True)
    return done.returncode == 0 and says in done.stdout, took, done.stdout + done.stderr


def main():
    users = [0, pwd.getpwnam("nobody").pw_uid] if os.getuid() == 0 else [os.getuid()]
    print("| tool | preset | user | with the preset | s | with a list of another host |\n| --- | --- | --- | --- | --- | --- |", flush=True)
    right = True
    with tempfile.TemporaryDirectory(prefix="registries-", dir="/var/tmp", ignore_cleanup_errors=True) as directory:
        place = Path(directory)
        place.chmod(0o755)
        bailiwick = machine.programs(place / "programs")
        for uid in users:
            for play in PLAYS:
                name, program, preset = play[:3]
                find = subprocess.run(["bash", "-c", f'test -x "$(command -v {program})"'], user=uid)
                if find.returncode != 0:
                    print(f"absent: {name}: no {program} for {'root' if uid == 0 else 'a plain user'}", file=sys.stderr)
                    continue
                on, took, said = run(place, bailiwick, uid, play, preset)
                off, _, _ = run(place, bailiwick, uid, play, "docs.example")
                if not on:
                    print(f"--- {name}\n{said[-2500:]}", file=sys.stderr)
                right &= on and not off
                who = "root" if uid == 0 else "plain user"
                print(f"| {name} | `{preset}` | {who} | {'fetched' if on else '**failed**'} | {took:.1f} | {'**fetched**' if off else 'an error'} |", flush=True)
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
