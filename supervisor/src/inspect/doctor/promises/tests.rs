use std::fs;
use std::path::Path;

use ipc::confinement::{Attempt, Bounds};

use super::*;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

/// Returns the rows of the table in SECURITY.md: names, and the cells for the full tier and the floor tier.
fn of_security_md() -> Vec<(String, [String; 2])> {
    let text = fs::read_to_string(root().join("SECURITY.md")).unwrap();
    let rows = text.lines().skip_while(|line| !line.starts_with("| promise | full | floor |")).skip(2);
    let row = |line: &str| {
        let cells: Vec<_> = line.split(" | ").collect();
        let name = cells[0].strip_prefix("| **").and_then(|cell| cell.split_once("**")).unwrap().0;
        (name.to_owned(), [cells[1].to_owned(), cells[2].to_owned()])
    };
    rows.take_while(|line| line.starts_with('|')).map(row).collect()
}

#[test]
fn security_md_has_the_same_promises() {
    let rows = of_security_md();
    let names: Vec<_> = PROMISES.iter().map(|promise| promise.name).collect();
    assert_eq!(rows.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), names);
    for (promise, (name, cells)) in PROMISES.iter().zip(&rows) {
        for (holder, cell) in promise.holders.iter().zip(cells) {
            let is_open = matches!(holder, Holder::Nobody(_));
            assert_eq!(cell.contains("**open**"), is_open, "{name}: {cell}");
        }
    }
}

/// Tests that each attempt belongs to a promise, and that each attempt of a promise is made.
#[test]
fn the_acts_are_those_of_the_self_test() {
    let source: String = ["self_test.rs", "attempt.rs"]
        .map(|name| fs::read_to_string(root().join("sandbox-exec/src").join(name)).unwrap())
        .concat();
    for act in PROMISES.iter().flat_map(|promise| promise.acts) {
        assert!(source.contains(&format!("\"{act}\"")), "nobody tries to {act}");
    }
    let own: Vec<_> =
        source.lines().filter_map(|line| line.trim_start().strip_prefix("(\"")?.split_once('"')).collect();
    assert!(own.len() > 15, "{own:?}");
    for (act, _) in own {
        assert!(PROMISES.iter().any(|promise| promise.acts.contains(&act)), "no promise is about: {act}");
    }
}

fn ground(tier: Tier, landlock_abi: u32) -> PromiseGround {
    let full_tier = "the full tier".to_owned();
    PromiseGround { tier, landlock_abi, bounds: Bounds::default(), own_group: false, full_tier }
}

fn judged(ground: &PromiseGround, name: &str, tried: &[Attempt]) -> PromiseHere {
    let promise = PROMISES.iter().find(|promise| promise.name == name).unwrap();
    ground.judge(promise, &tried.iter().collect::<Vec<_>>())
}

#[test]
fn the_machine_decides_who_keeps_a_promise() {
    use HeldBy::{Broker, Kernel, Nobody};
    let held_by = |tier, abi, name| judged(&ground(tier, abi), name, &[]).held_by;
    for (name, full, floor, before_scopes, unmediated) in [
        ("signals", Kernel, Kernel, Broker, Nobody),
        ("abstract unix sockets", Kernel, Kernel, Broker, Nobody),
        ("metadata outside", Kernel, Broker, Broker, Nobody),
        ("information", Kernel, Nobody, Nobody, Nobody),
        ("survivors", Kernel, Nobody, Nobody, Nobody),
        ("secrets", Kernel, Kernel, Kernel, Kernel),
    ] {
        let found = [(Tier::Full, 7), (Tier::Floor, 7), (Tier::Floor, 5), (Tier::FloorUnmediated, 5)]
            .map(|(tier, abi)| held_by(tier, abi, name));
        assert_eq!(found, [full, floor, before_scopes, unmediated], "{name}");
    }
    let whole = PromiseGround {
        bounds: Bounds { processes: Some(1), memory: Some(1) },
        own_group: true,
        ..ground(Tier::Floor, 7)
    };
    for name in ["survivors", "number of processes", "memory"] {
        assert_eq!(judged(&whole, name, &[]).held_by, Kernel, "{name}");
        let open = judged(&ground(Tier::Floor, 7), name, &[]);
        assert!(
            open.held_by == Nobody && open.remedy.unwrap().starts_with("use a delegated control group"),
            "{name}"
        );
    }
}

#[test]
fn an_act_that_succeeded_breaks_its_promise_and_no_other() {
    let attempt = |act: &str, denied| Attempt { act: act.to_owned(), denied, errno: 0 };
    let tried = [attempt("reach the network", false), attempt("open a raw socket", true)];
    let off = judged(&ground(Tier::Full, 7), "network off", &tried);
    assert_eq!(
        (off.held_by, off.why.as_str()),
        (HeldBy::Nobody, "a process in the sandbox could reach the network")
    );
    assert_eq!(off.denied, ["open a raw socket"]);
    assert_eq!(judged(&ground(Tier::Full, 7), "secrets", &tried).held_by, HeldBy::Kernel);
}

#[test]
fn where_nothing_starts_nothing_is_promised() {
    let page = PromisesPage::of_refusal("no directory\n  hint: make one");
    assert!(!page.is_usable() && page.promises.len() == PROMISES.len());
    let text = page.to_string();
    assert!(
        text.contains("OPEN    secrets: no agent starts here: no directory\n        hint: make one\n"),
        "{text}"
    );
    assert!(text.ends_with(&format!("0 of {} hold here.\n", PROMISES.len())), "{text}");
}
