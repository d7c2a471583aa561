use std::fs::{self, File};
use std::io::Write;
use std::process::{Child, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use ipc::confinement::Confinement;
use nix::fcntl::OFlag;
use nix::unistd::pipe2;

use super::order::{encoded, pass};
use super::place::Place;

pub(crate) struct Waiting {
    child: Child,
    orders: File,
}

impl Waiting {
    pub(crate) fn start(place: &Place, script: &str) -> Self {
        let (orders_read, ours) = pipe2(OFlag::O_CLOEXEC).unwrap();
        let mut command = place.command(place.path("sandbox-exec"));
        command.args(["--rights-fd", "20", "--", "/bin/bash", "-c", script]);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        pass(&mut command, orders_read, 20);
        let child = command.spawn().unwrap();
        drop(command);
        let waiting = Self { child, orders: ours.into() };
        waiting.until_it_waits();
        waiting
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    fn until_it_waits(&self) {
        let patience = Instant::now() + Duration::from_mins(1);
        let waits = || {
            let call = fs::read_to_string(format!("/proc/{}/syscall", self.child.id())).unwrap_or_default();
            let comm = fs::read_to_string(format!("/proc/{}/comm", self.child.id())).unwrap();
            let stat = fs::read_to_string(format!("/proc/{}/stat", self.child.id())).unwrap();
            let sleeps = stat.rsplit_once(") ").unwrap().1.starts_with('S');
            // A plain user may not see the call of a process that is not dumpable.
            comm == "sandbox-exec\n" && sleeps && (call.is_empty() || call.starts_with("0 0x14 "))
        };
        while !waits() {
            assert!(Instant::now() < patience, "it does not wait");
            thread::sleep(Duration::from_millis(5));
        }
    }

    pub(crate) fn open(&self) -> Option<Vec<String>> {
        let directory = fs::read_dir(format!("/proc/{}/fd", self.child.id())).ok()?;
        let links = directory.filter_map(|entry| fs::read_link(entry.unwrap().path()).ok());
        Some(links.map(|path| path.to_string_lossy().into_owned()).collect())
    }

    pub(crate) fn execute(mut self, confinement: &Confinement) -> Output {
        self.orders.write_all(&encoded(confinement)).unwrap();
        drop(self.orders);
        self.child.wait_with_output().unwrap()
    }

    pub(crate) fn without_order(self) -> Output {
        drop(self.orders);
        self.child.wait_with_output().unwrap()
    }
}
