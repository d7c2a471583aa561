//! `bailiwick show`: prints a session for a person or for another program.

use std::fs::File;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};

use ipc::id::AgentId;
use tokio::runtime::Runtime;

use crate::engine::opening::{Refusal, find_log};
use crate::journal::session::{Loaded, each_line, load_as};
use crate::journal::sessions::check_no_export;
use crate::journal::shown::{Reading, agents, is_event, markdown, page, text, without_texts};
use crate::process::directories::Directories;
use crate::process::exit::Exit;
use crate::process::messages::{ReadingProgress, complain, harmless};
use crate::process::pager;
use crate::process::signals::UserSignals;
use crate::process::tty;
use crate::settings::args::{SessionOutput, ShowSessionArgs};

pub(super) fn run(args: &ShowSessionArgs, runtime: &Runtime) -> Exit {
    match show(args, runtime) {
        Ok(exit) => exit,
        Err(Refusal(exit, message)) => {
            complain(&message);
            exit
        }
    }
}

fn show(args: &ShowSessionArgs, runtime: &Runtime) -> Result<Exit, Refusal> {
    let log = log_of(args.session.as_deref(), &args.directory)?;
    let mut progress = ReadingProgress::begin();
    let loaded = load_as(&log, &mut |read, whole| progress.tell(read, whole), without_texts);
    let loaded = loaded.map_err(Refusal::usage)?;
    drop(progress);
    let agent = args.agent.as_deref().map(AgentId::from);
    check_agent(agent.as_ref(), &loaded)?;
    let is_whole = loaded.is_intact() && loaded.tree.events().next().is_some();
    let exit = if is_whole { Exit::Done } else { Exit::Internal };
    if args.output == SessionOutput::Json {
        for fault in &loaded.faults {
            complain(fault);
        }
        events(&log, agent.as_ref()).map_err(Refusal::internal)?;
        return Ok(exit);
    }
    let shown = Reading::new(agent.as_ref(), args.full).read_again(&log, &loaded).map_err(Refusal::usage)?;
    drop(loaded);
    let printed = match args.output {
        SessionOutput::Html => pager::print(page(&shown).as_bytes()),
        SessionOutput::Markdown => paged(&markdown(&shown), runtime),
        SessionOutput::Text | SessionOutput::Json => {
            paged(&text(&shown, tty::columns(&io::stdout())), runtime)
        }
    };
    printed.map_err(|error| Refusal::internal(format!("cannot print the session: {error}")))?;
    Ok(exit)
}

/// Returns the log of a session by its name or path. A path must have a slash, so that no name is taken for a path.
pub(super) fn log_of(session: Option<&str>, directory: &Path) -> Result<PathBuf, Refusal> {
    if let Some(path) = session.map(Path::new).filter(|path| path.components().count() > 1) {
        check_no_export(path).map_err(Refusal::usage)?;
        return Ok(path.to_owned());
    }
    let directories = Directories::of_process().map_err(Refusal::usage)?;
    let project = directory.canonicalize().unwrap_or_else(|_| directory.to_owned());
    find_log(&directories.sessions(), session, &project).map_err(Refusal::usage)
}

fn check_agent(agent: Option<&AgentId>, loaded: &Loaded) -> Result<(), Refusal> {
    let Some(agent) = agent else { return Ok(()) };
    let agents = agents(&loaded.tree);
    if agents.contains(agent) {
        return Ok(());
    }
    let agents: Vec<_> = agents.iter().take(20).map(AgentId::as_str).collect();
    Err(Refusal::usage(format!(
        "no agent {agent} in this session\n  hint: the session's agents are {}",
        agents.join(", ")
    )))
}

/// Shows the text in a pager if standard output is a terminal.
fn paged(text: &str, runtime: &Runtime) -> io::Result<()> {
    if !io::stdout().is_terminal() {
        return pager::print(text.as_bytes());
    }
    // From here on Ctrl+C does not end this process, but only the pager.
    let _within = runtime.enter();
    let _signals = UserSignals::new()?;
    pager::show(text)
}

/// Prints the events of a log. On a terminal, escapes terminal controls.
fn events(log: &Path, agent: Option<&AgentId>) -> io::Result<()> {
    let is_terminal = io::stdout().is_terminal();
    let mut out = io::BufWriter::new(io::stdout().lock());
    let write = |line: &[u8]| {
        if !is_event(line, agent) {
            Ok(())
        } else if is_terminal {
            writeln!(out, "{}", harmless(&String::from_utf8_lossy(line)))
        } else {
            out.write_all(line).and_then(|()| out.write_all(b"\n"))
        }
    };
    let written = each_line(File::open(log)?, write).and_then(|()| out.flush());
    match written {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => written,
    }
}
