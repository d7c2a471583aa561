//! Changes to the tables of servers in the person's file. The rest of the file is preserved byte for byte.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use boundary::policy::users_home;
use ipc::rights::Network;

use super::effective::at_home;
use super::mcp::{McpServer, ToolGrant};
use super::parse::parse_users;
use super::taken_grants::{TakenGrant, without_grants};
use super::value::Value;

#[derive(Debug, thiserror::Error)]
pub enum TableError {
    #[error("cannot write {file}: {source}")]
    Write { file: String, source: io::Error },
    #[error(
        "cannot change the table [mcp.{0}] safely, since the table is not on lines of its own\n  hint: edit {1}"
    )]
    Form(String, String),
    #[error(
        "cannot add to the table of {0} safely, since the table is written in another form\n  hint: edit {1}"
    )]
    Project(String, String),
}

/// Writes a server's table and replaces an existing one.
pub fn write_server(file: &Path, server: &McpServer) -> Result<(), TableError> {
    let text = read(file)?;
    let mut text = without(&text, file, &server.name)?;
    if !text.is_empty() {
        text = format!("{}\n\n", text.trim_end_matches('\n'));
    }
    text.push_str(&table(server));
    replace(file, &text)
}

/// Removes a server's table and the grants of its tools together. Returns these grants.
pub fn remove_server(file: &Path, name: &str) -> Result<BTreeSet<TakenGrant>, TableError> {
    let text = read(file)?;
    let failed = || TableError::Form(name.to_owned(), file.display().to_string());
    let (kept, taken) = without_grants(&without(&text, file, name)?, file, name).ok_or_else(failed)?;
    if kept != text {
        replace(file, &kept)?;
    }
    Ok(taken)
}

/// The key of the tools that run without a question.
const TOOLS: &str = "approvals.tools";

/// Adds a tool to those that run without a question in a project. Its earlier definition is replaced.
pub fn allow_tool(file: &Path, project: &Path, grant: &ToolGrant) -> Result<(), TableError> {
    let failed = || TableError::Project(project.display().to_string(), file.display().to_string());
    let name = project.to_str().ok_or_else(failed)?;
    let text = read(file)?;
    let mut tools = allowed_tools(&text, file, project).ok_or_else(failed)?;
    let is_of_it = |text: &String| {
        let other = ToolGrant::parse(text);
        other.is_some_and(|other| (&other.server, &other.tool) == (&grant.server, &grant.tool))
    };
    tools.retain(|tool| !is_of_it(tool));
    tools.push(grant.to_string());
    let list: Vec<_> = tools.iter().map(|tool| quoted(tool)).collect();
    let line = format!("{TOOLS} = [{}]\n", list.join(", "));
    let (mut whole, mut inside, mut is_written) = (String::new(), false, false);
    for old in text.split_inclusive('\n') {
        if old.starts_with('[') {
            inside = is_head(old, project);
        }
        if !inside || !old.trim_start().starts_with(TOOLS) {
            whole.push_str(old);
        }
        if inside && !is_written {
            if !old.ends_with('\n') {
                whole.push('\n');
            }
            whole.push_str(&line);
            is_written = true;
        }
    }
    if !is_written {
        let before =
            if whole.is_empty() { String::new() } else { format!("{}\n\n", whole.trim_end_matches('\n')) };
        whole = format!("{before}[project.{}]\n{line}", quoted(name));
    }
    // Nothing is written that the next session would read in another way.
    if allowed_tools(&whole, file, project) == Some(tools) { replace(file, &whole) } else { Err(failed()) }
}

/// True if a line is the head of a project's table.
pub(super) fn is_head(line: &str, project: &Path) -> bool {
    let name = line.trim().strip_prefix("[project.").and_then(|rest| rest.strip_suffix(']'));
    let name = name.map(|name| name.trim_matches(['"', '\'']));
    name.is_some_and(|name| at_home(name.as_ref(), users_home().as_deref()) == project)
}

/// Returns the tools in the table of a project; `None` if the text cannot be read.
fn allowed_tools(text: &str, file: &Path, project: &Path) -> Option<Vec<String>> {
    let (_, projects) = parse_users(text, file).ok()?;
    let home = users_home();
    let of_it = projects.iter().filter(|one| at_home(one.project.as_os_str(), home.as_deref()) == project);
    let values = of_it.filter_map(|one| one.layer.value(TOOLS));
    let words = values.flat_map(Value::elements).flat_map(|element| &element.words);
    Some(words.map(|word| word.to_string_lossy().into_owned()).collect())
}

pub(super) fn read(file: &Path) -> Result<String, TableError> {
    match fs::read_to_string(file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
        text => text.map_err(|source| TableError::Write { file: file.display().to_string(), source }),
    }
}

/// Replaces the file as a whole, or the file that it links to.
pub(super) fn replace(file: &Path, text: &str) -> Result<(), TableError> {
    let failed = |source| TableError::Write { file: file.display().to_string(), source };
    let target = fs::canonicalize(file).unwrap_or_else(|_| file.to_owned());
    let mode = fs::metadata(&target).map_or(0o600, |meta| meta.permissions().mode() & 0o777);
    let mut new = target.clone().into_os_string();
    new.push(".new");
    let write = || -> io::Result<()> {
        let _ = fs::remove_file(&new);
        let mut written = File::create_new(&new)?;
        written.set_permissions(fs::Permissions::from_mode(mode))?;
        written.write_all(text.as_bytes())?;
        written.sync_all()?;
        fs::rename(&new, &target)
    };
    write().map_err(failed)
}

