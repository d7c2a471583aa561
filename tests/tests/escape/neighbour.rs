//! Tests what another machine on the network observes: packets that leave the sandbox, and services in it.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::time::{Duration, Instant};

use ipc::confinement::Tier;
use memchr::memmem;
use nix::libc::{self, EACCES, EPERM};
use nix::sched::{CloneFlags, unshare};
use nix::unistd::{geteuid, gettid};
use tests::{Finished, Programs, User, World, skip, tier};

use crate::attack::Tried;

/// Addresses of the machine on which the sandbox runs.
const OWN: [&str; 2] = ["10.77.0.1", "fd77::1"];

type Job = Box<dyn FnOnce() + Send>;

/// The other machine: a thread in a separate network namespace. It acts on request.
struct Neighbour {
    jobs: Sender<Job>,
    sniffer: OwnedFd,
}

impl Neighbour {
    /// Connects this thread's network namespace, which must be new, with that of the other machine.
    fn new(world: &World) -> Self {
        let (jobs, work) = channel::<Job>();
        let (tell, told) = channel();
        std::thread::spawn(move || {
            unshare(CloneFlags::CLONE_NEWNET).unwrap();
            tell.send(gettid()).unwrap();
            for job in work {
                job();
            }
        });
        let thread = told.recv().unwrap();
        let shell = |script: String| {
            let done = Finished::of(Command::new("sh").args(["-ec", &script]).current_dir(world.root()));
            assert_eq!(done.code, 0, "{}", done.stderr);
        };
        let up = |name, number| {
            format!(
                "ip link set lo up; ip addr add 10.77.0.{number}/24 dev {name}; \
                 ip link set {name} up; ip addr add fd77::{number}/64 dev {name} nodad"
            )
        };
        shell(format!("ip link add near type veth peer name far netns {thread}; {}", up("near", 1)));
        let (tell, told) = channel();
        let there = up("far", 2);
        let job = move || {
            let done = Finished::of(Command::new("sh").args(["-ec", &there]));
            tell.send((done.code, done.stderr, sniffer())).unwrap();
        };
        jobs.send(Box::new(job)).unwrap();
        let (code, why, sniffer) = told.recv().unwrap();
        assert_eq!(code, 0, "{why}");
        Self { jobs, sniffer }
    }

    /// True if the other machine can connect to this address of the machine with the sandbox.
    fn connects_to(&self, address: &'static str, port: u16) -> bool {
        let (tell, told) = channel();
        let connect = move || tell.send(TcpStream::connect((address, port)).is_ok()).unwrap();
        self.jobs.send(Box::new(connect)).unwrap();
        told.recv().unwrap()
    }

    /// Makes the other machine accept connections at an address.
    fn listens(&self, at: &'static str) -> TcpListener {
        let (tell, told) = channel();
        self.jobs.send(Box::new(move || tell.send(TcpListener::bind(at).unwrap()).unwrap())).unwrap();
        let listener = told.recv().unwrap();
        listener.set_nonblocking(true).unwrap();
        listener
    }

    /// Returns the packets that arrive at the other machine, up to a datagram that this thread sends last.
    fn hears(&self) -> Vec<u8> {
        let mark = format!("mark {:?}", Instant::now());
        UdpSocket::bind("0.0.0.0:0").unwrap().send_to(mark.as_bytes(), "10.77.0.2:9").unwrap();
        self.hears_until(&[mark.into_bytes()])
    }

    /// Returns the packets that arrive at the other machine until they contain all of `awaited`.
    fn hears_until(&self, awaited: &[Vec<u8>]) -> Vec<u8> {
        let (began, mut heard) = (Instant::now(), vec![]);
        while !awaited.iter().all(|one| contains(&heard, one)) {
            assert!(began.elapsed() < Duration::from_secs(20), "not all of {awaited:x?} in {heard:x?}");
            let mut frame = [0_u8; 2048];
            // SAFETY: the buffer is valid for its length.
            let read = unsafe {
                libc::recv(
                    self.sniffer.as_raw_fd(),
                    frame.as_mut_ptr().cast(),
                    frame.len(),
                    libc::MSG_DONTWAIT,
                )
            };
            match usize::try_from(read) {
                Ok(read) => heard.extend(&frame[..read]),
                Err(_) => std::thread::yield_now(),
            }
        }
        heard
    }
}

