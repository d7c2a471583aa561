//! Tests `bailiwick explain`: its answers agree with what a confined process can do, and its remedies work.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use ipc::confinement::Tier;
use serde_json::{Value, json};
use tests::tier::{self, everywhere};
use tests::{Finished, User, World};

/// Script that tries to read and to write each path, as an agent's command would.
const ACTS: &str = r#"
for path; do
    if [ -d "$path" ]; then
        ls "$path" >/dev/null 2>&1 && read=yes || read=no
        (: >"$path/.act-$$") 2>/dev/null && rm "$path/.act-$$" && write=yes || write=no
    else
        (: <"$path") 2>/dev/null && read=yes || read=no
        [ -e "$path" ] && existed=1 || existed=
        (: >>"$path") 2>/dev/null && write=yes || write=no
        [ "$existed" ] || [ $write = no ] || rm "$path"
    fi
    echo "$read $write"
done
"#;

fn world(user: User, tier: Tier) -> World {
    let world = World::new(user).in_tier(tier);
    world.file("src/a.txt", "a\n");
    world.file("secret/key.txt", "k\n");
    world.file("keep/kept.txt", "k\n");
    world.file(".git/hooks/pre-commit", "#!/bin/sh\n");
    world.file(".git/config", "[core]\n\tbare = false\n");
    world.file(".git/HEAD", "ref: refs/heads/main\n");
    world.file(".envrc", "x\n");
    for (place, name) in
        [("home/.ssh", "id"), ("home/plain", "b.txt"), ("given", "c.txt"), ("beside", "d.txt")]
    {
        let place = world.root().join(place);
        fs::create_dir_all(&place).unwrap();
        fs::write(place.join(name), "b\n").unwrap();
        world.give(&place);
        world.give(&place.join(name));
    }
    for (link, target) in [
        ("out", "../beside/d.txt"),
        ("in", "src/a.txt"),
        ("away", "../home/.ssh/id"),
        ("dangling", "nowhere"),
    ] {
        symlink(target, world.project().join(link)).unwrap();
    }
    let given = world.root().join("given").display().to_string();
    world.configure(&format!("[rights]\nhide = [\"secret\"]\nwrite = [{given:?}]\nprotect = [\"keep\"]\n"));
    world
}

/// Returns the paths in the world about which the tests ask.
fn own_paths(world: &World) -> Vec<PathBuf> {
    let inside = [
        "",
        "src",
        "src/a.txt",
        "src/new.txt",
        "secret",
        "secret/key.txt",
        "keep",
        "keep/kept.txt",
        ".git",
        ".git/HEAD",
        ".git/config",
        ".git/hooks",
        ".git/hooks/pre-commit",
        ".envrc",
        "out",
        "in",
        "away",
    ];
    let around = [
        "home",
        "home/.ssh",
        "home/.ssh/id",
        "home/plain/b.txt",
        "home/plain",
        "given",
        "given/c.txt",
        "given/new.txt",
        "beside",
        "beside/d.txt",
        "beside/new.txt",
        "own",
        "own/state",
    ];
    let inside = inside.iter().map(|name| world.project().join(name).components().collect());
    inside.chain(around.iter().map(|name| world.root().join(name))).collect()
}

/// Returns the paths of the machine about which the tests ask. Some users can access them without Bailiwick.
fn machine_paths() -> Vec<PathBuf> {
    [
        "/",
        "/etc/hosts",
        "/etc/shadow",
        "/etc",
        "/usr/bin/env",
        "/proc/version",
        "/proc/1/environ",
        "/sys/kernel",
        "/dev/null",
        "/dev/zero",
        "/dev/kmsg",
        "/root",
        "/home",
        "/var/tmp",
        "/tmp",
    ]
    .map(PathBuf::from)
    .into_iter()
    .filter(|path| path.exists())
    .collect()
}

fn explain(world: &World, tier: Tier, arguments: &[&str], what: &Path) -> Value {
    let mut command = world.bailiwick(["explain", "--json", "-C"]);
    command.arg(world.project()).args(tier::flags(tier)).args(arguments).arg(what);
    let run = Finished::of(&mut command).expect(0);
    serde_json::from_str(&run.stdout).unwrap()
}

