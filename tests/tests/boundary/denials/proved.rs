//! Tests refusals by the broker. Each is reported as proved (observed, not inferred), with the object and the grant
//! that would permit the operation, and for the right call.

use std::fs;
use std::net::{TcpListener, UdpSocket};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;

use ipc::confinement::Tier;
use serde_json::{Value, json};
use tests::World;
use tests::replies::{calls, done, model_of};
use tests::tier::everywhere;

use crate::denials::told::{command, tell};

const AUTO: &[&str] = &["--mode", "auto"];

fn connect(path: &str) -> String {
    format!("python3 -c 'import socket as s; s.socket(s.AF_UNIX).connect(\"{path}\")'")
}

/// Creates a socket outside of the project to which the world's user may connect. Also returns the path.
fn socket(world: &World, name: &str) -> (UnixListener, String) {
    let outside = world.root().join("outside");
    fs::create_dir_all(&outside).unwrap();
    world.give(&outside);
    let path = outside.join(name);
    let listener = UnixListener::bind(&path).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o777)).unwrap();
    listener.set_nonblocking(true).unwrap();
    (listener, path.to_str().unwrap().to_owned())
}

fn facts(denied: &Value) -> [Value; 5] {
    ["layer", "grade", "object", "grant", "program"].map(|name| denied[name].clone())
}

#[test]
fn an_address_that_was_not_reached_is_proved_in_both_tiers() {
    for (user, tier) in everywhere() {
        let world = World::new(user);
        let layer = if tier == Tier::Full { "network_namespace" } else { "mediation" };
        let told = tell(
            &world,
            tier,
            AUTO,
            &[
                command("exec 3<>/dev/tcp/192.0.2.1/9"),
                command("exec 3<>/dev/tcp/192.0.2.1/9 || true"),
                command("echo x > /dev/udp/198.51.100.1/9"),
            ],
        );
        for (told, to) in told.iter().zip(["192.0.2.1:9", "192.0.2.1:9", "198.51.100.1:9"]) {
            let expected =
                [json!(layer), json!("proved"), json!({"address": to}), json!("--net on"), json!("bash")];
            assert_eq!(
                told.denials.iter().map(facts).collect::<Vec<_>>(),
                [expected],
                "{user:?} {tier}: {told:?}"
            );
            assert_eq!(told.content.contains("--net on"), told.failed, "{told:?}");
        }
        assert_eq!(told.iter().map(|told| told.failed).collect::<Vec<_>>(), [true, false, true]);
    }
}

#[test]
fn a_socket_of_another_program_is_proved_and_its_grant_helps() {
    for (user, tier) in everywhere() {
        let world = World::new(user);
        let (listener, path) = socket(&world, "socket");
        let asked = [command(&connect(&path))];
        let told = tell(&world, tier, AUTO, &asked).remove(0);
        let grant = format!("--socket {path}");
        let expected =
            [json!("mediation"), json!("proved"), json!({"path": path}), json!(grant), json!("python3")];
        let denied: Vec<_> = told.denials.iter().map(facts).collect();
        assert_eq!(denied, [expected], "{user:?} {tier}: {told:?}");
        assert!(listener.accept().is_err(), "nobody came");
        let granted = tell(&world, tier, &["--mode", "auto", "--socket", &path], &asked).remove(0);
        assert!(!granted.failed && granted.denials.is_empty(), "{user:?} {tier}: {granted:?}");
        assert!(listener.accept().is_ok(), "it came");
    }
}

#[test]
fn in_the_floor_servers_of_the_machine_and_files_outside_are_proved() {
    for (user, tier) in everywhere().into_iter().filter(|(_, tier)| *tier == Tier::Floor) {
        let world = World::new(user);
        let (_listener, _) = socket(&world, "socket");
        let own = world.root().join("outside/own");
        fs::write(&own, "").unwrap();
        world.give(&own);
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        let datagrams = UdpSocket::bind("127.0.0.1:0").unwrap();
        let [tcp, udp] = [server.local_addr().unwrap(), datagrams.local_addr().unwrap()];
        let send = format!(
            "python3 -c 'import socket as s; s.socket(type=s.SOCK_DGRAM).sendto(b\"x\", (\"127.0.0.1\", {}))'",
            udp.port()
        );
        let told = tell(
            &world,
            tier,
            AUTO,
            &[
                command(&format!("exec 3<>/dev/tcp/127.0.0.1/{}", tcp.port())),
                command(&send),
                command(&format!("chmod 600 {}", own.display())),
            ],
        );
        let own = own.to_str().unwrap();
        let expected = [
            (json!({"address": tcp.to_string()}), json!("--net on --reach host"), json!("bash")),
            (json!({"address": udp.to_string()}), json!("--net on --reach host"), json!("python3")),
            (json!({"path": own}), json!(format!("--write {own}")), json!("chmod")),
        ];
        for (told, (object, grant, program)) in told.iter().zip(expected) {
            let expected = [json!("mediation"), json!("proved"), object, grant, program];
            assert_eq!(told.denials.iter().map(facts).collect::<Vec<_>>(), [expected], "{user:?}: {told:?}");
        }
    }
}

/// Tests several commands in one reply, each of which connects to a socket and is refused. Each denial must name the
/// right call.
#[test]
fn a_refusal_belongs_to_the_call_whose_process_it_was() {
    for (user, tier) in everywhere() {
        let world = World::new(user);
        let sockets: Vec<_> = (0..6).map(|number| socket(&world, &format!("s{number}"))).collect();
        let asked: Vec<_> = sockets
            .iter()
            .map(|(_, path)| {
                let line = format!("{}; {}", connect(path), connect(path));
                command(&line)
            })
            .collect();
        let server = model_of([calls(&asked), done()]);
        let mut exec = world.exec(&server, AUTO);
        let run = tests::Finished::of(exec.args(tests::tier::flags(tier)));
        let denied = run.events_of("denied");
        let found: Vec<_> =
            denied.iter().map(|denied| (denied["call"].clone(), denied["object"].clone())).collect();
        let expected =
            |(index, (_, path)): (usize, &(UnixListener, String))| (json!(index + 1), json!({"path": path}));
        let expected: Vec<_> = sockets.iter().enumerate().map(expected).collect();
        assert!(expected.iter().all(|one| found.contains(one)), "{user:?} {tier}: {found:?}");
        assert_eq!(found.len(), expected.len(), "{user:?} {tier}: {found:?}");
    }
}

/// Tests a command with very many refused system calls. It ends as usual, and the number of reported denials is
/// bounded.
#[test]
fn a_flood_of_refused_calls_is_a_few_denials() {
    for (user, tier) in everywhere() {
        let world = World::new(user);
        let flood = "python3 -c 'import socket as s\nfor n in range(1, 3000):\n    \
                     try: s.socket().connect((\"192.0.2.1\", n))\n    except OSError: pass\nprint(\"done\"); exit(1)'";
        let told = tell(&world, tier, AUTO, &[command(flood), command("exec 3<>/dev/tcp/203.0.113.9/9")]);
        assert!(told[0].content.contains("done"), "{told:?}");
        assert_eq!(told[0].denials.len(), 1, "one grant: {told:?}");
        assert_eq!(told[1].denials.len(), 1, "the next call has its own: {told:?}");
        assert_eq!(told[1].denials[0]["object"], json!({"address": "203.0.113.9:9"}));
    }
}
