//! Tests the reports of denied attacks. At least [`TOLD`] percent of the refused attacks are reported, and each report
//! names the right layer and the right object.
//!
//! Each row is an attack by a command of the model. The command prints errors as usual programs do. Rows without a
//! refusal by the sandbox are left out: objects that are missing, as in the full tier, types of sockets that the kernel
//! lacks, and denials by a container engine.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Component, Path, PathBuf};

use ipc::confinement::Tier;
use nix::libc::{
    EAFNOSUPPORT, ECONNREFUSED, EINVAL, ENODATA, ENOENT, ENOSYS, EOPNOTSUPP, EPERM, EPROTONOSUPPORT,
    ESOCKTNOSUPPORT, ESRCH,
};
use serde_json::{Value, json};
use tests::probe::plain::call_of;
use tests::replies::{calls, done, model_of};
use tests::{Finished, Programs, World, tier};

use crate::attack::{Attack, Group, Held, Place, Tried};
use crate::machine::{denies_alike, is_filtered};
use crate::run::{sandbox, unconfined};
use crate::table;
use crate::victim::Victim;

/// Errors for missing objects. The last two are for attributes that are not visible.
const ABSENT: &[i32] = &[ENOENT, ESRCH, ECONNREFUSED, EINVAL, ENODATA, EOPNOTSUPP];

/// Errors of a kernel that lacks this type of sockets.
const UNKNOWN: &[i32] = &[EAFNOSUPPORT, EPROTONOSUPPORT, ESOCKTNOSUPPORT];

/// Errors of seccomp rules. If a container engine filters system calls, no report is expected (docs/denials.md).
const CALLS: [i32; 2] = [EPERM, ENOSYS];

/// Kind of report about a refused attack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Told {
    Proved,
    Likely,
    Nothing,
}

struct Row {
    attack: Attack,
    act: Vec<String>,
    errno: i64,
    denials: Vec<Value>,
}

impl Row {
    /// Returns the kind of report about the attack. An `Err` describes a report with a wrong layer or object.
    fn told(&self, tier: Tier) -> Result<Told, String> {
        let Some(denial) = self.denials.first() else { return Ok(Told::Nothing) };
        let layer = denial["layer"].as_str().unwrap_or_default();
        if !layers(self, tier).contains(&layer) || !self.is_of(&denial["object"]) {
            return Err(format!("{} (error {}): {denial}", self.attack.act, self.errno));
        }
        Ok(if denial["grade"] == "proved" { Told::Proved } else { Told::Likely })
    }

    /// True if `object` is the one that the attack's command names.
    fn is_of(&self, object: &Value) -> bool {
        let first = self.act.get(1).map(String::as_str);
        let call = call_of(&self.act[0], first);
        let words = &self.act[1..];
        if let Some(path) = object["path"].as_str() {
            let joined = [words.iter().map(String::as_str).collect::<Vec<_>>().join("/")];
            let of_a_process = path
                .strip_prefix("/proc/")
                .zip(words.first())
                .is_some_and(|(rest, first)| rest.starts_with(first));
            let mut named = words.iter().chain(&joined).flat_map(|word| places(word));
            return of_a_process || named.any(|place| place == Path::new(path));
        }
        if let Some(said) = object["syscall"].as_str() {
            return call == Some(said);
        }
        let text = object["address"].as_str().or_else(|| object["shared"].as_str()).unwrap_or_default();
        words.iter().any(|word| {
            let end = word.rsplit([':', '/']).next().unwrap_or(word);
            text.contains(end)
        })
    }
}

/// Returns the absolute paths that a word may mean: with its last component followed as a link, and not followed.
fn places(word: &str) -> Vec<PathBuf> {
    let word = word.strip_prefix("/proc/self/root").unwrap_or(word);
    let path = Path::new(word);
    let followed = path.canonicalize().ok();
    let parent = path.parent().and_then(|parent| parent.canonicalize().ok());
    let named = parent.zip(path.file_name()).map(|(parent, name)| parent.join(name));
    let plain = path.components().all(|part| part != Component::ParentDir).then(|| path.to_owned());
    followed.into_iter().chain(named).chain(plain).collect()
}

/// Returns the layers of the sandbox that may refuse an attack.
fn layers(row: &Row, tier: Tier) -> &'static [&'static str] {
    let full = tier == Tier::Full;
    let named = call_of(&row.act[0], row.act.get(1).map(String::as_str)).is_some();
    match row.attack.group {
        _ if named => &["seccomp"],
        Group::Network => &["seccomp", "mediation", "network_namespace"],
        Group::UnixSockets => &["mediation", "landlock"],
        Group::MetadataOutside if !full => &["mediation"],
        Group::SetId => &["seccomp", "mediation"],
        Group::Processes | Group::Ipc if !full => &["landlock", "mediation", "seccomp"],
        _ if full => &["mounts", "mask", "landlock", "seccomp"],
        _ => &["landlock", "mediation", "seccomp"],
    }
}

