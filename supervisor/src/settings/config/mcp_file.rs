//! A file of MCP servers that a person names for one run (`--mcp-config`).
//!
//! Like `--net`, the flag is the person's decision: the servers start with exactly the access that the file states. A
//! project's `.mcp.json` is only a proposal. So this file is read strictly: a mistake ends the run before any server
//! starts. As in a `.mcp.json`, the values of environment variables are not read.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value as Json;
use toml_edit::{Array, Item, Value};

use super::effective::Effective;
use super::error::SettingsError;
use super::mcp::{MOST_SERVERS, McpServer, is_server_name, no_address};
use super::origin::{ConfigOrigin, SettingPlace, printable};
use super::parse::{parse_users, text};
use super::trust::FileDigest;

/// Maximum size in bytes of the file.
const MOST: usize = 1 << 20;

/// Key of the JSON file that is ignored.
const SCHEMA: &str = "$schema";
const SERVERS: &str = "mcpServers";

/// The servers of a file in their order.
#[derive(Debug)]
pub struct McpFile {
    pub path: PathBuf,
    pub servers: Vec<McpServer>,
    /// Sentences about the parts of the file that are left out.
    pub left_out: Vec<String>,
    pub digest: FileDigest,
}

#[derive(Debug, thiserror::Error)]
pub enum McpFileError {
    #[error("--mcp-config: cannot read {}: {source}", printable(.file))]
    Unreadable { file: PathBuf, source: io::Error },
    #[error(
        "--mcp-config: {} is not a regular file\n  hint: name a JSON file with `mcpServers`, or a TOML file with [mcp.NAME] tables",
        printable(.0)
    )]
    NotAFile(PathBuf),
    #[error("--mcp-config: {0}")]
    Settings(#[from] SettingsError),
    #[error("--mcp-config: {} is not JSON: {source}\n  hint: a file of TOML has a name that ends in .toml", printable(.file))]
    NoJson { file: PathBuf, source: serde_json::Error },
    #[error(
        "--mcp-config: {} has a server {name}, and so have your settings\n  hint: give it another name in the file, or take it \
         out of there and add --mcp {name}", printable(.file)
    )]
    Taken { file: PathBuf, name: String },
    #[error("--mcp-config: {}", lines(.file, .faults))]
    Wrong { file: PathBuf, faults: Vec<String> },
}

fn lines(file: &Path, faults: &[String]) -> String {
    let file = printable(file);
    let lines: Vec<_> = faults.iter().map(|fault| format!("{file}: {fault}")).collect();
    lines.join("\n")
}

impl McpFile {
    /// Reads a file as TOML if its name ends in `.toml`, and otherwise as JSON. Symbolic links are followed, because
    /// the person names the file. Fails if the settings have a server of the same name. The project's approvals of
    /// tools to run without a question apply to these servers too, because each approval is for one definition of a
    /// tool.
    pub fn read(path: &Path, settings: &Effective) -> Result<Self, McpFileError> {
        let unreadable = |source| McpFileError::Unreadable { file: path.to_owned(), source };
        // The opening of a fifo would wait for a writer.
        let opened = File::options().read(true).custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY).open(path);
        let file = opened.map_err(unreadable)?;
        if !file.metadata().map_err(unreadable)?.is_file() {
            return Err(McpFileError::NotAFile(path.to_owned()));
        }
        let mut bytes = Vec::new();
        file.take(MOST as u64 + 1).read_to_end(&mut bytes).map_err(unreadable)?;
        let digest = FileDigest::of(&bytes);
        let text = text(bytes, path, MOST)?;
        let (servers, left_out) = match path.extension() {
            Some(extension) if extension == "toml" => (of_toml(path, &text)?, Vec::new()),
            _ => of_json(path, &text)?,
        };
        let mut servers: Vec<_> = servers.into_iter().filter(|server| server.enabled).collect();
        if servers.is_empty() {
            return Err(wrong(path, vec!["it has no server".to_owned()]));
        }
        let enabled = || settings.mcp.iter().filter(|server| server.enabled);
        let is_taken = |server: &&McpServer| enabled().any(|other| other.name == server.name);
        if let Some(McpServer { name, .. }) = servers.iter().find(is_taken) {
            return Err(McpFileError::Taken { file: path.to_owned(), name: name.clone() });
        }
        for server in &mut servers {
            server.always = settings.tools_always().filter(|grant| grant.server == server.name).collect();
        }
        Ok(Self { path: path.to_owned(), servers, left_out, digest })
    }
}

fn wrong(path: &Path, faults: Vec<String>) -> McpFileError {
    McpFileError::Wrong { file: path.to_owned(), faults }
}

