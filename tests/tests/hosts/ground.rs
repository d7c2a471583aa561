//! Imitates a machine in a separate network namespace, with a link to the test's internet, and servers at both ends.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::UdpSocket;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use ipc::confinement::Tier;
use nix::unistd::geteuid;
use tests::process::Finished;
use tests::tier::{Places, share_of};
use tests::{User, World, wait_until};

const INSIDE: &str = "BAILIWICK_TEST_INTERNET";

/// Shell script that gives the machine a hosts file, a resolver in the test's internet, and no other source of names.
const MACHINE: &str = r#"
set -e
ip link set lo up
ip link add here type veth peer name there
ip link del here
mount -t tmpfs -o mode=755 none /mnt
touch /mnt/hosts
echo 'nameserver 203.0.113.53' > /mnt/resolv.conf
sed '/^hosts:/d' /etc/nsswitch.conf > /mnt/nsswitch.conf
echo 'hosts: files dns' >> /mnt/nsswitch.conf
touch /mnt/zone
for name in hosts resolv.conf nsswitch.conf; do mount --bind "/mnt/$name" "/etc/$name"; done
exec "$@"
"#;

/// Program of the servers. It also records the packets.
const SERVERS: &str = include_str!("servers.py");

/// The system's Python. Every user can execute it.
pub(crate) const PYTHON: &str = "/usr/bin/python3";

// Addresses of the machine, and of the hosts that the tests name.
pub(crate) const HERE: &str = "203.0.113.254";
pub(crate) const NAMES: &str = "127.0.0.1 localhost\n::1 localhost\n203.0.113.1 a.example\n203.0.113.2 b.example\n203.0.113.3 x.b.example\n\
    203.0.113.4 evil.example\n192.0.2.1 silent.example\n127.0.0.1 loopback.example\n::1 loopback6.example\n\
    0.0.0.0 any.example\n203.0.113.254 own.example\n10.7.7.7 private.example\n169.254.7.7 near.example\n\
    169.254.169.254 metadata.example\n198.19.0.1 inside.example\n::ffff:127.0.0.1 mapped.example\n";

/// Code of an established connection in `/proc/net/tcp` (proc(5)).
const ESTABLISHED: &str = "01";

/// Recorded packet: `tcp`, `udp` or `said`, then address and port, then the first bytes.
pub(crate) type Packet = String;

/// Runs the test named `test` on a separate machine, in each tier and as each user. Skips it if that is impossible.
pub(crate) fn on_a_machine(test: &str, body: impl Fn(&mut Ground)) {
    in_places(&[Tier::Full, Tier::Floor], |places| places, test, body);
}

/// Runs the test named `test`, which waits long, on a separate machine, in CI in a part of the places of
/// [`on_a_machine`].
pub(crate) fn on_a_machine_at_length(test: &str, body: impl Fn(&mut Ground)) {
    in_places(&[Tier::Full, Tier::Floor], |places| share_of(places, 0), test, body);
}

/// Runs the test named `test` on a separate machine, in the full tier only.
pub(crate) fn in_full(test: &str, body: impl Fn(&mut Ground)) {
    in_places(&[Tier::Full], |places| places, test, body);
}

