//! MCP server on standard streams whose first argument chooses a good or bad behaviour.

#![expect(
    clippy::large_stack_arrays,
    clippy::match_same_arms,
    clippy::print_stderr,
    clippy::too_many_lines,
    clippy::unused_self,
    reason = "it misbehaves in thirty ways, each of which is read alone"
)]

use std::io::{self, BufRead, Write};
use std::process::{Command, ExitCode, Stdio, exit};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

/// A valid picture of 48 by 32 pixels (PNG).
const PNG: &[u8] = include_bytes!("../../../fixtures/images/shapes.png");

type Said = io::Result<()>;

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let behaviour = arguments.next().unwrap_or_default();
    let mut server =
        Server { behaviour, arguments: arguments.collect(), replies: Vec::new(), last: 0, cancelled: 0 };
    // The client has closed the pipe.
    match server.serve() {
        Ok(()) | Err(_) => ExitCode::SUCCESS,
    }
}

struct Server {
    behaviour: String,
    arguments: Vec<String>,
    /// Replies of the client that arrived while the server waited for the reply to another request.
    replies: Vec<Value>,
    /// Id of the last request that the server sent.
    last: u64,
    cancelled: u32,
}

impl Server {
    fn serve(&mut self) -> Said {
        self.start()?;
        while let Some(message) = self.read()? {
            let id = message["id"].clone();
            match message["method"].as_str() {
                Some("server/discover") if self.is("modern") => self.reply(&id, &discovered())?,
                Some("initialize") if self.is("modern") => self.fail(&id, -32601, "no such method")?,
                Some("initialize") => self.initialize(&id)?,
                Some("subscriptions/listen") => self.listen(&id)?,
                Some("tools/list") => self.tools(&id, &message)?,
                Some("tools/call") => self.call(&id, &message)?,
                Some("prompts/list") => self.reply(&id, &prompts())?,
                Some("prompts/get") => self.reply(&id, &self.prompt(&message))?,
                Some("notifications/cancelled") => self.cancelled += 1,
                Some("resources/list") => self.reply(&id, &self.resources())?,
                Some("resources/templates/list") if !self.is("no-templates") => {
                    self.reply(&id, &templates())?;
                }
                Some("resources/read") => self.reply(&id, &resource(&message))?,
                Some(_) if !id.is_null() => self.fail(&id, -32601, "no such method")?,
                _ => {}
            }
        }
        Ok(())
    }

    fn is(&self, behaviour: &str) -> bool {
        self.behaviour == behaviour || self.behaviour.starts_with(&format!("{behaviour}-"))
    }

    fn start(&self) -> Said {
        match self.behaviour.as_str() {
            "greets" => raw(b"Welcome to this server\nlistening on standard streams\n\n"),
            "greets-much" => raw("hello\n".repeat(20).as_bytes()),
            "silent" => rest(),
            "dies" => {
                eprintln!("cannot find the database");
                exit(3)
            }
            "never-ends-a-line" => loop {
                raw(&[b'x'; 64 << 10])?;
            },
            "floods-stderr" => {
                thread::spawn(|| while io::stderr().write_all(&[b'e'; 64 << 10]).is_ok() {});
                Ok(())
            }
            "never-reads" => rest(),
            "closes-output" => {
                nix::unistd::close(1)?;
                rest()
            }
            _ => Ok(()),
        }
    }

    fn initialize(&self, id: &Value) -> Said {
        let capabilities = json!({"tools": {"listChanged": true}, "prompts": {}, "resources": {}});
        let program = json!({"name": "fake", "version": "1.2.3"});
        self.reply(
            id,
            &json!({"protocolVersion": "2025-11-25", "capabilities": capabilities, "serverInfo": program,
                "instructions": "Use with care."}),
        )
    }

    fn prompt(&self, message: &Value) -> Value {
        let who = message["params"]["arguments"]["who"].as_str().unwrap_or_default();
        let text = if self.is("notes-cancelled") {
            format!("Greet {who}. Cancelled: {}.", self.cancelled)
        } else {
            format!("Greet {who}.")
        };
        json!({"messages": [{"role": "user", "content": {"type": "text", "text": text}}]})
    }

    fn resources(&self) -> Value {
        if self.is("many-resources") {
            let one = |number| json!({"uri": format!("file:///{number}"), "name": "n", "description": "d".repeat(9000)});
            return json!({"resources": (0..400).map(one).collect::<Vec<_>>(), "nextCursor": "again"});
        }
        json!({"resources": [
            {"uri": "file:///a", "name": "a", "description": "The first.\nAnd more."},
            {"uri": "file:///b", "name": "b"},
        ]})
    }

