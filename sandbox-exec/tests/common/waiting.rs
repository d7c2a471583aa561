//! A sandbox-exec that waits for its order.

use std::fs::{self, File};
use std::io::Write;
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use ipc::confinement::{BrokerReport, Confinement, Order};
use ipc::id::Generation;
use ipc::pipe::Incoming;
use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::libc;
use nix::unistd::pipe2;

use super::order::frames;
use super::place::Place;

/// A sandbox-exec that was told what will be ordered, and has looked that up.
pub(crate) struct Waiting {
    child: Child,
    orders: File,
    reports: File,
}

impl Waiting {
    pub(crate) fn prepared(place: &Place, likely: &Confinement, script: &str) -> Self {
        Self::announced(place, likely, None, script)
    }

    /// The same; `instead` is why that is the floor.
    pub(crate) fn announced(
        place: &Place,
        likely: &Confinement,
        instead: Option<&str>,
        script: &str,
    ) -> Self {
        let [(orders_read, ours), (reports, status)] =
            [pipe2(OFlag::O_CLOEXEC).unwrap(), pipe2(OFlag::O_CLOEXEC).unwrap()];
        let mut command = place.command(place.path("sandbox-exec"));
        command.args(["--rights-fd", "20", "--status-fd", "21", "--", "/bin/bash", "-c", script]);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        // SAFETY: dup2 is async-signal-safe; the descriptors live until the command is dropped.
        unsafe {
            command.pre_exec(move || {
                for (descriptor, number) in [(&orders_read, 20), (&status, 21)] {
                    Errno::result(libc::dup2(descriptor.as_raw_fd(), number))?;
                }
                Ok(())
            });
        }
        let child = command.spawn().unwrap();
        drop(command);
        let mut orders = File::from(ours);
        let likely = Box::new(likely.clone());
        orders.write_all(&frames(&[Order::Prepare { likely, instead: instead.map(Into::into) }])).unwrap();
        let waiting = Self { child, orders, reports: reports.into() };
        waiting.until_it_waits();
        waiting
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The child that it has forked, if it has.
    pub(crate) fn program(&self) -> Option<u32> {
        let pid = self.child.id();
        let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap();
        children.trim().parse().ok()
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
    pub(crate) fn open(&self) -> Option<Vec<String>> {
        let directory = fs::read_dir(format!("/proc/{}/fd", self.child.id())).ok()?;
        let links = directory.filter_map(|entry| fs::read_link(entry.unwrap().path()).ok());
        Some(links.map(|path| path.to_string_lossy().into_owned()).collect())
    }

    pub(crate) fn execute(self, confinement: &Confinement) -> Output {
        self.execute_and_report(confinement).0
    }

    /// The same, and what was reported.
    pub(crate) fn execute_and_report(mut self, confinement: &Confinement) -> (Output, Vec<BrokerReport>) {
        let order = Order::Execute { confinement: Box::new(confinement.clone()), arguments: vec![] };
        self.orders.write_all(&frames(&[order])).unwrap();
        drop(self.orders);
        let output = self.child.wait_with_output().unwrap();
        let mut incoming = Incoming::<_, BrokerReport>::new(self.reports, Generation(0));
        (output, std::iter::from_fn(|| incoming.receive().unwrap()).collect())
    }

    /// Its end, when nobody orders anything.
    pub(crate) fn without_order(self) -> Output {
        drop(self.orders);
        self.child.wait_with_output().unwrap()
    }
}
