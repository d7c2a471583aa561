//! Effects of calls, prepared by the standing worker for approval. They are checked and rendered off the main loop.

use std::collections::HashMap;

use ipc::effect::{Assembler, Effect, FileEffect, Part};
use ipc::id::CallId;
use ipc::message::CallOutcome;
use ipc::path::WirePath;
use ipc::tool::ToolCall;
use tokio::task::JoinSet;

use agent::core::Input;
use boundary::policy::{place_to_grant, place_to_offer};
use gate::approval::Proposal;

#[derive(Default)]
pub(super) struct Preparations {
    open: HashMap<CallId, Preparation>,
    rendering: JoinSet<Input>,
}

struct Preparation {
    tool: ToolCall,
    assembler: Assembler,
    effect: Result<Option<Effect>, String>,
}

impl Preparations {
    pub(super) fn begin(&mut self, call: CallId, tool: ToolCall) {
        let (assembler, effect) = (Assembler::default(), Ok(None));
        self.open.insert(call, Preparation { tool, assembler, effect });
    }

    pub(super) fn take(&mut self, call: CallId, part: Part) {
        if let Some(Preparation { assembler, effect: effect @ Ok(None), .. }) = self.open.get_mut(&call) {
            let pushed = assembler.push(part);
            *effect = pushed.map_err(|error| format!("the data of the prepared change is invalid: {error}"));
        }
    }

    /// Finds the path that the user can be offered to grant, outside the main loop because a file system may be slow.
    pub(super) fn locate(&mut self, call: CallId, path: WirePath) {
        self.rendering.spawn(async move {
            let found = tokio::task::spawn_blocking(move || place_to_offer(path.as_path()));
            Input::Located { call, place: found.await.ok().flatten() }
        });
    }

    pub(super) fn forget(&mut self, call: CallId) {
        self.open.remove(&call);
    }

    /// Takes the outcome of a preparation. Returns an outcome that is no prepared effect; `None` for a prepared effect.
    pub(super) fn finish(&mut self, call: CallId, outcome: CallOutcome) -> Option<CallOutcome> {
        match (self.open.remove(&call), outcome) {
            (Some(preparation), CallOutcome::Prepared) => {
                self.rendering.spawn(render(call, preparation));
                None
            }
            (_, outcome) => Some(outcome),
        }
    }

    /// Returns the next prepared effect as an input for the core. Pends while there is none. Cancel safe.
    pub(super) async fn next(&mut self) -> Input {
        loop {
            match self.rendering.join_next().await {
                Some(Ok(input)) => return input,
                // Not expected: the parts that can panic are tasks of their own.
                Some(Err(error)) => tracing::error!(%error, "a preparation is lost"),
                None => return std::future::pending().await,
            }
        }
    }
}

async fn render(call: CallId, preparation: Preparation) -> Input {
    let Preparation { tool, effect, .. } = preparation;
    let proposed = match effect {
        Ok(Some(effect)) => propose(tool, effect).await,
        Ok(None) => Err("the worker prepared no change".to_owned()),
        Err(error) => Err(error),
    };
    match proposed {
        Ok(proposal) => Input::Prepared { call, proposal },
        Err(reason) => Input::NotPrepared { call, reason },
    }
}

async fn propose(tool: ToolCall, effect: Effect) -> Result<Proposal, String> {
    let rendered = tokio::task::spawn_blocking(move || {
        Proposal::of_patch(&tool, effect, place).map_err(|e| e.to_string())
    });
    rendered.await.unwrap_or_else(|error| Err(format!("the prepared change cannot be shown: {error}")))
}

fn place(file: &FileEffect) -> Option<WirePath> {
    place_to_grant(file.path.as_path(), file.old.is_some())
}
