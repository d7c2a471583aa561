"""A chat-completions model on loopback, for both agents. It follows the script of the task that a request names.

It is a separate process, so that its processor time counts for neither agent: `model.py PORT-FILE`.
"""

import json
import re
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from tasks import MARK, SUBMIT, TASKS


def reply(body):
    """Returns the task's next command; at the end, the command by which the agent reports the task as done."""
    tool = body["tools"][0]["function"]["name"]
    name = re.search(re.escape(MARK) + r"([a-z-]+)", json.dumps(body["messages"]))[1]
    turn = sum(message["role"] == "assistant" for message in body["messages"])
    task = TASKS[name]
    commands = task.commands + (task.submission + [SUBMIT] if tool == "bash" else [])
    if turn >= len(commands):
        return {"role": "assistant", "content": "It is mended."}, "stop"
    call = {"id": "call_%02d" % turn, "type": "function",
            "function": {"name": tool, "arguments": json.dumps({"command": commands[turn]})}}
    return {"role": "assistant", "content": "The next step.", "tool_calls": [call]}, "tool_calls"


def streamed(head, message, reason, usage):
    for index, call in enumerate(message.get("tool_calls", [])):
        call["index"] = index
    for choices in ([{"index": 0, "delta": message, "finish_reason": None}],
                    [{"index": 0, "delta": {}, "finish_reason": reason}]):
        yield dict(head, object="chat.completion.chunk", choices=choices)
    yield dict(head, object="chat.completion.chunk", choices=[], usage=usage)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = 1 << 16

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        message, reason = reply(body)
        head = {"id": "chatcmpl-scripted", "created": 0, "model": body["model"]}
        usage = {"prompt_tokens": 1000, "completion_tokens": 20, "total_tokens": 1020}
        if body.get("stream"):
            kind, text = "text/event-stream", "".join(
                "data: %s\n\n" % json.dumps(chunk) for chunk in streamed(head, message, reason, usage)) + "data: [DONE]\n\n"
        else:
            choices = [{"index": 0, "message": message, "finish_reason": reason}]
            kind, text = "application/json", json.dumps(
                dict(head, object="chat.completion", choices=choices, usage=usage))
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(text.encode())))
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *_):
        pass


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    with open(sys.argv[1], "w") as file:
        print(server.server_port, file=file)
    server.serve_forever()
