//! `bailiwick mcp add`: shows a server's command, access and tools, and asks the person for approval.

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use ipc::rights::Network;
use tokio::runtime::Runtime;

use super::shown::{command, tools};
use super::{McpRefusal, installing, interrupted, named, not_started, place, sources};
use crate::command::app::ended::until_ended;
use crate::engine::mcp::{
    Inspected, Installations, InstalledServer, NewInstallation, Pins, inspect, interpreters, stores,
};
use crate::engine::place::ProjectSandbox;
use crate::process::directories::Directories;
use crate::process::exit::Exit;
use crate::process::messages::{one_line, say};
use crate::settings::args::McpAddArgs;
use crate::settings::config::{
    ConfigOrigin, McpServer, Sources, USER_NAME, can_ask, is_server_name, is_variable, no_address, says_yes,
    write_server,
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
            "cannot ask for your approval of the server: standard input or standard error is not a terminal\n  hint: type this \
             at a terminal, or add \
             --yes to approve what this command shows",
        ));
    }
    let mut outcome = Err(McpRefusal(Exit::Internal, "interrupted".to_owned()));
    let own = stores(&directories).join(&server.name);
    let was_there = own.exists();
    let exit = runtime.block_on(until_ended(async {
        let decided = async {
            let setup = place(directories.clone(), &sources, &args.directory, args.tier)?;
            let (server, files) = with_files(args, &setup, server).await?;
            // If the table's access cannot be enforced, that is reported before anything is started.
            let inspected = inspect(&setup, &server, files.installed()).await;
            let inspected = inspected.map_err(|error| not_started(&server, &error))?;
            decide(args, &directories, ShownServer { server, inspected, files }).await
        };
        outcome = decided.await;
        Exit::Done
    }));
    if !was_there && Pins::new(&directories).read(&args.name).is_ok_and(|pin| pin.is_none()) {
        // The files of a server that was not added are removed. If that fails, an empty directory may remain.
        let _ = fs::remove_dir_all(own);
    }
    if exit == Exit::Done { outcome } else { Ok(interrupted(exit)) }
}

/// Returns the server to add: from the command line, from the project's proposal, or from the person's settings.
fn asked_for(args: &McpAddArgs, sources: &Sources) -> Result<McpServer, McpRefusal> {
    if !is_server_name(&args.name) {
        let why = format!(
            "{:?} is not a name for a server: at most 32 letters, digits, `-` and `_`, and no `__`",
            args.name
        );
        return Err(McpRefusal::usage(why));
    }
    if let Some(name) = args.env.iter().find(|name| !is_variable(name)) {
        return Err(McpRefusal::usage(format!(
            "--env {name:?}: expected the name of one of your environment variables"
        )));
    }
    if args.net.as_ref().is_some_and(Network::is_the_machines) {
        return Err(McpRefusal::usage(
            "--net on: a server can reach only hosts that you name\n  hint: --net api.example,docs.example",
        ));
    }
    let mut server = match args.command.split_first() {
        Some((url, _)) if url.contains("://") => return Err(McpRefusal::usage(no_address(&args.name, url))),
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
    Ok(server)
}

/// Returns `command` as it is if it has no slash, and otherwise as an absolute path, which is valid in every directory.
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
            "your settings have every server that the project proposes".to_owned()
        } else {
            format!("it proposes {}", names.join(", "))
        };
        return Err(McpRefusal::usage(format!("the project proposes no new MCP server {name:?}: {names}")));
    };
    for part in &proposal.left_out {
        say(&format!("note: left out of the project's proposal: {}", one_line(part)));
    }
    Ok(proposal.server.clone())
}

struct ShownServer {
    server: McpServer,
    inspected: Inspected,
    files: ServerFiles,
}

/// The installed files of the server that is to be added.
enum ServerFiles {
    /// The server's command installs nothing.
    None,
    /// Files that were installed and approved earlier.
    Kept(Box<InstalledServer>),
    New(Box<NewInstallation>),
}

impl ServerFiles {
    fn installed(&self) -> Option<&InstalledServer> {
        match self {
            Self::None => None,
            Self::Kept(installed) => Some(installed),
            Self::New(new) => Some(&new.server),
        }
    }
}

/// Installs the packages that a server's command would otherwise install at each start. Reuses installed files if the
/// server is already in the person's settings.
async fn with_files(
    args: &McpAddArgs,
    setup: &ProjectSandbox,
    mut server: McpServer,
) -> Result<(McpServer, ServerFiles), McpRefusal> {
    let Some(what) = installing::installer(&server)? else { return Ok((server, ServerFiles::None)) };
    let pin = Pins::new(&setup.directories).read(&server.name).ok().flatten();
    let kept = pin.and_then(|pin| pin.installed).filter(|kept| kept.packages == what.packages);
    let files = match kept.filter(|kept| args.command.is_empty() && kept.check().is_ok()) {
        Some(kept) => ServerFiles::Kept(Box::new(kept)),
        None => ServerFiles::New(Box::new(installing::install(setup, &server.name, &what).await?)),
    };
    if let Some(installed) = files.installed() {
        server.read.extend(interpreters(&server, installed, &installing::toolchain(&what)));
    }
    Ok((server, files))
}

async fn decide(
    args: &McpAddArgs,
    directories: &Directories,
    shown: ShownServer,
) -> Result<Exit, McpRefusal> {
    let ShownServer { server, inspected, files } = &shown;
    let internal = |error: &dyn std::fmt::Display| McpRefusal(Exit::Internal, error.to_string());
    let pins = Pins::new(directories);
    let before = pins.read(&server.name).map_err(|error| internal(&error))?;
    let mut text = format!("command   {}\n", command(server));
    text.extend(files.installed().map(installing::lines));
    if let ServerFiles::New(new) = files {
        text.push_str(&installing::blocked(new));
    }
    text.push_str(&tools(inspected, before.as_ref()));
    write!(io::stdout(), "{text}").map_err(|error| internal(&error))?;
    io::stdout().flush().map_err(|error| internal(&error))?;
    let question = format!("Let agents call {} with this access?", server.name);
    if !args.yes && !says_yes(question).await.map_err(|error| internal(&error))? {
        say("nothing was changed");
        return Ok(Exit::Done);
    }
    write_server(&directories.config.join(USER_NAME), server).map_err(McpRefusal::usage)?;
    pins.write(&server.name, &inspected.pin).map_err(|error| internal(&error))?;
    match shown.files {
        ServerFiles::None => {
            Installations::new(directories).remove(&server.name).map_err(|error| internal(&error))?;
        }
        ServerFiles::Kept(_) => {}
        ServerFiles::New(new) => drop(new.keep()),
    }
    let name = &shown.server.name;
    say(&format!("added the MCP server {name}: the next session offers its tools; exec needs --mcp {name}"));
    Ok(Exit::Done)
}
