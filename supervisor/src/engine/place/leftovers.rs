//! Changes by a session that was killed during a command. The user keeps these changes or restores the earlier state.

use std::io::{self, BufRead, Write};

use boundary::tripwire::{BaselineChoice, CutOffChange, Watch, settle_leftovers};
use nix::sys::termios::{FlushArg, tcflush};
use similar::TextDiff;

use super::error::SetupError;
use super::wanted::Leftovers;
use crate::process::messages::{one_line, say, tell};

/// Maximum number of lines of a file's difference that are shown.
const MOST_LINES: usize = 40;

/// Maximum number of changed files that the refusal to start names.
const MOST_NAMED: usize = 20;

/// Keeps the changes or restores the earlier state, as `word` says. Must be called before any process can write.
pub(super) fn settle(watch: &Watch, word: Leftovers) -> Result<(), SetupError> {
    let decide: fn(&[CutOffChange]) -> io::Result<Vec<BaselineChoice>> = match word {
        Leftovers::Leave => return Ok(()),
        Leftovers::Refuse => refuse,
        Leftovers::Ask => ask,
        Leftovers::All(BaselineChoice::Mine) => |found| Ok(vec![BaselineChoice::Mine; found.len()]),
        Leftovers::All(BaselineChoice::Restore) => |found| Ok(vec![BaselineChoice::Restore; found.len()]),
    };
    let report = settle_leftovers(watch, decide).map_err(SetupError::Leftovers)?;
    for place in &report.changes {
        let done = if place.restored { "restored" } else { "could not be restored" };
        say(&one_line(&format!("{done}: {} ({})", place.path.as_path().display(), place.phrase())));
    }
    tell(&report.notes);
    Ok(())
}

fn refuse(found: &[CutOffChange]) -> io::Result<Vec<BaselineChoice>> {
    let mut places: Vec<_> =
        found.iter().take(MOST_NAMED).map(|place| format!("\n  {}", named(place))).collect();
    if found.len() > MOST_NAMED {
        places.push(format!("\n  and {} more", found.len() - MOST_NAMED));
    }
    Err(io::Error::other(format!(
        "a session was killed here during a command, and these files differ from their state before the command:{}\n  hint: check these files, then use --baseline mine to keep all of them, or --baseline restore to restore their state before the command",
        places.concat()
    )))
}

fn named(place: &CutOffChange) -> String {
    one_line(&format!("{} ({})", place.path.display(), place.what))
}

/// Asks the user about each file, until the answer is valid. Fails if the user quits or the terminal is closed.
fn ask(found: &[CutOffChange]) -> io::Result<Vec<BaselineChoice>> {
    let mut out = io::stderr().lock();
    writeln!(out, "A session was killed here during a command. Your git, shell and editors run")?;
    writeln!(out, "these files, and the files differ from their state before the command:")?;
    found
        .iter()
        .enumerate()
        .map(|(index, place)| ask_about(&mut out, place, index + 1, found.len()))
        .collect()
}

fn ask_about(
    out: &mut impl Write,
    place: &CutOffChange,
    number: usize,
    all: usize,
) -> io::Result<BaselineChoice> {
    writeln!(out, "\n{number} of {all}: {}", named(place))?;
    for line in shown(place) {
        writeln!(out, "  {line}")?;
    }
    loop {
        write!(
            out,
            "Did you change this file? [m] mine, keep it  [r] restore the earlier state  [q] quit: "
        )?;
        out.flush()?;
        // Input that was typed before the question is discarded.
        tcflush(io::stdin(), FlushArg::TCIFLUSH)?;
        let mut answer = String::new();
        let read = io::stdin().lock().read_line(&mut answer)?;
        match answer.trim() {
            "m" | "mine" => return Ok(BaselineChoice::Mine),
            "r" | "restore" => return Ok(BaselineChoice::Restore),
            "q" | "quit" => return Err(io::Error::other("nothing was decided, and nothing was changed")),
            _ if read == 0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            _ => {}
        }
    }
}

/// Returns the lines of the difference of a text file, or the names of new files in a directory.
fn shown(place: &CutOffChange) -> Vec<String> {
    let text = |content: &Option<Vec<u8>>| {
        content.as_deref().map(|bytes| String::from_utf8_lossy(bytes).into_owned())
    };
    if place.before.is_none() && place.now.is_none() {
        let names = place.inside.iter().filter_map(|inside| inside.strip_prefix(&place.path).ok());
        return names
            .take(MOST_LINES)
            .map(|name| format!("+{}", one_line(&name.to_string_lossy())))
            .collect();
    }
    let [before, now] = [&place.before, &place.now].map(|content| text(content).unwrap_or_default());
    let diff = TextDiff::from_lines(&before, &now);
    let lines: Vec<_> =
        diff.iter_all_changes().filter(|change| change.tag() != similar::ChangeTag::Equal).collect();
    let shown = lines.iter().take(MOST_LINES);
    let mut shown: Vec<_> = shown
        .map(|change| format!("{}{}", change.tag(), one_line(change.value().trim_end_matches('\n'))))
        .collect();
    if lines.len() > MOST_LINES {
        shown.push(format!("and {} more lines", lines.len() - MOST_LINES));
    }
    shown
}
