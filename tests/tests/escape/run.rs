//! Ways to make attempts: without a sandbox, by `bailiwick sandbox`, and by a command of the model. Approved commands
//! are in [`crate::one_shot`].

use serde_json::json;
use tests::replies::model;
use tests::{Finished, Programs, World, tier};

use crate::attack::{Place, Tried};
use crate::victim::Victim;

pub(crate) type Acts<'a> = &'a [Vec<String>];

pub(crate) type Way = fn(&Place, Acts) -> Vec<Tried>;

/// Returns the attacks as arguments of the probe.
pub(crate) fn line(acts: Acts) -> Vec<String> {
    acts.join(&"--".to_owned())
}

pub(crate) fn unconfined(world: &World, act: &[String]) -> Tried {
    let done = Finished::of(world.command(Programs::get().path("probe")).args(act));
    Tried::of(done.stdout.trim_end())
}

/// Makes the attempts in one process under `bailiwick sandbox`.
pub(crate) fn sandbox(place: &Place, acts: Acts) -> Vec<Tried> {
    let hidden = Victim::hide(place.world);
    let flags: Vec<_> = ["--net", place.net].into_iter().chain(hidden.iter().map(String::as_str)).collect();
    let mut command = place.world.sandbox(place.tier, &flags, Programs::get().path("probe"));
    let done = Finished::of(command.args(line(acts)));
    assert_eq!(done.code, 0, "{place}: {}", done.stderr);
    Tried::all(&done.stdout)
}

/// Makes the attempts in one command of the model. It has the access that `bailiwick sandbox` shows.
pub(crate) fn command_of_the_model(place: &Place, acts: Acts) -> Vec<Tried> {
    let server = model(&[("shell_exec", json!({"command": format!("{} > tried", probe_command(acts))}))]);
    let hidden = Victim::hide(place.world);
    let mut exec = place.world.exec(&server, &["--mode", "auto", "--net", place.net]);
    let done = Finished::of(exec.args(tier::flags(place.tier)).args(hidden));
    assert_eq!(done.code, 0, "{place}: {}\n{}", done.stdout, done.stderr);
    Tried::all(&place.world.read("tried"))
}

/// Returns a shell command that makes these attempts.
pub(crate) fn probe_command(acts: Acts) -> String {
    let probe = Programs::get().path("probe").display().to_string();
    let words: Vec<_> = [probe].into_iter().chain(line(acts)).map(|word| quoted(&word)).collect();
    words.join(" ")
}

fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}
