//! A person types at human speed: each command ends as `:help` says, at rest and on each card, and answers no card.
//!
//! CI runs a seeded part. `BAILIWICK_TYPING` is the number of seconds of a longer run.

use std::thread;
use std::time::{Duration, Instant};

use tests::replies::{done, model_of, shell};
use tests::ui::Ui;

use super::{SIZE, world};

/// The commands that leave things as they are, and a text that the screen has after each.
const COMMANDS: &[(&str, &str)] = &[
    ("rights", "access of the agent"),
    ("grants", "allowed in this session"),
    ("allow", "allowed in this session"),
    ("cost", "tokens and money"),
    ("copy", "no answer yet to copy"),
    ("copy-code", "has no code to copy"),
    ("log", " LOG "),
    ("plan", "an agent beside this one"),
    ("edit-plan", "no plan waits for your approval"),
    ("agents", " AGENTS "),
    ("agent 7", "no agent 7"),
    ("model", "answers; :model NAME"),
    ("image", "no picture is attached"),
    ("help", "allow or block network access"),
    ("mode ask", "nothing changed: the mode is ask"),
    ("mode plan", "choose ask, auto or deny"),
    ("fly", "no command"),
];

/// Those that open a view, or a page.
const VIEWS: &[&str] = &["model", "rights", "grants", "allow", "cost", "log", "agents", "help"];

/// Numbers that look as if they were random (Numerical Recipes' generator), the same ones for a seed.
struct Seeded(u64);

impl Seeded {
    fn below(&mut self, most: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % most
    }

    /// Types as a hand does: 80 to 300 ms before each key. This is no wait for something.
    fn types(&mut self, ui: &mut Ui, keys: &str) {
        for key in keys.chars() {
            thread::sleep(Duration::from_millis(80 + self.below(221)));
            ui.types(&key.to_string());
        }
    }
}

/// Types commands until the time is up, on what the first message leads to.
fn types_on(script: Option<&str>, title: &str, seed: u64, patience: Duration) {
    let mut hand = Seeded(seed);
    let replies = script.map(shell).into_iter().chain([done()]);
    let (world, server) = (world(), model_of(replies));
    let mut ui = Ui::start(&world.ui(&server, &[]), SIZE);
    ui.until_shown("INSERT");
    if script.is_some() {
        ui.types("go\r");
    }
    ui.until_shown(title);
    let asked = server.requests().len();
    let (began, first) = (Instant::now(), hand.below(COMMANDS.len() as u64));
    let mut commands = COMMANDS.iter().cycle().skip(usize::try_from(first).unwrap());
    while began.elapsed() < patience {
        let (command, shown) = commands.next().unwrap();
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
    [" PAGE ", " LOG ", " AGENTS "].iter().any(|name| screen.contains(name))
}

#[test]
fn each_command_typed_by_hand_ends_as_help_says() {
    let wanted = std::env::var("BAILIWICK_TYPING").ok().and_then(|seconds| seconds.parse().ok());
    let patience = Duration::from_secs(wanted.unwrap_or(15));
    let places = [(None, "INSERT"), (Some("touch /etc/probe-of-ours"), "Blocked by")];
    let hands: Vec<_> = (0..4u64)
        .zip(places.into_iter().cycle())
        .map(|(seed, (script, title))| {
            thread::spawn(move || types_on(script, title, seed * 77 + 5, patience))
        })
        .collect();
    for hand in hands {
        hand.join().unwrap();
    }
}