fn in_places(tiers: &[Tier], choose: fn(Places) -> Places, test: &str, body: impl Fn(&mut Ground)) {
    if let Some(users) = std::env::var_os(INSIDE) {
        let users = if users == "all" { User::all() } else { vec![User::Myself] };
        let places = users.into_iter().flat_map(|user| tiers.iter().map(move |tier| (user, *tier)));
        for (user, tier) in choose(places.collect()) {
            body(&mut Ground::new(user, tier));
        }
        return;
    }
    let flags = if geteuid().is_root() { "-nm" } else { "-Urnm" };
    let users = if geteuid().is_root() { "all" } else { "myself" };
    let machine = |arguments: &[&str]| {
        let mut command = Command::new("unshare");
        command.args([flags, "sh", "-c", MACHINE, "sh"]).args(arguments).env(INSIDE, users);
        command
    };
    let possible = Finished::of(&mut machine(&[PYTHON, "-c", "pass"]));
    if possible.code != 0 {
        eprintln!("skipped: this machine makes no networks for this user: {}", possible.stderr.trim());
        return;
    }
    let me = std::env::current_exe().unwrap();
    let done = Finished::of(&mut machine(&[
        me.to_str().unwrap(),
        "--exact",
        test,
        "--nocapture",
        "--include-ignored",
    ]));
    let (said, errors) = (&done.stdout, &done.stderr);
    assert!(done.code == 0, "{said}{errors}");
    assert!(said.contains("1 passed"), "no such test: {said}");
    let is_told = |line: &&str| line.starts_with("skipped:") || line.starts_with("measured:");
    errors.lines().filter(is_told).for_each(|line| eprintln!("{line}"));
}

#[derive(Debug)]
pub(crate) struct Network {
    process: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    /// Address of the recording server.
    at: &'static str,
    markers: usize,
}

impl Network {
    /// Starts the servers of a network: those of the machine if `device` is `lo`, otherwise those of the internet.
    fn new(device: &str, directory: &Path, certificate: Option<&Path>, setup: &[&str]) -> Self {
        let is_outside = device != "lo";
        let mut command = Command::new(if is_outside { "unshare" } else { PYTHON });
        if is_outside {
            command.args(["-n", PYTHON]);
        }
        command.args(["-c", SERVERS, device]).arg(directory).arg(certificate.unwrap_or(Path::new("")));
        let mut process = command.args(setup).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let input = process.stdin.take().unwrap();
        let output = BufReader::new(process.stdout.take().unwrap());
        let at = if is_outside { "203.0.113.1" } else { "127.0.0.1" };
        let mut network = Self { process, input, output, at, markers: 0 };
        assert_eq!(network.hear(), "apart");
        network
    }

    fn open(&mut self) {
        self.tell("");
        assert_eq!(self.hear(), "ready");
    }

    fn tell(&mut self, line: &str) {
        writeln!(self.input, "{line}").unwrap();
    }

    fn hear(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        line.trim().to_owned()
    }

    /// Returns the packets that were recorded since the last call.
    pub(crate) fn take(&mut self) -> Vec<Packet> {
        self.markers += 1;
        let marker = self.markers.to_string();
        UdpSocket::bind("0.0.0.0:0").unwrap().send_to(marker.as_bytes(), (self.at, 1)).unwrap();
        self.tell(&marker);
        serde_json::from_str(&self.hear()).unwrap()
    }
}

