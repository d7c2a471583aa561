//! MCP servers that a client proposes, which are never started.

use agent_client_protocol_schema::v1::McpServer;
use protocol::shell_word::shell_word;

use super::shown;

/// Explains how the person can add the proposed servers. `None` without proposed servers.
pub(super) fn proposals(servers: &[McpServer]) -> Option<String> {
    if servers.is_empty() {
        return None;
    }
    let mut lines = vec![
        "This editor names MCP servers. Bailiwick starts only servers that you added yourself. To add them:"
            .to_owned(),
    ];
    lines.extend(servers.iter().map(proposal));
    Some(lines.join("\n\n"))
}

fn proposal(server: &McpServer) -> String {
    match server {
        McpServer::Stdio(server) => {
            let words: Vec<_> = [server.command.as_os_str()]
                .into_iter()
                .chain(server.args.iter().map(AsRef::as_ref))
                .map(shell_word)
                .collect();
            let env =
                server.env.iter().flat_map(|variable| [" --env ".to_owned(), shell_word(&variable.name)]);
            let env: String = env.collect();
            let name = shell_word(&server.name);
            shown::block(&format!("bailiwick mcp add {name}{env} -- {}", words.join(" ")), "sh")
        }
        McpServer::Http(server) => remote(&server.name),
        McpServer::Sse(server) => remote(&server.name),
        _ => "A server of an unknown kind cannot be added.".to_owned(),
    }
}

fn remote(name: &str) -> String {
    shown::line(&format!("The server {name} is reached over HTTP, and cannot be added."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_told_with_the_command_that_adds_it() {
        let server = serde_json::from_value(serde_json::json!([
            {"name": "g; rm", "command": "/bin/g", "args": ["-x", "a b"], "env": [{"name": "TOKEN", "value": "secret"}]},
            {"type": "http", "name": "h", "url": "https://h.example", "headers": []},
        ]));
        let said = proposals(&server.unwrap_or_else(|_: serde_json::Error| Vec::new())).unwrap();
        assert!(said.contains("bailiwick mcp add 'g; rm' --env TOKEN -- /bin/g -x 'a b'\n"), "{said}");
        assert!(said.contains("The server h is reached over HTTP"), "{said}");
        assert!(!said.contains("secret"));
        assert_eq!(proposals(&[]), None);
    }
}
