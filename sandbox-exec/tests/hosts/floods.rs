use nix::sys::resource::{Resource, setrlimit};

use crate::gateway::{in_both, in_full, pair, receive, start, start_in};

#[test]
fn connections_wait_until_the_gateway_takes_them() {
    in_both(|place| {
        let script = "import resource
resource.setrlimit(resource.RLIMIT_NOFILE, (3000, 3000))
ip = s.gethostbyname('a.example')
all = [open_to((ip, 443)) for _ in range(2000)]
before = ticks()
time.sleep(0.5)
print(ticks() - before < 10, s.gethostbyname('a.example') == ip, flush=True)
sys.stdin.readline()
print(sum(c.recv(1) == b'x' for c in all))";
        let (gateway, theirs) = pair();
        let mut running = start(place, "a.example", script, theirs);
        assert_eq!(running.hear(), "True True");
        running.tell("");
        for _ in 0..2000 {
            let (_, mut connection) = receive(&gateway).unwrap();
            std::io::Write::write_all(&mut connection, b"x").unwrap();
        }
        assert_eq!(running.finish().said, "2000\n");
        assert!(receive(&gateway).is_none());
    });
}

/// Tests a broker that may open few descriptors. The kernel then allows few of them in unread messages, too.
#[test]
fn few_descriptors_delay_connections_and_lose_none() {
    in_full(|place| {
        let script = "ip = s.gethostbyname('a.example')
for process in range(20):
    if os.fork() == 0:
        all = [open_to((ip, 443)) for _ in range(20)]
        os.write(1, b'.\\n')
        os._exit({c.recv(1) for c in all} != {b'x'})
print({os.wait()[1] for _ in range(20)})";
        let (gateway, theirs) = pair();
        let mut running = start_in(place, "a.example", script, theirs, |command| {
            let few = || Ok(setrlimit(Resource::RLIMIT_NOFILE, 80, 80)?);
            // SAFETY: setrlimit(2) is async-signal-safe.
            unsafe { std::os::unix::process::CommandExt::pre_exec(command, few) };
        });
        for _ in 0..20 {
            assert_eq!(running.hear(), ".");
        }
        for _ in 0..400 {
            let (_, mut connection) = receive(&gateway).unwrap();
            std::io::Write::write_all(&mut connection, b"x").unwrap();
        }
        assert_eq!(running.finish().said, "{0}\n");
    });
}

/// Tests connections after the gateway's end. The kernel ends those that the gateway had not yet received.
#[test]
fn without_a_gateway_connections_are_reset() {
    in_both(|place| {
        let script = "ip = s.gethostbyname('a.example')
first = [open_to((ip, 443)) for _ in range(600)]
print(flush=True)
sys.stdin.readline()
def end(connect):
    try:
        c = connect()
        c.settimeout(20)
        return c.recv(1)
    except ConnectionResetError: return 'reset'
print({end(lambda: c) for c in first} <= {b'', 'reset'})
print({end(lambda: open_to((ip, 443))) for _ in range(100)})
before = ticks()
time.sleep(0.5)
print(ticks() - before < 10, s.gethostbyname('a.example') == ip, os.system('true'))";
        let (gateway, theirs) = pair();
        let mut running = start(place, "a.example", script, theirs);
        assert_eq!(running.hear(), "");
        drop(gateway);
        running.tell("");
        assert_eq!(running.finish().said, "True\n{'reset'}\nTrue True 0\n");
    });
}
