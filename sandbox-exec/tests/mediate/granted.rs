use std::fs::{create_dir, hard_link, remove_file, rename};
use std::io::{Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use ipc::confinement::Tier;
use nix::libc;

use crate::calls::{STREAM, connect, control, errno, send_message, socket, unix};
use crate::harness::{Place, as_each_user, goes_on, pipe};
use crate::messages::receive_descriptor;
use crate::paths::{CONNECTIONS, DELIVERED, Sockets, run_forms};

const RACING: Duration = Duration::from_secs(1);

fn reach(place: &Place, name: &str) -> i32 {
    errno(connect(&socket(libc::AF_UNIX, STREAM), &unix(place.path(name))))
}

fn granted(place: &Place) {
    create_dir(place.path("granted")).unwrap();
    place.open("granted");
}

#[test]
fn every_form_of_a_granted_path_leads_to_its_socket() {
    as_each_user(|place| {
        granted(place);
        let sockets = Sockets::bind(place, "granted");
        let handed_in = !(place.makes_sockets() && place.tier() == Tier::Floor);
        let arriving = if handed_in { DELIVERED } else { DELIVERED - CONNECTIONS };
        place.mediated(|| run_forms(place, "granted", &sockets, 0, arriving));
    });
}

#[test]
fn what_is_beside_a_granted_socket_stays_out_of_reach() {
    as_each_user(|place| {
        granted(place);
        let listen = |name: &str| {
            let listener = UnixListener::bind(place.path(name)).unwrap();
            place.open(name);
            listener
        };
        let _listeners = ["granted/stream", "granted/beside", "out/stream"].map(listen);
        hard_link(place.path("granted/stream"), place.path("granted/hard")).unwrap();
        symlink("granted/stream", place.path("leads-in")).unwrap();
        place.mediated(|| {
            for (name, expected) in [
                ("granted/stream", 0),
                ("leads-in", 0),
                ("granted/beside", libc::EACCES),
                ("granted/hard", libc::EACCES),
                ("out/stream", libc::EACCES),
                ("granted/stream/", libc::ENOTDIR),
            ] {
                assert_eq!(reach(place, name), expected, "{name}");
            }
        });
        place.unmediated(|| {
            assert_eq!([reach(place, "granted/hard"), reach(place, "granted/beside")], [0; 2]);
        });
        rename(place.path("granted/stream"), place.path("granted/moved")).unwrap();
        symlink(place.path("out/stream"), place.path("granted/stream")).unwrap();
        place.mediated(|| {
            let both = [reach(place, "granted/stream"), reach(place, "granted/moved")];
            assert_eq!(both, [libc::EACCES; 2], "the path is a link, and the socket has another name");
        });
        remove_file(place.path("granted/stream")).unwrap();
        let _again = listen("granted/stream");
        place.mediated(|| assert_eq!(reach(place, "granted/stream"), 0, "its server made it again"));
    });
}

#[test]
fn a_path_that_changes_meanwhile_never_leads_elsewhere() {
    as_each_user(|place| {
        granted(place);
        let _server = UnixListener::bind(place.path("granted/stream")).unwrap();
        let victim = UnixListener::bind(place.path("out/stream")).unwrap();
        victim.set_nonblocking(true).unwrap();
        for name in ["granted/stream", "out/stream"] {
            place.open(name);
        }
        place.mediated(|| {
            let [path, aside, link] =
                ["stream", "aside", "link"].map(|name| place.path("granted").join(name));
            symlink(place.path("out/stream"), &link).unwrap();
            let over = AtomicBool::new(false);
            let (mut reached, mut denied) = (0, 0);
            thread::scope(|scope| {
                scope.spawn(|| {
                    while !over.load(Ordering::Relaxed) {
                        for (from, to) in [(&path, &aside), (&link, &path), (&path, &link), (&aside, &path)] {
                            rename(from, to).unwrap();
                        }
                    }
                });
                let start = Instant::now();
                while goes_on(start, RACING, reached > 0 && denied > 0) {
                    let client = socket(libc::AF_UNIX, STREAM | libc::SOCK_NONBLOCK);
                    match errno(connect(&client, &unix(&path))) {
                        // A full queue is one that was reached.
                        0 | libc::EAGAIN => reached += 1,
                        libc::EACCES => denied += 1,
                        other => assert_eq!(other, libc::ENOENT),
                    }
                }
                over.store(true, Ordering::Relaxed);
            });
            assert!(reached > 0 && denied > 0, "no race: {reached} reached, {denied} denied");
        });
        assert!(victim.accept().is_err(), "a connection arrived outside");
    });
}

#[test]
fn descriptors_pass_in_both_directions_over_a_granted_socket() {
    as_each_user(|place| {
        granted(place);
        let listener = UnixListener::bind(place.path("granted/stream")).unwrap();
        place.open("granted/stream");
        let server = place.beside(|| {
            let connection: OwnedFd = listener.accept().unwrap().0.into();
            receive_descriptor(&connection).write_all(b"to the program's pipe").unwrap();
            let (mut read, write) = pipe();
            let rights = control(libc::SOL_SOCKET, libc::SCM_RIGHTS, &write.as_raw_fd().to_ne_bytes());
            send_message(&connection, b"x", &[], &rights, 0).unwrap();
            drop(write);
            let mut text = String::new();
            read.read_to_string(&mut text).unwrap();
            assert_eq!(text, "to the server's pipe");
        });
        place.mediated(|| {
            let client = socket(libc::AF_UNIX, STREAM);
            connect(&client, &unix(place.path("granted/stream"))).unwrap();
            let (mut read, write) = pipe();
            let rights = control(libc::SOL_SOCKET, libc::SCM_RIGHTS, &write.as_raw_fd().to_ne_bytes());
            send_message(&client, b"x", &[], &rights, 0).unwrap();
            drop(write);
            let mut text = String::new();
            read.read_to_string(&mut text).unwrap();
            assert_eq!(text, "to the program's pipe");
            receive_descriptor(&client).write_all(b"to the server's pipe").unwrap();
        });
        server.finish();
    });
}
