"""A model on loopback. The last `#name` in the user's messages names a script; each request gets its next reply."""

import json
import re
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PLAN = """# A note

## Steps

### 1. Write the note

Acceptance:
- `test -f note.txt`
"""


def text(words, pace=0.0):
    return {"text": words, "pace": pace}


def call(tool, **arguments):
    return {"call": (tool, arguments)}


SCRIPTS = {
    "hello": [text("Hello from the model.")],
    "edit": [call("write_file", path="hello.txt", content="hello\nworld\n"), text("Written.")],
    "change": [call("edit_file", path="hello.txt", old_string="world", new_string="editors"), text("Changed.")],
    "command": [call("shell_exec", command="echo made > made.txt", access="write"), text("Run.")],
    "long": [text("word " * 2000, pace=0.02)],
    "sleep": [call("shell_exec", command="echo $$ > /tmp/pid 2>/dev/null; echo started; sleep 300"), text("Slept.")],
    "delegate": [call("spawn_agent", task="#sub look around"), text("Delegated.")],
    "guest": [call("notes__note", text="hello"), text("Noted.")],
    "sub": [call("shell_exec", command="echo from the sub-agent"), text("The sub-agent looked.")],
    "plan": [call("write_plan", markdown=PLAN), text("Planned.")],
    "executes": [call("update_step", step=1, status="in_progress"), call("write_file", path="note.txt", content="noted\n"), call("update_step", step=1, status="completed"), text("Executed.")],
}


def said(message):
    content = message["content"]
    return content if isinstance(content, str) else "\n".join(block.get("text", "") for block in content if block["type"] == "text")


def reply_for(body):
    messages = body["messages"]
    users = [at for at, message in enumerate(messages) if message["role"] == "user" and re.search(r"#\w+", said(message))]
    name = "executes"
    after = messages
    if users:
        found = [word for word in re.findall(r"#(\w+)", said(messages[users[-1]])) if word in SCRIPTS]
        if found:
            name, after = found[0], messages[users[-1]:]
    replies = SCRIPTS[name]
    step = sum(message["role"] == "assistant" for message in after)
    return replies[min(step, len(replies) - 1)]


def events(reply):
    usage = {"input_tokens": 10, "output_tokens": 5}
    yield {"type": "message_start", "message": {"id": "msg_1", "type": "message", "role": "assistant", "model": "scripted", "content": [], "stop_reason": None, "stop_sequence": None, "usage": usage}}, 0
    if "call" in reply:
        tool, arguments = reply["call"]
        block = {"type": "tool_use", "id": "toolu_%d" % time.monotonic_ns(), "name": tool, "input": {}}
        yield {"type": "content_block_start", "index": 0, "content_block": block}, 0
        yield {"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": json.dumps(arguments)}}, 0
        stop = "tool_use"
    else:
        yield {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}, 0
        for word in re.findall(r"\S+\s*", reply["text"]):
            yield {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": word}}, reply["pace"]
        stop = "end_turn"
    yield {"type": "content_block_stop", "index": 0}, 0
    yield {"type": "message_delta", "delta": {"stop_reason": stop, "stop_sequence": None}, "usage": {"output_tokens": 5}}, 0
    yield {"type": "message_stop"}, 0


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        try:
            for event, pace in events(reply_for(body)):
                self.wfile.write(("event: %s\ndata: %s\n\n" % (event["type"], json.dumps(event))).encode())
                self.wfile.flush()
                time.sleep(pace)
        except OSError:
            pass
        self.close_connection = True

    def log_message(self, *_):
        pass


def start(port=0):
    """Serves the model on loopback. Returns its address."""
    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return "http://127.0.0.1:%d" % server.server_port


if __name__ == "__main__":
    print(start(), flush=True)
    threading.Event().wait()
