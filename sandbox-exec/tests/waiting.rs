//! The child that waits for its rules: what it is bound by already, and for whom it is of no use.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "a test fails by panicking, and says aloud what it skips"
)]

mod common;

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use common::order::order;
use common::place::{Place, as_each_user, errors, in_tier_as_each_user, text};
use common::waiting::Waiting;
use ipc::confinement::{BrokerReport, Confinement, NO_FULL_TIER, Tier, TierChoice};
use ipc::rights::Network;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use sandbox_exec::stage::Stage;

/// Says which process it is.
const WHO: &str = "echo $$";

fn in_floor(test: impl Fn(&Place)) {
    in_tier_as_each_user(Tier::Floor, test);
}

fn status(pid: u32, name: &str) -> String {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    line.unwrap().trim().to_owned()
}

fn is_gone(pid: u32) -> bool {
    let patience = Instant::now() + Duration::from_secs(5);
    let lives = || {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat"));
        stat.is_ok_and(|stat| !stat.rsplit_once(") ").unwrap().1.starts_with('Z'))
    };
    while lives() {
        if Instant::now() > patience {
            return false;
        }
        thread::sleep(Duration::from_millis(5));
    }
    true
}

/// Who ran, if it did.
fn ran(waiting: Waiting, confinement: &Confinement) -> u32 {
    let output = waiting.execute(confinement);
    text(&output).trim().parse().unwrap_or_else(|_| panic!("{}", errors(&output)))
}

#[test]
fn the_child_that_waits_becomes_the_program() {
    as_each_user(|place| {
        let waiting = Waiting::prepared(place, &order(place), WHO);
        match waiting.program() {
            Some(child) => assert_eq!(ran(waiting, &order(place)), child),
            None => assert!(place.full(), "only the full tier has none"),
        }
    });
}

#[test]
fn it_is_bound_before_there_are_rights() {
    in_floor(|place| {
        let waiting = Waiting::prepared(place, &order(place), WHO);
        let child = waiting.program().unwrap();
        for set in ["CapInh", "CapPrm", "CapEff", "CapAmb"] {
            assert_eq!(status(child, set), "0000000000000000", "{set}");
        }
        assert_eq!(status(child, "NoNewPrivs"), "1");
        let (mode, filters) = (status(child, "Seccomp"), status(child, "Seccomp_filters"));
        assert_eq!((mode.as_str(), filters.as_str()), ("2", "1"));
        // Whoever is the same user could make it do, without a domain, what it likes.
        let look = |pid: u32| {
            let read = place.command("cat").arg(format!("/proc/{pid}/environ")).output().unwrap();
            read.status.success()
        };
        if place.user().is_some() {
            let mut other = place.command("sleep").arg("60").spawn().unwrap();
            let control = look(other.id());
            other.kill().unwrap();
            other.wait().unwrap();
            assert!(control, "a process of the same user can be looked into");
            assert!(!look(child) && !look(waiting.pid()));
        }
        assert_eq!(ran(waiting, &order(place)), child, "and it can still do what a start does");
    });
}

#[test]
fn a_grant_reaches_the_child_that_waits() {
    in_floor(|place| {
        place.make("granted/file", "before");
        let mut granted = order(place);
        granted.rights.write.push(place.path("granted").into());
        let script = "echo $$; echo after > ../granted/file; cat ../granted/file; echo x > ../home/notes";
        let waiting = Waiting::prepared(place, &order(place), script);
        let child = waiting.program().unwrap();
        let output = waiting.execute(&granted);
        assert_eq!(text(&output), format!("{child}\nafter\n"), "{}", errors(&output));
        assert!(errors(&output).contains("notes: Permission denied"), "{}", errors(&output));
    });
}

