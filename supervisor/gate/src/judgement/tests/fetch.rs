use ipc::confinement::Tier;
use ipc::denial::Denial;
use ipc::rights::{Grant, Hosts, Network, Reach};
use protocol::approval::{ApprovalMode, AskKind};

use super::super::{Ask, StandingRights, Verdict, fetch, judge};
use crate::modes::Position;
use crate::tools::FetchCall;

fn call(url: &str) -> FetchCall {
    FetchCall { url: url.parse().unwrap() }
}

fn network(hosts: &str) -> Network {
    match hosts {
        "on" => Network::On,
        "off" => Network::Off,
        hosts => Network::Hosts(Hosts::new(hosts.split(',').map(|rule| rule.parse().unwrap())).unwrap()),
    }
}

fn standing(net: &str, mode: ApprovalMode) -> StandingRights {
    let mut standing = super::auto();
    standing.rights.net = network(net);
    standing.mode = mode;
    standing.tier = Tier::Full;
    standing
}

fn judged(net: &str, mode: ApprovalMode, agent: Position, url: &str) -> Verdict {
    judge::call(&standing(net, mode), &call(url).into(), agent)
}

#[test]
fn a_host_of_the_rights_is_fetched_in_every_mode() {
    for agent in [Position::FIRST, Position::SUB, Position::PLANNER] {
        for mode in ApprovalMode::ALL {
            for (net, url) in [
                ("on", "https://any.example/"),
                ("docs.example", "https://docs.example/x?y"),
                ("*.docs.example:80", "http://a.docs.example/"),
                ("docs.example:8443", "https://docs.example:8443/"),
            ] {
                assert_eq!(judged(net, mode, agent, url), Verdict::Run, "{net} {url} {agent:?} {mode}");
            }
        }
    }
}

#[test]
fn beyond_the_rights_only_an_agent_that_asks_asks() {
    for (net, url, flag) in [
        ("off", "https://docs.example/", "--net docs.example"),
        ("a.example", "https://docs.example/", "--net a.example,docs.example"),
        ("docs.example", "http://docs.example/", "--net docs.example:80,docs.example"),
        ("docs.example", "https://docs.example:8443/", "--net docs.example,docs.example:8443"),
        ("*.docs.example", "https://docs.example/", "--net docs.example,*.docs.example"),
    ] {
        let expected = Network::Hosts(call(url).url.rules());
        let Verdict::Ask(Ask { kind, grant }) = judged(net, ApprovalMode::Ask, Position::FIRST, url) else {
            panic!("{net} {url}");
        };
        assert_eq!((kind, &grant.net), (AskKind::Fetch, &expected), "{net} {url}");
        assert!(grant.write.is_empty() && grant.reach == Reach::default());
        for (agent, mode) in [
            (Position::FIRST, ApprovalMode::Auto),
            (Position::FIRST, ApprovalMode::Deny),
            (Position::SUB, ApprovalMode::Ask),
            (Position::PLANNER, ApprovalMode::Ask),
        ] {
            let Verdict::Deny(Denial { grant, .. }) = judged(net, mode, agent, url) else {
                panic!("{net} {url} {agent:?} {mode}");
            };
            assert_eq!(grant.as_deref(), Some(flag), "{net} {url}");
        }
    }
}

#[test]
fn a_floor_without_mediation_has_no_list_to_name() {
    let floor = StandingRights { tier: Tier::FloorUnmediated, ..standing("off", ApprovalMode::Auto) };
    let Verdict::Deny(denial) = judge::call(&floor, &call("https://docs.example/").into(), Position::FIRST)
    else {
        panic!("it is not denied");
    };
    assert_eq!(denial.grant.as_deref(), Some("--net on"));
}

#[test]
fn where_each_command_is_asked_for_each_page_is() {
    let standing = StandingRights { confirm_shell: true, ..standing("on", ApprovalMode::Ask) };
    let verdict = judge::call(&standing, &call("https://docs.example/").into(), Position::FIRST);
    assert_eq!(verdict, Verdict::Ask(Ask { kind: AskKind::Fetch, grant: Grant::default() }));
}

#[test]
fn a_page_is_permitted_to_its_own_name_alone() {
    let hosts = |net, url, grant: Option<&Grant>| {
        fetch::permit(&standing(net, ApprovalMode::Ask), call(url), grant).hosts.to_string()
    };
    assert_eq!(hosts("on", "https://docs.example/", None), "docs.example");
    assert_eq!(hosts("on", "http://docs.example/", None), "docs.example:80 docs.example");
    assert_eq!(hosts("docs.example:80,evil.example", "http://docs.example/", None), "docs.example:80");
    let grant = Grant { net: network("docs.example:80,docs.example"), ..Grant::default() };
    assert_eq!(hosts("off", "http://docs.example/", Some(&grant)), "docs.example:80 docs.example");
    let reach = Reach { lan: true, ..Reach::default() };
    let grant = Grant { reach, ..grant };
    let permitted =
        fetch::permit(&standing("off", ApprovalMode::Ask), call("http://docs.example/"), Some(&grant));
    assert!(permitted.is_approved && permitted.reach == reach);
}
