//! An effect as it is proposed: checked against the call that it is for, digested, and rendered for people.

use std::fmt::Write;
use std::sync::Arc;

use ipc::effect::{Effect, EffectError, Exec, FileEffect, Part, Patch};
use ipc::path::WirePath;
use ipc::tool::{ShellExec, ToolCall};
use protocol::approval::FileChanges;
use sha2::{Digest, Sha256};

use super::diff::file_changes;
use crate::judgement::{Place, StandingRights, plain};

/// The bits of a mode that say who may execute a file, and what else a diff does not show.
const EXECUTABLE: u32 = 0o111;

/// An exact effect, and what a person is shown of it.
#[derive(Clone, Debug)]
pub struct Proposal {
    /// The effect.
    pub effect: Arc<Effect>,
    /// SHA-256 of it, in hexadecimal.
    pub digest: String,
    /// What becomes of each file, of a change of files.
    pub changes: FileChanges,
    /// What has to be writable for it.
    pub places: Vec<Place>,
}

/// Why an effect cannot be proposed.
#[derive(Debug, thiserror::Error)]
pub enum ProposalError {
    /// It is too large, or has no encoding.
    #[error("the effect cannot be shown: {0}")]
    Effect(#[from] EffectError),
    /// It is none of the call that it is for: the worker that prepared it does not do as it is told.
    #[error("the prepared effect does not fit the call: {0}")]
    Misfit(&'static str),
    /// What lies behind `..` is told by links alone: it would be shown as one place and be another.
    #[error("the working directory {0} has `..` in it; name the directory itself")]
    Unplain(WirePath),
}

impl Proposal {
    /// The proposal of a change of files that a worker prepared for a call; `place` says what has to be writable for a file.
    ///
    /// Takes as long as it takes to compare the files' lines.
    pub fn of_patch(
        call: &ToolCall,
        effect: Effect,
        place: impl Fn(&FileEffect) -> Option<WirePath>,
    ) -> Result<Self, ProposalError> {
        let Effect::Patch(patch) = &effect else {
            return Err(ProposalError::Misfit("it changes no file"));
        };
        check(call, patch)?;
        let places = patch.files.iter();
        let places = places.map(|file| Place { path: file.path.clone(), grant: place(file) }).collect();
        let (digest, changes) = (effect_digest(&effect)?, file_changes(patch));
        Ok(Self { effect: Arc::new(effect), digest, changes, places })
    }

    /// The proposal of a command, which needs no worker: what is asked for is what the model wrote.
    pub fn of_command(standing: &StandingRights, call: &ShellExec) -> Result<Self, ProposalError> {
        let limit = standing.rights.limits.timeout_ms;
        let project = standing.project.as_path();
        let cwd = call.cwd.as_ref().map_or_else(|| project.to_owned(), |cwd| project.join(cwd.as_path()));
        let cwd = plain(&cwd).ok_or_else(|| ProposalError::Unplain((&cwd).into()))?;
        let effect = Effect::Exec(Exec {
            argv: ["bash", "-c", &call.command].map(WirePath::from).into(),
            cwd: cwd.into(),
            environment: Vec::new(),
            access: call.access,
            network: call.network,
            timeout_ms: call.timeout_ms.unwrap_or(limit).min(limit),
        });
        let (digest, changes) = (effect_digest(&effect)?, FileChanges::default());
        Ok(Self { effect: Arc::new(effect), digest, changes, places: Vec::new() })
    }
}

/// A worker may have been taken over: what it says that a call does is shown, and what is not shown is refused.
fn check(call: &ToolCall, patch: &Patch) -> Result<(), ProposalError> {
    let misfit = |why| Err(ProposalError::Misfit(why));
    let [FileEffect { path, old, new: Some(new), .. }] = patch.files.as_slice() else {
        return misfit("it changes another number of files than one");
    };
    let bytes = path.as_bytes();
    if bytes.first() != Some(&b'/') || bytes.contains(&0) {
        return misfit("its path is not absolute");
    }
    if new.mode & !0o777 != 0 || old.as_ref().is_some_and(|old| old.mode != new.mode) {
        return misfit("it changes permission bits");
    }
    if old.is_none() && new.mode & EXECUTABLE != 0 {
        return misfit("it makes a file that can be executed");
    }
    match call {
        ToolCall::WriteFile(call) if call.content.as_bytes() == new.bytes => Ok(()),
        ToolCall::WriteFile(_) => misfit("it writes something else"),
        ToolCall::EditFile(_) if old.is_some() => Ok(()),
        ToolCall::EditFile(_) => misfit("it edits a file that does not exist"),
        _ => misfit("the call changes no file"),
    }
}

/// SHA-256 of an effect, as its parts carry it, in hexadecimal.
pub fn effect_digest(effect: &Effect) -> Result<String, EffectError> {
    let hash = |mut hash: Sha256, part: Part| {
        hash.update(part.bytes);
        hash
    };
    Ok(hexadecimal(&effect.to_parts()?.into_iter().fold(Sha256::new(), hash).finalize()))
}

pub(super) fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(64), |mut text, byte| {
        // A String takes every write.
        let _ = write!(text, "{byte:02x}");
        text
    })
}
