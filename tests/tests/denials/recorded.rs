//! What the kernel's audit records prove of a command that keeps its errors to itself. They are read by root, where the machine's
//! auditing is on.

use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use ipc::confinement::Tier;
use serde_json::{Value, json};
use tests::auditing::Auditing;
use tests::programs::User;
use tests::{Finished, World, tier};

use crate::told::{Told, command, tell};

const AUTO: &[&str] = &["--mode", "auto"];

/// A world, with a file outside of the project and what is hidden; both could be opened but for the sandbox.
struct Ground {
    world: World,
    outside: PathBuf,
    hidden: PathBuf,
}

impl Ground {
    fn new() -> Self {
        let world = World::new(User::Myself);
        let [outside, hidden] = ["outside", "hidden"].map(|name| {
            let directory = world.root().join(name);
            fs::create_dir_all(&directory).unwrap();
            let file = directory.join("file");
            fs::write(&file, "content").unwrap();
            file
        });
        Self { world, outside, hidden }
    }

    /// What is told of commands in the floor.
    fn tell(&self, commands: &[&str]) -> Vec<Told> {
        let hide = self.hidden.parent().unwrap().to_str().unwrap();
        let flags = [AUTO, &["--hide", hide]].concat();
        let asked: Vec<_> = commands.iter().map(|line| command(&self.filled(line))).collect();
        tell(&self.world, Tier::Floor, &flags, &asked)
    }

    fn filled(&self, line: &str) -> String {
        line.replace("{out}", self.outside.to_str().unwrap()).replace("{hid}", self.hidden.to_str().unwrap())
    }
}

/// Layer, grade, operation, object, grant and program of a denial.
fn facts(denied: &Value) -> [Value; 6] {
    ["layer", "grade", "operation", "object", "grant", "program"].map(|name| denied[name].clone())
}

fn all_facts(told: &Told) -> Vec<[Value; 6]> {
    told.denials.iter().map(facts).collect()
}

fn proved(operation: &str, path: &str, grant: Value, program: &str) -> [Value; 6] {
    let [landlock, proved, operation, program] =
        ["landlock", "proved", operation, program].map(|word| json!(word));
    [landlock, proved, operation, json!({"path": path}), grant, program]
}

#[test]
fn a_refusal_that_no_output_names_is_proved_by_its_record() {
    let Some(_on) = Auditing::on() else { return };
    let ground = Ground::new();
    let told = ground.tell(&[
        "cat {hid} 2>/dev/null; exit 3",
        "(: > {out}) 2>/dev/null; exit 3",
        "bash -c 'bash -c \"tee {out} </dev/null >/dev/null 2>&1; exit 3\"; exit 3'",
        "mkdir {out}.d || exit 3",
    ]);
    let [out, hid] = [&ground.outside, &ground.hidden].map(|path| path.to_str().unwrap());
    let write = |program| proved("write", out, json!(format!("--write {out}")), program);
    assert_eq!(all_facts(&told[0]), [proved("read", hid, Value::Null, "cat")], "{told:?}");
    assert_eq!(all_facts(&told[1]), [write("bash")], "{told:?}");
    assert_eq!(all_facts(&told[2]), [write("tee")], "deeper down: {told:?}");
    assert_eq!(told[3].denials.len(), 1, "the output and the record tell of one: {told:?}");
    assert_eq!(told[3].denials[0]["grade"], "proved");
    assert_eq!(fs::read_to_string(&ground.outside).unwrap(), "content");
}

#[test]
fn what_only_was_tried_and_what_the_machine_refuses_is_told_of_nobody() {
    let Some(_on) = Auditing::on() else { return };
    let ground = Ground::new();
    let told = ground.tell(&[
        "cat {hid} 2>/dev/null; true",
        "bash -ic true </dev/null >/dev/null 2>&1; exit 3",
        "touch own; chmod 000 own; cat own >/dev/null; exit 3",
        "cat missing; rmdir missing; exit 3",
        "mkdir -p full/x; rmdir full; exit 3",
    ]);
    for told in &told {
        assert_eq!(told.denials, Vec::<Value>::new(), "{told:?}");
    }
}

#[test]
fn a_flood_of_refusals_is_told_once() {
    let Some(_on) = Auditing::on() else { return };
    let ground = Ground::new();
    let told = ground.tell(&[
        "for ((i = 0; i < 5000; i++)); do : < {hid}; done 2>/dev/null; exit 3",
        "(: > {out}) 2>/dev/null; exit 3",
    ]);
    let objects =
        |told: &Told| told.denials.iter().map(|it| it["object"]["path"].clone()).collect::<Vec<_>>();
    let [out, hid] = [&ground.outside, &ground.hidden].map(|path| json!(path.to_str().unwrap()));
    assert!([vec![], vec![hid]].contains(&objects(&told[0])), "what came too fast is lost: {told:?}");
    assert_eq!(objects(&told[1]), [out], "and nothing after it");
}

/// A program of somebody else in a Landlock domain, that is refused something again and again until it is dropped.
struct Stranger(Child);

impl Stranger {
    fn new(mut command: Command) -> Self {
        Self(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
    }
}

impl Drop for Stranger {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

#[test]
fn what_another_sandbox_is_refused_is_never_told() {
    let Some(_on) = Auditing::on() else { return };
    let (ground, other) = (Ground::new(), Ground::new());
    let flags = ["--hide", other.hidden.parent().unwrap().to_str().unwrap()];
    // The control: its own supervisor tells it.
    let mut once = other.world.sandbox(Tier::Floor, &flags, "bash");
    let done = Finished::of(once.args(["-c", &other.filled("cat {hid} 2>/dev/null; exit 3")]));
    assert!(done.stderr.contains("blocked by the kernel (Landlock): "), "{}", done.stderr);
    let mut forever = other.world.sandbox(Tier::Floor, &flags, "bash");
    forever.args(["-c", &other.filled("while :; do : < {hid}; (: > {out}); done 2>/dev/null")]);
    let _stranger = Stranger::new(forever);
    for told in ground.tell(&["for ((i = 0; i < 999; i++)); do (:); done; exit 3"; 5]) {
        assert_eq!(told.denials, Vec::<Value>::new(), "{told:?}");
    }
}

#[test]
fn in_the_full_tier_nothing_is_asked_for() {
    let Some(_on) = Auditing::on() else { return };
    if !tier::all().contains(&Tier::Full) {
        return;
    }
    let ground = Ground::new();
    let line = ground.filled("(: > {out}) 2>/dev/null; exit 3");
    let told = tell(&ground.world, Tier::Full, AUTO, &[command(&line)]).remove(0);
    assert_eq!(told.denials, Vec::<Value>::new(), "the mounts refused it: {told:?}");
}
