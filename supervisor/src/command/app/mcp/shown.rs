//! A server in a person's words: what it is, what it may do, and its tools.

use std::fmt::Write;

use ipc::refusal::{Act, Refusal, Target};
use protocol::shell_word::shell_word;

use crate::engine::mcp::{Inspected, Pin, PinnedTool};
use crate::process::messages::{harmless, one_line};
use crate::settings::config::McpServer;

/// Maximum number of denials that are listed.
const DENIALS: usize = 5;

/// Maximum number of characters of a description in a list.
const LINE: usize = 100;

/// Returns the command, quoted as for a shell.
pub(super) fn command(server: &McpServer) -> String {
    let words: Vec<_> = server.command_line().into_iter().map(shell_word).collect();
    one_line(&words.join(" "))
}

/// Returns the access of a server as its table says it.
pub(super) fn access(server: &McpServer) -> String {
    let McpServer { read, write, net, env, .. } = server;
    let list = |words: &[String], none: &str, some: &str| {
        if words.is_empty() { none.to_owned() } else { format!("{some} {}", words.join(", ")) }
    };
    one_line(&format!(
        "{} · {} · network {net} · {}",
        list(read, "reads no project", "reads"),
        list(write, "writes only its own files", "writes"),
        list(env, "no variable", "given"),
    ))
}

/// Returns the denials while a server started.
pub(super) fn denied(refused: &[Refusal]) -> Vec<String> {
    let line = |refusal: &Refusal| {
        let what = attempt(refusal.act, &refusal.object);
        one_line(&format!("blocked by the sandbox: {} tried to {what}", refusal.program))
    };
    let mut lines: Vec<String> = Vec::new();
    for line in refused.iter().map(line) {
        if lines.len() < DENIALS && !lines.contains(&line) {
            lines.push(line);
        }
    }
    lines
}

/// Returns the words for an act that was denied, after `tried to`.
fn attempt(act: Act, object: &Target) -> String {
    match (act, object) {
        (Act::Bind, Target::Internet(address, _)) => format!("listen at {address}"),
        (Act::Accept, Target::Internet(address, _)) => format!("let {address} in"),
        (_, Target::Internet(address, _)) => format!("reach {address}"),
        (_, Target::Host { name, port }) => format!("reach {name}:{port}"),
        (Act::Bind, Target::Socket(path)) => format!("make the socket {path}"),
        (_, Target::Socket(path)) => format!("use {path}, a socket of another program"),
        (_, Target::Abstract(name)) => {
            format!("use @{}, a socket of another program", String::from_utf8_lossy(name))
        }
        (_, Target::File(path)) => format!("change mode, owner, times or attributes of {path}"),
        (_, Target::Process(process)) => format!("signal process {process}"),
        (_, Target::Object(object)) => format!("use {object}"),
    }
}

/// Returns what a started server says of itself, with marks where its tools differ from those that the person approved.
pub(super) fn tools(inspected: &Inspected, approved: Option<&Pin>) -> String {
    let Inspected { pin, instructions, confined, took, refused } = inspected;
    let mut text = String::new();
    let mut line = |name: &str, value: &str| {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{name:<9} {}", one_line(value));
    };
    line(
        "server",
        &format!(
            "{} {} (MCP {}), started in {:.1} s",
            pin.name,
            pin.release,
            pin.protocol,
            took.as_secs_f64()
        ),
    );
    line("access", &confined.access.to_string());
    if !instructions.is_empty() {
        line("says", &cut(instructions));
    }
    for denial in denied(refused) {
        line("", &denial);
    }
    if pin.resources {
        line("resources", "yes");
    }
    if !pin.prompts.is_empty() {
        let names: Vec<_> = pin.prompts.iter().map(|prompt| prompt.name.as_str()).collect();
        line("prompts", &names.join(", "));
    }
    line("tools", &pin.tools.len().to_string());
    for tool in &pin.tools {
        let before = approved.map(|approved| approved.tools.iter().find(|before| before.name == tool.name));
        let mark = match before {
            Some(None) => "new: ",
            Some(Some(before)) if differs(before, tool) => "changed: ",
            None | Some(Some(_)) => "",
        };
        let _ = writeln!(text, "  {mark}{}  {}", one_line(&tool.name), one_line(&cut(&tool.description)));
        if let Some(Some(before)) = before {
            differences(&mut text, before, tool);
        }
    }
    let gone = approved.into_iter().flat_map(|approved| &approved.tools);
    for before in gone.filter(|before| !pin.tools.iter().any(|tool| tool.name == before.name)) {
        let _ = writeln!(text, "  gone: {}", one_line(&before.name));
    }
    text
}

