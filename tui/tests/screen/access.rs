use crossterm::event::KeyCode;
use insta::assert_snapshot;
use ipc::id::{Generation, GrantId};
use ipc::rights::{Hosts, NamedRoot, Network, RightsChange, RightsSummary};
use protocol::approval::ApprovalMode;
use protocol::event::{EventKind, HostUse, NoticeCode};
use protocol::frontend::{AgentAction, UserActionKind};

use crate::core::read_only;
use crate::seat::{Seat, start};
use crate::tree;
use tui::Start;

#[test]
fn commands_and_tools_that_the_settings_let_run_are_listed_with_the_place_of_the_setting() {
    let unasked = [
        "commands that begin with cargo test · /home/me/.config/bailiwick/config.toml:12",
        "search of docs · /home/me/.config/bailiwick/config.toml:13",
        "\u{1b}[2J of docs · x",
    ];
    let mut seat = Seat::from(Start { unasked: unasked.map(str::to_owned).into(), ..start((90, 24)) });
    seat.keys(":access\n");
    let screen = seat.screen();
    let listed: Vec<_> = screen.lines().skip_while(|row| !row.starts_with("run without")).take(4).collect();
    assert_snapshot!(listed.join("\n"), @r"
    run without a question, by your settings
      commands that begin with cargo test · /home/me/.config/bailiwick/config.toml:12
      search of docs · /home/me/.config/bailiwick/config.toml:13
      \u{1b}[2J of docs · x
    ");
    let mut seat = Seat::new(90, 24);
    seat.keys(":access\n");
    assert!(!seat.screen().contains("by your settings"), "{}", seat.screen());
}

#[test]
fn what_was_allowed_is_listed_with_the_command_that_takes_it_back() {
    let mut seat = Seat::new(80, 24);
    seat.keys(":allow\n");
    assert!(seat.screen().contains("no additional access"), "{}", seat.screen());
    seat.press(KeyCode::Esc);
    let write = vec![
        NamedRoot::Temp,
        NamedRoot::Project,
        NamedRoot::Path("/srv/a b".into()),
        NamedRoot::Path(b"/x\x1b\n\xff".to_vec().into()),
    ];
    let rights = RightsSummary { write, net: Network::On, ..read_only() };
    seat.change_rights(rights);
    seat.wait(6_100);
    seat.keys(":grants\n");
    assert_snapshot!(seat.screen(), @r#"
    access of the agent
      access    writes in the project, "/srv/a b", "/x\u{1b}\n\xFF" · network on ·
                secrets hidden
      hidden    9 paths with secrets: agents cannot read their content
      mode      ask: changes and other access wait for your answer
      sandbox   full tier
      exactly   writes in $TMPDIR, the project, "/srv/a b", "/x\u{1b}\n\xFF" ·
                network on · secrets hidden
    allowed in this session
      writes in the project · :disallow write . asks first
      writes in /srv/a b · :disallow write /srv/a b
      writes in /x\u{1b}\u{a}\xff · :disallow write /x\u{1b}\u{a}\xff
      network on · :disallow net
    to change it
      :mode ask|auto|deny   ask first, allow changes in the project, or deny
      :net on|off|HOSTS     the network, or only these hosts
      :allow write PATH     a directory or file outside of the project
      :allow socket PATH    a socket of another program
      :disallow ACCESS      withdraw one of these

    Esc close  j/k scroll
    ────────────────────────────────────────────────────────────────────────────────
    ›
     PAGE  EXECUTE · ask · net on · ↑0 ↓0/↑0 ↓0
    "#);
    seat.press(KeyCode::Esc);
    seat.log(EventKind::ModeChanged { mode: ApprovalMode::Auto });
    seat.keys(":allow\n");
    assert!(seat.screen().contains("writes in the project · :mode ask asks first"), "{}", seat.screen());
    seat.press(KeyCode::Esc);
    for (line, change) in [
        (":disallow write .", RightsChange::RemoveWrite { path: ".".into() }),
        (":disallow write /srv/a b", RightsChange::RemoveWrite { path: "/srv/a b".into() }),
        ("/disallow write '/srv/a b '", RightsChange::RemoveWrite { path: "/srv/a b ".into() }),
        (":disallow net", RightsChange::Network { net: Network::Off, reach: None }),
    ] {
        seat.keys(&format!("{line}\n"));
        assert_eq!(seat.told(), [UserActionKind::Agent(AgentAction::SetRights { change })], "{line}");
    }
    for wrong in ["disallow", "disallow write", "disallow everything"] {
        seat.keys(&format!(":{wrong}\n"));
        assert_eq!(seat.told(), [], "{wrong}");
    }
}

#[test]
fn hosts_are_named_and_added() {
    let mut seat = Seat::new(80, 24);
    let hosts = |rules: &[&str]| Hosts::new(rules.iter().map(|rule| rule.parse().unwrap())).unwrap();
    for (typed, change) in [
        (
            ":net docs.example,@npm\n",
            RightsChange::Network {
                net: Network::Hosts(hosts(&["docs.example", "registry.npmjs.org"])),
                reach: None,
            },
        ),
        (
            ":net +docs.example:80\n",
            RightsChange::AddHosts { hosts: hosts(&["docs.example:80"]), reach: None },
        ),
    ] {
        seat.keys(typed);
        let action = UserActionKind::Agent(AgentAction::SetRights { change });
        assert_eq!(seat.told(), [action], "{typed}");
        assert!(seat.screen().contains(" → docs.example"), "{}", seat.screen());
    }
    for (typed, why) in
        [(":net *.com\n", "every host"), (":net 10.0.0.1\n", "not a host"), (":net +on\n", "neither")]
    {
        seat.keys(typed);
        assert!(seat.told().is_empty() && seat.screen().contains(why), "{typed}: {}", seat.screen());
    }
}

#[test]
fn a_host_that_could_not_be_reached_is_told_once() {
    let mut seat = Seat::new(100, 24);
    let failed = HostUse {
        host: "a.example".to_owned(),
        port: 443,
        program: "curl".to_owned(),
        failures: 1,
        failure: Some("the name has no address".to_owned()),
        ..HostUse::default()
    };
    for _ in 0..2 {
        seat.log(EventKind::HostsUsed { generation: Generation(1), uses: vec![failed.clone()] });
    }
    let told = "curl could not reach a.example:443: the name has no address";
    assert_eq!(seat.screen().matches(told).count(), 1, "{}", seat.screen());
}

type Effect<'a> = (&'a str, &'a dyn Fn(&mut Seat));

#[test]
fn effects_of_commands_stand_above_the_prompt_and_not_in_the_conversation() {
    let rights = |net| RightsSummary { write: vec![NamedRoot::Project, NamedRoot::Temp], net, ..read_only() };
    let changed =
        |message: &str| EventKind::Notice { code: NoticeCode::ModelChanged, message: message.to_owned() };
    let effects: [Effect<'_>; 4] = [
        ("mode: auto", &|seat| seat.log(EventKind::ModeChanged { mode: ApprovalMode::Auto })),
        ("mode: ask · access: writes in the project · network on", &|seat| {
            seat.change_rights(rights(Network::On));
        }),
        ("no longer approved for this session: 1", &|seat| {
            seat.log(EventKind::GrantRevoked { id: GrantId(1) });
        }),
        ("other answers from now on", &|seat| seat.log(changed("other answers from now on"))),
    ];
    for (told, effect) in effects {
        let mut seat = Seat::new(100, 24);
        let before = seat.screen();
        effect(&mut seat);
        assert!(seat.screen().contains(told), "{told}: {}", seat.screen());
        seat.wait(6_100);
        let rows = |screen: &str| screen.lines().take(20).map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(rows(&seat.screen()), rows(&before), "{told}");
    }
    // A change for an agent that is not shown is reported in that agent's transcript only.
    let mut seat = Seat::new(100, 24);
    tree::log(&mut seat, "1.1", EventKind::ModeChanged { mode: ApprovalMode::Auto });
    assert!(!seat.screen().contains("mode: auto"), "{}", seat.screen());
}

#[test]
fn an_effect_on_a_narrow_screen_is_no_page() {
    let mut seat = Seat::new(40, 12);
    let write = (0..9).map(|n| NamedRoot::Path(format!("/srv/a-long-name-of-a-place-{n}").as_str().into()));
    seat.change_rights(RightsSummary { write: write.collect(), ..read_only() });
    seat.keys("hello");
    assert!(seat.screen().contains("› hello"), "{}", seat.screen());
}
