mod agent_rights;
pub(in crate::core) mod alone;
mod answer;
mod any_conversation;
mod any_input;
mod approvals;
mod calls;
mod clear;
mod compaction;
mod forms;
mod hosts;
mod images;
mod in_part;
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
mod tasks;
mod together;
mod turn_access;
mod witness;

/// Tests that an agent is `Send`, because the driver moves it into a task of its own.
#[test]
fn agent_can_move_between_threads() {
    fn is_send<T: Send>() {}
    is_send::<super::Agent>();
}
