//! Tests denials while no call of the agent runs. Such a denial is an event of the agent, and belongs to no call.

use std::fs;
use std::io::Write;
use std::process::Command;

use ipc::confinement::Tier;
use model::replay::ReplayServer;
use nix::sys::stat::Mode;
use nix::unistd::mkfifo;
use protocol::frontend::{AgentAction, UserActionKind};
use serde_json::Value;
use supervisor::engine::driver::Turns;
use tests::programs::worker_with_process;
use tests::replies::{calls, done, model_of};
use tests::session::{Beginning, FrontEnd};
use tests::tier;
use tests::world::{KEY, tool_results};
use tests::{Finished, Programs, User, World};

use crate::denials::told::command;

/// Command that connects to an address for each line in a pipe. `read` may fail if the writing process has not yet
/// closed the pipe.
const CONNECT_WHEN_TOLD: &str = "while :; do read -r to < go && exec 3<>/dev/tcp/\"$to\"/9; done";

const CONNECT_AT_ONCE: &str = "exec 3<>/dev/tcp/192.0.2.7/9";

/// Starts a session whose worker leaves a bash program running. That program connects on request.
fn begin(tier: Tier, replies: impl IntoIterator<Item = String>) -> FrontEnd {
    let beginning = Beginning {
        tier: tier::choice(tier),
        beside: Some(CONNECT_WHEN_TOLD),
        turns: Turns::Many,
        ..Beginning::default()
    };
    let front = FrontEnd::open_with(beginning, replies);
    mkfifo(&front.world.project().join("go"), Mode::S_IRWXU).unwrap();
    front
}

/// Makes the program connect to `to`, and waits until the program has read the request.
async fn connect(front: &FrontEnd, to: &'static str) {
    let go = front.world.project().join("go");
    let written = tokio::task::spawn_blocking(move || writeln!(fs::File::create(go).unwrap(), "{to}"));
    written.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_process_that_outlived_its_call_is_told_of_when_it_is_refused_and_with_the_next_result() {
    for tier in tier::all() {
        let replies = [
            calls(&[command("true")]),
            done(),
            calls(&[command("echo fine")]),
            done(),
            calls(&[command("echo fine")]),
            done(),
        ];
        let mut front = begin(tier, replies);
        front.prompt("one").await;
        front.until("turn done").await;
        // No call runs whose result could report the denial, so an event of its own reports it.
        connect(&front, "192.0.2.7").await;
        front.until("beside the calls").await;
        let told = front.seen().last().unwrap().clone();
        assert!(told.contains("reach 192.0.2.7:9 (tried by "), "{tier}: {told}");
        assert!(told.contains("the user can allow it with --net on"), "{tier}: {told}");
        // An equal denial is reported once.
        connect(&front, "192.0.2.8").await;
        for turn in ["two", "three"] {
            front.prompt(turn).await;
            front.until("turn done").await;
        }
        front.act(UserActionKind::Agent(AgentAction::Quit)).await;
        let provider = std::sync::Arc::clone(&front.provider);
        let seen = front.end().await;
        assert_eq!(seen.matches("beside the calls").count(), 1, "{tier}: {seen}");
        assert_eq!(seen.matches("denied:").count(), 0, "{tier}: {seen}");
        assert_eq!(seen.matches(" completed").count(), 3, "{tier}: {seen}");
        let bodies = format!("{:?}", provider.requests().last().unwrap());
        assert_eq!(bodies.matches("Not caused by this call").count(), 1, "{tier}: {bodies}");
    }
}

/// Returns `bailiwick` with a worker that leaves a process running.
fn bailiwick(world: &World, server: &ReplayServer, beside: &str, more: &[&str]) -> Command {
    let place = world.root().join("programs");
    fs::create_dir(&place).unwrap();
    for name in ["bailiwick", "sandbox-exec"] {
        let (from, to) = (Programs::get().path(name), place.join(name));
        fs::hard_link(&from, &to).or_else(|_| fs::copy(&from, &to).map(drop)).unwrap();
    }
    worker_with_process(&place, beside);
    let mut command = world.command(place.join("bailiwick"));
    command.args(world.task(&server.base_url(), more).get_args()).env("ANTHROPIC_API_KEY", KEY);
    command
}

#[test]
fn it_is_in_the_stream_in_the_text_in_the_log_and_in_the_audit() {
    for tier in tier::all() {
        for output in ["stream-json", "text"] {
            let world = World::new(User::Myself).in_tier(tier);
            // The process was refused before the call is over.
            let wait = command("until [ -e refused ]; do sleep 0.02; done");
            let server = model_of([calls(&[wait]), calls(&[command("echo fine")]), done()]);
            let beside = format!("{CONNECT_AT_ONCE}; : > refused");
            let done = Finished::of(&mut bailiwick(
                &world,
                &server,
                &beside,
                &["--output", output, "--mode", "auto", "go"],
            ));
            assert_eq!(done.code, 0, "{tier}: {}\n{}", done.stdout, done.stderr);
            let sentence = "reach 192.0.2.7:9 (tried by bailiwick-worke)";
            let results = [1, 2].map(|request| tool_results(&server, request).last().unwrap().to_string());
            let told: Vec<_> =
                results.iter().filter(|result| result.contains("Not caused by this call")).collect();
            assert!(matches!(told[..], [told] if told.contains(sentence)), "{tier}: {results:?}");
            assert!(!results.concat().contains("\"is_error\":true"), "{tier}: {results:?}");
            let denied: Vec<Value> =
                world.log().into_iter().filter(|event| event["type"] == "denied").collect();
            assert_eq!(denied.len(), 1, "{tier}: {denied:?}");
            assert_eq!(denied[0]["data"].get("call"), None, "{tier}: {denied:?}");
            assert_eq!(denied[0]["data"]["grant"], "--net on", "{tier}: {denied:?}");
            if output == "text" {
                assert!(
                    done.stderr.contains("✗ outside of tool calls: blocked by the "),
                    "{tier}: {}",
                    done.stderr
                );
            } else {
                assert_eq!(done.events_of("denied").len(), 1, "{tier}: {}", done.stdout);
            }
            let session = world.log()[0]["session"].as_str().unwrap().to_owned();
            let audit = Finished::of(&mut world.bailiwick(["audit", &session]));
            assert!(audit.stdout.contains("  outside of calls: blocked by the "), "{tier}: {}", audit.stdout);
            assert!(audit.stdout.contains(sentence), "{tier}: {}", audit.stdout);
        }
    }
}

#[tokio::test]
async fn what_was_refused_a_call_that_was_cut_short_is_told_of() {
    for tier in tier::all() {
        let hanging = command("exec 3<>/dev/tcp/192.0.2.7/9; echo refused; sleep 1000");
        let beginning = Beginning { tier: tier::choice(tier), turns: Turns::Many, ..Beginning::default() };
        let mut front = FrontEnd::open_with(beginning, [calls(&[hanging])]);
        front.prompt("one").await;
        front.until("refused").await;
        front.act(UserActionKind::Agent(AgentAction::Interrupt)).await;
        front.until("beside the calls").await;
        let told = front.seen().last().unwrap();
        assert!(told.contains("reach 192.0.2.7:9 (tried by bash)"), "{tier}: {told}");
        front.act(UserActionKind::Agent(AgentAction::Quit)).await;
        front.end().await;
    }
}
