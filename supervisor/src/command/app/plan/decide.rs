//! `bailiwick plan approve` and `reject`: the person's decision about exactly the text that was shown.

use std::io::{self, Write};

use super::access::account;
use super::show::with_account;
use super::{becomes, find};
use crate::engine::opening::{Refusal, places_to_create};
use crate::journal::plans::{PlanFate, Store};
use crate::process::directories::Directories;
use crate::process::exit::Exit;
use crate::process::messages::{harmless, say};
use crate::settings::args::{ApproveArgs, OnePlan};
use crate::settings::config::{can_ask, yes};

pub(super) fn approve(store: &Store, directories: &Directories, args: &ApproveArgs) -> Result<Exit, Refusal> {
    let kept = find(store, &args.plan)?;
    let document =
        kept.read().map_err(|error| Refusal::usage(format!("the plan cannot be approved: {error}")))?;
    let plan = document.plan();
    let to_create = kept.project().map(|project| places_to_create(plan, project)).transpose();
    let to_create = to_create.map_err(|fault| {
        Refusal::usage(format!("{0} cannot be approved: {fault}\n  hint: bailiwick plan edit {0}", kept.id))
    })?;
    let to_create = to_create.unwrap_or_default();
    let is_approved = match &args.digest {
        Some(digest) if *digest == kept.digest => true,
        Some(digest) => {
            return Err(Refusal::usage(format!(
                "the text of {} has another digest: got --digest {digest}, expected {}\n  hint: bailiwick plan show {}",
                kept.id, kept.digest, kept.id
            )));
        }
        None if can_ask() => {
            let account = account(&kept, plan, &to_create, directories);
            asked(&with_account(&kept, directories, &account)).map_err(Refusal::internal)?
        }
        None => {
            return Err(Refusal::usage(format!(
                "cannot ask for your approval of {}: standard input or standard error is not a terminal\n  hint: bailiwick \
                 plan approve {} --digest SHA256 approves only the text with this SHA-256; bailiwick plan show \
                 prints both",
                kept.id, kept.id
            )));
        }
    };
    if !is_approved {
        say("not approved");
        return Ok(Exit::Denied);
    }
    becomes(store, &kept, PlanFate::Approved, to_create)?;
    say(&format!("{} is approved; bailiwick plan execute {} executes it", kept.id, kept.id));
    Ok(Exit::Done)
}

pub(super) fn reject(store: &Store, args: &OnePlan) -> Result<Exit, Refusal> {
    let kept = find(store, args)?;
    becomes(store, &kept, PlanFate::Rejected, Vec::new())?;
    say(&format!("{} is rejected; bailiwick plan approve {} reverses that", kept.id, kept.id));
    Ok(Exit::Done)
}

/// Shows the text and asks the person. Returns true only if they answer yes.
fn asked(text: &str) -> io::Result<bool> {
    let mut out = io::stderr().lock();
    write!(out, "{}", harmless(text))?;
    drop(out);
    yes("Approve exactly this?")
}
