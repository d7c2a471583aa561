use std::os::unix::process::CommandExt;
use std::path::Path;

use ipc::gateway::Arrival;
use nix::libc;
use seccompiler::{BpfProgram, SeccompAction, SeccompFilter};

use crate::gateway::{echo, in_both, pair, run, start, start_in};

fn arrival(name: &str, port: u16, program: &str) -> Arrival {
    Arrival { name: name.parse().unwrap(), port, program: program.to_owned() }
}

#[test]
fn a_name_of_the_list_leads_to_the_gateway() {
    in_both(|place| {
        let script = "data = os.urandom(1 << 20)
say(lambda: talk(('a.example', 443), data) == data)
say(lambda: talk(('A.Example.', 443)))
say(lambda: talk(('x.y.b.example', 8080)))
say(lambda: s.gethostbyname('a.example') == s.gethostbyname('A.EXAMPLE'))";
        let ran = run(place, "a.example,*.b.example:8080", script);
        assert_eq!(ran.said, "True\nb'hi'\nb'hi'\nTrue\n");
        let a = || arrival("a.example", 443, "python3");
        assert_eq!(ran.arrivals, [a(), a(), arrival("x.y.b.example", 8080, "python3")]);
        assert_eq!(ran.refused, []);
    });
}

#[test]
fn the_proxy_is_reached_whatever_is_on_the_list() {
    in_both(|place| {
        let script = "say(lambda: s.gethostbyname('proxy.bailiwick.internal'))
say(lambda: talk(('198.19.255.254', 1080)))
say(lambda: talk(('Proxy.Bailiwick.Internal.', 1080)))
say(lambda: talk(('198.19.255.254', 443)))";
        let ran = run(place, "a.example", script);
        assert_eq!(ran.said, "198.19.255.254\nb'hi'\nb'hi'\nECONNREFUSED\n");
        let proxy = || arrival("proxy.bailiwick.internal", 1080, "python3");
        assert_eq!(ran.arrivals, [proxy(), proxy()]);
        assert_eq!(ran.refused.len(), 1, "{:?}", ran.refused);
    });
}

/// Tests other ways to connect to a host: by an IPv6 address that stands for the IPv4 one, without waiting, and with
/// the first bytes (TCP Fast Open).
#[test]
fn every_way_to_connect_leads_there() {
    in_both(|place| {
        let script = "ip = s.gethostbyname('a.example')
c = s.socket(s.AF_INET6)
c.connect(('::ffff:' + ip, 443))
c = s.socket()
c.setblocking(False)
print(errno.errorcode[c.connect_ex((ip, 443))])
c = s.socket()
def fast():
    print(c.sendto(b'first', s.MSG_FASTOPEN, (ip, 443)))
    c.shutdown(s.SHUT_WR)
    return c.recv(10)
say(fast)";
        let ran = run(place, "a.example", script);
        let (first, arrived) = if place.full() { ("5\nb'first'", 3) } else { ("ENOTSUP", 2) };
        assert_eq!(ran.said, format!("EINPROGRESS\n{first}\n"));
        assert_eq!(ran.arrivals.len(), arrived, "{:?}", ran.arrivals);
    });
}

#[test]
fn programs_find_hosts_and_name_themselves() {
    in_both(|place| {
        let run_program = |program: &[&str]| {
            let script =
                format!("import subprocess\nprint(subprocess.run({program:?}, capture_output=True).stdout)");
            run(place, "a.example,b.example:80", &script)
        };
        let found = run_program(&["getent", "hosts", "a.example"]);
        assert_eq!(found.said, "b'198.19.0.1      a.example\\n'\n");
        assert_eq!(found.arrivals, []);
        let found = run_program(&["getent", "ahosts", "localhost"]);
        assert!(found.said.contains("127.0.0.1"), "{}", found.said);
        if !Path::new("/usr/bin/curl").exists() {
            return eprintln!("skipped: curl (it is not here)");
        }
        let asked = run_program(&["curl", "--silent", "--http0.9", "--max-time", "2", "http://b.example/x"]);
        assert_eq!(asked.arrivals, [arrival("b.example", 80, "curl")]);
    });
}

#[test]
fn sockets_that_the_mediator_makes_lead_there_too() {
    let rules = [libc::SYS_pidfd_getfd, libc::SYS_kcmp].map(|call| (call, vec![]));
    let denied = SeccompAction::Errno(libc::EPERM.cast_unsigned());
    let architecture = std::env::consts::ARCH.try_into().unwrap();
    let filter = SeccompFilter::new(rules.into(), SeccompAction::Allow, denied, architecture).unwrap();
    let profile: BpfProgram = filter.try_into().unwrap();
    in_both(|place| {
        let profile = profile.clone();
        let deny = move || seccompiler::apply_filter(&profile).map_err(std::io::Error::other);
        let (gateway, theirs) = pair();
        let script = "say(lambda: talk(('a.example', 443)))
say(lambda: open_to(('a.example', 80)))
say(lambda: s.gethostbyname('machines'))";
        let running = start_in(place, "a.example", script, theirs, |command| {
            // SAFETY: attaches a filter that was made before.
            unsafe { command.pre_exec(deny) };
        });
        let echo = echo(gateway);
        assert_eq!(running.finish().said, "b'hi'\nECONNREFUSED\nno such name\n");
        assert_eq!(echo.join().unwrap().len(), 1);
    });
}

#[test]
fn an_address_means_nothing_in_another_sandbox() {
    in_both(|place| {
        let script = "say(lambda: s.gethostbyname(sys.stdin.readline().strip()))
sys.stdout.flush()
say(lambda: talk((sys.stdin.readline().strip(), 443)))";
        let start = || {
            let (gateway, theirs) = pair();
            (start(place, "*.example", script, theirs), echo(gateway))
        };
        let [(mut one, of_one), (mut other, of_other)] = [start(), start()];
        one.tell("a.example");
        let address = one.hear();
        assert_eq!(address, "198.19.0.1");
        other.tell("machines");
        assert_eq!(other.hear(), "no such name");
        other.tell(&address);
        assert_eq!(other.finish().said, "ECONNREFUSED\n");
        one.tell(&address);
        assert_eq!(one.finish().said, "b'hi'\n");
        assert_eq!((of_one.join().unwrap().len(), of_other.join().unwrap().len()), (1, 0));
    });
}
