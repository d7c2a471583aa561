//! Runs the demo's session, prints its events, and answers its only approval request as the script expects.

use std::fs;
use std::io;
use std::time::Instant;

use protocol::approval::{ApprovalAnswer, ReviewDecision, ServerRequest};
use protocol::frontend::{AgentAction, UiEventKind, UserAction, UserActionKind};

use super::ink::Ink;
use super::next_steps;
use super::printer::Printer;
use super::repair::PROMPT;
use super::shown::Shown;
use super::stage::DemoStage;
use crate::engine::driver::Turns;
use crate::engine::opening::{self, Handle, Refusal, SessionEvents, SessionOptions};
use crate::engine::place::{Caches, ConfinementOptions};
use crate::process::exit::Exit;
use crate::process::signals::UserSignals;
use crate::settings::args::of_tui;
use crate::settings::config::Sources;

/// Plays the demo. Fails if the session did not show all that the demo promises.
pub(super) async fn play(stage: &DemoStage, signals: UserSignals) -> Result<Exit, Refusal> {
    let began = Instant::now();
    let (session, handle, mut events) = opening::open(options(stage)?, stage.place(), began)?;
    let project = session.standing().project().clone();
    let mut printer = Printer::new(io::stdout(), Ink::of_stdout(), project);
    // If the reader is gone, as with `| head`, the run still continues.
    let _ = printer.line(&title(stage));
    let prompt = UserActionKind::Agent(AgentAction::Prompt { text: PROMPT.to_owned(), images: Vec::new() });
    handle.act(prompt).await;
    tokio::spawn(handle.clone().forward(signals));
    let (ended, ()) = tokio::join!(Box::pin(session.run()), follow(&mut printer, &handle, &mut events));
    let ended = ended.map_err(Refusal::internal)?;
    let exit = Exit::from(ended.reason);
    if exit != Exit::Done {
        let cause = ended.message.unwrap_or_else(|| "the demo ended too early".to_owned());
        return Err(Refusal(exit, cause));
    }
    let shown = Shown::in_logs(&stage.directories.state)
        .map_err(|error| Refusal::internal(format!("cannot check the demo by its log: {error}")))?;
    let _ = print_end(&mut printer, stage, began);
    shown.verdict()
}

fn title(stage: &DemoStage) -> String {
    format!(
        "A scripted model repairs a small git repository; its commands really run, in a real sandbox.\n\
         {}: read-only until you approve · network off · no API key",
        stage.project.display()
    )
}

async fn follow<W: io::Write>(printer: &mut Printer<W>, handle: &Handle, events: &mut SessionEvents) {
    while let Some(event) = events.recv().await {
        let _ = printer.print(&event.kind);
        if let UiEventKind::ApprovalRequested { id, request } = event.kind {
            let action = handle.action(UserActionKind::Answer { id, answer: answer(&request) });
            handle.act_on(UserAction { agent: Some(event.agent), ..action }).await;
        }
    }
}

/// Approves the expected edit and denies everything else.
fn answer(request: &ServerRequest) -> ApprovalAnswer {
    match request {
        ServerRequest::ApplyPatchApproval(_) => request.answer(ReviewDecision::Approved),
        _ => ApprovalAnswer::Failed { cause: "the demo approves edits only".to_owned() },
    }
}

fn print_end<W: io::Write>(printer: &mut Printer<W>, stage: &DemoStage, began: Instant) -> io::Result<()> {
    printer.line("\nThe patch, as `exec --patch` writes it:\n")?;
    printer.line(fs::read_to_string(&stage.patch)?.trim_end())?;
    printer.line(&format!("\nDone in {:.1} s.", began.elapsed().as_secs_f64()))?;
    printer.line(&next_steps())
}

fn options(stage: &DemoStage) -> Result<SessionOptions, Refusal> {
    let args = stage.task();
    let sources = Sources::read(&stage.directories, &args.directory).map_err(Refusal::usage)?;
    let effective = sources.effective(&of_tui(&args));
    let wanted = ConfinementOptions {
        caches: Caches::EndWithIt,
        ..ConfinementOptions::new(&effective, &args.confinement)
    };
    let options = SessionOptions::new(&effective, args.directory, wanted, Turns::One);
    Ok(SessionOptions { patch: Some(stage.patch.clone()), ..options })
}
