//! Tables `[mcp.NAME]`: the person's own MCP servers, which may be started, and a project's, which are proposals.

use std::path::Path;

use ipc::rights::Network;
use protocol::network_words;
use protocol::shell_word::shell_word;
use serde_json::Value as Json;
use toml_edit::Item;

use super::origin::{ConfigOrigin, SettingPlace};

/// Maximum number of servers in a file.
pub(super) const MOST_SERVERS: usize = 64;

const LONGEST_NAME: usize = 32;

/// Maximum number of elements of a list. `LONGEST` is the maximum number of bytes of one element.
const MOST: usize = 200;
const LONGEST: usize = 4096;

/// An MCP server and its access, as a settings table states them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct McpServer {
    pub name: String,
    /// Path of the program, or a name that is searched in `PATH`.
    pub command: String,
    pub args: Vec<String>,
    /// Names of the environment variables that the server receives.
    pub env: Vec<String>,
    /// Paths that the server may read besides those of the system, in the form in which they were written.
    pub read: Vec<String>,
    pub write: Vec<String>,
    pub net: Network,
    /// Tools that agents are offered; `None` offers all.
    pub offer: Option<Vec<String>>,
    pub enabled: bool,
    /// Tools that run without a question in this project, as the project's table in the person's file says.
    pub always: Vec<ToolGrant>,
    /// Tools that run without a question in this run, because a flag says so.
    pub unasked: Vec<String>,
    pub origin: ConfigOrigin,
}

/// True if a server may have this name. The names of the server's tools are `NAME__TOOL`.
pub fn is_server_name(name: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    (1..=LONGEST_NAME).contains(&name.len()) && name.chars().all(is_plain) && !name.contains("__")
}

impl McpServer {
    /// Returns a server with the minimum access: no project, no network, no environment variable.
    pub fn new(name: &str, origin: ConfigOrigin) -> Self {
        Self {
            name: name.to_owned(),
            command: String::new(),
            args: Vec::new(),
            env: Vec::new(),
            read: Vec::new(),
            write: Vec::new(),
            net: Network::Off,
            offer: None,
            enabled: true,
            always: Vec::new(),
            unasked: Vec::new(),
            origin,
        }
    }

    pub(super) fn set(&mut self, field: &str, item: &Item) -> Result<(), String> {
        match field {
            "command" => {
                let text = item.as_str().filter(|text| is_word(text));
                text.ok_or("expected a program, as in \"mcp-server-git\"")?.clone_into(&mut self.command);
            }
            "args" => self.args = words(item, |_| true).ok_or("expected a list of words")?,
            "env" => {
                self.env = words(item, is_variable)
                    .ok_or("expected a list of names of variables, as in [\"TOKEN\"]")?;
            }
            "read" => {
                self.read =
                    words(item, is_path).ok_or("expected a list of paths, as in [\".\", \"~/notes\"]")?;
            }
            "write" => {
                self.write = words(item, is_path).ok_or("expected a list of paths, as in [\"~/notes\"]")?;
            }
            "hosts" => {
                let hosts =
                    words(item, |_| true).ok_or("expected a list of hosts, as in [\"api.example\"]")?;
                self.net = network(&hosts)?;
            }
            "offer" => {
                self.offer =
                    Some(words(item, |_| true).ok_or("expected a list of tools, as in [\"search\"]")?);
            }
            "enabled" => self.enabled = item.as_bool().ok_or("expected true or false")?,
            "url" => return Err(no_address(&self.name, item.as_str().unwrap_or_default())),
            _ => {
                return Err(
                    "unknown key: expected one of command, args, env, read, write, hosts, offer, enabled"
                        .to_owned(),
                );
            }
        }
        Ok(())
    }