impl Network {
    pub(crate) fn open_connections(&self) -> usize {
        let table = |name| fs::read_to_string(format!("/proc/{}/net/{name}", self.process.id())).unwrap();
        let is_open = |line: &&str| line.split_whitespace().nth(3) == Some(ESTABLISHED);
        [table("tcp"), table("tcp6")].iter().map(|table| table.lines().filter(is_open).count()).sum()
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Imitated machine with its networks, and the user whose agent acts on it.
pub(crate) struct Ground {
    pub(crate) world: World,
    pub(crate) tier: Tier,
    pub(crate) outside: Network,
    /// Loopback network of the machine, with servers that no agent may reach.
    pub(crate) machine: Network,
}

/// True for a packet between a program in the floor tier and its broker. The kernel chooses the port of that connection
/// on 127.0.0.1; the ports of the machine's servers are lower.
fn is_between_ours(packet: &Packet) -> bool {
    let to = packet.split(' ').nth(1).and_then(|to| to.strip_prefix("127.0.0.1:"));
    to.and_then(|port| port.parse().ok()).is_some_and(|port: u16| port >= 10_000)
}

/// Defines the addresses of names: in the machine's hosts file for the full tier, else in the resolver of the internet.
fn name(tier: Tier, names: &str) {
    let [hosts, zone] = if tier == Tier::Full { [names, ""] } else { ["127.0.0.1 localhost\n", names] };
    fs::write("/etc/hosts", hosts).unwrap();
    fs::write("/mnt/zone", zone).unwrap();
}

fn ip(words: &str) {
    let done = Finished::of(Command::new("ip").args(words.split(' ')));
    assert!(done.code == 0 || words.starts_with("-6"), "ip {words}: {}", done.stderr);
}

impl Ground {
    fn new(user: User, tier: Tier) -> Self {
        let world = World::new(user).in_tier(tier);
        name(tier, NAMES);
        let certificate = certificate(world.root());
        let mut outside = Network::new(
            "there",
            world.root(),
            certificate.as_deref(),
            &[
                "link set lo up",
                "link set there up",
                "addr add 203.0.113.1/24 dev there",
                "addr add 203.0.113.53/24 dev there",
                "route add blackhole 192.0.2.0/24",
                // These addresses are local in this namespace. The address of the machine is not among them.
                "route add local 203.0.113.0/25 dev lo",
                "route add local 0.0.0.0/0 dev lo",
                "-6 addr add 2001:db8::1/64 dev there nodad",
                "-6 route add local ::/0 dev lo",
            ],
        );
        ip(&format!("link add here type veth peer name there netns {}", outside.process.id()));
        ip(&format!("addr add {HERE}/24 dev here"));
        ip("link set here up");
        ip("-6 addr add 2001:db8::2/64 dev here nodad");
        outside.open();
        ip("route replace default via 203.0.113.1");
        ip("addr replace 169.254.169.254/32 dev lo");
        let mut machine = Network::new("lo", world.root(), certificate.as_deref(), &[]);
        machine.open();
        let mut ground = Self { world, tier, outside, machine };
        // The servers look their own names up.
        ground.take();
        ground
    }

    /// Returns the packets that were recorded in both networks since the last call.
    pub(crate) fn take(&mut self) -> Vec<Packet> {
        let mut packets = self.outside.take();
        packets.extend(self.machine.take().into_iter().filter(|packet| !is_between_ours(packet)));
        packets
    }

    /// Defines the addresses of names, each line as in a hosts file.
    pub(crate) fn name(&self, names: &str) {
        name(self.tier, names);
    }

    /// Runs a shell command that may reach these hosts.
    pub(crate) fn run(&self, hosts: &str, command: &str) -> Finished {
        Finished::of(self.world.sandbox(self.tier, &["--net", hosts], "bash").args(["-c", command]))
    }

    /// Runs a Python script that may reach these hosts.
    pub(crate) fn python(&self, hosts: &str, script: &str) -> Finished {
        self.python_with(&["--net", hosts], script)
    }

    pub(crate) fn python_with(&self, flags: &[&str], script: &str) -> Finished {
        let mut command = self.world.sandbox(self.tier, flags, PYTHON);
        Finished::of(command.args(["-c", &format!("{PRELUDE}{script}")]))
    }

    pub(crate) fn unconfined(&self, script: &str) -> Finished {
        Finished::of(self.world.command(PYTHON).args(["-c", &format!("{PRELUDE}{script}")]))
    }

    /// Starts a Python script that may reach these hosts, with pipes to the test.
    pub(crate) fn start(&self, hosts: &str, script: &str) -> Conversation {
        let mut command = self.world.sandbox(self.tier, &["--net", hosts], PYTHON);
        command.args(["-c", &format!("{PRELUDE}{script}")]);
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        Conversation { child, output }
    }
}

impl Drop for Ground {
    fn drop(&mut self) {
        let (outside, machine) = (&mut self.outside.process, &mut self.machine.process);
        for process in [outside, machine] {
            let _ = process.kill();
            let _ = process.wait();
        }
        // The kernel removes the link with the other network namespace, which may take a moment.
        wait_until("the cable is gone", || !Path::new("/proc/sys/net/ipv4/conf/here").exists());
    }
}

pub(crate) struct Conversation {
    pub(crate) child: Child,
    output: BufReader<ChildStdout>,
}

impl Conversation {
    pub(crate) fn tell(&mut self, line: &str) {
        writeln!(self.child.stdin.as_mut().unwrap(), "{line}").unwrap();
    }

    pub(crate) fn hear(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        line.trim().to_owned()
    }

    /// Waits for the end of the script, and returns its remaining output.
    pub(crate) fn finish(mut self) -> Finished {
        drop(self.child.stdin.take());
        let mut rest = String::new();
        self.output.read_to_string(&mut rest).unwrap();
        let done = Finished::from(self.child.wait_with_output().unwrap());
        Finished { stdout: rest, ..done }
    }
}

/// Creates a certificate and its key with openssl. `None` without openssl.
fn certificate(directory: &Path) -> Option<std::path::PathBuf> {
    let path = directory.join("certificate.pem");
    let mut openssl = Command::new("openssl");
    openssl.args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]);
    openssl.args(["-subj", "/CN=a.example", "-addext", "subjectAltName=DNS:a.example", "-days", "2"]);
    openssl.arg("-keyout").arg(&path).arg("-out").arg(directory.join("half.pem"));
    let made = openssl.stderr(Stdio::null()).status().is_ok_and(|status| status.success());
    if !made {
        eprintln!("skipped: no openssl on this machine");
        return None;
    }
    let half = fs::read(directory.join("half.pem")).unwrap();
    fs::OpenOptions::new().append(true).open(&path).unwrap().write_all(&half).unwrap();
    Some(path)
}

