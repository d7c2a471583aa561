//! What was looked up ahead of an order: it decides nothing, and what has changed since is looked up again.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stderr,
    reason = "a test fails by panicking, and says aloud what it skips"
)]

mod common;

use std::fs;
use std::io::Write;
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use common::order::{frames, order};
use common::place::{Place, as_each_user, errors, text};
use ipc::confinement::{Confinement, Identity, Order};
use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::libc;
use nix::unistd::pipe2;
use sandbox_exec::stage::Stage;

/// Longer than a directory needs before it is remembered.
const SETTLED: Duration = Duration::from_millis(2200);

/// Reads both files of the place.
const READ: &str = "cat ../home/notes; cat ../home/secret/key; cat ../home/secret/other";

/// A sandbox-exec that was told what will be ordered, and has looked that up.
struct Waiting {
    child: Child,
    orders: fs::File,
}

impl Waiting {
    fn prepared(place: &Place, likely: &Confinement, script: &str) -> Self {
        let (theirs, ours) = pipe2(OFlag::O_CLOEXEC).unwrap();
        let mut command = place.command(place.path("sandbox-exec"));
        command.args(["--rights-fd", "20", "--", "/bin/bash", "-c", script]);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        // SAFETY: dup2 is async-signal-safe; the descriptor lives until the command is dropped.
        unsafe {
            command.pre_exec(move || {
                Errno::result(libc::dup2(theirs.as_raw_fd(), 20)).map(drop).map_err(Into::into)
            });
        }
        let child = command.spawn().unwrap();
        drop(command);
        let mut orders = fs::File::from(ours);
        orders.write_all(&frames(&[Order::Prepare(Box::new(likely.clone()))])).unwrap();
        let waiting = Self { child, orders };
        waiting.until_it_waits();
        waiting
    }

