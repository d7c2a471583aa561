//! Tests a denied socket of another program: access is offered, allowed once or for the session, and withdrawn.

use std::io::Write;
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::thread;

use ipc::missing_right::MissingRight;
use ipc::rights::{Grant, RightsChange};
use protocol::approval::{ReviewDecision, ServerRequest, SessionScope};
use protocol::frontend::{AgentAction, UserActionKind};
use serde_json::json;
use tests::replies::{calls, done};
use tests::session::FrontEnd;
use tests::tier;

use super::asking::{answer, asks, fitting, for_session, logged, told};

fn client() -> String {
    let script =
        "import socket; s = socket.socket(socket.AF_UNIX); s.connect('../outside/s'); print(s.recv(9))";
    calls(&[("shell_exec", json!({ "command": format!("python3 -c \"{script}\"") }))])
}

/// Serves a word to every client until the test ends. Returns the socket's path.
fn serve(front: &FrontEnd) -> PathBuf {
    let place = front.world.project().parent().unwrap().join("outside");
    std::fs::create_dir_all(&place).unwrap();
    let socket = place.join("s");
    let listener = UnixListener::bind(&socket).unwrap();
    thread::spawn(move || {
        for client in listener.incoming() {
            // The client may have disconnected already.
            let _ = client.unwrap().write_all(b"served");
        }
    });
    socket
}

#[tokio::test]
async fn a_denied_socket_is_asked_about_until_it_is_a_right_of_the_session() {
    for tier in tier::all() {
        let mut front = FrontEnd::open_with(asks(tier), [client(), client(), client(), done()]);
        let socket = serve(&front);
        front.prompt("go").await;
        for decision in [ReviewDecision::Approved, for_session(SessionScope::Socket)] {
            let (id, request) = front.asked().await;
            let ServerRequest::DeniedCommandApproval(params) = &request else { panic!("{request:?}") };
            assert_eq!(params.grant, Grant { sockets: vec![(&socket).into()], ..Grant::default() }, "{tier}");
            let missing = MissingRight::Socket { path: (&socket).into() };
            assert_eq!(params.denial.missing_right.value(), Some(&missing), "{tier}");
            answer(&front, id, fitting(&request, decision)).await;
        }
        front.until("result").await;
        assert_eq!(told(&front.provider).matches("b'served'").count(), 3, "{tier}");
        assert_eq!(logged(&front, "approval_requested").len(), 2, "{tier}: the third has the right");
        assert_eq!(logged(&front, "rights_changed").len(), 1, "{tier}");
        front.end().await;
    }
}

#[tokio::test]
async fn a_typed_socket_is_a_right_until_it_is_taken_back() {
    for (tier, is_taken_back) in tier::all().into_iter().flat_map(|tier| [(tier, false), (tier, true)]) {
        let mut front = FrontEnd::open_with(asks(tier), [client(), done()]);
        let socket = serve(&front);
        let set = |change| UserActionKind::Agent(AgentAction::SetRights { change });
        front.until("worker 1 started").await;
        for (path, why) in [("../outside", "is not a unix socket"), ("../outside/none", "does not exist")] {
            front.act(set(RightsChange::AddSocket { path: path.into() })).await;
            front.until(why).await;
        }
        front.act(set(RightsChange::AddSocket { path: (&socket).into() })).await;
        front.until("worker 2 started").await;
        if is_taken_back {
            front.act(set(RightsChange::RemoveSocket { path: (&socket).into() })).await;
            front.until("worker 3 started").await;
        }
        front.prompt("go").await;
        if is_taken_back {
            let (id, request) = front.asked().await;
            answer(&front, id, fitting(&request, ReviewDecision::DENIED)).await;
        }
        front.until("result").await;
        let served = told(&front.provider).contains("b'served'");
        assert_eq!(served, !is_taken_back, "{tier}");
        front.end().await;
    }
}
