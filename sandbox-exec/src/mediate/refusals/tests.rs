use std::io::{Read, Write};
use std::net::SocketAddr;
use std::time::Instant;

use ipc::confinement::BrokerReport;
use ipc::frame;
use ipc::id::Generation;
use ipc::path::WirePath;
use ipc::place::Place;
use ipc::refusal::MAX_REFUSAL;
use nix::fcntl::OFlag;
use nix::unistd::{getppid, gettid, pipe2};

use super::origins::MOST_EACH;
use super::report::{MOST_BYTES, has_room};
use super::*;

fn to(port: u16) -> Denied {
    let target = Target::Internet(SocketAddr::from(([192, 0, 2, 1], port)), Place::Elsewhere);
    Denied::Rules { target, errno: Errno::ENETUNREACH }
}

/// Collector of this thread's denials. They are reported as if the thread's process were a child of the program's.
struct Told {
    refusals: Refusals,
    read: File,
}

impl Told {
    fn new() -> Self {
        let (read, write) = pipe2(OFlag::O_CLOEXEC | OFlag::O_NONBLOCK).unwrap();
        Self {
            refusals: Refusals::told(getppid().as_raw(), Some((write, Listeners::here()))),
            read: read.into(),
        }
    }

    fn tell(&self, hindrance: Denied) -> Errno {
        self.refusals.tell(gettid().as_raw(), Act::Connect, hindrance)
    }

    fn next(&mut self) -> Option<Refusal> {
        let mut length = [0; 4];
        self.read.read_exact(&mut length).ok()?;
        let mut body = vec![0; u32::from_le_bytes(length) as usize];
        self.read.read_exact(&mut body).unwrap();
        match frame::open(Generation::default(), &body).unwrap() {
            BrokerReport::Refused(refusal) => Some(refusal),
            other => panic!("{other:?}"),
        }
    }

    fn counts(&mut self) -> Vec<(u64, u64)> {
        std::iter::from_fn(|| self.next()).map(|refusal| (refusal.count, refusal.untold)).collect()
    }
}

#[test]
fn the_same_is_told_when_it_has_happened_twice_as_often() {
    let mut told = Told::new();
    for _ in 0..9 {
        assert_eq!(told.tell(to(1)), Errno::ENETUNREACH);
    }
    assert_eq!(told.counts(), [(1, 0), (2, 0), (4, 0), (8, 0)]);
    assert_eq!(told.tell(Denied::Other(Errno::ENOENT)), Errno::ENOENT);
    assert_eq!(told.counts(), [], "nobody refused it");
}

#[test]
fn who_did_it_is_told_by_its_name_and_by_the_child_of_the_program_that_it_descends_from() {
    let mut told = Told::new();
    told.tell(to(1));
    let refusal = told.next().unwrap();
    let own = std::process::id();
    assert_eq!(refusal.process, own);
    assert_eq!(refusal.program, name(own.cast_signed()));
    assert_eq!((refusal.act, refusal.errno), (Act::Connect, Errno::ENETUNREACH as i32));
}

#[test]
fn a_flood_of_different_ones_is_counted_and_writes_no_more() {
    let mut told = Told::new();
    for port in (1..).take(MOST_EACH + 7) {
        told.tell(to(port));
    }
    assert_eq!(told.counts().len(), MOST_EACH);
    told.tell(to(1));
    assert_eq!(told.counts(), [(2, 7)]);
}

#[test]
fn a_pipe_that_nobody_reads_holds_nobody_up_and_what_did_not_fit_is_told_later() {
    let (read, write) = pipe2(OFlag::O_CLOEXEC).unwrap();
    let mut fill = File::from(write.try_clone().unwrap());
    while has_room(&fill) {
        fill.write_all(&[0; MAX_REFUSAL]).unwrap();
    }
    let refusals = Refusals::told(getppid().as_raw(), Some((write, Listeners::here())));
    let began = Instant::now();
    for port in 1..100 {
        assert_eq!(refusals.tell(gettid().as_raw(), Act::Send, to(port)), Errno::ENETUNREACH);
    }
    assert!(began.elapsed().as_secs() < 60, "it never waited");
    let process = std::process::id().cast_signed();
    let mut state = refusals.0.as_ref().unwrap().lock();
    let origin = state.origins.of(process, super::began(process).unwrap());
    assert_eq!((origin.refused.len(), origin.untold), (0, 99));
    drop((state, read));
    assert_eq!(refusals.tell(gettid().as_raw(), Act::Send, to(1)), Errno::ENETUNREACH, "nobody is there");
}

#[test]
fn what_is_too_long_for_a_report_is_not_cut_but_counted() {
    let mut told = Told::new();
    let long = Target::File(WirePath::from(&format!("/{}", "x".repeat(MOST_BYTES))));
    told.tell(Denied::Rules { target: long, errno: Errno::EACCES });
    told.tell(to(1));
    assert_eq!(told.counts(), [(1, 1)]);
}
