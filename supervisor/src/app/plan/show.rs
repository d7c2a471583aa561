//! `bailiwick plan show`: the text of a plan, and what its execution may do.

use std::io::{self, Write};

use serde_json::json;

use super::access::access;
use super::{find, told};
use crate::args::ShowArgs;
use crate::directories::Directories;
use crate::exit::Exit;
use crate::messages::harmless;
use crate::opening::Refusal;
use crate::plans::{KeptPlan, Store};

pub(super) fn run(store: &Store, directories: &Directories, args: &ShowArgs) -> Result<Exit, Refusal> {
    let kept = find(store, &args.plan)?;
    let printed = if args.json { print_json(&kept) } else { print(&whole(&kept, directories)) };
    printed.map_err(Refusal::internal)?;
    Ok(Exit::Done)
}

fn print(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    write!(out, "{}", harmless(text))?;
    out.flush()
}

/// The text, then the account of the supervisor, which no text of a plan can come behind.
pub(super) fn whole(kept: &KeptPlan, directories: &Directories) -> String {
    let newline = if kept.text.ends_with('\n') { "" } else { "\n" };
    let account = match kept.read() {
        Ok(document) => access(kept, document.plan(), directories),
        Err(error) => format!("it cannot be executed: {error}\n"),
    };
    format!(
        "{}{newline}{RULE}\nplan    {}\nfile    {}\nfate    {}\nsha256  {}\n{account}",
        kept.text,
        kept.id,
        kept.path.display(),
        told(kept),
        kept.digest
    )
}

/// The end of the plan's text: nothing behind it is a part of the plan.
const RULE: &str = "──────── the plan ends here; what follows says Bailiwick ────────";

fn print_json(kept: &KeptPlan) -> io::Result<()> {
    let plan = kept.read();
    let value = json!({
        "id": kept.id,
        "path": kept.path,
        "digest": kept.digest,
        "fate": kept.fate(),
        "record": kept.record,
        "plan": plan.as_ref().ok().map(|document| document.plan().clone()),
        "error": plan.err(),
        "markdown": kept.text,
    });
    let mut out = io::stdout().lock();
    serde_json::to_writer_pretty(&mut out, &value)?;
    writeln!(out)?;
    out.flush()
}
