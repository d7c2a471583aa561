//! `bailiwick plan list`: a line for each plan.

use std::io::{self, Write};

use serde_json::json;

use super::progress::PlanProgress;
use super::{counted, project, told};
use crate::engine::opening::Refusal;
use crate::journal::plans::{KeptPlan, Store};
use crate::process::directories::Directories;
use crate::process::exit::Exit;
use crate::process::messages::harmless;
use crate::settings::args::ListArgs;

pub(super) fn run(store: &Store, directories: &Directories, args: &ListArgs) -> Result<Exit, Refusal> {
    let project = project(&args.directory)?;
    let mut plans = store.all()?;
    plans.retain(|kept| args.all || kept.project() == Some(project.as_path()));
    // The newest plan comes last, next to the prompt.
    plans.reverse();
    print(&plans, directories, args).map_err(Refusal::internal)?;
    Ok(Exit::Done)
}

fn print(plans: &[KeptPlan], directories: &Directories, args: &ListArgs) -> io::Result<()> {
    let mut out = io::stdout().lock();
    for kept in plans {
        if args.json {
            serde_json::to_writer(&mut out, &of(kept, directories))?;
            writeln!(out)?;
        } else {
            write!(out, "{}", harmless(&line(kept, directories, args.all)))?;
        }
    }
    if plans.is_empty() && !args.json {
        writeln!(io::stderr(), "no plans; bailiwick exec --activity plan \"…\" makes one")?;
    }
    out.flush()
}

fn line(kept: &KeptPlan, directories: &Directories, with_project: bool) -> String {
    let title = match kept.read() {
        Ok(document) => {
            let plan = document.plan();
            let steps = u32::try_from(plan.steps.len()).unwrap_or(u32::MAX);
            format!("{} ({})", plan.title, counted(steps, "step", "steps"))
        }
        Err(error) => format!("this plan cannot be read: {error}"),
    };
    let line = format!("{}  {title}\n    {}\n", kept.id, told(kept, directories));
    match kept.project() {
        Some(project) if with_project => format!("{line}    {}\n", project.display()),
        _ => line,
    }
}

/// Returns a plan as JSON, without its text.
fn of(kept: &KeptPlan, directories: &Directories) -> serde_json::Value {
    let plan = kept.read();
    json!({
        "id": kept.id,
        "path": kept.path,
        "digest": kept.digest,
        "fate": kept.fate(),
        "record": kept.record,
        "done": PlanProgress::of(kept, directories)
            .ok()
            .flatten()
            .map(|progress| progress.done)
            .or_else(|| kept.record.as_ref()?.done),
        "title": plan.as_ref().ok().map(|document| document.plan().title.clone()),
        "steps": plan.as_ref().ok().map(|document| document.plan().steps.len()),
        "error": plan.err(),
    })
}
