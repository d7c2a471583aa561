//! `bailiwick plan edit`: opens a copy of a plan in the editor, repeatedly until it is valid or the person stops.

use std::io::{self, BufRead, Write};

use gate::plan::Document;

use super::find;
use crate::engine::opening::Refusal;
use crate::journal::plans::{KeptPlan, PlanFate, Store};
use crate::process::editor;
use crate::process::exit::Exit;
use crate::process::messages::{complain, say};
use crate::settings::args::OnePlan;
use crate::settings::config::can_ask;

pub(super) fn run(store: &Store, args: &OnePlan) -> Result<Exit, Refusal> {
    let kept = find(store, args)?;
    let Some(text) = edited(&kept)? else {
        say(&format!("{} is unchanged", kept.id));
        return Ok(Exit::Done);
    };
    // If another process has changed the plan meanwhile, neither text is lost.
    if store.find(Some(&kept.id), &args.directory)?.digest != kept.digest {
        return Err(lost(
            &text,
            "another program changed the plan while you edited it: your edit was not saved",
        ));
    }
    store.replace(&kept.path, &text)?;
    let fate = if kept.fate() == PlanFate::Approved { "; the plan needs a new approval" } else { "" };
    say(&format!("{} is saved{fate}", kept.id));
    Ok(Exit::Done)
}

/// Returns the edited text; `None` if it is unchanged.
fn edited(kept: &KeptPlan) -> Result<Option<String>, Refusal> {
    let mut text = kept.text.clone();
    loop {
        let Some(new) = editor::edit(editor::Edits::Plan, &text).map_err(Refusal::usage)? else {
            return Ok((text != kept.text).then_some(text).filter(|text| Document::parse(text).is_ok()));
        };
        match Document::parse(&new) {
            Ok(_) => return Ok(Some(new).filter(|new| *new != kept.text)),
            Err(error) => complain(&format!("this text is not a valid plan: {error}")),
        }
        if !can_ask() || !again().map_err(Refusal::internal)? {
            return Err(lost(&new, "the plan is unchanged"));
        }
        text = new;
    }
}

fn again() -> io::Result<bool> {
    write!(io::stderr(), "Edit the text again? [Y/n] ")?;
    let mut answer = String::new();
    let read = io::stdin().lock().read_line(&mut answer)?;
    Ok(read > 0 && !matches!(answer.trim(), "n" | "N" | "no"))
}

/// Returns an error that names the file in which the person's text was saved.
fn lost(text: &str, why: &str) -> Refusal {
    let kept = tempfile::Builder::new().prefix("bailiwick-plan-").suffix(".md").tempfile();
    let kept = kept.and_then(|mut file| {
        file.write_all(text.as_bytes())?;
        Ok(file.keep()?.1)
    });
    match kept {
        Ok(path) => Refusal::usage(format!("{why}; your text is in {}", path.display())),
        Err(error) => Refusal::usage(format!("{why}; your text could not be saved: {error}")),
    }
}
