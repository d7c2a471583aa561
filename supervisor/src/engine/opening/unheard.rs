use ipc::id::AgentId;
use protocol::approval::ReviewDecision;
use protocol::frontend::{Unread, UserAction};
use protocol::rpc::RequestId;

/// Returns a note about an answer or message that is too late for the session's log; `None` for other actions.
pub(crate) fn unheard(action: &UserAction) -> Option<String> {
    let UserAction { conversation_id, agent, kind } = action;
    let agent = agent.clone().unwrap_or_else(AgentId::root);
    Some(match kind.unread()? {
        Unread::Answer(id, answer) => {
            let request = RequestId::of_approval(conversation_id, &agent, id);
            let decision = answer.decision().map_or("none", ReviewDecision::as_str);
            format!("ignored the answer to {request}: the session is over ({decision})")
        }
        Unread::Message => {
            format!("a message to agent {agent} is lost, since session {conversation_id} is over")
        }
    })
}

#[cfg(test)]
mod tests {
    use ipc::id::ApprovalId;
    use protocol::approval::{ApprovalAnswer, ExecCommandApprovalResponse};
    use protocol::frontend::{AgentAction, UserActionKind};

    use super::*;

    #[test]
    fn an_answer_or_a_message_to_a_session_that_is_over_is_told_of() {
        let told =
            |kind| unheard(&UserAction { conversation_id: "c".into(), agent: Some("1.2".into()), kind });
        let approved = ExecCommandApprovalResponse { decision: ReviewDecision::Approved, digest: None };
        let answer = UserActionKind::Answer { id: ApprovalId(3), answer: ApprovalAnswer::Exec(approved) };
        insta::assert_snapshot!(told(answer).unwrap(), @r#"ignored the answer to "c:1.2:3": the session is over (approved)"#);
        let message = UserActionKind::Agent(AgentAction::Prompt { text: "go".to_owned(), images: vec![] });
        insta::assert_snapshot!(told(message).unwrap(), @"a message to agent 1.2 is lost, since session c is over");
        assert_eq!(told(UserActionKind::Agent(AgentAction::Quit)), None);
    }
}