fn contains(heard: &[u8], wanted: &[u8]) -> bool {
    memmem::find(heard, wanted).is_some()
}

fn sniffer() -> OwnedFd {
    let all = i32::from(u16::try_from(libc::ETH_P_ALL).unwrap().to_be());
    // SAFETY: integers; the descriptor is new.
    unsafe {
        let socket = libc::socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_CLOEXEC, all);
        assert!(socket >= 0);
        OwnedFd::from_raw_fd(socket)
    }
}

/// Runs a test in new network namespaces, as each user and in each tier.
fn beside_a_neighbour(test: impl Fn(&Neighbour, &World, Tier) + Sync) {
    if !geteuid().is_root() {
        skip!("uid 0 with capabilities makes networks");
    }
    let everywhere = tier::everywhere();
    let apart = || {
        // Applies only to this thread and the processes that it starts.
        if unshare(CloneFlags::CLONE_NEWNET).is_err() {
            skip!("uid 0 with capabilities makes networks");
        }
        let neighbour = Neighbour::new(&World::new(User::Myself));
        for (user, tier) in everywhere {
            test(&neighbour, &World::new(user), tier);
        }
    };
    std::thread::scope(|scope| scope.spawn(apart).join().unwrap());
}

/// Program that joins multicast groups by every socket option. In its own network namespace it joins on loopback.
const JOINER: &str = "import socket, struct, sys\n\
    try: device = socket.if_nametoindex('near')\n\
    except OSError: device = 1\n\
    tag = int(sys.argv[1])\n\
    def v4(last): return bytes([239, 77, tag, last])\n\
    def v6(last): return socket.inet_pton(socket.AF_INET6, 'ff15::bad:c0de:0')[:14] + bytes([tag, last])\n\
    def storage(family, group): return struct.pack('=IIHH', device, 0, family, 0) + group.ljust(124, b'\\0')\n\
    acts = [(2, 0, 35, v4(1) + struct.pack('=II', 0, device)), (2, 0, 42, storage(2, v4(2))),\n\
    \x20   (10, 41, 20, v6(1) + struct.pack('=I', device)), (10, 41, 42, storage(10, b'\\0' * 4 + v6(2)))]\n\
    for family, level, name, value in acts:\n\
    \x20   s = socket.socket(family, socket.SOCK_DGRAM)\n\
    \x20   try: s.setsockopt(level, name, value); print(0)\n\
    \x20   except OSError as error: print(error.errno)\n";

/// Returns the groups that [`JOINER`] joins with this tag, as IGMP and MLD messages contain them.
fn groups(tag: u8) -> [Vec<u8>; 4] {
    let v6 = |last| [&[0xff, 0x15], &[0; 8][..], &[0xb, 0xad, 0xc0, 0xde, tag, last]].concat();
    [vec![239, 77, tag, 1], vec![239, 77, tag, 2], v6(1), v6(2)]
}

fn join(command: &mut Command, tag: u8) -> Vec<i32> {
    let done = Finished::of(command.args(["-c", JOINER, &tag.to_string()]));
    assert_eq!(done.code, 0, "{}", done.stderr);
    done.stdout.lines().map(|errno| errno.parse().unwrap()).collect()
}

#[test]
fn no_neighbour_hears_of_a_group_that_is_joined_inside() {
    let tags = AtomicU8::new(0);
    beside_a_neighbour(|neighbour, world, tier| {
        // The kernel reports the leaving of a group twice, the second time later.
        let next = || tags.fetch_add(1, Ordering::Relaxed);
        let run = |flags: &[&str], tag| join(&mut world.sandbox(tier, flags, "python3"), tag);
        let apart = if tier == Tier::Full { 0 } else { EPERM };
        for (net, expected) in [("off", apart), ("on", EPERM)] {
            let tag = next();
            assert_eq!(run(&["--net", net], tag), [expected; 4], "{tier}, net {net}, {:?}", world.user());
            let heard = neighbour.hears();
            assert!(
                groups(tag).iter().all(|group| !contains(&heard, group)),
                "{tier}, net {net}: {heard:x?}"
            );
        }
        // Controls: with the permission, and without a sandbox.
        let (within, unconfined) = (next(), next());
        assert_eq!(run(&["--net", "on", "--reach", "link-local"], within), [0; 4], "{tier}");
        neighbour.hears_until(&groups(within));
        assert_eq!(join(&mut world.command("python3"), unconfined), [0; 4]);
        neighbour.hears_until(&groups(unconfined));
    });
}

