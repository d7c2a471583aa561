//! Changes the tables of MCP servers in the person's file. The rest of the file stays the same, byte for byte.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use boundary::policy::users_home;
use ipc::rights::Network;

use super::effective::at_home;
use super::mcp::McpServer;
use super::parse::parse_users;
use super::taken_grants::{TakenGrant, without_grants};

#[derive(Debug, thiserror::Error)]
pub enum TableError {
    #[error("cannot write {file}: {source}")]
    Write { file: String, source: io::Error },
    #[error(
        "cannot change the table [mcp.{0}] safely, since the table is not on lines of its own\n  hint: edit {1}"
    )]
    Form(String, String),
    #[error(
        "cannot add to the table of {0} safely, since the table is written in a form that Bailiwick cannot edit\n  hint: edit {1}"
    )]
    Project(String, String),
}

/// Writes the table of a server. Replaces an existing one.
pub fn write_server(file: &Path, server: &McpServer) -> Result<(), TableError> {
    let text = read(file)?;
    let mut text = without(&text, file, &server.name)?;
    if !text.is_empty() {
        text = format!("{}\n\n", text.trim_end_matches('\n'));
    }
    text.push_str(&table(server));
    replace(file, &text)
}

/// Removes the table of a server, and the approvals of its tools. Returns the removed approvals.
pub fn remove_server(file: &Path, name: &str) -> Result<BTreeSet<TakenGrant>, TableError> {
    let text = read(file)?;
    let failed = || TableError::Form(name.to_owned(), file.display().to_string());
    let (kept, taken) = without_grants(&without(&text, file, name)?, file, name).ok_or_else(failed)?;
    if kept != text {
        replace(file, &kept)?;
    }
    Ok(taken)
}

/// True if a line is the head `[project."PATH"]` of this project's table.
pub(super) fn is_head(line: &str, project: &Path) -> bool {
    let name = line.trim().strip_prefix("[project.").and_then(|rest| rest.strip_suffix(']'));
    let name = name.map(|name| name.trim_matches(['"', '\'']));
    name.is_some_and(|name| at_home(name.as_ref(), users_home().as_deref()) == project)
}

pub(super) fn read(file: &Path) -> Result<String, TableError> {
    match fs::read_to_string(file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
        text => text.map_err(|source| TableError::Write { file: file.display().to_string(), source }),
    }
}

/// Replaces the file as a whole. If it is a symbolic link, replaces the target.
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

/// Returns the text without the table of a server. Fails if this would remove more than the table.
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
    let McpServer {
        name,
        command,
        args,
        env,
        read,
        write,
        net,
        offer,
        enabled,
        always: _,
        unasked: _,
        origin: _,
    } = server;
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