fn of_toml(path: &Path, text: &str) -> Result<Vec<McpServer>, McpFileError> {
    let (mut layer, for_projects) = parse_users(text, path)?;
    let servers = std::mem::take(&mut layer.mcp);
    if !for_projects.is_empty() || !layer.is_empty() {
        let fault = "it has other settings than [mcp.NAME] tables, which a flag or your config.toml takes";
        return Err(wrong(path, vec![fault.to_owned()]));
    }
    Ok(servers)
}

fn of_json(path: &Path, text: &str) -> Result<(Vec<McpServer>, Vec<String>), McpFileError> {
    let file: Json = serde_json::from_str(text)
        .map_err(|source| McpFileError::NoJson { file: path.to_owned(), source })?;
    let Some(servers) = file.get(SERVERS).and_then(Json::as_object) else {
        return Err(wrong(path, vec![format!("it has no object `{SERVERS}`")]));
    };
    let others = file.as_object().into_iter().flat_map(serde_json::Map::keys);
    let others = others.filter(|key| ![SCHEMA, SERVERS].contains(&key.as_str()));
    let mut faults: Vec<_> =
        others.map(|key| format!("unknown key `{}`: expected `{SERVERS}`", shown(key))).collect();
    if servers.len() > MOST_SERVERS {
        faults.push(format!("it has more than {MOST_SERVERS} servers"));
        return Err(wrong(path, faults));
    }
    let place = SettingPlace { file: Arc::from(path), line: 1, column: 1 };
    let (mut found, mut left_out) = (Vec::new(), Vec::new());
    for (name, entry) in servers {
        match server(name, entry, ConfigOrigin::User(place.clone())) {
            Ok((server, without)) => {
                left_out.extend(without.into_iter().map(|part| format!("{name}: {part}")));
                found.push(server);
            }
            Err(fault) => faults.push(format!("{}: {fault}", shown(name))),
        }
    }
    if faults.is_empty() { Ok((found, left_out)) } else { Err(wrong(path, faults)) }
}

/// Reads the entry of one server, with the keys of a table `[mcp.NAME]`. `env` may have the form that other agents use.
fn server(name: &str, entry: &Json, origin: ConfigOrigin) -> Result<(McpServer, Vec<String>), String> {
    if !is_server_name(name) {
        return Err("a server's name has at most 32 letters, digits, `-` and `_`, and no `__`".to_owned());
    }
    let fields = entry.as_object().ok_or("expected an object with `command`")?;
    let mut server = McpServer::new(name, origin);
    let mut left_out = Vec::new();
    for (field, value) in fields {
        match (field.as_str(), value) {
            ("type", Json::String(kind)) if kind == "stdio" => {}
            ("type", _) => {
                let url = fields.get("url").and_then(Json::as_str).unwrap_or_default();
                return Err(no_address(name, url));
            }
            ("env", Json::Object(given)) => left_out = server.take_variables(given.iter()),
            (field, value) => {
                server.set(field, &item(value)).map_err(|why| format!("`{}`: {why}", shown(field)))?;
            }
        }
    }
    if server.command.is_empty() {
        return Err("expected `command`, the program of the server".to_owned());
    }
    Ok((server, left_out))
}

/// Converts a JSON value to a TOML item; `Item::None` for a value that no key can have.
fn item(json: &Json) -> Item {
    let value = match json {
        Json::String(text) => Some(Value::from(text.as_str())),
        Json::Bool(value) => Some(Value::from(*value)),
        Json::Array(list) => {
            let words: Option<Array> = list.iter().map(Json::as_str).collect();
            words.map(Value::Array)
        }
        Json::Null | Json::Number(_) | Json::Object(_) => None,
    };
    value.map_or(Item::None, Item::Value)
}

