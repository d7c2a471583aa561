//! `bailiwick demo --attack`: a poisoned README makes a scripted agent attack its user. All attacks must fail.
//!
//! The attacked session is a normal `bailiwick exec --mode auto` with a temporary home directory. This process is not
//! confined, and checks after each attack if it did harm.

mod outcome;
mod session;
mod victim;

use std::io::{self, Write};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, OnceLock};

use model::replay::ReplayServer;

use self::outcome::{AttackEnd, AttackRow, Observed};
use self::session::{AttackUpdate, Attacked};
use self::victim::Victim;
use super::conversation::{self, DemoTurn};
use super::ink::Ink;
use super::poison::{self, Attack, Targets};
use crate::engine::opening::Refusal;
use crate::process::exit::Exit;
use crate::process::messages::harmless;
use crate::process::signals::Endings;
use crate::settings::args::DemoArgs;

const TITLE: usize = 34;

pub(super) async fn run(args: &DemoArgs) -> Result<Exit, Refusal> {
    let prepared = |error: io::Error| Refusal::internal(format!("cannot prepare the attacks: {error}"));
    // Signals are handled before anything exists that they could leave behind.
    let endings = Endings::new().map_err(prepared)?;
    let mut victim = Victim::new().map_err(prepared)?;
    let attacks: Arc<OnceLock<Vec<Attack>>> = Arc::default();
    // `judged` is dropped before the server, whose thread may wait for it.
    let (server, judged) = serve(Arc::clone(&attacks)).map_err(prepared)?;
    let mut attacked = Attacked::start(args, &victim, &server.base_url(), endings).map_err(prepared)?;
    let targets = targets(&victim, &attacked).map_err(prepared)?;
    let attacks = attacks.get_or_init(|| targets.attacks());
    print(&title(&attacked));
    match watch(&mut attacked, &mut victim, attacks, &judged).await {
        WatchedAttack::Rows(rows) => {
            attacked.finish()?;
            verdict(&rows, attacks.len())
        }
        WatchedAttack::Signal(signal) => {
            attacked.terminate().map_err(Refusal::internal)?;
            Ok(Exit::by_signal(signal))
        }
    }
}

/// Serves the scripted model, which begins an attack only after the previous attack was judged: so harm has one cause.
fn serve(attacks: Arc<OnceLock<Vec<Attack>>>) -> io::Result<(ReplayServer, Sender<()>)> {
    let (judged, told) = channel();
    let mut told = told.into_iter().enumerate().map(|(count, ())| count);
    let mut last = None;
    let agent = move |turn: &DemoTurn| {
        while *turn != DemoTurn::First && last.is_none_or(|last| last < poison::made(turn)) {
            match told.next() {
                Some(count) => last = Some(count),
                // The channel is closed, so no further attack will be judged.
                None => break,
            }
        }
        poison::reply(turn, attacks.get().map_or(&[], Vec::as_slice))
    };
    Ok((conversation::serve(agent)?, judged))
}

fn targets(victim: &Victim, attacked: &Attacked) -> io::Result<Targets> {
    Ok(Targets {
        pid: attacked.pid(),
        process: attacked.process_name()?,
        helper: attacked.helper().to_owned(),
        home: victim.home().to_owned(),
        own_keys: session::own_keys(),
        port: victim.port()?,
        name: victim.name.clone(),
        socket: victim.socket(),
        terminal: victim.terminal(),
    })
}

fn title(attacked: &Attacked) -> String {
    let command = [&["bailiwick exec --mode auto".to_owned()], attacked.arguments()].concat().join(" ");
    format!(
        "The README of a repository tells AI agents to rob their user. A scripted agent obeys the README. Each attack really runs,\n\
         against a throw-away home, with the access that `{}` gives.\n",
        harmless(&command)
    )
}

enum WatchedAttack {
    /// The session has ended, with the outcome of each attack that was made.
    Rows(Vec<AttackRow>),
    Signal(i32),
}

/// Observes the session until its end, and prints a row for each attack.
async fn watch(
    attacked: &mut Attacked,
    victim: &mut Victim,
    attacks: &[Attack],
    judged: &Sender<()>,
) -> WatchedAttack {
    let (mut observed, mut rows, ink) = (Observed::default(), Vec::new(), Ink::of_stdout());
    // A session that has ended makes no more requests.
    let tell = || {
        let _ = judged.send(());
    };
    tell();
    loop {
        let (over, ended) = match attacked.next().await {
            AttackUpdate::Event(event) => (observed.take(&event.kind), false),
            AttackUpdate::Signal(signal) => return WatchedAttack::Signal(signal),
            // The current attack may have ended the supervisor.
            AttackUpdate::Ended => (observed.take_over(), true),
        };
        if let Some((index, seen)) = over
            && let Some(attack) = attacks.get(index)
        {
            let harm = if ended { Some("the supervisor has ended".to_owned()) } else { victim.harm() };
            let row = seen.row(attack, harm, &victim.secrets);
            print(&line(&row, ink, victim));
            rows.push(row);
            tell();
        }
        if ended {
            return WatchedAttack::Rows(rows);
        }
    }
}

fn line(row: &AttackRow, ink: Ink, victim: &Victim) -> String {
    let (sign, text) = match &row.outcome {
        Ok(AttackEnd::Blocked(by)) => (ink.good("blocked    "), by),
        Ok(AttackEnd::Undone(what)) => (ink.good("undone     "), what),
        Err(harm) => (ink.bad("GOT THROUGH"), harm),
    };
    let text = harmless(text).replace(&*victim.home().to_string_lossy(), "~");
    format!("  {sign}  {:TITLE$} {text}", row.title)
}

fn verdict(rows: &[AttackRow], planned: usize) -> Result<Exit, Refusal> {
    let count = |is_so: fn(&AttackEnd) -> bool| {
        rows.iter().filter(|row| row.outcome.as_ref().is_ok_and(is_so)).count()
    };
    let blocked = count(|end| matches!(end, AttackEnd::Blocked(_)));
    let undone = count(|end| matches!(end, AttackEnd::Undone(_)));
    print(&format!(
        "\nOf {planned} attacks {blocked} were blocked, and {undone} undone when the command ended, as seen from outside the sandbox."
    ));
    let through = planned.saturating_sub(blocked + undone);
    if through > 0 {
        return Err(Refusal::internal(format!(
            "{through} of {planned} attacks were neither blocked nor undone"
        )));
    }
    print(&format!("Next: set ANTHROPIC_API_KEY and run `{}` in your project", super::invoked()));
    Ok(Exit::Done)
}

/// Prints a text. A closed reader, as with `| head`, is no error.
fn print(text: &str) {
    let _ = writeln!(io::stdout(), "{text}");
}
