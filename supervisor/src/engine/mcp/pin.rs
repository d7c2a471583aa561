//! Pins: the definitions of a server's tools as the user approved them.

use std::collections::BTreeMap;
use std::fs::{self, DirBuilder, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;

use ipc::mcp::{McpDescription, McpPrompt, McpTool};
use ipc::text::hexadecimal;
use protocol::event::{PinChange, ToolPinned};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::installed::InstalledServer;
use crate::process::directories::Directories;
use crate::process::scratch::private_in;
use crate::settings::config::McpServer;

/// Version of the file format.
const VERSION: u32 = 1;

/// Maximum size of a pin in bytes.
const MOST: u64 = 16 << 20;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Pin {
    version: u32,
    /// Digest of the server's table in the settings.
    server: String,
    /// Name that the server gives itself. It is an unverified claim.
    pub(crate) name: String,
    pub(crate) release: String,
    pub(crate) protocol: String,
    pub(crate) tools: Vec<PinnedTool>,
    /// Installed files; `None` if the command installs no packages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) installed: Option<InstalledServer>,
    /// True if the server has resources.
    #[serde(default)]
    pub(crate) resources: bool,
    /// Prompts of the server, which become commands of the user.
    #[serde(default)]
    pub(crate) prompts: Vec<McpPrompt>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PinnedTool {
    pub(crate) name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) title: Option<String>,
    pub(crate) description: String,
    /// JSON text, unchanged from the server.
    pub(crate) input_schema: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) output_schema: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) annotations: Option<String>,
    /// Digest of the server's table and of the tool's definition.
    pub(crate) digest: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ToolChanges {
    pub(crate) added: Vec<String>,
    pub(crate) changed: Vec<String>,
    pub(crate) removed: Vec<String>,
}

impl ToolChanges {
    pub(crate) const fn is_empty(&self) -> bool {
        self.added.is_empty() && self.changed.is_empty() && self.removed.is_empty()
    }
}

/// Returns the digest of the settings that decide what is started, and with which access.
pub(crate) fn digest_of_server(server: &McpServer) -> String {
    let McpServer {
        name,
        command,
        args,
        env,
        read,
        write,
        net,
        offer: _,
        enabled: _,
        always: _,
        unasked: _,
        origin: _,
    } = server;
    let mut hash = Sha256::new();
    let net = net.to_string();
    for part in [name, command, &net] {
        enter(&mut hash, part);
    }
    for list in [args, env, read, write] {
        hash.update((list.len() as u64).to_le_bytes());
        for part in list {
            enter(&mut hash, part);
        }
    }
    hexadecimal(&hash.finalize())
}

/// Returns the digest for calls that list or read resources, which have no tool definition.
pub(crate) fn digest_of_resources(server: &McpServer) -> String {
    let mut hash = Sha256::new();
    enter(&mut hash, "resources");
    enter(&mut hash, &digest_of_server(server));
    hexadecimal(&hash.finalize())
}

/// Hashes a text with its length before it, so that different lists of texts have different digests.
fn enter(hash: &mut Sha256, text: &str) {
    hash.update((text.len() as u64).to_le_bytes());
    hash.update(text);
}

/// Returns the digest of the server's table and the tool's definition.
fn digest_of_tool(server: &str, tool: &McpTool) -> String {
    let McpTool { name, title, description, input_schema, output_schema, annotations } = tool;
    let mut hash = Sha256::new();
    for part in [server, name, description] {
        enter(&mut hash, part);
    }
    let canonical = |json: &String| canonical(json);
    let parts = [
        title.clone(),
        Some(canonical(input_schema)),
        output_schema.as_ref().map(canonical),
        annotations.as_ref().map(canonical),
    ];
    for part in parts {
        hash.update([u8::from(part.is_some())]);
        enter(&mut hash, &part.unwrap_or_default());
    }
    hexadecimal(&hash.finalize())
}

/// Returns JSON text with the members of objects sorted by name. Other text stays unchanged.
fn canonical(text: &str) -> String {
    serde_json::from_str(text).map_or_else(|_| text.to_owned(), |value| sorted(value).to_string())
}

fn sorted(value: Value) -> Value {
    match value {
        Value::Object(members) => {
            let members: BTreeMap<_, _> =
                members.into_iter().map(|(name, value)| (name, sorted(value))).collect();
            Value::Object(members.into_iter().collect())
        }
        Value::Array(list) => Value::Array(list.into_iter().map(sorted).collect()),
        other => other,
    }
}

impl PinnedTool {
    fn new(server: &str, tool: McpTool) -> Self {
        let digest = digest_of_tool(server, &tool);
        let McpTool { name, title, description, input_schema, output_schema, annotations } = tool;
        Self { name, title, description, input_schema, output_schema, annotations, digest }
    }
}