fn shown(name: &str) -> String {
    name.chars().take(80).flat_map(char::escape_debug).collect()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use ipc::rights::Network;
    use nix::sys::stat::Mode;
    use nix::unistd::mkfifo;

    use super::*;
    use crate::settings::config::parse::{FileOwner, parse};
    use crate::settings::config::{Layer, Layers, merge};

    /// Writes a file with this name and text, and reads it. In an error, `FILE` stands for its path.
    fn read(name: &str, text: impl AsRef<[u8]>) -> Result<McpFile, String> {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join(name);
        fs::write(&file, text).unwrap();
        let granted = format!("approvals.tools = [\"a/look@{}\"]\n", "0".repeat(64));
        McpFile::read(&file, &settings(&format!("{granted}[mcp.mine]\ncommand = \"x\"\n")))
            .map_err(|error| error.to_string().replace(file.to_str().unwrap(), "FILE"))
    }

    fn settings(text: &str) -> Effective {
        let none = Layer::default();
        let user = parse(text, Path::new("/c/config.toml"), FileOwner::Users).unwrap();
        merge(Layers { flags: &none, environment: &none, user: &user, project: &none, trusted: false })
    }

    fn fault(name: &str, text: impl AsRef<[u8]>) -> String {
        read(name, text).unwrap_err()
    }

    #[test]
    fn both_forms_state_the_same_servers() {
        let json = r#"{"$schema": "https://example/x.json", "mcpServers": {
            "git": {"type": "stdio", "command": "mcp-git", "args": ["-r", "."], "env": {"TOKEN": "${TOKEN}", "HOST": ""},
                    "read": ["."], "write": ["~/notes"], "hosts": ["api.example"], "offer": ["log"]},
            "bare": {"command": "./x"},
            "off": {"command": "y", "enabled": false}}}"#;
        let toml = "[mcp.git]\ncommand = \"mcp-git\"\nargs = [\"-r\", \".\"]\nenv = [\"TOKEN\", \"HOST\"]\nread = [\".\"]\n\
            write = [\"~/notes\"]\nhosts = [\"api.example\"]\noffer = [\"log\"]\n[mcp.bare]\ncommand = \"./x\"\n\
            [mcp.off]\ncommand = \"y\"\nenabled = false\n";
        let [json, toml] = [("a.json", json), ("a.toml", toml)].map(|(name, text)| {
            let McpFile { servers, left_out, .. } = read(name, text).unwrap();
            assert!(left_out.is_empty(), "{left_out:?}");
            servers.into_iter().map(|server| McpServer { origin: ConfigOrigin::Default, ..server })
        });
        let json: Vec<_> = json.collect();
        assert_eq!(json, toml.collect::<Vec<_>>());
        let [git, bare] = json.as_slice() else { panic!("{json:?}") };
        assert_eq!(
            (git.env.as_slice(), git.net.to_string()),
            (&["TOKEN".to_owned(), "HOST".to_owned()][..], "on for api.example".to_owned())
        );
        let none = McpServer::new("bare", ConfigOrigin::Default);
        assert_eq!(*bare, McpServer { command: "./x".to_owned(), ..none });
        assert!(
            bare.net == Network::Off && bare.read.is_empty() && bare.write.is_empty() && bare.env.is_empty()
        );
    }

    #[test]
    fn values_of_variables_are_left_in_the_file() {
        let file = read(
            "m.json",
            r#"{"mcpServers": {"a": {"command": "x", "env": {"T": "s3cret", "a b": "s3cret", "N": 1}}}}"#,
        );
        let file = file.unwrap();
        assert_eq!(file.servers[0].env, ["T", "N"]);
        insta::assert_snapshot!(file.left_out.join("\n"), @r#"
        a: the value of the variable T: a server gets only variables of your environment, by their names
        a: the variable "a b"
        a: the value of the variable N: a server gets only variables of your environment, by their names
        "#);
        assert!(!format!("{file:?}").contains("s3cret"));
        let listed = read("m.json", r#"{"mcpServers": {"a": {"command": "x", "env": ["T"]}}}"#).unwrap();
        assert_eq!((listed.servers[0].env.as_slice(), listed.left_out.len()), (&["T".to_owned()][..], 0));
    }

    #[test]
    fn an_approval_of_the_settings_holds_for_a_server_of_that_name() {
        let file =
            read("m.json", r#"{"mcpServers": {"a": {"command": "x"}, "b": {"command": "x"}}}"#).unwrap();
        let digest = "0".repeat(64);
        assert!(file.servers[0].is_unasked("look", &digest) && !file.servers[1].is_unasked("look", &digest));
        assert!(!file.servers[0].is_unasked("look", &"1".repeat(64)));
    }

    #[test]
    fn a_mistake_is_an_error_with_its_place() {
        insta::assert_snapshot!(fault("m.json", "{\n\"mcpServers\": {,}}"), @r"
        --mcp-config: FILE is not JSON: key must be a string at line 2 column 16
          hint: a file of TOML has a name that ends in .toml
        ");
        insta::assert_snapshot!(fault("m.json", "[]"), @"--mcp-config: FILE: it has no object `mcpServers`");
        insta::assert_snapshot!(fault("m.json", r#"{"mcpServers": {}}"#), @"--mcp-config: FILE: it has no server");
        insta::assert_snapshot!(fault("m.json", r#"{"mcpServers": {"a": {"command": "x"}, "b": 1, "c": {"args": []},
            "a__b": {"command": "x"}, "d": {"command": "x", "cwd": "/"}, "e": {"command": "x", "read": "."}, "f": {"command": 1},
            "g": {"command": "x", "args": ["a", 1]}, "h": {"command": "x", "hosts": ["*.com"]}, "i": {"command": "x", "env": ["A=1"]},
            "j": {"type": "http", "url": "https://j.example/mcp"}, "k": {"url": "https://k.example/mcp"}, "l": {"command": "a\u0000b"}},
            "servers\u001b[2J": {}}"#), @r#"
        --mcp-config: FILE: unknown key `servers\u{1b}[2J`: expected `mcpServers`
        FILE: b: expected an object with `command`
        FILE: c: expected `command`, the program of the server
        FILE: a__b: a server's name has at most 32 letters, digits, `-` and `_`, and no `__`
        FILE: d: `cwd`: unknown key: expected one of command, args, env, read, write, hosts, offer, enabled
        FILE: e: `read`: expected a list of paths, as in [".", "~/notes"]
        FILE: f: `command`: expected a program, as in "mcp-server-git"
        FILE: g: `args`: expected a list of words
        FILE: h: `hosts`: "*.com" would allow every host that anyone registers below that name; name each host instead
        FILE: i: `env`: expected a list of names of variables, as in ["TOKEN"]
        FILE: j: a server at an address (`url`) is not supported: a server has to be a program that uses standard input and output
          hint: use a bridge program: bailiwick mcp add j --net j.example -- npx -y mcp-remote https://j.example/mcp
        FILE: k: `url`: a server at an address (`url`) is not supported: a server has to be a program that uses standard input and output
          hint: use a bridge program: bailiwick mcp add k --net k.example -- npx -y mcp-remote https://k.example/mcp
        FILE: l: `command`: expected a program, as in "mcp-server-git"
        "#);
        insta::assert_snapshot!(fault("m.json", r#"{"mcpServers": {"mine": {"command": "x"}}}"#), @r"
        --mcp-config: FILE has a server mine, and so have your settings
          hint: give it another name in the file, or take it out of there and add --mcp mine
        ");
        insta::assert_snapshot!(fault("m.toml", "[mcp.a]\ncommand = 1\n"), @r#"--mcp-config: FILE:2:1: `mcp.a.command`: expected a program, as in "mcp-server-git""#);
        for more in [
            "mode = \"auto\"\n[mcp.a]\ncommand = \"x\"\n",
            "[mcp.a]\ncommand = \"x\"\n[project.\"/p\"]\nmode = \"ask\"\n",
        ] {
            insta::allow_duplicates! {
                insta::assert_snapshot!(fault("m.toml", more), @"--mcp-config: FILE: it has other settings than [mcp.NAME] tables, which a flag or your config.toml takes");
            }
        }
        let many = (0..=MOST_SERVERS)
            .map(|number| format!(r#""s{number}": {{"command": "x"}}"#))
            .collect::<Vec<_>>();
        insta::assert_snapshot!(fault("m.json", format!(r#"{{"mcpServers": {{{}}}}}"#, many.join(","))), @"--mcp-config: FILE: it has more than 64 servers");
    }

    #[test]
    fn only_a_regular_file_of_text_is_read_and_a_link_to_it() {
        insta::assert_snapshot!(fault("m.json", vec![b' '; MOST + 1]), @r"
        --mcp-config: FILE has more than 1048576 bytes
          hint: settings are short; check the content of this file
        ");
        insta::assert_snapshot!(fault("m.json", b"{\n\xff"), @"--mcp-config: FILE:2:1: not UTF-8");
        let deep = "[".repeat(100_000);
        assert!(fault("m.json", &deep).contains("is not JSON: recursion limit exceeded"));
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().join(name);
        let none = settings("");
        let said = |name: &str| McpFile::read(&at(name), &none).unwrap_err().to_string();
        assert!(said("missing.json").contains("No such file or directory"), "{}", said("missing.json"));
        mkfifo(&at("fifo"), Mode::S_IRWXU).unwrap();
        fs::create_dir(at("directory")).unwrap();
        for name in ["fifo", "directory"] {
            assert!(said(name).contains("is not a regular file\n  hint: name a JSON file"), "{}", said(name));
        }
        symlink(at("fifo"), at("link")).unwrap();
        assert!(said("link").contains("is not a regular file"));
        fs::write(at("m.json"), r#"{"mcpServers": {"a": {"command": "x"}}}"#).unwrap();
        fs::remove_file(at("link")).unwrap();
        symlink(at("m.json"), at("link")).unwrap();
        assert_eq!(McpFile::read(&at("link"), &none).unwrap().servers.len(), 1);
    }
}
