//! Network namespace of one test, in which every port is free and the test itself is the resolver.

use std::collections::HashMap;
use std::net::{Ipv4Addr, UdpSocket};
use std::process::Command;
use std::sync::mpsc::{Receiver, channel};
use std::thread;

/// Environment variable that is set in a test that runs in its own network namespace.
const INSIDE: &str = "BAILIWICK_TEST_NETWORK";

/// Shell script that sets up loopback and a resolver in a new network namespace, and runs the test there.
const SCRIPT: &str = "ip link set lo up && mount -t tmpfs none /mnt && echo 'nameserver 127.0.0.1' > /mnt/resolv.conf \
                      && mount --bind /mnt/resolv.conf /etc/resolv.conf && exec \"$@\"";

fn inside(arguments: &[&str]) -> Command {
    let mut command = Command::new("unshare");
    command.args(["-Urnm", "sh", "-c", SCRIPT, "sh"]).args(arguments);
    command
}

/// True if this process is in a network namespace of the test's own. Otherwise runs the test there, and returns false.
pub fn is_inside(test: &str) -> bool {
    if std::env::var_os(INSIDE).is_some() {
        return true;
    }
    if !inside(&["true"]).status().is_ok_and(|status| status.success()) {
        eprintln!("skipped: this machine makes no network namespaces for this user");
        return false;
    }
    let me = std::env::current_exe().unwrap();
    let test =
        inside(&[me.to_str().unwrap(), "--exact", test, "--nocapture"]).env(INSIDE, "1").output().unwrap();
    assert!(
        test.status.success(),
        "{}{}",
        String::from_utf8_lossy(&test.stdout),
        String::from_utf8_lossy(&test.stderr)
    );
    assert!(String::from_utf8_lossy(&test.stdout).contains("1 passed"), "no such test");
    false
}

/// Starts a resolver that knows these names. Returns a receiver of the names that it is asked for.
pub fn resolver(names: &[(&str, &[Ipv4Addr])]) -> Receiver<String> {
    let names: HashMap<_, _> =
        names.iter().map(|(name, addresses)| ((*name).to_owned(), addresses.to_vec())).collect();
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 53)).unwrap();
    let (tell, asked) = channel();
    thread::spawn(move || {
        let mut question = [0; 512];
        while let Ok((length, from)) = socket.recv_from(&mut question) {
            let (name, is_for_v4) = asked_for(&question[12..length]);
            let answer = answer(
                &question[..length],
                names.get(&name).map(|found| if is_for_v4 { &found[..] } else { &[] }),
            );
            socket.send_to(&answer, from).unwrap();
            if tell.send(name).is_err() {
                break;
            }
        }
    });
    asked
}

fn asked_for(mut bytes: &[u8]) -> (String, bool) {
    let mut labels = Vec::new();
    while let Some((&length, rest)) = bytes.split_first().filter(|(length, _)| **length > 0) {
        let (label, rest) = rest.split_at(length.into());
        labels.push(String::from_utf8_lossy(label).into_owned());
        bytes = rest;
    }
    (labels.join("."), bytes[1..3] == [0, 1])
}

fn answer(question: &[u8], addresses: Option<&[Ipv4Addr]>) -> Vec<u8> {
    let count = u8::try_from(addresses.map_or(0, <[_]>::len)).unwrap();
    let end = 12 + question[12..].iter().position(|&byte| byte == 0).unwrap() + 5;
    let mut answer = question[..end].to_vec();
    // A response without recursion that failed, one question, so many answers and nothing more.
    answer[2..12].copy_from_slice(&[
        0x81,
        if addresses.is_some() { 0x80 } else { 0x83 },
        0,
        1,
        0,
        count,
        0,
        0,
        0,
        0,
    ]);
    for address in addresses.unwrap_or_default() {
        answer.extend([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4]);
        answer.extend(address.octets());
    }
    answer
}
