"""A chat completions server on loopback that plays recorded replies: the model of a request names the recording.

A recording is a directory with one reply (`response.sse`) or several. Each request gets the next reply in the order of their
names, and later requests the last one. The name contains the status: `1-429.json`, `2-200.sse`.
"""

import json
import threading
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

# Size of a chunk in bytes. It cuts characters, events and line ends, as a network may.
PIECE = 61


class Player:
    """Serves the recordings in `directories` while the context is entered. `requests` has the requests in order."""

    def __init__(self, *directories):
        self.directories = [Path(directory) for directory in directories]
        self.requests = []
        self.played = Counter()
        self.lock = threading.Lock()
        player = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                player.answer(self)

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
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

    def rewind(self):
        """Makes the next request for each recording get the recording's first reply again."""
        with self.lock:
            self.requests.clear()
            self.played.clear()

    def answer(self, http):
        body = json.loads(http.rfile.read(int(http.headers["content-length"])))
        if not http.path.endswith("/chat/completions"):
            return whole(http, 404, error("not_found", http.path))
        reply = self.next_reply(body)
        if reply is None:
            return whole(http, 404, error("model_not_found", "no recording %r" % body.get("model")))
        if reply.suffix == ".json":
            return whole(http, int(reply.stem.partition("-")[2]), reply.read_bytes())
        stream(http, reply.read_bytes())

    def next_reply(self, body):
        name = body.get("model", "")
        found = [place / name for place in self.directories if name and (place / name).is_dir()]
        if not found or "/" in name:
            return None
        replies = sorted(found[0].glob("response.sse")) or sorted(found[0].glob("[0-9]*-*"))
        with self.lock:
            self.requests.append(body)
            turn = self.played[name]
            self.played[name] += 1
        return replies[min(turn, len(replies) - 1)] if replies else None


def error(code, message):
    return json.dumps({"error": {"message": message, "type": "invalid_request_error", "code": code}}).encode()


def whole(http, status, body):
    http.send_response(status)
    http.send_header("content-type", "application/json")
    http.send_header("content-length", str(len(body)))
    http.end_headers()
    http.wfile.write(body)


def stream(http, body):
    http.send_response(200)
    http.send_header("content-type", "text/event-stream; charset=utf-8")
    http.send_header("transfer-encoding", "chunked")
    http.end_headers()
    pieces = [body[at:at + PIECE] for at in range(0, len(body), PIECE)]
    for piece in [*pieces, b""]:
        http.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
        http.wfile.flush()
