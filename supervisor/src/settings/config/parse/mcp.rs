//! Parses tables of MCP servers. In a project's file these are proposals. A mistake in a proposal does not make that
//! file invalid.

use toml_edit::Item;

use super::FileOwner;
use super::SettingsReader;
use crate::settings::config::mcp::{MOST_SERVERS, McpServer, is_server_name};

pub(super) const NAME: &str = "mcp";

impl SettingsReader<'_> {
    pub(super) fn servers(&mut self, at: Option<usize>, item: &Item) {
        if self.whose == FileOwner::Projects && !item.is_table_like() {
            return self.void(at, "`mcp` is a table: expected [mcp.NAME]".to_owned());
        }
        for (name, at, item) in self.entries(NAME, at, item) {
            match self.server(&name, at, &item) {
                Ok(server) => self.layer.mcp.push(server),
                Err((at, why)) if self.whose == FileOwner::Projects => self.void(at, why),
                Err((at, why)) => self.wrong(at, why),
            }
        }
    }

    fn server(
        &self,
        name: &str,
        at: Option<usize>,
        item: &Item,
    ) -> Result<McpServer, (Option<usize>, String)> {
        let shown: String = name.chars().take(80).flat_map(char::escape_debug).collect();
        if !is_server_name(name) {
            let why = "a server's name has at most 32 letters, digits, `-` and `_`, and no `__`";
            return Err((at, format!("`mcp.{shown}`: {why}")));
        }
        if self.layer.mcp.len() >= MOST_SERVERS {
            return Err((at, format!("there are more than {MOST_SERVERS} MCP servers")));
        }
        let mut server = McpServer::new(name, self.origin(at.unwrap_or_default()));
        let Some(table) = item.as_table_like() else {
            return Err((at, format!("`mcp.{shown}` is a table: expected [mcp.{shown}]")));
        };
        for (field, item) in table.iter() {
            let at = table.key(field).and_then(toml_edit::Key::span).map(|span| span.start).or(at);
            let field: String = field.chars().take(80).flat_map(char::escape_debug).collect();
            server.set(&field, item).map_err(|why| (at, format!("`mcp.{shown}.{field}`: {why}")))?;
        }
        if server.command.is_empty() {
            return Err((at, format!("`mcp.{shown}`: expected `command`, the program of the server")));
        }
        Ok(server)
    }
}
