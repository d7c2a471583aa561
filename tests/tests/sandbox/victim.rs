//! What is attacked: files beside the project, a process, a terminal, sockets of the host. Harm is judged from here.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader};
use std::net::{TcpListener, UdpSocket};
use std::os::fd::{AsFd, OwnedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

use nix::pty::openpty;
use nix::sys::socket::{AddressFamily, Backlog, SockFlag, SockType, UnixAddr, bind, listen, socket};
use nix::unistd::ttyname;
use tests::probe::victim::SECRET;
use tests::{Programs, World, alive};

/// What one attack is made against; a fresh one for each.
pub(crate) struct Victim {
    outside: PathBuf,
    pid: u32,
    address: String,
    handle: String,
    terminal: PathBuf,
    sockets: Sockets,
    before: Snapshot,
    child: Child,
    _pty: (OwnedFd, OwnedFd),
}

type Snapshot = BTreeMap<PathBuf, String>;

impl Victim {
    pub(crate) fn new(world: &World) -> Self {
        let outside = world.root().join("outside");
        let _ = fs::remove_dir_all(&outside);
        fill(world, &outside);
        let mut child = world.command(Programs::get().path("probe"));
        child.arg("victim").env("VICTIM_SECRET", SECRET).current_dir(&outside);
        let mut child = child.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let (address, handle) = line.trim().split_once(' ').unwrap();
        let pty = openpty(None, None).unwrap();
        let terminal = ttyname(pty.slave.as_fd()).unwrap();
        chown(&terminal, Some(world.user().uid()), None).unwrap();
        let sockets = Sockets::new(&outside);
        let before = snapshot(&outside);
        Self {
            pid: child.id(),
            address: address.to_owned(),
            handle: handle.to_owned(),
            terminal,
            sockets,
            before,
            outside,
            child,
            _pty: (pty.master, pty.slave),
        }
    }

    /// Puts names of this victim into an act.
    pub(crate) fn aim(&self, act: &str, world: &World) -> Vec<String> {
        let aimed = |word: &str| {
            word.replace("{o}", self.outside.to_str().unwrap())
                .replace("{p}", world.project().to_str().unwrap())
                .replace("{v}", &self.pid.to_string())
                .replace("{a}", &self.address)
                .replace("{fd}", &self.handle)
                .replace("{tty}", self.terminal.to_str().unwrap())
                .replace("{tcp4}", &self.sockets.tcp4.local_addr().unwrap().to_string())
                .replace("{tcp6}", &self.sockets.tcp6.local_addr().unwrap().to_string())
                .replace("{port}", &self.sockets.tcp4.local_addr().unwrap().port().to_string())
                .replace("{udp}", &self.sockets.udp.local_addr().unwrap().to_string())
                .replace("{uid}", &world.user().uid().to_string())
                .replace("{abstract}", &self.sockets.name)
        };
        act.split(' ').map(aimed).collect()
    }

    /// What harm there is, if any; `said` is what the adversary printed.
    pub(crate) fn harm(&self, said: &str) -> Option<String> {
        let after = snapshot(&self.outside);
        let differs = |path: &&PathBuf| self.before.get(*path) != after.get(*path);
        if let Some(path) = self.before.keys().chain(after.keys()).find(differs) {
            return Some(format!("{} changed: {:?}", path.display(), after.get(path)));
        }
        if said.contains(SECRET) {
            return Some("the secret was read".to_owned());
        }
        if !alive(self.pid) {
            return Some("the victim was ended".to_owned());
        }
        self.sockets.received().map(|what| format!("{what} was reached"))
    }
}

impl Drop for Victim {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn fill(world: &World, outside: &Path) {
    fs::create_dir_all(outside.join("dir")).unwrap();
    fs::create_dir_all(outside.join("empty")).unwrap();
    for (name, content) in [("file", "kept"), ("dir/inner", "kept"), ("hidden", SECRET)] {
        fs::write(outside.join(name), content).unwrap();
        fs::set_permissions(outside.join(name), fs::Permissions::from_mode(0o600)).unwrap();
    }
    for name in ["", "dir", "empty", "file", "dir/inner", "hidden"] {
        world.give(&outside.join(name));
    }
    // What the adversary prepared in the project, where it may write.
    for name in ["link", "dirlink", "mine", "hiddenlink", "taken", "moved"] {
        let path = world.project().join(name);
        let _ = fs::remove_file(&path).or_else(|_| fs::remove_dir_all(&path));
    }
    fs::write(world.project().join("mine"), "mine").unwrap();
    world.give(&world.project().join("mine"));
    symlink(outside.join("file"), world.project().join("link")).unwrap();
    symlink(outside.join("dir"), world.project().join("dirlink")).unwrap();
    symlink(outside.join("hidden"), world.project().join("hiddenlink")).unwrap();
}

/// Everything about a tree that an adversary could change, but the times of access.
fn snapshot(root: &Path) -> Snapshot {
    let mut found = Snapshot::new();
    let mut open = vec![root.to_owned()];
    while let Some(path) = open.pop() {
        let meta = fs::symlink_metadata(&path).unwrap();
        let content = if meta.is_file() { fs::read(&path).unwrap() } else { vec![] };
        let content = String::from_utf8_lossy(&content).into_owned();
        if meta.is_dir() {
            open.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        }
        let facts = (meta.mode(), meta.uid(), meta.gid(), meta.nlink(), meta.mtime(), meta.ctime_nsec());
        found.insert(path, format!("{facts:?} {content}"));
    }
    found
}

struct Sockets {
    tcp4: TcpListener,
    tcp6: TcpListener,
    udp: UdpSocket,
    stream: UnixListener,
    datagram: UnixDatagram,
    packets: OwnedFd,
    name: String,
    abstract_stream: UnixListener,
    abstract_datagram: UnixDatagram,
}

impl Sockets {
    fn new(outside: &Path) -> Self {
        let name = format!("bailiwick-victim-{}", uniquely());
        let packets =
            socket(AddressFamily::Unix, SockType::SeqPacket, SockFlag::SOCK_NONBLOCK, None).unwrap();
        bind(std::os::fd::AsRawFd::as_raw_fd(&packets), &UnixAddr::new(&outside.join("packets")).unwrap())
            .unwrap();
        listen(&packets, Backlog::new(8).unwrap()).unwrap();
        let stream_name = SocketAddr::from_abstract_name(&name).unwrap();
        let datagram_name = SocketAddr::from_abstract_name(format!("{name}-d")).unwrap();
        let sockets = Self {
            tcp4: TcpListener::bind("127.0.0.1:0").unwrap(),
            tcp6: TcpListener::bind("[::1]:0").unwrap(),
            udp: UdpSocket::bind("127.0.0.1:0").unwrap(),
            stream: UnixListener::bind(outside.join("stream")).unwrap(),
            datagram: UnixDatagram::bind(outside.join("datagram")).unwrap(),
            packets,
            abstract_stream: UnixListener::bind_addr(&stream_name).unwrap(),
            abstract_datagram: UnixDatagram::bind_addr(&datagram_name).unwrap(),
            name,
        };
        for name in ["stream", "datagram", "packets"] {
            fs::set_permissions(outside.join(name), fs::Permissions::from_mode(0o777)).unwrap();
        }
        sockets.tcp4.set_nonblocking(true).unwrap();
        sockets.tcp6.set_nonblocking(true).unwrap();
        sockets.udp.set_nonblocking(true).unwrap();
        sockets.stream.set_nonblocking(true).unwrap();
        sockets.datagram.set_nonblocking(true).unwrap();
        sockets.abstract_stream.set_nonblocking(true).unwrap();
        sockets.abstract_datagram.set_nonblocking(true).unwrap();
        sockets
    }

    /// The first socket that somebody reached.
    fn received(&self) -> Option<&'static str> {
        let mut bytes = [0; 64];
        let packets = std::os::fd::AsRawFd::as_raw_fd(&self.packets);
        [
            ("TCP over IPv4", self.tcp4.accept().is_ok()),
            ("TCP over IPv6", self.tcp6.accept().is_ok()),
            ("UDP", self.udp.recv(&mut bytes).is_ok()),
            ("a unix stream socket", self.stream.accept().is_ok()),
            ("a unix datagram socket", self.datagram.recv(&mut bytes).is_ok()),
            ("a unix packet socket", nix::sys::socket::accept(packets).is_ok()),
            ("an abstract stream socket", self.abstract_stream.accept().is_ok()),
            ("an abstract datagram socket", self.abstract_datagram.recv(&mut bytes).is_ok()),
        ]
        .into_iter()
        .find_map(|(what, reached)| reached.then_some(what))
    }
}

fn uniquely() -> String {
    use std::sync::atomic::{AtomicU32, Ordering};
    static COUNT: AtomicU32 = AtomicU32::new(0);
    format!("{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed))
}
