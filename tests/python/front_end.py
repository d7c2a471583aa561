"""A plain front end of `bailiwick serve`. It uses only Python's own library, and knows only docs/protocol.md.

    python3 front_end.py SCENARIO BAILIWICK PROJECT BASE_URL

Each scenario drives a whole task and fails by an exception. The model is a script on loopback, which the Rust test that
runs this program serves.
"""

import json
import queue
import subprocess
import sys
import threading
from pathlib import Path

PATIENCE = 60


class Server:
    """A server with the single conversation of a scenario."""

    def __init__(self, program, project, base_url):
        self.process = subprocess.Popen([program, "serve"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.lines = queue.Queue()
        threading.Thread(target=self.read, daemon=True).start()
        self.project, self.base_url = project, base_url
        self.last_id = 0
        self.seen = []
        self.waiting = []
        self.call("initialize", client={"name": "front_end.py"})

    def read(self):
        for line in self.process.stdout:
            self.lines.put(json.loads(line))
        self.lines.put(None)

    def send(self, message):
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        self.process.stdin.flush()

    def take(self):
        """Returns the next message."""
        message = self.lines.get(timeout=PATIENCE)
        if message is not None:
            assert message["jsonrpc"] == "2.0", message
            self.seen.append(message)
        return message

    def request(self, method, **params):
        self.last_id += 1
        self.send({"id": self.last_id, "method": method, "params": params})
        return self.last_id

    def response(self, number):
        """Returns the response to the request with this number. Keeps other messages for later."""
        while True:
            message = self.take()
            assert message is not None, "the server ended"
            if "method" not in message and message["id"] == number:
                return message
            self.waiting.append(message)

    def call(self, method, **params):
        response = self.response(self.request(method, **params))
        assert "error" not in response, response
        return response["result"]

    def converse(self, task, **options):
        options = {"cwd": self.project, "base_url": self.base_url, "mode": "ask", **options}
        self.conversation = self.call("newConversation", **options)["conversation_id"]
        self.act("sendUserMessage", text=task)

    def act(self, method, **params):
        return self.call(method, conversation_id=self.conversation, **params)

    def until(self, method):
        """Returns the next message with this method."""
        while True:
            message = self.waiting.pop(0) if self.waiting else self.take()
            assert message is not None, f"the server ended before {method}"
            if message.get("method") == method:
                assert message["params"]["conversation_id"] == self.conversation, message
                return message

    def respond(self, request, **result):
        self.send({"id": request["id"], "result": result})

    def events(self, method):
        return [message["params"]["data"] for message in self.seen if message.get("method") == method]

    def finish(self):
        """Waits for the end of the turn, ends the server, and checks that no message contains a null."""
        turn = self.until("event/turnFinished")["params"]["data"]
        assert self.call("shutdown") == {}
        self.process.stdin.close()
        assert self.process.wait(PATIENCE) == 0
        assert not holds_null(self.seen)
        return turn


def holds_null(value):
    if isinstance(value, dict):
        return any(map(holds_null, value.values()))
    if isinstance(value, list):
        return any(map(holds_null, value))
    return value is None


def path(server, name):
    return Path(server.project, name)


def approve(server):
    """Approves a change of files and a command, once each: exactly the shown actions happen."""
    server.converse("write it")
    request = server.until("applyPatchApproval")
    changes = request["params"]["file_changes"]
    assert changes == {str(path(server, "new.txt")): {"add": {"content": "new\n"}}}, changes
    assert not path(server, "new.txt").exists()
    server.respond(request, decision="approved", digest=request["params"]["digest"])
    assert server.until("event/approvalClosed")["params"]["data"]["request_id"] == request["id"]
    request = server.until("execCommandApproval")
    assert request["params"]["command"] == ["bash", "-c", "echo more >> new.txt"], request
    assert path(server, "new.txt").read_text() == "new\n"
    server.respond(request, decision="approved")
    turn = server.finish()
    assert turn["reason"] == "done", turn
    assert path(server, "new.txt").read_text() == "new\nmore\n"


def deny(server):
    """Denies a command with a reason: nothing happens, and the model gets the reason."""
    server.converse("write it")
    request = server.until("execCommandApproval")
    server.respond(request, decision="denied", message="use the other file")
    finished = server.until("event/toolCallFinished")["params"]["data"]
    assert finished["status"] == "denied" and "use the other file" in finished["content"], finished
    server.finish()
    assert not path(server, "made").exists()


def session_grant(server):
    """Approves a prefix for the session: it covers three commands, and another command is asked about."""
    server.converse("write it")
    request = server.until("execCommandApproval")
    scope = {"type": "command_prefix", "value": ["touch"]}
    server.respond(request, decision="approved_for_session", scope=scope)
    request = server.until("execCommandApproval")
    assert request["params"]["command"][-1] == "touch four; rm one", request
    server.respond(request, decision="denied")
    server.finish()
    assert len(server.events("event/grantAdded")) == 1
    assert [path(server, name).exists() for name in ("one", "two", "three", "four")] == [True] * 3 + [False]


def undecodable(server):
    """Gives invalid answers: each counts as a denial, and the connection continues."""
    server.converse("write it")
    bad = [
        {"result": None},
        {"result": "approved"},
        {"result": {"decision": "approve"}},
        {"result": {"decision": "approved", "digest": "another"}},
        {"error": {"code": 1, "message": "approved"}},
    ]
    for answer in bad:
        request = server.until("execCommandApproval")
        server.send({"id": request["id"], **answer})
        finished = server.until("event/toolCallFinished")["params"]["data"]
        assert finished["status"] == "denied", finished
    turn = server.finish()
    assert not path(server, "made").exists(), turn


def disconnect(server):
    """Disconnects during an approval: nothing runs, and the server ends."""
    server.converse("write it")
    server.until("execCommandApproval")
    server.process.stdin.close()
    while server.take() is not None:
        pass
    assert server.process.wait(PATIENCE) == 0
    assert not path(server, "made").exists()
    answered = server.events("event/approvalAnswered")
    assert [answer["decision"]["decision"] for answer in answered] == ["denied"], answered


def time_out(server):
    """Gives no answer in time: the command is denied, the turn continues, and the late answer is ignored."""
    server.converse("write it", approval_timeout_s=1)
    request = server.until("execCommandApproval")
    assert request["params"]["timeout_ms"] == 1000, request
    closed = server.until("event/approvalClosed")["params"]["data"]
    assert closed["request_id"] == request["id"], closed
    server.respond(request, decision="approved")
    turn = server.finish()
    assert not path(server, "made").exists(), turn
    assert [answer["by"] for answer in server.events("event/approvalAnswered")] == ["deadline"]


def killed(server):
    """Ends the server by a signal during an approval: nothing runs."""
    server.converse("write it")
    server.until("execCommandApproval")
    server.process.terminate()
    assert server.process.wait(PATIENCE) == 143
    assert not path(server, "made").exists()


def set_net(server):
    """Turns the network on during a turn: a new worker starts, and is reported when it is ready."""
    server.converse("wait", mode="auto")
    server.until("event/toolCallStarted")
    server.act("setNet", net="on")
    changed = server.until("event/rightsChanged")["params"]["data"]
    assert changed["rights"]["net"] == "on", changed
    turn = server.finish()
    assert turn["reason"] == "done", turn
    finished = server.events("event/toolCallFinished")
    assert finished[0]["status"] == "interrupted", finished


def abort(server):
    """Aborts a turn: the turn ends, and the conversation continues."""
    server.converse("write it")
    server.respond(server.until("execCommandApproval"), decision="abort")
    assert server.until("event/turnFinished")["params"]["data"]["reason"] == "aborted"
    server.act("sendUserMessage", text="again")
    assert server.finish()["reason"] == "done"
    assert not path(server, "made").exists()


def main():
    scenario, program, project, base_url = sys.argv[1:]
    server = Server(program, project, base_url)
    try:
        globals()[scenario](server)
    except BaseException:
        print(json.dumps(server.seen, indent=1), file=sys.stderr)
        server.process.kill()
        raise


if __name__ == "__main__":
    main()
