"""Writes each reply of a scripted model as an HTTP response, for a container whose only server is netcat."""

from model import events

EDIT = ("edit_file", {"path": "sum.sh", "old_string": "$1 - $2", "new_string": "$1 + $2"})
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n"

for turn, blocks in enumerate([[EDIT], ["done"]]):
    with open("reply-%d" % turn, "wb") as reply:
        reply.write(HEAD + b"".join(events(turn, blocks)))
