use ipc::rights::{Network, Rights};
use protocol::plan::{PlaceToCreate, PlanRights};

use super::{auto, deny, online};
use crate::judgement::{StandingRights, plan};

fn asked(write: &[&str], network: bool) -> PlanRights {
    let write = write.iter().map(|path| (*path).to_owned()).collect();
    PlanRights { write, network, ..PlanRights::default() }
}

fn planner() -> Rights {
    Rights { write: vec!["/tmp/bw-1".into()], ..deny().rights }
}

/// Returns the write roots and the network, and true if a network was refused. The error says why the plan was refused.
fn judged(
    standing: &StandingRights,
    asked: impl Into<Option<PlanRights>>,
) -> Result<(Vec<String>, Network, bool), String> {
    let (child, refused) =
        plan::judge(standing, asked.into().as_ref(), &[], &planner()).map_err(|error| error.0)?;
    assert_eq!(child.grant.write, child.rights.write, "all of it is beyond the planner's rights");
    assert_eq!(child.grant.net, child.rights.net);
    let write = child.rights.write.iter().map(ToString::to_string).collect();
    Ok((write, child.rights.net, refused))
}

#[test]
fn a_plan_that_says_nothing_may_write_the_project_and_reach_nothing() {
    let project = || vec!["/home/me/p".to_owned()];
    for standing in [auto(), deny()] {
        assert_eq!(judged(&standing, None), Ok((project(), Network::Off, false)));
        assert_eq!(judged(&standing, asked(&[], true)), Ok((project(), Network::Off, true)));
    }
    assert_eq!(judged(&online(auto()), asked(&[], true)), Ok((project(), Network::On, false)));
    assert_eq!(judged(&online(auto()), None), Ok((project(), Network::Off, false)));
}

#[test]
fn the_caches_go_only_to_an_execution_that_writes_the_project_with_the_sessions_network() {
    let caches = |standing: StandingRights| StandingRights { caches: Some("/c".into()), ..standing };
    let has =
        |standing: &StandingRights, rights| judged(standing, rights).unwrap().0.contains(&"/c".to_owned());
    assert!(has(&caches(auto()), None));
    assert!(!has(&caches(auto()), Some(asked(&["src"], false))));
    assert!(!has(&caches(online(auto())), None));
    assert!(has(&caches(online(auto())), Some(asked(&[], true))));
}

#[test]
fn a_place_to_create_counts_as_its_directory_which_has_to_be_open_to_plans_too() {
    let given = |path: &str, directory: &str| {
        let place = PlaceToCreate { path: path.into(), directory: directory.into() };
        let judged = plan::judge(&auto(), Some(&asked(&["src/new.rs", "docs"], false)), &[place], &planner());
        judged.map(|(child, _)| child.grant.write.iter().map(ToString::to_string).collect::<Vec<_>>())
    };
    assert_eq!(
        given("/home/me/p/src/new.rs", "/home/me/p/src").unwrap(),
        ["/home/me/p/docs", "/home/me/p/src"]
    );
    assert_eq!(given("/elsewhere", "/").unwrap(), ["/home/me/p/docs", "/home/me/p/src/new.rs"]);
    for directory in ["/home/me", "/", "/home/me/p/.git/hooks"] {
        assert!(given("/home/me/p/src/new.rs", directory).is_err(), "{directory}");
    }
}

#[test]
fn the_caches_are_never_given_by_name() {
    let mut standing = StandingRights { caches: Some("/c".into()), ..online(auto()) };
    standing.rights.write.push("/c".into());
    for path in ["/c", "/c/pip"] {
        assert!(judged(&standing, asked(&[path], false)).is_err(), "{path}");
    }
}

#[test]
fn a_plan_gets_places_of_the_project_and_of_the_flags_and_no_others() {
    let mut standing = auto();
    standing.rights.write.push("/srv/data".into());
    for (path, expected) in [
        ("src", "/home/me/p/src"),
        ("./src/a.rs", "/home/me/p/src/a.rs"),
        ("/home/me/p", "/home/me/p"),
        ("/srv/data/one", "/srv/data/one"),
    ] {
        let got = judged(&standing, asked(&[path], false));
        assert_eq!(got, Ok((vec![expected.to_owned()], Network::Off, false)), "{path}");
    }
    for path in [
        "/",
        "/home/me",
        "/etc",
        "/home/me/pp",
        "..",
        "src/../../x",
        "/srv",
        "/tmp/bw-1",
        "/home/me/.ssh",
        ".git/hooks",
        ".git/hooks/pre-commit",
        "/proc/self",
        "~",
    ] {
        let got = judged(&standing, asked(&["src", path], false));
        if path == "~" {
            // No shell reads this: it is a name in the project.
            assert!(got.is_ok(), "{got:?}");
        } else {
            assert!(got.as_ref().is_err_and(|why| why.contains(path)), "{path}: {got:?}");
        }
    }
}

#[test]
fn the_flags_of_a_run_approve_no_more_than_they_allow() {
    let beyond = |standing: &StandingRights, rights| {
        let (child, _) = plan::judge(standing, rights, &[], &planner()).unwrap();
        plan::beyond_flags(standing, &child.rights)
    };
    assert_eq!(beyond(&auto(), None), None);
    assert_eq!(beyond(&deny(), None).as_deref(), Some("writing /home/me/p (--mode auto allows it)"));
    assert_eq!(beyond(&online(auto()), Some(&asked(&[], true))), None);
}
