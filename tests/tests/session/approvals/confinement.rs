//! Tests the kernel's data about the standing worker and about the worker of an approved command.

use std::fs;
use std::net::TcpListener;

use ipc::rights::Network;
use protocol::approval::{ReviewDecision, ServerRequest, SessionScope};
use serde_json::json;
use tests::replies::{calls, done, shell};
use tests::session::{Beginning, FrontEnd};
use tests::tier;

use super::asking::{asks, command, decide, edit, for_session, told};

#[tokio::test]
async fn the_standing_worker_writes_nothing_before_while_and_after() {
    let tries = "for f in a.txt new.txt .git/config; do echo x >> $f; done 2>&1; grep -c . a.txt";
    for tier in tier::all() {
        let prefix = SessionScope::CommandPrefix(vec!["true".to_owned()]);
        let replies = [shell(tries), command("true"), shell(tries), edit(), shell(tries), done()];
        let mut front = FrontEnd::open_with(asks(tier), replies);
        front.prompt("go").await;
        decide(&mut front, for_session(prefix)).await;
        decide(&mut front, ReviewDecision::Approved).await;
        front.until("result").await;
        let told = told(&front.provider);
        let refused =
            told.matches("Permission denied").count() + told.matches("Read-only file system").count();
        assert!(refused >= 6, "{tier}: {told}");
        assert_eq!(front.world.read("a.txt"), "new\n", "{tier}");
        assert_eq!(fs::read_dir(front.world.project()).unwrap().count(), 1, "{tier}");
        front.end().await;
    }
}

#[tokio::test]
async fn an_approved_command_is_confined_and_its_right_is_gone_with_it() {
    for tier in tier::all() {
        let status =
            "grep -E '^(Seccomp|NoNewPrivs|CapEff):' /proc/self/status | tr -s '\\t' ' '; echo x > made.txt";
        let mut front =
            FrontEnd::open_with(asks(tier), [command(status), shell("echo y > made.txt"), done()]);
        front.prompt("go").await;
        decide(&mut front, ReviewDecision::Approved).await;
        let offered = decide(&mut front, ReviewDecision::DENIED).await;
        assert!(matches!(offered, ServerRequest::DeniedCommandApproval(_)), "{tier}: {offered:?}");
        front.until("result").await;
        let told = told(&front.provider);
        for line in ["NoNewPrivs: 1", "Seccomp: 2", "CapEff: 0000000000000000"] {
            assert!(told.contains(line), "{tier}: {line} in {told}");
        }
        assert_eq!(front.world.read("made.txt"), "x\n", "{tier}: the right is gone in the next call");
        assert!(told.contains("did not allow it"), "{tier}: {told}");
        front.end().await;
    }
}

#[tokio::test]
async fn a_command_that_reads_gets_the_network_and_no_right_to_write() {
    for tier in tier::all() {
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = server.local_addr().unwrap().port();
        let text = format!(
            "exec 3<>/dev/tcp/127.0.0.1/{port} && echo reached; echo x > a.txt; chmod 777 a.txt; true"
        );
        let call = json!({"command": text, "access": "read", "network": true});
        // The call declares that it needs the network. It needs an approval even though the network is on.
        let beginning = Beginning { net: Network::On, ..asks(tier) };
        let mut front = FrontEnd::open_with(beginning, [calls(&[("shell_exec", call)]), done()]);
        front.prompt("go").await;
        let request = decide(&mut front, ReviewDecision::Approved).await;
        let ServerRequest::ExecCommandApproval(params) = request else { panic!("{request:?}") };
        assert!(params.grant.is_empty() && params.grant_root.is_none(), "{params:?}");
        front.until("result").await;
        let told = told(&front.provider);
        assert!(told.contains("reached"), "{tier}: {told}");
        assert_eq!(front.world.read("a.txt"), "old\n", "{tier}");
        assert!(told.contains("changing permissions of"), "{tier}: {told}");
        front.end().await;
    }
}

#[tokio::test]
async fn the_network_alone_is_asked_for_as_such() {
    for tier in tier::all() {
        let call = json!({"command": "echo on", "network": true});
        let again = call.clone();
        let replies = [calls(&[("shell_exec", call)]), calls(&[("shell_exec", again)]), done()];
        let mut front = FrontEnd::open_with(asks(tier), replies);
        front.prompt("go").await;
        let request = decide(&mut front, for_session(SessionScope::Network)).await;
        assert!(matches!(request, ServerRequest::NetworkApproval(_)), "{request:?}");
        // The call is not interrupted by its own approval; the next one needs none.
        front.until("call 1 completed").await;
        front.until("rights changed").await;
        front.until("call 2 completed").await;
        front.until("result").await;
        let seen = front.end().await;
        assert_eq!(seen.matches("asks 1:").count() + seen.matches("asks 2:").count(), 1, "{tier}: {seen}");
    }
}
