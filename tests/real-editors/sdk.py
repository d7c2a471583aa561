"""Drives `bailiwick acp` by the protocol's Python SDK (PyPI). Prints a row for each flow. Status 1: a flow failed."""

import asyncio
import contextlib
import importlib.metadata
import os
import sys
import tempfile
from pathlib import Path

import acp
import model
from acp import PROTOCOL_VERSION, spawn_agent_process, text_block
from acp.schema import RequestPermissionResponse

BAILIWICK = os.environ.get("BAILIWICK", str(Path(__file__).parents[2] / "target/debug/bailiwick"))
LIMIT_S = 60
CANCELLED = {"outcome": "cancelled"}


class Editor:
    """A client that answers permission requests by `choose` and keeps all updates. It offers no files or terminals."""

    def __init__(self):
        self.choose = lambda options: self.first(options, "reject_once")
        self.asked, self.updates, self.outside = [], [], []
        self.told = asyncio.Event()

    def first(self, options, word):
        return next(option.option_id for option in options if option.kind == word or option.option_id.startswith(word + ":"))

    def on_connect(self, _):
        pass

    async def request_permission(self, session_id, tool_call, options, **_):
        self.asked.append((session_id, tool_call, options))
        chosen = self.choose(options)
        chosen = await chosen if asyncio.iscoroutine(chosen) else chosen
        outcome = CANCELLED if chosen is None else {"outcome": "selected", "optionId": chosen}
        return RequestPermissionResponse.model_validate({"outcome": outcome})

    async def session_update(self, session_id, update, **_):
        self.updates.append((session_id, update))
        self.told.set()

    def __getattr__(self, name):
        if name.startswith(("read_", "write_", "create_", "terminal_", "release_", "wait_", "kill_")):
            self.outside.append(name)
        raise AttributeError(name)

    def allows(self, word="allow_once"):
        self.choose = lambda options: self.first(options, word)

    def kinds(self, session_id=None):
        return [update.session_update for of, update in self.updates if session_id in (None, of)]

    def text(self, kind="agent_message_chunk"):
        return "".join(update.content.text for _, update in self.updates if update.session_update == kind)

    async def until(self, kind, words=""):
        while not any(update.session_update == kind and words in update.model_dump_json() for _, update in self.updates):
            self.told.clear()
            await self.told.wait()


class Place:
    """A home and a project on the disk, and the flags of the server."""

    def __init__(self, url, *flags):
        self.home, self.project = Path(tempfile.mkdtemp()), Path(tempfile.mkdtemp())
        self.flags = ["--base-url", url, *flags]

    @contextlib.asynccontextmanager
    async def editor(self, *flags):
        editor = Editor()
        env = dict(os.environ, HOME=str(self.home), ANTHROPIC_API_KEY="x", BAILIWICK_TEST="editors")
        for name in ("XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME"):
            env.pop(name, None)
        async with spawn_agent_process(editor, BAILIWICK, "acp", *self.flags, *flags, env=env) as (connection, process):
            editor.process, editor.connection = process, connection
            hello = await connection.initialize(protocol_version=PROTOCOL_VERSION)
            assert hello.protocol_version == 1 and hello.agent_info.name == "bailiwick", hello
            yield editor

    async def session(self, editor):
        opened = await editor.connection.new_session(cwd=str(self.project), mcp_servers=[])
        return opened.session_id

    def read(self, name):
        file = self.project / name
        return file.read_text() if file.exists() else None


async def turn(editor, session, words):
    answered = await editor.connection.prompt(session_id=session, prompt=[text_block(words)])
    return answered.stop_reason


def same(one, other):
    assert one == other, f"{one!r} is not {other!r}"


FLOWS = {}


def flow(name):
    def add(run):
        FLOWS[name] = run
        return run
    return add


@flow("initialize, new, prompt")
async def hello(place):
    async with place.editor() as editor:
        same(await turn(editor, await place.session(editor), "#hello"), "end_turn")
        same(editor.text(), "Hello from the model.")
        return "the reply came in %d pieces" % editor.kinds().count("agent_message_chunk")


@flow("an edit approved")
async def edit(place):
    async with place.editor() as editor:
        editor.allows()
        same(await turn(editor, await place.session(editor), "#edit"), "end_turn")
        diffs = [part for part in editor.asked[0][1].content if part.type == "diff"]
        same([diff.new_text for diff in diffs], [place.read("hello.txt")])
        return "the diff that was shown is the file"


