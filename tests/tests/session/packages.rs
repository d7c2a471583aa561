//! Tests plans on real packages with an added bug. The packages' own tests are the acceptance commands.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::{Path, PathBuf};

use model::replay::ReplayServer;
use serde_json::{Value, json};
use tests::replies::{calls, done, model_of, says};
use tests::{Finished, User, World, skip};

struct Package {
    /// Beginning of the name of the package's source distribution.
    name: &'static str,
    file: &'static str,
    right: &'static str,
    wrong: &'static str,
}

const ITERTOOLS: Package = Package {
    name: "more_itertools-10.5.0",
    file: "more_itertools/recipes.py",
    right: "        return _zip_equal(*args)\n    if incomplete == 'ignore'",
    wrong: "        return zip(*args)\n    if incomplete == 'ignore'",
};

const IDNA: Package = Package {
    name: "idna-3.10",
    file: "idna/intranges.py",
    right: "_encode_range(current_range[0], current_range[-1] + 1)",
    wrong: "_encode_range(current_range[0], current_range[-1])",
};

const XMLTODICT: Package = Package {
    name: "xmltodict-0.13.0",
    file: "xmltodict.py",
    right: "else self.cdata_separator.join(self.data))\n            item = self.item",
    wrong: "else ''.join(self.data))\n            item = self.item",
};

impl Package {
    /// Creates a world whose project is the package with the bug.
    fn world(&self, archive: &Path) -> World {
        let world = World::new(User::Myself);
        let tar = || {
            let mut tar = world.command("tar");
            tar.args(["xzf"]).arg(archive).args(["--strip-components=1", "--no-same-owner", "-C"]);
            Finished::of(tar.arg(world.project()))
        };
        tar().expect(0);
        let text = world.read(self.file);
        assert_eq!(text.matches(self.right).count(), 1, "{} is another version", self.name);
        world.file(self.file, text.replace(self.right, self.wrong));
        world.commit();
        world
    }

    fn mend(&self) -> (&'static str, Value) {
        let change = json!({"path": self.file, "old_string": self.wrong, "new_string": self.right});
        ("edit_file", change)
    }
}

fn archive(name: &str) -> Option<PathBuf> {
    let directory = std::env::var_os("BAILIWICK_SDISTS")?;
    // Indexes spell the names of distributions in two ways.
    let spellings = [name.to_owned(), name.replace('_', "-")];
    let paths = spellings.map(|name| Path::new(&directory).join(format!("{name}.tar.gz")));
    paths.into_iter().find(|path| path.exists())
}

fn run(world: &World, server: &ReplayServer, arguments: &[&str]) -> Finished {
    let mut command = world.bailiwick(arguments);
    command.args(["--base-url", &server.base_url(), "--model", "scripted", "-C"]).arg(world.project());
    Finished::of(command.env("ANTHROPIC_API_KEY", "no-key-is-needed"))
}

fn writes_plan(markdown: &str) -> String {
    calls(&[("write_plan", json!({ "markdown": markdown }))])
}

fn reports(step: u32, status: &str) -> (&'static str, Value) {
    ("update_step", json!({"step": step, "status": status}))
}

/// Returns the acceptance commands in the order of their runs, each with true if it passed.
fn acceptance(world: &World) -> Vec<(String, bool)> {
    let log = world.log();
    let steps = log.iter().filter(|event| event["type"] == "plan_step_status");
    let outcomes =
        steps.flat_map(|event| event["data"]["acceptance"].as_array().cloned().unwrap_or_default());
    outcomes.map(|one| (one["command"].as_str().unwrap().to_owned(), one["passed"] == true)).collect()
}

fn audited(world: &World) {
    let audit = Finished::of(world.bailiwick(["audit", "-C"]).arg(world.project())).expect(0);
    assert!(!audit.stdout.contains("finding:"), "{}", audit.stdout);
}

