//! Tests rewinds of files and conversation, over `serve`, with real workers in a real project.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use model::replay::ReplayServer;
use serde_json::{Value, json};
use tests::random::Random;
use tests::replies::{calls, done, model_of, says, shell};
use tests::served::Served;
use tests::{Finished, User, World, wait_until};

/// Conversation of an agent that may write the project.
pub(crate) struct Talk<'a> {
    pub world: &'a World,
    pub served: Served,
    pub id: String,
    pub said: Vec<u64>,
}

impl<'a> Talk<'a> {
    pub(crate) fn new(world: &'a World, server: &ReplayServer) -> Self {
        let mut front = Served::greeted(world);
        let id = front.converse(&world.project(), &server.base_url(), "auto");
        Self { world, served: front, id, said: Vec::new() }
    }

    pub(crate) fn say(&mut self, text: &str) {
        self.served.call("sendUserMessage", json!({"conversation_id": self.id, "text": text}));
        let said = self.served.until("event/userMessage");
        self.said.push(said["logged"]["id"].as_u64().unwrap());
        self.served.until("event/turnFinished");
        // Changes of files within a moment after the end of a turn count as changes of the turn.
        let looks = self.world.own().join("state/checkpoints").join(&self.id).join("looks.jsonl");
        let is_seen = || {
            let looks = fs::read_to_string(&looks).unwrap_or_default();
            // In mode `auto` there is a checkpoint with each message, and one after each call.
            looks.lines().last().is_some_and(|line| line.contains(r#""at":"end""#))
        };
        wait_until("the end of the turn is seen", is_seen);
    }

    pub(crate) fn preview(&mut self, to: Option<u64>, scope: &str) -> Value {
        self.served.call("rewind", json!({"conversation_id": self.id, "to": to, "scope": scope}));
        self.served.until("event/rewindPreview")["data"].clone()
    }

    fn confirm(&mut self, preview: &Value) -> Value {
        let target = &preview["target"];
        let wanted = json!({
            "conversation_id": self.id, "to": target["to"], "scope": target["scope"], "digest": preview["digest"],
        });
        self.served.call("rewind", wanted);
        self.served.until("event/rewound")["data"].clone()
    }

    pub(crate) fn rewind(&mut self, to: Option<u64>, scope: &str) -> Value {
        let preview = self.preview(to, scope);
        self.confirm(&preview)
    }

    pub(crate) fn end(self) {
        let (_, finished) = self.served.end();
        finished.expect(0);
        let audit = Finished::of(self.world.bailiwick(["audit", "-C"]).arg(self.world.project())).expect(0);
        assert!(!audit.stdout.contains("finding:"), "{}", audit.stdout);
    }
}

pub(crate) fn names(files: &Value) -> Vec<String> {
    let row =
        |file: &Value| format!("{} {}", file["change"].as_str().unwrap(), file["path"].as_str().unwrap());
    files.as_array().into_iter().flatten().map(row).collect()
}

/// Returns path, type, mode and content of all files in the project.
pub(crate) fn tree(world: &World) -> Vec<String> {
    let mut found = Vec::new();
    let mut open = vec![world.project()];
    while let Some(directory) = open.pop() {
        for entry in fs::read_dir(directory).unwrap().flatten() {
            let path = entry.path();
            let metadata = path.symlink_metadata().unwrap();
            let name = path.strip_prefix(world.project()).unwrap().display().to_string();
            if metadata.is_dir() {
                found.push(format!("{name}/"));
                open.push(path);
            } else if metadata.is_symlink() {
                found.push(format!("{name} -> {}", fs::read_link(&path).unwrap().display()));
            } else {
                let mode = metadata.permissions().mode() & 0o777;
                let bytes = fs::read(&path).unwrap();
                let hash = bytes.iter().fold(5381_u64, |hash, byte| hash.wrapping_mul(33) ^ u64::from(*byte));
                found.push(format!("{name} {mode:o} {} bytes {hash:x}", bytes.len()));
            }
        }
    }
    found.sort();
    found
}

pub(crate) fn messages(server: &ReplayServer, request: usize) -> String {
    let body: Value = serde_json::from_slice(&server.requests()[request].body).unwrap();
    body["messages"].to_string()
}

#[test]
fn files_and_conversation_are_as_they_were_and_the_rewind_can_be_undone() {
    let world = World::new(User::Myself);
    world.file("kept.txt", "as it was\n");
    world.file("crlf.txt", "one\r\ntwo\r\n");
    world.file("bin", [0, 159, 146, 150, 255]);
    world.file("tool", "#!/bin/sh\n");
    fs::set_permissions(world.project().join("tool"), PermissionsExt::from_mode(0o755)).unwrap();
    world.file("deep/er/file", "deep\n");
    symlink("kept.txt", world.project().join("link")).unwrap();
    let before = tree(&world);
    let server = model_of([
        calls(&[("write_file", json!({"path": "kept.txt", "content": "other\n"}))]),
        shell(
            "rm -r deep && printf x > deep && chmod 600 tool && ln -sfn bin link && mv crlf.txt moved.txt && printf 'y' >> bin \
             && mkdir -p new/dir && echo n > new/dir/file && ln -s /etc/hostname out && rm -f gone; printf z > crlf2",
        ),
        says("All is other now.", "end_turn"),
        says("Hello again.", "end_turn"),
        says("And again.", "end_turn"),
    ]);
    let mut talk = Talk::new(&world, &server);
    talk.say("make it other");
    let after = tree(&world);
    assert_ne!(after, before);
    let first = talk.said[0];
    let preview = talk.preview(Some(first), "both");
    assert_eq!(
        names(&preview["files"]),
        [
            "modified bin",
            "added crlf.txt",
            "deleted crlf2",
            "deleted deep",
            "added deep/er/file",
            "modified kept.txt",
            "modified link",
            "deleted moved.txt",
            "deleted new/dir/file",
            "deleted out",
            "modified tool",
        ]
    );
    assert_eq!((tree(&world), preview["messages"].as_u64()), (after.clone(), Some(1)));
    let done = talk.confirm(&preview);
    assert_eq!((tree(&world), done["error"].as_str()), (before.clone(), None), "{done}");
    talk.say("hello");
    let sent = messages(&server, 3);
    assert!(sent.contains("took the conversation back") && sent.contains("kept.txt"), "{sent}");
    assert!(!sent.contains("make it other") && !sent.contains("All is other"), "{sent}");
    // A rewind cannot be undone after another message.
    talk.served.call("rewind", json!({"conversation_id": talk.id}));
    assert_eq!(talk.served.until("event/notice")["data"]["code"], "rewind_refused");
    let second = talk.said[1];
    talk.rewind(Some(second), "both");
    talk.rewind(None, "both");
    talk.say("and now");
    let sent = messages(&server, 4);
    assert!(sent.contains("Hello again.") && sent.contains("undid the last rewind"), "{sent}");
    assert_eq!(tree(&world), before);
    talk.end();
}

#[test]
fn what_changes_behind_a_turn_that_wrote_nothing_is_somebody_elses() {
    let world = World::new(User::Myself);
    world.file("mine", "1");
    world.file("a", "1");
    let server = model_of([says("Nothing to do.", "end_turn"), shell("printf 2 > a"), done()]);
    let mut talk = Talk::new(&world, &server);
    talk.say("look");
    world.file("mine", "by a person");
    talk.say("change");
    let first = talk.said[0];
    let done = talk.rewind(Some(first), "files");
    assert_eq!(
        (names(&done["files"]), &done["left"][0]["path"]),
        (vec!["modified a".to_owned()], &json!("mine"))
    );
    assert_eq!((world.read("a"), world.read("mine")), ("1".to_owned(), "by a person".to_owned()));
    talk.end();
}

#[test]
fn one_file_is_taken_back_alone() {
    let world = World::new(User::Myself);
    world.file("a", "1");
    world.file("dir/b", "1");
    let server = model_of([shell("printf 2 > a; printf 2 > dir/b; printf 2 > c"), done()]);
    let mut talk = Talk::new(&world, &server);
    talk.say("change");
    let first = talk.said[0];
    let mut wanted =
        json!({"conversation_id": talk.id, "to": first, "scope": "files", "files": ["dir/b", "../a"]});
    talk.served.call("rewind", wanted.clone());
    let preview = talk.served.until("event/rewindPreview")["data"].clone();
    assert_eq!(
        (names(&preview["files"]), &preview["only"]),
        (vec!["modified dir/b".to_owned()], &wanted["files"])
    );
    // The digest is that of this file, and of no other.
    wanted["digest"] = preview["digest"].clone();
    let mut all = wanted.clone();
    all["files"] = json!([]);
    talk.served.call("rewind", all);
    assert_eq!(names(&talk.served.until("event/rewindPreview")["data"]["files"]).len(), 3);
    talk.served.call("rewind", wanted);
    talk.served.until("event/rewound");
    assert_eq!(["a", "dir/b", "c"].map(|name| world.read(name)), ["2", "1", "2"]);
    talk.end();
    let mut command = world.bailiwick(["rewind", "--to", "1", "--file", "c", "-C"]);
    let shown = Finished::of(command.arg(world.project())).expect(2);
    assert_eq!(shown.stdout, "delete    c\n", "{}", shown.stderr);
    let mut command = world.bailiwick(["rewind", "--to", "1", "--file", "../c", "-C"]);
    let refused = Finished::of(command.arg(world.project())).expect(2);
    assert!(refused.stderr.contains("../c is not a file in"), "{}", refused.stderr);
}

#[test]
fn an_undone_rewind_of_files_has_them_as_they_were() {
    let world = World::new(User::Myself);
    world.file("a", "1");
    let server =
        model_of([shell("printf 2 > a; mkdir d; printf 3 > d/b"), done(), says("Later.", "end_turn")]);
    let mut talk = Talk::new(&world, &server);
    talk.say("change");
    let after = tree(&world);
    let first = talk.said[0];
    talk.rewind(Some(first), "files");
    assert_eq!((world.read("a"), world.project().join("d").exists()), ("1".to_owned(), false));
    talk.rewind(None, "files");
    assert_eq!(tree(&world), after);
    talk.say("go on");
    let sent = messages(&server, 2);
    assert!(sent.contains("change") && sent.contains("undid the last rewind"), "{sent}");
    talk.end();
}

#[test]
fn what_somebody_else_changed_ignored_or_protected_survives() {
    let world = World::new(User::Myself);
    for (name, text) in
        [("mine", "1"), ("between", "1"), ("theirs", "1"), (".gitignore", "ignored\n"), ("ignored", "1")]
    {
        world.file(name, text);
    }
    world.commit();
    let server = model_of([
        shell(
            "printf 2 > mine; printf 2 > between; printf 2 > theirs; printf 2 > ignored; git add -A; git commit -qm x",
        ),
        done(),
        shell("printf 3 > mine; : > .gitignore"),
        done(),
    ]);
    let mut talk = Talk::new(&world, &server);
    talk.say("one");
    let head = fs::read(world.project().join(".git/HEAD")).unwrap();
    world.file("between", "by a person");
    talk.say("two");
    world.file("theirs", "by a person too");
    let first = talk.said[0];
    let preview = talk.preview(Some(first), "files");
    assert_eq!(names(&preview["files"]), ["modified .gitignore", "modified mine"]);
    let left: Vec<_> =
        preview["left"].as_array().unwrap().iter().map(|left| left["path"].as_str().unwrap()).collect();
    assert_eq!(left, ["between", "ignored", "theirs"], "{preview}");
    let done = talk.confirm(&preview);
    assert_eq!(done["error"].as_str(), None, "{done}");
    let read = ["mine", "between", "theirs", "ignored"].map(|name| world.read(name));
    assert_eq!(read, ["1", "by a person", "by a person too", "2"]);
    assert_eq!(fs::read(world.project().join(".git/HEAD")).unwrap(), head);
    talk.end();
}

/// Tests an untrusted snapshot of a worker: it could contain a settings file that never existed; a rewind must not
/// write it, since the host would execute it.
#[test]
fn what_the_host_acts_on_is_never_written_back_and_what_came_there_goes() {
    let world = World::new(User::Myself);
    let host = ["sub/.envrc", "sub/.vscode/tasks.json"];
    for name in host.into_iter().chain(["a"]) {
        world.file(name, "# 1\n");
    }
    let server = model_of([
        shell(
            "printf 2 > a; rm sub/.envrc; printf evil > sub/.vscode/tasks.json; mkdir -p x/.idea; printf evil > x/.idea/y.xml",
        ),
        done(),
    ]);
    let mut talk = Talk::new(&world, &server);
    talk.say("change");
    let first = talk.said[0];
    let preview = talk.preview(Some(first), "files");
    assert_eq!(names(&preview["files"]), ["modified a", "deleted x/.idea/y.xml"], "{preview}");
    let left: Vec<_> =
        preview["left"].as_array().unwrap().iter().map(|left| (&left["path"], &left["reason"])).collect();
    let reason = json!("your own programs run this file");
    assert_eq!(left, [(&json!(host[0]), &reason), (&json!(host[1]), &reason)], "{preview}");
    talk.confirm(&preview);
    assert!(!world.project().join(host[0]).exists() && !world.project().join("x").exists());
    talk.end();
}

#[test]
fn a_file_that_changes_after_the_preview_has_it_shown_again() {
    let world = World::new(User::Myself);
    world.file("a", "1");
    world.file("b", "1");
    let server = model_of([shell("printf 2 > a; printf 2 > b"), done()]);
    let mut talk = Talk::new(&world, &server);
    talk.say("change");
    let first = talk.said[0];
    let preview = talk.preview(Some(first), "files");
    world.file("b", "mine");
    let wanted =
        json!({"conversation_id": talk.id, "to": first, "scope": "files", "digest": preview["digest"]});
    talk.served.call("rewind", wanted);
    let again = talk.served.until("event/rewindPreview")["data"].clone();
    assert_eq!((names(&again["files"]), world.read("a")), (vec!["modified a".to_owned()], "2".to_owned()));
    talk.confirm(&again);
    assert_eq!((world.read("a"), world.read("b")), ("1".to_owned(), "mine".to_owned()));
    talk.end();
}

#[test]
fn a_session_that_goes_on_is_taken_back_beyond_its_end() {
    let world = World::new(User::Myself);
    world.file("a", "1");
    let server = model_of([shell("printf 2 > a"), says("First.", "end_turn")]);
    let mut talk = Talk::new(&world, &server);
    talk.say("one");
    let (first, id) = (talk.said[0], talk.id.clone());
    talk.end();
    let server = model_of([says("Second.", "end_turn")]);
    let mut front = Served::greeted(&world);
    let options =
        json!({"cwd": world.project(), "base_url": server.base_url(), "mode": "auto", "resume": id});
    front.call("newConversation", options);
    let mut talk = Talk { world: &world, served: front, id, said: vec![first] };
    talk.rewind(Some(first), "both");
    assert_eq!(world.read("a"), "1");
    talk.say("two");
    let sent = messages(&server, 0);
    assert!(!sent.contains("First.") && sent.contains("two"), "{sent}");
    let id = talk.id.clone();
    talk.end();
    // A third run sends the same conversation as the second one.
    let server = model_of([done()]);
    let mut go_on = world.exec(&server, &["--resume", &id]);
    Finished::of(&mut go_on).expect(0);
    let sent = messages(&server, 0);
    assert!(!sent.contains("First.") && sent.contains("Second."), "{sent}");
}

/// Returns a random command that changes some of a project's files.
fn some_work(random: &mut Random) -> String {
    let names = ["a", "b", "dir/c", "dir/sub/d", "e e", "ü"];
    let pick = |random: &mut Random| names[usize::try_from(random.below(6)).unwrap()];
    let mut line = String::new();
    for _ in 0..=random.below(4) {
        let (one, two) = (pick(random), pick(random));
        let part = match random.below(9) {
            0 => format!("mkdir -p \"$(dirname '{one}')\"; printf '{}' > '{one}'; ", random.below(50)),
            1 => format!("printf 'a\\r\\nb\\r\\n' >> '{one}'; "),
            2 => format!("head -c {} /dev/urandom > '{one}'; ", random.below(5000)),
            3 => format!("rm -rf '{one}'; "),
            4 => format!("mv '{one}' '{two}'; "),
            5 => format!(
                "[ ! -f '{one}' ] || chmod {} '{one}'; ",
                ["600", "755", "444", "640"][usize::try_from(random.below(4)).unwrap()]
            ),
            6 => format!("ln -sfn '{two}' '{one}'; "),
            7 => format!("rm -rf '{one}'; mkdir -p '{one}/in'; printf x > '{one}/in/side'; "),
            _ => "rm -rf dir; ".to_owned(),
        };
        line.push_str(&part);
    }
    format!("({line}) 2>/dev/null; true")
}

/// Returns the files and links of a project, and the directories that contain some.
fn covered(world: &World) -> Vec<String> {
    tree(world).into_iter().filter(|row| !row.ends_with('/')).collect()
}

#[test]
fn whatever_was_done_to_files_is_taken_back_and_done_again() {
    let rounds: usize = std::env::var("BAILIWICK_REWINDS").map_or(12, |rounds| rounds.parse().unwrap());
    let seed = std::env::var("BAILIWICK_SEED")
        .map_or_else(|_| u64::from(std::process::id()), |seed| seed.parse().unwrap());
    let mut random = Random::new(seed);
    let world = World::new(User::Myself);
    for (name, text) in [("a", &b"1"[..]), ("dir/c", b"two\r\n"), ("dir/sub/d", b"\0\xff"), ("ü", b"")] {
        world.file(name, text);
    }
    let work: Vec<_> = (0..rounds).map(|_| some_work(&mut random)).collect();
    let server = model_of(work.iter().flat_map(|work| [shell(work), done()]));
    let mut talk = Talk::new(&world, &server);
    let mut states = vec![covered(&world)];
    for round in 0..rounds {
        talk.say("more");
        states.push(covered(&world));
        let back = usize::try_from(random.below(u64::try_from(round + 1).unwrap())).unwrap();
        let to = talk.said[back];
        let done = talk.rewind(Some(to), "files");
        let said = format!("seed {seed}, round {round}, to {back}: {:?}\n{done}", &work[..=round]);
        assert_eq!(covered(&world), states[back], "{said}");
        let undone = talk.rewind(None, "files");
        assert_eq!(covered(&world), states[round + 1], "{said}\n{undone}");
    }
    talk.end();
}

#[test]
fn the_command_line_lists_shows_and_takes_back_what_it_was_confirmed() {
    let world = World::new(User::Myself);
    world.file("a", "1");
    let server = model_of([shell("printf 2 > a"), done(), says("More.", "end_turn")]);
    let mut talk = Talk::new(&world, &server);
    talk.say("one");
    talk.say("two \u{1b}[31m");
    let held = Finished::of(world.bailiwick(["rewind", "-C"]).arg(world.project())).expect(2);
    assert!(held.stderr.contains("process"), "{}", held.stderr);
    talk.end();
    let rewind = |arguments: &[&str], code| {
        let mut command = world.bailiwick(["rewind", "-C"]);
        Finished::of(command.arg(world.project()).args(arguments)).expect(code)
    };
    let listed = rewind(&[], 0).stdout;
    assert!(listed.contains("  1  one\n  2  two ") && !listed.contains('\u{1b}'), "{listed}");
    assert!(rewind(&["--to", "3"], 2).stderr.contains("no message 3"));
    assert!(rewind(&["--undo"], 2).stderr.contains("no rewind to undo"));
    let shown = rewind(&["--to", "1"], 2);
    assert_eq!(world.read("a"), "2");
    assert!(shown.stdout.contains("restore   a\n"), "{}", shown.stdout);
    let digest = shown.stderr.split("--digest ").nth(1).unwrap().split(' ').next().unwrap().to_owned();
    let other = rewind(&["--to", "1", "--digest", "0"], 2);
    assert!(other.stderr.contains("got --digest 0, expected ") && other.stderr.contains(&digest));
    assert!(other.stdout.contains("restore   a\n") && world.read("a") == "2", "{}", other.stdout);
    rewind(&["--to", "1", "--digest", &digest], 0);
    assert_eq!((world.read("a"), rewind(&[], 0).stdout), ("1".to_owned(), String::new()));
    let audit = Finished::of(world.bailiwick(["audit", "-C"]).arg(world.project())).expect(0);
    assert!(!audit.stdout.contains("finding:"), "{}", audit.stdout);
    let shown = rewind(&["--undo"], 2);
    let digest = shown.stderr.split("--digest ").nth(1).unwrap().split(' ').next().unwrap().to_owned();
    rewind(&["--undo", "--digest", &digest], 0);
    assert_eq!((world.read("a"), rewind(&[], 0).stdout), ("2".to_owned(), listed));
}

#[test]
fn a_copy_of_a_session_goes_on_and_can_be_taken_back_by_itself() {
    let world = World::new(User::Myself);
    world.file("a", "1");
    let server = model_of([shell("printf 2 > a"), says("First.", "end_turn")]);
    let mut talk = Talk::new(&world, &server);
    talk.say("one");
    let (first, origin) = (talk.said[0], talk.id.clone());
    let log = world.own().join("state/sessions").join(format!("{origin}.jsonl"));
    // The original session is still open.
    let server = model_of([says("Second.", "end_turn")]);
    let mut front = Served::greeted(&world);
    let options = json!({"cwd": world.project(), "base_url": server.base_url(), "mode": "auto", "resume": origin, "fork": true});
    let id = front.call("newConversation", options)["conversation_id"].as_str().unwrap().to_owned();
    assert_ne!(id, origin);
    let mut copy = Talk { world: &world, served: front, id, said: vec![first] };
    let before = fs::read(&log).unwrap();
    copy.rewind(Some(first), "both");
    assert_eq!(world.read("a"), "1");
    copy.say("another way");
    let sent = messages(&server, 0);
    assert!(sent.contains("another way") && !sent.contains("First."), "{sent}");
    assert_eq!(fs::read(&log).unwrap(), before, "the session itself stays as it is");
    drop(copy.served.input.take());
    copy.served.process.wait().unwrap();
    talk.end();
    let server = model_of([done()]);
    let refused = Finished::of(&mut world.exec(&server, &["--fork"])).expect(2);
    assert!(refused.stderr.contains("--fork needs a session to copy"), "{}", refused.stderr);
    Finished::of(&mut world.exec(&server, &["--resume", &origin, "--fork"])).expect(0);
    assert!(messages(&server, 0).contains("First."));
    assert_eq!(
        fs::read_dir(world.own().join("state/sessions"))
            .unwrap()
            .flatten()
            .filter(|entry| entry.path().extension().is_some_and(|end| end == "jsonl"))
            .count(),
        3
    );
}
