use ipc::rights::{Network, Reach, RightsChange};
use protocol::frontend::{AgentAction, UserActionKind};
use serde_json::json;

use super::Client;

#[tokio::test]
async fn a_right_is_granted_and_withdrawn_without_a_question() {
    let mut client = Client::greeted().await;
    let mut core = client.converse().await;
    let reach = Reach { lan: true, ..Reach::default() };
    for (right, change) in [
        (json!({"write": "out"}), RightsChange::AddWrite { path: "out".into() }),
        (json!({"socket": "/run/s"}), RightsChange::AddSocket { path: "/run/s".into() }),
        (json!({"network": {}}), RightsChange::Network { net: Network::On, reach: None }),
        (
            json!({"network": {"reach": reach}}),
            RightsChange::Network { net: Network::On, reach: Some(reach) },
        ),
    ] {
        let granted = client.call(5, "grant", json!({"conversation_id": "c1", "right": right})).await;
        assert_eq!(granted["result"], json!({}));
        assert_eq!(core.wanted().await, (None, UserActionKind::Agent(AgentAction::SetRights { change })));
    }
    for (right, change) in [
        (json!({"write": "out"}), RightsChange::RemoveWrite { path: "out".into() }),
        (json!({"socket": "/run/s"}), RightsChange::RemoveSocket { path: "/run/s".into() }),
        (json!({"network": {}}), RightsChange::Network { net: Network::Off, reach: None }),
    ] {
        client.call(5, "withdraw", json!({"conversation_id": "c1", "agent": "1.2", "right": right})).await;
        assert_eq!(
            core.wanted().await,
            (Some("1.2".into()), UserActionKind::Agent(AgentAction::SetRights { change }))
        );
    }
    for right in
        [json!({"write": 7}), json!({"network": "off"}), json!({"write": "a", "network": {}}), json!({})]
    {
        let params = json!({"conversation_id": "c1", "right": right});
        assert_eq!(client.word("grant", params).await, "invalid_params", "{right}");
    }
}
