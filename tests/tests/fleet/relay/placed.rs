//! Tests the addresses and sockets at which a relay listens, and the end of the relay.

use std::fs;
use std::net::TcpStream;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use serde_json::json;
use tests::replies::{done, model, model_of, serve};
use tests::world::KEY;
use tests::{Finished, User, World, skip};

use crate::relay::{Relay, exec, post, unix, usual};

#[test]
fn a_socket_is_its_clients_alone_and_a_place_of_others_is_not_taken() {
    let world = World::new(User::Myself);
    let server = model_of([]);
    let (relay, socket) = Relay::of_one(&world, &server, &["--socket-mode", "660"]);
    let mode = |path: &Path| fs::symlink_metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&socket), mode(socket.parent().unwrap())), (0o660, 0o710));
    let (listen, address) = (format!("unix:{}", world.home().join("run").display()), server.base_url());
    let flags = ["--listen", &listen, "--client", "one", "--base-url", &address];
    let second = Finished::of(world.bailiwick(["relay"]).args(flags).env("ANTHROPIC_API_KEY", KEY));
    assert_eq!(second.code, 2);
    assert!(second.stderr.contains("another process listens there"), "{}", second.stderr);
    assert_eq!(fs::read_dir(world.own().join("state/relay")).unwrap().count(), 1, "it left no log");
    relay.end();
    assert!(!socket.parent().unwrap().exists());
    fs::create_dir_all(socket.parent().unwrap()).unwrap();
    fs::write(&socket, "mine").unwrap();
    let third = Finished::of(world.bailiwick(["relay"]).args(flags).env("ANTHROPIC_API_KEY", KEY));
    assert!(third.code == 2 && third.stderr.contains("the path is not a socket"), "{}", third.stderr);
    assert_eq!(fs::read(&socket).unwrap(), b"mine");
}

#[test]
fn an_address_of_this_machine_takes_a_token() {
    let world = World::new(User::Myself);
    world.file("a.txt", "1\n");
    let server = model(&[("edit_file", json!({"path": "a.txt", "old_string": "1", "new_string": "2"}))]);
    let (file, address) = (world.own().join("token").display().to_string(), server.base_url());
    let flags = ["--listen", "127.0.0.1:0", "--client", "one", "--base-url", &address, "--token-file", &file];
    let mut relay = Relay::start(&world, &flags);
    let (_, base_url) = relay.client();
    let token = fs::read_to_string(&file).unwrap().trim().to_owned();
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    let connect = || TcpStream::connect(base_url.trim_start_matches("http://")).unwrap();
    let (status, text) = post(connect(), "/v1/messages", &usual().to_string());
    assert!(status == 401 && server.requests().is_empty(), "{text}");
    let mut command = exec(&world, &base_url, &["--model", "claude-opus-5-5"]);
    Finished::of(command.env("ANTHROPIC_API_KEY", &token)).expect(0);
    assert_eq!(world.read("a.txt"), "2\n");
    assert!(server.requests().iter().all(|request| !format!("{:?}", request.headers).contains(&token)));
    let open = [&flags[..6], &[]].concat();
    let refused = Finished::of(world.bailiwick(["relay"]).args(open).env("ANTHROPIC_API_KEY", KEY));
    assert!(refused.code == 2 && refused.stderr.contains("--token-file FILE"), "{}", refused.stderr);
}

#[test]
fn a_relay_ends_with_its_caller_and_has_no_relay_behind_it() {
    let world = World::new(User::Myself);
    let server = serve([]);
    let (listen, address) = (format!("unix:{}", world.home().join("run").display()), server.base_url());
    let program = tests::Programs::get().path("bailiwick").display().to_string();
    let script = format!(
        "{program} relay --listen {listen} --client a --base-url {address} 2>said & while [ ! -S home/run/a/relay.sock ]; do sleep 0.05; done; echo up"
    );
    let mut caller = world.command("bash");
    let run = Finished::of(caller.args(["-c", &script]).env("ANTHROPIC_API_KEY", KEY));
    assert!(run.stdout.contains("up"), "{}", run.stderr);
    tests::wait_until("it has ended", || !world.home().join("run/a/relay.sock").exists());
    let flags = ["--listen", &listen, "--client", "a", "--base-url", "unix:/run/other.sock"];
    let behind = Finished::of(world.bailiwick(["relay"]).args(flags).env("ANTHROPIC_API_KEY", KEY));
    assert!(
        behind.code == 2 && behind.stderr.contains("a relay must connect to the provider itself"),
        "{}",
        behind.stderr
    );
}

#[test]
fn a_socket_can_be_given_to_the_user_of_a_container() {
    if !User::all().contains(&User::Plain) || !nix::unistd::geteuid().is_root() {
        skip!("only root gives a socket away");
    }
    let world = World::new(User::Myself);
    let server = model_of([done()]);
    let (uid, gid) = (User::Plain.uid(), User::Plain.gid());
    let (_relay, socket) = Relay::of_one(&world, &server, &["--socket-owner", &format!("{uid}:{gid}")]);
    for path in [socket.as_path(), socket.parent().unwrap()] {
        let meta = fs::symlink_metadata(path).unwrap();
        assert_eq!((meta.uid(), meta.gid()), (uid, gid), "{}", path.display());
    }
    let other = World::new(User::Plain);
    Finished::of(&mut exec(&other, &unix(&socket), &["--model", "claude-opus-5-5"])).expect(0);
    assert_eq!(server.requests().len(), 1);
}
