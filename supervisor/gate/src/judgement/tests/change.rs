use ipc::path::WirePath;
use ipc::rights::{Hosts, Network, Reach, RightsChange};
use proptest::prelude::*;

use super::{auto, deny};
use crate::activity::Activity;
use crate::judgement::{Place, StandingRights, Verdict, change, flags, judge};

fn net(net: Network) -> RightsChange {
    RightsChange::Network { net, reach: None }
}

fn add(path: &str) -> RightsChange {
    RightsChange::AddWrite { path: path.into() }
}

fn remove(path: &str) -> RightsChange {
    RightsChange::RemoveWrite { path: path.into() }
}

fn after(standing: &StandingRights, change: &RightsChange, activity: Activity) -> String {
    match change::rights_after(standing, change, activity) {
        Ok(rights) => StandingRights { rights, ..standing.clone() }.line(),
        Err(unchanged) => unchanged.to_string(),
    }
}

fn list(rules: &str) -> Hosts {
    Hosts::new(rules.split(' ').map(|rule| rule.parse().unwrap())).unwrap()
}

fn hosts(rules: &str) -> RightsChange {
    net(Network::Hosts(list(rules)))
}

#[test]
fn what_becomes_of_each_change() {
    let (on, off) = (net(Network::On), net(Network::Off));
    let far =
        RightsChange::Network { net: Network::On, reach: Some(Reach { host: true, ..Reach::default() }) };
    let table = [
        (auto(), on.clone(), "writes in the project, $TMPDIR · network on · secrets hidden"),
        (auto(), far, "writes in the project, $TMPDIR · network on +host · secrets hidden"),
        (auto(), off, "nothing changed: the network is already off"),
        (
            auto(),
            hosts("a.example b.example:80"),
            "writes in the project, $TMPDIR · network on for a.example b.example:80 · secrets hidden",
        ),
        (
            auto(),
            RightsChange::AddHosts { hosts: list("a.example"), reach: None },
            "writes in the project, $TMPDIR · network on for a.example · secrets hidden",
        ),
        (
            auto(),
            hosts("*.co.uk"),
            "the access was not changed: \"*.co.uk\" would allow every host that anyone registers below that name; name each host instead",
        ),
        (auto(), add("/srv"), "writes in the project, $TMPDIR, /srv · network off · secrets hidden"),
        (deny(), add("/home/me/p"), "writes in the project, $TMPDIR · network off · secrets hidden"),
        (auto(), add("/home/me/p/src"), "nothing changed: /home/me/p/src is already writable"),
        (auto(), remove("/home/me/p"), "read-only but for $TMPDIR · network off · secrets hidden"),
        (auto(), remove("/srv"), "nothing changed: writing to /srv was not allowed before"),
        (
            auto(),
            remove("/tmp/bw-1"),
            "the access was not changed: the private temp directory is always writable",
        ),
        (
            auto(),
            add("/home/me/.ssh/x"),
            "the access was not changed: /home/me/.ssh/x is hidden from the sandbox",
        ),
        (
            auto(),
            add("/"),
            "the access was not changed: / belongs to the kernel, or contains a path of the kernel",
        ),
        (
            auto(),
            add("/proc/sys"),
            "the access was not changed: /proc/sys belongs to the kernel, or contains a path of the kernel",
        ),
        (auto(), add("/dev/dri"), "writes in the project, $TMPDIR, /dev/dri · network off · secrets hidden"),
        (
            auto(),
            add("/home/me/p/.git/hooks"),
            "the access was not changed: /home/me/p/.git/hooks is protected by the settings or by Bailiwick",
        ),
    ];
    for (standing, change, expected) in table {
        assert_eq!(after(&standing, &change, Activity::Execute), expected, "{change:?}");
    }
}

#[test]
fn nothing_opens_the_place_of_a_level() {
    let levels: WirePath = "/home/me/.cache/bailiwick/projects/p".into();
    for standing in [auto(), deny()] {
        let standing = StandingRights { levels: Some(levels.clone()), ..standing };
        let place = "/home/me/.cache/bailiwick/projects/p/approved-online-1/npm";
        let said = after(&standing, &add(place), Activity::Execute);
        assert!(said.ends_with(" is protected by the settings or by Bailiwick"), "{said}");
        let change = Place { path: place.into(), grant: Some(place.into()) };
        assert!(matches!(judge::change(&standing, std::slice::from_ref(&change)), Verdict::Deny(_)));
        assert_eq!(flags::for_write(&standing, &place.into()), None);
        assert!(flags::for_write(&standing, &"/home/me/.cache/other".into()).is_some());
        let mut own = standing.clone();
        own.rights.write.push(levels.clone());
        let handed_on = Place { path: levels.clone(), grant: Some(levels.clone()) };
        assert_eq!(judge::change(&own, std::slice::from_ref(&handed_on)), Verdict::Run);
        assert_eq!(flags::for_write(&own, &place.into()), None, "another level's place stays closed");
        assert!(
            matches!(judge::change(&standing, &[handed_on]), Verdict::Deny(_)),
            "nobody else is given it"
        );
    }
}

