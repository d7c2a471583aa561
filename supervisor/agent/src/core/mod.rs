//! The agent core: one agent's loop as a pure state machine.
//!
//! [`Agent::handle`] takes an [`Input`] and returns [`Effect`]s. The driver executes them in order. There is no I/O,
//! clock or randomness, so that every run can be replayed.
//!
//! The agent passes inputs to four machines that decide: `conversation`, `rights`, `turn` and `calls`. The fields of a
//! machine are private to its folder; machines exchange values. `turns` and `working` connect the machines.
//!
//! Invariants:
//! * a context is append-only: a context that is too long is replaced by a new one, which begins with a summary;
//! * every `tool_use` has exactly one result in the next user message, before anything else is sent;
//! * a tool call is logged before it is dispatched, and dispatched only from a complete reply;
//! * actions beyond the agent's access run only after an explicit approval of the exact effect;
//! * events of a request, call or timer that is not awaited are ignored.

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
