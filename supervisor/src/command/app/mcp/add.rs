//! `bailiwick mcp add`: a server is shown as it is, and a person decides.

use std::io::{self, Write};
use std::path::Path;

use boundary::install::{Registry, SelfInstaller};
use ipc::rights::Network;
use protocol::shell_word::shell_word;
use tokio::runtime::Runtime;

use super::shown::{command, tools};
use super::{McpRefusal, named, not_started, place, sources};
use crate::command::app::ended::until_ended;
use crate::engine::mcp::{Inspected, Pins, inspect};
use crate::process::directories::Directories;
use crate::process::exit::Exit;
use crate::process::messages::{one_line, say};
use crate::settings::args::McpAddArgs;
use crate::settings::config::{
    ConfigOrigin, McpServer, Sources, USER_NAME, can_ask, is_server_name, is_variable, write_server, yes,
};

pub(super) fn run(
    args: &McpAddArgs,
    directories: Directories,
    runtime: &Runtime,
) -> Result<Exit, McpRefusal> {
    let sources = sources(&directories, &args.directory)?;
    let server = asked_for(args, &sources)?;
    if !args.yes && !can_ask() {
        return Err(McpRefusal::usage(
            "cannot ask about the server: standard input or standard error is no terminal\n  hint: type this at a terminal, or add \
             --yes to approve what it shows",
        ));
    }
    let mut outcome = Err(McpRefusal(Exit::Internal, "the work was ended".to_owned()));
    let exit = runtime.block_on(until_ended(async {
        let decided = async {
            let setup = place(directories.clone(), &sources, &args.directory, args.tier)?;
            // A table that cannot be confined is told before anything is started.
            let inspected = inspect(&setup, &server).await.map_err(|error| not_started(&server, &error))?;
            decide(args, &directories, &server, &inspected)
        };
        outcome = decided.await;
        Exit::Done
    }));
    if exit == Exit::Done { outcome } else { Ok(exit) }
}

/// Returns the server of the command line, of the project's proposal, or of the person's settings.
fn asked_for(args: &McpAddArgs, sources: &Sources) -> Result<McpServer, McpRefusal> {
    if !is_server_name(&args.name) {
        let why = format!(
            "{:?} is no name of a server: at most 32 letters, digits, `-` and `_`, and no `__`",
            args.name
        );
        return Err(McpRefusal::usage(why));
    }
    if let Some(name) = args.env.iter().find(|name| !is_variable(name)) {
        return Err(McpRefusal::usage(format!("--env {name:?}: expected the name of one of your variables")));
    }
    if args.net.as_ref().is_some_and(Network::is_the_machines) {
        return Err(McpRefusal::usage(
            "--net on: a server reaches hosts by name\n  hint: --net api.example,docs.example",
        ));
    }
    let mut server = match args.command.split_first() {
        Some((command, rest)) => McpServer {
            command: absolute(command)?,
            args: rest.to_vec(),
            ..McpServer::new(&args.name, ConfigOrigin::Default)
        },
        None if args.from_project => proposed(sources, &args.name)?,
        None => named(sources, &args.name)?,
    };
    server.read.extend(args.read.iter().cloned());
    server.write.extend(args.write.iter().cloned());
    server.env.extend(args.env.iter().cloned());
    server.net = args.net.clone().unwrap_or(server.net);
    if !args.offer.is_empty() {
        server.offer = Some(args.offer.clone());
    }
    for list in [&mut server.read, &mut server.write, &mut server.env] {
        let mut seen = std::collections::BTreeSet::new();
        list.retain(|word| seen.insert(word.clone()));
    }
    match SelfInstaller::of(&server.command, &server.args) {
        Some(installer) if server.net.is_off() => Err(installs_itself(&server, &installer)),
        _ => Ok(server),
    }
}