    /// Adds the names of environment variables from a JSON file. Does not read their values. Returns sentences about
    /// the parts that are left out.
    pub(super) fn take_variables<'a>(
        &mut self,
        given: impl Iterator<Item = (&'a String, &'a Json)>,
    ) -> Vec<String> {
        let mut left_out = Vec::new();
        for (variable, value) in given.take(MOST) {
            let own = [format!("${{{variable}}}"), format!("${variable}")];
            let is_own =
                value.as_str().is_some_and(|value| own.iter().any(|own| own == value) || value.is_empty());
            if !is_variable(variable) {
                left_out.push(format!("the variable {variable:?}"));
                continue;
            }
            if !is_own {
                left_out.push(format!(
                    "the value of the variable {variable}: a server gets only variables of your environment, by their names"
                ));
            }
            self.env.push(variable.clone());
        }
        left_out
    }

    /// True if a tool with this definition (a digest) runs without a question in this project or this run.
    pub fn is_unasked(&self, tool: &str, definition: &str) -> bool {
        self.unasked.iter().any(|unasked| unasked == tool)
            || self.always.iter().any(|grant| grant.tool == tool && grant.definition == definition)
    }

    /// Returns the program and its arguments, for display.
    pub fn command_line(&self) -> Vec<&str> {
        std::iter::once(&self.command).chain(&self.args).map(String::as_str).collect()
    }
}

/// The name of a server and of its tool, as in a flag.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolName {
    pub server: String,
    pub tool: String,
}

impl std::str::FromStr for ToolName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts = text.split_once('/').filter(|(server, tool)| is_server_name(server) && is_word(tool));
        let (server, tool) =
            parts.ok_or("expected the names of a server and of its tool, as in docs/search")?;
        Ok(Self { server: server.to_owned(), tool: tool.to_owned() })
    }
}

impl std::fmt::Display for ToolName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.server, self.tool)
    }
}

/// The approval of a tool to run without a question, which is valid while the tool's definition is unchanged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolGrant {
    pub server: String,
    pub tool: String,
    /// Digest of the tool's definition at the time of the approval, in hexadecimal.
    pub definition: String,
}

impl ToolGrant {
    pub fn new(server: &str, tool: &str, definition: &str) -> Self {
        Self { server: server.to_owned(), tool: tool.to_owned(), definition: definition.to_owned() }
    }

    /// Parses `SERVER/TOOL@DIGEST`; `None` for another form. The tool's name may contain these separators too.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (server, rest) = text.split_once('/')?;
        let (tool, definition) = rest.rsplit_once('@')?;
        let is_digest = definition.len() == 64 && definition.bytes().all(|byte| byte.is_ascii_hexdigit());
        (is_server_name(server) && is_digest).then(|| Self::new(server, tool, definition))
    }
}

impl std::fmt::Display for ToolGrant {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}@{}", self.server, self.tool, self.definition)
    }
}

/// Returns the error for a server that is named by an address. Only servers that can be started are supported.
pub fn no_address(name: &str, url: &str) -> String {
    let host =
        url.split_once("://").map_or(url, |(_, rest)| rest).split(['/', '?']).next().unwrap_or_default();
    let [host, url] = [(host, "HOST"), (url, "URL")].map(|(word, instead)| {
        let is_plain =
            !word.is_empty() && word.len() <= 200 && word.bytes().all(|byte| byte.is_ascii_graphic());
        shell_word(if is_plain { word } else { instead })
    });
    let net = format!("--net {host}");
    format!(
        "a server at an address (`url`) is not supported: a server has to be a program that uses standard input and output\n  hint: use a bridge program: bailiwick mcp add {name} {net} -- npx -y mcp-remote {url}"
    )
}

/// Parses a list of hosts. An empty list means no network.
fn network(hosts: &[String]) -> Result<Network, String> {
    if hosts.is_empty() {
        return Ok(Network::Off);
    }
    let hosts = network_words::hosts(hosts.iter().map(String::as_str));
    hosts.map(Network::Hosts).map_err(|error| error.to_string())
}

fn words(item: &Item, fits: impl Fn(&str) -> bool) -> Option<Vec<String>> {
    let array = item.as_array().filter(|array| array.len() <= MOST)?;
    let word = |value: &toml_edit::Value| {
        value
            .as_str()
            .filter(|word| word.len() <= LONGEST && !word.contains('\0') && fits(word))
            .map(str::to_owned)
    };
    array.iter().map(word).collect()
}

fn is_word(text: &str) -> bool {
    !text.is_empty() && text.len() <= LONGEST && !text.contains('\0')
}

/// True if the text is a valid name of an environment variable.
pub fn is_variable(name: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    name.chars().all(is_part) && name.chars().next().is_some_and(|first| !first.is_ascii_digit())
}

