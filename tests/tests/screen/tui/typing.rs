//! Tests commands that a person types at human speed, with no card and on each kind of card: each has the effect that
//! `:help` says, and none answers a card.
//!
//! CI types each command once, from a fixed seed. `BAILIWICK_TYPING` sets the seconds of a longer run.

use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;
use tests::replies::{calls, done, model_of, shell};
use tests::ui::Ui;

use super::{SIZE, world};

/// Commands, each with a text that the screen then has. A change by one is undone by the next.
const COMMANDS: &[(&str, &str)] = &[
    ("access", "access of the agent"),
    ("rights", "access of the agent"),
    ("grants", "allowed in this session"),
    ("allow", "allowed in this session"),
    ("allow fly", "the command is :allow write PATH"),
    ("disallow fly", "the command is :disallow"),
    ("context", "sizes of the pieces are estimates"),
    ("cost", "tokens and money"),
    ("tasks", "has no list of tasks"),
    ("review -x", "expected the name of one branch or commit"),
    ("copy", "no answer yet to copy"),
    ("copy-code", "has no code to copy"),
    ("log", " LOG "),
    ("agents", " AGENTS "),
    ("agent 7", "no agent 7"),
    ("model", "price of a million tokens"),
    ("image", "no picture is attached"),
    ("image nosuch.png", "nosuch.png"),
    ("revoke x", "cannot use \"x\""),
    ("diff", "no file has changed"),
    ("diff steps", "no file has changed"),
    ("revert", "the command is :revert PATH"),
    ("resume nosuch", "no session \"nosuch\""),
    ("compact now", "takes no argument"),
    ("clear now", "takes no argument"),
    ("rewind now", "takes no argument"),
    ("help", "set network access, +HOST adds a host"),
    ("mode plan", "choose ask, auto or deny"),
    ("q now", "takes no argument"),
    ("net fly", "neither off nor on"),
    ("fly", "no command"),
];

/// Commands whose effect depends on the open card, each with its effect without a card.
const AT_REST: &[(&str, &str)] = &[
    ("select", " SELECT "),
    ("findings", "there are no findings"),
    ("plan", "another agent makes a plan"),
    ("edit-plan", "no plan waits for your approval"),
    ("mode ask", "nothing changed: the mode is ask"),
    ("net on", "net on "),
    ("net off", "net off "),
    ("mode deny", "deny ·"),
    ("mode ask", "ask ·"),
];

/// Commands that have the same effect on the card of a call as without a card.
const ON_A_CARD: &[(&str, &str)] = &[
    ("plan", "another agent makes a plan"),
    ("edit-plan", "no plan waits for your approval"),
    ("mode ask", "nothing changed: the mode is ask"),
];

const VIEWS: &[&str] = &[
    "access",
    "context",
    "model",
    "rights",
    "select",
    "grants",
    "allow",
    "cost",
    "log",
    "agents",
    "help",
    "diff",
    "diff steps",
];

/// Pseudo-random numbers (linear congruential generator of Numerical Recipes), the same for each seed.
struct Seeded(u64);

impl Seeded {
    fn below(&mut self, most: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % most
    }

    /// Types like a person, with 80 to 300 ms before each key. These are not waits for an event.
    fn types(&mut self, ui: &mut Ui, keys: &str) {
        for key in keys.chars() {
            thread::sleep(Duration::from_millis(80 + self.below(221)));
            ui.types(&key.to_string());
        }
    }
}

/// State in which commands are typed: the reply that leads to it, a text on the screen, flags, and the commands that
/// have a special effect in this state.
struct Place {
    script: Option<fn() -> String>,
    title: &'static str,
    flags: &'static [&'static str],
    commands: &'static [(&'static str, &'static str)],
}

/// States without a card, and with a card of a denied write, a denied connection, a command, and a plan.
const PLACES: [Place; 5] = [
    Place { script: None, title: "INSERT", flags: &[], commands: AT_REST },
    Place {
        script: Some(|| shell("touch /etc/probe-of-ours")),
        title: "Blocked by",
        flags: &[],
        commands: ON_A_CARD,
    },
    Place {
        script: Some(|| shell("exec 3<>/dev/tcp/192.0.2.1/443")),
        title: "Blocked by",
        flags: &[],
        commands: ON_A_CARD,
    },
    Place {
        script: Some(|| calls(&[("shell_exec", json!({"command": "touch made", "access": "write"}))])),
        title: "Run this command?",
        flags: &[],
        commands: ON_A_CARD,
    },
    Place {
        script: Some(|| calls(&[("write_plan", json!({ "markdown": PLAN }))])),
        title: "Execute this plan?",
        flags: &["--activity", "plan"],
        commands: &[],
    },
];