/// Returns the attacks that were refused to a command of the model, each with its denials.
fn refused(place: &Place) -> Vec<Row> {
    let rows: Vec<_> = table::all()
        .into_iter()
        .filter(|row| row.is_possible(place.world.user()) && matches!(row.held(place.tier), Held::With(_)))
        .collect();
    let victim = Victim::new(place.world);
    let acts: Vec<_> = rows.iter().map(|row| victim.aim(&row.act, place.world)).collect();
    let answers = sandbox(place, &acts);
    let is_refusal = |tried: &Tried| tried.errno > 0 && !tried.is(ABSENT);
    let is_unknown = |act: &[String]| act[0] == "socket" && unconfined(place.world, act).is(UNKNOWN);
    let is_ours = |((attack, act), tried): &((Attack, Vec<String>), Tried)| {
        is_refusal(tried) && !is_unknown(act) && !denies_alike(attack, place, tried)
    };
    let told = tell(place, &acts);
    let all = rows.into_iter().zip(acts).zip(answers).zip(told);
    let all = all.filter(|(row, _)| is_ours(row));
    all.map(|(((attack, act), tried), denials)| Row { attack, act, errno: tried.errno, denials }).collect()
}

/// Tries each attack by a command of its own. Returns the denials that were logged for each.
fn tell(place: &Place, acts: &[Vec<String>]) -> Vec<Vec<Value>> {
    let probe = Programs::get().path("probe").display().to_string();
    let command = |act: &Vec<String>| {
        let words = [&[probe.clone(), "plainly".to_owned()], act.as_slice()].concat();
        let quoted: Vec<_> = words.iter().map(|word| format!("'{}'", word.replace('\'', r"'\''"))).collect();
        calls(&[("shell_exec", json!({"command": quoted.join(" ")}))])
    };
    let server = model_of(acts.iter().map(command).chain([done()]));
    let mut exec = place.world.exec(&server, &["--mode", "auto", "--net", place.net, "--max-steps", "9999"]);
    let run = Finished::of(exec.args(tier::flags(place.tier)).args(Victim::hide(place.world)));
    assert!([0, 4].contains(&run.code), "{place}: {}", run.stderr);
    let denied = run.events_of("denied");
    let of_call =
        |call: usize| denied.iter().filter(|denied| denied["call"] == json!(call)).cloned().collect();
    (1..=acts.len()).map(of_call).collect()
}

/// Returns a table of the reports by group, with the attacks that were not reported.
fn report(counted: &BTreeMap<(Group, Told), usize>, rows: usize) -> String {
    let mut text = format!(
        "{rows} rows were refused\n{:<16} {:>6} {:>6} {:>7}\n",
        "group", "proved", "likely", "nothing"
    );
    let groups: Vec<_> = counted.keys().map(|(group, _)| *group).collect();
    let mut last = None;
    for group in groups {
        if last.replace(group) == Some(group) {
            continue;
        }
        let count = |told| counted.get(&(group, told)).copied().unwrap_or(0);
        let [proved, likely, nothing] = [Told::Proved, Told::Likely, Told::Nothing].map(count);
        let _ = writeln!(text, "{:<16} {proved:>6} {likely:>6} {nothing:>7}", format!("{group:?}"));
    }
    text
}

/// Minimum percentage of refused attacks that are reported.
const TOLD: usize = 80;
/// Minimum percentage of refused attacks that are reported with the grade `proved`.
const PROVED: usize = 60;

/// Checks the percentages of refused attacks that are reported at all and as `proved`. Returns the failures.
fn check(place: &Place, listed: &str) -> Vec<String> {
    let rows = refused(place);
    let mut all = rows.len();
    let mut counted = BTreeMap::new();
    let mut failures = vec![];
    for row in &rows {
        match row.told(place.tier) {
            Ok(Told::Nothing) if is_filtered() && CALLS.map(i64::from).contains(&row.errno) => {
                all -= 1;
                eprintln!("skipped: in a container nothing is told of system calls: {}", row.attack.act);
            }
            Ok(told) => {
                *counted.entry((row.attack.group, told)).or_insert(0) += 1;
                let act = row.attack.act.as_str();
                if told == Told::Nothing && !listed.contains(&format!("`{act}`")) {
                    failures.push(format!("nothing is told of, nor listed: {act} (error {})", row.errno));
                }
            }
            Err(wrong) => failures.push(format!("wrong: {wrong}")),
        }
    }
    let of = |told| counted.iter().filter(|((_, it), _)| *it == told).map(|(_, count)| count).sum::<usize>();
    eprintln!("{place}: {}", report(&counted, all));
    let (proved, likely) = (of(Told::Proved), of(Told::Likely));
    if (proved + likely) * 100 < all * TOLD || proved * 100 < all * PROVED {
        failures.push(format!("of {all} rows {proved} are proved, {likely} likely"));
    }
    failures.into_iter().map(|failure| format!("{place}: {failure}")).collect()
}

#[test]
fn four_of_five_refusals_are_told_with_their_layer_and_object_and_most_are_proved() {
    // The list of when this was compiled, since containers have only the test programs.
    let listed = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/denials.md"));
    let failures: Vec<_> = tier::everywhere()
        .into_iter()
        .flat_map(|(user, tier)| {
            let world = World::new(user);
            check(&Place { world: &world, tier, net: "off" }, listed)
        })
        .collect();
    assert!(failures.is_empty(), "{} failures\n{}", failures.len(), failures.join("\n"));
}
