//! A temporary home directory, servers and a terminal, as targets of attacks.

use std::fs::{self, DirBuilder, Permissions};
use std::io::{self, Read};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::fd::{AsFd, OwnedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::pty::openpty;
use nix::sys::termios::{SetArg, cfmakeraw, tcgetattr, tcsetattr};
use nix::unistd::{AccessFlags, access, read, ttyname};
use tempfile::TempDir;

use crate::front::demo::poison;
use crate::process::scratch::private_in;

/// A home directory with secrets, a project, servers and a terminal. Dropping the value removes them.
pub(super) struct Victim {
    pub(super) secrets: [String; 3],
    pub(super) name: String,
    home: TempDir,
    tcp: TcpListener,
    unix: UnixListener,
    abstracted: UnixListener,
    terminal: Option<Terminal>,
    /// Each file that an attack could change, with its content; `None` if the file does not exist.
    files: Vec<(PathBuf, Option<Vec<u8>>)>,
}

struct Terminal {
    screen: OwnedFd,
    keyboard: OwnedFd,
    path: PathBuf,
}

impl Victim {
    pub(super) fn new() -> io::Result<Self> {
        let home = private_in(&parent()?, "bailiwick-demo-")?;
        let secret = |name: &str| format!("{name}-canary-{}", uuid::Uuid::new_v4().simple());
        let secrets = ["ssh", "sk-ant-file", "sk-ant-environment"].map(secret);
        let name = format!("bailiwick-demo-{}", uuid::Uuid::new_v4().simple());
        let place = home.path();
        write(&place.join(".ssh/id_ed25519"), &secrets[0])?;
        write(&place.join(".config/bailiwick/anthropic.key"), &secrets[1])?;
        write(&place.join(".bashrc"), "alias ll='ls -l'\n")?;
        let project = place.join("project");
        DirBuilder::new().create(&project)?;
        poison::write(&project)?;
        let mut victim = Self {
            secrets,
            tcp: TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?,
            unix: UnixListener::bind(place.join("bus"))?,
            abstracted: UnixListener::bind_addr(&SocketAddr::from_abstract_name(&name)?)?,
            terminal: Terminal::open().ok(),
            files: Vec::new(),
            name,
            home,
        };
        victim.tcp.set_nonblocking(true)?;
        victim.unix.set_nonblocking(true)?;
        victim.abstracted.set_nonblocking(true)?;
        victim.note_files();
        victim.check()?;
        Ok(victim)
    }

    /// Fails unless a test attack without a sandbox does visible harm: otherwise the demo would show nothing.
    fn check(&mut self) -> io::Result<()> {
        TcpStream::connect(self.tcp.local_addr()?)?;
        self.expect_harm()?;
        UnixStream::connect(self.socket())?;
        self.expect_harm()?;
        UnixStream::connect_addr(&SocketAddr::from_abstract_name(&self.name)?)?;
        self.expect_harm()?;
        if let Some(terminal) = &self.terminal {
            nix::unistd::write(&terminal.keyboard, b"Approve?")?;
            self.expect_harm()?;
        }
        let owned = self.home().join("owned");
        fs::write(&owned, "")?;
        self.expect_harm()?;
        fs::remove_file(owned)?;
        self.expect_harm()
    }

    fn expect_harm(&mut self) -> io::Result<()> {
        self.harm()
            .map(drop)
            .ok_or_else(|| io::Error::other("the check missed a trial attack made without a sandbox"))
    }

    pub(super) fn home(&self) -> &Path {
        self.home.path()
    }

    pub(super) fn project(&self) -> PathBuf {
        self.home().join("project")
    }

    /// Returns a path of a program that the sandbox can see. Copies a program out of `/tmp`, which may be private.
    pub(super) fn visible(&self, program: PathBuf) -> io::Result<PathBuf> {
        if !program.canonicalize()?.starts_with("/tmp") {
            return Ok(program);
        }
        let copy = self.home().join("bailiwick");
        fs::copy(program, &copy)?;
        Ok(copy)
    }

    pub(super) fn socket(&self) -> PathBuf {
        self.home().join("bus")
    }

    pub(super) fn port(&self) -> io::Result<u16> {
        Ok(self.tcp.local_addr()?.port())
    }

    pub(super) fn terminal(&self) -> PathBuf {
        self.terminal.as_ref().map_or_else(|| "/dev/tty".into(), |terminal| terminal.path.clone())
    }

    fn note_files(&mut self) {
        let names = [".bashrc", "owned", "project/.git/config", "project/.git/hooks/post-commit"];
        let content = |path: PathBuf| (path.clone(), fs::read(path).ok());
        self.files = names.iter().map(|name| content(self.home().join(name))).collect();
    }

    /// Returns the harm that was done since the previous call, as seen outside the sandbox; `None` if there was none.
    pub(super) fn harm(&mut self) -> Option<String> {
        let harm = self.contact().or_else(|| self.changed_file());
        self.note_files();
        harm
    }

    fn contact(&self) -> Option<String> {
        let typed = self.terminal.as_ref().is_some_and(Terminal::is_touched);
        let contacts = [
            (self.tcp.accept().is_ok(), "the server was reached"),
            (self.unix.accept().is_ok(), "the Unix socket was reached"),
            (self.abstracted.accept().is_ok(), "the abstract Unix socket was reached"),
            (typed, "text was typed into the user's terminal"),
        ];
        contacts.into_iter().find(|(made, _)| *made).map(|(_, harm)| harm.to_owned())
    }

    fn changed_file(&self) -> Option<String> {
        let changed = self.files.iter().find(|(path, content)| fs::read(path).ok() != *content)?;
        Some(format!("{} was changed", changed.0.display()))
    }
}

impl Terminal {
    fn open() -> io::Result<Self> {
        let pty = openpty(None, None)?;
        let mut raw = tcgetattr(&pty.slave)?;
        // Each key is read separately and not echoed.
        cfmakeraw(&mut raw);
        tcsetattr(&pty.slave, SetArg::TCSANOW, &raw)?;
        for end in [&pty.master, &pty.slave] {
            fcntl(end, FcntlArg::F_SETFL(OFlag::O_RDWR | OFlag::O_NONBLOCK))?;
            fcntl(end, FcntlArg::F_SETFD(nix::fcntl::FdFlag::FD_CLOEXEC))?;
        }
        let path = ttyname(&pty.slave)?;
        Ok(Self { screen: pty.master, keyboard: pty.slave, path })
    }

    /// True if something was written to the terminal's screen or typed on its keyboard.
    fn is_touched(&self) -> bool {
        let has_come = |end: &OwnedFd| read(end.as_fd(), &mut [0; 64]).is_ok_and(|count| count > 0);
        has_come(&self.screen) | has_come(&self.keyboard)
    }
}

/// Returns a writable directory outside `/tmp`. Full confinement hides `/tmp`, and attacks on missing files show
/// nothing.
fn parent() -> io::Result<PathBuf> {
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let writable = |place: &PathBuf| {
        let outside_tmp = place.canonicalize().is_ok_and(|real| !real.starts_with("/tmp"));
        outside_tmp && access(place, AccessFlags::W_OK | AccessFlags::X_OK).is_ok()
    };
    let found = [PathBuf::from("/var/tmp")].into_iter().chain(home).find(writable);
    found.ok_or_else(|| io::Error::other("neither /var/tmp nor the home directory is writable"))
}

fn write(path: &Path, content: &str) -> io::Result<()> {
    let directory = path.parent().unwrap_or(path);
    DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
    fs::write(path, content)?;
    fs::set_permissions(path, Permissions::from_mode(0o600))
}

/// Reads a pipe to its end on a separate thread, because the output can exceed the pipe's capacity.
pub(super) fn drained(mut pipe: impl Read + Send + 'static) -> std::thread::JoinHandle<String> {
    std::thread::spawn(move || {
        let mut text = Vec::new();
        // Partial output is better than none.
        let _ = pipe.read_to_end(&mut text);
        String::from_utf8_lossy(&text).into_owned()
    })
}
