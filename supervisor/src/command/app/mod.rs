//! The entry point of the command line: it parses the arguments, runs a command, and exits with its status.

mod config;
mod debug;
mod delete;
mod ended;
mod generated;
mod mcp;
mod plan;
mod prune;
mod relay;
mod rewind;
mod sessions;
mod show;
mod transfer;

use std::io::{self, Write};
use std::path::Path;

use ipc::confinement::Bounds;
use model::secrets::{TakenKeys, harden_process, take_keys};
use serde::Serialize;
use tokio::runtime::{Builder, Runtime};

use self::ended::until_ended;
use crate::engine::place::{ConfinementOptions, PrivateProject};
use crate::inspect::doctor::{Diagnosis, PromisesPage};
use crate::process::directories::Directories;
use crate::process::messages::complain;
use crate::settings::args::{Cli, Command, DebugCommand, DoctorArgs, TuiArgs};
use crate::settings::config::{Layer, Sources};

use crate::engine::opening;
use crate::front::{acp, batch, demo, exec, sandbox, serve, terminal_ui};
use crate::inspect::{audit, explain};
pub use crate::process::exit::Exit;
use crate::process::exit::printed;

/// Takes the API keys, and protects this process from others of its user. Must be called first, in the only thread.
pub fn harden() -> Result<TakenKeys, Exit> {
    let keys = take_keys();
    match harden_process() {
        Ok(()) => Ok(keys),
        Err(error) => {
            complain(&format!("cannot protect this process from others of the same user: {error}"));
            Err(Exit::Internal)
        }
    }
}

pub fn main(keys: TakenKeys) -> Exit {
    let cli = match Cli::read(std::env::args_os()) {
        Ok(cli) => cli,
        Err(error) => {
            let _ = error.print();
            return if error.use_stderr() { Exit::Usage } else { Exit::Done };
        }
    };
    let runtime = crate::process::diagnostics::start()
        .and_then(|()| Ok(Builder::new_current_thread().enable_all().build()?));
    match runtime {
        Ok(runtime) => match cli.command {
            Some(command) => run(command, keys, &runtime),
            None => runtime.block_on(start_ui(cli.tui, keys)),
        },
        Err(error) => {
            complain(&error);
            Exit::Usage
        }
    }
}

fn run(command: Command, keys: TakenKeys, runtime: &Runtime) -> Exit {
    match command {
        Command::Exec(args) => match place(keys) {
            Ok(place) => runtime.block_on(exec::run(args, place)),
            Err(exit) => exit,
        },
        Command::Batch(args) => match place(keys) {
            Ok(place) => runtime.block_on(batch::run(args, place)),
            Err(exit) => exit,
        },
        Command::Serve(args) if args.print_schema => serve::print_schema(),
        Command::Serve(_) => match Directories::of_process() {
            Ok(directories) => runtime.block_on(serve::run(opening::SessionDirs { directories, keys })),
            Err(error) => {
                complain(&error);
                Exit::Usage
            }
        },
        Command::Acp(args) => match place(keys) {
            Ok(place) => runtime.block_on(acp::run(args, place)),
            Err(exit) => exit,
        },
        Command::Replay(args) => match Directories::of_process() {
            Ok(directories) => runtime.block_on(exec::replay::run(args, directories)),
            Err(error) => {
                complain(&error);
                Exit::Usage
            }
        },
        Command::Resume(args) => match place(keys) {
            Ok(place) => runtime.block_on(terminal_ui::resumed(args, place)),
            Err(exit) => exit,
        },
        Command::Sessions(args) => sessions::run(&args),
        Command::Rewind(args) => rewind::run(&args, runtime),
        Command::Show(args) => show::run(&args, runtime),
        Command::Export(args) => transfer::export(&args),
        Command::Import(args) => transfer::import(&args),
        Command::Plan(command) => plan::run(command, keys, runtime),
        Command::Mcp(command) => mcp::run(command, runtime),
        Command::Relay(args) => relay::run(args, &keys, runtime),
        Command::Sandbox(args) => runtime.block_on(sandbox::run(args)),
        Command::Doctor(args) => runtime.block_on(until_ended(doctor(&args, &keys))),
        Command::Explain(args) => runtime.block_on(until_ended(explain::run(args))),
        Command::Audit(args) if args.probe => runtime.block_on(until_ended(audit::run(args))),
        Command::Audit(args) => runtime.block_on(audit::run(args)),
        Command::Config(args) => config::run(args),
        Command::Demo(args) => runtime.block_on(demo::run(args)),
        Command::Debug(DebugCommand::Stream(args)) => runtime.block_on(debug::stream(args, keys)),
        Command::Completions(args) => generated::completions(args.shell),
        Command::Debug(DebugCommand::Man { pages }) => generated::man(&pages),
        Command::Debug(DebugCommand::Attempt(attempt)) => debug::attempt(&attempt),
    }
}

async fn start_ui(args: TuiArgs, keys: TakenKeys) -> Exit {
    match place(keys) {
        Ok(place) => terminal_ui::run(args, place).await,
        Err(exit) => exit,
    }
}

fn place(keys: TakenKeys) -> Result<opening::SessionDirs, Exit> {
    match Directories::of_process() {
        Ok(directories) => Ok(opening::SessionDirs { directories, keys }),
        Err(error) => {
            complain(&error);
            Err(Exit::Usage)
        }
    }
}

/// Returns the resource limits in the settings; `None` if the settings are unreadable (another check reports that).
fn bounds() -> Option<Bounds> {
    let directories = Directories::of_process().ok()?;
    let sources = Sources::read(&directories, Path::new(".")).ok()?;
    Some(sources.effective(&Layer::default()).bounds())
}

async fn doctor(args: &DoctorArgs, keys: &TakenKeys) -> Exit {
    let bounds = bounds().unwrap_or_default();
    let wanted = ConfinementOptions { tier: args.tier.into(), bounds, ..ConfinementOptions::default() };
    let place = match PrivateProject::new(wanted) {
        Ok(place) => Ok(place),
        Err(error) if error.exit() == Exit::NoSandbox => Err(error.to_string()),
        Err(error) => {
            complain(&error);
            return error.exit();
        }
    };
    let setup = place.as_ref().map(|place| &place.sandbox);
    if args.promises {
        let page = match setup {
            Ok(setup) => PromisesPage::make(setup).await,
            Err(why) => PromisesPage::of_refusal(why),
        };
        return shown(&page, args.json, || page.print(), page.is_usable());
    }
    let diagnosis = match setup {
        Ok(setup) => Diagnosis::make(setup, keys, args.api).await,
        Err(why) => Diagnosis::of_nothing(why),
    };
    shown(&diagnosis, args.json, || diagnosis.print(), diagnosis.is_usable())
}

/// Prints a report, as JSON or by calling `print`. Returns the exit status: a failure if `usable` is false.
fn shown(report: &impl Serialize, json: bool, print: impl FnOnce() -> io::Result<()>, usable: bool) -> Exit {
    let done = if json {
        serde_json::to_writer_pretty(io::stdout(), report)
            .map_err(Into::into)
            .and_then(|()| writeln!(io::stdout()))
    } else {
        print()
    };
    printed(done, if usable { Exit::Done } else { Exit::NoSandbox })
}