/// True if a confined program with these values of `--reach` connects to the listener.
fn comes_through(world: &World, tier: Tier, listener: &TcpListener, reach: &[&str]) -> bool {
    let flags = [&["--net", "on"], reach].concat();
    let mut sandbox = world.sandbox(tier, &flags, Programs::get().path("probe"));
    let done = Finished::of(sandbox.args(["tcp", &listener.local_addr().unwrap().to_string()]));
    assert_eq!(done.code, 0, "{}", done.stderr);
    let (tried, reached) = (Tried::of(done.stdout.trim_end()), listener.accept().is_ok());
    assert!(tried.is(if reached { &[0] } else { &[EACCES] }), "{tier} {listener:?} {reach:?} {tried:?}");
    reached
}

#[test]
fn a_private_network_is_a_right_of_its_own() {
    beside_a_neighbour(|neighbour, world, tier| {
        for listener in ["10.77.0.2:0", "[fd77::2]:0"].map(|at| neighbour.listens(at)) {
            let address = listener.local_addr().unwrap();
            TcpStream::connect(address).unwrap();
            listener.accept().unwrap();
            for reach in [&[][..], &["--reach", "host", "--reach", "link-local", "--reach", "metadata"]] {
                assert!(!comes_through(world, tier, &listener, reach), "{tier} {:?} {address}", world.user());
            }
            assert!(comes_through(world, tier, &listener, &["--reach", "lan"]), "{tier} {address}");
        }
    });
}

/// Tests a resolver in a private network. A program may reach it because the machine's `/etc/resolv.conf` names it.
#[test]
fn the_resolver_of_the_machine_is_reached_in_a_private_network() {
    beside_a_neighbour(|neighbour, world, tier| {
        unshare(CloneFlags::CLONE_NEWNS).unwrap();
        let settings = world.root().join("resolv.conf");
        std::fs::write(&settings, "nameserver 10.77.0.2\n").unwrap();
        let shell = |script: &str| {
            let done = Finished::of(Command::new("sh").args(["-ec", script]).current_dir(world.root()));
            assert_eq!(done.code, 0, "{}", done.stderr);
        };
        shell("mount --make-rprivate /; mount --bind resolv.conf /etc/resolv.conf");
        let (resolver, other) = (neighbour.listens("10.77.0.2:53"), neighbour.listens("10.77.0.2:54"));
        assert!(comes_through(world, tier, &resolver, &[]), "{tier} {:?}", world.user());
        assert!(!comes_through(world, tier, &other, &[]), "{tier} {:?}", world.user());
        shell("umount /etc/resolv.conf");
    });
}

/// Program that listens on unbound sockets, for which the kernel chooses a port at all addresses.
const LISTENER: &str = "import socket\n\
    all = [socket.socket(family) for family in (socket.AF_INET, socket.AF_INET6)]\n\
    for s in all: s.listen(); print(s.getsockname()[1], flush=True)\n\
    input()\n";

/// Returns for each port of [`LISTENER`] true if the other machine can connect.
fn reached(neighbour: &Neighbour, command: &mut Command) -> Vec<bool> {
    let mut child =
        command.args(["-c", LISTENER]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    let ports = lines.take(OWN.len()).map(|port| port.parse().unwrap());
    let reached = ports.zip(OWN).map(|(port, own)| neighbour.connects_to(own, port)).collect();
    child.stdin.take().unwrap().write_all(b"\n").unwrap();
    child.wait().unwrap();
    reached
}

#[test]
fn no_neighbour_reaches_who_listens_without_an_address() {
    beside_a_neighbour(|neighbour, world, tier| {
        assert_eq!(reached(neighbour, &mut world.command("python3")), [true; 2], "{:?}", world.user());
        let mut sandbox = world.sandbox(tier, &["--net", "off"], "python3");
        assert_eq!(reached(neighbour, &mut sandbox), [false; 2], "{tier}, {:?}", world.user());
    });
}
