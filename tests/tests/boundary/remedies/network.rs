//! Tests the remedy of a denied connection to another machine, in network namespaces of the test's own.

use std::net::TcpListener;
use std::sync::mpsc;
use std::thread;

use nix::sched::{CloneFlags, unshare};
use nix::unistd::{geteuid, gettid};
use serde_json::json;
use tests::tier::everywhere;
use tests::{Finished, skip};

use crate::remedies::attempt::play_on;
use crate::remedies::ground::{ANSWER, Ground, answer};
use crate::remedies::scenes::{Scene, Who};

// Addresses of this machine and of the other one, in TEST-NET-2 (RFC 5737).
const HERE: &str = "198.51.100.1";
const THERE: &str = "198.51.100.2";

const SCENE: Scene = Scene {
    name: "the network is needed",
    flags: &["--mode", "auto"],
    tool: "shell_exec",
    input: |_| json!({"command": format!("curl -sS http://{THERE}:8080/")}),
    who: Who::User,
    is_done: |_, told| told.contains(ANSWER),
    full_has_it: false,
};

/// Runs `ip` in the network namespace of this thread.
fn ip(words: &str) {
    let done = Finished::of(std::process::Command::new("ip").args(words.split(' ')));
    assert_eq!(done.code, 0, "ip {words}: {}", done.stderr);
}

/// Imitates a machine at the other end of a cable: reports its network namespace, waits for the cable, and answers
/// requests.
fn other_machine(number: &mpsc::Sender<i32>, cable: &mpsc::Receiver<()>, ready: &mpsc::Sender<()>) {
    unshare(CloneFlags::CLONE_NEWNET).unwrap();
    number.send(gettid().as_raw()).unwrap();
    cable.recv().unwrap();
    ip(&format!("addr add {THERE}/24 dev there"));
    ip("link set there up");
    let listener = TcpListener::bind((THERE, 8080)).unwrap();
    ready.send(()).unwrap();
    listener.incoming().flatten().for_each(answer);
}

/// Connects the network namespace of this thread with that of another thread.
fn connect() {
    let (number, numbers) = mpsc::channel();
    let (lay, laid) = mpsc::channel();
    let (ready, is_ready) = mpsc::channel();
    thread::spawn(move || other_machine(&number, &laid, &ready));
    let other = numbers.recv().unwrap();
    ip("link set lo up");
    ip(&format!("link add here type veth peer name there netns {other}"));
    ip(&format!("addr add {HERE}/24 dev here"));
    ip("link set here up");
    lay.send(()).unwrap();
    is_ready.recv().unwrap();
}

#[test]
fn who_needs_the_network_is_told_how_it_is_turned_on() {
    if !geteuid().is_root() {
        skip!("uid 0 with capabilities gives a network its addresses");
    }
    let everywhere = everywhere();
    let apart = move || {
        // Applies only to this thread and the processes that it starts.
        if unshare(CloneFlags::CLONE_NEWNET).is_err() {
            skip!("uid 0 with capabilities gives a network its addresses");
        }
        connect();
        for (user, tier) in everywhere {
            let played = play_on(&Ground::new(user, tier), &SCENE, tier);
            assert!(played.is_ok(), "{user:?}, {tier} tier: {played:?}");
        }
    };
    thread::spawn(apart).join().unwrap();
}
