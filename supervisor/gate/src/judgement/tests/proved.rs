use insta::assert_snapshot;
use ipc::confinement::Tier;
use ipc::denial::{Denial, Grade, Layer};
use ipc::place::Place;
use ipc::refusal::{Act, Refusal, Target};
use ipc::rights::Network;
use ipc::tool::{Access, CommandExit, CommandResult, ShellExec};

use super::likely::{ended, shell};
use super::{auto, online, open_places};
use crate::judgement::denial::unwritable;
use crate::judgement::{StandingRights, denied};

fn refusal(act: Act, object: Target) -> Refusal {
    Refusal { process: 7, program: "curl".to_owned(), act, object, errno: 101, count: 1, untold: 0 }
}

fn to(address: &str, place: Place) -> Refusal {
    refusal(Act::Connect, Target::Internet(address.parse().unwrap(), place))
}

fn proved(standing: &StandingRights, refusal: Refusal) -> Option<Denial> {
    let denials = denied::proved(standing, &shell("x"), &[refusal]);
    assert!(denials.len() <= 1 && denials.iter().all(|denial| denial.grade == Grade::Proved));
    denials.into_iter().next()
}

fn said(standing: &StandingRights, refusal: Refusal) -> String {
    proved(standing, refusal).unwrap().to_string()
}

#[test]
fn an_address_is_told_with_the_right_that_leads_there() {
    let (off, on) = (auto(), online(auto()));
    assert_snapshot!(said(&off, to("192.0.2.1:443", Place::Elsewhere)), @"blocked by the sandbox (mediation): reach 192.0.2.1:443 (tried by curl); missing access: network; the user can allow it with --net on");
    assert_snapshot!(said(&off.seen_in(Tier::Full), to("[2001:db8::1]:443", Place::Elsewhere)), @"blocked by the kernel (network namespace): reach [2001:db8::1]:443 (tried by curl); missing access: network; the user can allow it with --net on");
    assert_snapshot!(said(&off, to("127.0.0.1:5432", Place::Host)), @"blocked by the sandbox (mediation): reach 127.0.0.1:5432 (tried by curl); missing access: network, and connections to this machine; the user can allow it with --net on --reach host");
    assert_snapshot!(said(&on, to("127.0.0.1:5432", Place::Host)), @"blocked by the sandbox (mediation): reach 127.0.0.1:5432 (tried by curl); missing access: connections to this machine; the user can allow it with --reach host");
    assert_snapshot!(said(&on.seen_in(Tier::Full), to("169.254.169.254:80", Place::Metadata)), @"blocked by the sandbox (mediation): reach 169.254.169.254:80 (tried by curl); missing access: connections to addresses that hand out credentials; the user can allow it with --reach metadata");
    assert_snapshot!(said(&on, to("192.168.1.9:443", Place::Lan)), @"blocked by the sandbox (mediation): reach 192.168.1.9:443 (tried by curl); missing access: connections to private networks; the user can allow it with --reach lan");
    assert_eq!(proved(&on, to("192.0.2.1:443", Place::Elsewhere)), None, "no right is missing");
    let stranger = Refusal { act: Act::Accept, ..to("127.0.0.1:0", Place::Host) };
    assert_snapshot!(said(&off, stranger), @"blocked by the sandbox (mediation): reach 127.0.0.1 (tried by curl); missing access: connections from outside the sandbox; it cannot be allowed here");
}

#[test]
fn a_port_of_a_host_is_told_with_the_host() {
    let host = refusal(Act::Connect, Target::Host { name: "a.example".parse().unwrap(), port: 80 });
    assert_snapshot!(said(&auto(), host), @"blocked by the sandbox (mediation): reach a.example:80 (tried by curl); missing access: network to a.example:80, which is not on the list of hosts; the user can allow it with --net a.example:80");
}

#[test]
fn what_other_programs_have_is_told_by_its_name() {
    let standing = auto();
    let socket = |path: &str| refusal(Act::Connect, Target::Socket(path.into()));
    assert_snapshot!(said(&standing, socket("/run/docker.sock")), @"blocked by the sandbox (mediation): use /run/docker.sock (tried by curl); missing access: reach /run/docker.sock, a socket of another program; the user can allow it with --socket /run/docker.sock");
    assert_snapshot!(said(&standing, socket("/home/me/.ssh/agent")), @"blocked by the sandbox (mediation): use /home/me/.ssh/agent (tried by curl); missing access: write /home/me/.ssh/agent, which is hidden; it cannot be allowed here");
    for asked_in_passing in ["/run/nscd/socket", "/dev/log", "/run/systemd/userdb/x"] {
        assert_eq!(proved(&standing, socket(asked_in_passing)), None, "{asked_in_passing}");
    }
    let file = refusal(Act::Change, Target::File("/etc/hosts".into()));
    assert_snapshot!(said(&standing, file), @"blocked by the sandbox (mediation): write /etc/hosts (tried by curl); missing access: write /etc/hosts; the user can allow it with --write /etc/hosts");
    let own = refusal(Act::Change, Target::File("/home/me/p/x".into()));
    assert_eq!(proved(&standing, own), None, "the rights cover it");
    assert_snapshot!(said(&standing, refusal(Act::Signal, Target::Process(12))), @"blocked by the sandbox (mediation): signal process 12 (tried by curl); missing access: signal something outside the sandbox; it cannot be allowed here");
    let object = Target::Object("semaphore set 3".to_owned());
    assert_snapshot!(said(&standing, refusal(Act::Use, object)), @"blocked by the sandbox (mediation): use semaphore set 3 (tried by curl); missing access: use something outside the sandbox; it cannot be allowed here");
}

