"""A whole run: Bailiwick repairs a copy of `fixtures/projects/crate`. The recording `repair` plays the model."""

import shutil
import subprocess
import tempfile
from pathlib import Path

from bailiwick import copy_of
from report import expect

DEMO = Path(__file__).resolve().parents[2] / "fixtures/projects/crate"
PROMPT = "Sizes with a zero after the point are read wrongly. Mend it."
CHANGED = ["src/parse.rs", "tests/parse.rs"]


def check_repair(bailiwick, player, url, provider, model="repair"):
    """Checks the run: it ends well, the model gets the real results of its calls, the patch repairs a clean copy."""
    player.rewind()
    work = Path(tempfile.mkdtemp(dir=bailiwick.work, prefix="repair-"))
    project, patch = copy_of(DEMO, work / "project"), work / "out.diff"
    status, events, said = bailiwick.exec(project, PROMPT, "--mode", "auto", "--model", model, "--base-url", url,
                                          "--patch", str(patch), *by(provider))
    expect(status == 0, "exit status %d: %s\n%s" % (status, said, events[-3:]))
    check_events(events)
    check_told(player.requests)
    check_patch(patch, work)
    return "%d requests, one of them refused with a 429 and repeated" % len(player.requests)


def by(provider):
    return [] if provider == "anthropic" else ["--provider", provider]


def check_events(events):
    kinds = [event["type"] for event in events]
    expect(kinds.count("model_failed") == 1, "the 429 is not in the log once: %s" % kinds)
    finished = [event["data"] for event in events if event["type"] == "tool_call_finished"]
    expect(len(finished) == 6 and all(call["status"] == "completed" for call in finished), finished)
    changes = next(event["data"]["files"] for event in events if event["type"] == "change_set")
    expect([file["path"] for file in changes] == CHANGED, changes)


def check_told(requests):
    """Checks that the next request has each call's result under the call's id, and that the two test runs differ."""
    expect(len(requests) == 6, "%d requests" % len(requests))
    results = {message["tool_call_id"]: text_of(message["content"])
               for message in requests[-1]["messages"] if message["role"] == "tool"}
    expect(list(results) == ["call_11", "call_12", "call_21", "call_31", "call_32", "call_41"], list(results))
    expect("status=101" in results["call_21"], results["call_21"])
    expect("status=0" in results["call_41"], results["call_41"])


def text_of(content):
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content)


def check_patch(patch, work):
    clean = copy_of(DEMO, work / "clean")
    subprocess.run(["git", "apply", str(patch)], cwd=clean, check=True, stdin=subprocess.DEVNULL)
    if shutil.which("cargo"):
        done = subprocess.run(["cargo", "test", "--offline", "--quiet"], cwd=clean, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        expect(done.returncode == 0, done.stdout.decode(errors="replace"))
