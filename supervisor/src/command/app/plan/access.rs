//! The access of a plan's execution, in the form that the person reads before an approval.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use protocol::plan::{OnFailure, PlaceToCreate, Plan, PlanRights};

use crate::engine::opening::places_to_create;
use crate::journal::plans::{KeptPlan, PlanFate};
use crate::process::directories::Directories;

/// Returns the access in words: directories as absolute paths, the network, and every acceptance command. For an
/// approved plan, the directories to create are those of the approval, and otherwise those that are missing now.
pub(super) fn access(kept: &KeptPlan, plan: &Plan, directories: &Directories) -> String {
    let is_approved = matches!(kept.fate(), PlanFate::Approved | PlanFate::Unfinished);
    let shown = kept.record.as_ref().filter(|_| is_approved).map(|record| record.to_create.clone());
    let to_create = match (shown, kept.project()) {
        (Some(shown), _) => shown,
        (None, Some(project)) => match places_to_create(plan, project) {
            Ok(to_create) => to_create,
            Err(fault) => return format!("this plan cannot be executed: {fault}\n"),
        },
        (None, None) => Vec::new(),
    };
    account(kept, plan, &to_create, directories)
}

/// Returns the access of a plan's execution in words. `to_create` lists the directories that will be created.
pub(super) fn account(
    kept: &KeptPlan,
    plan: &Plan,
    to_create: &[PlaceToCreate],
    directories: &Directories,
) -> String {
    let mut text = String::from("access of the plan's execution:\n");
    let project = kept.project().unwrap_or(Path::new("the project"));
    let caches = directories.cache.join("projects");
    for place in places(project, plan, to_create, &caches) {
        // A String takes every write.
        let _ = writeln!(text, "  write    {place}");
    }
    let network = plan.rights.as_ref().is_some_and(|rights| rights.network);
    let network = if network { "on (needs --net on)" } else { "off" };
    let _ = writeln!(text, "  network  {network}");
    for (kind, names) in listed(plan) {
        for name in names {
            let _ = writeln!(
                text,
                "  calls    {kind} {name} (needs --mcp, and flags that allow the server's access)"
            );
        }
    }
    let _ = writeln!(text, "  failure  {}", failure(plan.on_failure));
    text.push_str("  lasts    until the plan ends; no further questions\n");
    text.push_str(if plan.commands().next().is_some() {
        "commands that will run without asking:\n"
    } else {
        "commands that will run without asking: none\n"
    });
    let mut last = 0;
    for (step, command) in plan.commands() {
        if step != last {
            let _ = writeln!(text, "  step {step}");
        }
        last = step;
        for line in command.lines() {
            let _ = writeln!(text, "    {line}");
        }
    }
    text
}

/// Returns two lists, each with its name in words: the MCP servers and the tools that a plan names.
fn listed(plan: &Plan) -> [(&'static str, &[String]); 2] {
    let rights = plan.rights.as_ref();
    let names = |of: fn(&PlanRights) -> &Vec<String>| rights.map_or(&[][..], |rights| of(rights));
    [
        ("all tools of the MCP server", names(|rights| &rights.servers)),
        ("the tool", names(|rights| &rights.tools)),
    ]
}

/// Returns the directories that the execution may write. A note before the path marks one outside of the project.
fn places(project: &Path, plan: &Plan, to_create: &[PlaceToCreate], caches: &Path) -> Vec<String> {
    let roots = plan.rights.as_ref().map_or(&[][..], |rights| &rights.write);
    if roots.is_empty() {
        return vec![
            format!("{} (the project)", project.display()),
            format!("the package caches of this project, below {}", caches.display()),
        ];
    }
    let place = |root: &String| {
        let path: PathBuf = project.join(root).components().collect();
        let created = to_create.iter().find(|place| place.path.as_path() == path);
        let path = created.map_or(path.as_path(), |place| place.directory.as_path());
        let why = created.map(|place| format!(" (to create {})", place.path)).unwrap_or_default();
        if path.starts_with(project) {
            format!("{}{why}", path.display())
        } else {
            format!("OUTSIDE THE PROJECT {0}{why} (needs --write {0})", path.display())
        }
    };
    roots.iter().map(place).collect()
}

const fn failure(on_failure: Option<OnFailure>) -> &'static str {
    match on_failure {
        Some(OnFailure::Stop) => "a failed step ends the execution",
        Some(OnFailure::Retry) => "a failed step is retried a few times",
        Some(OnFailure::Replan) => "after a failed step the planner revises the plan, for your approval",
        None => "after a failed step, plan.on_failure in the settings decides",
    }
}
