//! Tests that the remedy of a denial permits exactly the denied action, in every mode and activity. A denial that
//! nothing can permit has no remedy.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::net::TcpListener;

use serde_json::{Value, json};
use tests::replies::{calls, done, model_of};
use tests::world::tool_results;
use tests::{Finished, User, World};

/// Action of an agent that needs some access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Act {
    CommandInProject,
    DeclaredCommand,
    FileInProject,
    CommandOutside,
    FileOutside,
    Connect,
    Secret,
    Hook,
}

const ACTS: [Act; 8] = [
    Act::CommandInProject,
    Act::DeclaredCommand,
    Act::FileInProject,
    Act::CommandOutside,
    Act::FileOutside,
    Act::Connect,
    Act::Secret,
    Act::Hook,
];

/// Output of a command whose action succeeded. The text of the command itself does not contain it.
const DID_IT: &str = "did-2";

struct Ran {
    was_done: bool,
    remedies: Vec<String>,
    stderr: String,
}

impl Act {
    fn call(self, world: &World, port: u16) -> (&'static str, Value) {
        let outside = world.root().join("outside");
        let shell = |command: &str, more: Value| {
            let mut input = json!({"command": format!("{command} && echo did-$((1+1))")});
            input.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            ("shell_exec", input)
        };
        let connect = format!("exec 3<>/dev/tcp/127.0.0.1/{port}");
        let plain = |command: &str| shell(command, json!({}));
        match self {
            Self::CommandInProject => plain("touch made"),
            Self::DeclaredCommand => shell("touch made", json!({"access": "write"})),
            Self::FileInProject => ("write_file", json!({"path": "made", "content": "x"})),
            Self::CommandOutside => plain(&format!("touch {}/made", outside.display())),
            Self::FileOutside => ("write_file", json!({"path": outside.join("made"), "content": "x"})),
            Self::Connect => shell(&connect, json!({"network": true})),
            Self::Secret => plain("cat ~/.ssh/id_secret"),
            Self::Hook => plain("touch .git/hooks/made"),
        }
    }

    /// Carries out the action in a run with these flags and those that `given` adds.
    fn run(self, flags: &[&str], given: &str) -> Ran {
        let world = World::new(User::Myself);
        fs::create_dir(world.root().join("outside")).unwrap();
        fs::create_dir_all(world.home().join(".ssh")).unwrap();
        fs::write(world.home().join(".ssh/id_secret"), "s").unwrap();
        world.file("a.txt", "one");
        world.commit();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let call = self.call(&world, listener.local_addr().unwrap().port());
        let server = model_of([calls(&[call]), done()]);
        let given = given.replace("[world]", world.root().to_str().unwrap());
        let mut command = world.exec(&server, flags);
        let finished = Finished::of(command.args(given.split_whitespace()));
        let result = tool_results(&server, 1).remove(0).to_string();
        let made = |place: std::path::PathBuf| place.join("made").exists();
        let was_done = match self {
            Self::FileInProject => made(world.project()),
            Self::FileOutside => made(world.root().join("outside")),
            _ => result.contains(DID_IT),
        };
        let remedies = world.log().iter().filter_map(remedy).map(|remedy| world.stable(&remedy)).collect();
        Ran { was_done, remedies, stderr: finished.stderr }
    }
}

/// Returns the flags that an event names as the remedy of a denial. `None` for other events.
fn remedy(event: &Value) -> Option<String> {
    let data = &event["data"];
    let flags = match event["type"].as_str()? {
        "denied" => data["grant"].as_str()?,
        "approval_answered" => {
            data["cause"].as_str()?.split("; ").nth(1)?.split_once(" allows the call without asking")?.0
        }
        _ => return None,
    };
    Some(flags.to_owned())
}

/// Adds the flag for `mode` to the flags, unless the remedy names another mode.
fn with_mode<'a>(flags: &[&'a str], mode: &'a str, remedy: &str) -> Vec<&'a str> {
    let mode = if remedy.contains("--mode") { &[][..] } else { &["--mode", mode][..] };
    [flags, mode].concat()
}

#[test]
fn a_remedy_allows_what_was_denied_and_a_planner_is_offered_none() {
    for (activity, mode) in
        [("execute", "deny"), ("execute", "auto"), ("execute", "ask"), ("plan", "deny"), ("plan", "auto")]
    {
        for act in ACTS {
            let flags = ["--activity", activity];
            let ran = act.run(&with_mode(&flags, mode, ""), "");
            let row = format!("{activity} {mode} {act:?}: {:?}\n{}", ran.remedies, ran.stderr);
            let opens = activity == "execute" && !matches!(act, Act::Secret | Act::Hook);
            assert_eq!(
                ran.was_done,
                opens
                    && mode == "auto"
                    && matches!(act, Act::CommandInProject | Act::DeclaredCommand | Act::FileInProject),
                "{row}"
            );
            assert_eq!(ran.remedies.is_empty(), ran.was_done || !opens, "{row}");
            // Access to local addresses is separate from access to the network.
            let (mut given, mut last) = (String::new(), ran);
            while let Some(remedy) = last.remedies.first().filter(|_| !last.was_done) {
                assert!(!given.contains(remedy.as_str()), "{row}\nagain {remedy} after {given}");
                given = format!("{given} {remedy}");
                last = act.run(&with_mode(&flags, mode, &given), &given);
            }
            assert_eq!(last.was_done, opens, "{row}\nwith {given}: {:?}\n{}", last.remedies, last.stderr);
        }
    }
}
