//! The targets of attacks: files outside of the project and in the home, a process, a terminal, sockets, and other
//! objects of the host. Their state shows if an attack has done harm.

mod files;
mod sockets;

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::pty::openpty;
use nix::unistd::ttyname;
use tests::probe::ipc::Objects;
use tests::probe::victim::{SECRET, facts};
use tests::{Programs, World, alive};

use files::{SIZE, Snapshot, fill, snapshot};
use sockets::Sockets;

/// All targets of attacks in a world.
pub(crate) struct Victim {
    outside: PathBuf,
    watched: Vec<PathBuf>,
    pid: u32,
    address: String,
    handle: String,
    terminal: PathBuf,
    name: String,
    sockets: Sockets,
    objects: Objects,
    before: Snapshot,
    facts: String,
    child: Child,
    master: fs::File,
    _slave: OwnedFd,
}

impl Victim {
    pub(crate) fn new(world: &World) -> Self {
        let name = uniquely();
        let outside = world.root().join("outside");
        let watched = vec![outside.clone(), world.home()];
        let shared = ["/dev/shm", "/tmp"].map(|place| Path::new(place).join(&name));
        fill(world, &outside, &shared);
        use_up_low_pids();
        let mut child = world.command(Programs::get().path("probe"));
        // The secret is also an argument, since all processes can read a command line.
        child.args(["victim", SECRET]).env("VICTIM_SECRET", SECRET).current_dir(&outside).process_group(0);
        let mut child = child.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let (address, handle) = line.trim().split_once(' ').unwrap();
        let pty = openpty(None, None).unwrap();
        let terminal = ttyname(pty.slave.as_fd()).unwrap();
        chown(&terminal, Some(world.user().uid()), None).unwrap();
        fcntl(&pty.master, FcntlArg::F_SETFL(OFlag::O_NONBLOCK)).unwrap();
        let sockets = Sockets::new(&outside, &name);
        let watched: Vec<_> = watched.into_iter().chain(shared).collect();
        Self {
            pid: child.id(),
            address: address.to_owned(),
            handle: handle.to_owned(),
            terminal,
            sockets,
            objects: Objects::new(&name, world.user().uid()).unwrap(),
            before: snapshot(&watched),
            facts: facts(child.id()),
            watched,
            name,
            outside,
            child,
            master: pty.master.into(),
            _slave: pty.slave,
        }
    }

    pub(crate) fn aim(&self, act: &str, world: &World) -> Vec<String> {
        let (uid, gid) = (world.user().uid().to_string(), world.user().gid().to_string());
        let [home, project] = [world.home(), world.project()].map(|path| path.display().to_string());
        let names = [
            ("{o}", self.outside.to_str().unwrap()),
            ("{p}", &project),
            ("{h}", &home),
            ("{v}", &self.pid.to_string()),
            ("{a}", &self.address),
            ("{fd}", &self.handle),
            ("{tty}", self.terminal.to_str().unwrap()),
            ("{uid}", &uid),
            ("{gid}", &gid),
            ("{name}", &self.name),
            ("{shm}", &self.objects.segment.to_string()),
            ("{msg}", &self.objects.messages.to_string()),
            ("{sem}", &self.objects.semaphore.to_string()),
        ];
        let names = names.map(|(name, value)| (name, value.to_owned())).into_iter();
        let names: Vec<_> = names.chain(self.sockets.names()).collect();
        let aimed =
            |word: &str| names.iter().fold(word.to_owned(), |word, (name, value)| word.replace(name, value));
        act.split(' ').map(aimed).collect()
    }

    /// Returns the paths of the victim's hidden files.
    pub(crate) fn hidden(world: &World) -> [PathBuf; 3] {
        ["hidden", "hidden-sized", "vault"].map(|name| world.root().join("outside").join(name))
    }

    /// Returns the flags that hide the victim's hidden files.
    pub(crate) fn hide(world: &World) -> Vec<String> {
        Self::hidden(world)
            .iter()
            .flat_map(|path| ["--hide".to_owned(), path.display().to_string()])
            .collect()
    }

    /// Returns the harm that an attack has done. `None` if it has done none. `said` is the attacker's output.
    pub(crate) fn harm(&self, said: &str) -> Option<String> {
        let after = snapshot(&self.watched);
        let differs = |path: &&PathBuf| self.before.get(*path) != after.get(*path);
        if let Some(path) = self.before.keys().chain(after.keys()).find(differs) {
            return Some(format!("{} changed: {:?}", path.display(), after.get(path)));
        }
        if said.contains(SECRET) || said.contains(SIZE) {
            return Some("the secret was read".to_owned());
        }
        if !alive(self.pid) {
            return Some("the victim was ended".to_owned());
        }
        if facts(self.pid) != self.facts {
            return Some(format!("the victim was changed: {}", facts(self.pid)));
        }
        let mut typed = [0; 64];
        if (&self.master).read(&mut typed).is_ok() {
            return Some("the user's terminal was changed".to_owned());
        }
        self.objects.harm().or_else(|| self.sockets.received()).map(str::to_owned)
    }
}

/// Starts processes until new pids exceed those in an attacker's own pid namespace. Otherwise the victim's pid could be
/// that of one of the attacker's own processes there, and the attacker may signal those. That happened on a machine
/// that had just started.
fn use_up_low_pids() {
    const BEYOND: u32 = 1500;
    loop {
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let pid = child.id();
        child.wait().unwrap();
        if pid > BEYOND {
            return;
        }
    }
}

impl Drop for Victim {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        for place in ["/dev/shm", "/tmp"].map(Path::new) {
            let _ = fs::remove_file(place.join(&self.name));
            let _ = fs::remove_file(place.join(format!("{}-new", self.name)));
        }
    }
}

fn uniquely() -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    format!("bailiwick-victim-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed))
}