    fn listen(&self, id: &Value) -> Said {
        let meta = json!({"io.modelcontextprotocol/subscriptionId": id});
        let filter = json!({"toolsListChanged": true});
        write(&json!({"jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged",
            "params": {"_meta": meta, "notifications": filter}}))?;
        write(
            &json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed", "params": {"_meta": meta}}),
        )
    }

    fn tools(&self, id: &Value, message: &Value) -> Said {
        let cursor = message["params"]["cursor"].as_str();
        let page = |tools: Vec<Value>, next: Option<&str>| match next {
            Some(next) => json!({"tools": tools, "nextCursor": next}),
            None => json!({"tools": tools}),
        };
        let result = match self.behaviour.as_str() {
            "many-tools" => page((0..10_000).map(|number| tool(&format!("tool{number}"))).collect(), None),
            "thirty-tools" => page((0..30).map(|number| tool(&format!("tool{number}"))).collect(), None),
            "500-tools" => page((0..500).map(|number| tool(&format!("tool{number}"))).collect(), None),
            "many-pages" => {
                let number: u32 = cursor.map_or(0, |cursor| cursor.parse().unwrap_or_default());
                page(Vec::new(), Some(&(number + 1).to_string()))
            }
            "leads-back" => page(Vec::new(), Some("again")),
            "two-pages" if cursor.is_none() => page(vec![tool("first")], Some("more")),
            "two-pages" => page(vec![tool("second")], None),
            "twice" => page(vec![tool("same"), tool("same")], None),
            "nameless" => page(vec![tool("")], None),
            "deep-schema" => page(vec![with_schema(&nested(40))], None),
            "deepest-schema" => page(vec![with_schema(&nested(30))], None),
            "large-schema" => {
                page(vec![with_schema(&json!({"type": "object", "title": "x".repeat(70_000)}))], None)
            }
            "cyclic-schema" => {
                page(vec![with_schema(&json!({"type": "object", "properties": {"a": {"$ref": "#"}}}))], None)
            }
            "no-schema" => page(vec![json!({"name": "bad", "inputSchema": "text"})], None),
            "changes-early" => {
                changed()?;
                page(vec![tool("echo")], None)
            }
            _ => page(vec![tool("echo"), tool("other")], None),
        };
        self.reply(id, &result)
    }

    fn call(&mut self, id: &Value, message: &Value) -> Said {
        let arguments = &message["params"]["arguments"];
        match self.behaviour.as_str() {
            "silent-call" | "silent-call-after-progress" => {
                if self.is("silent-call-after") {
                    self.progress(message, 1)?;
                }
                Ok(())
            }
            "drips" => loop {
                self.progress(message, 1)?;
                thread::sleep(Duration::from_millis(50));
            },
            "notes-cancelled" => self.progress(message, 1),
            "progresses" => {
                for step in 1..=3 {
                    self.progress(message, step)?;
                    thread::sleep(Duration::from_millis(250));
                }
                self.reply(id, &text("done"))
            }
            "dies-in-a-call" => {
                eprintln!("out of luck");
                exit(7)
            }
            "answers-and-dies" => {
                self.reply(id, &text("last words"))?;
                exit(0)
            }
            "answers-others" => {
                let result = text("forged");
                for other in 900..910 {
                    self.reply(&json!(other), &result)?;
                }
                self.reply(id, &text("true"))?;
                self.reply(id, &text("again"))
            }
            "floods-strays" => {
                for other in 900..2_000 {
                    self.reply(&json!(other), &text("forged"))?;
                }
                Ok(())
            }
            "backwards" => {
                self.replies.push(json!({"id": id, "text": arguments["text"]}));
                if self.replies.len() < 3 {
                    return Ok(());
                }
                for waiting in std::mem::take(&mut self.replies).iter().rev() {
                    let said = waiting["text"].as_str().unwrap_or_default();
                    self.reply(&waiting["id"], &text(said))?;
                }
                Ok(())
            }
            "broken" => {
                raw(b"this is no message\n{\"jsonrpc\":\n")?;
                self.reply(id, &text("too late"))
            }
            "broken-once" => {
                raw(b"debug: calling\n")?;
                self.reply(id, &text("fine"))
            }
            "not-utf8" => raw(b"{\"jsonrpc\":\"2.0\",\"id\":\xff}\n{\"a\":\"\0\"}\n"),
            "long-line" => {
                for _ in 0..1600 {
                    raw(&[b' '; 64 << 10])?;
                }
                raw(b"\n")
            }
            "large-result" => self.reply(id, &text(&"x".repeat(3_500_000))),
            "many-parts" => {
                self.reply(id, &json!({"content": vec![json!({"type": "text", "text": ""}); 5000]}))
            }
            "all-kinds" => self.reply(id, &all_kinds()),
            "many-pictures" => {
                let picture = json!({"type": "image", "data": base64(PNG), "mimeType": "image/png"});
                self.reply(id, &json!({"content": vec![picture; 50]}))
            }
            "fails" => self.reply(id, &json!({"content": [{"type": "text", "text": "no"}], "isError": true})),
            "refuses" => self.fail(id, -32602, "no such tool"),
            "wrong-kind" => self.reply(id, &json!({"tools": []})),
            "changes" => {
                for _ in 0..500 {
                    changed()?;
                }
                self.reply(id, &text("changed"))
            }
            "asks" => {
                let reply = self.ask("elicitation/create", &Self::question())?;
                self.reply(id, &text(&reply.to_string()))
            }
            "asks-late" => {
                self.reply(id, &text("done"))?;
                let reply = self.ask("elicitation/create", &Self::question())?;
                eprintln!("{reply}");
                self.replies.push(reply);
                Ok(())
            }
            "asks-in-a-storm" => self.storm(id),
            "asks-much" => {
                let mut errors = 0;
                for _ in 0..20 {
                    let reply = self.ask("elicitation/create", &question())?;
                    errors += u32::from(!reply["error"].is_null());
                }
                self.reply(id, &text(&errors.to_string()))
            }
            "asks-everything" => {
                let sampling = json!({"messages": [], "maxTokens": 10});
                let mut replies = vec![self.ask("sampling/createMessage", &sampling)?];
                replies.push(self.ask("roots/list", &json!({}))?);
                replies.push(self.ask("ping", &json!({}))?);
                let url =
                    json!({"mode": "url", "message": "m", "url": "https://a.example", "elicitationId": "1"});
                replies.push(self.ask("elicitation/create", &url)?);
                self.reply(id, &text(&Value::Array(replies).to_string()))
            }
            "modern-asks" => self.require_input(id, &message["params"]),
            "leaves-a-daemon" => {
                let path = self.arguments.first().cloned().unwrap_or_default();
                let script = format!("while :; do date +%s%N > '{path}'; sleep 0.05; done");
                Command::new("setsid").args(["sh", "-c", &script]).stdin(Stdio::null()).spawn()?;
                self.reply(id, &text("left"))
            }
            "does" => self.reply(id, &text(&act(&self.arguments))),
            _ => self.reply(id, &text(&arguments.to_string())),
        }
    }

