use std::io::{Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};

use nix::libc;
use nix::sys::socket::{MsgFlags, accept, recv};

use crate::calls::{
    DATAGRAM, SEQPACKET, STREAM, bind, connect, errno, listen, send_message, send_messages, send_to, socket,
    unix,
};
use crate::harness::{Place, by_each_judge, pipe};
use crate::network::on;

const TYPES: [i32; 3] = [STREAM, DATAGRAM, SEQPACKET];

fn name(place: &Place, label: &str) -> String {
    format!("names-{}-{label}", place.path("").display())
}

fn address(place: &Place, label: &str) -> Vec<u8> {
    unix(format!("\0{}", name(place, label)))
}

fn server(style: i32, name: &[u8]) -> std::io::Result<OwnedFd> {
    let server = socket(libc::AF_UNIX, style | libc::SOCK_NONBLOCK);
    bind(&server, name)?;
    if style != DATAGRAM {
        listen(&server, 8);
    }
    Ok(server)
}

/// Makes every call that leads to an abstract name, each on a new socket of the type, and returns the errors.
fn each_call(style: i32, to: &[u8]) -> Vec<i32> {
    let new = || socket(libc::AF_UNIX, style);
    let mut answers = vec![errno(connect(&new(), to))];
    if style == DATAGRAM {
        answers.push(errno(send_to(&new(), b"x", to, 0)));
        answers.push(errno(send_message(&new(), b"x", to, &[], 0)));
        answers.push(errno(send_messages(&new(), &[b"x"], to)));
    }
    answers
}

fn is_reached(style: i32, server: &OwnedFd) -> bool {
    match style {
        DATAGRAM => recv(server.as_raw_fd(), &mut [0], MsgFlags::empty()).is_ok(),
        _ => accept(server.as_raw_fd()).is_ok(),
    }
}

#[test]
fn a_name_of_one_type_taken_inside_opens_none_of_the_hosts() {
    by_each_judge(|place| {
        let victims: Vec<_> = TYPES
            .into_iter()
            .flat_map(|theirs| TYPES.map(|ours| (theirs, ours)))
            .map(|(theirs, ours)| {
                let name = address(place, &format!("{theirs}-{ours}"));
                (theirs, ours, server(theirs, &name).unwrap(), name)
            })
            .collect();
        let attack = |expected: i32| {
            for (theirs, ours, _, name) in &victims {
                let own = server(*ours, name);
                assert_eq!(own.is_err(), theirs == ours, "{theirs} {ours}");
                for answer in each_call(*theirs, name) {
                    assert_eq!(answer, expected, "{theirs} {ours}");
                }
            }
        };
        let reached = || victims.iter().filter(|(theirs, _, victim, _)| is_reached(*theirs, victim)).count();
        on(place, || attack(libc::ECONNREFUSED));
        assert_eq!(reached(), 0);
        place.unmediated(|| attack(0));
        assert_eq!(reached(), victims.len());
    });
}

#[test]
fn a_name_of_each_type_taken_inside_is_reached_from_inside() {
    by_each_judge(|place| {
        on(place, || {
            for style in TYPES {
                let name = address(place, &format!("own-{style}"));
                // A server among others of the other types.
                let _others: Vec<_> = TYPES
                    .iter()
                    .filter(|&&other| other != style)
                    .map(|&other| server(other, &name))
                    .collect();
                let own = server(style, &name).unwrap();
                for answer in each_call(style, &name) {
                    assert_eq!(answer, 0, "{style}");
                }
                assert!(is_reached(style, &own), "{style}");
                drop(own);
                assert_eq!(errno(connect(&socket(libc::AF_UNIX, style), &name)), libc::ECONNREFUSED);
            }
        });
    });
}

#[test]
fn one_that_hears_its_peer_alone_says_so() {
    by_each_judge(|place| {
        let (one, other) = (address(place, "one"), address(place, "other"));
        let meet = || {
            let (pair, _peer) = (server(DATAGRAM, &one).unwrap(), server(DATAGRAM, &other).unwrap());
            connect(&pair, &other).unwrap();
            assert_eq!(each_call(DATAGRAM, &one), [libc::EPERM; 4]);
        };
        place.unmediated(meet);
        on(place, meet);
    });
}

#[test]
fn what_an_own_listener_accepted_does_not_stand_for_the_name() {
    by_each_judge(|place| {
        let ((mut closed, mut closing), (mut taken, mut taking)) = (pipe(), pipe());
        let name = address(place, "accepted");
        let to = name.clone();
        let host = std::thread::spawn(move || {
            closed.read_exact(&mut [0]).unwrap();
            let victim = std::iter::repeat_with(|| server(STREAM, &to)).find_map(Result::ok).unwrap();
            taking.write_all(b"x").unwrap();
            victim
        });
        on(place, || {
            let own = server(STREAM, &name).unwrap();
            let client = socket(libc::AF_UNIX, STREAM);
            connect(&client, &name).unwrap();
            let _accepted = UnixListener::from(own.try_clone().unwrap()).accept().unwrap();
            drop(own);
            closing.write_all(b"x").unwrap();
            taken.read_exact(&mut [0]).unwrap();
            assert_eq!(each_call(STREAM, &name), [libc::ECONNREFUSED]);
        });
        let victim = host.join().unwrap();
        assert!(!is_reached(STREAM, &victim));
        place.unmediated(|| assert_eq!(each_call(STREAM, &name), [0]));
        assert!(is_reached(STREAM, &victim));
    });
}

fn meets_a_stranger(place: &Place, run: impl FnOnce(&dyn Fn() -> i32)) {
    let own = SocketAddr::from_abstract_name(name(place, "met")).unwrap();
    let ((mut bound, binding), (connected, mut connecting)) = (pipe(), pipe());
    let to = own.clone();
    let stranger = std::thread::spawn(move || {
        bound.read_exact(&mut [0]).unwrap();
        let stranger = UnixStream::connect_addr(&to);
        connecting.write_all(b"x").unwrap();
        stranger
    });
    run(&|| {
        let server = UnixListener::bind_addr(&own).unwrap();
        (&binding).write_all(b"x").unwrap();
        (&connected).read_exact(&mut [0]).unwrap();
        server.set_nonblocking(true).unwrap();
        let of_stranger = errno(server.accept());
        let client = UnixStream::connect_addr(&own).unwrap();
        server.accept().unwrap();
        drop(client);
        of_stranger
    });
    drop(stranger.join().unwrap().unwrap());
}

#[test]
fn strangers_at_an_abstract_name_are_not_let_in() {
    by_each_judge(|place| {
        meets_a_stranger(place, |accept| place.unmediated(|| assert_eq!(accept(), 0)));
        meets_a_stranger(place, |accept| on(place, || assert_eq!(accept(), libc::EAGAIN)));
    });
}
