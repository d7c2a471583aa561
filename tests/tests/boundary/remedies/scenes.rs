//! The scenes in which a denial is remedied: a first attempt, a reaction to the denial, and a check of the success.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};

use crate::remedies::ground::{ANSWER, Ground};

/// Person or model that reacts to a denial, with the kind of reaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Who {
    /// The person repeats the run with the flags that the text names.
    User,
    /// The model uses another path that it may access.
    ModelElsewhere,
    /// The model changes the declared access of the call.
    ModelDeclares,
    /// The person copies the file that the text names into the project.
    UserCopies,
}

pub(crate) struct Scene {
    pub(crate) name: &'static str,
    pub(crate) flags: &'static [&'static str],
    pub(crate) tool: &'static str,
    pub(crate) input: fn(&Ground) -> Value,
    pub(crate) who: Who,
    /// True if the scene has succeeded, judged by the files and by the text of the model's last tool result.
    pub(crate) is_done: fn(&Ground, &str) -> bool,
    /// True if the first attempt already succeeds in the full tier.
    pub(crate) full_has_it: bool,
}

const AUTO: &[&str] = &["--mode", "auto"];

const fn scene(
    name: &'static str,
    who: Who,
    input: fn(&Ground) -> Value,
    is_done: fn(&Ground, &str) -> bool,
) -> Scene {
    Scene { name, flags: AUTO, tool: "shell_exec", input, who, is_done, full_has_it: false }
}

fn command(ground: &Ground, line: &str) -> Value {
    json!({"command": ground.fill(line)})
}

fn serves(_: &Ground, told: &str) -> bool {
    told.contains(ANSWER)
}

/// All scenes except the one of `network`.
pub(crate) const SCENES: &[Scene] = &[
    scene(
        "a wrong directory, and the project would do",
        Who::ModelElsewhere,
        |ground| command(ground, "cp inside.txt {o}/report.txt"),
        |ground, _| ground.world.read("report.txt") == "inside\n" && !ground.outside("report.txt").exists(),
    ),
    scene(
        "another directory, and it has to be that one",
        Who::User,
        |ground| command(ground, "cp inside.txt {o}/report.txt"),
        |ground, _| fs::read_to_string(ground.outside("report.txt")).unwrap() == "inside\n",
    ),
    Scene {
        tool: "write_file",
        ..scene(
            "a file tool, outside",
            Who::User,
            |ground| json!({"path": ground.fill("{o}/a/deep/file.txt"), "content": "x"}),
            |ground, _| fs::read_to_string(ground.outside("a/deep/file.txt")).unwrap() == "x",
        )
    },
    scene(
        "git's configuration",
        Who::User,
        |ground| command(ground, "git config core.pager less; git config core.pager | grep less"),
        |ground, _| ground.world.read(".git/config").contains("pager = less"),
    ),
    Scene {
        full_has_it: true,
        ..scene(
            "/tmp by its name, and any temp directory would do",
            Who::ModelElsewhere,
            |ground| command(ground, "echo scratch > {tmp} && cat {tmp}"),
            |ground, told| told.contains("scratch\n") && !fs::exists(ground.fill("{tmp}")).unwrap(),
        )
    },
    Scene {
        full_has_it: true,
        ..scene(
            "/tmp by its name, and it has to be that one",
            Who::User,
            |ground| command(ground, "echo scratch > {tmp} && cat {tmp}"),
            |_, told| told.contains("scratch\n"),
        )
    },
    scene(
        "a port of the host",
        Who::User,
        |ground| command(ground, "curl -sS http://127.0.0.1:{port}/"),
        serves,
    ),
    Scene {
        flags: &[],
        tool: "write_file",
        ..scene(
            "an agent that only reads, and is to write",
            Who::User,
            |_| json!({"path": "plan.md", "content": "1. write\n"}),
            |ground, _| ground.world.read("plan.md") == "1. write\n",
        )
    },
    Scene {
        flags: &[],
        ..scene(
            "an agent that only reads, and its command writes",
            Who::User,
            |ground| command(ground, "echo 1 > plan.md"),
            |ground, _| ground.world.read("plan.md") == "1\n",
        )
    },
    scene(
        "a command that declared to read, and writes",
        Who::ModelDeclares,
        |_| json!({"command": "echo 1 > plan.md", "access": "read"}),
        |ground, _| ground.world.read("plan.md") == "1\n",
    ),
    Scene {
        flags: &["--mode", "auto", "--hide", "../outside/hidden.txt"],
        ..scene(
            "a hidden file",
            Who::UserCopies,
            |ground| command(ground, "cat {o}/hidden.txt > used.txt"),
            |ground, _| ground.world.read("used.txt") == "handed over\n",
        )
    },
    scene(
        "a package manager's cache in the home",
        Who::User,
        |ground| {
            command(ground, "mkdir -p ~/.cache/poetry/cache && echo index > ~/.cache/poetry/cache/index")
        },
        |ground, _| fs::exists(ground.world.home().join(".cache/poetry/cache/index")).unwrap(),
    ),
    scene(
        "a unix socket of the host",
        Who::User,
        |ground| command(ground, "curl -sS --unix-socket {o}/socket http://localhost/"),
        serves,
    ),
    scene(
        "the mode of a file outside",
        Who::User,
        |ground| command(ground, "chmod 600 {o}/there.txt"),
        |ground, _| fs::metadata(ground.outside("there.txt")).unwrap().permissions().mode() & 0o777 == 0o600,
    ),
];
