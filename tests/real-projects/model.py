"""A model that follows a script. It serves the Messages API on loopback, and streams one prepared reply after another.

The number of assistant messages in a request chooses the reply, so a retried request gets the same reply again.
"""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class ScriptedModel:
    """Serves `turns`. Each is a list of blocks: a string, or the name and arguments of a tool."""

    def __init__(self, turns):
        self.turns = turns
        self.requests = []
        model = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                model.answer(self)

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.thread = threading.Thread(target=self.server.serve_forever)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()

    @property
    def url(self):
        return "http://127.0.0.1:%d" % self.server.server_port

    def answer(self, http):
        body = json.loads(http.rfile.read(int(http.headers["content-length"])))
        if http.path != "/v1/messages":
            return refuse(http, 404, "not_found_error", http.path)
        self.requests.append(body)
        turn = sum(message["role"] == "assistant" for message in body["messages"])
        if turn >= len(self.turns):
            return refuse(http, 400, "invalid_request_error", "the script has no reply %d" % turn)
        http.send_response(200)
        http.send_header("content-type", "text/event-stream")
        http.send_header("transfer-encoding", "chunked")
        http.end_headers()
        for event in events(turn, self.turns[turn]):
            write_chunk(http, event)
        write_chunk(http, b"")

    def tool_results(self):
        """Returns the tool results in the last request by the id of the call, each as (is_error, text)."""
        results = {}
        for message in self.requests[-1]["messages"] if self.requests else []:
            if message["role"] != "user" or isinstance(message["content"], str):
                continue
            for block in message["content"]:
                if block["type"] == "tool_result":
                    results[block["tool_use_id"]] = (bool(block.get("is_error")), text_of(block.get("content", "")))
        return results


def text_of(content):
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content)


def tool_use_id(turn, index):
    """Returns the id of a call by its turn and its index in the turn."""
    return "toolu_scripted_%02d_%02d" % (turn, index)


def write_chunk(http, data):
    http.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
    http.wfile.flush()


def refuse(http, status, kind, message):
    body = json.dumps({"type": "error", "error": {"type": kind, "message": message}}).encode()
    http.send_response(status)
    http.send_header("content-type", "application/json")
    http.send_header("content-length", str(len(body)))
    http.end_headers()
    http.wfile.write(body)


def event(kind, **data):
    text = json.dumps(dict(type=kind, **data), ensure_ascii=False)
    return ("event: %s\ndata: %s\n\n" % (kind, text)).encode()


def events(turn, blocks):
    calls = any(not isinstance(block, str) for block in blocks)
    usage = {"input_tokens": 12, "cache_creation_input_tokens": 900, "cache_read_input_tokens": 3000 * turn}
    message = {"id": "msg_scripted_%02d" % turn, "type": "message", "role": "assistant", "model": "scripted",
               "content": [], "stop_reason": None, "stop_sequence": None, "usage": dict(usage, output_tokens=1)}
    yield event("message_start", message=message)
    for index, block in enumerate(blocks):
        yield from block_events(turn, index, block)
    stop = {"stop_reason": "tool_use" if calls else "end_turn", "stop_sequence": None}
    yield event("message_delta", delta=stop, usage=dict(usage, output_tokens=80))
    yield event("message_stop")


def block_events(turn, index, block):
    if isinstance(block, str):
        start, kind, key, text = {"type": "text", "text": ""}, "text_delta", "text", block
    else:
        name, arguments = block
        start = {"type": "tool_use", "id": tool_use_id(turn, index), "name": name, "input": {}}
        kind, key, text = "input_json_delta", "partial_json", json.dumps(arguments)
    yield event("content_block_start", index=index, content_block=start)
    for at in range(0, len(text), 17):
        yield event("content_block_delta", index=index, delta={"type": kind, key: text[at:at + 17]})
    yield event("content_block_stop", index=index)