#[test]
fn the_tests_of_more_itertools_accept_the_plan_that_mends_it() {
    let Some(archive) = archive(ITERTOOLS.name) else {
        skip!("no source distributions: BAILIWICK_SDISTS names no directory with {}", ITERTOOLS.name)
    };
    let world = ITERTOOLS.world(&archive);
    let plan = "# Strict groups\n\n## Steps\n\n### 1. Let groups of unequal lengths fail\n\nAcceptance:\n- `python3 -m unittest -q tests.test_recipes`\n\n### 2. See that nothing else broke\n\nAcceptance:\n- `python3 -m unittest -q tests.test_more`\n- `git diff --quiet -- tests`\n";
    let server = model_of([
        calls(&[("shell_exec", json!({"command": "python3 -m unittest -q tests.test_recipes"}))]),
        writes_plan(plan),
        calls(&[reports(1, "in_progress"), ITERTOOLS.mend(), reports(1, "completed")]),
        calls(&[reports(2, "completed")]),
        done(),
        done(),
    ]);
    let arguments = ["exec", "--activity", "plan", "--mode", "auto", "--approve-plan", "mend it"];
    let done = run(&world, &server, &arguments).expect(0);
    // The planner saw the failure that the executor mended.
    assert!(done.stderr.contains("run python3 -m unittest -q tests.test_recipes failed"), "{}", done.stderr);
    let passed: Vec<_> = acceptance(&world).into_iter().map(|(_, passed)| passed).collect();
    assert_eq!(passed, [true, true, true]);
    assert!(world.read(ITERTOOLS.file).contains(ITERTOOLS.right));
    audited(&world);
}

#[test]
fn the_tests_of_idna_refuse_a_claim_and_accept_the_revised_plan() {
    let Some(archive) = archive(IDNA.name) else {
        skip!("no source distributions: BAILIWICK_SDISTS names no directory with {}", IDNA.name)
    };
    let world = IDNA.world(&archive);
    let plan = "# Ranges\n\n## On failure\n\nreplan\n\n## Steps\n\n### 1. Mend the ends of ranges\n\nAcceptance:\n- `python3 -m unittest -q tests.test_intranges tests.test_idna`\n";
    let revised = plan.replace("ends of ranges", "ends of ranges, which exclude their last number");
    let server = model_of([
        writes_plan(plan),
        // The executor changes nothing, and reports the step as completed.
        calls(&[reports(1, "in_progress"), reports(1, "completed")]),
        says("I believed it was right.", "end_turn"),
        writes_plan(&revised),
        calls(&[reports(1, "in_progress"), IDNA.mend(), reports(1, "completed")]),
        done(),
        done(),
    ]);
    let arguments = ["exec", "--activity", "plan", "--mode", "auto", "--approve-plan=2", "mend it"];
    run(&world, &server, &arguments).expect(0);
    let passed: Vec<_> = acceptance(&world).into_iter().map(|(_, passed)| passed).collect();
    assert_eq!(passed, [false, true]);
    assert!(world.read(IDNA.file).contains(IDNA.right));
    audited(&world);
}

#[test]
fn xmltodict_is_mended_later_by_a_plan_that_may_write_one_file() {
    let Some(archive) = archive(XMLTODICT.name) else {
        skip!("no source distributions: BAILIWICK_SDISTS names no directory with {}", XMLTODICT.name)
    };
    let world = XMLTODICT.world(&archive);
    let plan = "# Separators\n\n## Rights\n\n- write: xmltodict.py\n\n## Steps\n\n### 1. Join by the separator\n\nAcceptance:\n- `python3 -B -m unittest -q tests.test_xmltodict tests.test_dicttoxml`\n- `git diff --quiet -- tests`\n";
    let planner = model_of([writes_plan(plan), done()]);
    run(&world, &planner, &["exec", "--activity", "plan", "plan it"]).expect(0);
    let shown =
        Finished::of(world.bailiwick(["plan", "show", "--json", "-C"]).arg(world.project())).expect(0);
    let shown: Value = serde_json::from_str(&shown.stdout).unwrap();
    let digest = shown["digest"].as_str().unwrap();
    let mut approve = world.bailiwick(["plan", "approve", "--digest", digest, "-C"]);
    Finished::of(approve.arg(world.project())).expect(0);
    let before = world.read("tests/test_xmltodict.py");
    let server = model_of([
        // An executor cannot change the failing tests so that they pass.
        calls(&[
            reports(1, "in_progress"),
            ("shell_exec", json!({"command": "echo > tests/test_xmltodict.py"})),
        ]),
        calls(&[reports(1, "completed")]),
        done(),
    ]);
    run(&world, &server, &["plan", "execute"]).expect(3);
    assert_eq!(fs::read_to_string(world.project().join("tests/test_xmltodict.py")).unwrap(), before);
    let server =
        model_of([calls(&[reports(1, "in_progress"), XMLTODICT.mend(), reports(1, "completed")]), done()]);
    run(&world, &server, &["plan", "execute"]).expect(0);
    let passed: Vec<_> = acceptance(&world).into_iter().map(|(_, passed)| passed).collect();
    assert_eq!(passed, [false, true, true, true]);
    audited(&world);
}
