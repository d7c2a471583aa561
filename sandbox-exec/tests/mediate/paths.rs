use std::fs::{File, OpenOptions, create_dir};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::{OpenOptionsExt, symlink};
use std::path::{Path, PathBuf};

use ipc::confinement::Tier;
use nix::libc;

use crate::calls::{
    DATAGRAM, SEQPACKET, STREAM, bind, connect, errno, listen, send_message, send_messages, send_to, socket,
    unix,
};
use crate::harness::{Place, as_each_user};

pub(crate) struct Sockets {
    listening: Vec<OwnedFd>,
    datagram: OwnedFd,
}

impl Sockets {
    pub(crate) fn bind(place: &Place, directory: &str) -> Self {
        let make = |name: &str, style| {
            let socket = socket(libc::AF_UNIX, style | libc::SOCK_NONBLOCK);
            let name = format!("{directory}/{name}");
            bind(&socket, &unix(place.path(&name))).unwrap();
            place.open(&name);
            socket
        };
        let listening = [("stream", STREAM), ("seqpacket", SEQPACKET)].map(|(name, style)| {
            let socket = make(name, style);
            listen(&socket, 100);
            socket
        });
        Self { listening: listening.into(), datagram: make("datagram", DATAGRAM) }
    }

    fn arrived(&self) -> usize {
        let accept = |socket: &OwnedFd| {
            // SAFETY: null pointers ask for no address; the connection stays open until the test ends.
            unsafe { libc::accept(socket.as_raw_fd(), std::ptr::null_mut(), std::ptr::null_mut()) >= 0 }
        };
        let receive = || {
            let mut byte = [0_u8; 8];
            // SAFETY: the kernel writes at most eight bytes.
            unsafe { libc::recv(self.datagram.as_raw_fd(), byte.as_mut_ptr().cast(), 8, 0) >= 0 }
        };
        let connections: usize = self
            .listening
            .iter()
            .map(|socket| std::iter::from_fn(|| accept(socket).then_some(())).count())
            .sum();
        connections + std::iter::from_fn(|| receive().then_some(())).count()
    }
}

fn each_call(form: impl Fn(&str) -> PathBuf) -> Vec<(&'static str, i32)> {
    let new = |style| socket(libc::AF_UNIX, style);
    let datagram = unix(form("datagram"));
    let messages = |result: io::Result<(usize, Vec<u32>)>| {
        result.map(|(sent, lengths)| assert_eq!((sent, &lengths[..]), (2, &[1, 2][..])))
    };
    vec![
        ("stream", errno(connect(&new(STREAM), &unix(form("stream"))))),
        ("seqpacket", errno(connect(&new(SEQPACKET), &unix(form("seqpacket"))))),
        ("datagram", errno(connect(&new(DATAGRAM), &datagram))),
        ("sendto", errno(send_to(&new(DATAGRAM), b"x", &datagram, 0))),
        ("sendmsg", errno(send_message(&new(DATAGRAM), b"x", &datagram, &[], 0))),
        ("sendmmsg", errno(messages(send_messages(&new(DATAGRAM), &[b"x", b"yz"], &datagram)))),
    ]
}

/// Number of deliveries by an allowed [`each_call`]: two connections, and four datagrams by three sends.
pub(crate) const DELIVERED: usize = CONNECTIONS + 4;
pub(crate) const CONNECTIONS: usize = 2;

fn all(errno: i32) -> Vec<(&'static str, i32)> {
    ["stream", "seqpacket", "datagram", "sendto", "sendmsg", "sendmmsg"].map(|call| (call, errno)).into()
}

pub(crate) fn open_path(path: &Path) -> File {
    OpenOptions::new().read(true).custom_flags(libc::O_PATH).open(path).unwrap()
}

/// Returns different paths to a directory. One of them leads to a directory of links, one for each of `names`.
pub(crate) fn forms(place: &Place, directory: &str, descriptor: &File, names: &[&str]) -> Vec<PathBuf> {
    let there = place.path(directory);
    let text = there.display();
    let (pid, number) = (std::process::id(), descriptor.as_raw_fd());
    let link = place.path(&format!("in/to-{directory}"));
    let links = place.path(&format!("in/each-of-{directory}"));
    if !link.exists() {
        symlink(&there, &link).unwrap();
        create_dir(&links).unwrap();
        for name in names {
            symlink(there.join(name), links.join(name)).unwrap();
        }
    }
    let mut forms =
        vec![there.clone(), PathBuf::new(), format!("../out/../in/../{directory}").into(), link, links];
    for process in ["self".to_owned(), "thread-self".to_owned(), pid.to_string()] {
        forms.push(format!("/proc/{process}/cwd").into());
        forms.push(format!("/proc/{process}/root{text}").into());
        forms.push(format!("/proc/{process}/fd/{number}").into());
    }
    forms
}

pub(crate) fn run_forms(place: &Place, directory: &str, sockets: &Sockets, expected: i32, delivered: usize) {
    std::env::set_current_dir(place.path(directory)).unwrap();
    let descriptor = open_path(&place.path(directory));
    for form in forms(place, directory, &descriptor, &["stream", "seqpacket", "datagram"]) {
        assert_eq!(each_call(|name| form.join(name)), all(expected), "{}", form.display());
        assert_eq!(sockets.arrived(), delivered, "{}", form.display());
    }
    let files =
        ["stream", "seqpacket", "datagram"].map(|name| (name, open_path(&place.path(directory).join(name))));
    let by_file = |name: &str| {
        let file = &files.iter().find(|file| file.0 == name).unwrap().1;
        PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()))
    };
    assert_eq!(each_call(by_file), all(expected), "through a descriptor of the socket");
    assert_eq!(sockets.arrived(), delivered, "through a descriptor of the socket");
}

#[test]
fn no_form_of_a_path_leads_outside_and_each_leads_inside() {
    as_each_user(|place| {
        let (inside, outside) = (Sockets::bind(place, "in"), Sockets::bind(place, "out"));
        place.mediated(|| run_forms(place, "out", &outside, libc::EACCES, 0));
        // Where the mediator accepts, it has no listener that was handed in, unless it may duplicate it.
        let handed_in = !(place.makes_sockets() && place.tier() == Tier::Floor);
        let arriving = if handed_in { DELIVERED } else { DELIVERED - CONNECTIONS };
        place.mediated(|| run_forms(place, "in", &inside, 0, arriving));
        place.unmediated(|| run_forms(place, "out", &outside, 0, DELIVERED));
    });
}
