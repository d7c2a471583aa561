//! The state machine against recorded sequences.

mod agent_rights;
mod any_conversation;
mod any_input;
mod approvals;
mod calls;
mod clear;
mod compaction;
mod images;
mod interrupted;
mod left_out;
mod limits;
mod models;
mod narrowed;
mod offers;
mod offers_despite;
mod own_command;
mod plans;
mod replies;
mod rights;
mod scopes;
pub(in crate::core) mod script;
mod served;
mod stops;
mod together;
mod witness;

/// The driver owns the agent in a task of its own.
#[test]
fn agent_can_move_between_threads() {
    fn is_send<T: Send>() {}
    is_send::<super::Agent>();
}

/// An agent that goes on with these events: its conversation, and the numbers that it counts on from.
pub(crate) fn gone_on(events: &[ipc::event::SessionEvent]) -> String {
    let agent = super::Agent::new(script::config()).restored(events, false);
    let instructions: Vec<_> = agent.instructions.iter().map(|item| (&item.source, &item.text)).collect();
    let grants = format!("{:?}", agent.grants);
    format!(
        "{:?} {:?} {:?} {grants} {instructions:?}",
        agent.history.messages(),
        agent.last_call,
        agent.last_approval
    )
}
