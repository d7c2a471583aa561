#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stderr,
    reason = "a test fails by panicking, and says aloud what it skips"
)]

mod common;

use std::io::Read;
use std::net::TcpListener;

use common::place::{Place, errors, in_tier_as_each_user, text};
use ipc::confinement::Tier;

const MEET: &str = r#"exec python3 - <<'END'
import os, socket, threading
server = socket.create_server(("127.0.0.1", 0))
client = threading.Thread(target=lambda: socket.create_connection(server.getsockname()).sendall(b"inside "))
client.start()
print(server.accept()[0].recv(9).decode(), end="")
client.join()
listener = socket.socket(socket.AF_UNIX)
listener.bind("socket")
listener.listen()
socket.socket(socket.AF_UNIX).connect("socket")
listener.accept()
os.unlink("socket")
print("path")
END"#;

fn floor(place: &Place, flags: &[&str], script: &str) -> std::process::Output {
    place.sandbox(&[&["--write", "."], flags].concat()).args(["/bin/bash", "-c", script]).output().unwrap()
}

#[test]
fn servers_and_clients_inside_meet_whatever_the_network() {
    in_tier_as_each_user(Tier::Floor, |place| {
        for net in ["off", "on"] {
            let output = floor(place, &["--net", net], MEET);
            assert_eq!(text(&output), "inside path\n", "net {net}: {}", errors(&output));
        }
    });
}

#[test]
fn a_server_of_the_host_is_not_there() {
    in_tier_as_each_user(Tier::Floor, |place| {
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        let connect =
            format!("exec 3<>/dev/tcp/127.0.0.1/{}; echo -n evil >&3", server.local_addr().unwrap().port());
        for (net, answer) in [("off", "Connection refused"), ("on", "Permission denied")] {
            let output = floor(place, &["--net", net], &connect);
            assert!(errors(&output).contains(answer), "net {net}: {}", errors(&output));
        }
        server.set_nonblocking(true).unwrap();
        assert!(server.accept().is_err());
        server.set_nonblocking(false).unwrap();
        place.unconfined(&connect);
        let mut told = String::new();
        server.accept().unwrap().0.read_to_string(&mut told).unwrap();
        assert_eq!(told, "evil");
    });
}

/// Tests sandbox-exec inside another: the inner one gets no seccomp listener, since the outer one has one (`EBUSY`).
#[test]
fn without_a_listener_it_is_degraded_and_has_no_sockets() {
    in_tier_as_each_user(Tier::Floor, |place| {
        let inner = place.path("sandbox-exec").display().to_string();
        let nested = |flags: &str, script: &str| {
            floor(
                place,
                &[],
                &format!("exec {inner} --write . --tier floor {flags} -- /bin/bash -c '{script}'"),
            )
        };
        let refused = nested("", "true");
        assert_eq!(refused.status.code(), Some(105));
        assert!(errors(&refused).contains("no listener"), "{}", errors(&refused));
        let output = nested("--allow-degraded", "exec 3<>/dev/tcp/127.0.0.1/9");
        assert!(errors(&output).contains("Operation not permitted"), "{}", errors(&output));
        assert_eq!(text(&nested("--allow-degraded", "echo runs")), "runs\n");
    });
}