#[test]
fn names_that_programs_choose_stay_in_their_place() {
    let hostile = Refusal {
        program: "a\u{1b}[2J\nx".to_owned(),
        ..refusal(Act::Connect, Target::Abstract(b"n\n\x1b".to_vec()))
    };
    let said = said(&auto(), hostile);
    assert!(!said.contains(char::is_control), "{said:?}");
    assert_snapshot!(said, @r"blocked by the sandbox (mediation): use the abstract socket @n\n\u{1b} (tried by a\u{1b}[2J\nx); missing access: use something outside the sandbox; it cannot be allowed here");
}

fn all(standing: &StandingRights, output: &str, refused: Vec<Refusal>) -> Vec<Denial> {
    let call = shell("x");
    let named = open_places(standing, &call, output);
    denied::denials(standing, &call, &CommandResult { named, refused, ..ended(CommandExit::Code(1), output) })
}

#[test]
fn nothing_is_offered_for_what_has_no_path() {
    for tier in [Tier::Full, Tier::Floor] {
        let standing = auto().seen_in(tier);
        for name in
            ["anon_inode:[eventfd]", "anon_inode:inotify", "pipe:[17]", "socket:[17]", "mnt:[4026531841]"]
        {
            let denial = unwritable(&standing, &name.into(), Grade::Proved, None);
            assert_eq!(denial.grant, None, "{name}");
            let refused = said(&standing, refusal(Act::Change, Target::File(name.into())));
            assert!(!refused.contains("--write"), "{refused}");
        }
    }
}

#[test]
fn what_is_proved_takes_the_place_of_what_is_likely() {
    let resolver = || vec![to("192.0.2.53:53", Place::Elsewhere)];
    let output = "curl: (6) Could not resolve host: example.org";
    let grades = |denials: &[Denial]| denials.iter().map(|denial| denial.grade).collect::<Vec<_>>();
    assert_eq!(grades(&all(&auto(), output, vec![])), [Grade::Likely]);
    let denials = all(&auto(), output, resolver());
    assert_eq!(grades(&denials), [Grade::Proved]);
    // The address of the name server is the broker's, and the host is from the output.
    let told = "192.0.2.53:53 (name server; the output mentions example.org)";
    assert_eq!(denials[0].object.to_string(), told);
    let elsewhere = all(&auto(), output, vec![to("192.0.2.53:443", Place::Elsewhere)]);
    assert_eq!(elsewhere[0].object.to_string(), "192.0.2.53:443", "not a question for a name");
    let changed = "chmod: changing permissions of '/etc/hosts': Permission denied";
    let file = vec![refusal(Act::Change, Target::File("/etc/hosts".into()))];
    assert_eq!(grades(&all(&auto(), changed, file)), [Grade::Proved], "of the same object");
    let another = "touch: cannot touch '/srv/x': Permission denied";
    assert_eq!(grades(&all(&auto(), another, resolver())), [Grade::Proved, Grade::Likely], "of another");
}

#[test]
fn one_grant_is_told_once_and_no_more_than_so_many() {
    let addresses = (1..9).map(|last| to(&format!("192.0.2.{last}:80"), Place::Elsewhere)).collect();
    assert_eq!(all(&auto(), "", addresses).len(), 1, "the network is one right");
    let processes = (1..9).map(|number| refusal(Act::Signal, Target::Process(number))).collect();
    assert_eq!(all(&auto(), "", processes).len(), 4);
}

#[test]
fn a_command_that_declared_to_read_lacks_no_network() {
    let call = ShellExec { access: Access::Read, ..shell("x") };
    let refused = [to("192.0.2.1:80", Place::Elsewhere)];
    assert_eq!(denied::proved(&auto(), &call, &refused), []);
    let call = ShellExec { network: Some(Network::On), ..call };
    assert_eq!(denied::proved(&auto(), &call, &refused)[0].layer, Layer::Mediation);
}
