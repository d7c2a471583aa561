//! `bailiwick mcp update`: installs a server's packages next to the old packages, and asks the person for approval.

use std::io::{self, Write};

use boundary::install::SelfInstaller;
use tokio::runtime::Runtime;

use super::shown::{command, tools};
use super::{McpRefusal, installing, interrupted, named, not_started, place, sources};
use crate::command::app::ended::until_ended;
use crate::engine::mcp::{InstalledServer, Pin, Pins, inspect, interpreters};
use crate::engine::place::ProjectSandbox;
use crate::process::directories::Directories;
use crate::process::exit::Exit;
use crate::process::messages::{one_line, say};
use crate::settings::args::McpUpdateArgs;
use crate::settings::config::{McpServer, USER_NAME, can_ask, says_yes, write_server};

pub(super) fn run(
    args: &McpUpdateArgs,
    directories: Directories,
    runtime: &Runtime,
) -> Result<Exit, McpRefusal> {
    let sources = sources(&directories, &args.directory)?;
    let server = wanted(args, named(&sources, &args.name)?)?;
    if !args.yes && !can_ask() {
        return Err(McpRefusal::usage(
            "cannot ask for your approval of the update: standard input or standard error is not a terminal\n  hint: type this \
             at a terminal, or add \
             --yes to approve what this command shows",
        ));
    }
    let mut outcome = Err(McpRefusal(Exit::Internal, "interrupted".to_owned()));
    let exit = runtime.block_on(until_ended(async {
        let decided = async {
            let setup = place(directories.clone(), &sources, &args.directory, args.tier)?;
            update(args, &setup, server).await
        };
        outcome = decided.await;
        Exit::Done
    }));
    if exit == Exit::Done { outcome } else { Ok(interrupted(exit)) }
}

/// Returns the server with the version of its package that the arguments request.
fn wanted(args: &McpUpdateArgs, mut server: McpServer) -> Result<McpServer, McpRefusal> {
    let name = &args.name;
    if installing::installer(&server)?.is_none() {
        return Err(McpRefusal::usage(format!(
            "the command of the MCP server {name} installs nothing: update its program the way you installed it\n  hint: bailiwick mcp test \
             {name} lists tools that have changed"
        )));
    }
    if let Some(version) = &args.version {
        server.args = SelfInstaller::versioned(&server.command, &server.args, version).ok_or_else(|| {
            McpRefusal::usage(format!("--version {version:?}: expected a version, as in 1.2.3"))
        })?;
    }
    Ok(server)
}

async fn update(
    args: &McpUpdateArgs,
    setup: &ProjectSandbox,
    mut server: McpServer,
) -> Result<Exit, McpRefusal> {
    let internal = |error: &dyn std::fmt::Display| McpRefusal(Exit::Internal, error.to_string());
    let Some(what) = installing::installer(&server)? else { return Ok(Exit::Done) };
    let pins = Pins::new(&setup.directories);
    let before = pins.read(&server.name).map_err(|error| internal(&error))?;
    let new = installing::install(setup, &server.name, &what).await?;
    server.read.extend(interpreters(&server, &new.server, &installing::toolchain(&what)));
    let inspected = inspect(setup, &server, Some(&new.server)).await;
    let inspected = inspected.map_err(|error| not_started(&server, &error))?;
    let mut text = format!("command   {}\n", command(&server));
    let old = before.as_ref().and_then(|pin| pin.installed.as_ref());
    if let Some(old) = old {
        text.push_str(&difference(old, &new.server));
    }
    text.push_str(&installing::lines(&new.server));
    text.push_str(&installing::blocked(&new));
    text.push_str(&tools(&inspected, before.as_ref()));
    if let Some(before) = &before {
        text.push_str(&changed_tools(before, &inspected.pin));
    }
    write!(io::stdout(), "{text}").and_then(|()| io::stdout().flush()).map_err(|error| internal(&error))?;
    let question = format!("Let agents call the updated {}?", server.name);
    if !args.yes && !says_yes(question).await.map_err(|error| internal(&error))? {
        say("nothing was changed: the installed version stays");
        return Ok(Exit::Done);
    }
    write_server(&setup.directories.config.join(USER_NAME), &server).map_err(McpRefusal::usage)?;
    pins.write(&server.name, &inspected.pin).map_err(|error| internal(&error))?;
    let kept = new.keep();
    say(&format!("updated the MCP server {} to version {}", server.name, one_line(&kept.version)));
    Ok(Exit::Done)
}

fn difference(old: &InstalledServer, new: &InstalledServer) -> String {
    let version = if old.version == new.version {
        format!("{}, as before", new.version)
    } else {
        format!("{} instead of {}", new.version, old.version)
    };
    let files = match (old.check(), old.changes(new)) {
        (Err(why), _) => format!("the old files cannot be compared: {why}"),
        (Ok(()), Err(why)) => format!("the new files cannot be compared: {why}"),
        (Ok(()), Ok(changes)) if changes.is_empty() => "no file differs".to_owned(),
        (Ok(()), Ok(changes)) => {
            format!("{} changed, {} new, {} gone", changes.changed, changes.added, changes.removed)
        }
    };
    format!("version   {}\nfiles     {}\n", one_line(&version), one_line(&files))
}

/// Returns in words how many tools were changed, added and removed.
fn changed_tools(before: &Pin, now: &Pin) -> String {
    let of_tools = before.changes(now);
    if of_tools.is_empty() {
        return "no tool has changed\n".to_owned();
    }
    let (changed, added, removed) = (of_tools.changed.len(), of_tools.added.len(), of_tools.removed.len());
    format!("tools: {changed} changed, {added} new, {removed} gone\n")
}