/// Returns `yes` if the action is possible according to the answer, else `no`.
fn can(answer: &Value) -> &'static str {
    let stopped = ["not_permitted", "failed"].map(|why| answer["tried"]["outcome"] == why).contains(&true);
    // In the floor tier the names in a hidden directory can be listed, but no file can be read.
    let is_listed = answer["verdict"] == "depends" && answer["tried"]["outcome"] == "done";
    if answer["verdict"] == "allowed" && !stopped || is_listed { "yes" } else { "no" }
}

fn acts(command: &mut std::process::Command, paths: &[PathBuf]) -> Vec<String> {
    let run = Finished::of(command.args(["-c", ACTS, "acts"]).args(paths)).expect(0);
    run.stdout.lines().map(str::to_owned).collect()
}

#[test]
fn what_is_said_of_a_path_is_what_a_confined_command_can_do() {
    for (user, tier) in everywhere() {
        let world = world(user, tier);
        let mut paths = own_paths(&world);
        let own = paths.len();
        paths.extend(machine_paths());
        let did = acts(&mut world.sandbox(tier, &[], "bash"), &paths);
        assert_eq!(did.len(), paths.len());
        for (path, did) in paths.iter().zip(&did) {
            let said = explain(&world, tier, &["--mode", "auto"], path);
            let said = &said["path"];
            let read = if said["exists"] == true { can(&said["read"]) } else { "no" };
            let account = format!("{read} {}", can(&said["write"]));
            assert_eq!(&account, did, "{user:?} {tier} {}: {said:#}", path.display());
            for act in ["read", "write", "execute"] {
                let open = said[act]["verdict"] == "denied" && said[act]["tried"]["outcome"] == "done";
                assert!(!open, "{act} of {}: {said:#}", path.display());
            }
        }
        // Control: without a sandbox, all actions on the world's files succeed.
        let free = acts(&mut world.command("bash"), &paths[..own]);
        let exists = |path: &Path| path.exists();
        for (path, free) in paths.iter().zip(&free) {
            let expected = if exists(path) { "yes yes" } else { "no yes" };
            assert_eq!(free, expected, "{}", path.display());
        }
    }
}

#[test]
fn without_the_right_to_write_nothing_in_the_project_is_said_to_be_writable() {
    for (user, tier) in everywhere() {
        let world = world(user, tier);
        let paths = own_paths(&world);
        let did = acts(&mut world.sandbox(tier, &["--access", "read"], "bash"), &paths);
        for (path, did) in
            paths.iter().zip(&did).filter(|(path, _)| !path.starts_with(world.root().join("given")))
        {
            let said = explain(&world, tier, &["--mode", "deny"], path);
            assert_eq!(
                (said["path"]["write"]["verdict"].as_str(), did.ends_with(" no")),
                (Some("denied"), true),
                "{said:#}"
            );
        }
        let asked = explain(&world, tier, &["--mode", "ask"], &world.project().join("src/a.txt"));
        assert_eq!(asked["path"]["write"]["verdict"], "asked");
        assert_eq!(asked["path"]["write"]["origin"], "--mode");
    }
}

#[test]
fn the_grant_that_is_named_allows_it() {
    for tier in tier::all() {
        let world = world(User::Myself, tier);
        for (mode, path) in
            [("auto", "beside/d.txt"), ("deny", "project/src/a.txt"), ("auto", "project/.git/config")]
        {
            let path = world.root().join(path);
            let said = explain(&world, tier, &["--mode", mode], &path);
            let write = &said["path"]["write"];
            // In the floor tier protected files are writable, and changes are undone afterwards.
            assert_ne!(write["verdict"], "allowed", "{said:#}");
            let grant: Vec<&str> = write["grant"].as_str().unwrap().split(' ').collect();
            let mode = if grant[0] == "--mode" { &[][..] } else { &["--mode", mode] };
            let said = explain(&world, tier, &[mode, &grant].concat(), &path);
            assert_eq!(said["path"]["write"]["verdict"], "allowed", "{grant:?}: {said:#}");
        }
        let hidden = explain(&world, tier, &["--mode", "auto"], &world.home().join(".ssh/id"));
        assert_eq!(hidden["path"]["read"].get("grant"), None, "no flag opens what is hidden");
    }
}