    /// It has read what there was, and waits: it has nothing left to look up.
    fn until_it_waits(&self) {
        let patience = Instant::now() + Duration::from_secs(10);
        let mut idle = 0;
        // Whoever looks things up sleeps too, for moments.
        while idle < 20 {
            let stat = fs::read_to_string(format!("/proc/{}/stat", self.child.id())).unwrap();
            let mut unread: libc::c_int = 0;
            // SAFETY: the kernel writes an integer.
            unsafe { libc::ioctl(self.orders.as_raw_fd(), libc::FIONREAD, &raw mut unread) };
            let sleeps = stat.rsplit_once(") ").unwrap().1.starts_with('S');
            idle = if unread == 0 && sleeps { idle + 1 } else { 0 };
            assert!(Instant::now() < patience, "it does not wait: {stat}");
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// What it holds open, by its paths, if we may look.
    fn open(&self) -> Option<Vec<String>> {
        let directory = fs::read_dir(format!("/proc/{}/fd", self.child.id())).ok()?;
        let links = directory.filter_map(|entry| fs::read_link(entry.unwrap().path()).ok());
        Some(links.map(|path| path.to_string_lossy().into_owned()).collect())
    }

    fn execute(mut self, confinement: &Confinement) -> Output {
        let order = Order::Execute { confinement: Box::new(confinement.clone()), arguments: vec![] };
        self.orders.write_all(&frames(&[order])).unwrap();
        drop(self.orders);
        self.child.wait_with_output().unwrap()
    }
}

/// An order that hides a file, beside which there is another.
fn hiding(place: &Place) -> Confinement {
    let mut hiding = order(place);
    hiding.rights.hidden = vec![place.path("home/secret/key").into()];
    hiding
}

fn with_other(place: &Place) -> Confinement {
    place.make("home/secret/other", "OTHER");
    thread::sleep(SETTLED);
    hiding(place)
}

#[test]
fn what_has_not_changed_is_looked_up_once_and_hidden_as_ever() {
    as_each_user(|place| {
        let confinement = with_other(place);
        let waiting = Waiting::prepared(place, &confinement, READ);
        // In the full tier the init of the namespaces would inherit it.
        let other = place.path("home/secret/other").to_string_lossy().into_owned();
        match waiting.open() {
            Some(open) => assert_eq!(open.contains(&other), !place.full(), "{open:?}"),
            None => eprintln!("skipped: what it has open (it is not dumpable; needs root)"),
        }
        let output = waiting.execute(&confinement);
        assert_eq!(text(&output), "notesOTHER", "{}", errors(&output));
        assert!(errors(&output).contains("key: Permission denied"), "{}", errors(&output));
    });
}

#[test]
fn files_that_changed_their_places_are_looked_up_again() {
    as_each_user(|place| {
        let confinement = with_other(place);
        let waiting = Waiting::prepared(place, &confinement, READ);
        // By its old inode what is hidden now would be granted.
        for (from, to) in [("other", "third"), ("key", "other"), ("third", "key")] {
            fs::rename(place.path("home/secret").join(from), place.path("home/secret").join(to)).unwrap();
        }
        let output = waiting.execute(&confinement);
        assert_eq!(text(&output), "notesCANARY", "{}", errors(&output));
        assert!(errors(&output).contains("key: Permission denied"), "{}", errors(&output));
    });
}

#[test]
fn a_directory_that_took_the_place_of_another_is_looked_up_again() {
    as_each_user(|place| {
        place.make("elsewhere/key", "ELSEWHERE");
        place.make("elsewhere/other", "ANOTHER");
        let confinement = with_other(place);
        let waiting = Waiting::prepared(place, &confinement, READ);
        fs::rename(place.path("home/secret"), place.path("home/before")).unwrap();
        fs::rename(place.path("elsewhere"), place.path("home/secret")).unwrap();
        let output = waiting.execute(&confinement);
        assert_eq!(text(&output), "notesANOTHER", "{}", errors(&output));
        assert!(errors(&output).contains("key: Permission denied"), "{}", errors(&output));
    });
}

#[test]
fn other_rights_than_were_announced_hold() {
    as_each_user(|place| {
        let announced = with_other(place);
        let mut ordered = announced.clone();
        ordered.rights.hidden = vec![place.path("home").into()];
        ordered.rights.write.clear();
        let script = &format!("{READ}; echo more > new");
        let output = Waiting::prepared(place, &announced, script).execute(&ordered);
        assert_eq!(text(&output), "", "{}", errors(&output));
        assert!(errors(&output).contains("new: "), "{}", errors(&output));
        assert!(!place.path("project/new").exists());
        let output = Waiting::prepared(place, &ordered, READ).execute(&announced);
        assert_eq!(text(&output), "notesOTHER", "{}", errors(&output));
    });
}

#[test]
fn whoever_it_was_announced_for_it_is_not_for_another() {
    as_each_user(|place| {
        if place.user().is_some() {
            // Only root becomes somebody else.
            return;
        }
        if !nix::unistd::geteuid().is_root() {
            return eprintln!("skipped: to become another user (needs root)");
        }
        let somebody = Identity { uid: 12345, gid: 12345 };
        let announced = Confinement { identity: Some(somebody), ..order(place) };
        let another = Confinement { identity: Some(Identity { uid: 12346, gid: 12346 }), ..order(place) };
        for ordered in [order(place), another] {
            let output = Waiting::prepared(place, &announced, "id -u").execute(&ordered);
            assert_eq!(output.status.code(), Some(Stage::Identity.code().into()), "{}", errors(&output));
        }
        let output = Waiting::prepared(place, &announced, "id -u").execute(&announced);
        assert_eq!(text(&output), "12345\n", "{}", errors(&output));
        let output = Waiting::prepared(place, &order(place), "id -u").execute(&announced);
        assert_eq!(text(&output), "12345\n", "{}", errors(&output));
    });
}

#[test]
fn without_an_order_it_ends_by_itself() {
    as_each_user(|place| {
        let waiting = Waiting::prepared(place, &order(place), "echo started");
        drop(waiting.orders);
        let output = waiting.child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(Stage::Rights.code().into()));
        assert_eq!(text(&output), "");
    });
}