    /// Returns the question in the file next to this program, or the default one.
    fn question() -> Value {
        let file = std::fs::read_to_string("question.json").ok();
        file.and_then(|json| serde_json::from_str(&json).ok()).unwrap_or_else(question)
    }

    /// Sends many requests, and reads none of the replies.
    fn storm(&mut self, id: &Value) -> Said {
        for number in 0..1000 {
            let id = format!("storm-{number}");
            write(
                &json!({"jsonrpc": "2.0", "id": id, "method": "elicitation/create", "params": question()}),
            )?;
        }
        self.reply(id, &text("stormed"))
    }

    /// Ends a call with questions until the client answers them, as in the MCP version 2026-07-28.
    fn require_input(&self, id: &Value, params: &Value) -> Said {
        if self.arguments.first().is_none_or(|often| often != "always")
            && let answer @ Value::Object(_) = &params["inputResponses"]
        {
            let said = json!({"answer": answer, "state": params["requestState"]});
            return self.reply(id, &text(&said.to_string()));
        }
        let question = json!({"method": "elicitation/create", "params": Self::question()});
        self.reply(
            id,
            &json!({"resultType": "input_required", "inputRequests": {"name": question}, "requestState": "s1"}),
        )
    }

    fn ask(&mut self, method: &str, params: &Value) -> io::Result<Value> {
        self.last += 1;
        let id = format!("own-{}", self.last);
        write(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))?;
        while let Some(message) = self.read()? {
            if message["id"] == id.as_str() {
                return Ok(message);
            }
        }
        Err(io::ErrorKind::UnexpectedEof.into())
    }

    fn progress(&self, message: &Value, step: u32) -> Said {
        let token = &message["params"]["_meta"]["progressToken"];
        let params =
            json!({"progressToken": token, "progress": step, "total": 3, "message": "step\nof many"});
        write(&json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": params}))
    }

    fn reply(&self, id: &Value, result: &Value) -> Said {
        let mut result = result.clone();
        if self.is("modern") && result["resultType"].is_null() {
            result["resultType"] = json!("complete");
        }
        write(&json!({"jsonrpc": "2.0", "id": id, "result": result}))
    }

    fn fail(&self, id: &Value, code: i32, message: &str) -> Said {
        write(&json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}}))
    }

    fn read(&self) -> io::Result<Option<Value>> {
        let mut line = String::new();
        if io::stdin().lock().read_line(&mut line)? == 0 {
            return Ok(None);
        }
        Ok(Some(serde_json::from_str(&line)?))
    }
}

