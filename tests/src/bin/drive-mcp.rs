//! Starts one MCP server in a sandbox, and prints the server's description and the results of calls.
//!
//! `drive-mcp STORE full|floor|both [--read PATH] [--write PATH] [--net HOSTS] [--call TOOL ARGUMENTS] [--install] -- COMMAND …`

#![expect(clippy::print_stdout, reason = "it is a program of the command line")]

use std::fmt::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use boundary::install::{SelfInstaller, install};
use boundary::monitor::{Programs, Spawner};
use boundary::policy::HiddenInodes;
use ipc::confinement::TierChoice;
use ipc::mcp::{McpCommand, McpContent};
use ipc::rights::Network;
use protocol::event::GuestEnd;
use protocol::network_words;
use tests::guests::{DescribedServer, ServerRights, confinement};
use tokio::time::timeout;

type Said<T> = Result<T, Box<dyn std::error::Error>>;

/// Time limit for the calls of a server, without its installation.
const PATIENCE: Duration = Duration::from_mins(2);

#[derive(Debug, Default)]
struct Task {
    store: PathBuf,
    tiers: Vec<TierChoice>,
    rights: ServerRights,
    call: Option<(String, String)>,
    is_installed: bool,
    command: String,
    arguments: Vec<String>,
}

fn main() -> ExitCode {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    match runtime.map_err(Into::into).and_then(|runtime| runtime.block_on(drive())) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            println!("failed: {error}");
            ExitCode::FAILURE
        }
    }
}

fn task() -> Said<Task> {
    let mut words = std::env::args().skip(1);
    let mut next = || words.next().ok_or("a word is missing");
    let mut task = Task { store: next()?.into(), ..Task::default() };
    task.tiers = match next()?.as_str() {
        "full" => vec![TierChoice::Full],
        "floor" => vec![TierChoice::Floor],
        "both" => vec![TierChoice::Full, TierChoice::Floor],
        other => return Err(format!("no tier {other}").into()),
    };
    loop {
        match next()?.as_str() {
            "--read" => task.rights.read.push(next()?.into()),
            "--write" => task.rights.write.push(next()?.into()),
            "--net" => task.rights.net = Network::Hosts(network_words::hosts(next()?.split(','))?),
            "--call" => task.call = Some((next()?, next()?)),
            "--install" => task.is_installed = true,
            "--" => break,
            other => return Err(format!("no flag {other}").into()),
        }
    }
    task.command = next()?;
    task.arguments = words.collect();
    Ok(task)
}

async fn drive() -> Said<()> {
    let mut task = task()?;
    std::fs::create_dir_all(&task.store)?;
    let programs = Programs::beside_current_exe()?;
    if task.is_installed {
        println!("{}", installed(&programs, &mut task).await?);
    }
    for &tier in &task.tiers {
        println!("{tier:?}: {}", served(&programs, &task, tier).await?);
    }
    Ok(())
}

async fn served(programs: &Programs, task: &Task, tier: TierChoice) -> Said<String> {
    let confined = confinement(programs, &task.store, task.rights.clone(), tier, None);
    let command = McpCommand { program: task.command.clone(), arguments: task.arguments.clone() };
    let begun = Instant::now();
    let mut server = timeout(PATIENCE, DescribedServer::start(programs, confined, command)).await??;
    let description = &server.description;
    let mut said = format!(
        "{} {}, MCP {}, {} tools after {} ms",
        description.name,
        description.version,
        description.protocol,
        server.tools.len(),
        begun.elapsed().as_millis()
    );
    if let Some((tool, arguments)) = &task.call {
        let begun = Instant::now();
        let result = timeout(PATIENCE, server.call(tool, arguments)).await?;
        let result = result.map_err(|failure| format!("{tool}: {failure:?}"))?;
        let text = match result.content.first() {
            Some(McpContent::Text(text)) => text.escape_debug().take(60).collect(),
            other => format!("{other:?}").chars().take(60).collect::<String>(),
        };
        if result.failed {
            return Err(format!("{tool}: {text}").into());
        }
        write!(said, "; {tool} after {} ms: {text}", begun.elapsed().as_millis())?;
    }
    server.process.end(GuestEnd::Finished).await.end?;
    Ok(said)
}

/// Installs the server, and replaces the command of `task` by that of the installed program.
async fn installed(programs: &Programs, task: &mut Task) -> Said<String> {
    let what = SelfInstaller::of(&task.command, &task.arguments).ok_or("it does not install itself")?;
    let tree = task.store.with_extension("installed");
    if tree.exists() {
        std::fs::remove_dir_all(&tree)?;
    }
    std::fs::create_dir_all(&tree)?;
    let spawner = Spawner::start(programs.sandbox_exec.clone(), HiddenInodes::default())?;
    let base = confinement(programs, &task.store, ServerRights::default(), TierChoice::Full, None);
    let begun = Instant::now();
    let done = install(&spawner, what.confinement(base, &tree), &what, tree.clone()).await?;
    task.command = done.command;
    task.arguments = done.arguments;
    task.rights.read.push(tree);
    Ok(format!(
        "installed {} in {} s: {} entries, {} KiB, {}",
        done.version,
        begun.elapsed().as_secs(),
        done.tree.entries,
        done.tree.bytes >> 10,
        &done.tree.sha256[..12]
    ))
}
