//! `bailiwick demo`: a scripted model with a real repository and real confinement, without a key or network.
//!
//! The replies are served over HTTP on the loopback interface. In [`repair`] the model repairs a sample project
//! ([`project`]), and in [`poison`] it obeys a poisoned one.

mod attack;
mod card;
pub mod conversation;
mod ink;
mod play;
pub mod poison;
mod printer;
pub mod project;
pub mod repair;
mod shown;
mod stage;
mod wrap;

use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::{env, fs};

use protocol::shell_word::shell_word;

use self::stage::DemoStage;
use crate::engine::opening::Refusal;
use crate::front::terminal_ui;
use crate::process::exit::Exit;
use crate::process::messages::{complain, say};
use crate::process::signals::{Endings, UserSignals};
use crate::settings::args::DemoArgs;

/// Programs that the demo's sample project needs.
const NEEDED: [&str; 2] = ["bash", "git"];

/// Returns the suggested next steps after the demo.
fn next_steps() -> String {
    let program = invoked();
    format!(
        "Next: set ANTHROPIC_API_KEY and run `{program}` in your project\n      \
         {program} demo --attack    runs attacks, and shows what stops each of them\n      \
         {program} demo --tui       the same in the terminal UI, where you answer"
    )
}

fn invoked() -> String {
    let called = env::args_os().next().filter(|name| name.as_bytes().contains(&b'/'));
    // Links are not resolved, because an installation may use one.
    let path = called.and_then(|name| std::path::absolute(name).ok());
    path.map_or_else(|| "bailiwick".to_owned(), shell_word)
}

pub(crate) async fn run(args: DemoArgs) -> Exit {
    match Box::pin(try_run(args)).await {
        Ok(exit) => exit,
        Err(Refusal(exit, message)) => {
            complain(&message);
            exit
        }
    }
}

async fn try_run(args: DemoArgs) -> Result<Exit, Refusal> {
    check(args.keep.as_deref())?;
    if args.attack {
        return attack::run(&args).await;
    }
    let prepared = |error| Refusal::internal(format!("cannot prepare the demo: {error}"));
    // Signals are handled before anything exists that they could leave behind.
    let signals = UserSignals::new().map_err(prepared)?;
    let endings = args.tui.then(Endings::on_a_terminal).transpose().map_err(prepared)?;
    let stage = DemoStage::build(&args).map_err(prepared)?;
    let exit = match endings {
        Some(endings) => in_ui(&stage, endings).await,
        None => Box::pin(play::play(&stage, signals)).await?,
    };
    if let Some(kept) = &args.keep {
        say(&format!("the project of the demo is still in {}", kept.display()));
    }
    Ok(exit)
}

/// Runs the demo in the terminal UI. The person answers the approval request, and may leave early.
async fn in_ui(stage: &DemoStage, mut endings: Endings) -> Exit {
    if let Some(signal) = endings.so_far().await {
        return Exit::by_signal(signal);
    }
    let exit = Box::pin(terminal_ui::play(stage.task(), stage.place())).await;
    if exit == Exit::Done {
        say(&format!("the demo is over: set ANTHROPIC_API_KEY and run `{}` in your project", invoked()));
    }
    exit
}

fn check(keep: Option<&Path>) -> Result<(), Refusal> {
    // A dangling symbolic link also occupies the path.
    if let Some(keep) = keep.filter(|keep| keep.symlink_metadata().is_ok()) {
        let cause = format!("cannot keep the project in {}: the path exists already", keep.display());
        return Err(Refusal::usage(format!("{cause}\n  hint: name a directory that does not exist")));
    }
    match NEEDED.into_iter().find(|program| !on_path(program)) {
        Some(program) => Err(Refusal::internal(format!(
            "cannot run the demo: {program} is not on PATH\n  hint: install bash and git"
        ))),
        None => Ok(()),
    }
}

fn on_path(program: &str) -> bool {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path).any(|directory| {
        let found = fs::metadata(directory.join(program));
        found.is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
    })
}