/// Python functions for the scripts. Each prints its result, or the name of its error.
pub(crate) const PRELUDE: &str = r"import array, asyncio, errno, os, socket as s, ssl, struct, subprocess, sys, time, urllib.request
LAX = ssl._create_unverified_context()
def say(act):
    try: print(act(), flush=True)
    except s.gaierror as e: print({-2: 'no such name', -5: 'no address', -3: 'failed'}.get(e.errno, e), flush=True)
    except urllib.error.URLError as e: print(e.reason, flush=True)
    except ssl.SSLError as e: print('TLS', e.reason, flush=True)
    except TimeoutError: print('timeout', flush=True)
    except OSError as e: print(errno.errorcode.get(e.errno, e), flush=True)
    except EOFError: print('end', flush=True)
def open_to(host, port, wait=15):
    return s.create_connection((host, port), wait)
def exchange(c, *parts):
    got = b''
    for part in parts:
        c.sendall(part)
        piece = c.recv(1 << 16)
        if not piece: raise EOFError
        got += piece
    return got
def tcp(host, port, *parts):
    say(lambda: exchange(open_to(host, port), *parts))
def tls(host, sni, path='/', port=443):
    request = f'GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n'.encode()
    say(lambda: exchange(LAX.wrap_socket(open_to(host, port), server_hostname=sni), request))
def http(path, host, more=''):
    return f'GET {path} HTTP/1.1\r\nHost: {host}\r\n{more}\r\n'.encode()
def udp(host, port, data=b'datagram'):
    def send():
        family, _, _, _, to = s.getaddrinfo(host, port, type=s.SOCK_DGRAM)[0]
        return s.socket(family, s.SOCK_DGRAM).sendto(data, to)
    say(send)
def question(text):
    name = b''.join(bytes([len(l)]) + l.encode() for l in text.split('.')) + b'\0'
    return struct.pack('>6H', 7, 0x100, 1, 0, 0, 0) + name + struct.pack('>2H', 1, 1)
def look_up(name):
    say(lambda: s.gethostbyname(name))
def fetch(url):
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=LAX))
    say(lambda: opener.open(url, timeout=15).read().decode().strip())
";