@flow("an edit denied")
async def denied(place):
    async with place.editor() as editor:
        same(await turn(editor, await place.session(editor), "#edit"), "end_turn")
        same((len(editor.asked), place.read("hello.txt")), (1, None))
        return "no file"


@flow("an edit, the question cancelled")
async def dismissed(place):
    async with place.editor() as editor:
        editor.choose = lambda options: None
        same(await turn(editor, await place.session(editor), "#edit"), "end_turn")
        same(place.read("hello.txt"), None)
        return "no file"


@flow("a command approved")
async def command(place):
    async with place.editor() as editor:
        editor.allows()
        same(await turn(editor, await place.session(editor), "#command"), "end_turn")
        same(place.read("made.txt"), "made\n")
        return "it ran once"


@flow("plan mode, the plan edited")
async def plan(place):
    async with place.editor() as editor:
        def choose(options):
            if len(editor.asked) == 1:
                text = editor.asked[0][1].content[0].content.text
                file = Path(next(line[6:] for line in text.splitlines() if line.startswith("file: ")))
                file.write_text(file.read_text().replace("Write the note", "Write my note"))
                return editor.first(options, "edited")
            return editor.first(options, "allow_once")
        editor.choose = choose
        session = await place.session(editor)
        await editor.connection.set_session_mode(mode_id="plan", session_id=session)
        same(await turn(editor, session, "#plan"), "end_turn")
        same((len(editor.asked), place.read("note.txt")), (2, "noted\n"))
        entries = [update.entries for _, update in editor.updates if update.session_update == "plan"][-1]
        same([(entry.content, entry.status) for entry in entries], [("Write my note", "completed")])
        return "asked twice, executed as edited"


@flow("cancel in mid-stream")
async def cancel_stream(place):
    async with place.editor() as editor:
        session = await place.session(editor)
        running = asyncio.create_task(turn(editor, session, "#long"))
        await editor.until("agent_message_chunk")
        await editor.connection.cancel(session_id=session)
        same(await running, "cancelled")
        same(await turn(editor, session, "#hello"), "end_turn")
        return "cancelled, and the next turn runs"


@flow("cancel in mid-command")
async def cancel_command(place):
    async with place.editor() as editor:
        session = await place.session(editor)
        running = asyncio.create_task(turn(editor, session, "#sleep"))
        await editor.until("tool_call_update", "started")
        await editor.connection.cancel(session_id=session)
        same(await running, "cancelled")
        return "cancelled"


@flow("cancel while a question waits")
async def cancel_question(place):
    async with place.editor() as editor:
        session = await place.session(editor)
        waits = asyncio.Event()
        async def later():
            waits.set()
            await asyncio.sleep(1)
            return None
        editor.choose = lambda options: later()
        running = asyncio.create_task(turn(editor, session, "#edit"))
        await waits.wait()
        await editor.connection.cancel(session_id=session)
        same(await running, "cancelled")
        same(place.read("hello.txt"), None)
        return "cancelled, no file"


@flow("load with history, list, resume, close")
async def load(place):
    async with place.editor() as editor:
        session = await place.session(editor)
        await turn(editor, session, "#hello")
    async with place.editor() as editor:
        listed = await editor.connection.list_sessions(cwd=str(place.project))
        same([one.session_id for one in listed.sessions], [session])
        await editor.connection.load_session(cwd=str(place.project), session_id=session, mcp_servers=[])
        same((editor.text("user_message_chunk"), editor.text()), ("#hello", "Hello from the model."))
        try:
            await editor.connection.load_session(cwd=str(place.project), session_id=session, mcp_servers=[])
            raise AssertionError("a session in use was loaded")
        except acp.RequestError as error:
            same(error.data["error"], "session-open")
        same(await turn(editor, session, "#hello"), "end_turn")
        await editor.connection.close_session(session_id=session)
        await editor.connection.resume_session(cwd=str(place.project), session_id=session, mcp_servers=[])
        same(await turn(editor, session, "#hello"), "end_turn")
        return "history, and a typed error while it is in use"


