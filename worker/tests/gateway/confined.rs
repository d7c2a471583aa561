//! Tests of the gateway in its own sandbox: it may use the network and the resolver's files, but start no command.

use std::fs::File;
use std::io::Write;
use std::net::Shutdown;
use std::path::Path;
use std::process::Command;

use ipc::confinement::{Confinement, Order, TierChoice};
use ipc::gateway::{GatewayFailure, GatewayReport};
use ipc::id::Generation;
use ipc::pipe::Outgoing;
use ipc::rights::{Execution, Network, Reach, Rights};
use nix::libc::EACCES;
use tempfile::TempDir;

use crate::harness::{Gateway, all, host, is_reset, sink};

/// Exit statuses of sandbox-exec if the machine lacks Landlock or namespaces.
const UNAVAILABLE: [Option<i32>; 2] = [Some(105), Some(106)];

/// Starts the gateway in a sandbox; `None` if this machine cannot run it there.
fn confined(tier: TierChoice, reach: Reach, rules: &str) -> Option<(Gateway, TempDir)> {
    let program = Path::new(env!("CARGO_BIN_EXE_bailiwick-worker"));
    let sandbox_exec = program.with_file_name("sandbox-exec");
    if !sandbox_exec.exists() {
        eprintln!("skipped: {} is not built", sandbox_exec.display());
        return None;
    }
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("rights");
    let places = [Path::new("/etc"), Path::new("/usr"), Path::new("/lib"), Path::new("/lib64"), program];
    let read = places.into_iter().filter_map(|place| place.canonicalize().ok()).map(Into::into).collect();
    let rights = Rights { read, net: Network::On, reach, exec: Execution::Denied, ..Rights::default() };
    let confinement = Confinement { tier, ..Confinement::new(rights, Path::new("/usr").into()) };
    let order = Order { confinement, arguments: vec!["--gateway".to_owned()] };
    Outgoing::new(File::create(&path).unwrap(), Generation(0)).send(&order).unwrap();
    let mut command = Command::new("sh");
    command
        .args(["-c", "exec \"$0\" --rights-fd 3 -- \"$1\" 3< \"$2\""])
        .arg(sandbox_exec)
        .args([program, &path]);
    let mut gateway = Gateway::start(command);
    gateway.order(rules);
    let Some(report) = gateway.next_report() else {
        let (status, said) = gateway.wait();
        assert!(UNAVAILABLE.contains(&status.code()), "{status}: {said}");
        eprintln!("skipped: no {tier:?} tier: {said}");
        return None;
    };
    assert_eq!(report, GatewayReport::Ready);
    Some((gateway, directory))
}

#[test]
fn an_address_beyond_its_reach_is_denied_to_the_gateway_and_reported() {
    for tier in [TierChoice::Full, TierChoice::Floor] {
        let (port, _served) = sink(0);
        let Some((mut gateway, _directory)) = confined(tier, Reach::default(), &format!("localhost:{port}"))
        else {
            continue;
        };
        let mut client = gateway.client("localhost", port);
        let failure = gateway.failure();
        assert!(matches!(failure, GatewayFailure::Unreachable { errno: EACCES, .. }), "{failure:?}");
        assert!(is_reset(&mut client));
        assert!(gateway.end().0.success());
    }
}

#[test]
fn a_confined_gateway_looks_names_up_connects_and_carries() {
    let much = vec![7; 3 << 20];
    for tier in [TierChoice::Full, TierChoice::Floor] {
        let reply = much.clone();
        let (port, served) = host(0, move |mut socket| {
            let sent = all(&mut socket).unwrap();
            socket.write_all(&reply).unwrap();
            sent
        });
        let reach = Reach { host: true, ..Reach::default() };
        let Some((mut gateway, _directory)) = confined(tier, reach, &format!("localhost:{port}")) else {
            continue;
        };
        let mut client = gateway.client("localhost", port);
        gateway.connected();
        client.write_all(&much).unwrap();
        client.shutdown(Shutdown::Write).unwrap();
        assert!(all(&mut client).unwrap() == much && served.join().unwrap() == much);
        assert_eq!(gateway.ended(), (much.len() as u64, much.len() as u64, None));
        assert!(gateway.end().0.success());
    }
}
