//! The choice of the session to continue, on the terminal before the UI starts.

use std::io::{self, stdout};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::Timestamp;
use tokio::signal::unix::{SignalKind, signal};
use tui::{Capabilities, Picked, Picker, PickerRow, pick};

use super::background;
use super::input::TerminalInput;
use super::keys::TypedKey;
use super::painter::Painter;
use super::start::colour;
use super::tty::{Engaged, Tty};
use crate::journal::sessions::{Index, ListedSession};
use crate::process::messages::time;

pub(super) enum UiChoice {
    Log(PathBuf),
    Nothing,
    NoSession,
}

/// Returns the sessions to choose from, newest first. The session just left comes last, and only if it has messages.
fn offered(state: &Path, left: Option<&Path>) -> io::Result<Vec<ListedSession>> {
    let mut sessions = Index::open(state).sessions()?;
    let was_left = |session: &ListedSession| left == Some(&session.log);
    sessions.retain(|session| !was_left(session) || !session.summary.message.is_empty());
    sessions.reverse();
    sessions.sort_by_key(was_left);
    Ok(sessions)
}

/// True if there is a session other than `this` to choose.
pub(super) fn is_any_other(state: &Path, this: &Path) -> io::Result<bool> {
    Ok(offered(state, Some(this))?.iter().any(|session| session.log != this))
}

/// Lets the person choose a session of this project or of all projects. `left` is the log of the session just left.
pub(super) async fn choose(state: &Path, project: &Path, left: Option<&Path>) -> io::Result<UiChoice> {
    let sessions = offered(state, left)?;
    if sessions.is_empty() {
        return Ok(UiChoice::NoSession);
    }
    let rows = sessions.iter().map(|session| row(session, project)).collect();
    let tty = Arc::new(Tty::new(stdout().as_fd(), false)?);
    let size = tty.size();
    let theme = background::of_environment();
    let capabilities = Capabilities { colour: colour(), theme, size: (size.width, size.height) };
    let heading = format!("continue a session of {}", project.display());
    let picked = show(&tty, Picker::new(heading, rows, capabilities)).await?;
    let log = match picked {
        Picked::Row(at) => sessions.into_iter().nth(at).map(|session| session.log),
        Picked::Nothing => None,
    };
    Ok(log.map_or(UiChoice::Nothing, UiChoice::Log))
}

/// Returns the list row of a session: its first message, then its facts. A search covers both.
fn row(session: &ListedSession, project: &Path) -> PickerRow {
    let ListedSession { log, changed, summary, .. } = session;
    let changed = Timestamp::try_from(*changed).map(time::local);
    let first = summary.message.lines().next().filter(|message| !message.is_empty());
    let is_near = summary.project.as_path() == project;
    let elsewhere = if is_near { String::new() } else { format!(" · {}", summary.project) };
    let imported = if summary.imported { " · imported" } else { "" };
    let id = log.file_stem().unwrap_or_default().to_string_lossy();
    let last = summary.last_words().map(|answer| format!("→ {answer}"));
    let facts =
        [changed.ok(), summary.changes(), last, summary.account().money(), Some(summary.model.clone())];
    let facts: Vec<_> = facts.into_iter().flatten().collect();
    let about = format!("{}{imported}{elsewhere} · {id}", facts.join(" · "));
    PickerRow { title: first.unwrap_or("(no messages)").to_owned(), about, is_near }
}

/// Shows the list until the person chooses. Ctrl+C is read as a key. A signal ends the choice.
async fn show(tty: &Arc<Tty>, mut picker: Picker) -> io::Result<Picked> {
    let mut sizes = signal(SignalKind::window_change())?;
    let (mut terminate, mut hangup) = (signal(SignalKind::terminate())?, signal(SignalKind::hangup())?);
    let mut interrupt = signal(SignalKind::interrupt())?;
    tty.release_on_panic();
    let _engaged = Engaged(Arc::clone(tty));
    tty.engage()?;
    let mut input = TerminalInput::new(tty.descriptor())?;
    let mut painter = Painter::new(tty.size())?;
    loop {
        tty.write_frame(&painter.draw(|frame| pick(&picker, frame))?)?;
        tokio::select! {
            biased;
            _ = terminate.recv() => return Ok(Picked::Nothing),
            _ = hangup.recv() => return Ok(Picked::Nothing),
            _ = interrupt.recv() => return Ok(Picked::Nothing),
            typed = input.next() => match typed? {
                TypedKey::Key(key) => if let Some(picked) = picker.key(key) {
                    return Ok(picked);
                },
                TypedKey::Paste(text) => picker.write(&text),
                TypedKey::Focus(_) | TypedKey::Wheel(_) | TypedKey::Theme(_) | TypedKey::Attributes => {}
            },
            _ = sizes.recv() => {
                let size = tty.size();
                picker.resize((size.width, size.height));
                painter.resize(size)?;
            }
        }
    }
}
