//! `bailiwick plan show`: the text of a plan, and the access that its execution has.

use std::io::{self, Write};

use serde_json::json;

use super::access::access;
use super::{find, told};
use crate::engine::opening::Refusal;
use crate::journal::plans::{KeptPlan, Store};
use crate::process::directories::Directories;
use crate::process::exit::Exit;
use crate::process::messages::harmless;
use crate::settings::args::ShowArgs;

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

/// Returns the text of a plan, then the access. A bar before each line of the plan shows that it is not the access.
fn whole(kept: &KeptPlan, directories: &Directories) -> String {
    let account = match kept.read() {
        Ok(document) => access(kept, document.plan(), directories),
        Err(error) => format!("this plan cannot be executed: {error}\n"),
    };
    with_account(kept, directories, &account)
}

/// Returns the text of a plan, followed by `account`, the description of the access.
pub(super) fn with_account(kept: &KeptPlan, directories: &Directories, account: &str) -> String {
    format!(
        "{}{END}\nplan    {}\nfile    {}\nfate    {}\nsha256  {}\n{account}",
        ruled(&kept.text),
        kept.id,
        kept.path.display(),
        told(kept, directories),
        kept.digest
    )
}

/// Line after the text of a plan.
const END: &str = "──────── end of the plan; the rest is from Bailiwick ────────";

/// Bar before each line of a plan's text.
const RULE: &str = "│ ";

fn ruled(text: &str) -> String {
    harmless(text).lines().flat_map(|line| [RULE, line, "\n"]).collect()
}

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
