#!/usr/bin/env python3
"""A front end of `bailiwick serve` in a page: runs one task, asks for each approval, prints the answer of the model.

    python3 client.py PROJECT TASK [OPTION=VALUE ...]      options are those of newConversation, such as model=NAME
"""

import json
import os
import subprocess
import sys

PROJECT, TASK, *OPTIONS = sys.argv[1:]
PROGRAM = os.environ.get("BAILIWICK", "bailiwick")
server = subprocess.Popen([PROGRAM, "serve"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def send(**message):
    server.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    server.stdin.flush()


def approval(method, params):
    """Shows a request for an approval; True if the person at the keyboard agrees."""
    shown = params if "host" in params else params.get("command") or params
    print(f"{method}: {json.dumps(shown, indent=2)}", file=sys.stderr)
    return input("approve? [y/N] ").strip() == "y"


options = dict(option.split("=", 1) for option in OPTIONS)
send(id="hello", method="initialize", params={"client": {"name": "client.py"}})
send(id="open", method="newConversation", params={"cwd": os.path.abspath(PROJECT), **options})

for line in server.stdout:  # Events may come before the response to the request that caused them.
    message = json.loads(line)
    method, params = message.get("method"), message.get("params", {})
    if "error" in message:
        sys.exit(f"{message['id']}: {message['error']['message']}")
    elif message.get("id") == "open":
        conversation = message["result"]["conversation_id"]
        send(id="say", method="sendUserMessage", params={"conversation_id": conversation, "text": TASK})
    elif method and "id" in message:  # A request of the server: bound to exactly the effect that it shows.
        decision = "approved" if approval(method, params) else "denied"
        send(id=message["id"], result={"decision": decision, "digest": params["digest"]})
    elif method == "event/assistantMessage":
        print("".join(block.get("text", "") for block in params["data"]["content"]))
    elif method == "event/turnFinished":
        print(f"{params['data']['reason']} after {params['data']['steps']} steps", file=sys.stderr)
        send(id="bye", method="shutdown")
sys.exit(server.wait())