/// Number of UIs in each state. Each UI gets a share of the commands, and all work at the same time.
const HANDS: usize = 3;

const PLAN: &str = "# A word\n\n## Steps\n\n### 1. One\nWrite a word.\n";

/// Types the share with the index `hand` of the commands in a UI. Continues with all commands until `patience` is over;
/// `None` types no more.
fn types_on(place: &Place, hand: usize, patience: Option<Duration>) {
    let seed = 5 + 77 * hand as u64;
    let (share, mut hand) = (hand, Seeded(seed));
    let title = place.title;
    let script = place.script.map(|script| script());
    let (world, server) = (world(), model_of(script.clone().into_iter().chain([done()])));
    let mut ui = Ui::start(&world.ui(&server, place.flags), SIZE);
    ui.until_shown("INSERT");
    if script.is_some() {
        ui.types("go\r");
    }
    ui.until_shown(title);
    let asked = server.requests().len();
    let known: Vec<_> = COMMANDS.iter().chain(place.commands).collect();
    let began = Instant::now();
    // Without a time limit, only this UI's share of the commands is typed; otherwise all commands again and again.
    let own = known.chunks(known.len().div_ceil(HANDS)).nth(share).unwrap_or_default();
    let longer =
        patience.map(|patience| known.iter().cycle().take_while(move |_| began.elapsed() < patience));
    for (command, shown) in own.iter().chain(longer.into_iter().flatten()) {
        // A key in the first moments of a card does not count.
        thread::sleep(Duration::from_millis(400));
        let sign = if hand.below(2) == 0 { ':' } else { '/' };
        hand.types(&mut ui, &format!("{sign}{command}\r"));
        ui.until_shown(shown);
        if VIEWS.contains(command) {
            ui.until("the whole view", is_view);
            hand.types(&mut ui, "\x1b");
        }
        ui.until(&format!("{title} after {sign}{command}, seed {seed}"), |screen| {
            screen.contains(title) && !is_view(screen)
        });
        assert_eq!(server.requests().len(), asked, "{command} sends nothing, seed {seed}");
    }
    thread::sleep(Duration::from_millis(400));
    hand.types(&mut ui, ":q\r");
    assert_eq!(ui.end().code, 0);
    let log = world.log();
    let answers = log.iter().filter(|event| event["type"] == "approval_answered");
    assert!(answers.into_iter().all(|event| event["data"]["by"] != "user"), "no letter answers: {log:?}");
}

fn is_view(screen: &str) -> bool {
    [" PAGE ", " LOG ", " AGENTS ", " SELECT "].iter().any(|name| screen.contains(name))
}

#[test]
fn each_command_typed_by_hand_ends_as_help_says() {
    let wanted: Option<u64> = std::env::var("BAILIWICK_TYPING").ok().and_then(|seconds| seconds.parse().ok());
    let patience = wanted.map(Duration::from_secs);
    let hands: Vec<_> = PLACES
        .iter()
        .flat_map(|place| (0..HANDS).map(move |hand| (place, hand)))
        .map(|(place, hand)| thread::spawn(move || types_on(place, hand, patience)))
        .collect();
    for hand in hands {
        hand.join().unwrap();
    }
}

/// Tests that every command that `:help` lists is typed in some state.
#[test]
fn no_command_of_the_help_is_left_out() {
    let (world, server) = (world(), model_of([done()]));
    let mut ui = Ui::start(&world.ui(&server, &[]), (100, 120));
    ui.until_shown("INSERT");
    ui.types(":help\r");
    ui.until_shown("quit (by key");
    let screen = ui.screen();
    let commands = screen.split("at the prompt").next().unwrap_or_default();
    let listed = commands.lines().filter_map(|line| line.strip_prefix("  :"));
    let mut names: Vec<_> = listed.filter_map(|line| line.split_whitespace().next()).collect();
    names.sort_unstable();
    names.dedup();
    assert!(names.len() > 20, "{screen}");
    let typed =
        |name: &str| COMMANDS.iter().chain(AT_REST).any(|(line, _)| line.split(' ').next() == Some(name));
    for name in names {
        assert!(typed(name), ":{name} is never typed\n{screen}");
    }
    ui.types("\x1b");
    ui.until("the page is closed", |screen| !is_view(screen));
}