#[test]
fn the_rule_is_named_with_the_place_that_it_comes_from() {
    for tier in tier::all() {
        let world = world(User::Myself, tier);
        let project = world.project();
        let file = |line: u32| json!(format!("{}/config/config.toml:{line}", world.own().display()));
        let origin = |arguments: &[&str], path: &str, act: &str| {
            let said = explain(&world, tier, arguments, &project.join(path));
            said["path"][act]["origin"].clone()
        };
        let auto = ["--mode", "auto"];
        assert_eq!(origin(&auto, "secret/key.txt", "read"), file(2));
        assert_eq!(origin(&auto, "../given/c.txt", "write"), file(3));
        assert_eq!(origin(&auto, "keep/kept.txt", "write"), file(4));
        assert_eq!(origin(&auto, "src/a.txt", "write"), "--mode");
        assert_eq!(origin(&[], "src/a.txt", "write"), "default");
        assert_eq!(origin(&auto, "../home/.ssh/id", "read"), "default");
        // Of the caches, only those of the agent's own level are writable.
        let own = places(&world);
        assert_eq!(own.len(), 1, "{own:?}");
        assert_eq!(origin(&auto, own[0].to_str().unwrap(), "write"), "default");
        let beside = own[0].with_extension("level");
        let said = explain(&world, tier, &auto, &beside);
        assert_eq!(said["path"]["write"]["verdict"], "denied", "{said:#}");
        let hide = ["--mode", "auto", "--hide", "src"];
        assert_eq!(origin(&hide, "src/a.txt", "read"), "--hide");
        let beside = world.root().join("beside");
        let write = ["--mode", "deny", "--write", beside.to_str().unwrap()];
        assert_eq!(origin(&write, "../beside/d.txt", "write"), "--write");
        // The project's settings file restricts access too, and the answer names it.
        world.file(".bailiwick.toml", "[rights]\nhide = [\"src\"]\n");
        let said = origin(&auto, "src/a.txt", "read");
        assert!(said.as_str().unwrap().ends_with(".bailiwick.toml:2"), "{said}");
    }
}

/// Returns the directories of the project's cache levels.
fn places(world: &World) -> Vec<PathBuf> {
    let list = |directory: PathBuf| {
        fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect::<Vec<_>>()
    };
    let projects = list(world.own().join("cache/projects"));
    projects.into_iter().flat_map(list).filter(|place| place.is_dir()).collect()
}

/// Returns the answer as text for a person.
fn text(world: &World, tier: Tier, arguments: &[&str]) -> String {
    let mut command = world.bailiwick(["explain", "-C"]);
    command.arg(world.project()).args(tier::flags(tier)).args(arguments);
    world.stable(&Finished::of(&mut command).expect(0).stdout)
}

