//! Exact action of a tool call, prepared for an approval: compared with that call, hashed, converted for display.

use std::sync::Arc;

use ipc::effect::{Effect, EffectError, Exec, FileEffect, Part, Patch};
use ipc::path::WirePath;
use ipc::text::hexadecimal;
use ipc::tool::{ShellExec, ToolCall};
use protocol::approval::FileChanges;
use sha2::{Digest, Sha256};

use super::diff::file_changes;
use crate::judgement::{Place, StandingRights, plain};
use crate::part::PatchHunks;

/// Permission bits for execution, which a diff does not show.
const EXECUTABLE: u32 = 0o111;

/// Exact action of a tool call (a change of files, or a command), with its digest and its form for display.
#[derive(Clone, Debug)]
pub struct Proposal {
    pub effect: Arc<Effect>,
    /// SHA-256 of the action, in hexadecimal.
    pub digest: String,
    /// Change of each file for display; empty for a command.
    pub changes: FileChanges,
    /// Paths that must be writable for the action.
    pub places: Vec<Place>,
    /// Hunks of the change; `None` if only the whole change can be approved.
    pub(super) hunks: Option<PatchHunks>,
}

#[derive(Debug, thiserror::Error)]
pub enum ProposalError {
    #[error("the prepared change cannot be shown: {0}")]
    Effect(#[from] EffectError),
    /// The prepared change differs from the tool call: the worker that prepared it is faulty or compromised.
    #[error("the prepared change does not match the call: {0}")]
    Misfit(&'static str),
    /// The working directory contains `..`, which leads to another directory if a link comes before it.
    #[error("the working directory {0} has `..` in it; name the directory without `..`")]
    Unplain(WirePath),
}

impl Proposal {
    /// Returns the proposal of a change of files that a worker prepared. Fails if the change differs from the call.
    ///
    /// `place` returns the path to make writable for a file, if any. Comparing a file's texts takes up to two seconds.
    pub fn of_patch(
        call: &ToolCall,
        effect: Effect,
        place: impl Fn(&FileEffect) -> Option<WirePath>,
    ) -> Result<Self, ProposalError> {
        let Effect::Patch(patch) = &effect else {
            return Err(ProposalError::Misfit("the change contains no file"));
        };
        check(call, patch)?;
        let places = patch.files.iter();
        let places = places.map(|file| Place { path: file.path.clone(), grant: place(file) }).collect();
        let (digest, (changes, hunks)) = (effect_digest(&effect)?, file_changes(patch));
        Ok(Self { effect: Arc::new(effect), digest, changes, places, hunks })
    }

    /// Returns the proposal of a command, directly from the model's call. Fails if the working directory contains `..`.
    pub fn of_command(standing: &StandingRights, call: &ShellExec) -> Result<Self, ProposalError> {
        let limit = standing.rights().limits.timeout_ms;
        let project = standing.project().as_path();
        let cwd = call.cwd.as_ref().map_or_else(|| project.to_owned(), |cwd| project.join(cwd.as_path()));
        let cwd = plain(&cwd).ok_or_else(|| ProposalError::Unplain((&cwd).into()))?;
        let effect = Effect::Exec(Exec {
            argv: ["bash", "-c", &call.command].map(WirePath::from).into(),
            cwd: cwd.into(),
            environment: Vec::new(),
            access: call.access,
            network: call.network.clone(),
            timeout_ms: call.timeout_ms.unwrap_or(limit).min(limit),
        });
        let (digest, changes) = (effect_digest(&effect)?, FileChanges::default());
        Ok(Self { effect: Arc::new(effect), digest, changes, places: Vec::new(), hunks: None })
    }
}

/// Fails if a prepared change differs from its call. A compromised worker can prepare any change.
fn check(call: &ToolCall, patch: &Patch) -> Result<(), ProposalError> {
    let misfit = |why| Err(ProposalError::Misfit(why));
    let [FileEffect { path, old, new: Some(new), .. }] = patch.files.as_slice() else {
        return misfit("the change is not a change of exactly one file");
    };
    let bytes = path.as_bytes();
    if bytes.first() != Some(&b'/') || bytes.contains(&0) {
        return misfit("the path of the changed file is not absolute");
    }
    if new.mode & !0o777 != 0 || old.as_ref().is_some_and(|old| old.mode != new.mode) {
        return misfit("the change alters permission bits");
    }
    if old.is_none() && new.mode & EXECUTABLE != 0 {
        return misfit("the change creates an executable file");
    }
    match call {
        ToolCall::WriteFile(call) if call.content.as_bytes() == new.bytes => Ok(()),
        ToolCall::WriteFile(_) => misfit("the change writes another content than the call"),
        ToolCall::EditFile(_) if old.is_some() => Ok(()),
        ToolCall::EditFile(_) => misfit("the change edits a file that does not exist"),
        _ => misfit("the called tool does not change files"),
    }
}

/// Returns the SHA-256 of an action's encoded parts, in hexadecimal.
pub fn effect_digest(effect: &Effect) -> Result<String, EffectError> {
    let hash = |mut hash: Sha256, part: Part| {
        hash.update(part.bytes);
        hash
    };
    Ok(hexadecimal(&effect.to_parts()?.into_iter().fold(Sha256::new(), hash).finalize()))
}
