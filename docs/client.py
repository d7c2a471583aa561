#!/usr/bin/env python3
"""A front end of `bailiwick serve` in a page: runs one task, asks for each approval, prints the answer of the model.

    python3 client.py PROJECT TASK [OPTION=VALUE ...]      options are those of newConversation, such as model=NAME

The program is `bailiwick` in the PATH, or what BAILIWICK names. Status: 0 if the task is done.
"""

import json
import os
import shlex
import signal
import subprocess
import sys
import termios

signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C ends this process, and with it the session.
if len(sys.argv) < 3 or not all("=" in option for option in sys.argv[3:]):
    sys.exit(__doc__)
PROJECT, TASK, *OPTIONS = sys.argv[1:]
PROGRAM = os.environ.get("BAILIWICK", "bailiwick")
try:
    server = subprocess.Popen([PROGRAM, "serve"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
except OSError as error:
    sys.exit(f"cannot start {PROGRAM}: {error.strerror}. Name the program in the variable BAILIWICK.")


def send(**message):
    server.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    server.stdin.flush()


def plain(text):
    """The text with its control characters made visible: it comes from models, tools and files, and may be hostile."""
    return "".join(c if c == "\n" or c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def changes(files):
    """The whole of a change: a line of what happens to each file, then its difference or its content."""
    for path, change in files.items():
        (kind, body), = change.items()
        yield f"{kind} {path}" + (f", move to {body['move_path']}" if body.get("move_path") else "")
        yield body.get("unified_diff") or body.get("content") or ""


def approval(method, params):
    """Shows the whole of a request for an approval; True if the person at the keyboard agrees."""
    rest = dict(params)
    shown = [method, *changes(rest.pop("file_changes", {})), rest.pop("markdown", "")]
    command = rest.pop("command", [])  # Its arguments. Of a `hostApproval` it is the text as the agent wrote it.
    shown.append(command if isinstance(command, str) else shlex.join(command))
    shown.append(json.dumps(rest, indent=2, ensure_ascii=False))
    print(plain("\n".join(text for text in shown if text)), file=sys.stderr)
    if sys.stdin.isatty():  # No key counts that was pressed before the request was on the screen.
        termios.tcflush(sys.stdin, termios.TCIFLUSH)
    print("approve? [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip() == "y"


options = dict(option.split("=", 1) for option in OPTIONS)
send(id="hello", method="initialize", params={"client": {"name": "client.py"}})
send(id="open", method="newConversation", params={"cwd": os.path.abspath(PROJECT), **options})

status = 1
for line in server.stdout:  # Events may come before the response to the request that caused them.
    message = json.loads(line)
    method, params = message.get("method"), message.get("params", {})
    if "error" in message:
        sys.exit(f"{message['id']}: {message['error']['message']}")
    elif message.get("id") == "open":
        conversation = message["result"]["conversation_id"]
        send(id="say", method="sendUserMessage", params={"conversation_id": conversation, "text": TASK})
    elif method == "serverForm":  # An MCP server asks the user something. This front end has no form.
        send(id=message["id"], result={"decision": "cancelled"})
    elif method and "id" in message:  # A request of the server: bound to exactly the effect that it shows.
        decision = "approved" if approval(method, params) else "denied"
        send(id=message["id"], result={"decision": decision, "digest": params["digest"]})
    elif method == "event/assistantMessage":
        text = "".join(block.get("text", "") for block in params["data"]["content"])
        print(plain(text), end="\n" if text else "", flush=True)
    elif method == "event/turnFinished":
        status = 0 if params["data"]["reason"] == "done" else 1
        print(f"{params['data']['reason']} after {params['data']['steps']} steps", file=sys.stderr)
        send(id="bye", method="shutdown")
sys.exit(server.wait() or status)
