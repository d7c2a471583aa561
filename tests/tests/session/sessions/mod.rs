//! Tests recorded sessions. The real program plays the scripts in `fixtures/sessions` against a scripted model on
//! loopback. A snapshot next to the script has the event log, the exit code and the result.
//!
//! A changed order or content of events makes one of these fail. To record them again:
//!
//! ```text
//! cargo build --workspace --bins && INSTA_UPDATE=always cargo test -p tests --test session sessions::
//! ```
//!
//! Then read the difference, since every changed line is a change of behaviour. The scripts are written by hand. All
//! sessions run in the floor tier, because every machine supports it. So each has one snapshot.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod front_end;
mod normal;
mod script;

use std::path::PathBuf;

use ipc::confinement::Tier;
use tests::{Finished, User, World, tier};

use self::normal::Normal;
use self::script::{FrontEnd, Script};

/// Plays a script, and compares the session with its snapshot.
fn replay(name: &str) {
    if !tier::all().contains(&Tier::Floor) {
        tests::skip!("the session {name}: this machine cannot enforce the floor");
    }
    let fixtures = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../fixtures/sessions");
    let script = Script::read(&fixtures.join(format!("{name}.json")));
    let world = World::new(User::Myself).in_tier(Tier::Floor);
    script.lay_out(&world);
    let server = script.model();
    let done = match &script.front_end {
        FrontEnd::Exec { flags } => front_end::exec(&world, &server, &script, flags),
        FrontEnd::Serve { options, steps } => front_end::serve(&world, &server, options, steps),
    };
    assert_eq!(server.remaining(), 0, "replies that nobody asked for: {}\n{}", done.stdout, done.stderr);
    if name.starts_with("plan") {
        agrees(&world);
    }
    let normal = Normal::of(&world);
    if matches!(script.front_end, FrontEnd::Exec { .. }) {
        normal.is_streamed(&done);
    }
    let record = normal.record(&done, &script.left(&world), script.is_parallel());
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path(&fixtures);
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.set_description(script.about);
    settings.bind(|| insta::assert_snapshot!(name, record));
}

/// Checks that the logged actions of each agent agree with its access.
fn agrees(world: &World) {
    let session = world.log()[0]["session"].as_str().unwrap().to_owned();
    let audit = Finished::of(&mut world.bailiwick(["audit", &session]));
    assert_eq!(audit.code, 0, "{}\n{}", audit.stdout, audit.stderr);
}

macro_rules! sessions {
    ($($(#[$doc:meta])* $name:ident)*) => {
        $($(#[$doc])* #[test] fn $name() { replay(stringify!($name)); })*
    };
}

sessions! {
    repair
    approvals
    denials
    offers
    respawn
    compaction
    interruption
    hostile
    delegation
    readers
    writers
    denied_child
    crashed_child
    cancelled_subtree
    net_off
    plan_headless
    plan_review
    plan_beside
    plan_hostile
    plan_hostile_execution
    plan_net_off
}
