//! Makes the pictures of README and guide. `just pictures` writes them anew. A test fails if the UI does not reach the
//! screen of the picture.

use std::path::PathBuf;

use serde_json::{Value, json};
use tests::replies::{calls, model_of_agents};

use super::*;

const SIZE: (u16, u16) = (110, 32);

/// Path of the project in the pictures.
const PLACE: &str = "~/ledger";

fn ledger() -> World {
    let world = world();
    world.file(
        "ledger/parse.py",
        "import re\n\nLINE = re.compile(r\"(\\S+) +(-?\\d+)\")\n\n\ndef parse(text):\n    entries = []\n    for line in text.splitlines():\n        \
         name, cents = LINE.match(line).groups()\n        entries.append((name, int(cents)))\n    return entries\n",
    );
    world.file(
        "tests/test_parse.py",
        "from ledger.parse import parse\n\n\ndef test_blank_lines():\n    assert parse(\"\\n\") == []\n",
    );
    world.file("README.md", "# Ledger\n");
    world.commit();
    world
}

fn mend() -> (&'static str, Value) {
    let old = "        name, cents = LINE.match(line).groups()\n";
    let new = "        if not line.strip():\n            continue\n        name, cents = LINE.match(line).groups()\n";
    ("edit_file", json!({"path": "ledger/parse.py", "old_string": old, "new_string": new}))
}

fn command(text: &str) -> (&'static str, Value) {
    ("shell_exec", json!({ "command": text }))
}

/// Starts the UI in a terminal with all colours.
fn begun(world: &World, server: &ReplayServer, flags: &[&str]) -> Ui {
    let mut command = world.ui(server, flags);
    command.env("COLORTERM", "truecolor").env("COLORFGBG", "15;0");
    let ui = Ui::start(&command, SIZE);
    ui.until_shown("net off");
    ui
}

/// Writes a picture of the screen, if pictures are to be renewed.
fn taken(ui: &Ui, world: &World, name: &str) {
    let place = world.project().to_str().unwrap().to_owned();
    let picture = ui.picture().replace(&place, &format!("{PLACE:<width$}", width = place.len()));
    assert!(picture.starts_with("<svg") && picture.ends_with("</svg>\n"));
    if let Some(directory) = std::env::var_os("BAILIWICK_PICTURES") {
        fs::write(PathBuf::from(directory).join(name).with_extension("svg"), picture).unwrap();
    }
}

const ANSWER: &str = "`parse` failed on **blank lines**: `LINE.match` returns `None` there. It skips them now.\n\n\
    | input | before | after |\n| --- | --- | --- |\n| `rent -900` | 1 entry | 1 entry |\n| a blank line | `AttributeError` | skipped |\n\n\
    Try it:\n\n```python\nfrom ledger.parse import parse\n\nparse(\"rent -900\\n\\n\")  # [('rent', -900)]\n```\n";

#[test]
fn a_session() {
    let (world, server) =
        (ledger(), model_of([calls(&[mend(), command("git diff --stat")]), says(ANSWER, "end_turn")]));
    let mut ui = begun(&world, &server, &["--mode", "auto"]);
    ui.types("the parser dies on blank lines\r");
    ui.until_shown("200 in");
    // The colours of code appear a moment after the text.
    thread::sleep(std::time::Duration::from_secs(1));
    taken(&ui, &world, "session");
}

#[test]
fn a_request() {
    let (world, server) = (ledger(), model_of([calls(&[mend()]), done()]));
    let mut ui = begun(&world, &server, &[]);
    ui.types("the parser dies on blank lines\r");
    ui.until("Edit ledger/parse.py?", |screen| {
        screen.contains("Edit ledger/parse.py?") && screen.contains("APPROVAL")
    });
    thread::sleep(std::time::Duration::from_secs(1));
    taken(&ui, &world, "approval");
}

#[test]
fn a_denial() {
    let fix = command("python3 -m pytest -q > report.txt");
    let (world, server) = (ledger(), model_of([calls(&[fix]), done()]));
    let mut ui = begun(&world, &server, &[]);
    ui.types("run the tests into a file\r");
    ui.until("Blocked by the kernel", |screen| {
        screen.contains("Blocked by the kernel") && screen.contains("APPROVAL")
    });
    taken(&ui, &world, "denied");
}

const PLAN: &str = "# Blank lines\n\n## Context\n\nThe parser dies on them.\n\n## Steps\n\n### 1. Skip blank lines\n\nIn `ledger/parse.py`.\n\n\
    Files:\n- ledger/parse.py\n\nAcceptance:\n- `python3 -m pytest -q tests/test_parse.py`\n\n### 2. Say so in the README\n\nFiles:\n- README.md\n\n\
    Acceptance:\n- `grep -q 'Blank lines' README.md`\n";

#[test]
fn a_plan() {
    let (world, server) =
        (ledger(), model_of([calls(&[("write_plan", json!({ "markdown": PLAN }))]), done()]));
    let mut ui = begun(&world, &server, &[]);
    ui.types(":plan skip blank lines\r");
    ui.until("Execute this plan?", |screen| {
        screen.contains("Execute this plan?") && screen.contains("APPROVAL")
    });
    taken(&ui, &world, "plan");
}

#[test]
fn sub_agents() {
    let spawn = |task: &str| ("spawn_agent", json!({"task": task, "access": "read"}));
    let tasks = ["read the parser", "read the tests", "who uses parse()?"];
    let work = ["sleep 1000", "grep -rn parse tests; sleep 1000", "git log --oneline; sleep 1000"];
    let replies =
        tasks.iter().zip(work).map(|(task, work)| ((*task).to_owned(), vec![calls(&[command(work)])]));
    let server = model_of_agents([calls(&tasks.map(spawn))], replies);
    let world = ledger();
    let mut ui = begun(&world, &server, &[]);
    ui.types("find out why blank lines fail\r");
    ui.until("three at work", |screen| {
        screen.matches("sleep 1000").count() + screen.matches("run g").count() >= 3
    });
    taken(&ui, &world, "agents");
}

#[test]
fn a_way_back() {
    let write = ("write_file", json!({"path": "notes.txt", "content": "blank lines\n"}));
    let replies = [calls(&[mend()]), done(), calls(&[write, command("rm README.md")]), done()];
    let (world, server) = (ledger(), model_of(replies));
    let mut ui = begun(&world, &server, &["--mode", "auto"]);
    ui.types("the parser dies on blank lines\r");
    ui.until_shown("200 in");
    ui.types("take notes instead of the README\r");
    ui.until("the second turn", |screen| screen.matches("200 in").count() == 2);
    ui.types(":rewind\r");
    ui.until_shown("restore the session to before a message");
    ui.types("k\r");
    ui.until_shown("y restore");
    taken(&ui, &world, "rewind");
}