#[test]
fn a_person_reads_the_reason_and_the_remedy_of_a_path() {
    if !tier::all().contains(&Tier::Full) {
        eprintln!("skipped: no full tier, whose words these are");
        return;
    }
    let world = world(User::Myself, Tier::Full);
    let text = |arguments: &[&str]| text(&world, Tier::Full, arguments);
    insta::assert_snapshot!(text(&["src/new.txt"]), @r"
    [world]/project/src/new.txt (src/new.txt in the project)
      note: the path does not exist; the nearest existing directory is [world]/project/src
      read     yes      agents can read and execute everything that is not hidden (default)
      write    asked    mode ask asks for your approval: write [world]/project/src (default) · to allow: --mode auto
      execute  yes      agents can read and execute everything that is not hidden (default)
    for a session here: full tier · mode ask · access: writes in $TMPDIR, caches, [world]/given · network off · secrets hidden
      main agent  project: read · other access: asks you · approvals: stay valid
      sub-agent   project: as its parent agent allows · other access: denied · approvals: stay valid
      planner     project: read · other access: denied · approvals: stay valid
    ");
    insta::assert_snapshot!(text(&["--mode", "auto", "../home/.ssh/id"]), @r#"
    [world]/project/../home/.ssh/id, which leads to [world]/home/.ssh/id
      read     no       the path is hidden: [world]/home/.ssh (default) · blocked by: masked path · this cannot be allowed
      write    no       the path is hidden: [world]/home/.ssh (default) · blocked by: masked path · this cannot be allowed
      execute  no       the path is hidden: [world]/home/.ssh (default) · blocked by: masked path · this cannot be allowed
    for a session here: full tier · mode auto · access: writes in the project, $TMPDIR, caches, [world]/given · network off · secrets hidden
      main agent  project: write · other access: denied · approvals: stay valid
      sub-agent   project: as its parent agent allows · other access: denied · approvals: stay valid
      planner     project: read · other access: denied · approvals: stay valid
    "#);
    insta::assert_snapshot!(text(&["--mode", "auto", "out"]), @r"
    [world]/project/out, which leads to [world]/beside/d.txt
      note: a link leads out of the project: the answers are about its target
      read     yes      agents can read and execute everything that is not hidden (default)
      write    no       the path is not in a writable directory (default) · blocked by: read-only mount · to allow: --write [world]/beside/d.txt
      execute  yes      agents can read and execute everything that is not hidden (default)
                        not executable (file mode, EACCES)
    for a session here: full tier · mode auto · access: writes in the project, $TMPDIR, caches, [world]/given · network off · secrets hidden
      main agent  project: write · other access: denied · approvals: stay valid
      sub-agent   project: as its parent agent allows · other access: denied · approvals: stay valid
      planner     project: read · other access: denied · approvals: stay valid
    ");
    insta::assert_snapshot!(text(&["--mode", "auto", "--as", "path", ".git/config"]), @r"
    [world]/project/.git/config (.git/config in the project)
      read     yes      agents can read and execute everything that is not hidden (default)
      write    no       the path is protected: the user's own programs use [world]/project/.git/config (default) · blocked by: read-only mount · to allow: --write .git/config
      execute  yes      agents can read and execute everything that is not hidden (default)
                        not executable (file mode, EACCES)
    for a session here: full tier · mode auto · access: writes in the project, $TMPDIR, caches, [world]/given · network off · secrets hidden
      main agent  project: write · other access: denied · approvals: stay valid
      sub-agent   project: as its parent agent allows · other access: denied · approvals: stay valid
      planner     project: read · other access: denied · approvals: stay valid
    ");
}

#[test]
fn a_person_reads_the_reason_and_the_remedy_of_an_address_and_a_command() {
    if !tier::all().contains(&Tier::Full) {
        eprintln!("skipped: no full tier, whose words these are");
        return;
    }
    let world = world(User::Myself, Tier::Full);
    let text = |arguments: &[&str]| text(&world, Tier::Full, arguments);
    insta::assert_snapshot!(text(&["127.0.0.1:5432"]), @r"
    127.0.0.1:5432: this machine itself
      connect  depends  the network is off: on its own loopback, a command can reach servers that the command itself started, and none of the machine's (default) · to allow: --net on --reach host
    for a session here: full tier · mode ask · access: writes in $TMPDIR, caches, [world]/given · network off · secrets hidden
      main agent  project: read · other access: asks you · approvals: stay valid
      sub-agent   project: as its parent agent allows · other access: denied · approvals: stay valid
      planner     project: read · other access: denied · approvals: stay valid
    ");
    insta::assert_snapshot!(text(&["--net", "on", "127.0.0.1:5432"]), @r#"
    127.0.0.1:5432: this machine itself
      connect  no       the network is on, but not for this machine itself; but servers started in the same sandbox can be reached (default) · to allow: --reach host
    for a session here: full tier · mode ask · access: writes in $TMPDIR, caches, [world]/given · network on · secrets hidden
      main agent  project: read · other access: asks you · approvals: stay valid
      sub-agent   project: as its parent agent allows · other access: denied · approvals: stay valid
      planner     project: read · other access: denied · approvals: stay valid
    "#);
    insta::assert_snapshot!(text(&["--net", "on", "--reach", "metadata", "169.254.169.254:80"]), @r#"
    169.254.169.254:80: an address at which clouds hand out credentials
      connect  yes      agents can reach an address at which clouds hand out credentials (--reach)
    for a session here: full tier · mode ask · access: writes in $TMPDIR, caches, [world]/given · network on +metadata · secrets hidden
      main agent  project: read · other access: asks you · approvals: stay valid
      sub-agent   project: as its parent agent allows · other access: denied · approvals: stay valid
      planner     project: read · other access: denied · approvals: stay valid
    "#);
    insta::assert_snapshot!(text(&["--net", "on", "10.254.253.252:443"]), @r#"
    10.254.253.252:443: an address of a private network
      connect  no       the network is on, but not for an address of a private network (default) · to allow: --reach lan
    for a session here: full tier · mode ask · access: writes in $TMPDIR, caches, [world]/given · network on · secrets hidden
      main agent  project: read · other access: asks you · approvals: stay valid
      sub-agent   project: as its parent agent allows · other access: denied · approvals: stay valid
      planner     project: read · other access: denied · approvals: stay valid
    "#);
    insta::assert_snapshot!(text(&["--net", "on", "example.org:443"]), @r#"
    example.org:443
      connect  depends  the network is on; the name was not looked up: pass the host's address to have the address judged (--net)
    for a session here: full tier · mode ask · access: writes in $TMPDIR, caches, [world]/given · network on · secrets hidden
      main agent  project: read · other access: asks you · approvals: stay valid
      sub-agent   project: as its parent agent allows · other access: denied · approvals: stay valid
      planner     project: read · other access: denied · approvals: stay valid
    "#);
    insta::assert_snapshot!(text(&["cd src && no-such-program --all"]), @r#"
    cd src && no-such-program --all
      cd: part of the shell itself
      no-such-program: not found
      declared: access "read"
        runs   yes      runs in the sandbox, without asking
      declared: nothing
        runs   yes      runs in the sandbox, without asking
      declared: access "write"
        runs   yes      runs in the sandbox, without asking
      declared: network true
        runs   asked    mode ask asks for your approval; then the command runs once with: net on (default)
    for a session here: full tier · mode ask · access: writes in $TMPDIR, caches, [world]/given · network off · secrets hidden
      main agent  project: read · other access: asks you · approvals: stay valid
      sub-agent   project: as its parent agent allows · other access: denied · approvals: stay valid
      planner     project: read · other access: denied · approvals: stay valid
    "#);
    insta::assert_snapshot!(text(&["--mode", "deny", "echo $(date)"]), @r#"
    echo $(date)
      note: bash may read this command differently than Bailiwick: no prefix can allow it
      declared: access "read"
        runs   yes      runs in the sandbox, without asking
      declared: nothing
        runs   yes      runs in the sandbox, without asking
      declared: access "write"
        runs   yes      runs in the sandbox, without asking
      declared: network true
        runs   no       missing access: network (--mode) · blocked by: policy · to allow: --net on
    for a session here: full tier · mode deny · access: writes in $TMPDIR, [world]/given · network off · secrets hidden
      main agent  project: read · other access: denied · approvals: none
      sub-agent   project: as its parent agent allows · other access: denied · approvals: none
      planner     project: read · other access: denied · approvals: none
    "#);
}

#[test]
fn a_local_address_needs_the_whole_network_and_the_reach() {
    let world = World::new(User::Myself);
    let said = text(&world, tier::all()[0], &["--net", "example.com", "10.254.253.252:443"]);
    assert!(said.contains(" · to allow: --net on --reach lan\n"), "{said}");
}

#[test]
fn a_path_that_only_the_root_is_above_names_no_link() {
    let world = World::new(User::Myself);
    let mut command = world.bailiwick(["explain", "/nonexistent/x", "-C"]);
    let said = Finished::of(command.arg(world.project())).expect(0).stdout;
    assert!(!said.contains("link") && said.contains("which cannot be allowed"), "{said}");
}

#[test]
fn what_is_no_subject_is_a_usage_error() {
    let world = World::new(User::Myself);
    for (arguments, words) in [
        (&[""][..], "nothing to explain"),
        (&["--as", "address", "a b"], "is not an address"),
        (&["-C", "/", "x"], "cannot be the project: it is the whole file system"),
        (&["--write", "/nonexistent/x", "/etc"], "create the path first"),
        (&[], "required"),
    ] {
        let mut command = world.bailiwick(["explain"]);
        let run = Finished::of(command.current_dir(world.project()).args(arguments)).expect(2);
        assert!(run.stderr.contains(words), "{arguments:?}: {}", run.stderr);
        assert_eq!(run.stdout, "");
    }
}