fn is_path(path: &str) -> bool {
    !path.is_empty()
}

/// File of a project in which other programs store their MCP servers.
pub(super) const FOREIGN_SERVERS: &str = ".mcp.json";

/// An MCP server that a project proposes, which is started only after the person has accepted it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct McpProposal {
    pub server: McpServer,
    /// Sentences about the parts of the proposal that are left out.
    pub left_out: Vec<String>,
}

/// Reads the proposals of a `.mcp.json`. The inner error is about one server, and the outer one about the whole file.
pub(super) fn proposals_of_json(text: &str) -> Result<Vec<Result<McpProposal, String>>, String> {
    let file: Json = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let servers =
        file.get("mcpServers").and_then(Json::as_object).ok_or("the file has no object `mcpServers`")?;
    let place = SettingPlace { file: Path::new(FOREIGN_SERVERS).into(), line: 1, column: 1 };
    let read = |(name, server): (&String, &Json)| of_json(name, server, ConfigOrigin::Project(place.clone()));
    Ok(servers.iter().take(MOST_SERVERS).filter_map(read).collect())
}

fn of_json(name: &str, json: &Json, origin: ConfigOrigin) -> Option<Result<McpProposal, String>> {
    if !is_server_name(name) {
        return None;
    }
    if let (None, Some(url)) = (json.get("command"), json.get("url")) {
        let why = no_address(name, url.as_str().unwrap_or_default());
        return Some(Err(format!("{FOREIGN_SERVERS}: {name}: {why}")));
    }
    let command = json.get("command")?.as_str().filter(|text| is_word(text))?;
    let mut server = McpServer { command: command.to_owned(), ..McpServer::new(name, origin) };
    for argument in json.get("args").and_then(Json::as_array).into_iter().flatten().take(MOST) {
        server
            .args
            .push(argument.as_str().filter(|text| text.len() <= LONGEST && !text.contains('\0'))?.to_owned());
    }
    let given = json.get("env").and_then(Json::as_object).into_iter().flatten();
    let left_out = server.take_variables(given);
    Some(Ok(McpProposal { server, left_out }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::config::parse::{FileOwner, parse};

    fn user(text: &str) -> Result<Vec<McpServer>, String> {
        let layer = parse(text, Path::new("/c/config.toml"), FileOwner::Users);
        layer.map(|layer| layer.mcp).map_err(|error| error.to_string())
    }

    #[test]
    fn a_table_states_a_server_and_its_rights() {
        let servers = user(
            "[mcp.git]\ncommand = \"mcp-server-git\"\nargs = [\"--repository\", \".\"]\nread = [\".\"]\nwrite = [\"~/notes\"]\n\
             env = [\"TOKEN\"]\nhosts = [\"api.example\"]\noffer = [\"git_log\"]\nenabled = false\n[mcp.bare]\ncommand = \"x\"\n",
        )
        .unwrap();
        let [git, bare] = servers.as_slice() else { panic!("{servers:?}") };
        assert_eq!(git.command_line(), ["mcp-server-git", "--repository", "."]);
        assert_eq!(
            (git.read.as_slice(), git.write.as_slice()),
            (&[".".to_owned()][..], &["~/notes".to_owned()][..])
        );
        assert_eq!(
            (git.env.as_slice(), git.net.to_string()),
            (&["TOKEN".to_owned()][..], "on for api.example".to_owned())
        );
        assert_eq!((git.offer.as_deref(), git.enabled), (Some(&["git_log".to_owned()][..]), false));
        assert_eq!(
            *bare,
            McpServer { command: "x".to_owned(), ..McpServer::new("bare", bare.origin.clone()) }
        );
        assert!(bare.net.is_off() && bare.read.is_empty() && bare.env.is_empty() && bare.enabled);
    }

    #[test]
    fn a_mistake_in_a_table_of_the_persons_is_an_error_with_its_place() {
        let wrong = |text: &str| user(text).unwrap_err();
        insta::assert_snapshot!(wrong(
            "[mcp.a__b]\ncommand = \"x\"\n[mcp.none]\nread = []\n[mcp.x]\ncommand = \"x\"\nhosts = [\"*.com\"]\n[mcp.y]\ncommand = \"y\"\n\
             url = \"https://x\"\n[mcp.z]\ncommand = \"z\"\nenv = [\"A=1\"]\n[mcp]\nq = 1\n"
        ), @r#"
        /c/config.toml:1:6: `mcp.a__b`: a server's name has at most 32 letters, digits, `-` and `_`, and no `__`
        /c/config.toml:3:6: `mcp.none`: expected `command`, the program of the server
        /c/config.toml:7:1: `mcp.x.hosts`: "*.com" would allow every host that anyone registers below that name; name each host instead
        /c/config.toml:10:1: `mcp.y.url`: a server at an address (`url`) is not supported: a server has to be a program that uses standard input and output
          hint: use a bridge program: bailiwick mcp add y --net x -- npx -y mcp-remote https://x
        /c/config.toml:13:1: `mcp.z.env`: expected a list of names of variables, as in ["TOKEN"]
        /c/config.toml:15:1: `mcp.q` is a table: expected [mcp.q]
        "#);
    }

    #[test]
    fn a_server_at_an_address_is_an_error_with_a_bridge_as_its_remedy() {
        let wrong = |url: &str| user(&format!("[mcp.docs]\nurl = \"{url}\"\n")).unwrap_err();
        insta::assert_snapshot!(wrong("https://mcp.example:8443/mcp?a=b&c"), @r"
        /c/config.toml:2:1: `mcp.docs.url`: a server at an address (`url`) is not supported: a server has to be a program that uses standard input and output
          hint: use a bridge program: bailiwick mcp add docs --net mcp.example:8443 -- npx -y mcp-remote 'https://mcp.example:8443/mcp?a=b&c'
        ");
        assert!(wrong("$(x) y").contains("--net HOST -- npx -y mcp-remote URL"));
    }

    #[test]
    fn a_project_only_proposes_and_a_mistake_of_its_own_is_no_error() {
        let text = "[mcp.good]\ncommand = \"x\"\n[mcp.bad]\ncommand = 1\n";
        let layer = parse(text, Path::new(".bailiwick.toml"), FileOwner::Projects).unwrap();
        assert_eq!(layer.mcp.iter().map(|server| &*server.name).collect::<Vec<_>>(), ["good"]);
        assert_eq!(layer.void.len(), 1);
    }

    #[test]
    fn a_tool_that_always_runs_is_read_as_it_is_written() {
        let digest = "0f".repeat(32);
        let grant = ToolGrant::new("git", "a/b@c d", &digest);
        assert_eq!(ToolGrant::parse(&grant.to_string()), Some(grant));
        for text in ["git", "git/log", "git/log@12", &format!("a__b/x@{digest}"), &format!("log@{digest}")] {
            assert_eq!(ToolGrant::parse(text), None, "{text}");
        }
    }

    #[test]
    fn servers_of_other_programs_are_proposals_without_values_of_variables() {
        let text = r#"{"mcpServers": {
            "git": {"command": "uvx", "args": ["mcp-server-git"], "env": {"A": "${A}", "TOKEN": "secret", "x y": "1"}},
            "remote": {"type": "http", "url": "https://example.com"},
            "bad name": {"command": "x"}}}"#;
        let proposals = proposals_of_json(text).unwrap();
        let [Ok(git), Err(remote)] = proposals.as_slice() else { panic!("{proposals:?}") };
        insta::assert_snapshot!(remote, @r"
        .mcp.json: remote: a server at an address (`url`) is not supported: a server has to be a program that uses standard input and output
          hint: use a bridge program: bailiwick mcp add remote --net example.com -- npx -y mcp-remote https://example.com
        ");
        assert_eq!(git.server.command_line(), ["uvx", "mcp-server-git"]);
        assert_eq!(git.server.env, ["A", "TOKEN"]);
        assert_eq!(git.left_out.len(), 2);
        assert!(!format!("{git:?}").contains("secret"));
        assert!(git.server.net.is_off() && git.server.read.is_empty() && git.server.write.is_empty());
        for broken in ["", "[]", "{\"mcpServers\": 3}"] {
            assert!(proposals_of_json(broken).is_err(), "{broken}");
        }
    }
}