/// Returns the names of the files below `/proc` of a process that can be opened: memory, environment and descriptors.
fn opened(process: &str) -> String {
    let descriptors = (0..16).map(|number| format!("fd/{number}"));
    let names = ["mem", "environ"].into_iter().map(str::to_owned).chain(descriptors);
    let opens = |name: &String| {
        let path = format!("/proc/{process}/{name}");
        std::fs::File::open(&path).is_ok() || std::fs::read_link(&path).is_ok()
    };
    names.filter(opens).collect::<Vec<_>>().join(" ")
}

fn act(words: &[String]) -> String {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let done = match words.as_slice() {
        ["read", path] => std::fs::read_to_string(path),
        ["write", path] => std::fs::write(path, "written").map(|()| "written".to_owned()),
        ["connect", address] => std::net::TcpStream::connect(address).map(|_| "connected".to_owned()),
        ["fetch", address, name] => fetch(address, name),
        ["opens", "guest"] => return opened(&std::os::unix::process::parent_id().to_string()),
        ["opens", "itself"] => return opened("self"),
        ["environment", name] => return std::env::var(name).unwrap_or_else(|_| "unset".to_owned()),
        _ => return "unknown".to_owned(),
    };
    done.unwrap_or_else(|error| format!("error {}", error.raw_os_error().unwrap_or_default()))
}

/// Returns the first line of a host's HTTP response.
fn fetch(address: &str, name: &str) -> io::Result<String> {
    let mut socket = std::net::TcpStream::connect(address)?;
    write!(socket, "GET / HTTP/1.1\r\nHost: {name}\r\nConnection: close\r\n\r\n")?;
    let mut line = String::new();
    io::BufReader::new(socket).read_line(&mut line)?;
    Ok(line.trim().to_owned())
}

fn rest() -> Said {
    loop {
        thread::park();
    }
}

fn raw(bytes: &[u8]) -> Said {
    let mut output = io::stdout().lock();
    output.write_all(bytes)?;
    output.flush()
}

fn write(message: &Value) -> Said {
    raw(format!("{message}\n").as_bytes())
}

fn changed() -> Said {
    write(&json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}))
}

fn discovered() -> Value {
    json!({"resultType": "complete", "supportedVersions": ["2026-07-28"], "ttlMs": 0, "cacheScope": "private",
        "capabilities": {"tools": {"listChanged": true}},
        "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "modern", "version": "2"}}})
}

fn tool(name: &str) -> Value {
    json!({"name": name, "title": "A tool", "description": "Repeats its arguments.",
        "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}},
        "annotations": {"readOnlyHint": true}})
}

fn with_schema(schema: &Value) -> Value {
    json!({"name": "shaped", "inputSchema": schema})
}

/// Returns an object schema with this number of levels.
fn nested(levels: usize) -> Value {
    (1..levels).fold(json!({}), |inner, _| json!({ "a": inner }))
}

fn question() -> Value {
    let schema = json!({"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]});
    json!({"message": "Your name?", "requestedSchema": schema})
}

fn text(text: &str) -> Value {
    json!({"content": [{"type": "text", "text": text}]})
}

fn all_kinds() -> Value {
    json!({"content": [
        {"type": "text", "text": "words"},
        {"type": "image", "data": base64(PNG), "mimeType": "image/png"},
        {"type": "image", "data": "bm8gcGljdHVyZQ==", "mimeType": "image/png"},
        {"type": "image", "data": "====", "mimeType": "image/jpeg"},
        {"type": "audio", "data": "AAAA", "mimeType": "audio/wav"},
        {"type": "resource", "resource": {"uri": "file:///a", "text": "inside"}},
        {"type": "resource", "resource": {"uri": "file:///c.pdf", "blob": "AAAA", "mimeType": "application/pdf"}},
        {"type": "resource_link", "uri": "file:///b", "name": "b"},
    ], "structuredContent": {"answer": 42}})
}

fn prompts() -> Value {
    json!({"prompts": [{"name": "greet", "description": "Greets.",
        "arguments": [{"name": "who", "required": true}, {"name": "how"}]}]})
}

fn templates() -> Value {
    json!({"resourceTemplates": [{"uriTemplate": "file:///{name}", "name": "files", "description": "All of them."}]})
}

fn resource(message: &Value) -> Value {
    json!({"contents": [{"uri": message["params"]["uri"], "text": "inside"}]})
}

fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let padded = [chunk[0], *chunk.get(1).unwrap_or(&0), *chunk.get(2).unwrap_or(&0)];
        let number = u32::from_be_bytes([0, padded[0], padded[1], padded[2]]);
        for place in 0..4 {
            let letter = LETTERS[(number >> (18 - 6 * place)) as usize & 63] as char;
            text.push(if place > chunk.len() { '=' } else { letter });
        }
    }
    text
}