#[test]
fn a_plan_is_made_without_network_and_without_writing() {
    let said = after(&deny(), &net(Network::On), Activity::Plan);
    assert_eq!(said, "the access was not changed: the network stays off while a plan is made");
    let said = after(&deny(), &add("/srv"), Activity::Plan);
    assert_eq!(said, "the access was not changed: nothing is writable while a plan is made");
}

#[test]
fn the_network_leads_as_far_as_the_start_allowed_each_time_it_is_turned_on() {
    let mut standing =
        StandingRights { reach: Reach { host: true, lan: true, ..Reach::default() }, ..auto() };
    for _ in 0..2 {
        standing.rights = change::rights_after(&standing, &net(Network::On), Activity::Execute).unwrap();
        assert_eq!(
            standing.line(),
            "writes in the project, $TMPDIR · network on +host +lan · secrets hidden"
        );
        let again = after(&standing, &net(Network::On), Activity::Execute);
        assert_eq!(again, "nothing changed: the network is already on");
        standing.rights = change::rights_after(&standing, &net(Network::Off), Activity::Execute).unwrap();
        assert_eq!(standing.line(), "writes in the project, $TMPDIR · network off · secrets hidden");
    }
    let nowhere = RightsChange::Network { net: Network::On, reach: Some(Reach::default()) };
    let line = "writes in the project, $TMPDIR · network on · secrets hidden";
    assert_eq!(
        after(&standing, &nowhere, Activity::Execute),
        line,
        "a narrower reach is the caller's to name"
    );
}

#[test]
fn a_root_that_held_others_gives_their_place_back() {
    let mut standing = auto();
    standing.rights = standing.rights.normalised();
    let before = standing.rights.clone();
    standing.rights = change::rights_after(&standing, &add("/home/me"), Activity::Execute).unwrap();
    standing.rights = change::rights_after(&standing, &add("/tmp"), Activity::Execute).unwrap();
    for path in ["/home/me", "/tmp"] {
        standing.rights = change::rights_after(&standing, &remove(path), Activity::Execute).unwrap();
    }
    assert_eq!(standing.rights, before);
}

fn any_change() -> impl Strategy<Value = RightsChange> {
    let path = prop_oneof![
        Just("/home/me/p"),
        Just("/home/me"),
        Just("/srv"),
        Just("/srv/a"),
        Just("/tmp"),
        Just("/tmp/bw-1"),
        Just("/home/me/.ssh"),
        Just("/"),
    ];
    let path = path.prop_map(WirePath::from);
    let reach = any::<Option<[bool; 4]>>().prop_map(|reach| {
        reach.map(|[host, lan, link_local, metadata]| Reach { host, lan, link_local, metadata })
    });
    prop_oneof![
        (any::<bool>(), reach).prop_map(|(on, reach)| {
            RightsChange::Network { net: if on { Network::On } else { Network::Off }, reach }
        }),
        path.clone().prop_map(|path| RightsChange::AddWrite { path }),
        path.prop_map(|path| RightsChange::RemoveWrite { path }),
    ]
}

proptest! {
    #[test]
    fn whatever_changes_what_is_closed_stays_closed_and_the_temp_directory_open(
        changes in proptest::collection::vec(any_change(), 0..12),
    ) {
        let mut standing = auto();
        for change in changes {
            let Ok(rights) = change::rights_after(&standing, &change, Activity::Execute) else { continue };
            prop_assert_ne!(&rights, &standing.rights, "a change changes something");
            standing.rights = rights;
            for closed in ["/home/me/.ssh/id", "/etc/shadow", "/home/me/p/.git/hooks/x"] {
                prop_assert!(!standing.allows_write(&closed.into()), "{}", closed);
            }
            prop_assert!(!standing.rights.allows_read(&"/home/me/.ssh/id".into()));
            prop_assert!(standing.allows_write(&"/tmp/bw-1/x".into()));
        }
    }
}