impl Pin {
    pub(crate) fn new(server: &McpServer, description: &McpDescription, tools: Vec<McpTool>) -> Self {
        let digest = digest_of_server(server);
        Self {
            version: VERSION,
            name: description.name.clone(),
            release: description.version.clone(),
            protocol: description.protocol.clone(),
            tools: tools.into_iter().map(|tool| PinnedTool::new(&digest, tool)).collect(),
            resources: description.resources,
            prompts: Vec::new(),
            server: digest,
            installed: None,
        }
    }

    pub(crate) fn with_prompts(self, prompts: Vec<McpPrompt>) -> Self {
        Self { prompts, ..self }
    }

    /// True if the user approved the server with its present table.
    pub(crate) fn is_of(&self, server: &McpServer) -> bool {
        self.version == VERSION && self.server == digest_of_server(server)
    }

    /// Returns the digest of the server's table and all definitions. It does not depend on the order of definitions.
    pub(crate) fn digest(&self) -> String {
        let mut digests: Vec<_> = self.tools.iter().map(|tool| &tool.digest).collect();
        digests.sort_unstable();
        let mut hash = Sha256::new();
        enter(&mut hash, &self.server);
        for digest in digests {
            enter(&mut hash, digest);
        }
        hexadecimal(&hash.finalize())
    }

    /// Returns the data of the log event about this pin.
    pub(crate) fn pinned(&self, server: &str) -> ToolPinned {
        let tools = u64::try_from(self.tools.len()).unwrap_or(u64::MAX);
        ToolPinned { server: server.to_owned(), digest: self.digest(), tools, change: PinChange::First }
    }

    pub(crate) fn changes(&self, now: &Self) -> ToolChanges {
        let find = |pin: &Self, name: &str| pin.tools.iter().find(|tool| tool.name == name).cloned();
        let mut changes = ToolChanges::default();
        for tool in &now.tools {
            match find(self, &tool.name) {
                None => changes.added.push(tool.name.clone()),
                Some(before)
                    if PinnedTool { digest: String::new(), ..before.clone() }
                        != PinnedTool { digest: String::new(), ..tool.clone() } =>
                {
                    changes.changed.push(tool.name.clone());
                }
                Some(_) => {}
            }
        }
        changes.removed = self
            .tools
            .iter()
            .filter(|tool| find(now, &tool.name).is_none())
            .map(|tool| tool.name.clone())
            .collect();
        changes
    }
}

/// Directory of pins, which agents and servers can neither read nor write.
#[derive(Clone, Debug)]
pub(crate) struct Pins(PathBuf);

#[derive(Debug, thiserror::Error)]
#[error("cannot use {path}: {source}", path = .path.display())]
pub(crate) struct PinError {
    path: PathBuf,
    source: io::Error,
}

impl Pins {
    pub(crate) fn new(directories: &Directories) -> Self {
        Self(directories.state.join("pins"))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(format!("{name}.json"))
    }

    /// Reads the pin of a server; `None` if there is no pin, or one of another format version.
    pub(crate) fn read(&self, name: &str) -> Result<Option<Pin>, PinError> {
        let path = self.path(name);
        let failed = |source| PinError { path: path.clone(), source };
        let file = match File::open(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            file => file.map_err(failed)?,
        };
        let mut text = String::new();
        file.take(MOST).read_to_string(&mut text).map_err(failed)?;
        let pin: Pin = serde_json::from_str(&text).map_err(|error| failed(error.into()))?;
        Ok((pin.version == VERSION).then_some(pin))
    }

    /// Replaces the earlier pin of this server in one step.
    pub(crate) fn write(&self, name: &str, pin: &Pin) -> Result<(), PinError> {
        let path = self.path(name);
        let failed = |source| PinError { path: path.clone(), source };
        DirBuilder::new().recursive(true).mode(0o700).create(&self.0).map_err(failed)?;
        let text = serde_json::to_vec_pretty(pin).map_err(|error| failed(error.into()))?;
        // A reader finds the old pin or the new one, whole.
        let directory = private_in(&self.0, "new-").map_err(failed)?;
        let new = directory.path().join("pin");
        let mut file = File::create_new(&new).map_err(failed)?;
        file.write_all(&text).and_then(|()| file.sync_all()).map_err(failed)?;
        fs::rename(&new, &path).map_err(failed)
    }