/// Returns the words for a command that would install its packages at each start, for which a server has no network.
fn installs_itself(server: &McpServer, installer: &SelfInstaller) -> McpRefusal {
    let McpServer { name, command, .. } = server;
    let packages: Vec<_> = installer.packages.iter().map(shell_word).collect();
    let packages = packages.join(" ");
    let (install, programs) = match installer.registry {
        Registry::Npm => (format!("npm install --prefix DIR {packages}"), "DIR/node_modules/.bin"),
        Registry::PyPi => (format!("python3 -m venv DIR && DIR/bin/pip install {packages}"), "DIR/bin"),
    };
    McpRefusal::usage(format!(
        "{} installs its package when it starts, and this server has no network\n  hint: install it first: {}\n  hint: then: \
         bailiwick mcp add {name} --read DIR -- {programs}/PROGRAM",
        one_line(command),
        one_line(&install),
    ))
}

/// Returns a program's name, or its absolute path: the table holds in every directory.
fn absolute(command: &str) -> Result<String, McpRefusal> {
    if !command.contains('/') {
        return Ok(command.to_owned());
    }
    let found = std::path::absolute(Path::new(command)).map_err(McpRefusal::usage)?;
    found.into_os_string().into_string().map_err(|_| McpRefusal::usage(format!("{command:?} is not UTF-8")))
}

fn proposed(sources: &Sources, name: &str) -> Result<McpServer, McpRefusal> {
    let all: Vec<_> = sources.proposals().filter_map(|proposal| proposal.as_ref().ok()).collect();
    let Some(proposal) = all.iter().find(|proposal| proposal.server.name == name) else {
        let names: Vec<_> = all.iter().map(|proposal| proposal.server.name.as_str()).collect();
        let names = if names.is_empty() {
            "it proposes none".to_owned()
        } else {
            format!("it proposes {}", names.join(", "))
        };
        return Err(McpRefusal::usage(format!(
            "the project proposes no MCP server {name:?} that you have not: {names}"
        )));
    };
    for part in &proposal.left_out {
        say(&format!("note: left out of the project's proposal: {}", one_line(part)));
    }
    Ok(proposal.server.clone())
}

/// Shows the server, asks, and keeps what was approved.
fn decide(
    args: &McpAddArgs,
    directories: &Directories,
    server: &McpServer,
    inspected: &Inspected,
) -> Result<Exit, McpRefusal> {
    let internal = |error: &dyn std::fmt::Display| McpRefusal(Exit::Internal, error.to_string());
    let pins = Pins::new(directories);
    let before = pins.read(&server.name).map_err(|error| internal(&error))?;
    let text = tools(inspected, before.as_ref());
    write!(io::stdout(), "command   {}\n{text}", command(server)).map_err(|error| internal(&error))?;
    io::stdout().flush().map_err(|error| internal(&error))?;
    let question = format!("Let agents call {} with this access?", server.name);
    if !args.yes && !yes(&question).map_err(|error| internal(&error))? {
        say("nothing was changed");
        return Ok(Exit::Done);
    }
    write_server(&directories.config.join(USER_NAME), server).map_err(McpRefusal::usage)?;
    pins.write(&server.name, &inspected.pin).map_err(|error| internal(&error))?;
    say(&format!(
        "added the MCP server {}: the next session offers its tools; exec needs --mcp {}",
        server.name, server.name
    ));
    Ok(Exit::Done)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_that_installs_says_how_to_install_first() {
        let said = |command: &str, args: &[&str]| {
            let mut server = McpServer::new("x", ConfigOrigin::Default);
            server.command = command.to_owned();
            server.args = args.iter().map(|&word| word.to_owned()).collect();
            let installer = SelfInstaller::of(&server.command, &server.args).unwrap();
            installs_itself(&server, &installer).1
        };
        insta::assert_snapshot!(said("npx", &["-y", "@a/server", "/data"]), @r"
        npx installs its package when it starts, and this server has no network
          hint: install it first: npm install --prefix DIR @a/server
          hint: then: bailiwick mcp add x --read DIR -- DIR/node_modules/.bin/PROGRAM
        ");
        insta::assert_snapshot!(said("uvx", &["server"]), @r"
        uvx installs its package when it starts, and this server has no network
          hint: install it first: python3 -m venv DIR && DIR/bin/pip install server
          hint: then: bailiwick mcp add x --read DIR -- DIR/bin/PROGRAM
        ");
    }
}