/// Returns the text without the table of a server. Fails if more would be removed.
fn without(text: &str, file: &Path, name: &str) -> Result<String, TableError> {
    let servers = |text: &str| parse_users(text, file).map(|(layer, _)| layer.mcp).unwrap_or_default();
    let plain = |server: &McpServer| table(server);
    let before = servers(text);
    if !before.iter().any(|server| server.name == name) {
        return Ok(text.to_owned());
    }
    let heads = [format!("[mcp.{name}]"), format!("[mcp.\"{name}\"]")];
    let is_head = |line: &str| heads.iter().any(|head| line.trim() == head);
    let mut kept = String::new();
    let mut inside = false;
    for line in text.split_inclusive('\n') {
        if line.trim_start().starts_with('[') && !line.starts_with(' ') {
            inside = is_head(line);
        }
        if !inside {
            kept.push_str(line);
        }
    }
    let expected: Vec<_> = before.iter().filter(|server| server.name != name).map(plain).collect();
    let found: Vec<_> = servers(&kept).iter().map(plain).collect();
    if parse_users(&kept, file).is_ok() && found == expected {
        Ok(kept)
    } else {
        Err(TableError::Form(name.to_owned(), file.display().to_string()))
    }
}

fn table(server: &McpServer) -> String {
    let McpServer { name, command, args, env, read, write, net, offer, enabled, always: _, origin: _ } =
        server;
    let mut text = format!("[mcp.{name}]\ncommand = {}\n", quoted(command));
    let mut list = |key: &str, words: &[String]| {
        let words: Vec<_> = words.iter().map(|word| quoted(word)).collect();
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{key} = [{}]", words.join(", "));
    };
    for (key, words) in [("args", args), ("env", env), ("read", read), ("write", write)] {
        if !words.is_empty() {
            list(key, words);
        }
    }
    if let Network::Hosts(hosts) = net {
        list("hosts", &hosts.to_string().split(' ').map(str::to_owned).collect::<Vec<_>>());
    }
    if let Some(offer) = offer {
        list("offer", offer);
    }
    if !enabled {
        text.push_str("enabled = false\n");
    }
    text
}

pub(super) fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            // Writing to a String cannot fail.
            c if c.is_control() => drop(write!(quoted, "\\u{:04X}", u32::from(c))),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::config::ConfigOrigin;

    fn server(name: &str) -> McpServer {
        McpServer {
            command: "x \"y\" \\ \u{7f}é".to_owned(),
            args: vec!["--a".to_owned(), "[mcp.other]".to_owned()],
            net: Network::Hosts(protocol::network_words::hosts(["a.example", "b.example:8443"]).unwrap()),
            offer: Some(vec!["t".to_owned()]),
            ..McpServer::new(name, ConfigOrigin::Default)
        }
    }

    fn servers(file: &Path) -> Vec<String> {
        let text = fs::read_to_string(file).unwrap();
        parse_users(&text, file).unwrap().0.mcp.iter().map(table).collect()
    }

    #[test]
    fn a_table_is_written_replaced_and_removed_and_the_rest_stays() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("config.toml");
        write_server(&file, &server("a")).unwrap();
        assert_eq!(servers(&file), [table(&server("a"))]);
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        let rest = "# mine\nmode = \"ask\"\n\n[mcp.b]\ncommand = \"b\" # keep\n";
        fs::write(&file, format!("{rest}\n[mcp.a]\ncommand = \"old\"\nargs = [\n  \"[x]\",\n]\n")).unwrap();
        write_server(&file, &server("a")).unwrap();
        assert_eq!(servers(&file).len(), 2);
        assert!(fs::read_to_string(&file).unwrap().starts_with(rest));
        remove_server(&file, "a").unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap().trim_end(), rest.trim_end());
    }

    #[test]
    fn a_tool_is_allowed_in_the_table_of_a_project_and_the_rest_stays() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("config.toml");
        let (one, other) = ("0".repeat(64), "1".repeat(64));
        let allow = |tool: &str, digest: &str| {
            allow_tool(&file, Path::new("/home/me/a.b"), &ToolGrant::new("git", tool, digest))
        };
        allow("log", &one).unwrap();
        let whole = fs::read_to_string(&file).unwrap();
        insta::assert_snapshot!(whole.replace(&one, "DIGEST"), @r#"
        [project."/home/me/a.b"]
        approvals.tools = ["git/log@DIGEST"]
        "#);
        let mine = "# mine\nmode = \"ask\"\n\n[project.\"/home/me/a.b\"]\nmode = \"deny\" # here\n\n[mcp.git]\ncommand = \"x\"\n";
        fs::write(&file, mine).unwrap();
        for (tool, digest) in [("log", &one), ("show", &one), ("log", &other)] {
            allow(tool, digest).unwrap();
        }
        let whole = fs::read_to_string(&file).unwrap();
        insta::assert_snapshot!(whole.replace(&one, "ONE").replace(&other, "OTHER"), @r##"
        # mine
        mode = "ask"

        [project."/home/me/a.b"]
        approvals.tools = ["git/show@ONE", "git/log@OTHER"]
        mode = "deny" # here

        [mcp.git]
        command = "x"
        "##);
        fs::write(&file, "project = { \"/home/me/a.b\" = { mode = \"deny\" } }\n").unwrap();
        assert!(matches!(allow("log", &one), Err(TableError::Project(..))));
    }

    #[test]
    fn a_table_in_another_form_is_left_to_the_person() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("config.toml");
        for text in ["[mcp]\na = { command = \"x\" }\n", "mcp.a.command = \"x\"\n"] {
            fs::write(&file, text).unwrap();
            assert!(matches!(remove_server(&file, "a"), Err(TableError::Form(..))), "{text}");
            assert_eq!(fs::read_to_string(&file).unwrap(), text);
        }
    }
}
