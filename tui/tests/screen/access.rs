//! The access of a session: listed, and taken back.

use crossterm::event::KeyCode;
use insta::assert_snapshot;
use ipc::approval::ApprovalMode;
use ipc::event::EventKind;
use ipc::frontend::UserActionKind;
use ipc::rights::{NamedRoot, Network, NetworkState, RightsChange, RightsSummary};

use crate::core::read_only;
use crate::seat::Seat;

#[test]
fn what_was_allowed_is_listed_with_the_command_that_takes_it_back() {
    let mut seat = Seat::new(80, 24);
    seat.keys(":allow\n");
    assert!(seat.screen().contains("nothing beyond what every agent may"), "{}", seat.screen());
    seat.press(KeyCode::Esc);
    let write = vec![
        NamedRoot::Temp,
        NamedRoot::Project,
        NamedRoot::Path("/srv/a b".into()),
        NamedRoot::Path(b"/x\x1b\n\xff".to_vec().into()),
    ];
    let rights = RightsSummary { write, net: NetworkState::On, ..read_only() };
    seat.change_rights(rights);
    seat.keys(":grants\n");
    assert_snapshot!(seat.screen(), @r#"
    allowed in this session
      writes in the project · :disallow write . asks first
      writes in /srv/a b · :disallow write /srv/a b
      writes in /x\u{1b}\u{a}\xff · :disallow write /x\u{1b}\u{a}\xff
      network on · :disallow net














    Esc close  j/k scroll
    ────────────────────────────────────────────────────────────────────────────────
    ›
     PAGE  EXECUTE · ask · net on · turn ↑0 ↓0 · all ↑0 ↓0 · sandboxed
    writes in the project, "/srv/a b", "/x\u{1b}\n\xFF" · network on · secrets hidde
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
        assert_eq!(seat.told(), [UserActionKind::SetRights { change }], "{line}");
    }
    for wrong in ["disallow", "disallow write", "disallow everything"] {
        seat.keys(&format!(":{wrong}\n"));
        assert_eq!(seat.told(), [], "{wrong}");
    }
}
