//! The agent core: one agent's loop as a pure state machine.
//!
//! [`Agent::handle`] takes an [`Input`] and answers with [`Effect`]s, which the driver carries out in order. There is
//! no I/O here, no clock and no randomness: what comes in decides what goes out, so that every run can be replayed.
//!
//! The agent routes; four machines decide: `conversation`, `rights`, `turn` and `calls`. The fields of a
//! machine are private to its folder, and what two of them need passes as a value. The other modules are values below
//! all machines, and the courses above them: `turns` and `working`.
//!
//! These always hold, whatever comes in and in whatever order:
//! * a context is append-only: what becomes too long is left for a new context that begins with a summary;
//! * every `tool_use` in it has exactly one result in the next user message (WIRE R4), before anything else is sent;
//! * a tool call is logged before it is dispatched, and dispatched only from a complete reply (WIRE S5);
//! * what the standing rights do not cover runs after an explicit approval, by exact effect, or not at all;
//! * events of a request, call or timer that is not waited for are ignored.

mod agent;
mod call;
mod calls;
mod change;
mod config;
mod conversation;
mod end;
mod model;
mod outbox;
mod phase;
mod plan;
mod port;
mod restore;
mod rights;
mod tariff;
mod turn;
mod turns;
mod working;

pub use agent::Agent;
pub use calls::account_of;
pub use config::{AgentConfig, TreeLimits};
pub use conversation::{Counted, standing};
pub use end::{EndReason, RunEnd};
pub use model::{Backoff, ModelChoice, RunLimits, Window};
pub use plan::{Approver, Execution, PLAN_FILE, PlanInFile, Planning, STEP_BEGINS, STEP_CHANGES, Step};
pub use port::{
    CallProgress, ContextItem, Effect, Estimate, FormAsked, HostAsked, HostQuestionId, Input, NewAgent,
    Purpose, ReadyWorker, RequestId, ServedOutcome, TimerId,
};
pub use turn::AnswerCheck;

#[cfg(test)]
mod tests;
