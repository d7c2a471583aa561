//! `bailiwick mcp`: lists, adds, tests, updates and removes MCP servers.

mod add;
mod installing;
mod list;
mod shown;
mod update;

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use gate::modes::ApprovalMode;
use protocol::shell_word::shell_word;
use tokio::runtime::Runtime;

use self::shown::tools;
use super::ended::until_ended;
use crate::engine::mcp::{AccessIn, InspectError, Installations, Pins, inspect, stores};
use crate::engine::place::{ConfinementOptions, Mode, ProjectSandbox};
use crate::process::directories::Directories;
use crate::process::exit::{Exit, printed};
use crate::process::messages::{complain, one_line, say};
use crate::settings::args::{McpCommand, McpRemoveArgs, McpTestArgs, TierArg};
use crate::settings::config::{
    Layer, McpServer, Sources, TakenGrant, USER_NAME, is_server_name, remove_server,
};

/// An error message and its exit status.
struct McpRefusal(Exit, String);

impl McpRefusal {
    fn usage(why: impl ToString) -> Self {
        Self(Exit::Usage, why.to_string())
    }
}

pub(super) fn run(command: McpCommand, runtime: &Runtime) -> Exit {
    let done = Directories::of_process().map_err(McpRefusal::usage).and_then(|directories| match command {
        McpCommand::List(args) => list::run(&args, &directories),
        McpCommand::Add(args) => add::run(&args, directories, runtime),
        McpCommand::Update(args) => update::run(&args, directories, runtime),
        McpCommand::Test(args) => test(&args, directories, runtime),
        McpCommand::Remove(args) => remove(&args, &directories),
    });
    done.unwrap_or_else(|McpRefusal(exit, why)| {
        complain(&why);
        exit
    })
}

fn sources(directories: &Directories, project: &Path) -> Result<Sources, McpRefusal> {
    Sources::read(directories, project).map_err(McpRefusal::usage)
}

fn servers(sources: &Sources) -> Vec<McpServer> {
    sources.effective(&Layer::default()).mcp
}

fn named(sources: &Sources, name: &str) -> Result<McpServer, McpRefusal> {
    let all = servers(sources);
    let known: Vec<_> = all.iter().map(|server| server.name.clone()).collect();
    all.into_iter().find(|server| server.name == name).ok_or_else(|| {
        let known = if known.is_empty() {
            "you have no server yet".to_owned()
        } else {
            format!("you have {}", known.join(", "))
        };
        McpRefusal::usage(format!(
            "no MCP server {name:?} in your settings: {known}\n  hint: bailiwick mcp list"
        ))
    })
}

/// Reports that nothing was changed, after a signal interrupted a command.
fn interrupted(exit: Exit) -> Exit {
    // The terminal has written `^C` after the question.
    let _ = writeln!(io::stderr());
    say("nothing was changed");
    exit
}

/// Returns the sandbox in which a server is examined: that of a session that changes nothing.
fn place(
    directories: Directories,
    sources: &Sources,
    project: &Path,
    tier: TierArg,
) -> Result<ProjectSandbox, McpRefusal> {
    let effective = sources.effective(&Layer::default());
    let wanted = ConfinementOptions::of(&effective, tier.into(), false);
    ProjectSandbox::new(directories, project, Mode::fixed(ApprovalMode::Deny), &wanted)
        .map_err(|error| McpRefusal(error.exit(), error.to_string()))
}

/// Returns the error for a server that did not start, or that did not describe its tools.
fn not_started(server: &McpServer, error: &InspectError) -> McpRefusal {
    McpRefusal(Exit::NoSandbox, error.in_words(&server.name, AccessIn::Table))
}

fn not_installed(server: &McpServer) -> McpRefusal {
    let name = &server.name;
    McpRefusal::usage(format!(
        "the package of the MCP server {name} is not installed yet\n  hint: bailiwick mcp add {name} installs it and asks for your approval"
    ))
}

fn test(args: &McpTestArgs, directories: Directories, runtime: &Runtime) -> Result<Exit, McpRefusal> {
    let sources = sources(&directories, &args.directory)?;
    let server = named(&sources, &args.name)?;
    let pins = Pins::new(&directories);
    let mut failed = None;
    let exit = runtime.block_on(until_ended(async {
        let looked = async {
            let setup = place(directories, &sources, &args.directory, args.tier)?;
            let pin = pins.read(&server.name).ok().flatten();
            let installed = pin.and_then(|pin| pin.installed);
            if installed.is_none() && installing::installer(&server)?.is_some() {
                return Err(not_installed(&server));
            }
            inspect(&setup, &server, installed.as_ref()).await.map_err(|error| not_started(&server, &error))
        };
        match looked.await {
            Ok(inspected) => {
                let pin = pins.read(&server.name).ok().flatten().filter(|pin| pin.is_of(&server));
                let text = tools(&inspected, pin.as_ref());
                let remedy = match &pin {
                    Some(pin) if pin.changes(&inspected.pin).is_empty() => String::new(),
                    Some(_) => {
                        format!(
                            "\nthe server's tools have changed: bailiwick mcp add {} asks for a new approval",
                            server.name
                        )
                    }
                    None => format!("\nyou have not approved this server: bailiwick mcp add {}", server.name),
                };
                printed(writeln!(io::stdout(), "{}{remedy}", text.trim_end()), Exit::Done)
            }
            Err(refusal) => {
                failed = Some(refusal);
                Exit::Internal
            }
        }
    }));
    failed.map_or(Ok(exit), Err)
}

fn remove(args: &McpRemoveArgs, directories: &Directories) -> Result<Exit, McpRefusal> {
    let name = &args.name;
    let (pins, installations) = (Pins::new(directories), Installations::new(directories));
    // The person may have removed the table by hand. This command then removes the rest.
    let has_rest = is_server_name(name)
        && (pins.has(name) || installations.has(name) || stores(directories).join(name).exists());
    if !has_rest {
        named(&sources(directories, &args.directory)?, name)?;
    }
    let file = directories.config.join(USER_NAME);
    let taken = remove_server(&file, name).map_err(McpRefusal::usage)?;
    pins.remove(name).map_err(|error| McpRefusal(Exit::Internal, error.to_string()))?;
    if let Err(error) = installations.remove(name) {
        let why = format!("cannot remove the installed files of {name}: {error}");
        return Err(McpRefusal(Exit::Internal, why));
    }
    let store = stores(directories).join(name);
    match fs::remove_dir_all(&store) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            let why =
                format!("cannot remove {}: {error}\n  hint: rm -r {}", store.display(), shell_word(&store));
            return Err(McpRefusal(Exit::Internal, why));
        }
        _ => {}
    }
    let mut text = format!("removed the MCP server {name}, with its approval and its own files\n");
    for TakenGrant { tool, project } in taken {
        let line = format!("{tool} no longer runs without a question in {}", project.display());
        text.push_str(&(one_line(&line) + "\n"));
    }
    Ok(printed(write!(io::stdout(), "{text}"), Exit::Done))
}