fn differs(before: &PinnedTool, now: &PinnedTool) -> bool {
    PinnedTool { digest: String::new(), ..before.clone() }
        != PinnedTool { digest: String::new(), ..now.clone() }
}

/// Adds the parts of a definition that differ, whole.
fn differences(text: &mut String, before: &PinnedTool, now: &PinnedTool) {
    let parts = |tool: &PinnedTool| {
        [
            ("title", tool.title.clone().unwrap_or_default()),
            ("description", tool.description.clone()),
            ("arguments", tool.input_schema.clone()),
            ("result", tool.output_schema.clone().unwrap_or_default()),
            ("annotations", tool.annotations.clone().unwrap_or_default()),
        ]
    };
    for ((name, before), (_, now)) in parts(before).into_iter().zip(parts(now)) {
        if before != now {
            for (sign, part) in [('-', before), ('+', now)] {
                for line in harmless(&part).lines() {
                    let _ = writeln!(text, "    {sign} {name}: {line}");
                }
            }
        }
    }
}

/// Returns the beginning of a text, for one line.
fn cut(text: &str) -> String {
    let first = text.trim().lines().next().unwrap_or_default();
    let short: String = first.chars().take(LINE).collect();
    if short.len() < text.trim().len() { format!("{short}…") } else { short }
}

#[cfg(test)]
mod tests {
    use ipc::place::Place;

    use super::*;

    #[test]
    fn denials_are_told_in_words() {
        let address = "1.1.1.1:443".parse().unwrap();
        let internet = || Target::Internet(address, Place::Elsewhere);
        let host = Target::Host { name: "a.example".parse().unwrap(), port: 443 };
        let acts = [
            (Act::Connect, internet()),
            (Act::Bind, internet()),
            (Act::Accept, internet()),
            (Act::Connect, host),
            (Act::Connect, Target::Socket("/run/x".into())),
            (Act::Bind, Target::Socket("/run/x".into())),
            (Act::Send, Target::Abstract(b"x\x1b[2J".to_vec())),
            (Act::Change, Target::File("/etc/passwd".into())),
            (Act::Signal, Target::Process(7)),
            (Act::Use, Target::Object("shared memory 3".to_owned())),
        ];
        let refusal = |(act, object)| Refusal {
            process: 1,
            program: "sh\n".to_owned(),
            act,
            object,
            errno: 13,
            count: 1,
            untold: 0,
        };
        let twice = acts.map(|act| [refusal(act.clone()), refusal(act)]);
        let said: Vec<_> = twice.chunks(DENIALS).flat_map(|some| denied(&some.concat())).collect();
        insta::assert_snapshot!(said.join("\n"), @r"
        blocked by the sandbox: sh\n tried to reach 1.1.1.1:443
        blocked by the sandbox: sh\n tried to listen at 1.1.1.1:443
        blocked by the sandbox: sh\n tried to let 1.1.1.1:443 in
        blocked by the sandbox: sh\n tried to reach a.example:443
        blocked by the sandbox: sh\n tried to use /run/x, a socket of another program
        blocked by the sandbox: sh\n tried to make the socket /run/x
        blocked by the sandbox: sh\n tried to use @x\u{1b}[2J, a socket of another program
        blocked by the sandbox: sh\n tried to change mode, owner, times or attributes of /etc/passwd
        blocked by the sandbox: sh\n tried to signal process 7
        blocked by the sandbox: sh\n tried to use shared memory 3
        ");
    }
}
