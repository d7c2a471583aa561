//! Tests that a process that an agent starts cannot be a client of the relay.

use serde_json::{Value, json};
use tests::replies::{calls, done, model_of, serve};
use tests::{Finished, User, World, tier};

use crate::relay::{Relay, exec, unix};

#[test]
fn no_command_of_an_agent_reaches_the_relay_in_any_tier() {
    for (user, tier) in tier::everywhere() {
        let world = World::new(user).in_tier(tier);
        let server = serve([]);
        let (relay, socket) = Relay::of_one(&world, &server, &[]);
        let probe = tests::Programs::get().path("probe").display().to_string();
        let acts = ["unix-stream", "unix-stream-path", "unix-seqpacket"];
        let line = acts.map(|act| format!("{act} {}", socket.display())).join(" -- ");
        let words: Vec<_> = line.split(' ').collect();
        // Control: without a sandbox, the same act succeeds.
        let outside = Finished::of(world.command(&probe).args(&words));
        assert!(outside.stdout.lines().next().unwrap().contains("\"errno\":0"), "{}", outside.stdout);
        drop(relay);
        let call =
            calls(&[("shell_exec", json!({"command": format!("{probe} {line} > tried"), "network": true}))]);
        let server = model_of([call, done()]);
        let (_relay, socket) = Relay::of_one(&world, &server, &[]);
        let flags = ["--model", "claude-opus-5-5", "--net", "on", "--reach", "host"];
        Finished::of(&mut exec(&world, &unix(&socket), &flags)).expect(0);
        let tried = world.read("tried");
        assert_eq!(tried.lines().count(), acts.len(), "{tried}");
        for act in tried.lines() {
            let act: Value = serde_json::from_str(act).unwrap();
            let errno = act["errno"].as_i64().unwrap();
            let denied = [nix::libc::EACCES, nix::libc::EPERM, nix::libc::ENOENT].map(i64::from);
            assert!(denied.contains(&errno), "{tier}: {act}");
        }
    }
}

#[test]
fn a_session_does_not_begin_where_an_agent_could_reach_the_relay() {
    let world = World::new(User::Myself);
    let server = serve([]);
    let address = server.base_url();
    let refused = |base_url: &str, flags: &[&str], expected: &str| {
        let run = Finished::of(&mut exec(&world, base_url, flags));
        assert!(run.code == 2 && run.stderr.contains(expected), "{expected}: {} {}", run.code, run.stderr);
    };
    let inside = world.project().join("run");
    let listen = format!("unix:{}", inside.display());
    let mut relay = Relay::start(&world, &["--listen", &listen, "--client", "a", "--base-url", &address]);
    let (_, base_url) = relay.client();
    refused(&base_url, &[], "where an agent can write");
    // A link in the project is refused, because an agent can change its target.
    drop(relay);
    let (relay, socket) = Relay::of_one(&world, &server, &[]);
    let run = world.home().join("run").display().to_string();
    refused(&unix(&socket), &["--write", &run], "where an agent can write");
    let link = world.project().join("link");
    std::os::unix::fs::symlink(&socket, &link).unwrap();
    refused(&unix(&link), &[], "where an agent can write");
    refused("unix:/nowhere/relay.sock", &[], "there is no socket");
    refused("unix:relay.sock", &[], "no relay at");
    refused(&format!("unix:{}", world.root().join("own").display()), &[], "there is no socket");
    drop(relay);
    // The killed relay has left its socket behind.
    assert!(socket.exists());
    refused(&unix(&socket), &[], "Connection refused");
    assert!(server.requests().is_empty());
    // The next relay takes its place.
    let (_relay, again) = Relay::of_one(&world, &server, &[]);
    assert_eq!(again, socket);
}

#[test]
fn the_doctor_tries_the_relay_from_inside() {
    let world = World::new(User::Myself);
    let server = serve([]);
    let (relay, socket) = Relay::of_one(&world, &server, &[]);
    world.configure(&format!("base_url = \"{}\"\n", unix(&socket)));
    let row = || {
        let done = Finished::of(&mut world.bailiwick(["doctor", "--json"]));
        let report: Value = serde_json::from_str(&done.stdout).unwrap();
        let checks = report["checks"].as_array().unwrap().clone();
        let of = |name: &str| checks.iter().find(|check| check["name"] == name).unwrap().clone();
        (of("relay"), of("key"))
    };
    let (found, key) = row();
    assert_eq!((&found["state"], &key["state"]), (&json!("ok"), &json!("ok")), "{found} {key}");
    assert!(found["found"].as_str().unwrap().ends_with("agents cannot reach this socket"), "{found}");
    relay.end();
    let (found, _) = row();
    assert_eq!(found["state"], "warn", "{found}");
}