    /// True if there is a pin of any format version.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.path(name).exists()
    }

    /// Removes the pin of a server. True if there was one.
    pub(crate) fn remove(&self, name: &str) -> Result<bool, PinError> {
        let path = self.path(name);
        match fs::remove_file(&path) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(source) => Err(PinError { path, source }),
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::settings::config::ConfigOrigin;

    pub(crate) fn server() -> McpServer {
        McpServer { command: "x".to_owned(), ..McpServer::new("docs", ConfigOrigin::Default) }
    }

    pub(crate) fn tool(name: &str) -> McpTool {
        McpTool {
            name: name.to_owned(),
            title: None,
            description: format!("Does {name}."),
            input_schema: r#"{"type":"object","properties":{"q":{"type":"string"}}}"#.to_owned(),
            output_schema: None,
            annotations: None,
        }
    }

    pub(crate) fn pin(tools: Vec<McpTool>) -> Pin {
        let description = McpDescription {
            name: "d".to_owned(),
            version: "1".to_owned(),
            protocol: "2025-11-25".to_owned(),
            instructions: String::new(),
            resources: false,
        };
        Pin::new(&server(), &description, tools)
    }

    #[test]
    fn every_part_of_a_definition_counts_and_the_order_of_members_does_not() {
        let digest = |change: &dyn Fn(&mut McpTool)| {
            let mut tool = tool("search");
            change(&mut tool);
            pin(vec![tool]).tools[0].digest.clone()
        };
        let plain = digest(&|_| ());
        let some = |text: &str| Some(text.to_owned());
        let changes: [&dyn Fn(&mut McpTool); 6] = [
            &|tool| tool.name.push('x'),
            &|tool| tool.title = some("t"),
            &|tool| tool.description.push('x'),
            &|tool| tool.input_schema = r#"{"type":"object"}"#.to_owned(),
            &|tool| tool.output_schema = some("{}"),
            &|tool| tool.annotations = some(r#"{"readOnlyHint":true}"#),
        ];
        let mut digests: Vec<_> =
            changes.iter().map(|change| digest(change)).chain([plain.clone()]).collect();
        digests.sort_unstable();
        digests.dedup();
        assert_eq!(digests.len(), 7);
        let turned = r#"{ "properties": {"q": {"type": "string"}}, "type": "object" }"#;
        assert_eq!(digest(&|tool| tool.input_schema = turned.to_owned()), plain);
    }

    #[test]
    fn a_pin_holds_for_one_command_with_one_set_of_rights() {
        let pin = pin(vec![tool("a")]);
        let is_of = |change: &dyn Fn(&mut McpServer)| {
            let mut server = server();
            change(&mut server);
            pin.is_of(&server)
        };
        assert!(is_of(&|_| ()));
        assert!(is_of(&|server| server.enabled = false));
        let word = || vec!["x".to_owned()];
        let changes: [&dyn Fn(&mut McpServer); 7] = [
            &|server| server.name = "other".to_owned(),
            &|server| server.command = "y".to_owned(),
            &|server| server.args = word(),
            &|server| server.env = word(),
            &|server| server.read = word(),
            &|server| server.write = word(),
            &|server| server.net = ipc::rights::Network::On,
        ];
        assert!(changes.iter().all(|change| !is_of(change)));
    }

    #[test]
    fn the_digest_of_a_pin_is_that_of_its_tools_in_any_order() {
        let (one, other) = (pin(vec![tool("a"), tool("b")]), pin(vec![tool("b"), tool("a")]));
        assert_eq!((one.digest().len(), one.digest()), (64, other.digest()));
        assert_ne!(one.digest(), pin(vec![tool("a")]).digest());
        let elsewhere = Pin { server: "other".to_owned(), ..one.clone() };
        assert_ne!(one.digest(), elsewhere.digest());
        assert_eq!((one.pinned("docs").tools, one.pinned("docs").server), (2, "docs".to_owned()));
    }

    #[test]
    fn a_pin_is_kept_whole_and_its_differences_are_named() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().to_owned();
        let pins = Pins::new(&Directories { config: path.clone(), state: path.clone(), cache: path });
        assert_eq!(pins.read("docs").unwrap(), None);
        let before = pin(vec![tool("a"), tool("b"), tool("c")]);
        pins.write("docs", &before).unwrap();
        assert_eq!(pins.read("docs").unwrap().as_ref(), Some(&before));
        let changed = McpTool { description: "Does more.".to_owned(), ..tool("b") };
        let now = pin(vec![tool("a"), changed, tool("d")]);
        let names = |name: &str| vec![name.to_owned()];
        assert_eq!(
            before.changes(&now),
            ToolChanges { added: names("d"), changed: names("b"), removed: names("c") }
        );
        assert!(before.changes(&before).is_empty());
        assert!(pins.remove("docs").unwrap() && !pins.remove("docs").unwrap());
    }
}