#[test]
fn a_child_that_is_bound_otherwise_is_ended() {
    in_floor(|place| {
        place.make("elsewhere/keep", "there");
        let online = Confinement { rights: on(order(place)), ..order(place) };
        let elsewhere = Confinement { project: place.path("elsewhere").into(), ..order(place) };
        let reading = Confinement { read_only: true, ..order(place) };
        let older = Confinement { landlock_abi: Some(3), ..order(place) };
        let all = [order(place), online, elsewhere, reading, older];
        for (announced, ordered) in (0..all.len()).flat_map(|one| [(0, one), (one, 0)]) {
            let waiting = Waiting::prepared(place, &all[announced], WHO);
            let child = waiting.program().unwrap();
            let same = ran(waiting, &all[ordered]) == child;
            assert_eq!(same, announced == ordered, "announced {announced}, ordered {ordered}");
            assert!(is_gone(child));
        }
    });
}

fn on(confinement: Confinement) -> ipc::rights::Rights {
    ipc::rights::Rights { net: Network::On, ..confinement.rights }
}

#[test]
fn the_network_that_was_announced_is_not_the_one_that_holds() {
    in_floor(|place| {
        let online = Confinement { rights: on(order(place)), ..order(place) };
        for (announced, ordered, off) in [(&online, &order(place), true), (&order(place), &online, false)] {
            let (output, reports) = Waiting::prepared(place, announced, WHO).execute_and_report(ordered);
            let Some(BrokerReport::Started { ruleset, .. }) = reports.first() else {
                panic!("{reports:?} {}", errors(&output))
            };
            let tried = ruleset.attempts.iter().find(|attempt| attempt.act == "reach the network");
            assert_eq!(tried.map(|attempt| attempt.denied), off.then_some(true), "{ruleset:?}");
        }
    });
}

#[test]
fn a_project_that_took_the_place_of_another_is_entered() {
    in_floor(|place| {
        place.make("another/keep", "another's");
        let waiting = Waiting::prepared(place, &order(place), "cat keep");
        let child = waiting.program().unwrap();
        fs::rename(place.path("project"), place.path("before")).unwrap();
        fs::rename(place.path("another"), place.path("project")).unwrap();
        let output = waiting.execute(&order(place));
        assert_eq!(text(&output), "another's", "{}", errors(&output));
        assert!(is_gone(child));
    });
}

#[test]
fn a_child_that_was_killed_is_not_waited_for() {
    in_floor(|place| {
        let waiting = Waiting::prepared(place, &order(place), WHO);
        let child = waiting.program().unwrap();
        kill(Pid::from_raw(child.cast_signed()), Signal::SIGKILL).unwrap();
        assert!(is_gone(child));
        assert_ne!(ran(waiting, &order(place)), child);
    });
}

#[test]
fn it_ends_with_what_forked_it() {
    in_floor(|place| {
        let waiting = Waiting::prepared(place, &order(place), WHO);
        let child = waiting.program().unwrap();
        kill(Pid::from_raw(waiting.pid().cast_signed()), Signal::SIGKILL).unwrap();
        assert!(is_gone(child), "killed");
        drop(waiting.without_order());

        let waiting = Waiting::prepared(place, &order(place), WHO);
        let child = waiting.program().unwrap();
        assert_eq!(waiting.without_order().status.code(), Some(Stage::Rights.code().into()));
        assert!(is_gone(child), "without an order");
    });
}

#[test]
fn what_waits_in_the_floor_is_for_no_other_tier() {
    in_floor(|place| {
        let reason = format!("{NO_FULL_TIER}for a reason");
        let in_tier = |tier| Confinement { tier, ..order(place) };
        let announced = || Waiting::announced(place, &order(place), Some(&reason), WHO);
        let (output, reports) = announced().execute_and_report(&in_tier(TierChoice::Best));
        let Some(BrokerReport::Started { ruleset, .. }) = reports.first() else {
            panic!("{reports:?} {}", errors(&output))
        };
        assert_eq!(ruleset.tier, Tier::Floor);
        assert!(ruleset.missing.contains(&reason), "{:?}", ruleset.missing);
        // Who asks for the floor needs no reason.
        let (_, reports) = announced().execute_and_report(&in_tier(TierChoice::Floor));
        let told =
            matches!(&reports[0], BrokerReport::Started { ruleset, .. } if ruleset.missing.contains(&reason));
        assert!(!told, "{reports:?}");
        let output = announced().execute(&in_tier(TierChoice::Full));
        assert_eq!(output.status.code(), Some(Stage::Identity.code().into()), "{}", errors(&output));
    });
}
