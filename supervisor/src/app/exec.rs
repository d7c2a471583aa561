//! `bailiwick exec`: one task to its end, without a terminal.

use std::io::Read;
use std::time::Instant;

use ipc::frontend::UserActionKind;

use super::args::ExecArgs;
use super::configuration::{self, Sources};
use super::exit::Exit;
use super::output::Printer;
use super::session::{self, Handle, Place, Refusal, Session, SessionOptions};
use super::setup::Wanted;
use crate::approval::ApprovalSettings;
use crate::driver::Turns;

/// Runs the task.
pub(super) async fn run(args: ExecArgs, place: Place) -> Exit {
    let began = Instant::now();
    match prepare(&args, place, began) {
        Ok(prepared) => Box::pin(prepared.run()).await,
        Err(Refusal(exit, message)) => {
            super::complain(&message);
            exit
        }
    }
}

struct Prepared {
    session: Session,
    handle: Handle,
    printer: Printer,
    prompt: String,
}

fn prepare(args: &ExecArgs, place: Place, began: Instant) -> Result<Prepared, Refusal> {
    let prompt = prompt_text(args.prompt.as_deref())?;
    let sources = Sources::read(&place.directories, &args.directory).map_err(Refusal::usage)?;
    let (session, handle, events) = session::open(options(args, &sources), place, began)?;
    let printer = Printer::start(args.output, events).map_err(Refusal::internal)?;
    Ok(Prepared { session, handle, printer, prompt })
}

fn options(args: &ExecArgs, sources: &Sources) -> SessionOptions {
    let flags = configuration::of_exec(args);
    let effective = sources.effective(&flags);
    // Nobody is asked here: what is not trusted is not enabled, and that is said.
    configuration::tell(&sources.notices(&effective, &flags));
    SessionOptions {
        directory: args.directory.clone(),
        mode: args.mode.into(),
        approvals: ApprovalSettings { answerer: false, ..ApprovalSettings::default() },
        wanted: Wanted::new(&effective, &args.confinement),
        model: effective.model().to_owned(),
        base_url: effective.base_url().map(str::to_owned),
        limits: effective.run_limits(),
        timeout: effective.timeout(),
        patch: args.patch.clone(),
        turns: Turns::One,
    }
}

impl Prepared {
    async fn run(self) -> Exit {
        self.handle.act(UserActionKind::Prompt { text: self.prompt }).await;
        tokio::spawn(self.handle.forward_signals());
        let ended = Box::pin(self.session.run()).await;
        self.printer.finish().await;
        match ended {
            Ok(end) => Exit::from(end.reason),
            Err(error) => {
                super::complain(&error);
                Exit::Internal
            }
        }
    }
}

/// A prompt that was given never waits for standard input.
fn prompt_text(argument: Option<&str>) -> Result<String, Refusal> {
    let text = match argument {
        Some("-") => {
            let mut text = String::new();
            let read = std::io::stdin().take(4 << 20).read_to_string(&mut text);
            read.map_err(|error| {
                Refusal::usage(format!("cannot read the task from standard input: {error}"))
            })?;
            text
        }
        Some(text) => text.to_owned(),
        None => String::new(),
    };
    if text.trim().is_empty() {
        return Err(Refusal::usage(
            "no task given\n  next: bailiwick exec \"fix the failing test\", or - to read it",
        ));
    }
    Ok(text)
}
