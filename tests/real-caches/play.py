"""Plays each package manager in a session in mode `ask`: an approved fetch, an unapproved offline test, an attack."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "real-projects"))

from model import ScriptedModel, tool_use_id  # noqa: E402
from tools import PLANT, TOOLS, lay_out  # noqa: E402


def call(command, **rights):
    return [("shell_exec", dict({"command": command, "timeout_s": 300}, **rights))]


def calls_of(tool):
    """Returns the calls of the session by their names, each with the model's reply."""
    return [
        ("fetch", call(tool.fetch, access="write", network=True)),
        ("test", call(tool.test)),
        ("test again", call(tool.test)),
        ("plant", call(PLANT)),
        ("planted test", call(tool.test)),
        ("approved", call(tool.again, access="write")),
    ]


class FrontEnd:
    """A front end of `bailiwick serve` that approves every request."""

    def __init__(self, environment):
        self.process = subprocess.Popen([os.environ["BAILIWICK"], "serve"], env=environment, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.lasted = []

    def say(self, **message):
        self.process.stdin.write(json.dumps(dict(jsonrpc="2.0", **message)) + "\n")
        self.process.stdin.flush()

    def read(self):
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit("bailiwick serve ended with %s" % self.process.wait())
        return json.loads(line)

    def ask(self, method, params):
        self.say(id=method, method=method, params=params)
        while True:
            told = self.read()
            if told.get("id") == method and "method" not in told:
                if "error" in told:
                    raise SystemExit("%s: %s" % (method, told["error"]))
                return told["result"]

    def turn(self, conversation):
        """Sends a message, approves all requests until the turn ends, and records the seconds of each call."""
        self.say(id="turn", method="sendUserMessage", params={"conversation_id": conversation, "text": "go"})
        while True:
            told = self.read()
            method = told.get("method", "")
            if method.endswith("Approval"):
                self.say(id=told["id"], result={"decision": "approved"})
            elif method == "event/turnFinished":
                return
            elif method == "event/toolCallFinished":
                self.lasted.append(told["params"]["data"]["duration_ms"] / 1000)

    def end(self):
        self.process.stdin.close()
        self.process.wait(60)


def unconfined(tool, work):
    """Runs the fetch and the test twice without a sandbox. Returns the seconds of the second test."""
    project = work / "outside"
    project.mkdir()
    lay_out(tool, project)
    places = {name: str(work / "outside-caches" / name) for name in
              ("npm_config_cache", "PIP_CACHE_DIR", "UV_CACHE_DIR", "CARGO_TARGET_DIR", "GOMODCACHE", "GOCACHE")}
    environment = dict(os.environ, TMPDIR=str(work / "outside-temp"), PIP_ROOT_USER_ACTION="ignore", **places)
    (work / "outside-temp").mkdir()
    for command in (tool.fetch, tool.test):
        subprocess.run(["bash", "-c", command], cwd=project, env=environment, check=True, stdout=subprocess.DEVNULL)
    began = time.monotonic()
    subprocess.run(["bash", "-c", tool.test], cwd=project, env=environment, check=True, stdout=subprocess.DEVNULL)
    subprocess.run(["chmod", "-R", "u+w", str(work)], check=True)
    return time.monotonic() - began


def confined(tool, tier, work):
    """Plays the session. Returns the texts and the seconds of the calls by their names."""
    project, home = work / tier, work / (tier + "-home")
    project.mkdir()
    lay_out(tool, project)
    named = calls_of(tool)
    environment = dict(os.environ, ANTHROPIC_API_KEY="dummy", BAILIWICK_HOME=str(home), PIP_ROOT_USER_ACTION="ignore",
                       CARGO_TARGET_DIR=str(work / "target"))
    with ScriptedModel([turn for _, turn in named] + [["done"]]) as model:
        front_end = FrontEnd(environment)
        front_end.ask("initialize", {})
        opened = front_end.ask("newConversation", {"cwd": str(project), "base_url": model.url, "mode": "ask", "tier": tier})
        front_end.turn(opened["conversation_id"])
        front_end.end()
        told = model.tool_results()
    ids = [tool_use_id(turn, 0) for turn in range(len(named))]
    texts = {name: told[of][1] for (name, _), of in zip(named, ids)}
    return texts, dict(zip(texts, front_end.lasted))


def judge(tool, texts):
    """Returns a text for each fault."""
    wrong = []
    for name in ("test", "test again", "approved"):
        if tool.says not in texts[name]:
            wrong.append("%s: %s" % (name, texts[name][-600:]))
    if any(word in texts["approved"] for word in tool.seen):
        wrong.append("THE APPROVED COMMAND EXECUTED WHAT WAS PLANTED: %s" % texts["approved"][-600:])
    return wrong


def main():
    wanted = set(sys.argv[1:])
    failed = False
    for tool in TOOLS:
        if wanted and tool.name not in wanted:
            continue
        missing = [program for program in tool.needs if not shutil.which(program)]
        if missing:
            print("skipped: %s: no %s on this machine" % (tool.name, ", ".join(missing)))
            continue
        work = Path(tempfile.mkdtemp(prefix="real-caches-"))
        try:
            outside = unconfined(tool, work)
            for tier in ("full", "floor"):
                texts, lasted = confined(tool, tier, work)
                wrong = judge(tool, texts)
                own = any(word in texts["planted test"] for word in tool.seen)
                seconds = ["%.2f" % lasted[name] for name in ("test", "test again")]
                print("| %s | %s | %.2f | %s | %s | %s |" % (
                    tool.name, tier, outside, " | ".join(seconds),
                    "changed what is its own" if own else "changed nothing that is executed",
                    "WRONG" if wrong else "not executed with more rights"), flush=True)
                for line in wrong:
                    failed = True
                    print("  " + line)
                if os.environ.get("TEXTS"):
                    print(json.dumps(texts, indent=1))
        finally:
            subprocess.run(["chmod", "-R", "u+w", str(work)])
            shutil.rmtree(work)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
