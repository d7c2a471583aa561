//! The description of an MCP server for the person: its command, its access, and its tools.

use std::fmt::Write;

use protocol::shell_word::shell_word;

use crate::engine::mcp::{Inspected, Pin, PinnedTool, denied};
use crate::process::messages::{harmless, one_line};
use crate::settings::config::McpServer;

/// Maximum number of characters of a tool's description in a list.
const LINE: usize = 100;

pub(super) fn command(server: &McpServer) -> String {
    let words: Vec<_> = server.command_line().into_iter().map(shell_word).collect();
    one_line(&words.join(" "))
}

pub(super) fn access(server: &McpServer) -> String {
    let McpServer { read, write, net, env, .. } = server;
    let list = |words: &[String], none: &str, some: &str| {
        if words.is_empty() { none.to_owned() } else { format!("{some} {}", words.join(", ")) }
    };
    one_line(&format!(
        "{} · {} · network {net} · {}",
        list(read, "reads no project files", "reads"),
        list(write, "writes only the server's own files", "writes"),
        list(env, "no variable", "given"),
    ))
}

/// Returns what a started server says about itself. Marks tools that differ from the approved ones.
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

/// Adds to `text` the parts of a tool's definition that differ.
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

fn cut(text: &str) -> String {
    let first = text.trim().lines().next().unwrap_or_default();
    let short: String = first.chars().take(LINE).collect();
    if short.len() < text.trim().len() { format!("{short}…") } else { short }
}