@flow("mode and model changes")
async def changes(place):
    async with place.editor("--up-to", "auto") as editor:
        session = await place.session(editor)
        await editor.connection.set_config_option(config_id="model", session_id=session, value="claude-haiku-5-5")
        await editor.connection.set_session_mode(mode_id="auto", session_id=session)
        same(await turn(editor, session, "#edit"), "end_turn")
        same((editor.asked, place.read("hello.txt")), ([], "hello\nworld\n"))
    async with place.editor() as editor:
        session = await place.session(editor)
        try:
            await editor.connection.set_session_mode(mode_id="auto", session_id=session)
            raise AssertionError("the mode was widened")
        except acp.RequestError as error:
            same(error.data["word"], "option_refused")
        return "auto within --up-to, refused without"


@flow("two sessions at once")
async def two(place):
    async with place.editor() as editor:
        editor.allows()
        one, other = await place.session(editor), await place.session(editor)
        same(await asyncio.gather(turn(editor, one, "#hello"), turn(editor, other, "#command")), ["end_turn"] * 2)
        same("tool_call" in editor.kinds(one), False)
        return "each update has its session"


@flow("a sub-agent")
async def sub_agent(place):
    async with place.editor() as editor:
        same(await turn(editor, await place.session(editor), "#delegate"), "end_turn")
        ids = [update.tool_call_id for _, update in editor.updates if update.session_update == "tool_call"]
        same(ids, ["1:1", "agent:1.1", "1.1:1"])
        return "calls %s" % ", ".join(ids)


@flow("a guest: an MCP server of the user, and one of the editor")
async def guest(place):
    server = [sys.executable if sys.prefix == sys.base_prefix else "/usr/bin/python3", str(place.home / "notes" / "server.py")]
    Path(server[1]).parent.mkdir()
    Path(server[1]).write_text(Path(__file__).with_name("server.py").read_text())
    env = dict(os.environ, HOME=str(place.home))
    add = [BAILIWICK, "mcp", "add", "notes", "--yes", "--read", str(place.home / "notes"), "-C", str(place.project), "--", *server]
    added = await asyncio.create_subprocess_exec(*add, env=env, stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL)
    same(await added.wait(), 0)
    async with place.editor() as editor:
        editor.allows()
        proposed = acp.schema.McpServerStdio(name="theirs", command="/bin/touch", args=[str(place.project / "started")], env=[])
        opened = await editor.connection.new_session(cwd=str(place.project), mcp_servers=[proposed])
        await editor.until("agent_message_chunk", "bailiwick mcp add theirs")
        same(await turn(editor, opened.session_id, "#guest"), "end_turn")
        done = [update for _, update in editor.updates if update.session_update == "tool_call_update"][-1]
        same((done.status, "noted: hello" in done.model_dump_json(), place.read("started")), ("completed", True, None))
        return "the user's was called in its sandbox, the editor's was not started"


@flow("a disconnect in mid-command")
async def disconnect(place):
    async with place.editor() as editor:
        session = await place.session(editor)
        running = asyncio.create_task(turn(editor, session, "#sleep"))
        await editor.until("tool_call_update", "started")
        editor.process.stdin.close()
        same(await asyncio.wait_for(editor.process.wait(), 20), 0)
        running.cancel()
        left = [pid for pid in os.listdir("/proc") if pid.isdigit() and is_of(pid, place)]
        same(left, [])
        return "no process is left"


def is_of(pid, place):
    """True if a process lives and has the home directory of this place in its environment."""
    try:
        environ = Path("/proc", pid, "environ").read_bytes()
        state = Path("/proc", pid, "stat").read_text().rsplit(") ", 1)[1][0]
        return state != "Z" and b"HOME=%s\0" % str(place.home).encode() in environ
    except OSError:
        return False


async def main():
    url, failed = model.start(), False
    print("| flow | `agent-client-protocol` %s of PyPI |\n| --- | --- |" % importlib.metadata.version("agent-client-protocol"))
    for name, run in FLOWS.items():
        if sys.argv[1:] and not any(word in name for word in sys.argv[1:]):
            continue
        try:
            said = await asyncio.wait_for(run(Place(url)), LIMIT_S)
        except Exception as error:
            said, failed = "**failed**: %s: %s" % (type(error).__name__, str(error).replace("\n", " ")[:300]), True
        print("| %s | %s |" % (name, said), flush=True)
    sys.exit(failed)


asyncio.run(main())
